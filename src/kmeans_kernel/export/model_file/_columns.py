"""Conversion of the columns of a table to JSON, and validated reading of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, get_args

from kmeans_kernel.estimators.columns._columns import (
    DATE_PARTS,
    Column,
    ColumnKind,
    Level,
    n_levels_of,
)
from kmeans_kernel.export.model_file._file import ModelFileError

_KEYS = frozenset(field.name for field in fields(Column))

# Levels that are whole numbers fit into 64 bits, as in every frame and in the server's JSON.
_LARGEST_LEVEL = 2**63

# Decimal places beyond which a float64 has none.
_MOST_DECIMALS = 20


def describe_columns(columns: Iterable[Column] | None) -> list[dict[str, Any]] | None:
    """Return the columns as JSON; ValueError if they cannot be read again."""
    if columns is None:
        return None
    described = [
        {**_fields_of(column), "levels": list(column.levels), "parts": list(column.parts)}
        for column in columns
    ]
    try:
        build_columns(described)
    except ModelFileError as error:
        raise ValueError(
            f"The columns cannot be saved, as {error}. Rename or convert them, then fit again."
        ) from None
    return described


def _fields_of(column: Column) -> dict[str, Any]:
    """Return the fields of a column by name."""
    return {field.name: getattr(column, field.name) for field in fields(column)}


def build_columns(tree: Any) -> tuple[Column, ...] | None:
    """Return the columns that JSON describes, validated; None if there are none."""
    if tree is None:
        return None
    if not isinstance(tree, list):
        raise ModelFileError("its columns are not described by a list")
    columns = tuple(_build_column(one) for one in tree)
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ModelFileError(f"two columns have the name {twice!r}")
    if not n_levels_of(columns):
        raise ModelFileError("no column is left to predict from")
    return columns


def check_names(columns: Sequence[Column] | None, estimator: Any) -> None:
    """Raise `ModelFileError` unless an estimator has the number and names of its columns."""
    if columns is None:
        return
    if len(columns) != estimator.n_features_in_:
        raise ModelFileError(f"it has {len(columns)} columns of {estimator.n_features_in_}")
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and names.tolist() != [column.name for column in columns]:
        raise ModelFileError("its columns are not those of its features")


def _build_column(tree: Any) -> Column:
    if not isinstance(tree, dict) or set(tree) != _KEYS:
        raise ModelFileError("a column is not described by its fields")
    name, kind, reason = tree["name"], tree["kind"], tree["reason"]
    if not _is_text(name):
        raise ModelFileError(f"a column has the name {name!r}")
    if kind not in get_args(ColumnKind):
        raise ModelFileError(f"the column {name!r} is a {kind!r}")
    if reason is not None and not (_is_text(reason) and kind == "dropped"):
        raise ModelFileError(f"the column {name!r} is left out because of {reason!r}")
    for flag in ("rare", "missing"):
        if not isinstance(tree[flag], bool):
            raise ModelFileError(f"{flag} of the column {name!r} is {tree[flag]!r}")
    minimum, maximum = (_bound(tree, end) for end in ("minimum", "maximum"))
    if minimum is not None and maximum is not None and minimum > maximum:
        raise ModelFileError(f"the column {name!r} has its minimum above its maximum")
    return Column(
        name,
        kind,
        levels=_levels(tree),
        rare=tree["rare"],
        parts=_parts(tree),
        reason=reason,
        missing=tree["missing"],
        minimum=minimum,
        maximum=maximum,
        decimals=_decimals(tree),
    )


def _levels(tree: dict[str, Any]) -> tuple[Level, ...]:
    """Return the levels of a column; they are of one type, and differ."""
    name, kind, levels = tree["name"], tree["kind"], tree["levels"]
    if not isinstance(levels, list) or not all(_is_level(one) for one in levels):
        raise ModelFileError(f"the column {name!r} has levels that are no levels")
    allowed = {"boolean": ({bool},), "category": ({str}, {int, float})}.get(kind, ())
    types = {type(level) for level in levels}
    if types and not any(types <= one for one in allowed):
        raise ModelFileError(f"the column {name!r}, a {kind}, has levels of another type")
    if len(set(levels)) < len(levels):
        raise ModelFileError(f"the column {name!r} has a level twice")
    if tree["rare"] and kind != "category":
        raise ModelFileError(f"the column {name!r}, a {kind}, has rare levels")
    if allowed and not levels and not tree["rare"]:
        raise ModelFileError(f"the column {name!r} has no levels")
    return tuple(levels)


def _parts(tree: dict[str, Any]) -> tuple[str, ...]:
    """Return the parts of a date, the days first."""
    name, parts = tree["name"], tree["parts"]
    if not isinstance(parts, list) or not all(part in DATE_PARTS for part in parts):
        raise ModelFileError(f"the column {name!r} has parts that no date has")
    if len(set(parts)) < len(parts) or (parts[:1] == ["days"]) != (tree["kind"] == "date"):
        raise ModelFileError(f"the column {name!r} has the parts {parts!r}")
    return tuple(parts)


def _decimals(tree: dict[str, Any]) -> int | None:
    decimals = tree["decimals"]
    if decimals is None or (type(decimals) is int and 0 <= decimals <= _MOST_DECIMALS):
        return decimals
    raise ModelFileError(f"the column {tree['name']!r} has {decimals!r} decimals")


def _bound(tree: dict[str, Any], end: str) -> float | None:
    value = tree[end]
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ModelFileError(f"{end} of the column {tree['name']!r} is {value!r}")
    return float(value)


def _is_level(value: Any) -> bool:
    if type(value) is int:
        return abs(value) <= _LARGEST_LEVEL
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is bool or _is_text(value)


def _is_text(value: Any) -> bool:
    """Return whether a value is text that UTF-8 can hold, which half of a surrogate pair is not."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
