"""kmeans-kernel predict."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from kmeans_kernel.cli._output import Quiet, Verbose, one_sentence, row_bar, warn
from kmeans_kernel.cli._reading import (
    Data,
    Drop,
    DropMissing,
    FormatOption,
    ZeroBased,
    how_to_read,
    read,
)  # fmt: skip
from kmeans_kernel.data.tables import STANDARD_INPUT, Table
from kmeans_kernel.report._evaluation import predict_all
from kmeans_kernel.utils.files import check_writable, write_whole

SUFFIXES = (".csv", ".parquet", ".jsonl")


def predict(
    model: Annotated[Path, typer.Argument(help="A file that fit wrote.")],
    data: Data,
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="A .csv, .parquet or .jsonl file; - is CSV to stdout."),
    ] = STANDARD_INPUT,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write the probability of every class.")
    ] = False,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="The column or array of labels, to ignore.")
    ] = None,
    file_format: FormatOption = None,
    drop: Drop = [],  # noqa: B006
    drop_missing: DropMissing = False,
    zero_based: ZeroBased = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Classify rows.

    Each gets its number, counted from 1, its label and how probable that is. With a data set, its
    test part is used.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel predict digits.model digits -o labels.csv
    """
    with one_sentence(verbose=verbose):
        check_suffix(output, model, data)
        how = how_to_read(target, file_format, drop, drop_missing, zero_based)
        estimator, table = load_and_read(model, data, how, quiet=quiet, labels=False)
        with row_bar("classifying", len(table.X), quiet=quiet) as on_rows:
            labels, shares = predict_all(estimator, table.X, on_rows)
        columns = result_columns(table, labels, shares, estimator.classes_, probabilities)
        write_columns(columns, output)


def load_and_read(
    model: Path, data: str, how: dict[str, Any], *, quiet: bool, labels: bool
) -> tuple[Any, Table]:
    """Load a model, and read the columns that it was trained on."""
    from kmeans_kernel.export.model_file import load_model

    estimator = load_model(model_file(model))
    names = getattr(estimator, "feature_names_in_", None)
    table = read(
        data,
        "test",
        how,
        quiet=quiet,
        labels=labels,
        features=None if names is None else [str(name) for name in names],
        n_features=int(estimator.n_features_in_),
    )
    check_kind(estimator, table, data)
    if names is not None and isinstance(table.X, np.ndarray):
        shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
        warn(f"{data} names no columns; they are taken for {shown} by their order.")
    return estimator, table


def check_kind(estimator: Any, table: Table, data: str) -> None:
    """Say in our own words when the rows are not what the model was trained on."""
    from kmeans_kernel.report._inspection import sees_images

    if table.are_images and not sees_images(estimator):
        raise ValueError(f"{data} holds images, and the model was trained on a table.")
    width = int(np.prod(table.X.shape[1:]))
    if width != estimator.n_features_in_:
        raise ValueError(
            f"{data} has {width} features a row, and the model was trained on "
            f"{estimator.n_features_in_}."
        )


def model_file(model: Path) -> Path:
    """Return where a model is read from: - is standard input."""
    return Path("/dev/stdin") if str(model) == STANDARD_INPUT else model


def check_suffix(output: str, *inputs: str | Path) -> None:
    """See before the work that the result can be written."""
    if output == STANDARD_INPUT:
        return
    if Path(output).suffix not in SUFFIXES:
        raise ValueError(
            f"the output {output!r} should end in {', '.join(SUFFIXES)}, or be - for standard "
            "output."
        )
    check_writable(Path(output), *inputs)


def result_columns(
    table: Table,
    labels: npt.NDArray[Any],
    shares: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    every_class: bool,
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of the result: the row in the file, its label, how certain."""
    columns = {"row": table.rows + 1, "label": labels, "probability": shares.max(axis=1)}
    if every_class:
        columns |= {f"p_{label}": shares[:, k] for k, label in enumerate(classes)}
    return columns


def write_columns(columns: dict[str, npt.NDArray[Any]], output: str) -> None:
    """Write columns as CSV, Parquet or JSON lines, by the name; a file appears whole or not."""
    import polars as pl

    plain = {
        name: values.astype(str) if values.dtype.kind == "O" else values
        for name, values in columns.items()
    }
    frame = pl.DataFrame({
        name: np.round(values, 6) if values.dtype.kind == "f" and name != "label" else values
        for name, values in plain.items()
    })  # fmt: skip
    if output == STANDARD_INPUT:
        sys.stdout.write(frame.write_csv())
        sys.stdout.flush()
        return
    check_suffix(output)
    suffix = Path(output).suffix
    if suffix == ".csv":
        content = frame.write_csv().encode()
    elif suffix == ".parquet":
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        content = buffer.getvalue()
    else:
        rows = (json.dumps(row, ensure_ascii=False) for row in frame.iter_rows(named=True))
        content = "".join(f"{row}\n" for row in rows).encode()
    write_whole(Path(output), content)
