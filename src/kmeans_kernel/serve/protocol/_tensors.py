"""Conversion between Open Inference Protocol tensors (JSON or binary) and NumPy arrays."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import orjson

from kmeans_kernel.serve.transport._errors import abbreviate, bad_request, parse_integer, pluralize

# Datatypes of the protocol; binary tensors are little-endian.
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

_Tensor = TypeVar("_Tensor")

# Bounds of a shape: number of dimensions, which NumPy limits too, and product of the non-zero ones,
# which must fit into NumPy's index type even if another dimension is 0.
_MAX_DIMENSIONS, _MAX_VALUES = 8, 1 << 40

# Non-finite numbers as other JSON writers spell them; used only for a hint in an error.
_NON_FINITE = re.compile(rb"\b(?:nan|inf|infinity)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Declared:
    """What a request says of an input tensor, validated.

    Attributes
    ----------
    dtype : NumPy type of the datatype; objects for text
    """

    name: str
    datatype: str
    dtype: np.dtype[Any]
    shape: list[int]

    @property
    def what(self) -> str:
        """The data in words, for errors."""
        return f"The data of the input {abbreviate(self.name)}"


# Readers of one tensor: from the "data" of its JSON, and from its bytes in the binary section.
FromJson: TypeAlias = Callable[[Declared, Any], _Tensor]
FromBinary: TypeAlias = Callable[[Declared, memoryview], _Tensor]


@dataclass(frozen=True)
class OutputTensor:
    """An output tensor.

    Attributes
    ----------
    values : numbers of any shape, or a list of strings (datatype BYTES)
    binary : whether the data goes into the binary section after the JSON
    """

    name: str
    datatype: str
    values: npt.NDArray[Any] | list[str]
    binary: bool


def read_tensors(described: Any, binary: bytes) -> dict[str, npt.NDArray[Any]]:
    """Return the input tensors of a request by name; they hold numbers.

    Parameters
    ----------
    described : the "inputs" of the request, not yet validated
    binary : the binary section after the JSON
    """
    return read_each(described, binary, DATATYPES, _from_json, from_binary)


def read_each(
    described: Any,
    binary: bytes,
    datatypes: Mapping[str, np.dtype[Any]],
    from_json: FromJson[_Tensor],
    from_binary: FromBinary[_Tensor],
) -> dict[str, _Tensor]:
    """Return the input tensors of a request by name, each read by one of two functions."""
    if not isinstance(described, list) or not described:
        raise bad_request(
            f'The request must have a list "inputs" of tensors, got {abbreviate(described)}; send '
            '{"inputs": [{"name": "X", "shape": […], "datatype": "FP32", "data": […]}]}.'
        )
    tensors: dict[str, _Tensor] = {}
    used = 0
    for one in described:
        name = one.get("name") if isinstance(one, dict) else None
        if not isinstance(name, str):
            raise bad_request(f'Each input must be an object with a "name", got {abbreviate(one)}.')
        if name in tensors:
            raise bad_request(f"The input {abbreviate(name)} was sent twice; send each input once.")
        declared = _declared(name, one, datatypes)
        parameters = one.get("parameters")
        size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
        if size is not None:
            tensors[name] = from_binary(declared, _section(declared, size, binary, used))
            used += size
        elif "data" in one:
            tensors[name] = from_json(declared, one["data"])
        else:
            raise bad_request(
                f'The input {abbreviate(name)} must have "data", or "binary_data_size" among its '
                "parameters, and has neither; shared memory is not supported."
            )
    _check_used(used, len(binary))
    return tensors


def _check_used(used: int, n_bytes: int) -> None:
    """Raise unless the tensors take all bytes of the binary section."""
    if used != n_bytes:
        raise bad_request(
            f"The binary_data_size of all inputs must sum to the {n_bytes:,} bytes after the "
            f"JSON, got {used:,}; correct these sizes, or the header "
            "Inference-Header-Content-Length."
        )


def _declared(name: str, one: dict[str, Any], datatypes: Mapping[str, np.dtype[Any]]) -> Declared:
    datatype, shape = one.get("datatype"), one.get("shape")
    if not isinstance(datatype, str) or datatype not in datatypes:
        advice = "" if "BYTES" in datatypes else "; send numbers"
        raise bad_request(
            f"The datatype of the input {abbreviate(name)} must be one of {', '.join(datatypes)}, "
            f"got {abbreviate(datatype)}{advice}."
        )
    if not isinstance(shape, list) or not _is_shape(shape):
        raise bad_request(
            f"The shape of the input {abbreviate(name)} must be a list of at most "
            f"{_MAX_DIMENSIONS} non-negative integers, whose product is at most {_MAX_VALUES:,}, "
            f"got {abbreviate(shape)}."
        )
    return Declared(name, datatype, datatypes[datatype], shape)


def _is_shape(shape: list[Any]) -> bool:
    if len(shape) > _MAX_DIMENSIONS:
        return False
    if not all(type(length) is int and length >= 0 for length in shape):
        return False
    return bool(prod(length for length in shape if length) <= _MAX_VALUES)


def _section(declared: Declared, size: Any, binary: bytes, used: int) -> memoryview:
    """Return the bytes of a tensor in the binary section."""
    expected = prod(declared.shape) * declared.dtype.itemsize
    if type(size) is not int or size < 0 or (declared.dtype != object and size != expected):
        must = "a number of bytes" if declared.dtype == object else f"{expected:,}"
        raise bad_request(
            f"The binary_data_size of the input {abbreviate(declared.name)} must be {must}, for "
            f"shape {abbreviate(declared.shape)} of {declared.datatype}, got {abbreviate(size)}."
        )
    if size > len(binary) - used:
        raise bad_request(
            f"The input {abbreviate(declared.name)} must have {size:,} bytes after the JSON, got "
            f"{len(binary) - used:,}; correct the header Inference-Header-Content-Length."
        )
    return memoryview(binary)[used : used + size]


def from_binary(declared: Declared, section: memoryview) -> npt.NDArray[Any]:
    """Return a tensor of numbers from its bytes."""
    return np.frombuffer(section, declared.dtype).reshape(declared.shape)


def _from_json(declared: Declared, data: Any) -> npt.NDArray[Any]:
    values = to_number_array(data, declared.what)
    check_data(declared, values)
    with np.errstate(over="ignore"):  # overflow gives infinity, which validation reports later
        return values.astype(declared.dtype).reshape(declared.shape)


def check_data(declared: Declared, values: npt.NDArray[Any]) -> None:
    """Raise unless numbers are as many as the shape says, and fit the datatype."""
    check_size(declared, values.size)
    if not _fits(values, declared.dtype):
        raise bad_request(
            f"{declared.what} must be numbers that fit {declared.datatype}, and some do not; use a "
            "wider datatype, for example FP64."
        )


def check_size(declared: Declared, size: int, noun: str = "number") -> None:
    """Raise unless the values are as many as the shape says."""
    if size != prod(declared.shape):
        raise bad_request(
            f"{declared.what} must be {pluralize(prod(declared.shape), noun)}, for shape "
            f"{abbreviate(declared.shape)}, got {size:,}."
        )


def to_number_array(data: Any, what: str) -> npt.NDArray[Any]:
    """Return a list of numbers, nested or not, as an array."""
    if not isinstance(data, list):
        raise bad_request(f"{what} must be a list of numbers, got {abbreviate(data)}.")
    try:
        values = np.asarray(data)
    except ValueError as error:
        raise bad_request(f"{what} must be nested lists of equal length, and are not.") from error
    except OverflowError as error:
        raise bad_request(f"{what} must be numbers, got one that is too large.") from error
    if values.dtype.kind not in "biuf":
        raise bad_request(f"{what} must be numbers, got {_first_non_number(data)}.")
    return values


def _first_non_number(data: Any) -> str:
    """Return the first value in nested lists that is not a number, for an error message."""
    while isinstance(data, list):
        data = next(
            (one for one in data if isinstance(one, list) or type(one) not in (int, float, bool)),
            data[0] if data else "nothing",
        )
    if data is None:
        return "null; fill missing values first"
    return "a number that is too large" if type(data) is int else abbreviate(data)


def _fits(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether the conversion of numbers to a datatype keeps their values."""
    if dtype.kind == "f":
        return True
    if not values.size:
        return True
    if values.dtype.kind == "f" and not (np.isfinite(values) & (values == np.rint(values))).all():
        return False
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    # Compare as Python integers: float64 would round 2**64 - 1 up to 2**64.
    return int(values.min()) >= low and int(values.max()) <= high


