"""Numbers as people write them: decimal commas, thousands separators, currencies, per cent.

A value such as 1,234 or 1.234 can be read in two ways. `read_numbers` reads a column with a given
decimal mark; `Survey` tells with which marks all values of a column can be read, which is the
evidence from which `_marks.py` decides for all columns of a file.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kmeans_kernel.data.tables._table import DecimalMark

MARKS: tuple[DecimalMark, ...] = ("point", "comma")

# Integers beyond this are not all float64 numbers; longer ones are identifiers, not quantities.
_LARGEST_INTEGER = 2**53

_EXPONENT = r"(?:[eE][+-]?\d+)?"


def _pattern(mark: str, group: str) -> str:
    """Return the pattern of numbers with a decimal mark and a thousands separator beside spaces.

    Groups have three digits, and those of India two before the last. A plus sign before groups is
    that of a telephone number.
    """
    grouped = "|".join(
        [rf"[1-9]\d{{0,2}}(?:{group}\d{{3}})+", r"[1-9]\d{0,2}(?:[ ]\d{3})+",
         r"[1-9]\d{0,2}(?:'\d{3})+", rf"[1-9]\d?(?:{group}\d{{2}})+{group}\d{{3}}"]
    )  # fmt: skip
    plain = rf"[+-]?(?:\d+(?:{mark}\d*)?|{mark}\d+){_EXPONENT}"
    return rf"^(?:{plain}|-?(?:{grouped})(?:{mark}\d*)?)$"


_PATTERNS: dict[DecimalMark, str] = {
    "point": _pattern(r"\.", ","), "comma": _pattern(",", r"\."),
}  # fmt: skip

# A number with either decimal mark.
_ANY_NUMBER = r"^[-+(]?[\d.,' ]*\d[\d.,' ]*\)?-?$"

_UNITS = (
    r"[$€£¥₹₩₽₺₪₫₴฿%‰]|(?:US|R|A|C|NZ|HK|S)\$|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|"
    r"CZK|BRL|MXN|ZAR|RUB|TRY|Fr\.|kr\.?|Kč|zł"
)
# Units of measure behind a number. Other words say more: 10115 Berlin, 1.5 million.
_MEASURES = (
    r"(?:[kmµ]?g|lbs?|oz|[kcmµn]?m|mi|ft|[mckh]?l|gal|[kM]?W|kWh|[mk]?V|mA|[kMG]?Hz|[kMGT]B|ms|°[CF]?|"
    r"km/h|mph|m[²³2]|sqft|(?:year|month|week|day|hour|hr|min(?:ute)?|sec(?:ond)?|yr)s?)"
    r"(?![^\W\d_])"
)
_FIRST_UNIT = re.compile(
    rf"^[-+(]?\s*({_UNITS})\s*[-+]?[\d.,]|\d[.,]?\s*({_UNITS}|{_MEASURES})\)?-?$"
)

# Share of the values with a digit that have the unit, from which it is one; values in which it is
# looked for; and units that change a number, so that one without them may be another.
_SHARE_OF_UNIT, _LOOKED_AT, FACTORS = 0.9, 100, ("%", "‰")

# Signs of currencies that one code stands for.
_CODES = {"€": "EUR", "$": "USD", "US$": "USD", "£": "GBP", "₹": "INR", "zł": "PLN", "Kč": "CZK"}

# Negative numbers of accounting: (5) and 5-.
_NEGATIVES = (r"^\(([^-]*\d[.,]?)\)$", r"^([^-]*\d[.,]?)-$")

# Minus signs, apostrophes and spaces of typography, and their counterparts on a keyboard.
_TYPOGRAPHY = {"\u2212": "-", "\u2019": "'", "\u00a0": " ", "\u202f": " ", "\u2009": " "}


@dataclass(frozen=True, eq=False)
class Survey:
    """A column of text with the decimal marks that its values can be read with.

    Attributes
    ----------
    text : polars series of text, null where a value is missing
    body : the values without a common unit, with the sign in front
    unit : the unit, "" for none
    plain : the numbers, if all values are numbers with a decimal point without any thousands
    """

    text: Any
    body: Any
    plain: Any = None
    unit: str = ""

    @classmethod
    def of(cls, text: Any, *, is_known: bool = False) -> Survey:
        """Return the survey of a column of text, which `is_known` to be numbers or may be."""
        typed = _typed(text)
        unit = unit_of(typed)
        bare = _without_unit(typed, unit)
        body = _without_signs(bare, is_known=is_known)
        return cls(text, body, unit="" if bare is typed else unit)

    @cached_property
    def accepted(self) -> dict[DecimalMark, Any]:
        """Which values can be read with each mark; null where a value is missing."""
        return {mark: self.body.str.contains(_PATTERNS[mark]) for mark in MARKS}

    @cached_property
    def counts(self) -> dict[DecimalMark, int]:
        """Number of values that can be read with each mark."""
        return {mark: int(found.sum()) for mark, found in self.accepted.items()}

    @cached_property
    def n_values(self) -> int:
        """Number of values that are not missing."""
        return len(self.text) - int(self.text.null_count())

    @cached_property
    def mark(self) -> DecimalMark | None:
        """The mark with which all numbers can be read; None if with either, or with neither."""
        marks = [mark for mark in MARKS if self.counts[mark] == int(self.is_number.sum())]
        return marks[0] if len(marks) == 1 else None

    @cached_property
    def is_ambiguous(self) -> bool:
        """Whether the values can be read with either mark, and are other numbers then."""
        if self.mark is not None or self.has_mixed_marks:
            return False
        return bool(self.body.filter(self.is_number).str.contains("[.,]").any())

    @cached_property
    def has_mixed_marks(self) -> bool:
        """Whether some numbers can be read with one mark only and some with the other only."""
        return max(self.counts.values()) < int(self.is_number.sum())

    @cached_property
    def is_all_negative(self) -> bool:
        """Whether all values are negative as accounting writes them, so that none tells of it."""
        return bool(self.text.drop_nulls().str.contains(r"\)$|-$").all())

    @cached_property
    def has_commas(self) -> bool:
        """Whether a value has a comma."""
        return bool(self.body.str.contains(",", literal=True).any())

    @cached_property
    def has_points(self) -> bool:
        """Whether a value has a point."""
        return bool(self.body.str.contains(".", literal=True).any())

    @cached_property
    def is_number(self) -> Any:
        """Which values can be read with one of the marks."""
        point, comma = (self.accepted[mark].fill_null(value=False) for mark in MARKS)
        return point | comma


def is_code(text: Any) -> bool:
    """Return whether values are digits with leading zeros, or whole and too long to be exact."""
    import polars as pl

    if text.str.contains(r"^[+-]?0\d+$").any():
        return True
    long = text.filter(text.str.contains(r"^[+-]?\d{16,}$"))
    if not len(long) or not text.drop_nulls().str.contains(r"^[+-]?\d+$").all():
        return False
    values = long.cast(pl.Int64, strict=False)
    return bool(values.null_count() or (values.abs() > _LARGEST_INTEGER).any())


def read_numbers(survey: Survey, mark: DecimalMark) -> Any:
    """Return the values as Int64 if all are whole, else as Float64; null where one is no number.

    Whole numbers beyond Int64 are Float64.
    """
    import polars as pl

    if survey.plain is not None and mark == "point":
        return survey.plain
    groups, decimal = (",", ".") if mark == "point" else (".", ",")
    is_number = survey.accepted[mark].fill_null(value=False)
    body = survey.body.zip_with(is_number, pl.Series([None], dtype=pl.String))
    plain = body.str.replace_many([groups, " ", "'"], ["", "", ""])
    whole = plain.cast(pl.Int64, strict=False)
    if whole.null_count() == plain.null_count():
        return whole
    return plain.str.replace(decimal, ".", literal=True).cast(pl.Float64, strict=False)


def plain_numbers(text: Any) -> Any | None:
    """Return text that is numbers with a decimal point or whole ones as such, None if it is not."""
    import polars as pl

    for kind in (pl.Int64, pl.Float64):
        numbers = text.cast(kind, strict=False)
        if numbers.null_count() == text.null_count():
            return numbers
    return None


def _typed(text: Any) -> Any:
    """Return text with the signs and spaces of a keyboard."""
    return text.str.replace_many(list(_TYPOGRAPHY), list(_TYPOGRAPHY.values()))


def unit_of(text: Any) -> str:
    """Return the unit that most values with a digit have, "" if they have none."""
    numeric = text.filter(text.str.contains(r"\d").fill_null(value=False))
    found = [_FIRST_UNIT.search(value) for value in numeric.head(_LOOKED_AT)]
    counts = Counter(singular(one[1] or one[2]) for one in found if one is not None)
    return counts.most_common(1)[0][0] if counts else ""


def singular(unit: str) -> str:
    """Return a unit without the s of the plural: years are in the unit year."""
    return unit.removesuffix("s") if len(unit) > len("ms") else unit


def is_same_unit(one: str, other: str) -> bool:
    """Return whether two units are the same, such as € and EUR."""
    return _CODES.get(one, one) == _CODES.get(other, other)


def _without_unit(text: Any, unit: str) -> Any:
    """Return text without the unit that nearly all its values with a digit have.

    The others have to be numbers alone, else all values keep what they have. A bare number among
    per cents may be a share, and is no number here unless it is zero. Accounting writes a zero as a
    unit with a dash.
    """
    import polars as pl

    if not unit:
        return text
    numeric = text.str.contains(r"\d").fill_null(value=False)
    one = re.escape(unit) + ("s?" if unit.isalpha() and len(unit) > 1 else "")
    for pattern, bare in (
        (rf"^([-+(]?)\s*{one}\s*([-+]?)", "${1}${2}"), (rf"\s*{one}(\)?-?)$", "${1}"),
    ):  # fmt: skip
        has = text.str.contains(pattern).fill_null(value=False)
        others = text.filter(numeric & ~has)
        alone = not len(others) or bool(others.str.contains(_ANY_NUMBER).all())
        if has.sum() < _SHARE_OF_UNIT * numeric.sum() or not alone:
            continue
        without = text.str.replace(pattern, bare).str.replace(r"^\s*-\s*$", "0")
        if unit not in FACTORS:
            return without
        may_be_share = ~has & ~text.str.contains(r"^[-+]?0*[.,]?0*$").fill_null(value=True)
        return without.zip_with(~may_be_share, pl.Series(["?"]))
    return text


def _without_signs(text: Any, *, is_known: bool) -> Any:
    """Return text with negative numbers as -5 where accounting writes (5) or 5-.

    Unless the column is known to be numbers, only where no value has a minus sign in front: else
    brackets or dashes may mean something else.
    """
    values = text.drop_nulls()
    if values.str.starts_with("-").any() and not is_known:
        return text
    for pattern in _NEGATIVES:
        if values.str.contains(pattern).any():
            text = text.str.replace(pattern, "-${1}")
    return text
