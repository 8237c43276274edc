"""Levels of categories that a model does not know, in the rows that it is to classify."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# Most columns, and most levels of each, that are told of.
_MOST_COLUMNS, _MOST_LEVELS = 12, 5


def unknown_levels(columns: Iterable[Any], X: Any) -> list[str]:
    """Return sentences that name the levels without a place of their own in a model.

    Parameters
    ----------
    columns : the columns of the model
    X : polars frame of the columns of the model; an array has no categories
    """
    notes: list[str] = []
    for column in columns:
        name = str(column.name)
        if column.kind != "category" or name not in getattr(X, "columns", ()):
            continue
        if str(X[name].dtype) == "String" and all(isinstance(one, str) for one in column.levels):
            notes += _note(name, X[name], column)
    more = len(notes) - _MOST_COLUMNS
    return [*notes[:_MOST_COLUMNS],
            *([f"{more} more columns have such values."] if more > 0 else [])]  # fmt: skip


def _note(name: str, values: Any, column: Any) -> list[str]:
    """Return a sentence if a column of text has unknown levels."""
    from kmeans_kernel.core.arrays.encoding import UNKNOWN_LEVEL
    from kmeans_kernel.estimators.columns._frames import RawColumn

    codes = column.code(RawColumn(name, "category", values.to_numpy()))[:, 0]
    unknown = values.filter(codes == (len(column.levels) if column.rare else UNKNOWN_LEVEL))
    if not len(unknown):
        return []
    counts = unknown.value_counts(sort=True)
    shown = [
        f"{level!r} ({n} row{'s' if n > 1 else ''})"
        for level, n in counts.sort(["count", name], descending=[True, False]).rows()
    ]
    more = len(shown) - _MOST_LEVELS
    listed = ", ".join(shown[:_MOST_LEVELS]) + (f" and {more} more" if more > 0 else "")
    seen = "rarely or never" if column.rare else "never"
    return [f"{name!r} has values that training {seen} had: {listed}."]
