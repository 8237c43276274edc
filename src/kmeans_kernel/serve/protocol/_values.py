"""Values of the columns of a table, as clients send them, and their coding as numbers.

Each value is read on its own, by its type and the column: a prediction depends neither on the other
rows of the request nor on the requests that share its batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.encoding import UNKNOWN_LEVEL
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators.columns._columns import Column
from kmeans_kernel.estimators.columns._frames import RawColumn
from kmeans_kernel.estimators.columns._values import LARGEST_EXACT, objects
from kmeans_kernel.serve._tables import ServedTable
from kmeans_kernel.serve.transport._errors import (
    RequestError,
    abbreviate,
    bad_request,
)
from kmeans_kernel.utils.words import FALSE_WORDS, MISSING_VALUES, TRUE_WORDS

# Values of a column: an array of numbers or booleans, NaN where one is missing; or a list of text,
# numbers and booleans, None where one is missing.
Values: TypeAlias = npt.NDArray[Any] | list[Any]

# Cells of CSV that stand for a missing value, unless they are a level of their column.
MISSING_TEXT = frozenset(MISSING_VALUES)

# Most columns and most levels of a column that a note or an error lists.
_MOST_COLUMNS, _MOST_LEVELS = 20, 5

# The first and the last second of four-digit years, in seconds since 1970.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800.0, 253_402_300_799.999999

# A whole number such as 20200131, which is some day of 1970 in seconds, and hardly meant so.
_COMPACT_DATE = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")

_EXPECTED = {
    "number": "a number",
    "date": "a date such as '2020-01-31' or '2020-01-31T10:30:00Z'",
    "boolean": "true or false",
    "category": "text, a number, or true or false",
}


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows as numbers.

    Attributes
    ----------
    rows : (n, width) numbers, NaN for missing values of a table
    notes : what the client should know of these rows
    """

    rows: Array
    notes: tuple[str, ...]


class WrongValueError(ValueError):
    """A value of a column is of another type than in training."""

    def __init__(self, row: int, value: Any) -> None:
        super().__init__(row, value)
        self.row = row
        self.value = value


def code_values(
    table: ServedTable,
    values: Mapping[str, Values],
    place_of: Callable[[int], str],
    ignored: Sequence[str] = (),
) -> CodedRows:
    """Return the numbers of the columns in use, which are all there and of one length.

    Parameters
    ----------
    values : values by the name of their column
    place_of : words for the place of a row, for errors
    ignored : the note on names that are no column of the model, if any
    """
    coded: list[Array] = []
    wrong: list[str] = []
    notes = list(ignored)
    for column in table.used:
        try:
            codes = code_column(column, values[column.name])
        except WrongValueError as error:
            wrong.append(
                f"{abbreviate(column.name)} takes {_EXPECTED[column.kind]}, got "
                f"{abbreviate(error.value)} ({place_of(error.row)})"
            )
            continue
        coded.append(codes)
        notes += _unknown_levels(column, codes, values[column.name])
    if wrong:
        raise bad_request(
            "Each value must be of the type that its column had in training, or null if it is "
            f"missing: {'; '.join(_first(wrong))}."
        )
    return CodedRows(np.hstack(coded), tuple(_first(notes)))


def code_column(column: Column, values: Values) -> Array:
    """Return the (n, width) numbers of a column; WrongValueError for a value of another type."""
    if isinstance(values, np.ndarray):
        return _code_numbers(column, values)
    kinds = set(map(type, values))
    if column.kind == "date" and kinds & {int, float}:
        for k, value in enumerate(values):
            if type(value) in (int, float) and _COMPACT_DATE.fullmatch(f"{value:.15g}"):
                raise WrongValueError(k, value)
    if kinds <= {int, float, type(None)}:
        return _code_numbers(column, np.array(values, dtype=np.float64), _exact(values))
    codes = np.full((len(values), len(column.n_levels)), np.nan)
    for kind in kinds - {type(None)}:
        rows = [k for k, value in enumerate(values) if type(value) is kind]
        some = [values[k] for k in rows]
        try:
            if kind in (int, float):
                codes[rows] = _code_numbers(column, np.array(some, dtype=np.float64), _exact(some))
            elif kind is str:
                codes[rows] = _code_text(column, some)
            elif kind is bool and column.kind != "date":
                codes[rows] = column.code(RawColumn(column.name, "boolean", objects(some)))
            else:
                raise WrongValueError(0, some[0])
        except WrongValueError as error:
            raise WrongValueError(rows[error.row], error.value) from None
    return codes


