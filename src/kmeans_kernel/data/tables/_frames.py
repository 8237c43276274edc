"""Conversion of polars frames to tables: feature columns as float64, and labels."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.data.tables._table import (
    DataFileError,
    Table,
    complete_rows,
    first_line,
    labels_from_array,
    labels_from_text,
    quoted_list,
)


def read_parquet(content: bytes, name: str) -> Any:
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataFileError(f"{name} could not be read as parquet: {first_line(error)}") from error
    if len(frame) == 0:
        raise DataFileError(f"{name} has columns and no rows.")
    return frame


def table_from_frame(
    frame: Any,
    name: str,
    *,
    target: str | None,
    labels: bool | None,
    features: Sequence[str] | None,
    drop: Sequence[str],
    drop_missing: bool,
) -> Table:
    """Return the features and labels of a frame; see `read_table` for the options."""
    if labels and target is None:
        raise DataFileError(
            f"say which column of {name} holds the labels, with --target; its columns are "
            f"{quoted_list(frame.columns)}."
        )
    if labels is False:
        drop = [*drop, *(column for column in frame.columns if column == target)]
        target = None
    chosen = _feature_columns(frame.columns, name, target, features, drop)
    X = frame.select(_to_float64(frame[column], name) for column in chosen)
    unlabelled = np.zeros(len(X), dtype=bool) if target is None else _is_missing(frame[target])
    rows = complete_rows(
        X.to_numpy(),
        unlabelled,
        name,
        lambda feature: f"column {chosen[feature]!r}",
        f"column {target!r}",
        drop_missing=drop_missing,
    )
    y = None if target is None else labels_from_column(frame[target].gather(rows), name)
    return Table(X[rows], y, rows, len(X) - len(rows))


def _feature_columns(
    columns: Sequence[str],
    name: str,
    target: str | None,
    features: Sequence[str] | None,
    drop: Sequence[str],
) -> Sequence[str]:
    """Return the names of the feature columns: `features`, else all but target and dropped ones."""
    named = [column for column in (target, *drop) if column is not None]
    absent = [column for column in (*named, *(features or ())) if column not in columns]
    if absent:
        raise DataFileError(
            f"{name} has no column {absent[0]!r}; its columns are {quoted_list(columns)}."
        )
    if features is not None:
        needed = [column for column in named if column in features]
        if needed:
            raise DataFileError(
                f"the model needs the column {needed[0]!r} as a feature; it can be neither left "
                "out nor the target."
            )
        return features
    chosen = [column for column in columns if column not in named]
    nameless = [column for column in chosen if re.fullmatch(r"unnamed_\d+", column)]
    if nameless:
        raise DataFileError(
            f"column {nameless[0].removeprefix('unnamed_')} of {name} has no name; if it is no "
            f"feature, such as a row number, leave it out with --drop {nameless[0]}, else give it "
            "a name."
        )
    if not chosen:
        raise DataFileError(f"{name} has no column of features beside {quoted_list(named)}.")
    return chosen


def _to_float64(column: Any, name: str) -> Any:
    """Return a column as float64 with nulls for NaN; raise `DataFileError` if it is not numeric.

    Text that reads as numbers, or as true and false, is converted.
    """
    import polars as pl

    kind = column.dtype
    if column.null_count() == len(column):
        return column.cast(pl.Float64, strict=False)
    if kind in (pl.String, pl.Categorical, pl.Enum):
        text = column.cast(pl.String)
        lowered = text.str.to_lowercase()
        if lowered.drop_nulls().is_in(["true", "false"]).all():
            return (lowered == "true").cast(pl.Float64).alias(column.name)
        numbers = text.cast(pl.Float64, strict=False)
        wrong = (numbers.is_null() & text.is_not_null()).arg_true()
        if len(wrong):
            raise DataFileError(_text_message(column.name, name, text[wrong[0]], wrong[0]))
        return numbers.fill_nan(None)
    if not (kind.is_numeric() or kind == pl.Boolean):
        raise DataFileError(
            f"the column {column.name!r} of {name} holds {str(kind).split('(')[0].lower()}, not "
            f"numbers; encode it as numbers first, or leave it out with --drop {column.name!r}."
        )
    return column.cast(pl.Float64).fill_nan(None)


def _text_message(column: str, name: str, value: str, row: int) -> str:
    problem = f"the column {column!r} of {name} holds text, {value!r} in data row {row + 1}"
    if re.fullmatch(r"-?\d+,\d+", value):  # decimal comma
        return f"{problem}; write numbers with a point."
    return f"{problem}; encode it as numbers first, or leave it out with --drop {column!r}."


def _is_missing(column: Any) -> npt.NDArray[np.bool_]:
    missing = column.is_null()
    if column.dtype.is_float():
        missing = missing | column.is_nan().fill_null(True)
    return np.asarray(missing.to_numpy())


def labels_from_column(column: Any, name: str) -> npt.NDArray[Any]:
    """Return a label column as booleans, as integers if all labels are integers, else as text."""
    import polars as pl

    kind = column.dtype
    if kind == pl.Boolean:
        return np.asarray(column.to_numpy())
    if kind.is_nested() or kind == pl.Binary:
        raise DataFileError(
            f"the column {column.name!r} of {name} is {str(kind).split('(')[0].lower()}, which is "
            "no label."
        )
    if kind.is_float():
        return labels_from_array(column.to_numpy(), name)
    text = column.cast(pl.String)
    return labels_from_text(np.array(text.to_list(), dtype=str))
