"""Reading of frames: pandas, polars, Arrow and arrays of objects, column by column.

No package is imported for it: a frame that is passed in has brought its package along.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators.columns._values import (
    LARGEST_EXACT,
    level_text,
    objects,
    plain,
    second,
    seconds_of,
)

# Most columns that an error tells of.
_MOST_TOLD = 12

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
    exact : (n,) numbers as they came, None where one is missing, if float64 would mix up whole
        numbers among them
    """

    name: str
    type: RawType
    values: npt.NDArray[Any]
    exact: npt.NDArray[Any] | None = None

    def at(self, rows: npt.NDArray[Any]) -> RawColumn:
        """Return some rows of the column."""
        values = self.values[rows]
        absent = self.type != "missing" and all(one is None or one != one for one in values)
        exact = None if self.exact is None else self.exact[rows]
        return RawColumn(self.name, "missing" if absent else self.type, values, exact)


# The name of a column, and a function that reads it.
Unread: TypeAlias = tuple[str, Callable[[], RawColumn]]


def package_of(X: Any) -> str:
    """Return the package of frames that defines the type of X or a base of it, else ""."""
    packages = (kind.__module__.partition(".")[0] for kind in type(X).__mro__)
    return next((package for package in packages if package in _READERS), "")


def is_frame(X: Any) -> bool:
    """Return whether X is a frame of pandas, polars or Arrow."""
    return package_of(X) in _READERS and hasattr(X, "columns") and getattr(X, "ndim", 2) == 2


def read_columns(X: Any, dropped: Collection[str] = ()) -> list[RawColumn]:
    """Return the columns of a frame or of a two-dimensional array of objects.

    Columns that are `dropped` are not read. TypeError or ValueError names all columns that cannot
    be read.
    """
    reader = _READERS.get(package_of(X))
    columns = reader(X) if reader is not None and is_frame(X) else _of_array(X)
    found: list[RawColumn] = []
    wrong: list[TypeError | ValueError] = []
    for name, read in columns:
        try:
            unread = RawColumn(name, "missing", objects([None] * len(X)))
            found.append(unread if name in dropped else read())
        except (TypeError, ValueError) as error:
            wrong.append(error)
    if wrong:
        raise type(wrong[0])(" ".join(dict.fromkeys(map(str, wrong[:_MOST_TOLD]))))
    return found


def _of_array(X: npt.NDArray[Any]) -> list[Unread]:
    return [(f"x{j}", partial(_of_objects, f"x{j}", X[:, j].tolist())) for j in range(X.shape[1])]


def holds_numbers_only(X: Any) -> bool:
    """Return whether every column of a frame has a type of numbers, as floats and integers are."""
    if package_of(X) == "polars":
        return all(dtype.is_numeric() for dtype in X.dtypes)
    if package_of(X) == "pyarrow":
        types = sys.modules["pyarrow"].types
        return all(types.is_integer(f.type) or types.is_floating(f.type) for f in X.schema)
    return all(getattr(dtype, "kind", "O") in "iuf" for dtype in X.dtypes)


def _of_pandas(X: Any) -> list[Unread]:
    return [
        (str(name), partial(_of_series, str(name), X.iloc[:, j]))
        for j, name in enumerate(X.columns)
    ]


def _of_series(name: str, series: Any) -> RawColumn:
    """Read a column of pandas by its type."""
    dtype = series.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow_column(name, dtype.pyarrow_dtype, series.array.__arrow_array__())
    if hasattr(series, "cat"):
        levels = [*plain(series.cat.categories.tolist()), None]
        return RawColumn(name, "category", objects(levels)[series.cat.codes.to_numpy()])
    kind = getattr(dtype, "kind", "O")
    if kind in "iuf":
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return _numbers(name, numbers, None if kind == "f" else series.astype(object).tolist)
    if kind == "b" and not series.hasnans:
        return RawColumn(name, "boolean", series.to_numpy(dtype=object))
    if kind == "M":
        naive = series.dt.tz_convert("UTC").dt.tz_localize(None) if series.dt.tz else series
        return RawColumn(name, "date", seconds_of(naive.to_numpy(dtype="datetime64[us]")))
    if kind == "m":
        return RawColumn(name, "number", series.dt.total_seconds().to_numpy(dtype=np.float64))
    return _of_objects(name, series.astype(object).tolist())


def _of_polars(X: Any) -> list[Unread]:
    return [(column.name, partial(_of_polars_series, column)) for column in X.get_columns()]


