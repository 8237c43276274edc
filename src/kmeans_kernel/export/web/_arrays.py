"""Encoding of arrays in a page: rounded, concatenated, compressed, in base64."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]

# Data types that page/arrays.js reads, and their names there.
_NAMES = {"float16": "f2", "float32": "f4", "float64": "f8", "uint8": "u1", "int32": "i4"}

# Large arrays of a model, which may be rounded, by the last part of their names.
_LARGE = ("directions", "dual_coef", "components", "patterns", "mixing")


def round_arrays(arrays: Arrays, *, precise: bool, float16: bool) -> Arrays:
    """Return the arrays of a model rounded for the page.

    Large arrays become float32 unless `precise`; `float16` rounds the representatives further.
    """
    return {name: _round_array(name, array, precise, float16) for name, array in arrays.items()}


def _round_array(
    name: str, array: npt.NDArray[Any], precise: bool, float16: bool
) -> npt.NDArray[Any]:
    last = name.rpartition(".")[2]
    if array.dtype.kind in "iu":
        return array.astype(np.int32)
    if last == "directions" and float16:
        return array.astype(np.float16)
    if last in _LARGE and not precise:
        return array.astype(np.float32)
    return array


def restore_dtypes(arrays: Arrays, exact: Arrays) -> Arrays:
    """Cast rounded arrays back to the types of the exact ones; the values stay rounded."""
    return {name: arrays[name].astype(array.dtype) for name, array in exact.items()}


def pack(arrays: Arrays) -> tuple[list[dict[str, Any]], str]:
    """Return the index of the arrays, and their bytes concatenated, compressed and in base64.

    Each entry of the index has the array's name, type, shape, and position in the bytes.
    """
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
