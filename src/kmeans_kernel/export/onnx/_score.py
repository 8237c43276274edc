"""Scores, probabilities and labels of a fitted model as ONNX operators.

The operators follow `FittedModel` step by step, in the same precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.export.onnx._encoding import mapped_features
from kmeans_kernel.export.onnx._graph import FLOAT32, FLOAT64, Graph, Name
from kmeans_kernel.export.onnx._kernels import kernel_values


def scores_of(
    graph: Graph, model: FittedModel, rows: Name, dtype: np.dtype[Any], *, precise: bool = False
) -> Name:
    """Return the (n, K) scores of rows of type `dtype`, in `score_type`, or float64 if precise."""
    found = FLOAT64 if precise else score_type(model, dtype)
    sphere_map = model.sphere_map
    if sphere_map.feature_transform is not None:
        rows = mapped_features(graph, sphere_map.feature_transform, rows, dtype)
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
