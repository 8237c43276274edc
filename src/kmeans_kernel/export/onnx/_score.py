"""The scores of a fitted model as a graph: the same steps in the same precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.asinh import FARTHEST, Squash
from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.kernels.kernels import TIP, Gaussian, Kernel, Laplacian, Polynomial
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.export.onnx._graph import FLOAT32, FLOAT64, Graph, Name

# From here on asinh(x) is log(2 x) to the last digit.
_FAR = 1e8


def scores_of(
    graph: Graph, model: FittedModel, rows: Name, dtype: np.dtype[Any], *, precise: bool = False
) -> Name:
    """Return the (n, K) scores of rows of this type, in `score_type` or, if precise, float64."""
    found = FLOAT64 if precise else score_type(model, dtype)
    if model.squash is not None:
        # squashed rows have the type of the rows
        rows = graph.cast(_squashed(graph, model.squash, graph.cast(rows, FLOAT64)), dtype)
    unit = unit_rows(graph, graph.cast(rows, FLOAT64), model.lift, model.feature_scales)
    directions = np.ascontiguousarray(model.directions.astype(found).T)
    cosines = graph.op("MatMul", graph.cast(unit, found), directions)
    values = _kernel_values(graph, model.kernel, cosines, found)
    sums = graph.op("MatMul", values, model.dual_coef.astype(found))
    return graph.op("Add", sums, model.intercept.astype(found))


def score_type(model: FittedModel, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the scores of rows of this type, as `FittedModel.scores` decides it."""
    both = {dtype, model.directions.dtype} == {FLOAT64}
    return FLOAT64 if both or model.needs_float64 else FLOAT32


def probabilities_of(graph: Graph, scores: Name, temperature: float = 1.0) -> Name:
    """Return the softmax of scores, in float64."""
    cool = graph.op("Div", graph.cast(scores, FLOAT64), np.float64(temperature))
    return graph.op("Softmax", cool, axis=1)


def labels_of(graph: Graph, scores: Name, classes: npt.NDArray[Any]) -> Name:
    """Return the class of the highest score of each row, the first of those that are equal."""
    return graph.op("Gather", classes, graph.op("ArgMax", scores, axis=1, keepdims=0))


def unit_rows(graph: Graph, rows: Name, lift: float = 0.0, scales: Array | None = None) -> Name:
    """Put float64 rows on the unit sphere, as `_sphere.unit_rows` does.

    Every row is divided by its largest entry first, so that no square is too large or too small.
    """
    if scales is not None:
        rows = graph.op("Mul", rows, scales / scales.max())
        lift = lift / float(scales.max())
    largest = graph.reduce("Max", graph.op("Abs", rows))
    if lift > 0:
        largest = graph.op("Max", largest, np.float64(lift))
    largest = graph.positive(largest)
    rows = graph.op("Div", rows, largest)
    if lift > 0:
        rows = graph.op("Concat", rows, graph.op("Div", np.float64(lift), largest), axis=1)
    lengths = graph.op("Sqrt", graph.reduce("SumSquare", rows))
    return graph.op("Div", rows, graph.positive(lengths))


def _kernel_values(graph: Graph, kernel: Kernel, cosines: Name, dtype: np.dtype[Any]) -> Name:
    def number(value: float) -> npt.NDArray[Any]:
        return np.array(value, dtype)

    if isinstance(kernel, Polynomial):
        return graph.power(cosines, kernel.degree, dtype)
    if isinstance(kernel, Gaussian):
        gaps = graph.op("Sub", cosines, number(1.0))
        return graph.op("Exp", graph.op("Mul", gaps, number(2.0 * kernel.gamma)))
    if isinstance(kernel, Laplacian):
        gaps = graph.op("Sub", number(1.0), cosines)
        off = graph.op("Greater", gaps, number(TIP))
        gaps = graph.op("Where", off, gaps, number(0.0))
        roots = graph.op("Sqrt", graph.op("Mul", gaps, number(4.0 * kernel.gamma)))
        return graph.op("Exp", graph.op("Neg", roots))
    raise TypeError(f"to_onnx cannot convert the kernel {kernel!r}.")


def _squashed(graph: Graph, squash: Squash, rows: Name) -> Name:
    """Return float64 rows squashed."""
    far = graph.op("Div", graph.op("Sub", rows, squash.centers), squash.widths)
    size = graph.op("Min", graph.op("Abs", far), np.float64(FARTHEST))
    angles = graph.op("Mul", graph.op("Sign", far), _asinh(graph, size))
    return graph.op("Mul", angles, squash.gains)


def _asinh(graph: Graph, x: Name) -> Name:
    """Return asinh of float64 numbers that are not negative, right to the last digits.

    onnxruntime has no such operator for float64. Near zero it is log(1 + u) for a small u, of which
    log(y) u / (y − 1), with y the rounded 1 + u, keeps all digits; far out it is log(2 x).
    """
    one = np.float64(1.0)
    near = graph.op("Min", x, np.float64(_FAR))
    square = graph.op("Mul", near, near)
    root = graph.op("Sqrt", graph.op("Add", square, one))
    u = graph.op("Add", near, graph.op("Div", square, graph.op("Add", root, one)))
    y = graph.op("Add", u, one)
    rest = graph.op("Sub", y, one)
    safe = graph.positive(rest)
    log = graph.op("Div", graph.op("Mul", graph.op("Log", y), u), safe)
    log = graph.op("Where", graph.op("Greater", rest, np.float64(0.0)), log, u)
    beyond = graph.op("Max", graph.op("Div", x, np.float64(_FAR)), one)
    return graph.op("Add", log, graph.op("Log", beyond))
