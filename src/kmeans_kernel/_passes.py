"""Passes over all samples, block by block, for the solvers that take many.

Functions on the basis of the representatives are written in white features (`_ridge`). A pass
needs, of each block of samples, either these (`WhiteFeatures`, for few representatives) or the
kernel values that they are made of (`SampleKernel`, for many: whitening would cost n m²).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular

from kmeans_kernel._blocks import Array, blocks_of
from kmeans_kernel._ridge import Moments, NormalEquations, WhiteBasis
from kmeans_kernel._samples import Samples
from kmeans_kernel._workers import ALONE, Workers, shares

# Values of the samples are held up to this many bytes, and in float64 up to that many.
STORED_UP_TO = 4 << 30
_EXACT_UP_TO = 256 << 20

# The samples that the guess at the covariance looks at, for each representative.
_SHARE_OF_SAMPLES = 0.25

# A kernel steeper than this is not left to float32 cosines.
_STEEP = 1e4

_BLOCK_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Passes:
    """What passes over the samples need.

    Attributes
    ----------
    basis : the representatives
    samples : the samples
    blocks : of rows
    held : the values of each block, or None
    workers : who does it
    """

    basis: WhiteBasis
    samples: Samples
    blocks: list[slice]
    held: list[Array] | None
    workers: Workers

    def values(self, k: int) -> Array:
        """Return the (n, m) values of a block."""
        return self._make(self.blocks[k]) if self.held is None else self.held[k]

    def holding(self) -> Passes:
        """Return the same with all values held."""
        return replace(self, held=self.workers.map(self.values, range(len(self.blocks))))

    def sums(self, residuals: Callable[[slice, Array], Array], K: int) -> Array:
        """Return Σ vᵢ rᵢᵀ (m, K) over the samples, v being the values.

        `residuals` gives the (n, K) r of a block from its rows and its values.
        """

        def part(share: Sequence[int]) -> Array:
            total = np.zeros((len(self.basis.directions), K))
            for k in share:
                values = self.values(k)
                found = residuals(self.blocks[k], values)
                total += values.T @ found.astype(values.dtype, copy=False)
                self.workers.checkpoint()
            return total

        parts = self.workers.map(part, shares(range(len(self.blocks)), self.workers))
        return np.asarray(sum(parts))

    def inward(self, V: Array) -> Array:
        """Return the coefficients of the values, of those of the white features."""
        raise NotImplementedError

    def outward(self, sums: Array) -> Array:
        """Return the sums over white features, of those over the values."""
        raise NotImplementedError

    def covariance(self) -> tuple[Array, Array]:
        """Return the mean of the white features (m,) and their covariance (m, m), or a guess."""
        raise NotImplementedError

    def _make(self, rows: slice) -> Array:
        raise NotImplementedError


class WhiteFeatures(Passes):
    """The white features themselves, held."""

    @classmethod
    def of(cls, basis: WhiteBasis, samples: Samples, workers: Workers = ALONE) -> Passes:
        """Compute them."""
        return cls(
            basis, samples, list(blocks_of(len(samples), _BLOCK_ROWS)), None, workers
        ).holding()

    def inward(self, V: Array) -> Array:
        """Return them as they are."""
        return V

    def outward(self, sums: Array) -> Array:
        """Return them as they are."""
        return sums

    def covariance(self) -> tuple[Array, Array]:
        """Return mean and covariance."""

        def part(share: Sequence[int]) -> Moments | None:
            total = None
            for k in share:
                block, Z = self.blocks[k], self.values(k).astype(np.float64, copy=False)
                found = Moments.of(Z, np.zeros((len(Z), 0)), self.samples.weights[block])
                total = found if total is None else total + found
                self.workers.checkpoint()
            return total

        parts = self.workers.map(part, shares(range(len(self.blocks)), self.workers))
        moments = [part for part in parts if part is not None]
        equations = NormalEquations.of(sum(moments[1:], moments[0]))
        return equations.mean_z, equations.covariance

    def _make(self, rows: slice) -> Array:
        exact = 8.0 * len(self.samples) * len(self.basis.directions) <= _EXACT_UP_TO
        Z = self.basis.features(self.samples.directions(rows))
        return np.ascontiguousarray(Z, dtype=np.float64 if exact else np.float32)


@dataclass(frozen=True, eq=False)
class SampleKernel(Passes):
    """The float32 kernel values of the samples with the representatives, held or made again."""

    directions: Array
    counts: npt.NDArray[Any]

    @classmethod
    def of(
        cls,
        basis: WhiteBasis,
        samples: Samples,
        counts: npt.NDArray[Any],
        workers: Workers = ALONE,
        stored_up_to: float = STORED_UP_TO,
    ) -> Passes:
        """Compute the kernel if it can be held.

        Parameters
        ----------
        counts : (m,) the weight of the samples that each representative stands for
        """
        steep = basis.kernel.steepness > _STEEP
        directions: Array = basis.directions.astype(np.float64 if steep else np.float32)
        blocks = list(blocks_of(len(samples), _BLOCK_ROWS))
        made = cls(basis, samples, blocks, None, workers, directions, counts)
        held = 4.0 * len(samples) * len(basis.directions) <= stored_up_to
        return made.holding() if held else made

    def inward(self, V: Array) -> Array:
        """Return dual coefficients."""
        return self.basis.dual(V)

    def outward(self, sums: Array) -> Array:
        """Whiten sums."""
        return self.basis.whiten(sums)

    def covariance(self) -> tuple[Array, Array]:
        """Guess at the covariance of the samples, in float32.

        It is that of the representatives, each as often as it has samples, whose white features are
        the rows of the factor; and that of a few samples about their representatives.
        """
        factor = self.basis.factor.astype(np.float32, order="F")
        weights = self.counts / self.counts.sum()
        mean = weights @ self.basis.factor
        n, n_some = len(self.samples), max(1, round(_SHARE_OF_SAMPLES * len(factor)))
        some = np.arange(0, n, -(-n // n_some))
        values = self._cosines(some)
        nearest = values.argmax(axis=1)
        self.basis.kernel.apply(values)
        about = solve_triangular(
            factor, values.T.astype(np.float32, copy=False), lower=True, check_finite=False
        ).T
        about -= factor[nearest]
        some_weights = self.samples.weights[some]
        scatter = np.concatenate([factor, about])
        scatter *= np.sqrt(np.concatenate([weights, some_weights / some_weights.sum()]))[
            :, None
        ].astype(np.float32)
        covariance = (scatter.T @ scatter).astype(np.float64)
        covariance -= np.outer(mean, mean)
        return mean, covariance

    def _make(self, rows: slice) -> Array:
        values = self._cosines(rows)
        self.basis.kernel.apply(values)
        return values.astype(np.float32, copy=False)

    def _cosines(self, rows: Any) -> Array:
        unit = self.samples.directions(rows).astype(self.directions.dtype, copy=False)
        return np.asarray(unit @ self.directions.T)


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
