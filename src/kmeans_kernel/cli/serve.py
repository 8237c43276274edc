"""kmeans-kernel serve."""

from __future__ import annotations

import os
import warnings
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

import typer

from kmeans_kernel.cli._output import Quiet, Verbose, err, one_sentence, warn

TOKEN_VARIABLE = "KMEANS_KERNEL_TOKEN"  # noqa: S105


def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL", help="Files that fit wrote; NAME=FILE names one."),
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen; 0.0.0.0 is reached by other machines.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"A file with the token to ask for; or set {TOKEN_VARIABLE}."),
    ] = None,
    max_body: Annotated[
        float, typer.Option(min=0.001, max=1e6, help="Of a request, unpacked, in MiB.")
    ] = 64.0,
    max_text: Annotated[
        float, typer.Option(min=0.001, max=1e6, help="Of JSON or CSV, unpacked, in MiB.")
    ] = 16.0,
    max_rows: Annotated[int, typer.Option(min=1, help="Of a request.")] = 100_000,
    max_requests: Annotated[
        int, typer.Option(min=1, help="Worked on at once; others are told to come again.")
    ] = 128,
    body_seconds: Annotated[
        float, typer.Option(min=0.001, max=1e6, help="In which a body must arrive.")
    ] = 30.0,
    answer_seconds: Annotated[
        float, typer.Option(min=0.001, max=1e6, help="In which an answer must be found.")
    ] = 60.0,
    join: Annotated[
        bool, typer.Option(help="Predict what waits together, where that is faster.")
    ] = True,
    log: Annotated[bool, typer.Option(help="Write a line of JSON for each request.")] = True,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Serve models over HTTP, until Ctrl-C or SIGTERM.

    It speaks the Open Inference Protocol (v2), as the clients of Triton and KServe do, and takes
    plain rows at /predict. GET / lists what there is.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel serve digits.model --port 8000
    """
    with one_sentence(verbose=verbose):
        from kmeans_kernel.serve import Limits, create_app, run
        from kmeans_kernel.serve._limits import MEBIBYTE

        token = read_token(token_file)
        limits = Limits(
            body_bytes=int(max_body * MEBIBYTE), text_bytes=int(max_text * MEBIBYTE),
            rows=max_rows, in_flight=max_requests,
            body_seconds=body_seconds, answer_seconds=answer_seconds,
        )  # fmt: skip
        loaded = load_models(models)
        app = create_app(loaded, limits=limits, token=token, log=log and not quiet, join=join)
        if is_open(host) and token is None and not quiet:
            warn(
                f"{host} is reached by others, and no token is asked for; name one with "
                f"--token-file or {TOKEN_VARIABLE}."
            )

        def on_start(address: str) -> None:
            if not quiet:
                err.print(f"Serving {', '.join(loaded)} at {address} (see {address}/docs).")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of predictions would pile up
            run(app, host=host, port=port, on_start=on_start)


def is_open(host: str) -> bool:
    """Say whether other machines reach a server that listens there."""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def read_token(path: Path | None) -> str | None:
    """Return the token of a file, or of the environment; None if there is none."""
    if path is None:
        token = os.environ.get(TOKEN_VARIABLE)
        source = f"the environment variable {TOKEN_VARIABLE}"
    else:
        token = _text_of(path)
        source = f"the file {path}"
    if token is not None and not token.strip():
        raise ValueError(f"{source} must hold a token, and is empty.")
    return None if token is None else token.strip()


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"the file {path} must hold a token as UTF-8 text, and does not; write one into it."
        ) from error


def load_models(named: list[str]) -> dict[str, Any]:
    """Return the models of files by name: their own, or that before an equals sign."""
    from kmeans_kernel.export.model_file import load_model

    files: dict[str, Path] = {}
    for one in named:
        name, path = name_and_path(one)
        if name in files:
            raise ValueError(
                f"two models have the name {name!r}; name one of them otherwise, with NAME=FILE."
            )
        files[name] = path
    return {name: load_model(path) for name, path in files.items()}


def name_and_path(one: str) -> tuple[str, Path]:
    """Return the name of a model and its file; a file may have an equals sign in its own name."""
    name, equals, path = one.partition("=")
    if not equals or Path(one).exists():
        return Path(one).stem, Path(one)
    return name, Path(path)
