"""kmeans-kernel export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

from kmeans_kernel.cli._output import Quiet, Verbose, one_sentence, out, size_of, warn
from kmeans_kernel.cli._reading import (
    SETS,
    Drop,
    DropMissing,
    FormatOption,
    Target,
    ZeroBased,
    how_to_read,
)  # fmt: skip
from kmeans_kernel.cli.predict import load_and_read, model_file
from kmeans_kernel.data.tables import Table
from kmeans_kernel.utils.files import check_writable


def export(
    model: Annotated[Path, typer.Argument(help="A file that fit wrote.")],
    onnx: Annotated[Path | None, typer.Option(help="Write the model as ONNX to this file.")] = None,
    web: Annotated[
        Path | None, typer.Option(help="Write a page that classifies to this HTML file.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help=f"Test data that the page shows: a file, or a data set: {', '.join(SETS)}.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="The heading of the page; the model's name if not given.")
    ] = None,
    float16: Annotated[
        bool,
        typer.Option("--float16", help="Store the page's representatives in half the space."),
    ] = False,
    target: Target = None,
    file_format: FormatOption = None,
    drop: Drop = [],  # noqa: B006
    drop_missing: DropMissing = False,
    zero_based: ZeroBased = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Hand a model to someone without Python: an ONNX file, or one page for any browser.

    The page needs no server and no network. It classifies what is drawn, dropped or entered, and
    shows why; with test data it shows how these are classified, and takes the ranges of its fields
    from them.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel export digits.model --onnx digits.onnx --web digits.html --data digits
    """
    with one_sentence(verbose=verbose):
        if onnx is None and web is None:
            raise ValueError("name what to write: --onnx FILE, --web FILE, or both.")
        if web is None and (data is not None or title is not None or float16):
            raise ValueError("--data, --title and --float16 are for a page: name one with --web.")
        if onnx is not None and web is not None and onnx.resolve() == web.resolve():
            raise ValueError(f"--onnx and --web both name {onnx}; name two files.")
        for path in (onnx, web):
            if path is not None:
                check_writable(path, model, *([] if data is None else [data]))
        how = how_to_read(target, file_format, drop, drop_missing, zero_based)
        estimator, table = _load(model, data, how, quiet=quiet)
        if onnx is not None:
            _write_onnx(estimator, onnx, quiet=quiet)
        if web is not None:
            _write_page(estimator, table, web, title or model.stem, float16=float16, quiet=quiet)


def _load(
    model: Path, data: str | None, how: dict[str, Any], *, quiet: bool
) -> tuple[Any, Table | None]:
    if data is not None:
        return load_and_read(model, data, how, quiet=quiet, labels=True)
    from kmeans_kernel.export.model_file import load_model

    return load_model(model_file(model)), None


def _write_onnx(estimator: Any, path: Path, *, quiet: bool) -> None:
    from kmeans_kernel.export.onnx import to_onnx

    size = len(to_onnx(estimator, path).SerializeToString())
    if not quiet:
        out.print(Text(f"{path}: {size_of(size)}, input X, outputs label and probabilities"))


def _write_page(
    estimator: Any, table: Table | None, path: Path, title: str, *, float16: bool, quiet: bool
) -> None:
    from kmeans_kernel.export.web import to_web

    X, y = (None, None) if table is None else (table.X, np.asarray(table.y))
    page = to_web(estimator, path, X=X, y=y, title=title, float16=float16)
    if page.left_out:
        warn(f"The page holds the first {page.n_rows} rows; {page.left_out} are left out.")
    if quiet:
        return
    out.print(Text(f"{path}: {size_of(page.size)}; its model {size_of(page.model_bytes)}"))
    if float16:
        out.print(
            f"float16 changes {page.changed_labels} of {page.n_rows} labels, and probabilities by "
            f"at most {page.largest_change:.1g}"
            if page.n_rows
            else "What float16 changes is told when there are test rows: --data DATA"
        )
    out.print(Text(f"Open it: {path.resolve().as_uri()}"), soft_wrap=True)
