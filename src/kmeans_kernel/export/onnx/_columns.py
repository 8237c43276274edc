"""Columns of a table as ONNX operators: from one tensor for each column to a matrix of numbers.

The numbers are those of `Column.code`, in float64. A tensor of a column has the shape (n, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.encoding import UNKNOWN_LEVEL
from kmeans_kernel.estimators.columns._columns import Column
from kmeans_kernel.export.onnx._graph import FLOAT64, Graph, Name

_MICROSECONDS = 86_400_000_000  # in a day

# Days from 0000-03-01, the first day of an era of 400 years, to 1970-01-01; days of an era.
_DAYS_BEFORE_1970, _DAYS_OF_ERA = 719_468, 146_097


def column_numbers(graph: Graph, columns: Sequence[Column], tensors: Sequence[Name]) -> Name:
    """Return the (n, d) float64 numbers of columns, of which none is dropped."""
    pairs = zip(columns, tensors, strict=True)
    return graph.join([_numbers_of(graph, column, tensor) for column, tensor in pairs])


def reads_text(column: Column) -> bool:
    """Return whether the tensor of a column holds text; else it holds numbers."""
    of_levels = column.kind in ("category", "boolean")
    return of_levels and (not column.levels or isinstance(column.levels[0], str))


def missing_text(column: Column) -> str:
    """Return the text that stands for a missing value: the empty one, unless that is a level."""
    text = ""
    while text in column.levels:
        text += "NaN"
    return text


def _numbers_of(graph: Graph, column: Column, tensor: Name) -> Name:
    if reads_text(column):
        return _places_of_text(graph, column, tensor)
    numbers = graph.cast(tensor, FLOAT64)
    if column.kind == "date":
        return _date_parts(graph, column.parts, numbers)
    return numbers if column.kind == "number" else _places_of_numbers(graph, column, numbers)


def _unknown_place(column: Column) -> int:
    return len(column.levels) if column.rare else UNKNOWN_LEVEL


def _places_of_text(graph: Graph, column: Column, tensor: Name) -> Name:
    """Return the positions of levels that are text."""
    places = graph.op(
        "LabelEncoder",
        tensor,
        op_domain="ai.onnx.ml",
        op_version=2,
        keys_strings=[str(key).encode() for key in (*column.levels, missing_text(column))],
        values_floats=[*map(float, range(len(column.levels))), np.nan],
        default_float=float(_unknown_place(column)),
    )
    return graph.cast(places, FLOAT64)


def _places_of_numbers(graph: Graph, column: Column, numbers: Name) -> Name:
    """Return the positions of levels that are numbers; true is 1 and false is 0."""
    unknown = float(_unknown_place(column))
    levels = np.array(column.levels, dtype=np.float64)
    same = graph.cast(graph.op("Equal", numbers, levels), FLOAT64)
    beyond = np.arange(len(levels), dtype=np.float64) - unknown
    places = graph.op("Add", graph.op("MatMul", same, beyond[:, None]), np.float64(unknown))
    return graph.op("Where", graph.op("IsNaN", numbers), np.float64(np.nan), places)


def _date_parts(graph: Graph, parts: Sequence[str], seconds: Name) -> Name:
    """Return the numbers of dates in seconds since 1970."""
    absent = graph.op("Or", graph.op("IsNaN", seconds), graph.op("IsInf", seconds))
    seconds = graph.op("Where", absent, np.float64(0), seconds)
    found = graph.join([_DATE_PARTS[part](graph, seconds) for part in parts])
    return graph.op("Where", absent, np.float64(np.nan), found)


def _days(graph: Graph, seconds: Name) -> Name:
    return graph.op("Div", seconds, np.float64(86_400))


def _weekday(graph: Graph, seconds: Name) -> Name:
    # 1970 began on a Thursday.
    days = graph.op("Floor", graph.op("Add", _days(graph, seconds), np.float64(3)))
    weeks = graph.op("Floor", graph.op("Div", days, np.float64(7)))
    return graph.op("Sub", days, graph.op("Mul", weeks, np.float64(7)))


def _hour(graph: Graph, seconds: Name) -> Name:
    days = _days(graph, seconds)
    return graph.op("Mul", graph.op("Sub", days, graph.op("Floor", days)), np.float64(24))


def _month(graph: Graph, seconds: Name) -> Name:
    """Return the month, in integers: years are counted from March, so that leap days come last.

    The algorithm is `civil_from_days` of H. Hinnant, "chrono-compatible low-level date algorithms".
    """
    micros = graph.cast(graph.op("Mul", seconds, np.float64(1e6)), np.int64)

    def div(x: Name, y: int) -> Name:
        return graph.op("Div", x, np.int64(y))

    def mod(x: Name, y: int) -> Name:  # never negative, as in Python
        return graph.op("Mod", x, np.int64(y))

    # A quotient of ONNX is rounded towards zero; this one leaves no rest.
    day = div(graph.op("Sub", micros, mod(micros, _MICROSECONDS)), _MICROSECONDS)
    day = mod(graph.op("Add", day, np.int64(_DAYS_BEFORE_1970)), _DAYS_OF_ERA)
    leaps = graph.op("Sub", div(day, 36_524), graph.op("Add", div(day, 1460), div(day, 146_096)))
    year = div(graph.op("Add", day, leaps), 365)
    before = graph.op("Sub", div(year, 100), div(year, 4))  # minus the leap days before the year
    place = graph.op("Sub", day, graph.op("Mul", year, np.int64(365)))
    place = graph.op("Add", place, before)
    # Five months, from March and from August on, have 153 days.
    after_march = div(graph.op("Add", graph.op("Mul", place, np.int64(5)), np.int64(2)), 153)
    month = mod(graph.op("Add", after_march, np.int64(2)), 12)
    return graph.cast(graph.op("Add", month, np.int64(1)), FLOAT64)


_DatePart: TypeAlias = Callable[[Graph, Name], Name]

_DATE_PARTS: dict[str, _DatePart] = {
    "days": _days,
    "month": _month,
    "weekday": _weekday,
    "hour": _hour,
}
