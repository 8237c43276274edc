"""The map of rows to the unit sphere, where K-means clusters and kernels depend on the cosine.

A `SphereMap` has up to three steps: a transform of each feature (standardisation, or asinh for long
tails), a scale for each feature (AGOP), and the lift, a constant appended to the row before it is
divided by its length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

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

# Standard deviation / median absolute deviation (MAD) of a normal distribution.
_DEVIATION_IN_MEDIANS = 1.4826

# A feature has a long tail if a value is more than this many robust standard deviations from the
# median: among ten thousand normal numbers there is no such value.
_LONG_TAIL = 5.0

# About the largest argument whose sinh is finite, and its sinh, to which deviations are clipped.
_LARGEST = 700.0
FARTHEST = float(np.sinh(_LARGEST))

# A feature whose standard deviation is at most this share of its largest entry is constant up to
# rounding.
_ROUNDING = 16 * float(np.finfo(np.float64).eps)

# Features of one unit: at least so many, and the median of their largest entries is at least this
# share of the largest.
_MANY_FEATURES, _SIMILAR_RANGE = 16, 0.5

# A row whose sum of squares is outside this range, near overflow or underflow, is rescaled first.
_SMALLEST_SQUARE, _LARGEST_SQUARE = 1e-280, 1e280


TransformKind: TypeAlias = Literal["standard", "asinh"]


@dataclass(frozen=True, eq=False)
class FeatureTransform:
    """A transform of each feature: g·φ((x − c) / w), computed in float64.

    For "standard" φ is the identity: a shift or another unit of a feature changes nothing. For
    "asinh" φ is the inverse hyperbolic sine: linear near the median, logarithmic far out, and
    monotone, so that a few large values do not dominate the distances between rows.

    Attributes
    ----------
    kind : the name of φ
    centers : (d,) c, the means; the medians for "asinh"
    widths : (d,) w, the standard deviations; robust ones for "asinh"
    gains : (d,) g, the factors that bring the variance to one; ones for "standard"
    """

    kind: TransformKind
    centers: Array
    widths: Array
    gains: Array

    def __post_init__(self) -> None:
        for array in (self.centers, self.widths, self.gains):
            array.flags.writeable = False

    def apply(self, X: Matrix) -> Array:
        """Return transformed rows, in the type of X if that is a floating-point type."""
        dtype = X.dtype if X.dtype.kind == "f" else np.float64
        # One memory layout: sums over a row may be in another order for another layout.
        values = _deviations(X.astype(np.float64, order="C"), self.centers, self.widths)
        if self.kind == "asinh":
            np.arcsinh(values, out=values)
        values *= self.gains
        if dtype != np.float64:
            largest = float(np.finfo(dtype).max)
            np.clip(values, -largest, largest, out=values)
        return np.asarray(values.astype(dtype, copy=False))

    def invert(self, X: Array) -> Array:
        """Return the rows whose transform is X, in float64: float32 may not resolve them."""
        values = X.astype(np.float64) / self.gains
        if self.kind == "asinh":
            values = np.sinh(np.clip(values, -_LARGEST, _LARGEST))
        with np.errstate(over="ignore"):
            values = self.centers + self.widths * values
        largest = float(np.finfo(np.float64).max)
        return np.asarray(np.clip(values, -largest, largest, out=values))


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Means and standard deviations of features, additive over blocks of rows.

    Attributes
    ----------
    weight : total weight of the rows
    means, deviations : (d,) weighted means and standard deviations
    largest : (d,) largest absolute entries
    """

    weight: float
    means: Array
    deviations: Array
    largest: Array

    @classmethod
    def of(cls, X: Array, weights: Array) -> FeatureMoments:
        """Return the moments of rows."""
        X = X.astype(np.float64)
        largest = np.abs(X).max(axis=0)
        shares = weights / weights.sum()
        # Relative to the first row, in units of the largest entry: nothing cancels or overflows.
        units = np.where(largest > 0, largest, 1.0)
        off = X / units - X[0] / units
        means = shares @ off
        deviations = np.sqrt(shares @ (off - means) ** 2) * units
        return cls(float(weights.sum()), (X[0] / units + means) * units, deviations, largest)

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        """Join the moments of two blocks, without squares that overflow."""
        weight = self.weight + other.weight
        mine, theirs = self.weight / weight, other.weight / weight
        inside = np.hypot(np.sqrt(mine) * self.deviations, np.sqrt(theirs) * other.deviations)
        apart = np.sqrt(mine * theirs) * (self.means - other.means)
        return FeatureMoments(
            weight,
            mine * self.means + theirs * other.means,
            np.hypot(inside, apart),
            np.maximum(self.largest, other.largest),
        )

    def standard_transform(self) -> FeatureTransform:
        """Return the transform to mean zero and variance one.

        A feature that is constant up to rounding gets a width of one, so that its rounding is not
        magnified.
        """
        constant = self.deviations <= _ROUNDING * self.largest
        widths = np.where(constant, 1.0, self.deviations)
        return FeatureTransform("standard", self.means.copy(), widths, np.ones(len(widths)))


