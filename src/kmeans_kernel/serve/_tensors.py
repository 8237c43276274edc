"""Tensors of the Open Inference Protocol as arrays, and back: JSON or binary."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from kmeans_kernel.serve._refusals import bad, count, shown, whole_number

# The protocol's names of the types; numbers are little-endian on the wire.
DATATYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}

# Of a shape: how many lengths, and their product without zeros.
_MOST_DIMENSIONS, _LARGEST_SHAPE = 8, 1 << 40

# What JSON lacks and others write.
_NO_NUMBER = re.compile(rb"\b(?:nan|inf|infinity)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Output:
    """A tensor to be written.

    Attributes
    ----------
    values : numbers of any shape, or a list of texts, which are BYTES
    binary : whether it goes behind the JSON
    """

    name: str
    datatype: str
    values: npt.NDArray[Any] | list[str]
    binary: bool


def read_tensors(described: Any, binary: bytes) -> dict[str, npt.NDArray[Any]]:
    """Return the input tensors of a request by name, those in binary from behind its JSON."""
    if not isinstance(described, list) or not described:
        raise bad(
            f'The request must have a list "inputs" of tensors, got {shown(described)}; send '
            '{"inputs": [{"name": "X", "shape": […], "datatype": "FP32", "data": […]}]}.'
        )
    tensors: dict[str, npt.NDArray[Any]] = {}
    used = 0
    for one in described:
        name = one.get("name") if isinstance(one, dict) else None
        if not isinstance(name, str):
            raise bad(f'Each input must be an object with a "name", got {shown(one)}.')
        if name in tensors:
            raise bad(f"The input {shown(name)} came twice; send each input once.")
        parameters = one.get("parameters")
        size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
        dtype, shape = _kind(name, one)
        if size is None:
            tensors[name] = _from_json(name, one, dtype, shape)
        else:
            tensors[name] = _from_binary(name, one, dtype, shape, size, binary, used)
            used += size
    if used != len(binary):
        raise bad(
            f"The inputs must take up all of the binary data behind the JSON, which has "
            f"{len(binary):,} bytes, and take {used:,}; see to each binary_data_size and to the "
            "header Inference-Header-Content-Length."
        )
    return tensors


def _kind(name: str, one: dict[str, Any]) -> tuple[np.dtype[Any], list[int]]:
    """Return the type and the shape that a tensor says it has."""
    datatype, shape = one.get("datatype"), one.get("shape")
    dtype = DATATYPES.get(datatype) if isinstance(datatype, str) else None
    if dtype is None:
        raise bad(
            f"The datatype of the input {shown(name)} must be one of {', '.join(DATATYPES)}, got "
            f"{shown(datatype)}; send numbers."
        )
    if not isinstance(shape, list) or not _is_shape(shape):
        raise bad(
            f"The shape of the input {shown(name)} must be a list of at most {_MOST_DIMENSIONS} "
            f"whole numbers of at least 0, for at most {_LARGEST_SHAPE:,} values, got "
            f"{shown(shape)}."
        )
    return dtype, shape


def _is_shape(shape: list[Any]) -> bool:
    if len(shape) > _MOST_DIMENSIONS:
        return False
    if not all(type(length) is int and length >= 0 for length in shape):
        return False
    return bool(prod(length for length in shape if length) <= _LARGEST_SHAPE)


def _from_binary(
    name: str,
    one: dict[str, Any],
    dtype: np.dtype[Any],
    shape: list[int],
    size: Any,
    binary: bytes,
    used: int,
) -> npt.NDArray[Any]:
    expected = prod(shape) * dtype.itemsize
    if type(size) is not int or size != expected:
        raise bad(
            f"The binary_data_size of the input {shown(name)} must be {expected:,}, for shape "
            f"{shown(shape)} of {one['datatype']}, got {shown(size)}."
        )
    if size > len(binary) - used:
        raise bad(
            f"The input {shown(name)} must have {size:,} bytes behind the JSON, got "
            f"{len(binary) - used:,}; "
            "see to the header Inference-Header-Content-Length."
        )
    return np.frombuffer(binary, dtype, prod(shape), used).reshape(shape)


def _from_json(
    name: str, one: dict[str, Any], dtype: np.dtype[Any], shape: list[int]
) -> npt.NDArray[Any]:
    if "data" not in one:
        raise bad(
            f'The input {shown(name)} must have "data", or "binary_data_size" among its '
            "parameters, and has neither; shared memory is not offered."
        )
    values = numbers(one["data"], f"The data of the input {shown(name)}")
    if values.size != prod(shape):
        raise bad(
            f"The data of the input {shown(name)} must be {count(prod(shape), 'number')}, for "
            f"shape {shown(shape)}, got {values.size:,}."
        )
    if not _fits(values, dtype):
        raise bad(
            f"The data of the input {shown(name)} must be numbers that fit {one['datatype']}, and "
            "some are not; name a wider datatype, FP64 for instance."
        )
    with np.errstate(over="ignore"):  # what becomes infinite is refused as such
        return values.astype(dtype).reshape(shape)


def numbers(data: Any, what: str) -> npt.NDArray[Any]:
    """Return a list of numbers, nested or not, as an array; all of a depth are of one length."""
    if not isinstance(data, list):
        raise bad(f"{what} must be a list of numbers, got {shown(data)}.")
    try:
        values = np.asarray(data)
    except ValueError as error:
        raise bad(f"{what} must be lists of one length within each other, and are not.") from error
    except OverflowError as error:
        raise bad(f"{what} must be numbers, got one that is too large.") from error
    if values.dtype.kind not in "biuf":
        raise bad(f"{what} must be numbers, got {_stranger(data)}.")
    return values


def _stranger(data: Any) -> str:
    """Return what is no number in nested lists, as it came."""
    while isinstance(data, list):
        data = next(
            (one for one in data if isinstance(one, list) or type(one) not in (int, float, bool)),
            data[0] if data else "nothing",
        )
    if data is None:
        return "null; fill missing values first"
    return "a number that is too large" if type(data) is int else shown(data)


def _fits(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Say whether numbers are of a type, or may become it without being others."""
    if dtype.kind == "f":
        return True
    if not values.size:
        return True
    if values.dtype.kind == "f" and not (np.isfinite(values) & (values == np.rint(values))).all():
        return False
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    # As numbers of Python: in float64 the largest of 64 bits would be the next power of 2.
    return int(values.min()) >= low and int(values.max()) <= high


