"""Input of all commands: a file, standard input, or a named data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from kmeans_kernel.cli._output import byte_bar, fail, warn
from kmeans_kernel.data.tables import Format, Table, read_table

if TYPE_CHECKING:
    from sklearn.utils import Bunch

DATASETS = {
    "digits": "8 × 8 digits, comes with scikit-learn",
    "mnist": "28 × 28 digits",
    "fashion-mnist": "28 × 28 pictures of clothes",
}


Data = Annotated[
    str,
    typer.Argument(
        help="The input: a CSV, Parquet, NPZ, svmlight or IDX file, also compressed with gzip; - "
        f"for standard input; or a data set ({', '.join(DATASETS)})."
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="The labels: name of a column, name of an array in an NPZ file, or an IDX file.",
    ),
]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="Format of the input. By default it is detected from the suffix, else from the "
        "content.",
    ),
]
Drop = Annotated[
    list[str],
    typer.Option(
        "--drop", metavar="COLUMN", help="Column that is not a feature. May be given repeatedly."
    ),
]
ZeroBased = Annotated[
    bool,
    typer.Option("--zero-based", help="Count the feature indices of svmlight from 0, not from 1."),
]
DropMissing = Annotated[
    bool,
    typer.Option("--drop-missing", help="Drop rows with missing values; else they are errors."),
]


def load_dataset(name: str) -> Bunch:
    """Load a data set by name."""
    from kmeans_kernel.data import datasets

    found: Bunch = getattr(datasets, f"load_{name.replace('-', '_')}")()
    return found


def read_options(
    target: str | None,
    file_format: Format | None,
    drop: list[str],
    drop_missing: bool,
    zero_based: bool,
) -> dict[str, Any]:
    """Return the options of an input file as arguments of `read_table`."""
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
    """Read a file, or one part of a data set; a file takes precedence over a data set.

    Parameters
    ----------
    how : options of the input file, from the command line
    needed : further arguments of `read_table`
    """
    if data not in DATASETS or Path(data).exists():
        with byte_bar(f"reading {data}", quiet=quiet) as on_bytes:
            table = read_table(data, on_bytes=on_bytes, **how, **needed)
        if table.n_dropped and not quiet:
            rows = "1 row was" if table.n_dropped == 1 else f"{table.n_dropped} rows were"
            warn(f"{rows} dropped for missing values.")
        return table
    if any(how.values()):
        fail(
            f"{data} is a data set with its own labels; leave out --target, --format, --drop, "
            "--drop-missing and --zero-based, which are for files."
        )
    found = load_dataset(data)
    X, y = found[f"X_{part}"], found[f"y_{part}"]
    return Table(X, y, np.arange(len(X)))
