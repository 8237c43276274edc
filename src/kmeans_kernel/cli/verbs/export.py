"""kmeans-kernel export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

from kmeans_kernel.cli._input import DATASETS, LabelledOptions, with_file_options
from kmeans_kernel.cli._output import Quiet, Verbose, out, report_errors, size_of, warn
from kmeans_kernel.cli.verbs.predict import load_model_and_data, model_path
from kmeans_kernel.data.tables import Table
from kmeans_kernel.utils.files import check_writable


@with_file_options
def export(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    onnx: Annotated[Path | None, typer.Option(help="Write the model to this ONNX file.")] = None,
    web: Annotated[
        Path | None, typer.Option(help="Write a web page with the model to this HTML file.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Test data to show on the web page: a file, or a data set "
            f"({', '.join(DATASETS)}).",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Title of the web page. By default the name of the model.")
    ] = None,
    float16: Annotated[
        bool,
        typer.Option(
            "--float16",
            help="Store the representatives of the web page as float16, in half the space.",
        ),
    ] = False,
    *,
    file: LabelledOptions,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Export a model for use without Python: an ONNX file, or a self-contained web page.

    The page needs no server and no network. It classifies drawn, dropped or entered data and
    explains the result. With --data it also shows the test data and their predictions, and sets
    the ranges of its input fields from them.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel export digits.model --onnx digits.onnx --web digits.html --data digits
    """
    with report_errors(verbose=verbose):
        if onnx is None and web is None:
            raise ValueError("export needs an output file: --onnx FILE, --web FILE, or both.")
        if web is None and (data is not None or title is not None or float16):
            raise ValueError(
                "--data, --title and --float16 apply to a web page; name its file with --web FILE."
            )
        if onnx is not None and web is not None and onnx.resolve() == web.resolve():
            raise ValueError(f"--onnx and --web both name {onnx}; name two files.")
        for path in (onnx, web):
            if path is not None:
                check_writable(path, model, *([] if data is None else [data]))
        estimator, table = _load(model, data, file, quiet=quiet)
        if onnx is not None:
            _write_onnx(estimator, onnx, quiet=quiet)
        if web is not None:
            _write_page(estimator, table, web, title or model.stem, float16=float16, quiet=quiet)


def _load(
    model: Path, data: str | None, file: LabelledOptions, *, quiet: bool
) -> tuple[Any, Table | None]:
    if data is not None:
        return load_model_and_data(model, data, file, quiet=quiet, labels=True)
    from kmeans_kernel.export.model_file import load_model

    return load_model(model_path(model)), None


def _write_onnx(estimator: Any, path: Path, *, quiet: bool) -> None:
    from kmeans_kernel.export.onnx import to_onnx

    graph = to_onnx(estimator, path)
    names = [one.name for one in graph.graph.input]
    inputs = "input X" if names == ["X"] else f"an input for each of {len(names)} columns"
    if not quiet:
        size = size_of(len(graph.SerializeToString()))
        out.print(Text(f"{path}: {size}, {inputs}, outputs label and probabilities"))


def _write_page(
    estimator: Any, table: Table | None, path: Path, title: str, *, float16: bool, quiet: bool
) -> None:
    from kmeans_kernel.export.web import to_web

    X, y = (None, None) if table is None else (table.X, np.asarray(table.y))
    page = to_web(estimator, path, X=X, y=y, title=title, float16=float16)
    if page.left_out:
        warn(
            f"The web page contains only the first {page.n_rows} rows of the test data; "
            f"{page.left_out} are left out."
        )
    if quiet:
        return
    out.print(Text(f"{path}: {size_of(page.size)}, of which model {size_of(page.model_bytes)}"))
    if float16:
        out.print(
            f"float16 changes {page.changed_labels} of {page.n_rows} labels, and probabilities by "
            f"at most {page.largest_change:.1g}"
            if page.n_rows
            else "The effect of float16 is unknown without test data; add them with --data DATA."
        )
    out.print(Text(f"Open the page: {path.resolve().as_uri()}"), soft_wrap=True)