def has_one_unit(X: Array) -> bool:
    """Return whether the features look like pixels or counts of one kind.

    That is, many features of whole numbers from zero on, with similar ranges. Dividing each by its
    own standard deviation would magnify the noise of those that are almost always zero.
    """
    if X.shape[1] < _MANY_FEATURES or (X < 0).any() or (np.rint(X) != X).any():
        return False
    highest = X.max(axis=0)
    similar = np.median(highest) >= _SIMILAR_RANGE * highest.max()
    return bool(similar and (X.min(axis=0) == 0).all() and highest.max() > 1)


def learn_standard(X: Array, weights: Array) -> FeatureTransform:
    """Learn means and standard deviations from rows and their weights."""
    return FeatureMoments.of(X, weights).standard_transform()


def learn_asinh(X: Array, weights: Array, *, long_tails_only: bool) -> FeatureTransform | None:
    """Learn the asinh transform from rows and their weights; a weight of 2 counts as two rows.

    The width of a feature is taken from its nonzero deviations from the median alone: in a feature
    that is mostly zero, the median of all deviations would be zero.

    Parameters
    ----------
    long_tails_only : whether to return None if no feature has a long tail
    """
    X = X.astype(np.float64)
    centers = np.array([_median(column, weights) for column in X.T])
    deviations = np.abs(X - centers)
    widths = np.array([_typical_deviation(column, weights) for column in deviations.T])
    if long_tails_only and not (deviations > _LONG_TAIL * widths).any():
        return None
    values = np.arcsinh(_deviations(X, centers, widths))
    mean = np.average(values, axis=0, weights=weights)
    variances = np.average((values - mean) ** 2, axis=0, weights=weights)
    gains = 1.0 / np.sqrt(np.where(variances > 0, variances, 1.0))
    return FeatureTransform("asinh", centers, widths, gains)


def _deviations(X: Array, centers: Array, widths: Array) -> Array:
    """Return (x − c) / w, clipped to a finite range."""
    with np.errstate(over="ignore"):
        far = (X - centers) / widths
    return np.asarray(np.clip(far, -FARTHEST, FARTHEST, out=far))


def _typical_deviation(deviations: Array, weights: Array) -> float:
    """Return the robust standard deviation: 1.4826 times the median nonzero deviation."""
    off = deviations > 0
    if not off.any():
        return 1.0
    return _DEVIATION_IN_MEDIANS * _median(deviations[off], weights[off])


def _median(values: Array, weights: Array) -> float:
    """Return the weighted median: the least value with half the weight at or below it."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(below, 0.5 * below[-1])]])


@dataclass(frozen=True, eq=False)
class SphereMap:
    """The map of rows to the unit sphere: feature transform, feature scales, lift, normalisation.

    Attributes
    ----------
    lift : the constant appended to each row; 0 for none
    scales : (d,) factors of the features, applied after the transform; None for ones
    feature_transform : the first step; None for none
    """

    lift: float
    scales: Array | None = None
    feature_transform: FeatureTransform | None = None

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
        (n, d), X = X.shape, dense(X)
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
