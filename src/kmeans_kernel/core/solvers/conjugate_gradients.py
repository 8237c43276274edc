"""The machine of `_ridge`, for many representatives: conjugate gradients instead of products.

The normal equations of the white features cost n m² operations to set up. Conjugate gradients only
multiply by them, at some n m K, and need few steps once the equations are preconditioned by a guess
at what they are: the scatter of the representatives, each as often as it has samples, and that of a
few samples about their representatives. It costs m³ and knows most of the spectrum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Samples
from kmeans_kernel.core.solvers.nystrom import RidgeFit, WhiteBasis, divide_by, relative_norm
from kmeans_kernel.core.solvers.passes import (
    STORED_UP_TO,
    factor_with_ridge,
    guess_covariance,
    over_kernel_values,
)

Multiply: TypeAlias = Callable[[Array], Array]

# Steps end when the residual has shrunk by this much: what float32 kernel values leave of the
# scores differs by more from the exact ones.
TOLERANCE = 1e-3

# A result less exact than this is not used.
ACCEPTABLE = 1e-2

MOST_STEPS = 100

# A residual so much above the best will not come back.
_LOST = 100.0

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
    kernel = over_kernel_values(basis, samples, workers, stored_up_to)
    weight, K = float(samples.weights.sum()), samples.n_classes
    mean_y = np.bincount(samples.codes, samples.weights, K) / weight

    def weighted(rows: slice, R: Array) -> Array:
        return samples.weights[rows, None] * R / weight

    # The sums of the kernel with a constant and with the targets, in one pass.
    first = kernel.sums(
        lambda rows, values: weighted(
            rows, np.column_stack([np.ones(len(values)), samples.targets(rows)])
        )
    )
    mean_k = first[:, 0]
    slopes = kernel.outward(first[:, 1:] - np.outer(mean_k, mean_y))

    def multiply(V: Array) -> Array:
        dual = kernel.inward(V)
        shift, dual32 = mean_k @ dual, dual.astype(np.float32)
        sums = kernel.sums(lambda rows, values: weighted(rows, values @ dual32 - shift))
        return kernel.outward(sums) + regularization * V

    mean_z, covariance = guess_covariance(basis, samples, counts)
    triangle = factor_with_ridge(covariance, regularization)
    coefficients, reached = conjugate_gradients(
        multiply, lambda V: divide_by(triangle, V), slopes, tolerance
    )
    intercept = mean_y - mean_k @ kernel.inward(coefficients)
    return RidgeFit(coefficients, intercept, mean_z, triangle, weight, reached)


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
