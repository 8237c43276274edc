"""The table read from a file, the error of unreadable files, and checks that formats share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

DecimalMark: TypeAlias = Literal["point", "comma"]

DateOrder: TypeAlias = Literal["day-first", "month-first"]

# Squared distances sum squares of values: beyond about 1e154 a square overflows float64.
LARGEST_NUMBER = 1e150

# Most features that are told of one by one.
_MOST_TOLD = 12


class DataFileError(ValueError):
    """Raised for a file without a usable table; the message is one sentence for the user."""


@dataclass(frozen=True)
class Notation:
    """How numbers, dates and missing values were written in the file that a model was trained on.

    Attributes
    ----------
    decimal : the decimal mark of columns, "point" or "comma"
    dates : the order of day and month of columns, "day-first" or "month-first"
    missing : texts that stood for a missing value, beside the usual ones
    levels : values of columns of text, which are no missing values though they be spelt like them
    units : units of columns of numbers, such as "kg" or "%"
    """

    decimal: Mapping[str, DecimalMark] = field(default_factory=dict)
    dates: Mapping[str, DateOrder] = field(default_factory=dict)
    missing: Sequence[str] = ()
    levels: Mapping[str, Collection[str]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """How a file is to be read where it does not say so itself.

    Attributes
    ----------
    encoding : name of the encoding of text
    header : whether the first row has the names of the columns
    decimal : "point" or "comma", the decimal mark of all numbers
    dates : "day-first" or "month-first", the order in dates such as 01/02/2020
    missing : texts that stand for a missing value, beside the usual ones
    trained : how the file was written that a model was trained on, which decides where neither
        the other attributes nor the file do
    """

    encoding: str | None = None
    header: bool | None = None
    decimal: DecimalMark | None = None
    dates: DateOrder | None = None
    missing: Sequence[str] = ()
    trained: Notation | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to train on or to classify.

    Attributes
    ----------
    X : a polars frame with columns of Int64, Float64, Boolean, String, Date or Datetime, in which
        null is a missing value; an array (n, d); or images (n, height, width)
    y : (n,) labels, or None
    rows : (n,) index of each row in the file, from 0; rows without a label are left out
    n_dropped : number of rows left out for missing values
    y_numbers : (n,) the labels as numbers, or None if they are none or are to be categories
    ids : polars series of the identifiers of the rows, or None
    notes : sentences that say what was taken for granted
    notation : how numbers, dates and missing values were written
    """

    X: Any
    y: npt.NDArray[Any] | None
    rows: npt.NDArray[np.intp]
    n_dropped: int = 0
    y_numbers: npt.NDArray[np.float64] | None = None
    ids: Any = None
    notes: Sequence[str] = ()
    notation: Notation = field(default_factory=Notation)

    @property
    def names(self) -> list[str]:
        """The names of the features; none for an array."""
        return list(getattr(self.X, "columns", ()))

    @property
    def are_images(self) -> bool:
        """Whether X holds images (n, height, width)."""
        return getattr(self.X, "ndim", 2) == 3


def complete_rows(
    numbers: npt.NDArray[Any],
    unlabelled: npt.NDArray[np.bool_],
    name: str,
    feature_place: Callable[[int], str],
    *,
    drop_missing: bool,
) -> npt.NDArray[np.intp]:
    """Return the indices of the rows with a label and all features.

    Raises `DataFileError` for missing features unless `drop_missing`, and always for values that
    are infinite or too large.

    Parameters
    ----------
    numbers : (n, d) features, NaN where a value is missing
    unlabelled : (n,) True where the label is missing
    feature_place : maps the index of a feature to its name in error messages
    """
    absent = np.isnan(numbers) & ~unlabelled[:, None]
    missing = absent.any(axis=1)
    if missing.any() and not drop_missing:
        count, row = int(missing.sum()), int(missing.argmax())
        subject = "1 row has" if count == 1 else f"{count} rows have"
        raise DataFileError(
            f"{subject} a missing value among the {len(missing)} of {name}, the first in data row "
            f"{row + 1}, {feature_place(int(absent[row].argmax()))}; fill them, or leave such rows "
            "out with --drop-missing."
        )
    keep = ~(missing | unlabelled)
    if not keep.any():
        raise DataFileError(f"every row of {name} has a missing value; fill them first.")
    refuse_large(numbers, keep, name, feature_place)
    return np.flatnonzero(keep)