def split_body(body: bytes, header_length: str | None) -> tuple[bytes, bytes]:
    """Split a body into its JSON and its binary section."""
    if header_length is None:
        return body, b""
    length = parse_integer(header_length)
    if length is None or length > len(body):
        raise bad_request(
            f"The header Inference-Header-Content-Length must be an integer of at most "
            f"{len(body):,}, the length of the body, got {abbreviate(header_length)}."
        )
    return body[:length], body[length:]


def read_json(content: bytes, advice: str = "") -> Any:
    """Parse JSON; an error names the position, followed by the advice."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        what = f"is invalid at line {error.lineno}, column {error.colno}: {error.msg}"
        if not content.strip():
            what = "is empty"
        near = content[max(error.pos - 10, 0) : error.pos + 10]
        tail = " NaN and infinity are not JSON." if _NON_FINITE.search(near) else ""
        also = f" {advice}." if advice else ""
        raise bad_request(f"The body must be JSON, and {what}.{tail}{also}") from None


def write_tensors(
    head: dict[str, Any], outputs: Sequence[OutputTensor]
) -> tuple[bytes, int | None]:
    """Return the response body, and the length of its JSON if a binary section follows."""
    described: list[dict[str, Any]] = []
    sections: list[bytes] = []
    for output in outputs:
        values = output.values
        shape = [len(values)] if isinstance(values, list) else list(values.shape)
        one: dict[str, Any] = {"name": output.name, "datatype": output.datatype, "shape": shape}
        if output.binary:
            sections.append(_bytes(values))
            one["parameters"] = {"binary_data_size": len(sections[-1])}
        else:
            one["data"] = values if isinstance(values, list) else values.ravel()
        described.append(one)
    head = {**head, "outputs": described}
    content = orjson.dumps(head, option=orjson.OPT_SERIALIZE_NUMPY)
    if not sections:
        return content, None
    return b"".join([content, *sections]), len(content)


def _bytes(values: npt.NDArray[Any] | list[str]) -> bytes:
    """Return the binary form of values; strings are prefixed by their length (uint32)."""
    if not isinstance(values, list):
        return values.tobytes()
    texts = [text.encode() for text in values]
    return b"".join(part for text in texts for part in (struct.pack("<I", len(text)), text))
