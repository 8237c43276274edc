"""Builder of ONNX operators and constants on top of skl2onnx's scope and container."""

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

# Lowest operator set whose Reduce operators take the axes as an input; a low one runs in more
# versions of onnxruntime.
OPSET = 18

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)

# Tensors are referred to by name. Operators also accept arrays, which become constants.
Name: TypeAlias = str
Value: TypeAlias = Name | npt.NDArray[Any] | np.generic

# Input types whose values float32 holds exactly, and types that need float64.
_NARROW = (
    FloatTensorType, BooleanTensorType, Int8TensorType, UInt8TensorType, Int16TensorType,
    UInt16TensorType,
)  # fmt: skip
_WIDE = (DoubleTensorType, Int32TensorType, Int64TensorType, UInt32TensorType, UInt64TensorType)


class Graph:
    """Adds operators to the graph of one converter; each method returns the output's name."""

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
        """Add an operator with one output."""
        output: Name = self._scope.get_unique_variable_name(kind.lower())
        self._add(kind, inputs, output, attributes)
        return output

    def assign(self, value: Value, output: Any) -> None:
        """Assign a value to an output variable of skl2onnx."""
        self._add("Identity", (value,), output.full_name, {})

    def cast(self, value: Value, dtype: npt.DTypeLike) -> Name:
        """Cast a value to another type."""
        return self.op("Cast", value, to=np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reduce(self, kind: str, value: Value, axis: int = 1, *, keep: bool = True) -> Name:
        """Reduce along an axis by Sum, Max, Min, Mean or SumSquare; `keep` keeps the axis."""
        return self.op(f"Reduce{kind}", value, np.array([axis]), keepdims=int(keep))

    def reshape(self, value: Value, *shape: int) -> Name:
        """Reshape a value; a length of 0 is copied from the input."""
        return self.op("Reshape", value, np.array(shape))

    def join(self, parts: list[Name]) -> Name:
        """Join matrices with the same rows side by side."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=1)

    def safe_divisor(self, value: Name, dtype: npt.DTypeLike = FLOAT64) -> Name:
        """Replace entries that are not above zero by one, for use as a divisor."""
        one, zero = np.array(1, dtype), np.array(0, dtype)
        return self.op("Where", self.op("Greater", value, zero), value, one)

    def power(self, value: Name, exponent: float, dtype: npt.DTypeLike = FLOAT64) -> Name:
        """Raise to a power; integer exponents by repeated squaring, which is faster than Pow."""
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
        """Return the name of a constant; equal constants are stored once."""
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
    """Return the float type that an estimator converts a variable to, as in Python."""
    if isinstance(variable.type, _NARROW):
        return FLOAT32
    if isinstance(variable.type, _WIDE):
        return FLOAT64
    raise TypeError(
        f"{owner} takes a tensor of numbers, got {type(variable.type).__name__}. Encode other "
        "types as numbers in an earlier step."
    )


def tensor_type(dtype: npt.DTypeLike, shape: list[int | None]) -> TensorType:
    """Return skl2onnx's tensor type for float32 or float64."""
    kind = DoubleTensorType if np.dtype(dtype) == FLOAT64 else FloatTensorType
    return kind(shape)
