"""Tensors of the columns of a table: numbers, booleans or text, with missing values.

A missing value is null in JSON, NaN in a tensor of floats, and empty text in a binary tensor.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from kmeans_kernel.serve.protocol._tensors import (
    DATATYPES,
    Declared,
    check_data,
    check_size,
    from_binary,
    read_each,
)
from kmeans_kernel.serve.protocol._values import Values
from kmeans_kernel.serve.transport._errors import abbreviate, bad_request
from kmeans_kernel.serve.transport._limits import SizeLimit

_TEXT = np.dtype(object)

# The types of values that the data of a tensor may have in JSON, beside null.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "O": ((str,), "text or null"),
    "b": ((bool,), "true, false or null"),
}
_NUMBERS: tuple[tuple[type, ...], str] = ((int, float), "numbers or null")


@dataclass(frozen=True, eq=False)
class Tensor:
    """The values of a tensor.

    Attributes
    ----------
    shape : as the request says; its product is the number of values
    values : flat
    is_text : whether the values are text
    """

    shape: list[int]
    values: Values
    is_text: bool


def read_column_tensors(described: Any, binary: bytes, text: SizeLimit) -> dict[str, Tensor]:
    """Return the input tensors of a request by name; see `read_tensors`.

    Parameters
    ----------
    text : limit of the binary text, of all tensors: strings take many times its size
    """
    n_bytes = 0

    def read_section(declared: Declared, section: memoryview) -> Tensor:
        nonlocal n_bytes
        if declared.dtype != _TEXT:
            numbers = from_binary(declared, section).reshape(-1)
            return Tensor(declared.shape, numbers, is_text=False)
        n_bytes += len(section)
        if n_bytes > text.max_bytes:
            raise text.too_large(f"the text of binary tensors has {n_bytes:,}")
        return Tensor(declared.shape, _texts(declared, section), is_text=True)

    return read_each(described, binary, {**DATATYPES, "BYTES": _TEXT}, _from_json, read_section)


def _from_json(declared: Declared, data: Any) -> Tensor:
    types, words = _TYPES.get(declared.dtype.kind, _NUMBERS)
    values = _flat(declared, data)
    strange = set(map(type, values)) - {*types, type(None)}
    if strange:
        first = next(value for value in values if type(value) in strange)
        raise bad_request(f"{declared.what} must be {words}, got {abbreviate(first)}.")
    check_size(declared, len(values), "value")
    if types != _NUMBERS[0]:
        return Tensor(declared.shape, values, declared.dtype == _TEXT)
    numbers = np.array(values, dtype=np.float64)
    known = ~np.isnan(numbers)
    check_data(declared, np.where(known, numbers, 0.0))
    if declared.dtype.kind == "f":
        with np.errstate(over="ignore"):  # overflow gives infinity, which is refused later
            numbers = numbers.astype(declared.dtype)
    return Tensor(declared.shape, numbers, is_text=False)


def _flat(declared: Declared, data: Any) -> list[Any]:
    """Return the values of nested lists, as deep as the shape is long."""
    if not isinstance(data, list):
        raise bad_request(f"{declared.what} must be a list, got {abbreviate(data)}.")
    values: list[Any] = data
    for _ in declared.shape[1:]:
        if values and all(isinstance(one, list) for one in values):
            values = [value for one in values for value in one]
    return values


def _texts(declared: Declared, section: memoryview) -> list[str]:
    """Return the strings of a binary tensor, each after its length (uint32)."""
    texts: list[str] = []
    at = 0
    try:
        while at < len(section):
            (length,) = struct.unpack_from("<I", section, at)
            end = at + 4 + length
            if end > len(section):
                raise ValueError(length)
            texts.append(str(section[at + 4 : end], "utf-8"))
            at = end
    except (struct.error, ValueError):
        raise bad_request(
            f"{declared.what} must be strings in UTF-8, each after its length of 4 bytes, and are "
            f"not: see string {len(texts)}."
        ) from None
    check_size(declared, len(texts), "value")
    return texts
