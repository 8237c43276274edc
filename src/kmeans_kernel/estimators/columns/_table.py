"""Rows of a table: which input is read column by column, and how it becomes numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features, _num_features

from kmeans_kernel.core.arrays.lazy import LazyRows
from kmeans_kernel.core.arrays.matrices import Array, is_sparse
from kmeans_kernel.estimators.columns._columns import Column, Level, code_columns
from kmeans_kernel.estimators.columns._frames import (
    RawColumn,
    holds_numbers_only,
    is_frame,
    read_columns,
)
from kmeans_kernel.estimators.columns._learning import learn_columns
from kmeans_kernel.utils.validation import check_finite


def as_table(X: Any, column_types: Mapping[str, str] | None = None) -> Any:
    """Return X, or an array of objects made of it, if it is to be read column by column.

    None is returned for rows of numbers alone, which need no reading, and for all that is no table:
    sparse and lazy rows, blocks. With `column_types` any table is read column by column.
    """
    found = as_columns(X)
    if found is None or column_types is not None:
        return found
    if is_frame(found):
        return None if holds_numbers_only(found) else found
    numbers = getattr(X, "dtype", found.dtype).kind not in "OUT" or _reads_as_numbers(found)
    return None if numbers else found


def as_columns(X: Any) -> Any:
    """Return a frame as it is, other tables as an array of objects; None for what is no table."""
    if is_frame(X):
        return X
    if isinstance(X, LazyRows) or is_sparse(X) or hasattr(X, "toarray"):
        return None
    if isinstance(X, list | tuple):
        X = _array_of(X)
    return _typed(X) if isinstance(X, np.ndarray) and X.ndim == 2 else None


def _array_of(rows: Any) -> Any:
    """Return rows as an array of objects if they hold anything but numbers."""
    try:
        found = np.asarray(rows)
        return np.array(rows, dtype=object) if found.dtype.kind in "OUT" else found
    except ValueError:  # rows of different lengths
        return rows


def _reads_as_numbers(X: Any) -> bool:
    if X.dtype.kind == "O" and any(isinstance(value, bool | str) for value in X[:1].ravel()):
        return False
    try:
        X.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _typed(X: Any) -> Any:
    """Return an array of text as objects, with numbers in the columns that read as numbers."""
    if X.dtype.kind == "O":
        return X
    found = X.astype(object)
    if X.dtype.kind not in "UT":
        return found
    for j in range(X.shape[1]):
        try:
            found[:, j] = X[:, j].astype(np.float64)
        except ValueError:
            continue
    return found


def learn_table(
    owner: Any, X: Any, column_types: Mapping[str, str] | None
) -> tuple[tuple[Column, ...], Array]:
    """Return the columns of a table and its numbers; set the names and the number of features."""
    _check_not_empty(owner, X)
    raws = _raws(owner, X, reset=True)
    columns = learn_columns(raws, column_types, type(owner).__name__)
    return columns, _coded(owner, columns, raws)


def code_table(owner: Any, columns: Sequence[Column], X: Any) -> Array:
    """Return the numbers of another table with the same columns."""
    found = as_columns(X)
    if found is None:
        raise ValueError(
            f"{type(owner).__name__} was trained on a table of columns, got "
            f"{type(X).__name__}. Give a frame or an array with the same columns."
        )
    _check_not_empty(owner, found)
    return _coded(owner, columns, _raws(owner, found, reset=False))


def _raws(owner: Any, X: Any, *, reset: bool) -> list[RawColumn]:
    _check_feature_names(owner, X, reset=reset)
    _check_n_features(owner, X, reset=reset)
    return read_columns(X)


def _check_not_empty(owner: Any, X: Any) -> None:
    if len(X) == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required by "
            f"{type(owner).__name__}."
        )
    if _num_features(X) == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required by "
            f"{type(owner).__name__}."
        )


def _coded(owner: Any, columns: Sequence[Column], raws: Sequence[RawColumn]) -> Array:
    coded = code_columns(columns, raws)
    names = [name for column in columns for name in column.code_names]
    check_finite(type(owner).__name__, coded, names, allow_nan=True)
    return coded


def plain_columns(estimator: Any) -> tuple[Column, ...]:
    """Return the columns of an estimator that was fitted to rows of numbers."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = [f"x{j}" for j in range(estimator.n_features_in_)]
    return tuple(Column(str(name), "number") for name in names)


def rows_as_values(columns: Sequence[Column], coded: Array) -> Any:
    """Return the (n, n_columns) values that numbers stand for, as objects; None if missing."""
    ends = np.cumsum([len(column.n_levels) for column in columns])
    found = np.empty((len(coded), len(columns)), dtype=object)
    for i, row in enumerate(coded):
        parts = np.split(row, ends[:-1])
        for j, (column, part) in enumerate(zip(columns, parts, strict=True)):
            value: Level | None = column.value(part)
            found[i, j] = value
    return found
