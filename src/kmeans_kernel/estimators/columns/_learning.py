"""What each column of a table is: found by its type and its values, or as the user says."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators.columns._columns import (
    DATE_PARTS,
    Column,
    Level,
    as_keys,
    as_numbers,
    as_seconds,
    as_words,
    date_parts,
)
from kmeans_kernel.estimators.columns._frames import RawColumn
from kmeans_kernel.estimators.columns._values import is_level_number

# What a user may say that a column is.
COLUMN_TYPES = ("number", "category", "date", "drop")

# A level with fewer rows than this, or than a share of a small table, has a place with other rare
# ones; so do those that are less frequent than the hundredth.
_RARE_LEVEL, _SHARE_OF_RARE, _MANY_LEVELS, _MOST_LEVELS = 5, 0.02, 100, 400

# Text with nearly as many levels as rows names the rows; in smaller tables it may be chance.
_SHARE_OF_ID, _LEAST_ROWS_OF_ID = 0.9, 20

_MOST_DECIMALS = 6


class DroppedColumnWarning(UserWarning):
    """Columns are left out, as an id with as many levels as rows."""


def learn_columns(
    raws: Sequence[RawColumn],
    column_types: Mapping[str, str] | None,
    owner: str,
    weights: Array | None = None,
) -> tuple[Column, ...]:
    """Return what the columns are; the ids among them are named in a warning.

    Rows of weight zero do not count, and a row of weight 2 counts as two. Weights that are not all
    whole numbers count relative to their mean.
    """
    types = _check_types(raws, column_types, owner)
    if weights is not None:
        used = weights > 0
        raws, weights = [raw.at(used) for raw in raws], weights[used]
        whole = bool((weights == np.rint(weights)).all())
        weights = weights if whole or not len(weights) else weights / weights.mean()
    columns, wrong = list[Column](), list[str]()
    for raw in raws:
        try:
            columns.append(_learn_column(raw, types.get(raw.name), weights))
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise ValueError(" ".join(wrong))
    ids = [column.name for column in columns if column.reason == "id"]
    if ids:
        one = len(ids) == 1
        warnings.warn(
            f"{'Column' if one else 'Columns'} {', '.join(map(repr, ids))} "
            f"{'has' if one else 'have'} nearly as many levels as rows, as an id has, and "
            f"{'is' if one else 'are'} left out. To say otherwise, or to leave out this warning: "
            f'column_types={{{ids[0]!r}: "category"}} or "drop".',
            DroppedColumnWarning,
            stacklevel=2,
        )
    if not any(column.n_levels for column in columns):
        reasons = ", ".join(f"{column.name!r} ({column.reason})" for column in columns[:8])
        raise ValueError(f"X has no column to learn from: {reasons}. Give columns that vary.")
    return tuple(columns)


def _check_types(
    raws: Sequence[RawColumn], column_types: Mapping[str, str] | None, owner: str
) -> dict[str, str]:
    """Return the types that the user gave; ValueError for unknown columns or types, all at once."""
    if column_types is None:
        return {}
    expected = (
        f"a dict from names of columns to one of {', '.join(map(repr, COLUMN_TYPES))}, or None"
    )
    problem = None
    if not isinstance(column_types, Mapping):
        problem = f"got {column_types!r}"
    else:
        names = {raw.name for raw in raws}
        strange = [f"{name!r} is no column of X" for name in column_types if name not in names]
        strange += [
            f"{name!r} has the type {kind!r}"
            for name, kind in column_types.items()
            if kind not in COLUMN_TYPES
        ]
        problem = "; ".join(strange)
    if problem:
        raise ValueError(f"The 'column_types' parameter of {owner} must be {expected}; {problem}.")
    return dict(column_types)


def _learn_column(raw: RawColumn, given: str | None, weights: Array | None) -> Column:
    """Return what a column is: as given, else by the type of its values."""
    if given == "drop":
        return Column(raw.name, "dropped", reason="as asked for")
    if raw.type == "missing":
        return Column(raw.name, "dropped", reason="all missing")
    kind = given or raw.type
    if kind in ("number", "date"):
        try:
            values = as_numbers(raw) if kind == "number" else as_seconds(raw)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"Column {raw.name!r} cannot be read as {kind}s: {error}. Convert it first, or "
                f'leave it a category: column_types={{{raw.name!r}: "category"}}.'
            ) from None
        return _number(raw.name, values) if kind == "number" else _date(raw.name, values)
    return _category(raw, weights, given=given is not None)


def _number(name: str, values: Array) -> Column:
    known = values[~np.isnan(values)]
    missing = len(known) < len(values)
    if not len(known):
        return Column(name, "dropped", reason="all missing")
    if not missing and known.min() == known.max():
        return Column(name, "dropped", reason="constant")
    return Column(
        name,
        "number",
        missing=missing,
        minimum=float(known.min()),
        maximum=float(known.max()),
        decimals=_decimals(known),
    )


def _decimals(numbers: Array) -> int:
    """Return the most decimal places of some numbers, at most `_MOST_DECIMALS`."""
    some = numbers[:1000]
    for places in range(_MOST_DECIMALS):
        if np.allclose(some, np.round(some, places), rtol=1e-12, atol=0.0):
            return places
    return _MOST_DECIMALS


def _date(name: str, seconds: Array) -> Column:
    known = seconds[~np.isnan(seconds)]
    missing = len(known) < len(seconds)
    if not len(known):
        return Column(name, "dropped", reason="all missing")
    parts = date_parts(known, DATE_PARTS)
    varying = [part for part, values in zip(DATE_PARTS, parts.T, strict=True) if np.ptp(values) > 0]
    if not varying and not missing:
        return Column(name, "dropped", reason="constant")
    return Column(
        name,
        "date",
        parts=tuple(dict.fromkeys(["days", *varying])),
        missing=missing,
        minimum=float(known.min()),
        maximum=float(known.max()),
    )


def _category(raw: RawColumn, weights: Array | None, *, given: bool) -> Column:
    """Return a category: frequent levels have a place each, rare ones share one."""
    values = _level_keys(raw)
    counts: Counter[Any] = Counter(value for value in values if value is not None)
    missing = counts.total() < len(values)
    if weights is not None:
        for value, weight in zip(values, weights.tolist(), strict=True):
            if value is not None:
                counts[value] += weight - 1
    known = counts.total()
    kind = "boolean" if set(map(type, counts)) == {bool} else "category"
    if not counts:
        return Column(raw.name, "dropped", reason="all missing")
    if len(counts) == 1 and not missing:
        return Column(raw.name, "dropped", reason="constant")
    names_rows = len(counts) > _SHARE_OF_ID * known and known >= _LEAST_ROWS_OF_ID
    if names_rows and not given:
        return Column(raw.name, "dropped", reason="id")
    levels = _frequent(counts)
    rare = len(levels) < len(counts)
    return Column(raw.name, kind, tuple(levels), rare=rare, missing=missing)  # type: ignore[arg-type]


def _level_keys(raw: RawColumn) -> Sequence[Any]:
    """Return levels of one type: text, unless all are booleans or all numbers of float64."""
    if raw.exact is not None or raw.type == "date":
        return as_words(raw)
    known = [value for value in raw.values.tolist() if value is not None and value == value]
    same = all(type(value) is bool for value in known) or all(map(is_level_number, known))
    return as_keys(raw) if same else as_words(raw)


def _frequent(counts: Counter[Level]) -> list[Level]:
    """Return the levels with a place of their own, the most frequent first.

    Levels of the same frequency are treated alike, so that their names do not decide, up to
    `_MOST_LEVELS`. A column of two levels keeps both.
    """
    ranked = counts.most_common()
    if len(ranked) <= 2:
        return [level for level, _ in ranked]
    least = min(_RARE_LEVEL, max(1, int(_SHARE_OF_RARE * counts.total())))
    if len(ranked) > _MANY_LEVELS:
        least = max(least, ranked[_MANY_LEVELS - 1][1])
    frequent = [level for level, count in ranked[:_MOST_LEVELS] if count >= least]
    # A single rare level has the place of the rare ones to itself.
    return frequent if len(ranked) - len(frequent) != 1 else [level for level, _ in ranked]