def note_unlabelled(unlabelled: npt.NDArray[np.bool_], name: str, label: str) -> tuple[str, ...]:
    """Return a note of the rows without a label; raise `DataFileError` if none has one."""
    count = int(unlabelled.sum())
    if count == len(unlabelled):
        raise DataFileError(f"no row of {name} has {label}.")
    left_out = "1 row was" if count == 1 else f"{count} rows were"
    return (f"{left_out} left out of {name}, without {label}.",) if count else ()


def refuse_large(
    numbers: npt.NDArray[Any],
    rows: npt.NDArray[np.bool_],
    name: str,
    feature_place: Callable[[int], str],
) -> None:
    """Raise `DataFileError`, one for all features, if numbers are infinite or too large.

    Parameters
    ----------
    rows : (n,) True for the rows that are looked at
    """
    large = (np.abs(numbers) > LARGEST_NUMBER) & rows[:, None]
    found = np.flatnonzero(large.any(axis=0)).tolist()
    if not found:
        return
    told = []
    for feature in found[:_MOST_TOLD]:
        row = int(large[:, feature].argmax())
        value = float(numbers[row, feature])
        problem = "is infinite" if np.isinf(value) else f"is {value:g}, too large to be used,"
        told.append(f"{feature_place(feature)} {problem} in data row {row + 1}")
    more = f", and {len(found) - _MOST_TOLD} more are" if len(found) > _MOST_TOLD else ""
    raise DataFileError(f"numbers of {name} cannot be used: {', '.join(told)}{more}; replace them.")


def labels_from_array(y: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return float labels as int64 if all are integers, else as text; other types unchanged."""
    if y.dtype.kind != "f":
        return y
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataFileError(f"a label of {name} is {y[row]}; labels are numbers or text.")
    if (y == np.rint(y)).all() and (np.abs(y) < 2**53).all():  # integers that float64 holds exactly
        return y.astype(np.int64)
    return np.array([str(label) for label in y.tolist()])


def labels_from_text(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return text labels as int64 if all are integers in canonical form (7 or 7.0, not 007)."""
    # 18 digits always fit into int64.
    if all(re.fullmatch(r"(0|-?[1-9]\d{0,17})(\.0+)?", label) for label in np.unique(labels)):
        return np.array([int(label.partition(".")[0]) for label in labels.tolist()], dtype=np.int64)
    return labels


def is_continuous(numbers: npt.NDArray[Any], n_rows: int | None = None) -> bool:
    """Return whether labels are measurements of a quantity, rather than names of classes.

    Fractions are when there are more than 20 of them, or more than a few and a class has fewer than
    two rows on average; whole numbers when there are more than 20 and a class has fewer than four,
    or more than 100 and a class has fewer than ten.

    Parameters
    ----------
    numbers : labels, or the distinct ones
    n_rows : number of rows; by default that of labels
    """
    n_rows = len(numbers) if n_rows is None else n_rows
    distinct = np.unique(numbers)
    count = len(distinct)
    if (distinct == np.rint(distinct)).all():
        return (count > 100 and 10 * count > n_rows) or (count > 20 and 4 * count > n_rows)
    return count > 20 or (count > 5 and 2 * count > n_rows)


def quoted_list(names: Sequence[str]) -> str:
    """Return the first eight names, quoted, for an error message."""
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown or "none"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, with a full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") + "." if lines else type(error).__name__ + "."
