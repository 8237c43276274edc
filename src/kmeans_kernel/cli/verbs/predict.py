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
    Drop,
    DropMissing,
    FormatOption,
    ZeroBased,
    read,
    read_options,
)  # fmt: skip
from kmeans_kernel.cli._output import Quiet, Verbose, report_errors, row_bar, warn
from kmeans_kernel.data.tables import STANDARD_INPUT, Table
from kmeans_kernel.report._evaluation import predict_all
from kmeans_kernel.utils.files import check_writable, write_whole

SUFFIXES = (".csv", ".parquet", ".jsonl")


def predict(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    data: Data,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Write the predictions to this .csv, .parquet or .jsonl file; - for CSV on "
            "standard output.",
        ),
    ] = STANDARD_INPUT,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Also write the probability of every class.")
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", help="Name of a column or array of labels, which is ignored."
        ),
    ] = None,
    file_format: FormatOption = None,
    drop: Drop = [],  # noqa: B006
    drop_missing: DropMissing = False,
    zero_based: ZeroBased = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Predict labels and probabilities.

    For each row the output has its number, counted from 1, the predicted label, and the probability
    of that label. For a data set, its test part is used.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel predict digits.model digits -o labels.csv
    """
    with report_errors(verbose=verbose):
        check_output(output, model, data)
        how = read_options(target, file_format, drop, drop_missing, zero_based)
        estimator, table = load_model_and_data(model, data, how, quiet=quiet, labels=False)
        with row_bar("classifying", len(table.X), quiet=quiet) as on_rows:
            labels, shares = predict_all(estimator, table.X, on_rows)
        columns = result_columns(table, labels, shares, estimator.classes_, probabilities)
        write_columns(columns, output)


def load_model_and_data(
    model: Path, data: str, how: dict[str, Any], *, quiet: bool, labels: bool
) -> tuple[Any, Table]:
    """Load a model, and read the columns of its features."""
    from kmeans_kernel.export.model_file import load_model

    estimator = load_model(model_path(model))
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
    check_matches_model(estimator, table, data)
    if names is not None and isinstance(table.X, np.ndarray):
        shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
        warn(f"{data} has no column names; its columns are taken in the order {shown}.")
    return estimator, table


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
    every_class: bool,
) -> dict[str, npt.NDArray[Any]]:
    """Return the output columns: row number, predicted label, and probabilities."""
    columns = {"row": table.rows + 1, "label": labels, "probability": shares.max(axis=1)}
    if every_class:
        columns |= {f"p_{label}": shares[:, k] for k, label in enumerate(classes)}
    return columns


def write_columns(columns: dict[str, npt.NDArray[Any]], output: str) -> None:
    """Write columns in the format of the output's suffix; a file is written atomically."""
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
