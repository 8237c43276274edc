"""Column records, and the conversion of raw columns to the numbers of the core."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.encoding import UNKNOWN_LEVEL
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators.columns._frames import RawColumn
from kmeans_kernel.estimators.columns._values import (
    date_text,
    iso_date_text,
    level_key,
    level_text,
    objects,
    second,
)
from kmeans_kernel.utils.words import FALSE_WORDS, TRUE_WORDS

ColumnKind: TypeAlias = Literal["number", "boolean", "category", "date", "dropped"]

Level: TypeAlias = str | bool | float

# What a date is turned into: days since 1970, and its place in the year, the week and the day.
DATE_PARTS = ("days", "month", "weekday", "hour")

_DAY = 86_400.0

# Words of files and of clients for booleans.
_BOOLEANS = dict.fromkeys(TRUE_WORDS, True) | dict.fromkeys(FALSE_WORDS, False)

# The first and the last day of four-digit years, in days since 1970.
_DAYS = (-719_162, 2_932_896)


@dataclass(frozen=True)
class Column:
    """A column of a table, as `fit` found it.

    Attributes
    ----------
    name : the name
    kind : "number", "boolean", "category", "date", or "dropped" for a column that is left out
    levels : the values of a category or boolean that have a place of their own
    rare : whether the other levels of the training rows share one more place, which levels that
        training has not seen get too
    parts : the numbers that a date is turned into, of `DATE_PARTS`
    reason : why a column was dropped
    missing : whether training rows had missing values
    minimum, maximum : of the training rows, for numbers, and for dates in seconds since 1970
    decimals : the most decimal places of a number, up to 6
    """

    name: str
    kind: ColumnKind
    levels: tuple[Level, ...] = ()
    rare: bool = False
    parts: tuple[str, ...] = ()
    reason: str | None = None
    missing: bool = False
    minimum: float | None = None
    maximum: float | None = None
    decimals: int | None = None

    @property
    def n_levels(self) -> tuple[int, ...]:
        """For each number that the column is turned into, its number of levels; 0 for numbers."""
        if self.kind in ("category", "boolean"):
            return (len(self.levels) + self.rare,)
        return (0,) * {"number": 1, "date": len(self.parts), "dropped": 0}[self.kind]

    @property
    def code_names(self) -> list[str]:
        """Names of the numbers that the column is turned into."""
        if self.kind == "date":
            return [self.name if part == "days" else f"{self.name}, {part}" for part in self.parts]
        return [self.name] * len(self.n_levels)

    @cached_property
    def _places(self) -> dict[Level, int]:
        return {level: place for place, level in enumerate(self.levels)}

    def code(self, raw: RawColumn) -> Array:
        """Return the (n, width) numbers of a column of values; NaN where a value is missing."""
        n = len(raw.values)
        if self.kind == "dropped":
            return np.empty((n, 0))
        if raw.type == "missing":
            return np.full((n, len(self.n_levels)), np.nan)
        if self.kind == "number":
            return as_numbers(raw)[:, None]
        if self.kind == "date":
            return date_parts(as_seconds(raw), self.parts)
        return self._places_of(raw)[:, None]

    def _places_of(self, raw: RawColumn) -> Array:
        """Return the positions of levels; a date may be written in other ways of ISO 8601."""
        places = self._places
        unknown = len(self.levels) if self.rare else UNKNOWN_LEVEL
        of_text = not self.levels or isinstance(self.levels[0], str)
        keys: Sequence[Any] = as_words(raw) if of_text else as_keys(raw)
        if self.kind == "boolean":
            keys = [_BOOLEANS.get(one.lower(), one) if type(one) is str else one for one in keys]
        codes = [np.nan if key is None else places.get(key, unknown) for key in keys]
        found = np.array(codes, dtype=np.float64)
        if of_text:
            for k in np.flatnonzero(found == unknown).tolist():
                found[k] = places.get(iso_date_text(keys[k]) or keys[k], unknown)
        return found

    def value(self, codes: Array) -> Any:
        """Return the value that the numbers of one row stand for; None if missing."""
        if self.kind == "dropped" or np.isnan(codes[0]):
            return None
        if self.kind in ("category", "boolean"):
            place = int(codes[0])
            return self.levels[place] if 0 <= place < len(self.levels) else "(other)"
        if self.kind == "date":
            days = float(np.clip(codes[0], *_DAYS))
            if "hour" in self.parts:
                return str(np.datetime64(round(days * 1440), "m"))
            return str(np.datetime64(round(days), "D"))
        rounded = round(float(codes[0]), self.decimals if self.decimals is not None else 6)
        return int(rounded) if self.decimals == 0 and np.isfinite(rounded) else rounded


def as_numbers(raw: RawColumn) -> Array:
    """Return a column as float64; text that reads as a number is one. ValueError for others."""
    if raw.type in ("number", "date"):
        return np.asarray(raw.values, dtype=np.float64)
    return np.array([np.nan if one is None else float(one) for one in raw.values.tolist()])


def as_seconds(raw: RawColumn) -> Array:
    """Return a column in seconds since 1970; ISO text is a date. ValueError for others."""
    if raw.type in ("number", "date"):
        return np.asarray(raw.values, dtype=np.float64)
    if raw.type == "boolean":
        raise ValueError(f"{raw.values[0]} is no date")
    return np.array([_second(one) for one in raw.values.tolist()])


def _second(value: Any) -> float:
    known = value is None or isinstance(value, date | np.datetime64)
    return second(value if known else datetime.fromisoformat(str(value)))


def as_words(raw: RawColumn) -> list[str | None]:
    """Return a column as the text of levels, None where a value is missing."""
    if raw.exact is None and raw.type in ("number", "date"):
        text = date_text if raw.type == "date" else level_text
        return [None if np.isnan(x) else text(x) for x in raw.values.tolist()]
    values = raw.values if raw.exact is None else raw.exact
    return [one if one is None or type(one) is str else level_text(one) for one in values.tolist()]


def as_keys(raw: RawColumn) -> list[Level | None]:
    """Return a column as values that can be looked up among levels that are no text."""
    if raw.type == "number" and raw.exact is None:
        return [None if np.isnan(x) else x for x in raw.values.tolist()]
    if raw.type == "boolean":
        return raw.values.tolist()  # type: ignore[no-any-return]
    values: Sequence[Any] = as_words(raw) if raw.type == "date" else raw.values.tolist()
    if raw.exact is not None:
        values = raw.exact.tolist()
    return [None if one is None else level_key(one) for one in values]


def date_parts(seconds: Array, parts: Sequence[str]) -> Array:
    """Return the (n, parts) numbers of dates in seconds since 1970."""
    known = np.isfinite(seconds)
    micros = np.where(known, seconds, 0.0) * 1e6
    times = micros.astype(np.int64).astype("datetime64[us]")
    days = seconds / _DAY
    found = {
        "days": days,
        "month": (times.astype("datetime64[M]").astype(np.int64) % 12 + 1).astype(np.float64),
        "weekday": np.floor(days + 3) % 7,  # 1970 began on a Thursday
        "hour": days % 1.0 * 24.0,
    }
    return np.column_stack([np.where(known, found[part], np.nan) for part in parts])


def code_columns(
    columns: Sequence[Column], raws: Sequence[RawColumn], declared: Collection[str] = ()
) -> Array:
    """Return the (n, d) numbers of a table; ValueError that names all columns of a wrong type.

    The user has said what the columns in `declared` are: numbers may then be dates in seconds.
    """
    coded: list[npt.NDArray[Any]] = []
    wrong: list[str] = []
    for column, raw in zip(columns, raws, strict=True):
        try:
            if column.name not in declared:
                _refuse_other_unit(column, raw)
            coded.append(column.code(raw))
        except (TypeError, ValueError, OverflowError):
            value = _first_wrong(column, raw)
            wrong.append(f"{column.name!r} ({column.kind}s in training, now {value})")
    if wrong:
        raise ValueError(
            f"Columns whose values are of another type than in training: {', '.join(wrong)}. "
            "Convert them, or make such values missing (None or NaN)."
        )
    return np.hstack(coded) if coded else np.empty((0, 0))


def _refuse_other_unit(column: Column, raw: RawColumn) -> None:
    """Raise ValueError for dates among numbers, or numbers among dates: their unit is unknown."""
    if {column.kind, raw.type} == {"number", "date"} and not np.isnan(raw.values).all():
        raise ValueError(f"{raw.type}s are no {column.kind}s")


def _first_wrong(column: Column, raw: RawColumn) -> str:
    """Return the first value of a column that is of another type than in training."""
    known = [one for one in raw.values.tolist() if one is not None and one == one]
    if raw.type == "date":
        return f"the date {date_text(known[0])}"
    for value in known:
        try:
            column.code(RawColumn(raw.name, raw.type, objects([value])))
        except (TypeError, ValueError, OverflowError):
            return repr(value)
    return repr(known[0])


def describe_columns(columns: Sequence[Column]) -> str:
    """Return one sentence that says what the columns were taken for."""
    plural = {"number": "numbers", "boolean": "booleans", "category": "categories", "date": "dates"}
    counts = {kind: sum(column.kind == kind for column in columns) for kind in plural}
    found = [f"{n} {plural[kind] if n > 1 else kind}" for kind, n in counts.items() if n]
    dropped = [f"{one.name!r} ({one.reason})" for one in columns if one.kind == "dropped"]
    left_out = f"; left out: {', '.join(dropped)}" if dropped else ""
    return f"columns: {', '.join(found)}{left_out}"


def n_levels_of(columns: Sequence[Column]) -> tuple[int, ...]:
    """Return the number of levels of each number that the columns are turned into."""
    return tuple(count for column in columns for count in column.n_levels)
