"""Reading of frames: pandas, polars, Arrow and arrays of objects, column by column.

No package is imported for it: a frame that is passed in has brought its package along.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array

# "missing" has no value from which a type could be told.
RawType: TypeAlias = Literal["number", "boolean", "category", "date", "missing"]


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column as it was read.

    Attributes
    ----------
    name : the name
    type : what the values are
    values : (n,) float64 with NaN for numbers, and for dates, in seconds since 1970; else objects
        (text, booleans, numbers) with None where a value is missing
    """

    name: str
    type: RawType
    values: npt.NDArray[Any]


def package_of(X: Any) -> str:
    """Return the name of the package that defines the type of X."""
    return type(X).__module__.partition(".")[0]


def is_frame(X: Any) -> bool:
    """Return whether X is a frame of pandas, polars or Arrow."""
    return package_of(X) in _READERS and hasattr(X, "columns") and getattr(X, "ndim", 2) == 2


def read_columns(X: Any) -> list[RawColumn]:
    """Return the columns of a frame or of a two-dimensional array of objects."""
    reader = _READERS.get(package_of(X))
    if reader is not None and is_frame(X):
        return reader(X)
    return [_of_objects(f"x{j}", X[:, j].tolist()) for j in range(X.shape[1])]


def holds_numbers_only(X: Any) -> bool:
    """Return whether every column of a frame has a type of numbers, as floats and integers are."""
    if package_of(X) == "polars":
        return all(dtype.is_numeric() for dtype in X.dtypes)
    if package_of(X) == "pyarrow":
        types = sys.modules["pyarrow"].types
        return all(types.is_integer(f.type) or types.is_floating(f.type) for f in X.schema)
    return all(getattr(dtype, "kind", "O") in "iuf" for dtype in X.dtypes)


def _of_pandas(X: Any) -> list[RawColumn]:
    return [_of_series(str(name), X.iloc[:, j]) for j, name in enumerate(X.columns)]


def _of_series(name: str, series: Any) -> RawColumn:
    """Read a column of pandas by its type."""
    dtype = series.dtype
    if hasattr(series, "cat"):
        levels = [*_plain(series.cat.categories.tolist()), None]
        return RawColumn(name, "category", _objects(levels)[series.cat.codes.to_numpy()])
    kind = getattr(dtype, "kind", "O")
    if kind in "iuf":
        return RawColumn(name, "number", series.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "b" and not series.hasnans:
        return RawColumn(name, "boolean", series.to_numpy(dtype=object))
    if kind == "M":
        naive = series.dt.tz_convert("UTC").dt.tz_localize(None) if series.dt.tz else series
        return RawColumn(name, "date", _seconds(naive.to_numpy(dtype="datetime64[us]")))
    if kind == "m":
        return RawColumn(name, "number", series.dt.total_seconds().to_numpy(dtype=np.float64))
    return _of_objects(name, series.astype(object).tolist())


def _of_polars(X: Any) -> list[RawColumn]:
    return [_of_polars_series(column) for column in X.get_columns()]


def _of_polars_series(column: Any) -> RawColumn:
    """Read a column of polars by its type."""
    polars, dtype, name = sys.modules["polars"], column.dtype, column.name
    if dtype.is_numeric():
        return RawColumn(name, "number", column.cast(polars.Float64).to_numpy().astype(np.float64))
    if dtype == polars.Duration:
        return RawColumn(name, "number", column.dt.total_microseconds().to_numpy() / 1e6)
    if dtype == polars.Date or dtype == polars.Datetime:
        micros = column.cast(polars.Datetime("us")).to_numpy()
        return RawColumn(name, "date", _seconds(micros.astype("datetime64[us]")))
    found = _of_objects(name, column.to_list())
    categorical = dtype in (polars.Categorical, polars.Enum) and found.type != "missing"
    return RawColumn(name, "category", found.values) if categorical else found


def _of_arrow(X: Any) -> list[RawColumn]:
    return [_of_arrow_column(f.name, f.type, X.column(j)) for j, f in enumerate(X.schema)]


def _of_arrow_column(name: str, dtype: Any, column: Any) -> RawColumn:
    """Read a column of an Arrow table or batch by its type."""
    arrow = sys.modules["pyarrow"]
    types = arrow.types
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        numbers = column.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        return RawColumn(name, "number", np.asarray(numbers, dtype=np.float64))
    if types.is_date(dtype) or types.is_timestamp(dtype):
        micros = column.cast(arrow.timestamp("us", getattr(dtype, "tz", None)), safe=False)
        plain = micros.cast(arrow.timestamp("us")).to_numpy(zero_copy_only=False)
        return RawColumn(name, "date", _seconds(plain.astype("datetime64[us]")))
    found = _of_objects(name, column.to_pylist())
    categorical = types.is_dictionary(dtype) and found.type != "missing"
    return RawColumn(name, "category", found.values) if categorical else found


_READERS: dict[str, Callable[[Any], list[RawColumn]]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
}


def _of_objects(name: str, values: Sequence[Any]) -> RawColumn:
    """Read a column of Python objects by the types of those that are not missing."""
    plain = _plain(values)
    kinds = {type(value) for value in plain} - {type(None)}
    if not kinds:
        return RawColumn(name, "missing", _objects(plain))
    if kinds == {bool}:
        return RawColumn(name, "boolean", _objects(plain))
    if bool not in kinds and all(issubclass(kind, Real | Decimal) for kind in kinds):
        numbers = [np.nan if value is None else float(value) for value in plain]
        return RawColumn(name, "number", np.array(numbers))
    if all(issubclass(kind, date | np.datetime64) for kind in kinds):
        return RawColumn(name, "date", np.array([second(value) for value in plain]))
    strange = [kind for kind in kinds if not issubclass(kind, str | Real | Decimal | date)]
    if strange:
        raise TypeError(
            f"Column {name!r} holds a value of type {strange[0].__name__}; an entry of a table "
            "must be a string or a number, a boolean or a date. Convert the column, or leave it "
            "out."
        )
    return RawColumn(name, "category", _objects([v if v is None else str(v) for v in plain]))


def _plain(values: Sequence[Any]) -> list[Any]:
    """Return Python's own types, and None for None, NaN, NaT and pandas.NA."""
    return [
        value
        if type(value) is str
        else None
        if _is_missing(value)
        else value.item()
        if isinstance(value, np.generic) and not isinstance(value, np.datetime64)
        else value
        for value in values
    ]


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA is neither equal nor different
        return True
    except ValueError:  # an array
        return False


def second(value: Any) -> float:
    """Return a date or a time in seconds since 1970, NaN for None; a time without zone is UTC."""
    if value is None:
        return np.nan
    if isinstance(value, np.datetime64):
        return float(_seconds(np.array([value], dtype="datetime64[us]"))[0])
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return float(zoned.timestamp())


def _seconds(micros: npt.NDArray[Any]) -> Array:
    """Return times in seconds since 1970, NaN for NaT."""
    return np.where(np.isnat(micros), np.nan, micros.astype(np.int64) / 1e6)


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
