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

from kmeans_kernel.cli._input import (
    Data,
    FileOptions,
    UnlabelledOptions,
    columns_of,
    kinds_of,
    read,
    trained_notation,
    with_file_options,
)
from kmeans_kernel.cli._levels import unknown_levels
from kmeans_kernel.cli._output import Quiet, Verbose, note, report_errors, row_bar, warn
from kmeans_kernel.cli._target import cut_like
from kmeans_kernel.data.tables import STANDARD_INPUT, Table
from kmeans_kernel.report._evaluation import predict_all
from kmeans_kernel.utils.files import check_writable, write_whole

SUFFIXES = (".csv", ".parquet", ".jsonl")

Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        help="Write to this .csv, .parquet or .jsonl file; - for CSV on standard output.",
    ),
]


@with_file_options
def predict(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    data: Data,
    output: Output = STANDARD_INPUT,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Also write the probability of every class.")
    ] = False,
    *,
    file: UnlabelledOptions,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Predict labels and probabilities.

    For each row the output has its number, counted from 1, the predicted label, and the probability
    of that label; with --id the identifier of the row in front. Rows with missing values are
    predicted too. For a data set, its test part is used.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel predict digits.model digits -o labels.csv
    """
    with report_errors(verbose=verbose):
        check_output(output, model, data)
        estimator, table = load_model_and_data(model, data, file, quiet=quiet, labels=False)
        with row_bar("classifying", len(table.X), quiet=quiet) as on_rows:
            labels, shares = predict_all(estimator, table.X, on_rows)
        columns = result_columns(
            table, labels, shares, estimator.classes_, every_class=probabilities
        )
        write_columns(columns, output)


def load_model_and_data(
    model: Path, data: str, file: FileOptions, *, quiet: bool, labels: bool
) -> tuple[Any, Table]:
    """Load a model, and read the columns of its features."""
    from kmeans_kernel.export.model_file import load_with_notation

    estimator, notation = load_with_notation(model_path(model))
    kinds = kinds_of(estimator)
    table = read(
        data,
        "test",
        file,
        quiet=quiet,
        trained=trained_notation(estimator, notation, file.target),
        labels=labels,
        features=None if kinds is None else list(kinds),
        types=kinds,
        n_features=int(estimator.n_features_in_),
    )
    check_matches_model(estimator, table, data)
    if kinds is not None and isinstance(table.X, np.ndarray):
        names = list(kinds)
        shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
        warn(f"{data} has no column names; its columns are taken in the order {shown}.")
    if not quiet:
        for told in unknown_levels(columns_of(estimator), table.X):
            note(told)
    return estimator, cut_like(table, estimator.classes_)


def check_matches_model(estimator: Any, table: Table, data: str) -> None:
    """Raise if the data do not match the training data of the model in kind or width."""
    from kmeans_kernel.report._inspection import sees_images

    if table.are_images and not sees_images(estimator):
        raise ValueError(
            f"{data} contains images, and the model was trained on a table; use a table."
        )
    width = int(np.prod(table.X.shape[1:]))
    if width != estimator.n_features_in_:
        raise ValueError(
            f"{data} has {width} features per row, and the model was trained on "
            f"{estimator.n_features_in_}; use the same features."
        )


def model_path(model: Path) -> Path:
    """Return the path of a model; - means standard input."""
    return Path("/dev/stdin") if str(model) == STANDARD_INPUT else model


def check_output(output: str, *inputs: str | Path) -> None:
    """Raise early if the output cannot be written, or would overwrite an input."""
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
    *,
    every_class: bool,
) -> dict[str, Any]:
    """Return the output columns: identifier if any, row number, labels, and probabilities."""
    columns: dict[str, Any] = {"row": table.rows + 1}
    if table.y is not None:
        columns["true_label"] = table.y
    columns |= {"label": labels, "probability": shares.max(axis=1)}
    if every_class:
        columns |= {f"p_{label}": shares[:, k] for k, label in enumerate(classes)}
    return with_identifiers(columns, table.ids)


def with_identifiers(columns: dict[str, Any], ids: Any) -> dict[str, Any]:
    """Return output columns with the identifiers of the rows in front, if there are any."""
    if ids is None:
        return columns
    return {"id" if ids.name in columns else ids.name: ids, **columns}


def write_columns(columns: dict[str, Any], output: str) -> None:
    """Write columns in the format of the output's suffix; a file is written atomically."""
    import polars as pl

    frame = pl.DataFrame({name: _column(name, values) for name, values in columns.items()})
    if output == STANDARD_INPUT:
        sys.stdout.write(frame.write_csv())
        sys.stdout.flush()
        return
    check_output(output)
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


def _column(name: str, values: Any) -> Any:
    """Return a column as it is written: probabilities with six digits, labels as they are."""
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind == "O":
        return values.astype(str)
    is_share = values.dtype.kind == "f" and name not in ("label", "true_label")
    return np.round(values, 6) if is_share else values
