"""Arrays as text that a page can hold: rounded, joined, compressed, in letters."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]

# What a page reads, and by which name.
_NAMES = {"float16": "f2", "float32": "f4", "float64": "f8", "uint8": "u1", "int32": "i4"}

# The large arrays of a model, by the last part of their names.
_LARGE = ("directions", "dual_coef", "components", "patterns", "mixing")


def rounded(arrays: Arrays, *, precise: bool, float16: bool) -> Arrays:
    """Return the arrays of a model as a page holds them.

    The large ones are float32 unless the model needs float64; with `float16` the representatives
    take half of that.
    """
    return {name: _rounded(name, array, precise, float16) for name, array in arrays.items()}


def _rounded(name: str, array: npt.NDArray[Any], precise: bool, float16: bool) -> npt.NDArray[Any]:
    last = name.rpartition(".")[2]
    if array.dtype.kind in "iu":
        return array.astype(np.int32)
    if last == "directions" and float16:
        return array.astype(np.float16)
    if last in _LARGE and not precise:
        return array.astype(np.float32)
    return array


def as_they_were(arrays: Arrays, exact: Arrays) -> Arrays:
    """Return rounded arrays in the types of the exact ones."""
    return {name: arrays[name].astype(array.dtype) for name, array in exact.items()}


def packed(arrays: Arrays) -> tuple[list[dict[str, Any]], str]:
    """Return where each array is in the bytes of all, and these, compressed, in base64."""
    entries, pieces, start = [], [], 0
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
        entries.append(
            {
                "name": name,
                "dtype": _NAMES[array.dtype.name],
                "shape": list(array.shape),
                "start": start,
                "stop": start + len(content),
            }
        )
        pieces.append(content)
        start += len(content)
    return entries, base64.b64encode(zlib.compress(b"".join(pieces), 9)).decode()
