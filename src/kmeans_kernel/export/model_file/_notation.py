"""The notation of the training file, kept in the model file: decimal marks, dates, missing values.

It is no part of the estimator: who reads a file for the model may read it as the training file was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kmeans_kernel.export.model_file._file import ModelFileError

# What the notation says of columns by name, and the values that it may have.
_OF_COLUMNS = {"decimal": ("point", "comma"), "dates": ("day-first", "month-first")}

# Most characters of a unit.
_LONGEST_UNIT = 20


def describe_notation(notation: Mapping[str, Any]) -> dict[str, Any]:
    """Return a notation as JSON: "decimal" and "dates" and "units" by column, and "missing"."""
    described: dict[str, Any] = {part: dict(notation[part]) for part in _OF_COLUMNS}
    units = dict(notation.get("units", {}))
    return {**described, "missing": list(notation["missing"]), "units": units}


def build_notation(tree: Any) -> dict[str, Any] | None:
    """Return the notation that JSON describes, validated; None if there is none."""
    if tree is None:
        return None
    if not isinstance(tree, dict) or set(tree) - {"units"} != {*_OF_COLUMNS, "missing"}:
        raise ModelFileError("its notation is not described by its fields")
    units = tree.setdefault("units", {})
    short = isinstance(units, dict) and all(
        isinstance(unit, str) and 0 < len(unit) <= _LONGEST_UNIT for unit in units.values()
    )
    if not short:
        raise ModelFileError(f"units of its notation is {units!r}")
    for part, values in _OF_COLUMNS.items():
        found = tree[part]
        if not isinstance(found, dict) or not all(value in values for value in found.values()):
            raise ModelFileError(f"{part} of its notation is {found!r}")
    missing = tree["missing"]
    if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
        raise ModelFileError(f"missing of its notation is {missing!r}")
    return tree
