"""Dates as people write them: 2020-01-31, 31.1.2020, 1/31/20 5:30 PM, 31-Jan-2020.

01/02/2020 can be read in two ways: `date_orders` decides by the other values of the column, then
by the other columns of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kmeans_kernel.data.tables._table import DateOrder

ORDERS: tuple[DateOrder, ...] = ("day-first", "month-first")

_SHORT_MONTH = (
    r"(?:[Jj][Aa][Nn]|[Ff][Ee][Bb]|[Mm][Aa][Rr]|[Aa][Pp][Rr]|[Mm][Aa][Yy]|[Jj][Uu][NnLl]|"
    r"[Aa][Uu][Gg]|[Ss][Ee][Pp]|[Oo][Cc][Tt]|[Nn][Oo][Vv]|[Dd][Ee][Cc])"
)
_MONTH = _SHORT_MONTH + "[a-z]*"

DOTTED = r"\d{1,2}\.\d{1,2}\.\d{4}"

# Patterns of the date, with the format of each; {day} and {month} stand in the order of the file.
_FORMATS = {
    r"\d{4}-\d{1,2}-\d{1,2}": "%Y-%m-%d",
    r"\d{4}/\d{1,2}/\d{1,2}": "%Y/%m/%d",
    r"\d{4}\.\d{1,2}\.\d{1,2}": "%Y.%m.%d",
    DOTTED: "{a}.{b}.%Y",
    r"\d{1,2}/\d{1,2}/\d{4}": "{a}/{b}/%Y",
    r"\d{1,2}-\d{1,2}-\d{4}": "{a}-{b}-%Y",
    r"\d{1,2}\.\d{1,2}\.\d{2}": "{a}.{b}.%y",
    r"\d{1,2}/\d{1,2}/\d{2}": "{a}/{b}/%y",
    r"\d{1,2}-\d{1,2}-\d{2}": "{a}-{b}-%y",
    rf"\d{{1,2}}-{_MONTH}-\d{{4}}": "%d-%b-%Y",
    rf"\d{{1,2}}-{_MONTH}-\d{{2}}": "%d-%b-%y",
    rf"\d{{1,2}}\.? {_MONTH}\.?,? \d{{4}}": "%d %b %Y",
    rf"{_MONTH}\.? \d{{1,2}},? \d{{4}}": "%b %d %Y",
}

# The first of the hundred years that two digits stand for, as in Excel. It is fixed, so that a
# model reads the same text next year as this year; births lie before its end, and most plans.
FIRST_SHORT_YEAR = 1930

# Share of the values 31.1.20 whose day is beyond 12, as hardly a part of versions (1.7.11) is.
_LARGE_DAYS = 0.25

# Values in which a first date is looked for.
_LOOKED_AT = 100

_TIME = (
    r"(?:[T ]\s*(?<hour>\d{1,2}):(?<minute>\d{2})"
    r"(?::(?<second>\d{2})(?:[.,](?<fraction>\d{1,9}))?)?"
    r"\s*(?<half>[AaPp]\.?[Mm]\.?)?\s*(?<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?)?"
)


@dataclass(frozen=True, eq=False)
class Dates:
    """A column of text with the dates in it, maybe with times.

    Attributes
    ----------
    text : polars series of text, null where a value is missing
    pattern : the key of the format of most values
    """

    text: Any
    pattern: str

    @cached_property
    def readings(self) -> dict[DateOrder, Any]:
        """The dates in each order of day and month; null where a value is none."""
        orders = ORDERS if self.has_order else ORDERS[:1]
        return {order: _read_all(self.text, self.pattern, order) for order in orders}

    @cached_property
    def counts(self) -> dict[DateOrder, int]:
        """Number of dates in each order of day and month."""
        return {order: len(dates) - dates.null_count() for order, dates in self.readings.items()}

    @cached_property
    def n_values(self) -> int:
        """Number of values that are not missing."""
        return len(self.text) - int(self.text.null_count())

    @cached_property
    def order(self) -> DateOrder | None:
        """The order of day and month, None if the values do not tell, or there is no question."""
        if not self.has_order:
            return None
        day_first, month_first = (self.counts[order] for order in ORDERS)
        if day_first == month_first and r"\." not in self.pattern:
            return None
        # Where points separate the parts of a date, the day comes first.
        return "day-first" if day_first >= month_first else "month-first"

    @property
    def is_ambiguous(self) -> bool:
        """Whether the values are other dates in another order of day and month."""
        if not self.has_order or self.order is not None:
            return False
        first, second = self.readings.values()
        return not first.equals(second)

    @property
    def is_dotted(self) -> bool:
        """Whether the dates are written as in countries with a decimal comma: 31.12.2020."""
        return self.pattern == DOTTED

    @property
    def has_short_years(self) -> bool:
        """Whether the years have two digits."""
        return _FORMATS[self.pattern].endswith("%y")

    @cached_property
    def is_sure(self) -> bool:
        """Whether the values are dates, and not versions (1.7.11) or sizes (10-12-20).

        Those have neither zeros in front of single digits nor days beyond 12.
        """
        if not (self.has_order and self.has_short_years) or "/" in self.pattern:
            return True
        values = self.text.drop_nulls()
        if values.str.contains(r"^\d\d\D\d\d\D").all():
            return bool(values.str.contains(r"^0|^\d\d\D0").any())
        large = values.str.contains(r"^(1[3-9]|[23]\d)\.").sum()
        return self.counts["day-first"] == self.n_values and large >= _LARGE_DAYS * self.n_values

    @property
    def has_order(self) -> bool:
        """Whether the format has day and month in the order of the file."""
        return "{a}" in _FORMATS[self.pattern]


@dataclass(frozen=True)
class Orders:
    """Orders of day and month of columns, and on what they rest.

    Attributes
    ----------
    of : the order of each column
    undecided : columns whose order cannot be told
    as_trained : columns where the file does not tell, and the training of a model did
    """

    of: dict[str, DateOrder]
    undecided: list[str] = field(default_factory=list)
    as_trained: list[str] = field(default_factory=list)


def survey_dates(text: Any) -> Dates | None:
    """Return the dates of a column of text, in the format of most; None if it has none."""
    found: Counter[str] = Counter()
    for value in text.drop_nulls().head(_LOOKED_AT):
        matching = (one for one in _FORMATS if re.match(one + r"(?!\d)", value))
        found.update([next(matching, "")])
    del found[""]
    return Dates(text, found.most_common(1)[0][0]) if found else None


def date_orders(
    columns: Mapping[str, Dates],
    given: DateOrder | None = None,
    trained: Mapping[str, DateOrder] | None = None,
) -> Orders:
    """Return the order of day and month of each column.

    Parameters
    ----------
    given : the order that the user names for all columns that can be read with either
    trained : the orders of columns in the file that a model was trained on
    """
    trained = trained or {}
    sure = {name: one.order for name, one in columns.items() if one.order is not None}
    found = Orders({name: one.order or ORDERS[0] for name, one in columns.items()})
    for name, one in columns.items():
        if not one.is_ambiguous:
            continue
        usual = trained.get(name)
        # Columns that are as in training say nothing against the order that this one had there.
        said = {order for other, order in sure.items() if not usual or trained.get(other) != order}
        orders = said | ({usual} if usual else set())
        if given is not None:
            found.of[name] = given
        elif len(orders) == 1:
            (found.of[name],) = orders
            if not said:
                found.as_trained.append(name)
        else:
            found.undecided.append(name)
    return found


def read_dates(dates: Dates, order: DateOrder) -> Any:
    """Return the dates, as Date if none has a time, else as Datetime in UTC."""
    return dates.readings.get(order, dates.readings[ORDERS[0]])


def _read_all(text: Any, pattern: str, order: DateOrder) -> Any:
    """Return the dates of a format, and those of formats that can be read in one way only."""
    import polars as pl

    found = _read(text, pattern, order)
    for other, form in _FORMATS.items():
        if found.null_count() == text.null_count():
            break
        if other == pattern or ("{a}" in form and other != DOTTED):
            continue
        more = _read(text, other, ORDERS[0])
        if more.null_count() == len(more):
            continue
        if found.dtype != more.dtype:
            found, more = found.cast(pl.Datetime("us")), more.cast(pl.Datetime("us"))
        found = found.zip_with(found.is_not_null(), more)
    return found


def _read(text: Any, pattern: str, order: DateOrder) -> Any:
    """Return the dates of a format; null where a value is none."""
    import polars as pl

    first, second = ("%d", "%m") if order == "day-first" else ("%m", "%d")
    form = _FORMATS[pattern].replace("{a}", first).replace("{b}", second)
    parts = text.str.extract_groups(rf"^(?<day>{pattern}){_TIME}$").struct.unnest()
    day = parts["day"]
    if "%b" in form and " " in form:
        day = day.str.replace_all(r"[.,]", "")
    if "%b" in form:
        day = day.str.replace(rf"({_SHORT_MONTH})[a-z]*", "${1}")
    dates = _with_long_years(day, form).str.to_date(form.replace("%y", "%Y"), strict=False)
    if parts["hour"].null_count() == len(parts):
        return dates
    return parts.select(dates.alias("date"), pl.exclude("day")).select(_moment()).to_series()


def _with_long_years(day: Any, form: str) -> Any:
    """Return dates with years of four digits."""
    if not form.endswith("%y"):
        return day
    century, first = divmod(FIRST_SHORT_YEAR, 100)
    years = day.str.slice(-2).cast(int, strict=False)
    century = (years < first).cast(int) + century
    return day.str.head(-2) + century.cast(str) + day.str.slice(-2)


def _moment() -> Any:
    """Return the expression of a date and time in UTC; null for times that are none."""
    import polars as pl

    hour, minute, second = (
        pl.col(name).cast(pl.Int64).fill_null(0) for name in ("hour", "minute", "second")
    )
    half = pl.col("half").str.to_lowercase().str.slice(0, 1)
    of_day = pl.when(half == "p").then(hour % 12 + 12).when(half == "a").then(hour % 12)
    micros = pl.col("fraction").str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64).fill_null(0)
    zone = pl.col("zone").str.replace(":", "")
    offset = pl.when(zone.str.contains(r"^[+-]")).then(
        zone.str.slice(0, 1).replace_strict({"+": 1, "-": -1}, default=1)
        * (zone.str.slice(1, 2).cast(pl.Int64, strict=False) * 60
           + zone.str.slice(3, 2).cast(pl.Int64, strict=False).fill_null(0))
    )  # fmt: skip
    moment = pl.col("date").cast(pl.Datetime("us")) + pl.duration(
        hours=of_day.otherwise(hour),
        minutes=minute - offset.fill_null(0),
        seconds=second,
        microseconds=micros,
    )
    valid = (hour < 24) & (minute < 60) & (second < 60) & (half.is_null() | hour.is_between(1, 12))
    return pl.when(valid.fill_null(value=True)).then(moment)
