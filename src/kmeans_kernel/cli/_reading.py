"""Where the rows come from: a file, standard input, or a data set by its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from kmeans_kernel.cli._output import byte_bar, fail, warn
from kmeans_kernel.data.tables import Format, Table, read_table

if TYPE_CHECKING:
    from sklearn.utils import Bunch

SETS = {
    "digits": "8 × 8 digits, comes with scikit-learn",
    "mnist": "28 × 28 digits",
    "fashion-mnist": "28 × 28 pictures of clothes",
}


Data = Annotated[
    str,
    typer.Argument(
        help="A file (CSV, Parquet, NPZ, svmlight or IDX; also packed with gzip), - for standard "
        f"input, or a data set: {', '.join(SETS)}."
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", help="The column (or array, or IDX file) of the labels."),
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Told from the file if not given.")
]
Drop = Annotated[
    list[str],
    typer.Option("--drop", metavar="COLUMN", help="A column to leave out; may be repeated."),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="svmlight features are counted from 0, not from 1.")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
]


def load_set(name: str) -> Bunch:
    """Return a data set by its name."""
    from kmeans_kernel.data import datasets

    found: Bunch = getattr(datasets, f"load_{name.replace('-', '_')}")()
    return found


def how_to_read(
    target: str | None,
    file_format: Format | None,
    drop: list[str],
    drop_missing: bool,
    zero_based: bool,
) -> dict[str, Any]:
    """Return what the options say of a file, as `read_table` takes it."""
    return {
        "target": target,
        "file_format": file_format,
        "drop": drop,
        "drop_missing": drop_missing,
        "zero_based": zero_based,
    }


def read(
    data: str,
    part: Literal["train", "test"],
    how: dict[str, Any],
    *,
    quiet: bool,
    **needed: Any,
) -> Table:
    """Read a file, or the part of a data set that is named; `needed` is for `read_table`, too.

    A file that has the name of a data set is the file.
    """
    if data not in SETS or Path(data).exists():
        with byte_bar(f"reading {data}", quiet=quiet) as on_bytes:
            table = read_table(data, on_bytes=on_bytes, **how, **needed)
        if table.n_dropped and not quiet:
            rows = "1 row was" if table.n_dropped == 1 else f"{table.n_dropped} rows were"
            warn(f"{rows} left out for missing values.")
        return table
    if any(how.values()):
        fail(f"{data} is a data set with labels of its own; options on how to read a file do not "
             "apply to it.")  # fmt: skip
    found = load_set(data)
    X, y = found[f"X_{part}"], found[f"y_{part}"]
    return Table(X, y, np.arange(len(X)))
