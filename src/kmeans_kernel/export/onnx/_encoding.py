"""Feature transforms and the encoding of columns as ONNX operators, computed in float64."""

from __future__ import annotations

import numpy as np

from kmeans_kernel.core.arrays.encoding import ColumnEncoding, FeatureMap
from kmeans_kernel.core.arrays.feature_transform import FARTHEST, FeatureTransform
from kmeans_kernel.core.arrays.matrices import IntArray
from kmeans_kernel.export.onnx._graph import FLOAT64, Graph, Name

# From here on asinh(x) = log(2x) in float64: the next term of the series is 1/(4x²).
_FAR = 1e8


def mapped_features(
    graph: Graph, feature_map: FeatureMap, rows: Name, dtype: np.dtype[np.floating]
) -> Name:
    """Return the features of rows of type `dtype`, rounded to it; NaN is a missing value."""
    wide = graph.cast(rows, FLOAT64)
    if isinstance(feature_map, ColumnEncoding):
        return graph.cast(_encoded(graph, feature_map, wide), dtype)
    return _transformed(graph, feature_map, wide, dtype)


def _encoded(graph: Graph, encoding: ColumnEncoding, rows: Name) -> Name:
    """Return the (n, D) features of float64 rows: values, steps, levels, missing."""
    parts = []
    if encoding.values is not None:
        values = _columns(graph, encoding, rows, encoding.value_columns)
        parts.append(_transformed(graph, encoding.values, values, FLOAT64))
    if len(encoding.step_columns):
        parts.append(_steps(graph, encoding, rows))
    if len(encoding.level_columns):
        parts.append(_levels(graph, encoding, rows))
    if len(encoding.missing_columns):
        absent = graph.op("IsNaN", _columns(graph, encoding, rows, encoding.missing_columns))
        parts.append(graph.op("Sub", graph.cast(absent, FLOAT64), encoding.missing_shares))
    return graph.join(parts)


def _columns(graph: Graph, encoding: ColumnEncoding, rows: Name, columns: IntArray) -> Name:
    """Return some columns of rows, in this order."""
    if np.array_equal(columns, np.arange(encoding.n_columns)):
        return rows
    return graph.op("Gather", rows, columns.astype(np.int64), axis=1)


def _steps(graph: Graph, encoding: ColumnEncoding, rows: Name) -> Name:
    """Return the thermometer codes of numbers."""
    numbers = _columns(graph, encoding, rows, encoding.step_columns)
    zero = np.float64(0)
    shares = graph.op("Sub", numbers, encoding.step_starts)
    shares = graph.op("Div", shares, encoding.step_widths)
    shares = graph.op("Clip", shares, zero, np.float64(1))
    shares = graph.op("Mul", graph.op("Sub", shares, encoding.step_means), encoding.step_gains)
    return graph.op("Where", graph.op("IsNaN", numbers), zero, shares)


def _levels(graph: Graph, encoding: ColumnEncoding, rows: Name) -> Name:
    """Return the one-hot codes of categories."""
    places = _columns(graph, encoding, rows, encoding.level_columns)
    same = graph.op("Equal", places, encoding.level_codes.astype(np.float64))
    known = graph.cast(graph.op("GreaterOrEqual", places, np.float64(0)), FLOAT64)
    expected = graph.op("Mul", encoding.level_shares, known)
    return graph.op("Sub", graph.cast(same, FLOAT64), expected)


def _transformed(
    graph: Graph, transform: FeatureTransform, rows: Name, dtype: np.dtype[np.floating]
) -> Name:
    """Return the transform of float64 rows, rounded to `dtype`, the type of the rows."""
    # A missing number becomes the centre, whose transform is zero.
    rows = graph.op("Where", graph.op("IsNaN", rows), transform.centers, rows)
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