def split(body: bytes, header_length: str | None) -> tuple[bytes, bytes]:
    """Return the JSON of a body, as text, and the binary data behind it."""
    if header_length is None:
        return body, b""
    length = whole_number(header_length)
    if length is None or length > len(body):
        raise bad(
            f"The header Inference-Header-Content-Length must be a number of at most "
            f"{len(body):,}, the bytes of the body, got {shown(header_length)}."
        )
    return body[:length], body[length:]


def read_json(content: bytes, advice: str = "") -> Any:
    """Return what JSON says, or say where it is none, and what else could be sent."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        what = f"is not at line {error.lineno}, column {error.colno}: {error.msg}"
        if not content.strip():
            what = "is empty"
        near = content[max(error.pos - 10, 0) : error.pos + 10]
        tail = " NaN and infinity are not JSON." if _NO_NUMBER.search(near) else ""
        also = f" {advice}." if advice else ""
        raise bad(f"The body must be JSON, and {what}.{tail}{also}") from None


def write_tensors(head: dict[str, Any], outputs: Sequence[Output]) -> tuple[bytes, int | None]:
    """Return the body of an answer, and the length of its JSON if there is more behind it."""
    described: list[dict[str, Any]] = []
    behind: list[bytes] = []
    for output in outputs:
        values = output.values
        shape = [len(values)] if isinstance(values, list) else list(values.shape)
        one: dict[str, Any] = {"name": output.name, "datatype": output.datatype, "shape": shape}
        if output.binary:
            behind.append(_bytes(values))
            one["parameters"] = {"binary_data_size": len(behind[-1])}
        else:
            one["data"] = values if isinstance(values, list) else values.ravel()
        described.append(one)
    head = {**head, "outputs": described}
    content = orjson.dumps(head, option=orjson.OPT_SERIALIZE_NUMPY)
    if not behind:
        return content, None
    return b"".join([content, *behind]), len(content)


def _bytes(values: npt.NDArray[Any] | list[str]) -> bytes:
    """Return values as binary data; each text with its length before it."""
    if not isinstance(values, list):
        return values.tobytes()
    texts = [text.encode() for text in values]
    return b"".join(part for text in texts for part in (struct.pack("<I", len(text)), text))
