"""Passes over all samples, block by block, for the solvers that take many.

Functions on the basis of the representatives are written in white features (`_ridge`). A pass
needs, of each block of samples, either these, for few representatives, or the kernel values that
they are made of, for many: whitening would cost n m².
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.arrays.executor import ALONE, Workers, shares
from kmeans_kernel.core.arrays.samples import Samples
from kmeans_kernel.core.solvers.nystrom import WhiteBasis

T = TypeVar("T")

Columns: TypeAlias = Callable[[Array], Array]

# Values of the samples are held up to this many bytes, and in float64 up to that many.
STORED_UP_TO = 4 << 30
_EXACT_UP_TO = 256 << 20

# The samples that the guess at the covariance looks at, for each representative.
_SHARE_OF_SAMPLES = 0.25

# A kernel steeper than this is not left to float32 cosines.
_STEEP = 1e4


@dataclass(frozen=True, eq=False)
class Passes:
    """What passes over the samples need.

    Attributes
    ----------
    samples : the samples
    m : how many values each has
    make : gives the (n, m) values of a block of rows
    inward : gives the coefficients of the values, of those of the white features
    outward : gives the sums over white features, of those over the values
    workers : who does it
    held : the values of each block, by its first row; None to make them again in every pass
    """

    samples: Samples
    m: int
    make: Callable[[slice], Array]
    inward: Columns
    outward: Columns
    workers: Workers
    held: dict[int, Array] | None = None

    def values(self, rows: slice) -> Array:
        """Return the (n, m) values of a block."""
        return self.make(rows) if self.held is None else self.held[rows.start]

    def holding(self) -> Passes:
        """Return the same with all values held."""
        blocks = self.samples.blocks
        values = self.workers.map(self.make, blocks)
        held = {rows.start: found for rows, found in zip(blocks, values, strict=True)}
        return replace(self, held=held)

    def total(self, part: Callable[[slice, Array], T]) -> T:
        """Return the sum of what a function of a block's rows and values gives."""

        def some(share: Sequence[slice]) -> T | None:
            total = None
            for rows in share:
                found = part(rows, self.values(rows))
                total = found if total is None else total + found  # type: ignore[operator]
                self.workers.checkpoint()
            return total

        parts = self.workers.map(some, shares(self.samples.blocks, self.workers))
        first, *others = [part for part in parts if part is not None]
        return reduce(add, others, first)

    def sums(self, residuals: Callable[[slice, Array], Array]) -> Array:
        """Return Σ vᵢ rᵢᵀ (m, K) over the samples in float64, v being the values.

        `residuals` gives the (n, K) r of a block from its rows and its values.
        """

        def part(rows: slice, values: Array) -> Array:
            found = residuals(rows, values).astype(values.dtype, copy=False)
            return np.asarray(values.T @ found, dtype=np.float64)

        return self.total(part)


def over_white_features(basis: WhiteBasis, samples: Samples, workers: Workers = ALONE) -> Passes:
    """Return passes over the white features themselves, held."""
    m = len(basis.directions)
    dtype = np.float64 if 8.0 * len(samples) * m <= _EXACT_UP_TO else np.float32

    def make(rows: slice) -> Array:
        return np.ascontiguousarray(basis.features(samples.directions(rows)), dtype=dtype)

    def same(columns: Array) -> Array:
        return columns

    return Passes(samples, m, make, same, same, workers).holding()


def over_kernel_values(
    basis: WhiteBasis,
    samples: Samples,
    workers: Workers = ALONE,
    stored_up_to: float = STORED_UP_TO,
) -> Passes:
    """Return passes over float32 kernel values with the representatives, held or made again."""
    m, directions = len(basis.directions), _directions_for_cosines(basis)

    def make(rows: slice) -> Array:
        values = _cosines(samples, rows, directions)
        basis.kernel.apply(values)
        return values.astype(np.float32, copy=False)

    made = Passes(samples, m, make, basis.dual, basis.whiten, workers)
    return made.holding() if 4.0 * len(samples) * m <= stored_up_to else made


def guess_covariance(
    basis: WhiteBasis, samples: Samples, counts: npt.NDArray[Any]
) -> tuple[Array, Array]:
    """Guess at the mean (m,) and the covariance (m, m) of the white features of the samples.

    It is that of the representatives, each as often as it has samples, whose white features are
    the rows of the factor; and that of a few samples about their representatives. In float32.

    Parameters
    ----------
    counts : (m,) the weight of the samples that each representative stands for
    """
    factor = basis.factor.astype(np.float32, order="F")
    weights = counts / counts.sum()
    mean = weights @ basis.factor
    n, n_some = len(samples), max(1, round(_SHARE_OF_SAMPLES * len(factor)))
    some = np.arange(0, n, -(-n // n_some))
    values = _cosines(samples, some, _directions_for_cosines(basis))
    nearest = values.argmax(axis=1)
    basis.kernel.apply(values)
    about = solve_triangular(
        factor, values.T.astype(np.float32, copy=False), lower=True, check_finite=False
    ).T
    about -= factor[nearest]
    some_weights = samples.weights[some]
    roots = np.sqrt(np.concatenate([weights, some_weights / some_weights.sum()]))
    scatter = np.concatenate([factor, about])
    scatter *= roots[:, None].astype(np.float32)
    covariance = (scatter.T @ scatter).astype(np.float64)
    covariance -= np.outer(mean, mean)
    return mean, covariance


def _directions_for_cosines(basis: WhiteBasis) -> Array:
    steep = basis.kernel.steepness > _STEEP
    return basis.directions.astype(np.float64 if steep else np.float32)


def _cosines(samples: Samples, rows: Any, directions: Array) -> Array:
    unit = samples.directions(rows).astype(directions.dtype, copy=False)
    return np.asarray(unit @ directions.T)


def factor_with_ridge(covariance: Array, ridge: float) -> Array:
    """Return the lower factor of a covariance + ridge, more of it if rounding asks for it.

    The diagonal of the covariance is overwritten.
    """
    diagonal = covariance.diagonal().copy()
    while True:
        np.fill_diagonal(covariance, diagonal + ridge)
        try:
            return np.asarray(cholesky(covariance, lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            ridge = max(10 * ridge, float(np.finfo(np.float32).eps * diagonal.max()))
