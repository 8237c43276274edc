"""Transforms of the features of a table: standardisation, and asinh for long tails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.matrices import Array, IntArray, Matrix

# Standard deviation / median absolute deviation (MAD) of a normal distribution.
_DEVIATION_IN_MEDIANS = 1.4826

# About the largest argument whose sinh is finite, and its sinh, to which deviations are clipped.
_LARGEST = 700.0
FARTHEST = float(np.sinh(_LARGEST))

# A feature whose standard deviation is at most this share of its largest entry is constant up to
# rounding.
_ROUNDING = 16 * float(np.finfo(np.float64).eps)

# Width by which a constant feature is divided.
_WIDTH_OF_CONSTANT = 1e300

# Features of one unit: at least so many, and the median of their largest entries is at least this
# share of the largest, which is more than the highest answer on a scale.
_MANY_FEATURES, _SIMILAR_RANGE, _LARGEST_ANSWER = 16, 0.5, 10

# Features of several units: ratio of the ninth decile of their ranges to the first, or of an offset
# to the largest range; ratio of the largest range to the median; rows that are looked at.
_SEVERAL_RANGES, _DROWNING_RANGE, _ROWS_OF_RANGES = 100.0, 1000.0, 2000

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

    @property
    def n_features(self) -> int:
        """Number of features, as many as columns."""
        return len(self.centers)

    @property
    def groups(self) -> None:
        """None: every feature is a column of its own."""

    def for_columns(self, order: IntArray) -> FeatureTransform:
        """Return the transform of rows X that equals, column by column, this one of X[:, order]."""
        places = np.argsort(order)
        return FeatureTransform(
            self.kind, self.centers[places], self.widths[places], self.gains[places]
        )

    def apply(self, X: Matrix) -> Array:
        """Return transformed rows, in the type of X if that is a floating-point type."""
        dtype = X.dtype if X.dtype.kind == "f" else np.float64
        # One memory layout: sums over a row may be in another order for another layout.
        values = _deviations(X.astype(np.float64, order="C"), self.centers, self.widths)
        if self.kind == "asinh":
            np.arcsinh(values, out=values)
        values *= self.gains
        values[np.isnan(values)] = 0.0  # missing: the mean, or the median for "asinh"
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

        A feature that is constant up to rounding says nothing: its width is so large that it is
        zero for any row, whatever comes later.
        """
        constant = self.deviations <= _ROUNDING * self.largest
        widths = np.where(constant, _WIDTH_OF_CONSTANT, self.deviations)
        return FeatureTransform("standard", self.means.copy(), widths, np.ones(len(widths)))


def has_one_unit(X: Array) -> bool:
    """Return whether the features look like pixels or counts of one kind.

    That is, many features of whole numbers from zero on, up to more than answers on a scale have,
    with similar ranges. Dividing each by its own standard deviation would magnify the noise of
    those that are almost always zero.
    """
    if X.shape[1] < _MANY_FEATURES or (X < 0).any() or (np.rint(X) != X).any():
        return False
    highest = X.max(axis=0)
    similar = np.median(highest) >= _SIMILAR_RANGE * highest.max()
    return bool(similar and (X.min(axis=0) == 0).all() and highest.max() > _LARGEST_ANSWER)


def has_several_units(X: Array) -> bool:
    """Return whether the ranges or the offsets of the features differ as those of a table do.

    The ninth decile of the ranges is over a hundred times the first, as of fractions beside
    distances in metres; or one feature's range or offset would drown the others, as Unix seconds
    do. Pixels, embeddings and what is made of them are more even.
    """
    some = X[:: -(-len(X) // _ROWS_OF_RANGES)]
    highest, lowest = np.fmax.reduce(some, axis=0), np.fmin.reduce(some, axis=0)
    ranges = (highest - lowest)[highest > lowest]
    if not len(ranges):
        return False
    first, median, ninth = np.quantile(ranges, [0.1, 0.5, 0.9])
    offset = np.fmax.reduce(np.abs(highest / 2 + lowest / 2))
    return bool(
        ninth > _SEVERAL_RANGES * first
        or ranges.max() > _DROWNING_RANGE * median
        or offset > _SEVERAL_RANGES * ranges.max()
    )


def learn_standard(X: Array, weights: Array) -> FeatureTransform:
    """Learn means and standard deviations from rows and their weights."""
    return FeatureMoments.of(X, weights).standard_transform()


def learn_asinh(X: Array, weights: Array) -> FeatureTransform:
    """Learn the asinh transform from rows and their weights; a weight of 2 counts as two rows.

    The width of a feature is taken from its nonzero deviations from the median alone: in a feature
    that is mostly zero, the median of all deviations would be zero.
    """
    X = X.astype(np.float64)
    centers = np.array([_median(column, weights) for column in X.T])
    deviations = np.abs(X - centers)
    widths = np.array([_typical_deviation(column, weights) for column in deviations.T])
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
