"""Rows of a table in a page: cells, representatives, and fields of the form.

A cell is a number. For a category it is the position of its level, the number of levels or −1 for
any other value; for a date it is in seconds since 1970. It is NaN for a missing value, and in
columns that are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators.columns._columns import Column, as_seconds
from kmeans_kernel.estimators.columns._encoder import TableEncoder
from kmeans_kernel.estimators.columns._frames import RawColumn, is_frame, read_columns
from kmeans_kernel.estimators.columns._table import as_columns
from kmeans_kernel.estimators.transformers._agop_projection import AGOPProjection
from kmeans_kernel.report._inspection import classifier_of

_DAY, _MINUTE = 86_400.0, 60.0

# Approximate number of positions of a slider.
_SLIDER_STEPS = 200

# `Column.decimals` stops at this number, as for a column of very small numbers.
_MOST_DECIMALS = 6


def columns_of(estimator: Any) -> tuple[Column, ...]:
    """Return the columns that an estimator takes: those of its table, else plain numbers."""
    if not takes_plain_numbers(estimator):
        found: tuple[Column, ...] = _steps_of(estimator)[0].columns_
        return found
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = [f"feature {j + 1}" for j in range(int(estimator.n_features_in_))]
    return tuple(Column(str(name), "number") for name in names)


def takes_plain_numbers(estimator: Any) -> bool:
    """Return whether the rows of an estimator are numbers, and not values of columns."""
    return getattr(_steps_of(estimator)[0], "_columns", None) is None


def takes_missing(estimator: Any) -> bool:
    """Return whether a number may be missing in a row that is classified."""
    *before, last = _steps_of(estimator)
    for step in before:
        if isinstance(step, TableEncoder):
            return True
        if not isinstance(step, StandardScaler):
            return False
    return classifier_of(last).model_.sphere_map.feature_transform is not None


def _steps_of(estimator: Any) -> list[Any]:
    """Return the transformers of an estimator, and its classifier."""
    if not isinstance(estimator, Pipeline):
        return [estimator]
    steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
    return [one for step in steps for one in _steps_of(step)]


def cells_of(columns: Sequence[Column], X: Any) -> Array:
    """Return the (n, n_columns) cells of a table that the estimator can classify."""
    plain = all(column.kind == "number" for column in columns)
    if plain and not is_frame(X) and np.asarray(X).dtype.kind not in "OUT":
        return np.asarray(X, dtype=np.float64).reshape(len(X), -1)
    raws = read_columns(as_columns(X))
    found = [_cells(column, raw) for column, raw in zip(columns, raws, strict=True)]
    return np.column_stack(found)


def _cells(column: Column, raw: RawColumn) -> Array:
    if column.kind == "dropped" or raw.type == "missing":
        return np.full(len(raw.values), np.nan)
    return as_seconds(raw) if column.kind == "date" else column.code(raw)[:, 0]


def representative_cells(estimator: Any, columns: Sequence[Column]) -> Array:
    """Return the (m, n_columns) cells of the representatives."""
    rows = rows_before_steps(estimator)
    if takes_plain_numbers(estimator):
        return rows
    found, start = [], 0
    for column in columns:
        stop = start + len(column.n_levels)
        found.append(_cells_of_codes(column, rows[:, start:stop]))
        start = stop
    return np.column_stack(found)


def rows_before_steps(estimator: Any) -> Array:
    """Return the (m, d) numbers of the representatives, the steps before the classifier inverted.

    They are in the units of the input, or numbers of the columns of a table.
    """
    rows: Array = classifier_of(estimator).model_.representatives
    for step in reversed(_steps_of(estimator)[:-1]):
        if isinstance(step, StandardScaler):
            rows = step.inverse_transform(rows)
        elif isinstance(step, AGOPProjection):
            rows = rows @ np.linalg.pinv(step.components_)
        elif isinstance(step, TableEncoder):
            rows = step._encoding.invert(rows)
    return rows


def _cells_of_codes(column: Column, codes: Array) -> Array:
    """Return the cells that the numbers of a column stand for, rounded as its values are."""
    if column.kind == "dropped":
        return np.full(len(codes), np.nan)
    if column.kind == "date":
        return _seconds_of(column, codes)
    if column.decimals is None or column.decimals >= _MOST_DECIMALS:
        return codes[:, 0]
    return np.round(codes[:, 0], column.decimals)


def _seconds_of(column: Column, codes: Array) -> Array:
    """Return dates in seconds since 1970, to the minute, or to the day if the hour never varied."""
    days = codes[:, 0]
    if "hour" in column.parts:
        hours = codes[:, column.parts.index("hour")]
        return np.floor(days) * _DAY + np.round(hours * 3600 / _MINUTE) * _MINUTE
    hour = (column.minimum or 0.0) % _DAY
    return np.round(days - hour / _DAY) * _DAY + hour


def form_fields(
    columns: Sequence[Column], rows: npt.NDArray[Any], typical: npt.NDArray[Any] | None = None
) -> list[dict[str, Any]]:
    """Return the fields of the form: name, kind, range and typical value of each column.

    Parameters
    ----------
    columns : of the rows that the estimator takes
    rows : (n, n_columns) cells, from which ranges of plain numbers are taken
    typical : (n_columns,) cells with which the form starts; None for the median of each column
    """
    found = []
    for j, column in enumerate(columns):
        known = rows[:, j].astype(np.float64)
        known = known[~np.isnan(known)]
        field = {"name": column.name, "kind": column.kind, **_range_of(column, known)}
        start = _middle(known, field["step"]) if typical is None else float(typical[j])
        found.append({**field, "typical": start if np.isfinite(start) else None})
    return found


def _range_of(column: Column, known: Array) -> dict[str, Any]:
    """Return the range of a column of dates or of numbers; what was trained on, where known."""
    if column.kind == "date":
        return {"low": column.minimum, "high": column.maximum, "parts": column.parts}
    if column.kind != "number":
        return {}
    if column.minimum is not None and column.maximum is not None:
        known = np.array([column.minimum, column.maximum])
    whole = bool((known == np.rint(known)).all()) and not column.decimals
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    if low == high:
        low, high = low - 1, high + 1
    step = 1.0 if whole else float(10 ** np.floor(np.log10((high - low) / _SLIDER_STEPS)))
    rounded = column.decimals is not None and column.decimals < _MOST_DECIMALS
    return {
        "low": _strip_rounding_error(np.floor(low / step) * step),
        "high": _strip_rounding_error(np.ceil(high / step) * step),
        "step": step,
        # Significant digits that resolve about 1e-4 of the range.
        "digits": int(np.clip(np.ceil(np.log10(max(-low, high) / (high - low))) + 4, 4, 15)),
        "decimals": column.decimals if rounded else None,
    }


def _middle(known: Array, step: float) -> float:
    """Return the median, rounded to a step of the slider."""
    middle = float(np.median(known)) if len(known) else 0.0
    return _strip_rounding_error(round(middle / step) * step)


def _strip_rounding_error(value: float) -> float:
    """Round to 15 significant digits, which removes the rounding error of multiples of a step."""
    return float(f"{value:.15g}")