def _of_polars_series(column: Any) -> RawColumn:
    """Read a column of polars by its type."""
    polars, dtype, name = sys.modules["polars"], column.dtype, column.name
    if dtype.is_numeric():
        numbers = column.cast(polars.Float64).to_numpy().astype(np.float64)
        return _numbers(name, numbers, None if dtype.is_float() else column.to_list)
    if dtype == polars.Duration:
        return RawColumn(name, "number", column.dt.total_microseconds().to_numpy() / 1e6)
    if dtype == polars.Date or dtype == polars.Datetime:
        micros = column.cast(polars.Datetime("us")).to_numpy()
        return RawColumn(name, "date", seconds_of(micros.astype("datetime64[us]")))
    if dtype in (polars.Categorical, polars.Enum):
        return _categories(name, column.to_list())
    return _of_objects(name, column.to_list())


def _of_arrow(X: Any) -> list[Unread]:
    return [
        (f.name, partial(_of_arrow_column, f.name, f.type, X.column(j)))
        for j, f in enumerate(X.schema)
    ]


def _of_arrow_column(name: str, dtype: Any, column: Any) -> RawColumn:
    """Read a column of an Arrow table or batch by its type."""
    arrow = sys.modules["pyarrow"]
    types = arrow.types
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return _numbers(
            name,
            _floats(column, arrow.float64()),
            None if types.is_floating(dtype) else column.to_pylist,
        )
    if types.is_duration(dtype):
        micros = column.cast(arrow.duration("us"), safe=False)
        return RawColumn(name, "number", _floats(micros, arrow.int64()) / 1e6)
    if types.is_date(dtype) or types.is_timestamp(dtype):
        micros = column.cast(arrow.timestamp("us", getattr(dtype, "tz", None)), safe=False)
        naive = micros.cast(arrow.timestamp("us")).to_numpy(zero_copy_only=False)
        return RawColumn(name, "date", seconds_of(naive.astype("datetime64[us]")))
    if types.is_dictionary(dtype):
        return _categories(name, column.to_pylist())
    return _of_objects(name, column.to_pylist())


def _floats(column: Any, dtype: Any) -> Array:
    """Return numbers of Arrow as float64, after a cast."""
    numbers = column.cast(dtype, safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, dtype=np.float64)


_READERS: dict[str, Callable[[Any], list[Unread]]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
}


def _of_objects(name: str, values: Sequence[Any]) -> RawColumn:
    """Read a column of Python objects by the types of those that are not missing."""
    found = plain(values)
    kinds = {type(value) for value in found} - {type(None)}
    if not kinds:
        return RawColumn(name, "missing", objects(found))
    if kinds == {bool}:
        return RawColumn(name, "boolean", objects(found))
    if bool not in kinds and all(issubclass(kind, Real | Decimal) for kind in kinds):
        numbers = np.array(_each(name, found, float, np.nan))
        return _numbers(name, numbers, None if kinds == {float} else lambda: found)
    if all(issubclass(kind, date | np.datetime64) for kind in kinds):
        return RawColumn(name, "date", np.array([second(value) for value in found]))
    known = str | Real | Decimal | date | np.datetime64
    strange = [kind for kind in kinds if not issubclass(kind, known)]
    if strange:
        raise TypeError(
            f"Column {name!r} holds a value of type {strange[0].__name__}; an entry of a table "
            "must be a string or a number, a boolean or a date. Convert the column, or leave it "
            "out."
        )
    return RawColumn(name, "category", objects(_each(name, found, level_text, None)))


def _each(name: str, values: Sequence[Any], read: Callable[[Any], Any], missing: Any) -> list[Any]:
    """Return a function of each value; ValueError for numbers that float64 cannot hold."""
    try:
        return [missing if value is None else read(value) for value in values]
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"Column {name!r} must hold numbers of float64, got one that cannot be converted "
            f"({error}). Replace such numbers, or make them missing (None or NaN)."
        ) from None


def _numbers(
    name: str, numbers: Array, as_they_came: Callable[[], Sequence[Any]] | None
) -> RawColumn:
    """Return a column of numbers; `as_they_came` is called for whole numbers beyond float64."""
    exact = None
    if as_they_came is not None and (np.abs(numbers) >= LARGEST_EXACT).any():
        exact = objects(plain(as_they_came()))
    return RawColumn(name, "number", numbers, exact)


def _categories(name: str, values: Sequence[Any]) -> RawColumn:
    """Return a column that its frame calls categorical, whatever its levels are."""
    found = plain(values)
    missing = all(value is None for value in found)
    return RawColumn(name, "missing" if missing else "category", objects(found))
