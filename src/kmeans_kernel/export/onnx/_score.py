"""Scores, probabilities and labels of a fitted model as ONNX operators.

The operators follow `FittedModel` step by step, in the same precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.arrays.sphere import FARTHEST, FeatureTransform
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.export.onnx._graph import FLOAT32, FLOAT64, Graph, Name
from kmeans_kernel.export.onnx._kernels import kernel_values

# From here on asinh(x) = log(2x) in float64: the next term of the series is 1/(4x²).
_FAR = 1e8


def scores_of(
    graph: Graph, model: FittedModel, rows: Name, dtype: np.dtype[Any], *, precise: bool = False
) -> Name:
    """Return the (n, K) scores of rows of type `dtype`, in `score_type`, or float64 if precise."""
    found = FLOAT64 if precise else score_type(model, dtype)
    sphere_map = model.sphere_map
    if sphere_map.feature_transform is not None:
        rows = _transformed(graph, sphere_map.feature_transform, graph.cast(rows, FLOAT64), dtype)
    unit = unit_rows(graph, graph.cast(rows, FLOAT64), sphere_map.lift, sphere_map.scales)
    directions = np.ascontiguousarray(model.directions.astype(found).T)
    cosines = graph.op("MatMul", graph.cast(unit, found), directions)
    values = kernel_values(graph, model.kernel, cosines, found)
    sums = graph.op("MatMul", values, model.dual_coef.astype(found))
    return graph.op("Add", sums, model.intercept.astype(found))


def score_type(model: FittedModel, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the float type of the scores, as `FittedModel.scores` chooses it."""
    both = {dtype, model.directions.dtype} == {FLOAT64}
    return FLOAT64 if both or model.needs_float64 else FLOAT32


def probabilities_of(graph: Graph, scores: Name, temperature: float = 1.0) -> Name:
    """Return the softmax of the scores over the temperature, in float64."""
    cool = graph.op("Div", graph.cast(scores, FLOAT64), np.float64(temperature))
    return graph.op("Softmax", cool, axis=1)


def labels_of(graph: Graph, scores: Name, classes: npt.NDArray[Any]) -> Name:
    """Return the class of the highest score of each row; the first class wins a tie."""
    return graph.op("Gather", classes, graph.op("ArgMax", scores, axis=1, keepdims=0))


def unit_rows(graph: Graph, rows: Name, lift: float = 0.0, scales: Array | None = None) -> Name:
    """Put float64 rows on the unit sphere, as `core.arrays.sphere.unit_rows` does.

    Every row is divided by its largest entry first, so that no square overflows or underflows.
    """
    if scales is not None:
        rows = graph.op("Mul", rows, scales / scales.max())
        lift = lift / float(scales.max())
    largest = graph.reduce("Max", graph.op("Abs", rows))
    if lift > 0:
        largest = graph.op("Max", largest, np.float64(lift))
    largest = graph.safe_divisor(largest)
    rows = graph.op("Div", rows, largest)
    if lift > 0:
        rows = graph.op("Concat", rows, graph.op("Div", np.float64(lift), largest), axis=1)
    lengths = graph.op("Sqrt", graph.reduce("SumSquare", rows))
    return graph.op("Div", rows, graph.safe_divisor(lengths))


def _transformed(
    graph: Graph, transform: FeatureTransform, rows: Name, dtype: np.dtype[Any]
) -> Name:
    """Return the transform of float64 rows, rounded to `dtype`, the type of the rows."""
    far = graph.op("Div", graph.op("Sub", rows, transform.centers), transform.widths)
    size = graph.op("Min", graph.op("Abs", far), np.float64(FARTHEST))
    if transform.kind == "asinh":
        size = _asinh(graph, size)
    size = graph.op("Mul", size, transform.gains)
    if dtype != FLOAT64:
        size = graph.op("Min", size, np.float64(np.finfo(dtype).max))
    return graph.cast(graph.op("Mul", graph.op("Sign", far), size), dtype)


def _asinh(graph: Graph, x: Name) -> Name:
    """Return asinh of non-negative float64 numbers to full precision.

    onnxruntime has no Asinh for float64. asinh(x) = log1p(u) with u = x + x² / (1 + √(x² + 1)), and
    log1p(u) = log(y) u / (y − 1) with y = fl(1 + u) is accurate for small u (Goldberg 1991,
    theorem 4). Beyond `_FAR` the result is asinh(_FAR) + log(x / _FAR), so that x² cannot overflow.
    """
    one = np.float64(1.0)
    near = graph.op("Min", x, np.float64(_FAR))
    square = graph.op("Mul", near, near)
    root = graph.op("Sqrt", graph.op("Add", square, one))
    u = graph.op("Add", near, graph.op("Div", square, graph.op("Add", root, one)))
    y = graph.op("Add", u, one)
    rest = graph.op("Sub", y, one)
    safe = graph.safe_divisor(rest)
    log = graph.op("Div", graph.op("Mul", graph.op("Log", y), u), safe)
    log = graph.op("Where", graph.op("Greater", rest, np.float64(0.0)), log, u)
    beyond = graph.op("Max", graph.op("Div", x, np.float64(_FAR)), one)
    return graph.op("Add", log, graph.op("Log", beyond))
