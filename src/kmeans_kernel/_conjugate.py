"""The machine of `_ridge`, for many representatives: conjugate gradients instead of products.

The normal equations of the white features cost n m² operations to set up. Conjugate gradients only
multiply by them, at some n m K, and need few steps once the equations are preconditioned by a guess
at what they are: the scatter of the representatives, each as often as it has samples, and that of a
few samples about their representatives. It costs m³ and knows most of the spectrum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular

from kmeans_kernel._blocks import Array, blocks_of
from kmeans_kernel._ridge import RidgeFit, WhiteBasis, divide_by, relative_norm
from kmeans_kernel._samples import Samples
from kmeans_kernel._workers import ALONE, Workers, shares

Multiply: TypeAlias = Callable[[Array], Array]

# The kernel of the samples with the representatives is held, in float32, up to this many bytes.
STORED_UP_TO = 4 << 30

# Steps end when the residual has shrunk by this much: what float32 kernel values leave of the
# scores differs by more from the exact ones.
TOLERANCE = 1e-3

# A result less exact than this is not used.
ACCEPTABLE = 1e-2

MOST_STEPS = 100

# The samples that the preconditioner looks at, for each representative.
_SHARE_OF_SAMPLES = 0.25

# A residual so much above the best will not come back.
_LOST = 100.0

_BLOCK_ROWS = 1024


# What a step costs for each kernel value, in products of the normal equations, and how many steps
# there are. Measured on MNIST: a step waits for the memory that holds the kernel.
_COST_OF_A_STEP = 25
_EXPECTED_STEPS = 40


def prefers_conjugate_gradients(n: int, m: int, K: int) -> bool:
    """Say whether conjugate gradients cost less than the normal equations.

    Both factor the kernel matrix. The normal equations solve a triangle and make a symmetric
    product for every sample, m² each; conjugate gradients make one product of m³ and then steps.
    """
    normal = float(n) * m**2
    steps = _EXPECTED_STEPS * (_COST_OF_A_STEP + K) * float(n) * m
    return m**3 / 2 + steps < normal


@dataclass(frozen=True, eq=False)
class SampleKernel:
    """The kernel of the samples with the representatives, block by block, held or made again.

    Attributes
    ----------
    basis : the representatives
    directions : (m, d) theirs, in float32
    samples : the samples
    blocks : of rows
    held : the float32 kernel values of each block, or None
    workers : who does it
    """

    basis: WhiteBasis
    directions: Array
    samples: Samples
    blocks: list[slice]
    held: list[Array] | None
    workers: Workers

    @classmethod
    def of(
        cls,
        basis: WhiteBasis,
        samples: Samples,
        workers: Workers = ALONE,
        stored_up_to: float = STORED_UP_TO,
    ) -> SampleKernel:
        """Compute the kernel if it can be held."""
        blocks = list(blocks_of(len(samples), _BLOCK_ROWS))
        made = cls(basis, basis.directions.astype(np.float32), samples, blocks, None, workers)
        if 4.0 * len(samples) * len(basis.directions) > stored_up_to:
            return made
        return replace(made, held=workers.map(made.values, range(len(blocks))))

    def values(self, k: int) -> Array:
        """Return the kernel values of a block."""
        if self.held is not None:
            return self.held[k]
        values = self.cosines(self.blocks[k])
        self.basis.kernel.apply(values)
        return values

    def cosines(self, rows: Any) -> Array:
        """Return the float32 cosines of some samples with the representatives."""
        return np.asarray(self.samples.directions(rows).astype(np.float32) @ self.directions.T)

    def sums(self, residuals: Callable[[slice, Array], Array], K: int) -> Array:
        """Return Σ kᵢ rᵢᵀ (m, K).

        `residuals` gives the (n, K) r of a block from its rows and its kernel values.
        """

        def part(share: Sequence[int]) -> Array:
            total = np.zeros((len(self.directions), K))
            for k in share:
                values = self.values(k)
                total += values.T @ residuals(self.blocks[k], values).astype(np.float32)
                self.workers.checkpoint()
            return total

        parts = self.workers.map(part, shares(range(len(self.blocks)), self.workers))
        return np.asarray(sum(parts))


def solve_by_conjugate_gradients(
    basis: WhiteBasis,
    samples: Samples,
    counts: npt.NDArray[Any],
    regularization: float,
    workers: Workers = ALONE,
    *,
    stored_up_to: float = STORED_UP_TO,
    tolerance: float = TOLERANCE,
) -> RidgeFit:
    """Fit to all samples; arguments are trusted.

    Parameters
    ----------
    counts : (m,) the weight of the samples that each representative stands for
    """
    kernel = SampleKernel.of(basis, samples, workers, stored_up_to)
    weight, K = float(samples.weights.sum()), samples.n_classes
    mean_y = np.bincount(samples.codes, samples.weights, K) / weight

    def weighted(rows: slice, R: Array) -> Array:
        return samples.weights[rows, None] * R / weight

    # The sums of the kernel with a constant and with the targets, in one pass.
    first = kernel.sums(
        lambda rows, values: weighted(  # noqa: ARG005
            rows, np.column_stack([np.ones(len(samples.codes[rows])), samples.targets(rows)])
        ),
        K + 1,
    )
    mean_k = first[:, 0]
    slopes = basis.whiten(first[:, 1:] - np.outer(mean_k, mean_y))

    def multiply(V: Array) -> Array:
        dual = basis.dual(V)
        shift, dual32 = mean_k @ dual, dual.astype(np.float32)
        sums = kernel.sums(lambda rows, values: weighted(rows, values @ dual32 - shift), V.shape[1])
        return basis.whiten(sums) + regularization * V

    mean_z, triangle = _preconditioner(kernel, counts, regularization)
    coefficients, reached = conjugate_gradients(
        multiply, lambda V: divide_by(triangle, V), slopes, tolerance
    )
    intercept = mean_y - mean_k @ basis.dual(coefficients)
    return RidgeFit(coefficients, intercept, mean_z, triangle, weight, reached)


def _preconditioner(
    kernel: SampleKernel, counts: npt.NDArray[Any], regularization: float
) -> tuple[Array, Array]:
    """Guess at the normal equations, in float32.

    The white features of the representatives are the rows of the factor. Returns their weighted
    mean, and the lower factor of the guessed covariance + λI.
    """
    basis, samples = kernel.basis, kernel.samples
    factor = basis.factor.astype(np.float32, order="F")
    m, weights = len(factor), counts / counts.sum()
    mean = weights @ basis.factor
    n_some = max(1, round(_SHARE_OF_SAMPLES * m))
    some = np.arange(0, len(samples), -(-len(samples) // n_some))
    values = kernel.cosines(some)
    nearest = values.argmax(axis=1)
    basis.kernel.apply(values)
    about = solve_triangular(factor, values.T, lower=True, check_finite=False).T
    about -= factor[nearest]
    shares = samples.weights[some] / samples.weights[some].sum()
    scatter = np.concatenate([factor, about])
    scatter *= np.sqrt(np.concatenate([weights, shares]))[:, None].astype(np.float32)
    covariance = (scatter.T @ scatter).astype(np.float64)
    covariance -= np.outer(mean, mean)
    return mean, _factor_with_ridge(covariance, regularization)


def _factor_with_ridge(covariance: Array, ridge: float) -> Array:
    """Return the lower factor of a covariance + ridge, more of it if rounding asks for it."""
    diagonal = covariance.diagonal().copy()
    while True:
        np.fill_diagonal(covariance, diagonal + ridge)
        try:
            return np.asarray(cholesky(covariance, lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            ridge = max(10 * ridge, float(np.finfo(np.float32).eps * diagonal.max()))


def conjugate_gradients(
    multiply: Multiply,
    precondition: Multiply,
    right_side: Array,
    tolerance: float = TOLERANCE,
    most_steps: int = MOST_STEPS,
) -> tuple[Array, float]:
    """Solve A X = B for a positive definite A, each column by itself, all in the same products.

    Stops when the residual is small enough, or has grown well above the best: rounding may make of
    A what is not positive definite. Returns the best solution and its largest relative residual
    over the columns.
    """
    solution, residual = np.zeros_like(right_side), right_side.copy()
    best, reached = solution.copy(), relative_norm(residual, right_side)
    step, before = np.zeros_like(right_side), np.ones(right_side.shape[1])
    for k in range(most_steps):
        if reached <= tolerance:
            break
        improved = precondition(residual)
        now = np.einsum("ij,ij->j", residual, improved)
        step = improved + step * (now / before if k else 0.0)
        product = multiply(step)
        length = np.einsum("ij,ij->j", step, product)
        move = now / np.where(length > 0, length, np.inf)
        solution += move * step
        residual -= move * product
        before = np.where(now > 0, now, 1.0)
        norm = relative_norm(residual, right_side)
        if norm < reached:
            best[:], reached = solution, norm
        if not norm < _LOST * reached:
            break
    return best, reached
