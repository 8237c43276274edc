"""A graph under construction: operators and constants, over what skl2onnx hands to a converter."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from onnx import TensorProto
from onnx.helper import np_dtype_to_tensor_dtype
from onnx.numpy_helper import from_array
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int8TensorType,
    Int16TensorType,
    Int32TensorType,
    Int64TensorType,
    TensorType,
    UInt8TensorType,
    UInt16TensorType,
    UInt32TensorType,
    UInt64TensorType,
)

# The operators that take their axes as an input, and no later ones.
OPSET = 18

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)

# A tensor of the graph, by its name; where one is expected, an array is a constant.
Name: TypeAlias = str
Value: TypeAlias = Name | npt.NDArray[Any] | np.generic

_NARROW = (
    FloatTensorType, BooleanTensorType, Int8TensorType, UInt8TensorType, Int16TensorType,
    UInt16TensorType,
)  # fmt: skip
_WIDE = (DoubleTensorType, Int32TensorType, Int64TensorType, UInt32TensorType, UInt64TensorType)


class Graph:
    """Adds to the graph of one converter; each operator gives the name of its output."""

    def __init__(self, scope: Any, container: Any) -> None:
        opset = container.target_opset
        if opset is not None and opset < OPSET:
            raise RuntimeError(
                f"target_opset must be at least {OPSET} for the estimators of kmeans-kernel, got "
                f"{opset}. Pass target_opset={OPSET}."
            )
        self._scope, self._container = scope, container
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Name] = {}

    def op(self, kind: str, *inputs: Value, **attributes: Any) -> Name:
        """Add an operator with one output, and return the name of that."""
        output: Name = self._scope.get_unique_variable_name(kind.lower())
        self._add(kind, inputs, output, attributes)
        return output

    def give(self, value: Value, output: Any) -> None:
        """Let a variable of skl2onnx have this value."""
        self._add("Identity", (value,), output.full_name, {})

    def cast(self, value: Value, dtype: npt.DTypeLike) -> Name:
        """Return a value in another type."""
        return self.op("Cast", value, to=np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reduce(self, kind: str, value: Value, axis: int = 1, *, keep: bool = True) -> Name:
        """Return the sum, the largest or the like along an axis, which stays with length one."""
        return self.op(f"Reduce{kind}", value, np.array([axis]), keepdims=int(keep))

    def reshape(self, value: Value, *shape: int) -> Name:
        """Return a value in another shape; 0 is for a length that stays."""
        return self.op("Reshape", value, np.array(shape))

    def positive(self, value: Name, dtype: npt.DTypeLike = FLOAT64) -> Name:
        """Return a value to divide by: one in the place of what is not above zero."""
        one, zero = np.array(1, dtype), np.array(0, dtype)
        return self.op("Where", self.op("Greater", value, zero), value, one)

    def power(self, value: Name, exponent: float, dtype: npt.DTypeLike = FLOAT64) -> Name:
        """Return a power: by squares and products where it is whole, as that is faster."""
        if exponent != int(exponent) or exponent < 1:
            return self.op("Pow", value, np.array(exponent, dtype))
        found = value
        for bit in bin(int(exponent))[3:]:  # the bits after the leading one
            found = self.op("Mul", found, found)
            found = self.op("Mul", found, value) if bit == "1" else found
        return found

    def _add(self, kind: str, inputs: Any, output: Name, attributes: dict[str, Any]) -> None:
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        name = self._scope.get_unique_operator_name(kind)
        self._container.add_node(kind, names, [output], name=name, **attributes)

    def _constant(self, value: npt.NDArray[Any] | np.generic) -> Name:
        """Return the name of a constant; equal ones are one."""
        array = np.asarray(value)
        text = array.dtype.kind in "UO"
        content = repr(array.tolist()).encode() if text else array.tobytes()
        key = (array.dtype.str, array.shape, content)
        if key not in self._constants:
            name = self._scope.get_unique_variable_name("constant")
            if text:
                encoded = [str(entry).encode() for entry in array.tolist()]
                self._container.add_initializer(name, TensorProto.STRING, array.shape, encoded)
            else:
                tensor = from_array(np.ascontiguousarray(array).reshape(array.shape))
                self._container.add_initializer(name, None, None, tensor)
            self._constants[key] = name
        return self._constants[key]


def float_type(variable: Any, owner: str) -> np.dtype[Any]:
    """Return the type that the numbers of a variable are worked on in, as the estimators do."""
    if isinstance(variable.type, _NARROW):
        return FLOAT32
    if isinstance(variable.type, _WIDE):
        return FLOAT64
    raise TypeError(
        f"{owner} takes a tensor of numbers, got {type(variable.type).__name__}. Encode text and "
        "the like in a step before it."
    )


def tensor_type(dtype: npt.DTypeLike, shape: list[int | None]) -> TensorType:
    """Return a type of numbers as skl2onnx has it."""
    kind = DoubleTensorType if np.dtype(dtype) == FLOAT64 else FloatTensorType
    return kind(shape)
