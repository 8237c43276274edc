"""Logistic regression on the basis of the representatives: Nyström kernel logistic regression.

    minimise over a, b:   Σᵢ wᵢ ℓ(kᵢᵀ a + b, yᵢ)  +  ½ λ W Σ aᵀ (Ω + δI) a,    W = Σᵢ wᵢ

ℓ(s, y) being −log of the softmax probability that the scores s give to the class y. Least squares
must bend a score down again beyond the class it is of: where classes lie one behind the other, the
classes in the middle hardly ever have the highest score. The logistic loss asks only that the right
score be above the others.

The Hessian of the mean loss by whitened features is, but for a factor, their covariance. Divided by
its triangular factor the problem is well conditioned, and a few dozen steps of L-BFGS solve it. A
step is one pass over the samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import log_softmax

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import Array, IntArray
from kmeans_kernel.core.arrays.rows import LabelledRows, TrainingRows
from kmeans_kernel.core.solvers.nystrom import (
    STORED_UP_TO,
    FeatureBlocks,
    NormalEquations,
    NystromBasis,
    Solution,
    factor_with_ridge,
    float32_kernel_blocks,
    held_whitened_blocks,
    kernel_blocks,
    whitened_blocks,
)
from kmeans_kernel.core.solvers.preconditioner import estimate_covariance

# Steps end when one lowers the loss by less than this share of the loss at the start. Further steps
# change scores whose sign is decided; held-out samples are predicted no better.
TOLERANCE = 1e-5

MOST_STEPS = 100

# The most products for whitened features: about a minute on two cores.
_MOST_PRODUCTS = 2e12

# Largest error of the scores from rounding; a difference of one is a factor e of the odds.
_TOLERABLE_NOISE = 0.02

# The steps that L-BFGS remembers.
_MEMORY = 10


def whitening_pays(n: int, m: int) -> bool:
    """Say whether to hold the whitened features of n samples, which cost n m² products."""
    return 4.0 * n * m <= STORED_UP_TO and float(n) * m**2 <= _MOST_PRODUCTS


def fit_logistic(
    basis: NystromBasis,
    rows: LabelledRows,
    counts: npt.NDArray[Any],
    regularization: float,
    executor: Executor = SERIAL,
) -> Solution:
    """Fit to all samples by passes over whitened features, or over kernel values of many samples.

    Parameters
    ----------
    counts : (m,) the weight of the samples that each representative stands for
    """
    n, m = len(rows), len(basis.directions)
    if not whitening_pays(n, m):
        problem = LogisticProblem.on_kernel_values(basis, rows, counts, executor)
        found = problem.solve(regularization)
        # Large coefficients that cancel magnify the rounding of float32 kernel values.
        largest = np.linalg.norm(basis.dual(found.coefficients), axis=0).max()
        noise = float(np.finfo(np.float32).eps * largest)
        if noise <= _TOLERABLE_NOISE or 4.0 * n * m > STORED_UP_TO:
            return found
    return LogisticProblem.on_whitened_features(basis, rows, executor).solve(regularization)


def loss_sums(
    inner: Array, intercept: Array, features: Array, codes: IntArray, weights: Array
) -> Array:
    """Return the sums of the loss and of its gradients over a block, packed into one vector.

    The scores are features @ inner + intercept. The vector holds Σ w ℓ, Σ w, the (K,) gradient by
    the intercept and the (m, K) gradient by `inner`; the vectors of blocks add up.
    """
    logs = log_softmax(features @ inner.astype(features.dtype, copy=False) + intercept, axis=1)
    own = np.arange(len(codes)), codes
    loss = -float(weights @ logs[own])
    R = np.exp(logs)
    R[own] -= 1.0
    R *= weights[:, None]
    slopes = features.T @ R.astype(features.dtype, copy=False)
    return np.concatenate(
        [[loss, float(weights.sum())], R.sum(axis=0), slopes.astype(np.float64).ravel()]
    )


def unpack_loss_sums(sums: Array, K: int) -> tuple[float, float, Array, Array]:
    """Return loss, weight, gradient by the intercept (K,) and by the coefficients (m, K)."""
    return float(sums[0]), float(sums[1]), sums[2 : K + 2], sums[K + 2 :].reshape(-1, K)


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """The logistic regressions of all λ.

    Attributes
    ----------
    features : of the samples, in blocks
    mean, covariance : (m,), (m, m) of the whitened features, exact or nearly so
    """

    features: FeatureBlocks
    mean: Array
    covariance: Array

    @classmethod
    def on_whitened_features(
        cls, basis: NystromBasis, rows: LabelledRows, executor: Executor = SERIAL
    ) -> LogisticProblem:
        """Prepare with whitened features, held, and their covariance."""
        features = held_whitened_blocks(basis, rows, executor)
        equations = NormalEquations.of(features)
        return cls(features, equations.mean_z, equations.covariance())

    @classmethod
    def on_kernel_values(
        cls,
        basis: NystromBasis,
        rows: LabelledRows,
        counts: npt.NDArray[Any],
        executor: Executor = SERIAL,
        stored_up_to: float = STORED_UP_TO,
    ) -> LogisticProblem:
        """Prepare with float32 kernel values, and an estimate of the covariance."""
        features = float32_kernel_blocks(basis, rows, executor, stored_up_to)
        return cls(features, *estimate_covariance(basis, rows, counts))

    @classmethod
    def out_of_core(
        cls, basis: NystromBasis, rows: TrainingRows, executor: Executor = SERIAL
    ) -> LogisticProblem:
        """Prepare with one pass over the rows; every step is another pass."""
        equations = NormalEquations.of(whitened_blocks(basis, rows, executor))
        features = kernel_blocks(basis, rows, executor)
        return cls(features, equations.mean_z, equations.covariance())

    @property
    def n_classes(self) -> int:
        """The number of classes, K."""
        return len(self.features.rows.classes)

    def solve(
        self,
        regularization: float,
        start: Solution | None = None,
        tolerance: float = TOLERANCE,
        most_steps: int = MOST_STEPS,
    ) -> Solution:
        """Solve for one λ, from zero or from another solution.

        The coordinates are Rᵀ W for coefficients W of centred features, R being the triangular
        factor of the Hessian, and √h b for the intercept b.
        """
        # The Hessian bound at uniform probabilities, as a factor of that of plain squares.
        K, m = self.n_classes, len(self.mean)
        hessian = (1 - 1 / K) / K
        triangle = factor_with_ridge(self.covariance.copy(), regularization / hessian)
        triangle, root = triangle * np.sqrt(hessian), float(np.sqrt(hessian))

        def coefficients_at(flat: Array) -> tuple[Array, Array]:
            B = flat.reshape(m + 1, -1)
            W = solve_triangular(triangle, B[:m], lower=True, trans="T", check_finite=False)
            return W, B[m] / root

        def loss_and_slope(flat: Array) -> tuple[float, Array]:
            W, b = coefficients_at(flat)
            loss, slope, slope_b = self._loss_and_gradient(W, b - self.mean @ W)
            slope = slope - np.outer(self.mean, slope_b) + regularization * W
            along = solve_triangular(triangle, slope, lower=True, check_finite=False)
            penalty = 0.5 * regularization * float((W * W).sum())
            return loss + penalty, np.vstack([along, slope_b / root]).ravel()

        x0: Array = np.zeros((m + 1) * K)
        first, first_slope = loss_and_slope(x0)
        if start is not None:
            centred = start.intercept + self.mean @ start.coefficients
            x0 = np.vstack([triangle.T @ start.coefficients, centred * root]).ravel()
        x, slope = _minimize(loss_and_slope, x0, first, tolerance, most_steps)
        length = np.linalg.norm(first_slope)
        reached = float(first * np.linalg.norm(slope) / length) if length > 0 else 0.0
        W, b = coefficients_at(x)
        return Solution(W, b - self.mean @ W, reached)

    def _loss_and_gradient(self, W: Array, intercept: Array) -> tuple[float, Array, Array]:
        """Return the mean loss and its gradients by the coefficients and by the intercept."""
        features = self.features
        sums = features.total(partial(loss_sums, features.to_kernel(W), intercept))
        loss, weight, bias, slopes = unpack_loss_sums(sums, self.n_classes)
        return loss / weight, features.to_whitened(slopes) / weight, bias / weight


def _minimize(
    loss_and_slope: Callable[[Array], tuple[float, Array]],
    x0: Array,
    scale: float,
    tolerance: float,
    most_steps: int,
) -> tuple[Array, Array]:
    """Minimise by L-BFGS; return the minimum and the slope there, divided by `scale`."""
    result = minimize(
        lambda flat: tuple(part / scale for part in loss_and_slope(flat)),
        x0,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxcor": _MEMORY, "ftol": tolerance, "gtol": 0.0, "maxiter": most_steps,
            "maxfun": 2 * most_steps,
        },
    )  # fmt: skip
    return result.x, result.jac
