"""The decimal mark of each column of a file, decided from all its columns.

A value such as 1,234 or 1.234 can be read in two ways. A column that can be read with one mark only
is evidence for the others; so is what a model learned from the file that it was trained on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kmeans_kernel.data.tables._columns._numbers import Survey
from kmeans_kernel.data.tables._table import DecimalMark

# A value between commas that has a decimal comma beyond doubt: 0,5, -1,5, 1.234,5 or 1,5 %. Others,
# such as 4,8, may be a list of answers, and 1.234.567 a code.
_SURE_COMMA = r",.*[^\d,]|[^\d,].*,|^0,"

# Semicolons separate values in countries with a decimal comma, tabs and bars do in all.
_SEMICOLON, _EITHER = ";", "\t|"

# An address of the Internet: four numbers of at most 255.
_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_ADDRESS = rf"^{_BYTE}(?:\.{_BYTE}){{3}}$"


@dataclass(frozen=True)
class Marks:
    """Decimal marks of columns, and on what they rest.

    Attributes
    ----------
    of : the mark of each column
    undecided : columns whose mark cannot be told
    as_trained : columns where the file does not tell, and the training of a model did
    by_dates : columns where dates such as 31.12.2020 decided
    """

    of: dict[str, DecimalMark]
    undecided: list[str] = field(default_factory=list)
    as_trained: list[str] = field(default_factory=list)
    by_dates: list[str] = field(default_factory=list)

    def known(
        self, surveys: Mapping[str, Survey], names: Iterable[str], given: DecimalMark | None
    ) -> dict[str, DecimalMark]:
        """Return the marks of columns of numbers; one that shows none has that of all others."""
        own = {name: self.of[name] for name, one in surveys.items()
               if one.mark is not None or one.is_ambiguous}  # fmt: skip
        marks = {given} if given is not None else set(own.values())
        common = marks.pop() if len(marks) == 1 else None
        return {name: mark for name in names if (mark := own.get(name, common)) is not None}


def decimal_marks(
    surveys: Mapping[str, Survey],
    separator: str,
    given: DecimalMark | None = None,
    *,
    trained: Mapping[str, DecimalMark] | None = None,
    has_dotted_dates: bool = False,
) -> Marks:
    """Return the decimal mark of each column.

    A column that can be read with one mark only is evidence for the file. Without evidence, 1,234
    is a number with thousands where commas separate the values, and 1.234 one with decimals where
    they are not separated by semicolons, as they are in countries with a decimal comma. Where
    evidence is contradictory, the mark is undecided.

    Parameters
    ----------
    given : the mark that the user names for all columns that can be read with either
    trained : the marks of columns in the file that a model was trained on
    has_dotted_dates : whether the file has dates such as 31.12.2020
    """
    trained = trained or {}
    sure = {name: one.mark for name, one in surveys.items() if one.mark is not None}
    found = Marks({name: sure.get(name, "point") for name in surveys})
    strong = {name: mark for name, mark in sure.items()
              if mark == "point" or not _may_be_list(surveys[name], separator)}  # fmt: skip
    for name, survey in surveys.items():
        if not survey.is_ambiguous:
            continue
        usual = trained.get(name)
        # Columns that are as in training say nothing against the mark that this one had there.
        said = {mark for other, mark in strong.items() if not usual or trained.get(other) != mark}
        marks = said | ({usual} if usual else set())
        if given is not None:
            found.of[name] = given
        elif len(marks) == 1:
            (found.of[name],) = marks
            if not said:
                found.as_trained.append(name)
        elif marks:
            found.undecided.append(name)
        else:
            _decide_alone(found, name, survey, separator, sure.values(), has_dotted_dates)
    return found


def _decide_alone(
    found: Marks,
    name: str,
    survey: Survey,
    separator: str,
    weak: Iterable[str],
    has_dotted_dates: bool,
) -> None:
    """Decide on a column by its own values, the separator and dates."""
    may_be_german = has_dotted_dates and _has_thousands_with_points(survey)
    if may_be_german and separator != ",":
        found.of[name] = "comma"
        found.by_dates.append(name)
    elif may_be_german or "comma" in weak or not _is_point_by_default(survey, separator):
        found.undecided.append(name)


def _may_be_list(survey: Survey, separator: str) -> bool:
    """Return whether values with a comma, quoted between commas, may be lists such as 4,8."""
    if separator != ",":
        return False
    return not bool(survey.text.str.contains(_SURE_COMMA).any())


def _is_point_by_default(survey: Survey, separator: str) -> bool:
    if survey.has_commas and survey.has_points:
        return False
    if survey.has_commas:
        return separator == ","
    if separator in _EITHER:
        return not _has_thousands_with_points(survey)
    return separator != _SEMICOLON


def _has_thousands_with_points(survey: Survey) -> bool:
    """Return whether points may be those of thousands: 266 and 50.776, but not 1000 and 0.250.

    The column can be read with either mark, so that three digits follow each point.
    """
    if survey.has_commas or not survey.has_points:
        return False
    whole = survey.body.filter(survey.is_number & ~survey.body.str.contains(".", literal=True))
    return len(whole) > 0 and not bool(whole.str.contains(r"\d{4}").any())


def are_addresses(text: Any) -> bool:
    """Return whether all values are such as 192.168.178.232, which looks like thousands."""
    return bool(text.drop_nulls().str.contains(_ADDRESS).all())
