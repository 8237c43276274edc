"""Tables as they come, value by value: values of columns to numbers, and numbers to features."""

import math
from datetime import UTC, datetime, timedelta

from tests.reference import feature_transforms

_START = datetime(1970, 1, 1, tzinfo=UTC)

NAN = float("nan")


def numbers(columns, row):
    """The numbers of a row of values: None is missing, a date is in seconds since 1970."""
    return [
        number for column, value in zip(columns, row, strict=True) for number in code(column, value)
    ]


def code(column, value):
    """The numbers of one value."""
    if column["kind"] == "dropped":
        return []
    if column["kind"] == "number":
        return [NAN if value is None else float(value)]
    if column["kind"] == "date":
        return [NAN if value is None else date_part(value, part) for part in column["parts"]]
    if value is None:
        return [NAN]
    for place, level in enumerate(column["levels"]):
        if isinstance(level, bool) is isinstance(value, bool) and level == value:
            return [float(place)]
    return [float(len(column["levels"])) if column["rare"] else -1.0]


def date_part(seconds, part):
    """A number of a date, by the calendar of Python."""
    date = _START + timedelta(seconds=seconds)
    midnight = datetime(date.year, date.month, date.day, tzinfo=UTC)
    return {
        "days": seconds / 86400,
        "month": float(date.month),
        "weekday": float(date.weekday()),
        "hour": (date - midnight).total_seconds() / 3600,
    }[part]


def encode(row, encoding):
    """The features of a row of numbers: values, steps, levels, missing."""
    return [
        *_values(row, encoding),
        *_steps(row, encoding),
        *_levels(row, encoding),
        *_missing(row, encoding),
    ]


def _values(row, encoding):
    if encoding["values"] is None:
        return []
    chosen = [row[j] for j in encoding["value_columns"]]
    return feature_transforms.apply(chosen, **encoding["values"])


def _steps(row, encoding):
    names = ("step_columns", "step_starts", "step_widths", "step_means", "step_gains")
    found = []
    for j, start, width, mean, gain in zip(*(encoding[name] for name in names), strict=True):
        if math.isnan(row[j]):
            found.append(0.0)
        elif row[j] <= start:
            found.append(gain * (0.0 - mean))
        elif row[j] >= start + width:
            found.append(gain * (1.0 - mean))
        else:
            found.append(gain * ((row[j] - start) / width - mean))
    return found


def _levels(row, encoding):
    names = ("level_columns", "level_codes", "level_shares")
    found = []
    for j, level, share in zip(*(encoding[name] for name in names), strict=True):
        if math.isnan(row[j]) or row[j] < 0:
            found.append(0.0)
        else:
            found.append((1.0 if row[j] == level else 0.0) - share)
    return found


def _missing(row, encoding):
    names = ("missing_columns", "missing_shares")
    return [
        (1.0 if math.isnan(row[j]) else 0.0) - share
        for j, share in zip(*(encoding[name] for name in names), strict=True)
    ]


def knots(column, weights, steps):
    """The ends of the steps: the distinct numbers if few, else the middles of two quantiles."""
    copies = sorted(
        x for x, w in zip(column, weights, strict=True) for _ in range(w) if not math.isnan(x)
    )
    if len(set(copies)) <= steps + 1:
        return sorted(set(copies))
    n, found = len(copies), []
    for k in range(steps + 1):
        lower = copies[max(-(-k * n // steps), 1) - 1]
        upper = copies[n - max(-(-(steps - k) * n // steps), 1)]
        found.append((lower + upper) / 2)
    return sorted(set(found))


def shares(values, column, weights):
    """The frequencies of some values among those that are known."""
    known = [(x, w) for x, w in zip(column, weights, strict=True) if not math.isnan(x) and x >= 0]
    total = sum(w for _, w in known) or 1
    return [sum(w for x, w in known if x == value) / total for value in values]
