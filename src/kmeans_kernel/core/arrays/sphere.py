"""The map of rows to the unit sphere, where K-means clusters and kernels depend on the cosine.

A `SphereMap` has up to three steps: a transform of each feature (standardisation, or asinh for long
tails), a scale for each feature (AGOP), and the lift, a constant appended to the row before it is
divided by its length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.encoding import FeatureMap
from kmeans_kernel.core.arrays.matrices import (
    Array,
    Matrix,
    append_column,
    cached_row_blocks,
    dense,
    is_sparse,
    largest_entries,
    scale_columns,
    scale_rows,
    squared_lengths,
)

# A row whose sum of squares is outside this range, near overflow or underflow, is rescaled first.
_SMALLEST_SQUARE, _LARGEST_SQUARE = 1e-280, 1e280


@dataclass(frozen=True, eq=False)
class SphereMap:
    """The map of rows to the unit sphere: feature transform, feature scales, lift, normalisation.

    Attributes
    ----------
    lift : the constant appended to each row; 0 for none
    scales : (D,) factors of the features, applied after the transform; None for ones
    feature_transform : the first step, which may change the number of features, d columns to D;
        None for none
    """

    lift: float
    scales: Array | None = None
    feature_transform: FeatureMap | None = None

    def __post_init__(self) -> None:
        if self.scales is not None:
            scales = self.scales.view()
            scales.flags.writeable = False
            object.__setattr__(self, "scales", scales)

    def apply(self, X: Matrix, dtype: npt.DTypeLike) -> Matrix:
        """Return rows on the sphere: (n, d), or (n, d + 1) with a lift."""
        if self.feature_transform is None:
            return unit_rows(X, self.lift, dtype, self.scales)
        # Block by block: the steps of the transform then stay in the cache.
        n, X, d = X.shape[0], dense(X), self.feature_transform.n_features
        out = np.empty((n, d + 1 if self.lift > 0 else d), dtype=dtype)
        for rows in cached_row_blocks(n, d):
            out[rows] = unit_rows(self.transform(X[rows]), self.lift, dtype, self.scales)
        return out

    def transform(self, X: Matrix) -> Matrix:
        """Return rows after the feature transform, before scales and lift."""
        return X if self.feature_transform is None else self.feature_transform.apply(dense(X))

    def invert(self, directions: Array) -> Array:
        """Return points in feature space that are mapped to these unit rows."""
        points = unlift(directions, self.lift)
        if self.scales is not None:
            points = (points / self.scales).astype(points.dtype)
        return points if self.feature_transform is None else self.feature_transform.invert(points)


# No transform, no scales, no lift: the paper's map.
PLAIN_MAP = SphereMap(0.0)


def unit_rows(
    X: Matrix,
    lift: float = 0.0,
    dtype: npt.DTypeLike = np.float32,
    scales: Array | None = None,
) -> Matrix:
    """Map rows, trusted to be finite, to the unit sphere: x ↦ [x, lift] / ‖[x, lift]‖.

    Without a lift (0, the paper's setting) the length of a row is lost and the result has the shape
    of `X`; with a lift, the length survives as the angle to the appended last axis. Without a lift
    a zero row has no direction and stays zero, so its cosine with every row is 0.

    Parameters
    ----------
    X : (n, d) numbers, dense or sparse
    lift : the appended constant, at least 0
    dtype : type of the result; lengths are computed in float64 in any case
    scales : (d,) factors of the features; None for ones

    Returns
    -------
    (n, d) rows, or (n, d + 1) with a lift, sparse if `X` is; never a view of `X`
    """
    if is_sparse(X):
        return _sparse_unit_rows(X, lift, dtype, scales)
    n, d = X.shape
    out = np.empty((n, d + 1 if lift > 0 else d), dtype=dtype)
    for rows in cached_row_blocks(n, d):
        block = X[rows].astype(np.float64)
        lifts = np.full(len(block), lift)
        if scales is not None:  # divided by the largest, so that no product overflows
            block *= scales / scales.max()
            lifts /= scales.max()
        with np.errstate(over="ignore", under="ignore"):
            squares = np.einsum("ij,ij->i", block, block) + lifts**2
        extreme = ~((squares > _SMALLEST_SQUARE) & (squares < _LARGEST_SQUARE))
        if extreme.any():
            _bring_into_range(block, lifts, squares, extreme)
        lengths = np.sqrt(squares)
        lengths[lengths == 0] = 1.0
        np.divide(block, lengths[:, np.newaxis], out=out[rows, :d], casting="same_kind")
        if lift > 0:
            out[rows, d] = lifts / lengths
    return out


def _sparse_unit_rows(X: Matrix, lift: float, dtype: npt.DTypeLike, scales: Array | None) -> Matrix:
    """Map sparse rows to the sphere; first divide each by its largest entry, against overflow."""
    X = scale_columns(X, scales) if scales is not None else X
    largest = np.maximum(largest_entries(X), lift)
    largest[largest == 0] = 1.0
    X = scale_rows(X, 1.0 / largest, np.float64)
    lifts = lift / largest
    lengths = np.sqrt(squared_lengths(X) + lifts**2)
    lengths[lengths == 0] = 1.0
    X = scale_rows(X, 1.0 / lengths, dtype)
    return append_column(X, lifts / lengths) if lift > 0 else X


def unlift(directions: Array, lift: float) -> Array:
    """Return points that `unit_rows` with this lift maps to `directions`.

    Directions are (m, d + 1) with a lift and (m, d) without. Without a lift every length maps to
    the same direction, and the directions themselves are returned. Where the last component has
    underflowed to zero, the point is very far out and gets a large, finite length.
    """
    if lift > 0:
        height = np.maximum(directions[:, -1:], np.finfo(directions.dtype).tiny)
        return directions[:, :-1] * (lift / height)
    return directions


def _bring_into_range(
    block: Array, lifts: Array, squares: Array, extreme: npt.NDArray[np.bool_]
) -> None:
    """Rescale in place the `extreme` rows of [block, lifts], and recompute their squares."""
    scales = np.maximum(np.abs(block[extreme]).max(axis=1, initial=0.0), lifts[extreme])
    scales[scales == 0] = 1.0
    block[extreme] /= scales[:, np.newaxis]
    lifts[extreme] /= scales
    with np.errstate(under="ignore"):
        rows = block[extreme]
        squares[extreme] = np.einsum("ij,ij->i", rows, rows) + lifts[extreme] ** 2
