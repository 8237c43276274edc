"""Rows of a table: which input is read column by column, and how it becomes numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    _num_features,
)

from kmeans_kernel.core.arrays.encoding import ColumnEncoding
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
from kmeans_kernel.estimators.columns._values import objects
from kmeans_kernel.utils.validation import check_collected, check_finite


def as_table(X: Any, column_types: Mapping[Any, str] | None = None) -> Any:
    """Return X, or an array of objects made of it, if it is to be read column by column.

    None is returned for rows of numbers alone, which need no reading, and for all that is no table:
    sparse and lazy rows, blocks. With `column_types` any table is read column by column.
    """
    if column_types is None and _holds_numbers_only(X):
        return None
    found = as_columns(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "UT" and found is not None:
        return _with_numbers(found, X, column_types)
    return found


def as_columns(X: Any) -> Any:
    """Return a frame as it is, other tables as an array of objects; None for what is no table."""
    check_collected(X)
    if is_frame(X):
        return X
    if isinstance(X, LazyRows) or is_sparse(X) or hasattr(X, "toarray"):
        return None
    found = _array_of(X)
    if found is None or found.ndim != 2:
        return None
    if isinstance(X, list | tuple):  # NumPy would make one type of its numbers and booleans
        return np.array(X, dtype=object)
    if found.dtype.kind in "mM":  # with nanoseconds NumPy would make integers of them
        return objects([*found.ravel()]).reshape(found.shape)
    return found.astype(object, copy=False)


def _array_of(X: Any) -> npt.NDArray[Any] | None:
    """Return rows as an array, of objects if a list does not read as numbers."""
    if isinstance(X, np.ndarray):
        return X
    if not isinstance(X, list | tuple):
        return None
    try:
        found = np.asarray(X)
        return np.array(X, dtype=object) if found.dtype.kind in "OUTb" else found
    except ValueError:  # rows of different lengths
        return None


def _holds_numbers_only(X: Any) -> bool:
    check_collected(X)
    if is_frame(X):
        return X.shape[1] > 0 and holds_numbers_only(X)
    found = _array_of(X)
    if found is None or found.ndim != 2:
        return False
    if found.dtype.kind not in "OUT":
        return found.dtype.kind not in "mM"
    if found.dtype.kind == "O" and any(isinstance(one, bool | str) for one in found[:1].ravel()):
        return False
    return _reads_as_numbers(found)


def _reads_as_numbers(values: npt.NDArray[Any]) -> bool:
    try:
        values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _with_numbers(
    found: npt.NDArray[Any], texts: npt.NDArray[Any], column_types: Mapping[Any, str] | None
) -> npt.NDArray[Any]:
    """Return text as objects, with numbers in the columns that read as numbers.

    Categories stay text: a number would lose leading zeros and digits beyond the sixteenth.
    """
    types = _by_name(column_types, texts) if isinstance(column_types, Mapping) else {}
    for j in range(texts.shape[1]):
        if types.get(f"x{j}") != "category" and _reads_as_numbers(texts[:, j]):
            found[:, j] = texts[:, j].astype(np.float64)
    return found


def _by_name(column_types: Any, X: Any) -> Any:
    """Return types by the names of columns as text; an integer is a position in an array."""
    if not isinstance(column_types, Mapping):
        return column_types
    prefix = "" if is_frame(X) else "x"
    return {
        key if isinstance(key, str) else f"{prefix}{key}": kind
        for key, kind in column_types.items()
    }


def learn_table(
    owner: Any, X: Any, column_types: Mapping[Any, str] | None, sample_weight: Any = None
) -> tuple[tuple[Column, ...], Array]:
    """Return the columns of a table and its numbers; set the names and the number of features."""
    _check_not_empty(owner, X)
    types = _by_name(column_types, X)
    given = types.items() if isinstance(types, Mapping) else ()
    unread = [name for name, kind in given if kind == "drop"]
    raws = _raws(owner, X, reset=True, dropped=unread)
    weights = None
    if sample_weight is not None and np.ndim(sample_weight) == 1:
        weights = _check_sample_weight(
            sample_weight, raws[0].values, dtype=np.float64, ensure_non_negative=True
        )
    columns = learn_columns(raws, types, type(owner).__name__, weights)
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
    dropped = [column.name for column in columns if column.kind == "dropped"]
    return _coded(owner, columns, _raws(owner, found, reset=False, dropped=dropped))


def _raws(owner: Any, X: Any, *, reset: bool, dropped: Sequence[str]) -> list[RawColumn]:
    refuse_repeated_names(owner, X)
    _check_feature_names(owner, X, reset=reset)
    _check_n_features(owner, X, reset=reset)
    return read_columns(X, dropped)


def refuse_repeated_names(owner: Any, X: Any) -> None:
    """Raise ValueError for a frame with several columns of one name."""
    check_collected(X)
    if not is_frame(X):
        return
    names = getattr(X, "column_names", None) or list(X.columns)
    twice = [repr(name) for name, count in Counter(map(str, names)).items() if count > 1]
    if twice:
        raise ValueError(
            f"X must have columns of different names for {type(owner).__name__}, got several of "
            f"{', '.join(twice[:8])}. Rename them, or leave all but one out."
        )


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
    coded = code_columns(columns, raws, _declared(owner))
    names = [name for column in columns for name in column.code_names]
    check_finite(type(owner).__name__, coded, names, allow_nan=True)
    return coded


def _declared(owner: Any) -> set[str]:
    """Return the names of columns whose type the user gave."""
    keys = owner.column_types if isinstance(owner.column_types, Mapping) else ()
    return {*map(str, keys), *(f"x{key}" for key in keys if isinstance(key, int))}


def plain_columns(estimator: Any, encoding: ColumnEncoding | None = None) -> tuple[Column, ...]:
    """Return the columns of an estimator that was fitted to rows of numbers.

    The encoding knows in which columns values were missing.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = [f"x{j}" for j in range(estimator.n_features_in_)]
    missing = set() if encoding is None else set(encoding.missing_columns.tolist())
    return tuple(Column(str(name), "number", missing=j in missing) for j, name in enumerate(names))


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
