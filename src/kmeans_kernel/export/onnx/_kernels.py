"""The ONNX counterpart of each kernel, by its name in `core.kernels.kernels.KERNELS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.kernels.kernels import TIP, Kernel
from kmeans_kernel.export.onnx._graph import Graph, Name

# Gives a constant in the precision of the graph.
Number: TypeAlias = Callable[[float], npt.NDArray[Any]]


def kernel_values(graph: Graph, kernel: Kernel, cosines: Name, dtype: np.dtype[Any]) -> Name:
    """Return the kernel values of cosines, in the type `dtype`."""
    if kernel.name not in COUNTERPARTS:
        raise TypeError(f"to_onnx cannot convert the kernel {kernel!r}.")

    def number(value: float) -> npt.NDArray[Any]:
        return np.array(value, dtype)

    return COUNTERPARTS[kernel.name](graph, kernel, cosines, number)


def _polynomial(graph: Graph, kernel: Any, cosines: Name, number: Number) -> Name:
    return graph.op("Pow", cosines, number(kernel.degree))


def _gaussian(graph: Graph, kernel: Any, cosines: Name, number: Number) -> Name:
    gaps = graph.op("Sub", cosines, number(1.0))
    return graph.op("Exp", graph.op("Mul", gaps, number(2.0 * kernel.gamma)))


def _laplacian(graph: Graph, kernel: Any, cosines: Name, number: Number) -> Name:
    gaps = _gaps(graph, cosines, number)
    roots = graph.op("Sqrt", graph.op("Mul", gaps, number(4.0 * kernel.gamma)))
    return graph.op("Exp", graph.op("Neg", roots))


def _exponential_power(graph: Graph, kernel: Any, cosines: Name, number: Number) -> Name:
    u = graph.op("Mul", _gaps(graph, cosines, number), number(2.0 * kernel.gamma))
    power = graph.op("Pow", u, number(kernel.exponent / 2.0))
    return graph.op("Exp", graph.op("Neg", power))


def _gaps(graph: Graph, cosines: Name, number: Number) -> Name:
    """Return 1 − c, and zero where that is rounding alone."""
    gaps = graph.op("Sub", number(1.0), cosines)
    return graph.op("Where", graph.op("Greater", gaps, number(TIP)), gaps, number(0.0))


COUNTERPARTS: dict[str, Callable[[Graph, Any, Name, Number], Name]] = {
    "poly": _polynomial,
    "rbf": _gaussian,
    "laplacian": _laplacian,
    "exponential_power": _exponential_power,
}
