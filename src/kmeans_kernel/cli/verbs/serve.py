"""kmeans-kernel serve."""

from __future__ import annotations

import os
import warnings
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

import typer

from kmeans_kernel.cli._output import Quiet, Verbose, err, report_errors, warn

TOKEN_VARIABLE = "KMEANS_KERNEL_TOKEN"  # noqa: S105


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="Model files written by fit. NAME=FILE sets the name of a model, which is else "
            "that of its file.",
        ),
    ],
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; 0.0.0.0 accepts requests of other machines."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")
    ] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the bearer token that requests must send. By default the environment "
            f"variable {TOKEN_VARIABLE}; if it is not set, no token is required."
        ),
    ] = None,
    max_body: Annotated[
        float,
        typer.Option(
            min=0.001, max=1e6, help="Largest body of a request in MiB, after decompression."
        ),
    ] = 64.0,
    max_text: Annotated[
        float,
        typer.Option(
            min=0.001, max=1e6, help="Largest JSON or CSV body in MiB, after decompression."
        ),
    ] = 16.0,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Most rows that one request may have.")
    ] = 100_000,
    max_requests: Annotated[
        int,
        typer.Option(
            min=1,
            help="Most requests that are processed or queued at once; further ones get status 503.",
        ),
    ] = 128,
    body_seconds: Annotated[
        float,
        typer.Option(
            min=0.001, max=1e6, help="Timeout in seconds for the body of a request to arrive."
        ),
    ] = 30.0,
    answer_seconds: Annotated[
        float,
        typer.Option(
            min=0.001, max=1e6, help="Timeout in seconds for the response to a received request."
        ),
    ] = 60.0,
    join: Annotated[
        bool,
        typer.Option(help="Predict queued requests together (micro-batching) where it is faster."),
    ] = True,
    log: Annotated[
        bool, typer.Option(help="Log each request as a line of JSON on standard error.")
    ] = True,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Serve models over HTTP until Ctrl-C or SIGTERM.

    The server implements the Open Inference Protocol (v2), for example for the clients of Triton
    and KServe, and takes rows as JSON or CSV at /predict. GET / lists the models and paths.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel serve digits.model --port 8000
    """
    with report_errors(verbose=verbose):
        from kmeans_kernel.serve import Limits, create_app, run
        from kmeans_kernel.serve.transport._limits import MEBIBYTE

        token = read_token(token_file)
        limits = Limits(
            body_bytes=int(max_body * MEBIBYTE), text_bytes=int(max_text * MEBIBYTE),
            rows=max_rows, in_flight=max_requests,
            body_seconds=body_seconds, answer_seconds=answer_seconds,
        )  # fmt: skip
        loaded = load_models(models)
        app = create_app(loaded, limits=limits, token=token, log=log and not quiet, join=join)
        if accepts_remote_requests(host) and token is None and not quiet:
            warn(
                f"{host} accepts requests of other machines without a token; set one with "
                f"--token-file or {TOKEN_VARIABLE}."
            )

        def on_start(address: str) -> None:
            if not quiet:
                err.print(f"Serving {', '.join(loaded)} at {address} (see {address}/docs).")

        with warnings.catch_warnings():
            # Warnings of every prediction would accumulate in the list of `report_errors`.
            warnings.simplefilter("ignore")
            run(app, host=host, port=port, on_start=on_start)


def accepts_remote_requests(host: str) -> bool:
    """Return whether a server on this address accepts requests of other machines."""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def read_token(path: Path | None) -> str | None:
    """Return the token from a file or the environment variable; None without either."""
    if path is None:
        token = os.environ.get(TOKEN_VARIABLE)
        source = f"the environment variable {TOKEN_VARIABLE}"
    else:
        token = _read_text(path)
        source = f"the file {path}"
    if token is not None and not token.strip():
        raise ValueError(f"{source} must contain a token, and is empty; write one into it.")
    return None if token is None else token.strip()


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"the file {path} must contain a token as UTF-8 text, and does not; write one into it."
        ) from error


def load_models(arguments: list[str]) -> dict[str, Any]:
    """Load models from arguments FILE or NAME=FILE; return them by name."""
    from kmeans_kernel.export.model_file import load_model

    files: dict[str, Path] = {}
    for argument in arguments:
        name, path = split_name(argument)
        if name in files:
            raise ValueError(
                f"two models have the name {name!r}; give one another name with NAME=FILE."
            )
        files[name] = path
    return {name: load_model(path) for name, path in files.items()}


def split_name(argument: str) -> tuple[str, Path]:
    """Split NAME=FILE; an existing file with an equals sign in its name is taken as FILE."""
    name, equals, path = argument.partition("=")
    if not equals or Path(argument).exists():
        return Path(argument).stem, Path(argument)
    return name, Path(path)
