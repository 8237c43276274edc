"""Nyström kernel ridge regression by preconditioned conjugate gradients, as in FALKON.

For many representatives: the normal equations of the whitened features cost n m² operations to set
up. A step of conjugate gradients costs about n m K, and a preconditioner makes the steps few. It is
an estimate of the covariance from the representatives, at a cost of m³: FALKON (Rudi, Carratino and
Rosasco, NIPS 2017), with K-means centres and their counts in place of uniformly drawn landmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import Array, IntArray
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.solvers.nystrom import (
    STORED_UP_TO,
    NystromBasis,
    Solution,
    divide_by,
    factor_with_ridge,
    float32_kernel_blocks,
    left_out_scores,
    relative_norm,
)
from kmeans_kernel.core.solvers.preconditioner import estimate_covariance

Multiply: TypeAlias = Callable[[Array], Array]

# Relative residual at which conjugate gradients stop: a smaller one changes the scores by less than
# the rounding of float32 kernel values does.
TOLERANCE = 1e-3

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
    kernel = float32_kernel_blocks(basis, rows, executor, stored_up_to)
    weight, K = rows.total_weight, len(rows.classes)
    mean_y = np.bincount(rows.codes, rows.row_weights, K) / weight

    def with_targets(values: Array, codes: IntArray, weights: Array) -> Array:
        columns = np.column_stack([np.ones(len(values)), np.eye(K)[codes]])
        return weights[:, None] * columns / weight

    # One pass for the mean kernel values and the sums of kernel values times targets.
    first = kernel.sums(with_targets)
    mean_k = first[:, 0]
    slopes = kernel.to_whitened(first[:, 1:] - np.outer(mean_k, mean_y))

    def multiply(V: Array) -> Array:
        dual = kernel.to_kernel(V)
        shift, dual32 = mean_k @ dual, dual.astype(np.float32)

        def products(values: Array, codes: IntArray, weights: Array) -> Array:  # noqa: ARG001
            return weights[:, None] * (values @ dual32 - shift) / weight

        return kernel.to_whitened(kernel.sums(products)) + regularization * V

    mean_z, covariance = estimate_covariance(basis, rows, counts)
    triangle = factor_with_ridge(covariance, regularization)
    coefficients, reached = conjugate_gradients(
        multiply, lambda V: divide_by(triangle, V), slopes, tolerance
    )
    intercept = mean_y - mean_k @ kernel.to_kernel(coefficients)
    found = Solution(coefficients, intercept, reached)
    left_out = partial(left_out_scores, basis, found, mean_z, triangle, weight)
    return Solution(coefficients, intercept, reached, left_out)


def conjugate_gradients(
    multiply: Multiply,
    precondition: Multiply,
    right_side: Array,
    tolerance: float = TOLERANCE,
    most_steps: int = MOST_STEPS,
) -> tuple[Array, float]:
    """Solve A X = B for a positive definite A: one recurrence per column, shared products.

    Stops when the relative residual is at most `tolerance`, or on divergence, since rounding may
    make A indefinite. Returns the best solution and its largest relative residual over the columns.
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
        if not norm < _DIVERGED * reached:
            break
    return best, reached
