"""What is in the way of reading columns, collected and told at once, with the options that help."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kmeans_kernel.data.tables._columns._dates import FIRST_SHORT_YEAR, ORDERS, Dates, Orders
from kmeans_kernel.data.tables._columns._marks import Marks
from kmeans_kernel.data.tables._columns._numbers import MARKS, Survey, read_numbers
from kmeans_kernel.data.tables._table import LARGEST_NUMBER, DataFileError, DecimalMark

# Most distinct words of a column that are proposed as markers of missing values; the largest share
# of its values that they may be, unless they are few.
_MOST_WORDS, _SHARE_OF_WORDS, _FEW_VALUES = 10, 0.5, 3

# Values that say something, so that they are not to be read as missing: numbers with a unit or a
# bound (<100, 1.5k, 12 EUR) where numbers should be, numbers and words of true and false where
# these should be, anything with a digit where dates should be.
_SAYS_SOMETHING = {"number": r"^[^\pL\d]*\d", "date": r"\d", "boolean": r"\d"}

# Most columns that are told of one by one.
_MOST_TOLD = 12


@dataclass(frozen=True)
class Problem:
    """Why a column cannot be read, and what helps.

    Attributes
    ----------
    column : name of the column
    told : what is wrong, as a predicate
    options : options of the command line that help
    choice : two values of an option, of which the user has to choose
    is_first_row : whether only the first row is in the way
    """

    column: str
    told: str
    options: tuple[str, ...] = ()
    choice: str = ""
    is_first_row: bool = False


class Problems:
    """Problems and notes of the columns of a file.

    Parameters
    ----------
    file : name of the file
    columns : polars series by name; text without markers of missing values
    are_fixed : whether the kinds of columns are those of a model, and none can be left out
    ignored : name of a column, such as the labels, that may hold anything
    """

    def __init__(
        self, file: str, columns: Any, *, are_fixed: bool = False, ignored: str | None = None
    ) -> None:
        self.file, self.columns, self.are_fixed, self.ignored = file, columns, are_fixed, ignored
        self._found: list[Problem] = []
        self._notes: list[str] = []
        self._markers: dict[str, list[str]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that say what was taken for granted."""
        told = [
            f"{word!r} was read as a missing value in {_listed(names)}."
            for word, names in self._markers.items()
        ]
        return (*self._notes, *told)

    def raise_any(self) -> None:
        """Raise `DataFileError`, one for all columns, if there are problems."""
        found = self._found
        if not found:
            return
        told = [f"{one.column!r} {one.told}" for one in found[:_MOST_TOLD]]
        more = f", and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
        subject = "a column" if len(found) == 1 else f"{len(found)} columns"
        cannot = "cannot be read as it is" if len(found) == 1 else "cannot be read as they are"
        raise DataFileError(
            f"{subject} of {self.file} {cannot}: {', '.join(told)}{more}; {self._advice()}."
        )

    def add_words(self, name: str, text: Any, values: Any, kind: str = "number") -> None:
        """Add a problem if words are left beside numbers or dates; note the markers that are not.

        Parameters
        ----------
        text : the column, without markers of missing values among numbers
        values : the numbers or dates, null for anything else
        """
        if name == self.ignored:
            return
        column = self.columns[name]
        for word in column.filter(text.is_null()).drop_nulls().unique(maintain_order=True):
            self._markers.setdefault(word, []).append(name)
        wrong = text.is_not_null() & values.is_null()
        if wrong.any():
            row = int(wrong.arg_max())
            is_first = values.null_count() == len(values)
            why = f"which is no {kind}" if is_first else f"where other rows have {kind}s"
            told = f"has {text[row]!r} in data row {row + 1}, {why}"
            words = text.filter(wrong)
            says_something = words.str.contains(_SAYS_SOMETHING[kind]).any()
            most = max(_FEW_VALUES, _SHARE_OF_WORDS * (len(text) - text.null_count()))
            keep = bool(says_something) or len(words) > most
            is_first_row = row == 0 and len(words) == 1 and not (is_first or says_something)
            options = () if keep else self._as_missing(name, words)
            self._add(name, told, options, is_first_row=is_first_row)

    def add_mixed_marks(self, name: str, survey: Survey) -> None:
        """Add a problem: numbers with a decimal point and ones with a comma."""
        point, comma = (survey.accepted[mark].fill_null(value=False) for mark in MARKS)
        first, second = int((point & ~comma).arg_max()), int((comma & ~point).arg_max())
        told = (
            f"has decimal points and commas, {survey.text[first]!r} in data row {first + 1} and "
            f"{survey.text[second]!r} in data row {second + 1}"
        )
        self._add(name, told, self._without(name))

    def add_other_unit(self, name: str, survey: Survey, trained: str) -> None:
        """Add a problem: numbers in another unit than in training, or in none."""
        row = int(survey.text.is_not_null().arg_max())
        told = f"has {survey.text[row]!r} in data row {row + 1}, and was in {trained!r} in training"
        self._add(name, told)

    def add_undecided_mark(self, name: str, survey: Survey) -> None:
        """Add a problem: numbers that are others with a decimal comma than with a point."""
        row, value = _first_mark(survey)
        numbers = _numbers_of(survey, row)
        point, comma = numbers["point"], numbers["comma"]
        told = f"may have decimals or thousands, as in {value!r} in data row {row + 1}"
        choice = f"--decimal comma if {value!r} is {comma}, or --decimal point if it is {point}"
        self._add(name, told, choice=choice)

    def note_marks(self, marks: Marks, surveys: Mapping[str, Survey]) -> None:
        """Note the columns whose decimal mark followed from training or from dates."""
        why = ((marks.as_trained, "as in training"), (marks.by_dates, "as dates have points too"))
        for found, reason in why:
            names = [name for name in found if name in surveys and name != self.ignored]
            if not names:
                continue
            row, value = _first_mark(surveys[names[0]])
            mark = marks.of[names[0]]
            other = "point" if mark == "comma" else "comma"
            self._notes.append(
                f"{_listed(names)} {_was(names)} read with a decimal {mark}, {reason}: {value!r} "
                f"is {_numbers_of(surveys[names[0]], row)[mark]}; if not, add --decimal {other}."
            )

    def note_orders(self, orders: Orders, dates: Mapping[str, Dates]) -> None:
        """Note the columns whose order of day and month followed from training."""
        names = [name for name in orders.as_trained if name != self.ignored]
        if not names:
            return
        text, order = dates[names[0]].text, orders.of[names[0]]
        other = ORDERS[1 - ORDERS.index(order)]
        first = "day" if order == "day-first" else "month"
        self._notes.append(
            f"dates of {_listed(names)} such as {text[int(text.is_not_null().arg_max())]!r} were "
            f"read with the {first} first, as in training; if not, add --dates {other}."
        )

    def note_short_years(self, dates: Mapping[str, Dates], read: Mapping[str, Any]) -> None:
        """Note the columns whose years have two digits.

        Parameters
        ----------
        read : the dates that were read, by column
        """
        names = [name for name in dates if name != self.ignored]
        if not names:
            return
        text, found = dates[names[0]].text, read[names[0]]
        row = int(found.is_not_null().arg_max())
        has = "has" if len(names) == 1 else "have"
        self._notes.append(
            f"{_listed(names)} {has} years of two digits, read as {FIRST_SHORT_YEAR} to "
            f"{FIRST_SHORT_YEAR + 99}, {text[row]!r} as {str(found[row])[:10]}; write four digits "
            "where they are others."
        )

    def note_negative(self, name: str, survey: Survey, numbers: Any) -> None:
        """Note a column whose values are all in brackets, or all end in a minus sign."""
        row = int(numbers.is_not_null().arg_max())
        if name != self.ignored:
            self._notes.append(
                f"all numbers of {name!r} were read as negative, {survey.text[row]!r} as "
                f"{numbers[row]}; if they are none, add --column-type "
                f"{shlex.quote(name + '=category')}."
            )

    def note_unsure_dates(self, name: str, dates: Dates) -> None:
        """Note a column of text that may be dates with years of two digits."""
        if name != self.ignored:
            option = f"--column-type {shlex.quote(name + '=date')}"
            value = dates.text[int(dates.text.is_not_null().arg_max())]
            self._notes.append(
                f"{name!r} was read as text, such as {value!r}; if they are dates, add {option}."
            )

    def note_booleans(self, values: Any) -> None:
        """Note which words were read as true and false."""
        words = values.drop_nulls().unique(maintain_order=True).to_list()
        others = [word for word in words if word.lower() not in ("true", "false")]
        if others and values.name != self.ignored:
            self._notes.append(f"{_listed(others)} in {values.name!r} {_was(others)} read as true "
                               "or false.")  # fmt: skip

    def add_undecided_order(self, name: str, text: Any, *, is_date: bool) -> None:
        """Add a problem or a note: dates that are others with the day first than the month."""
        row = int(text.is_not_null().arg_max())
        may = f"may have the day or the month first, as in {text[row]!r} in data row {row + 1}"
        choice = "--dates day-first or --dates month-first"
        if is_date:
            self._add(name, may, choice=choice)
        elif name != self.ignored:
            self._notes.append(
                f"the dates in {name!r} {may}, and were read as text; settle it with {choice}."
            )

    def add_large(self, name: str, numbers: Any) -> None:
        """Add a problem if numbers are infinite or too large."""
        if not numbers.dtype.is_float():
            return
        large = (numbers.abs() > LARGEST_NUMBER).fill_null(value=False)
        if not large.any():
            return
        row, column = int(large.arg_max()), self.columns[name]
        value = float(numbers[row])
        what = "is infinite" if value in (float("inf"), -float("inf")) else f"is {value:g}"
        told = f"{what} in data row {row + 1}, too large to be used"
        is_text = str(column.dtype) == "String"
        options = self._as_missing(name, column.filter(large)) if is_text else self._without(name)
        self._add(name, told, options)

    def add_type(self, column: Any) -> None:
        """Add a problem: values that are no numbers, words or dates."""
        kind = str(column.dtype).split("(")[0].lower()
        told = f"holds values of type {kind}, not numbers, words or dates"
        self._add(column.name, told, self._without(column.name))

    def note_text(self, column: Any, is_number: Any) -> None:
        """Note a column of text that has many numbers."""
        if column.name == self.ignored:
            return
        word = (column.is_not_null() & ~is_number).arg_max()
        share = 100 * int(is_number.sum()) // (len(column) - column.null_count())
        self._notes.append(
            f"{column.name!r} was read as text: {share} % of its values are numbers, but not "
            f"{column[word]!r} in data row {word + 1}."
        )

    def note_leading_zeros(self, column: Any, has_zeros: Any) -> None:
        """Note a column of numbers that was read as text since a few have leading zeros."""
        if column.name != self.ignored:
            row = int(has_zeros.arg_max())
            self._notes.append(
                f"{column.name!r} was read as text, since {column[row]!r} in data row {row + 1} "
                "has leading zeros; if all are numbers, add --column-type "
                f"{shlex.quote(column.name + '=number')}."
            )

    def _as_missing(self, name: str, words: Any) -> tuple[str, ...]:
        """Return options that read a few words as missing, else one that reads all as text."""
        distinct = words.unique(maintain_order=True).to_list()
        if len(distinct) <= _MOST_WORDS:
            return tuple(f"--missing {shlex.quote(f'{name}={word}')}" for word in distinct)
        return () if self.are_fixed else (f"--column-type {shlex.quote(name + '=category')}",)

    def _without(self, name: str) -> tuple[str, ...]:
        return () if self.are_fixed else (f"--drop {shlex.quote(name)}",)

    def _add(
        self,
        name: str,
        told: str,
        options: tuple[str, ...] = (),
        *,
        choice: str = "",
        is_first_row: bool = False,
    ) -> None:
        if name != self.ignored:
            self._found.append(Problem(name, told, options, choice, is_first_row))

    def _advice(self) -> str:
        """Return the options that solve all problems, and the columns that none solves."""
        if all(one.is_first_row for one in self._found):
            row = "data row 1, which looks like units or more names and not like data"
            if len(self._found) > 1:
                return f"delete {row}"
            return f"delete {row}, or add {' '.join(self._found[0].options)} if it is data"
        options = " ".join(dict.fromkeys(one for found in self._found for one in found.options))
        # One choice of each option: it is for all columns alike.
        choices = {one.choice.split()[0]: one.choice for one in reversed(self._found) if one.choice}
        parts = [f"add {one}" for one in [options, *choices.values()] if one]
        unsolved = [one.column for one in self._found if not one.options and not one.choice]
        if unsolved:
            parts.append(f"correct the values of {_listed(unsolved)}")
        return " and ".join(parts)


def _first_mark(survey: Survey) -> tuple[int, str]:
    """Return the first row that has a point or a comma, and its value."""
    row = int(survey.body.str.contains("[.,]").fill_null(value=False).arg_max())
    return row, str(survey.text[row])


def _numbers_of(survey: Survey, row: int) -> dict[DecimalMark, Any]:
    """Return the number in a row with each decimal mark."""
    one = Survey(survey.text[row : row + 1], survey.body[row : row + 1])
    return {mark: read_numbers(one, mark)[0] for mark in MARKS}


def _was(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