def _exact(values: Sequence[Any]) -> npt.NDArray[Any] | None:
    """Return the values as they came, if float64 would mix up whole numbers among them."""
    large = any(type(value) is int and abs(value) > LARGEST_EXACT for value in values)
    return objects(values) if large else None


def _code_numbers(
    column: Column, values: npt.NDArray[Any], exact: npt.NDArray[Any] | None = None
) -> Array:
    if values.dtype.kind == "b" and column.kind != "date":
        return column.code(RawColumn(column.name, "boolean", values.astype(object)))
    numbers = values.astype(np.float64)
    if column.kind == "boolean" and (other := ~np.isin(numbers, (0, 1)) & ~np.isnan(numbers)).any():
        first = int(other.argmax())
        raise WrongValueError(first, values[first].item())
    low, high = (_FIRST_SECOND, _LAST_SECOND) if column.kind == "date" else (-np.inf, np.inf)
    strange = np.isinf(numbers) | (numbers < low) | (numbers > high)
    if strange.any():
        first = int(strange.argmax())
        raise WrongValueError(first, values[first].item())
    if exact is None and values.dtype.kind in "iu":
        exact = _exact(values.tolist())
    return column.code(RawColumn(column.name, "number", numbers, exact))


def _code_text(column: Column, texts: list[str]) -> Array:
    if column.kind == "boolean":
        return column.code(RawColumn(column.name, "boolean", objects(_booleans(texts))))
    if column.kind == "category":
        return column.code(RawColumn(column.name, "category", objects(texts)))
    read = _number if column.kind == "number" else _seconds
    numbers = np.empty(len(texts))
    for k, text in enumerate(texts):
        try:
            numbers[k] = read(text)
        except (ValueError, OverflowError):
            raise WrongValueError(k, text) from None
    return column.code(RawColumn(column.name, "number", numbers))


def _booleans(texts: list[str]) -> list[bool]:
    """Return words for true and false as such; WrongValueError for others."""
    lowered = [text.strip().lower() for text in texts]
    for k, word in enumerate(lowered):
        if word not in TRUE_WORDS and word not in FALSE_WORDS:
            raise WrongValueError(k, texts[k])
    return [word in TRUE_WORDS for word in lowered]


def _number(text: str) -> float:
    """Return the number that a text is, as a client may quote it; it is finite."""
    number = float(text)
    if "_" in text or not np.isfinite(number):
        raise ValueError(text)
    return number


def _seconds(text: str) -> float:
    """Return a date or time in ISO 8601 in seconds since 1970; without a zone it is UTC."""
    time = datetime.fromisoformat(text.strip())
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def read_cells(column: Column, cells: list[str]) -> list[str | None]:
    """Return cells of CSV, with None where one stands for a missing value.

    Spaces around a value are dropped, unless it is a level with them.
    """
    levels = {level for level in column.levels if isinstance(level, str)}

    def value_of(cell: str) -> str | None:
        bare = cell if cell in levels else cell.strip()
        return None if bare in MISSING_TEXT and bare not in levels else bare

    return list(map(value_of, cells))


def _unknown_levels(column: Column, codes: Array, values: Values) -> list[str]:
    """Return a note if values have no level of their own."""
    if column.kind not in ("category", "boolean"):
        return []
    place = len(column.levels) if column.rare else UNKNOWN_LEVEL
    rows = np.flatnonzero(codes[:, 0] == place)
    if not len(rows):
        return []
    found = dict.fromkeys(_plain(values[k]) for k in rows.tolist())
    what = "rare or unknown" if column.rare else "unknown"
    name = abbreviate(column.name)
    return [f"{what} levels of {name}: {_listed([abbreviate(one) for one in found])}"]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _listed(words: Sequence[str]) -> str:
    more = len(words) - _MOST_LEVELS
    return ", ".join(words[:_MOST_LEVELS]) + (f" and {more:,} more" if more > 0 else "")


def _first(sentences: Sequence[str]) -> list[str]:
    """Return the first sentences, and one for the number of the others."""
    more = len(sentences) - _MOST_COLUMNS
    return [*sentences[:_MOST_COLUMNS], *([f"and {more:,} more columns"] if more > 0 else [])]


def ignored_columns(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the note on the names that are no column of the model, if any."""
    own = set(known)
    others = [name for name in dict.fromkeys(names) if name not in own]
    return (f"ignored columns: {_listed(list(map(abbreviate, others)))}",) if others else ()


def absent_columns(names: Sequence[str], place: str = "") -> RequestError:
    """Return the error for columns that were not sent, with all their names."""
    verb = "is" if len(names) == 1 else "are"
    return bad_request(
        f"Each column must be sent, and {', '.join(map(abbreviate, names))} {verb} absent{place}; "
        "send null where a value is missing."
    )
