"""Nyström kernel ridge regression by preconditioned conjugate gradients, as in FALKON.

For many representatives: the normal equations of the whitened features cost n m² operations to set
up. A step of conjugate gradients costs about n m K, and a preconditioner makes the steps few. It is
an estimate of the covariance from the representatives, at a cost of m³: FALKON (Rudi, Carratino and
Rosasco, NIPS 2017), with K-means centres and their counts in place of uniformly drawn landmarks.
For many rows it is the covariance of a sample of them, whose solution is the start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import Array, IntArray
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.solvers.nystrom import (
    STORED_UP_TO,
    FeatureBlocks,
    NystromBasis,
    Solution,
    divide_by,
    factor_with_ridge,
    float32_kernel_blocks,
    left_out_scores,
    relative_norm,
    sampling_pays,
)
from kmeans_kernel.core.solvers.preconditioner import estimate_covariance, sample_equations

Multiply: TypeAlias = Callable[[Array], Array]

# Relative residual at which conjugate gradients stop. A smaller one changes the scores of a million
# rows by less than a hundredth of their standard deviation.
TOLERANCE = 2e-3

# Largest relative residual that the caller accepts; above it the normal equations are solved.
ACCEPTABLE = 1e-2

MOST_STEPS = 100

# A residual this many times the best so far means divergence.
_DIVERGED = 100.0


def solve_by_conjugate_gradients(
    basis: NystromBasis,
    rows: LabelledRows,
    counts: npt.NDArray[Any],
    regularization: float,
    executor: Executor = SERIAL,
    *,
    stored_up_to: float = STORED_UP_TO,
    tolerance: float = TOLERANCE,
) -> Solution:
    """Fit kernel ridge regression to all samples; arguments are trusted.

    Parameters
    ----------
    counts : (m,) total weight of the samples in the cluster of each representative
    """
    mean_z, triangle, start = _precondition(basis, rows, counts, regularization, executor)
    kernel = float32_kernel_blocks(basis, rows, executor, stored_up_to)
    normal, slopes, residual = _first_pass(kernel, rows, regularization, start)
    with executor.session():
        others, reached = conjugate_gradients(
            normal.multiply,
            lambda V: divide_by(triangle, V),
            slopes,
            tolerance,
            start=(start, residual),
        )
    # The targets of a sample add up to one, so the coefficients add up to zero.
    coefficients = np.column_stack([-others.sum(axis=1), others])
    intercept = _mean_targets(rows) - normal.mean @ kernel.to_kernel(coefficients)
    found = Solution(coefficients, intercept, reached)
    left_out = partial(left_out_scores, basis, found, mean_z, triangle, rows.total_weight)
    return Solution(coefficients, intercept, reached, left_out)


@dataclass(frozen=True, eq=False)
class NormalMatrix:
    """The matrix of the normal equations, covariance + λI of the whitened features.

    It is not computed: products with it are passes over the kernel values.

    Attributes
    ----------
    kernel : kernel values of the samples, in blocks
    mean : (m,) mean kernel values
    regularization : λ
    """

    kernel: FeatureBlocks
    mean: Array
    regularization: float

    def multiply(self, V: Array) -> Array:
        """Return the product with V (m, K), by one pass."""
        dual, total = self.kernel.to_kernel(V), self.kernel.rows.total_weight
        shift, dual32 = self.mean @ dual, dual.astype(np.float32)

        def products(values: Array, codes: IntArray, weights: Array) -> Array:  # noqa: ARG001
            return weights[:, None] * (values @ dual32 - shift) / total

        return self.kernel.to_whitened(self.kernel.sums(products)) + self.regularization * V


def _first_pass(
    kernel: FeatureBlocks, rows: LabelledRows, regularization: float, start: Array
) -> tuple[NormalMatrix, Array, Array]:
    """Return the matrix, the right side and the residual of `start` (m, K − 1), by one pass.

    The right side is the covariance with the targets of all classes but the first.
    """
    K, weight = len(rows.classes), rows.total_weight
    dual = kernel.to_kernel(start)
    dual32 = dual.astype(np.float32)

    def columns(values: Array, codes: IntArray, weights: Array) -> Array:
        ones, targets = np.ones(len(values)), np.eye(K)[codes, 1:]
        found = [ones, targets, values @ dual32] if start.any() else [ones, targets]
        return weights[:, None] * np.column_stack(found) / weight

    # Sums of kernel values, and of kernel values times targets and times the scores of the start.
    sums = kernel.sums(columns)
    mean = sums[:, 0]
    slopes = kernel.to_whitened(sums[:, 1:K] - np.outer(mean, _mean_targets(rows)[1:]))
    residual = slopes
    if start.any():
        products = kernel.to_whitened(sums[:, K:] - np.outer(mean, mean @ dual))
        residual = slopes - products - regularization * start
    return NormalMatrix(kernel, mean, regularization), slopes, residual


def _mean_targets(rows: LabelledRows) -> Array:
    """Return the (K,) share of each class in the total weight."""
    return np.bincount(rows.codes, rows.row_weights, len(rows.classes)) / rows.total_weight


def _precondition(
    basis: NystromBasis,
    rows: LabelledRows,
    counts: npt.NDArray[Any],
    regularization: float,
    executor: Executor,
) -> tuple[Array, Array, Array]:
    """Estimate the covariance of the whitened features; arguments are trusted.

    Returns the mean feature (m,), the (m, m) lower factor of covariance + λI, and (m, K − 1)
    coefficients of all classes but the first: of the sample if there is one, else zero.
    """
    m, K = len(basis.directions), len(rows.classes)
    if not sampling_pays(len(rows), m):
        mean, covariance = estimate_covariance(basis, rows, counts)
        return mean, factor_with_ridge(covariance, regularization), np.zeros((m, K - 1))
    equations = sample_equations(basis, rows, executor)
    triangle = factor_with_ridge(equations.covariance(), regularization)
    return equations.mean_z, triangle, divide_by(triangle, equations.slopes()[:, 1:])


def conjugate_gradients(
    multiply: Multiply,
    precondition: Multiply,
    right_side: Array,
    tolerance: float = TOLERANCE,
    most_steps: int = MOST_STEPS,
    start: tuple[Array, Array] | None = None,
) -> tuple[Array, float]:
    """Solve A X = B for a positive definite A: one recurrence per column, shared products.

    `start` is a first solution and its residual B − A X; None for zero.

    Stops when the relative residual is at most `tolerance`, or on divergence, since rounding may
    make A indefinite. Returns the best solution and its largest relative residual over the columns.
    """
    if start is None:
        start = np.zeros_like(right_side), right_side
    solution, residual = (part.copy() for part in start)
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
        if not norm < _DIVERGED * reached:
            break
    return best, reached
