"""The type of each column: numbers, true and false, dates, else text.

All values of a column decide, and for numbers and dates that can be read in two ways the other
columns too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kmeans_kernel.data.tables._columns._dates import Dates, date_orders, read_dates, survey_dates
from kmeans_kernel.data.tables._columns._marks import Marks, are_addresses, decimal_marks
from kmeans_kernel.data.tables._columns._missing import is_marker
from kmeans_kernel.data.tables._columns._numbers import (
    FACTORS,
    Survey,
    is_code,
    is_same_unit,
    plain_numbers,
    read_numbers,
)
from kmeans_kernel.data.tables._columns._problems import Problems
from kmeans_kernel.data.tables._table import DateOrder, Notation, Reading
from kmeans_kernel.utils.words import FALSE_WORDS, TRUE_WORDS

# Share of the values of a column from which words beside numbers are a problem, else the column is
# text; and the share of numbers from which text is mentioned.
_NEARLY_ALL, _MANY = 0.9, 0.5

# Share of numbers with leading zeros up to which these are mentioned: codes have more of them.
_FEW_ZEROS = 0.05


def type_columns(
    frame: Any,
    names: Sequence[str],
    problems: Problems,
    how: Reading,
    kinds: Mapping[str, str],
    separator: str = ",",
) -> tuple[dict[str, Any], Notation]:
    """Return columns of Int64, Float64, Boolean, String, Date or Datetime by name, and a notation.

    Parameters
    ----------
    frame : polars frame of all columns of the file, text without markers of missing values
    names : names of the columns that are wanted; the others may tell how numbers are written
    problems : collects what is in the way
    kinds : "number", "category", "boolean" or "date" for columns whose kind is known
    separator : the separator of the file
    """
    found = {name: _look(frame[name], kinds.get(name), problems) for name in names}
    marks = _marks_of(found, frame, how, separator)
    surveys = {name: one for name, one in found.items() if isinstance(one, Survey)}
    trained = {} if how.trained is None else how.trained.units
    for name, survey in surveys.items():
        found[name] = read_numbers(survey, marks.of[name])
        if not _is_unit_of_training(survey, trained.get(name)):
            problems.add_other_unit(name, survey, trained[name])
        elif name in marks.undecided:
            problems.add_undecided_mark(name, survey)
        elif survey.has_mixed_marks:
            problems.add_mixed_marks(name, survey)
        else:
            problems.add_words(name, survey.text, found[name])
            if survey.is_all_negative and name not in kinds:
                problems.note_negative(name, survey, found[name])
    problems.note_marks(marks, surveys)
    orders = _read_dates(found, frame, problems, how, kinds)
    for name, column in found.items():
        problems.add_large(name, column)
    numeric = [name for name, column in found.items() if column.dtype.is_numeric()]
    units = {name: one.unit for name, one in surveys.items() if one.unit and name in numeric}
    return found, Notation(marks.known(surveys, numeric, how.decimal), orders, units=units)


def _is_unit_of_training(survey: Survey, unit: str | None) -> bool:
    """Return whether numbers have the unit of training, or none where it changes no number."""
    if unit is None or not survey.is_number.any():
        return True
    return is_same_unit(survey.unit, unit) or (survey.unit == "" and unit not in FACTORS)


def _marks_of(found: Mapping[str, Any], frame: Any, how: Reading, separator: str) -> Marks:
    """Return the decimal marks of columns; columns without a role are looked at if they help."""
    trained = None if how.trained is None else how.trained.decimal

    def decide(columns: Mapping[str, Any]) -> Marks:
        surveys = {name: one for name, one in columns.items() if isinstance(one, Survey)}
        dotted = any(isinstance(one, Dates) and one.is_dotted for one in columns.values())
        return decimal_marks(
            surveys, separator, how.decimal, trained=trained, has_dotted_dates=dotted
        )

    marks = decide(found)
    if not (marks.undecided or marks.as_trained or marks.by_dates):
        return marks
    others = {name: _look(frame[name], None, Problems("", {})) for name in frame.columns
              if name not in found}  # fmt: skip
    return decide({**found, **others})


def _read_dates(
    found: dict[str, Any], frame: Any, problems: Problems, how: Reading, kinds: Mapping[str, str]
) -> dict[str, DateOrder]:
    """Put dates, or text where their order cannot be told, in place of surveys; return orders."""
    dates = {name: one for name, one in found.items() if isinstance(one, Dates)}
    orders = date_orders(dates, how.dates, None if how.trained is None else how.trained.dates)
    for name, one in dates.items():
        if name in orders.undecided:
            problems.add_undecided_order(name, one.text, is_date=kinds.get(name) == "date")
            found[name] = frame[name]
        else:
            found[name] = read_dates(one, orders.of[name])
            problems.add_words(name, one.text, found[name], "date")
    problems.note_orders(orders, dates)
    short = {name: one for name, one in dates.items()
             if one.has_short_years and name not in orders.undecided}  # fmt: skip
    problems.note_short_years(short, found)
    return {name: orders.of[name] for name, one in dates.items()
            if one.has_order and name not in orders.undecided}  # fmt: skip


def _look(column: Any, kind: str | None, problems: Problems) -> Any:
    """Return a column with its type, or a survey of the numbers or dates in it."""
    import polars as pl

    if column.dtype != pl.String:
        return _natural(column, kind, problems)
    if kind == "category":
        return column
    if column.null_count() == len(column):
        return column.cast(pl.Float64)
    if kind != "date" and _is_boolean(column):
        return column.str.to_lowercase() == "true"
    if kind == "boolean":
        return _booleans(column, problems)
    numbers = plain_numbers(column) if kind in (None, "number") else None
    if numbers is None:
        return _look_at_text(column, kind, problems)
    if kind is None and is_code(column):
        zeros = column.str.contains(r"^[+-]?0\d+$").fill_null(value=False)
        if 0 < zeros.sum() <= _FEW_ZEROS * len(column):
            problems.note_leading_zeros(column, zeros)
        return column
    return numbers if numbers.dtype == pl.Int64 else Survey(column, column, numbers.fill_nan(None))


def _look_at_text(column: Any, kind: str | None, problems: Problems) -> Any:
    """Return the dates or numbers in a column that has other values too, or the column as text."""
    n_values = len(column) - column.null_count()
    values = _without(column, is_marker(column, words=True))
    dates = survey_dates(values) if kind in (None, "date") else None
    if dates is not None and (kind or max(dates.counts.values()) >= _NEARLY_ALL * n_values):
        if kind or dates.is_sure:
            return dates
        problems.note_unsure_dates(column.name, dates)
        return column
    if kind == "date":
        problems.add_words(column.name, values, _without(values, values.is_not_null()), "date")
        return column
    if kind is None and are_addresses(values):
        return column
    survey = Survey.of(values, is_known=kind == "number")
    n_numbers = int(survey.is_number.sum())
    is_identifier = is_code(values) or is_code(survey.body)
    if kind == "number" or (n_numbers >= _NEARLY_ALL * n_values and not is_identifier):
        return survey
    if not n_numbers or is_identifier:
        return column
    marks = _without(column, is_marker(column, words=False))
    if n_numbers == len(marks) - marks.null_count():  # nothing but punctuation beside the numbers
        return Survey.of(marks)
    if n_numbers >= _MANY * n_values:
        problems.note_text(column, survey.is_number)
    return column


def _is_boolean(column: Any) -> bool:
    """Return whether all values are the words true or false."""
    if column.drop_nulls()[0].lower() not in ("true", "false"):
        return False
    return bool(column.drop_nulls().str.to_lowercase().is_in(["true", "false"]).all())


def _booleans(column: Any, problems: Problems) -> Any:
    """Return a column that a model knows as true and false, written as 1 and 0, yes and no, …."""
    values = _without(column, is_marker(column, words=True))
    lowered = values.str.to_lowercase()
    is_true = lowered.is_in(TRUE_WORDS)
    found = is_true.zip_with(is_true | lowered.is_in(FALSE_WORDS), is_true.clear(len(is_true)))
    problems.add_words(column.name, values, found, "boolean")
    problems.note_booleans(values)
    return found


def _without(column: Any, unwanted: Any) -> Any:
    """Return a column with nulls in place of unwanted values."""
    import polars as pl

    return column.zip_with(~unwanted, pl.Series([None], dtype=pl.String))


def _natural(column: Any, kind: str | None, problems: Problems) -> Any:
    """Return a column of a file with types in one of our types."""
    import polars as pl

    dtype = column.dtype
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Unknown):
        problems.add_type(column)
        return column
    if kind == "category" or dtype in (pl.Categorical, pl.Enum, pl.Time):
        return as_text(column)
    if dtype.is_integer():
        return column.cast(pl.Float64 if dtype == pl.UInt64 else pl.Int64)
    if dtype.is_numeric() or dtype == pl.Null:
        return column.cast(pl.Float64).fill_nan(None)
    if dtype == pl.Duration:
        return column.dt.total_microseconds().cast(pl.Float64) / 1e6
    if dtype == pl.Datetime:
        if dtype.time_zone is not None:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return column.dt.cast_time_unit("us")
    return column


def as_text(column: Any) -> Any:
    """Return a column as text; whole numbers have no decimals, as CSV has them."""
    import polars as pl

    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = column.cast(pl.Int64, strict=False)
        if (whole.cast(pl.Float64) == column).fill_null(value=True).all():
            column = whole
    return column.cast(pl.String)
