"""Values of tables one by one: missing or not, as seconds, as levels of categories.

A value has the same level whatever else is in its column: rows are predicted alone as in a batch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.utils.validation import is_missing

# Whole numbers up to this one are told apart by float64.
LARGEST_EXACT = 2**53

# A date in the extended form of ISO 8601; "20200131" may be any number.
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]|$)")


def plain(values: Sequence[Any]) -> list[Any]:
    """Return Python's own types, durations in seconds, None for None, NaN, NaT and pandas.NA."""
    return [value if type(value) is str else _plain_value(value) for value in values]


def _plain_value(value: Any) -> Any:
    if is_missing(value):
        return None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        return value.item()
    return value


def second(value: Any) -> float:
    """Return a date or a time in seconds since 1970, NaN for None; a time without zone is UTC."""
    if value is None:
        return np.nan
    if hasattr(value, "to_datetime64"):  # of pandas; nanoseconds are cut off, as in its columns
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        return float(seconds_of(np.array([value], dtype="datetime64[us]"))[0])
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return float(zoned.timestamp())


def seconds_of(micros: npt.NDArray[Any]) -> Array:
    """Return times in seconds since 1970, NaN for NaT."""
    return np.where(np.isnat(micros), np.nan, micros.astype(np.int64) / 1e6)


def objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return values as a one-dimensional array of objects."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def level_text(value: Any) -> str:
    """Return the text of a value as a level: 7 and 7.0 are "7", midnight is its day."""
    if isinstance(value, str):
        return str.__str__(value)  # without the name of an enumeration
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, date | np.datetime64):
        return date_text(second(value))
    if isinstance(value, Real | Decimal):
        return _number_text(value)
    return str(value)


def _number_text(number: Any) -> str:
    if isinstance(number, Integral):
        return str(int(number))
    rounded = float(number)
    return str(int(number)) if rounded.is_integer() else repr(rounded)


def date_text(seconds: float) -> str:
    """Return a date in seconds since 1970 as text: the day, and the time unless it is midnight."""
    day, _, time = str(np.datetime64(round(seconds * 1e6), "us")).partition("T")
    time = time.removesuffix(".000000")
    return day if time == "00:00:00" else f"{day} {time}"


def iso_date_text(text: str) -> str | None:
    """Return the level of a date that is given as ISO text; None for other text."""
    if not _ISO_DATE.match(text):
        return None
    try:
        return date_text(second(datetime.fromisoformat(text)))
    except (ValueError, OverflowError):
        return None


def level_key(value: Any) -> Any:
    """Return what is looked up among levels that are no text: what the text of a value says."""
    if isinstance(value, Real | Decimal):
        return value
    text = level_text(value)
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    for read in (int, float):  # a float64 would mix up large whole numbers
        try:
            return read(text)
        except ValueError:
            continue
    return text


def is_level_number(value: Any) -> bool:
    """Return whether a value is a number that float64 and JSON can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= LARGEST_EXACT if isinstance(value, int) else bool(np.isfinite(value))
