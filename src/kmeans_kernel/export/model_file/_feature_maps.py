"""Conversion of feature transforms and column encodings to arrays, and validated reading of them.

The tree has the kind, and for an encoding the number of columns and the kind of its values:

    "feature_transform": "both", "encoding": {"n_columns": 9, "values": "standard"}

The arrays have the names of the fields of the records; those of a `FeatureTransform`, which may be
the values of an encoding, begin with `transform_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.encoding import ColumnEncoding, EncodingKind, FeatureMap
from kmeans_kernel.core.arrays.feature_transform import FeatureTransform, TransformKind
from kmeans_kernel.core.arrays.matrices import Array, IntArray
from kmeans_kernel.export.model_file._file import ModelFileError, Place
from kmeans_kernel.export.model_file._values import count_of

_TRANSFORM_ARRAYS = ("centers", "widths", "gains")

# Arrays of an encoding: positions are whole numbers.
_POSITIONS = ("value_columns", "step_columns", "level_columns", "level_codes", "missing_columns")
_NUMBERS = (
    "step_starts", "step_widths", "step_means", "step_gains", "level_shares", "missing_shares"
)  # fmt: skip

# How far the end of a step may be from the start of the next, relative to the largest number of the
# column: rounding to float64 is far less.
_GAP = 1e-6


def describe_feature_map(feature_map: FeatureMap | None, place: Place) -> dict[str, Any]:
    """Return the entries of the tree, and store the arrays in `place`."""
    encoding = None
    values = feature_map
    if isinstance(feature_map, ColumnEncoding):
        values = feature_map.values
        encoding = {
            "n_columns": int(feature_map.n_columns),
            "values": None if values is None else values.kind,
        }
        for name in _POSITIONS:
            place.put(name, getattr(feature_map, name).astype(np.int64))
        for name in _NUMBERS:
            place.put(name, getattr(feature_map, name).astype(np.float64))
    if values is not None:
        for name in _TRANSFORM_ARRAYS:
            place.put(f"transform_{name}", getattr(values, name))
    kind = None if feature_map is None else feature_map.kind
    return {"feature_transform": kind, "encoding": encoding}


def build_feature_map(
    tree: dict[str, Any], place: Place, width: int, n_levels: Sequence[int] | None
) -> FeatureMap | None:
    """Return the feature map of a tree and its arrays, validated.

    Parameters
    ----------
    width : how many numbers a row has, as the file claims; nothing of this size is allocated
        before an array stands behind it
    n_levels : (width,) the number of levels of each, 0 for a number; None if no columns are known
    """
    kind, encoding = tree["feature_transform"], tree["encoding"]
    if encoding is not None:
        return _build_encoding(kind, encoding, place, width, n_levels)
    return None if kind is None else _build_transform(kind, place, width)


def _build_transform(kind: Any, place: Place, n_features: int) -> FeatureTransform:
    if kind not in get_args(TransformKind):
        raise ModelFileError(f"its feature transform is {kind!r}")
    arrays = {
        name: place.take(f"transform_{name}", (n_features,), ("float64",))
        for name in _TRANSFORM_ARRAYS
    }
    if (arrays["widths"] <= 0).any() or (arrays["gains"] <= 0).any():
        raise ModelFileError("the widths and gains of its feature transform are not above zero")
    return FeatureTransform(kind, **arrays)


def _build_encoding(
    kind: Any, tree: Any, place: Place, width: int, n_levels: Sequence[int] | None
) -> ColumnEncoding:
    if kind not in get_args(EncodingKind):
        raise ModelFileError(f"its feature transform is {kind!r}")
    if not isinstance(tree, dict) or set(tree) != {"n_columns", "values"}:
        raise ModelFileError("its encoding is not described by its fields")
    if count_of(tree["n_columns"]) != width:
        raise ModelFileError(f"its encoding is of {tree['n_columns']} columns, not of {width}")
    lengths: dict[str, int] = {}
    arrays: dict[str, Any] = {}
    for name in (*_POSITIONS, *_NUMBERS):
        part = name.partition("_")[0]
        dtype = "int64" if name in _POSITIONS else "float64"
        arrays[name] = place.take(name, (lengths.get(part),), (dtype,))
        lengths[part] = len(arrays[name])
    _check_columns(arrays, width)
    _check_levels(arrays, width, n_levels)
    _check_steps(arrays)
    for name in ("level_shares", "missing_shares", "step_means"):
        if ((arrays[name] < 0) | (arrays[name] > 1)).any():
            raise ModelFileError(f"its {name} are not from 0 to 1")
    values = None
    if tree["values"] is not None:
        values = _build_transform(tree["values"], place, lengths["value"])
    elif lengths["value"]:
        raise ModelFileError("its encoding has value columns and no transform of them")
    arrays["level_codes"] = arrays["level_codes"].astype(np.float64)
    arrays.update(
        {name: arrays[name].astype(np.intp, copy=False) for name in _POSITIONS if "columns" in name}
    )
    return ColumnEncoding(kind=kind, n_columns=width, values=values, **arrays)


def _check_columns(arrays: dict[str, npt.NDArray[Any]], width: int) -> None:
    """Raise unless the positions of columns are in range and in order, and name every column."""
    named = [arrays[name] for name in _POSITIONS if "columns" in name]
    every = np.concatenate(named)
    if ((every < 0) | (every >= width)).any():
        raise ModelFileError(f"its encoding names columns that are none of its {width}")
    if len(np.unique(every)) != width:
        raise ModelFileError(f"its encoding does not name each of its {width} columns")
    for name in ("value_columns", "missing_columns"):
        if len(np.unique(arrays[name])) < len(arrays[name]):
            raise ModelFileError(f"its {name} name a column twice")
    for name in ("step_columns", "level_columns"):
        if len(_first_places(arrays[name])) > len(np.unique(arrays[name])):
            raise ModelFileError(f"its {name} are not together")


def _first_places(columns: IntArray) -> IntArray:
    """Return the places at which a column begins that differs from the one before."""
    return np.flatnonzero(np.append(True, columns[1:] != columns[:-1])[: len(columns)])


def _check_levels(
    arrays: dict[str, npt.NDArray[Any]], width: int, n_levels: Sequence[int] | None
) -> None:
    """Raise unless the levels are those of the columns, from 0 on, and other columns have none."""
    columns: IntArray = arrays["level_columns"]
    counts = np.bincount(columns, minlength=width)
    if n_levels is not None and counts.tolist() != list(n_levels):
        raise ModelFileError("the levels of its encoding are not those of its columns")
    firsts = _first_places(columns)
    firsts = np.repeat(firsts, np.diff(np.append(firsts, len(columns))))
    if not np.array_equal(arrays["level_codes"], np.arange(len(columns)) - firsts):
        raise ModelFileError("its level_codes are not the positions of levels")
    numbers = np.concatenate([arrays["value_columns"], arrays["step_columns"]])
    if counts[numbers].any():
        raise ModelFileError("its encoding takes a category for numbers")


def _check_steps(arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Raise unless the steps of each column are above zero, and begin where the last one ended."""
    columns: IntArray = arrays["step_columns"]
    starts: Array = arrays["step_starts"]
    widths: Array = arrays["step_widths"]
    if (widths <= 0).any() or (arrays["step_gains"] <= 0).any():
        raise ModelFileError("the widths and gains of its steps are not above zero")
    same = columns[1:] == columns[:-1]
    with np.errstate(over="ignore"):
        gaps = np.abs(starts[1:] - starts[:-1] - widths[:-1])
        sizes = np.abs(starts[1:]) + np.abs(starts[:-1])
    if (same & ~(gaps <= _GAP * sizes)).any():
        raise ModelFileError("the steps of its columns do not follow each other")
