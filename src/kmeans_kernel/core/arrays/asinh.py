"""Features with long tails: squashed, so that a few large values do not set the distances.

Trees do not mind a salary among counts; distances do. A feature x becomes g·asinh((x − c) / w):
near its median c it stays as it is, far out it grows as a logarithm, and order is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.arrays.sparse import Matrix

# A normal distribution deviates from its median by one standard deviation in this many medians.
_DEVIATION_IN_MEDIANS = 1.4826

# A tail is long if something is so many widths out: of ten thousand normal numbers, none is.
_LONG_TAIL = 5.0

# The sinh of this is a number, and nothing is told apart that is farther out.
_LARGEST = 700.0
FARTHEST = float(np.sinh(_LARGEST))


@dataclass(frozen=True, eq=False)
class Squash:
    """What is done to each feature.

    Attributes
    ----------
    centers : (d,) the medians c
    widths : (d,) the usual deviations w from them
    gains : (d,) the factors g, which bring the variance to one
    """

    centers: Array
    widths: Array
    gains: Array

    def __post_init__(self) -> None:
        for array in (self.centers, self.widths, self.gains):
            array.flags.writeable = False

    @classmethod
    def of(cls, X: Array, weights: Array) -> Squash:
        """Learn it from rows and their weights; weights may be copies.

        The width is the median deviation of what deviates, since most of a feature may be zero.
        """
        X = X.astype(np.float64)
        centers = np.array([_median(column, weights) for column in X.T])
        deviations = np.abs(X - centers)
        widths = np.array([_usual(column, weights) for column in deviations.T])
        squashed = cls(centers, widths, np.ones(len(widths))).apply(X)
        mean = np.average(squashed, axis=0, weights=weights)
        variances = np.average((squashed - mean) ** 2, axis=0, weights=weights)
        return cls(centers, widths, 1.0 / np.sqrt(np.where(variances > 0, variances, 1.0)))

    def apply(self, X: Matrix) -> Array:
        """Return rows squashed, in their own type if they are of floating-point numbers."""
        dtype = X.dtype if X.dtype.kind == "f" else np.float64
        with np.errstate(over="ignore"):
            far = (X.astype(np.float64) - self.centers) / self.widths
        squashed = np.arcsinh(np.clip(far, -FARTHEST, FARTHEST))
        return np.asarray((squashed * self.gains).astype(dtype))

    def undo(self, X: Array) -> Array:
        """Return the rows that are squashed to these."""
        angles = np.clip(X.astype(np.float64) / self.gains, -_LARGEST, _LARGEST)
        return np.asarray((self.centers + self.widths * np.sinh(angles)).astype(X.dtype))

    def has_long_tails(self, X: Array) -> bool:
        """Say whether there is something to squash in the rows."""
        return bool((np.abs(X.astype(np.float64) - self.centers) > _LONG_TAIL * self.widths).any())


@dataclass(frozen=True, eq=False)
class SquashedRows:
    """Rows that are squashed when they are asked for."""

    X: Any
    squash: Squash

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows, of how many features."""
        shape: tuple[int, ...] = self.X.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the rows."""
        dtype: np.dtype[Any] = self.X.dtype
        return dtype if dtype.kind == "f" else np.dtype(np.float64)

    def __getitem__(self, rows: Any) -> Array:
        """Return the rows that a slice or an array of indices selects."""
        return self.squash.apply(self.X[rows])


def _usual(deviations: Array, weights: Array) -> float:
    """Return the usual deviation of what deviates at all, about that of a normal distribution."""
    off = deviations > 0
    if not off.any():
        return 1.0
    return _DEVIATION_IN_MEDIANS * _median(deviations[off], weights[off])


def _median(values: Array, weights: Array) -> float:
    """Return the least value that, with those below, has half the weight."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(below, 0.5 * below[-1])]])
