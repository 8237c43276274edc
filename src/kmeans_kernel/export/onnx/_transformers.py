"""Transformers as ONNX operators, in the same precision as in Python.

Pixels are computed in float64 and the features rounded at the end; `EdgePatterns` computes in the
type of its features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators.transformers._agop_projection import AGOPProjection
from kmeans_kernel.estimators.transformers._deskewer import STEEPEST, Deskewer
from kmeans_kernel.estimators.transformers._edge_patterns import (
    COARSE_BLUR,
    FINE_BLUR,
    ORIENTATIONS,
    POOL_BLUR,
    POOL_STRIDE,
    SHARPNESS,
    SIDE,
    STRIDE,
    WIDTH,
    EdgePatterns,
)
from kmeans_kernel.estimators.transformers._fourier import FourierFeatures
from kmeans_kernel.estimators.transformers._hog import OrientedGradients, n_sampled, sampling
from kmeans_kernel.estimators.transformers._pixels import LARGEST_PIXEL, PixelNormalizer
from kmeans_kernel.export.onnx._graph import FLOAT64, Graph, Name
from kmeans_kernel.export.onnx._score import unit_rows

# As in `Deskewer`: below this vertical variance, in pixels², the slant of an image is undefined and
# the image is left unchanged.
_LEAST_SPREAD = 1e-9


def pixel_features(
    graph: Graph, transformer: PixelNormalizer, X: Name, dtype: np.dtype[Any]
) -> Name:
    """Return the features of `PixelNormalizer`."""
    del transformer
    return graph.cast(unit_rows(graph, _centered(graph, graph.cast(X, FLOAT64))), dtype)


def fourier_features(
    graph: Graph, transformer: FourierFeatures, X: Name, dtype: np.dtype[Any]
) -> Name:
    """Return the features of `FourierFeatures`."""
    pixels = _centered(graph, graph.cast(X, FLOAT64))
    magnitudes = _magnitudes(graph, pixels, transformer.n_features_in_)
    if transformer.root:
        magnitudes = graph.op("Sqrt", magnitudes)
    return _concatenate_unit_rows(graph, pixels, _centered(graph, magnitudes), dtype)


def deskewed_features(graph: Graph, transformer: Deskewer, X: Name, dtype: np.dtype[Any]) -> Name:
    """Return the features of `Deskewer`: each image row shifted by linear interpolation."""
    height, width = transformer.image_shape_
    images = graph.reshape(graph.cast(X, FLOAT64), 0, height, width)
    shifts = graph.op("Unsqueeze", _deskew_shifts(graph, images, height, width), np.array([2]))
    sources = graph.op("Add", shifts, np.arange(width, dtype=float))  # (n, height, width)
    left = graph.op("Floor", sources)
    share = graph.op("Sub", sources, left)
    padded = graph.op("Pad", images, np.array([0, 0, 1, 0, 0, 1]))

    def pixels(offset: float) -> Name:
        places = graph.op("Add", left, np.float64(offset))
        places = graph.op("Max", graph.op("Min", places, np.float64(width + 1)), np.float64(0))
        return graph.op("GatherElements", padded, graph.cast(places, np.int64), axis=2)

    first = graph.op("Mul", graph.op("Sub", np.float64(1), share), pixels(1))
    upright = graph.op("Add", first, graph.op("Mul", share, pixels(2)))
    return graph.cast(graph.reshape(upright, 0, height * width), dtype)


def gradient_features(
    graph: Graph, transformer: OrientedGradients, X: Name, dtype: np.dtype[Any]
) -> Name:
    """Return the features of `OrientedGradients`."""
    shape = transformer.image_shape_
    slopes = _oriented_gradients(
        graph, graph.cast(X, FLOAT64), shape, transformer.n_orientations, transformer.sharpness,
        FLOAT64,
    )  # fmt: skip
    maps = _blur_and_sample(graph, slopes, shape, transformer.blur, transformer.stride, FLOAT64)
    rows = graph.reshape(maps, 0, transformer._n_features_out)
    return graph.cast(unit_rows(graph, rows), dtype)


def pattern_features(
    graph: Graph, transformer: EdgePatterns, X: Name, dtype: np.dtype[Any]
) -> Name:
    """Return the features of `EdgePatterns`."""
    shape = transformer.image_shape_
    samples = [n_sampled(length, STRIDE) for length in shape]
    n_plain = ORIENTATIONS * samples[0] * samples[1]
    slopes = _oriented_gradients(graph, graph.cast(X, dtype), shape, ORIENTATIONS, SHARPNESS, dtype)
    fine, coarse = (
        _blur_and_sample(graph, slopes, shape, blur, STRIDE, dtype)
        for blur in (FINE_BLUR, COARSE_BLUR)
    )
    plain = graph.reshape(graph.op("Transpose", coarse, perm=[0, 2, 3, 1]), 0, n_plain)
    codes = _pattern_codes(graph, transformer, graph.reshape(fine, 0, n_plain), dtype)
    codes = graph.reshape(codes, 0, transformer._n_features_out - n_plain)
    return _concatenate_unit_rows(
        graph, graph.cast(plain, FLOAT64), graph.cast(codes, FLOAT64), dtype
    )


def metric_features(
    graph: Graph, transformer: AGOPProjection, X: Name, dtype: np.dtype[Any]
) -> Name:
    """Return the features of `AGOPProjection`."""
    return graph.op("MatMul", graph.cast(X, dtype), transformer.components_.astype(dtype))


def _concatenate_unit_rows(graph: Graph, first: Name, second: Name, dtype: np.dtype[Any]) -> Name:
    """Normalize two sets of float64 features to equal length, and concatenate them."""
    both = graph.op("Concat", unit_rows(graph, first), unit_rows(graph, second), axis=1)
    return graph.cast(graph.op("Mul", both, np.sqrt(0.5)), dtype)


def _centered(graph: Graph, X: Name) -> Name:
    """Subtract from each float64 row its mean; a constant row becomes exactly zero."""
    highest, lowest = graph.reduce("Max", X), graph.reduce("Min", X)
    size = graph.op("Max", highest, graph.op("Neg", lowest))
    large = graph.op("Greater", size, np.float64(LARGEST_PIXEL))
    X = graph.op("Div", X, graph.op("Where", large, size, np.float64(1)))
    centered = graph.op("Sub", X, graph.reduce("Mean", X))
    return graph.op("Where", graph.op("Equal", highest, lowest), np.float64(0), centered)


def _magnitudes(graph: Graph, pixels: Name, n_pixels: int) -> Name:
    """Return the first half of the Fourier magnitudes of rows.

    Products with cosine and sine matrices are faster and more accurate than onnxruntime's DFT for
    some hundred pixels. The graph stores one period of each wave and gathers the matrices from it,
    which keeps the file small.
    """
    places = np.arange(n_pixels)
    steps = graph.op("Mul", places[:, None], places[None, : (n_pixels + 1) // 2])
    angles = graph.op("Mod", steps, np.array(n_pixels))
    turn = 2 * np.pi * places / n_pixels
    parts = [
        graph.op("MatMul", pixels, graph.op("Gather", wave, angles))
        for wave in (np.cos(turn), np.sin(turn))
    ]
    squares = [graph.op("Mul", part, part) for part in parts]
    return graph.op("Sqrt", graph.op("Add", *squares))


def _deskew_shifts(graph: Graph, images: Name, height: int, width: int) -> Name:
    """Return the (n, height) horizontal shifts of the rows of float64 images."""
    rows, columns = np.arange(height, dtype=float), np.arange(width, dtype=float)
    zero = np.float64(0)
    weights = graph.op("Max", images, zero)
    top = graph.reduce("Max", graph.reduce("Max", weights, 2), 1)
    weights = graph.op("Div", weights, graph.safe_divisor(top))
    of_rows, of_columns = (graph.reduce("Sum", weights, axis, keep=False) for axis in (2, 1))
    total = graph.safe_divisor(graph.reduce("Sum", of_rows))

    def mean(values: Name, of: Array) -> Name:
        return graph.op("Div", graph.op("MatMul", values, of[:, None]), total)

    middle_row, middle_column = mean(of_rows, rows), mean(of_columns, columns)
    along = graph.reduce("Sum", graph.op("Mul", weights, columns), 2, keep=False)
    spread = graph.op("Sub", mean(of_rows, rows**2), graph.op("Mul", middle_row, middle_row))
    together = graph.op("Sub", mean(along, rows), graph.op("Mul", middle_row, middle_column))
    tall = graph.op("Greater", spread, np.float64(_LEAST_SPREAD))
    slant = graph.op("Div", together, graph.op("Where", tall, spread, np.float64(1)))
    slant = graph.op("Where", tall, slant, zero)
    slant = graph.op("Min", graph.op("Max", slant, np.float64(-STEEPEST)), np.float64(STEEPEST))
    return graph.op("Mul", slant, graph.op("Sub", rows, middle_row))


def _oriented_gradients(
    graph: Graph,
    X: Name,
    shape: tuple[int, int],
    n_orientations: int,
    sharpness: float,
    dtype: np.dtype[Any],
) -> Name:
    """Return the (n, orientations, height, width) gradient magnitudes of rows of pixels."""
    images = graph.reshape(X, 0, 1, *shape)
    down = graph.op("MatMul", _difference(shape[0]).astype(dtype), images)
    right = graph.op("MatMul", images, _difference(shape[1]).T.astype(dtype))
    # As in hypot: both parts are divided by the larger one, so that no square overflows.
    larger = graph.op("Max", graph.op("Abs", down), graph.op("Abs", right))
    safe = graph.safe_divisor(larger, dtype)
    shares = [graph.op("Div", part, safe) for part in (right, down)]
    squares = [graph.op("Mul", share, share) for share in shares]
    length = graph.op("Sqrt", graph.op("Add", *squares))
    divisor = graph.safe_divisor(length, dtype)
    right, down = (graph.op("Div", share, divisor) for share in shares)
    angles = 2 * np.pi * np.arange(n_orientations)[:, None, None] / n_orientations
    cosines = graph.op(
        "Add",
        graph.op("Mul", right, np.cos(angles).astype(dtype)),
        graph.op("Mul", down, np.sin(angles).astype(dtype)),
    )
    sharp = graph.power(graph.op("Max", cosines, np.array(0, dtype)), sharpness, dtype)
    return graph.op("Mul", graph.op("Mul", larger, length), sharp)


def _difference(length: int) -> Array:
    """Return the central difference matrix of a line of pixels, zero beyond the border."""
    return np.eye(length, k=1) - np.eye(length, k=-1)


def _blur_and_sample(
    graph: Graph,
    slopes: Name,
    shape: tuple[int, int],
    blur: float,
    stride: int,
    dtype: np.dtype[Any],
) -> Name:
    """Return the square roots of gradient maps after Gaussian blur and subsampling."""
    down, right = (sampling(length, blur, stride).astype(dtype) for length in shape)
    narrow = graph.op("MatMul", slopes, np.ascontiguousarray(right.T))
    maps = graph.op("MatMul", down, narrow)
    return graph.op("Sqrt", maps)


def _pattern_codes(
    graph: Graph, transformer: EdgePatterns, edges: Name, dtype: np.dtype[Any]
) -> Name:
    """Return the (n, positions, J) pooled codes; `edges` has the orientations one after another."""
    samples = [n_sampled(length, STRIDE) for length in transformer.image_shape_]
    # One zero is appended, which stands for all positions beyond the border.
    edges = graph.op("Pad", edges, np.array([0, 0, 0, 1]))
    rows = graph.op("Gather", edges, _neighbour_indices(*samples), axis=1)  # (n, places, 72)
    squares = graph.op("Mul", rows, rows)
    strengths = graph.op("Sqrt", graph.reduce("Sum", squares, 2))
    rows = graph.op("Div", rows, graph.safe_divisor(strengths, dtype))
    gaps = graph.op("MatMul", rows, np.ascontiguousarray(transformer.patterns_.astype(dtype).T))
    gaps = graph.op("Sub", gaps, np.array(1, dtype))
    similarity = graph.op("Exp", graph.op("Mul", gaps, np.array(WIDTH, dtype)))
    codes = graph.op("Mul", similarity, graph.op("Sqrt", strengths))
    down, right = (sampling(length, POOL_BLUR, POOL_STRIDE) for length in samples)
    pooled = graph.op("MatMul", np.kron(down, right).astype(dtype), codes)
    return graph.op("MatMul", pooled, transformer._mixing.astype(dtype))


def _neighbour_indices(height: int, width: int) -> npt.NDArray[np.int64]:
    """Return the (height × width, 72) indices of the edges around each sample.

    An index refers to the flattened (orientations, height, width) edges; the index after the last
    stands for positions beyond the border.
    """
    n, margin = ORIENTATIONS, SIDE // 2
    around = [(0, 0), (margin, margin), (margin, margin)]
    places = np.arange(n * height * width).reshape(n, height, width)
    padded = np.pad(places, around, constant_values=places.size)
    side = (SIDE, SIDE)
    windows = np.lib.stride_tricks.sliding_window_view(padded, side, axis=(1, 2))
    return np.moveaxis(windows, 0, 2).reshape(height * width, -1).astype(np.int64)
