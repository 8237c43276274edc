"""Nyström kernel logistic regression: multinomial, on the basis of the representatives.

    minimise over a, b:   Σᵢ wᵢ ℓ(kᵢᵀ a + b, yᵢ)  +  ½ λ W Σ aᵀ (Ω + δI) a,    W = Σᵢ wᵢ

ℓ(s, y) is the log-loss, −log of the softmax probability of class y at scores s. The squared loss
has a masking problem: where classes lie one behind the other, a class in the middle hardly ever has
the highest score (Hastie, Tibshirani and Friedman, "The Elements of Statistical Learning", 4.2).
The logistic loss only asks that the score of the right class be above the others.

The Hessian of the mean loss with respect to whitened features is about their covariance times a
constant. Preconditioned by the Cholesky factor of the covariance the problem is well conditioned,
and a few dozen steps of L-BFGS solve it. A step is one pass over the samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import Array, IntArray
from kmeans_kernel.core.arrays.rows import LabelledRows, TrainingRows
from kmeans_kernel.core.solvers import lbfgs
from kmeans_kernel.core.solvers.blas import solve_lower
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

# L-BFGS stops when a step lowers the loss by less than this share of the loss at the start. Further
# steps change scores whose sign is decided; held-out samples are predicted no better.
TOLERANCE = 1e-5

MOST_STEPS = 100

# The most operations (n m²) spent on whitened features: about a minute on two cores.
_MOST_PRODUCTS = 2e12

# Largest tolerated rounding error of the scores; a difference of 1 is a factor e of the odds.
_TOLERABLE_NOISE = 0.02

# Number of corrections that L-BFGS keeps for its Hessian approximation.
_MEMORY = 10


def whitening_pays(n: int, m: int) -> bool:
    """Return whether to hold the whitened features of n samples, at a cost of n m² operations."""
    return 4.0 * n * m <= STORED_UP_TO and float(n) * m**2 <= _MOST_PRODUCTS


def fit_logistic(
    basis: NystromBasis,
    rows: LabelledRows,
    counts: npt.NDArray[Any],
    regularization: float,
    executor: Executor = SERIAL,
) -> Solution:
    """Fit to all samples in memory; arguments are trusted.

    The passes are over whitened features or, if these would be too large, over kernel values.

    Parameters
    ----------
    counts : (m,) total weight of the samples in the cluster of each representative
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
    """Return the sums of the loss and its gradients over a block, packed into one vector.

    The scores are features @ inner + intercept. The vector holds Σ w ℓ, Σ w, the (K,) gradient with
    respect to the intercept and the (m, K) gradient with respect to `inner`; it is additive over
    blocks.
    """
    scores = (features @ inner.astype(features.dtype, copy=False)).astype(np.float64, copy=False)
    scores += intercept - (scores + intercept).max(axis=1, keepdims=True)
    own = np.arange(len(codes)), codes
    R = np.exp(scores)
    sums = R.sum(axis=1)
    loss = float(weights @ (np.log(sums) - scores[own]))
    R /= sums[:, None]
    R[own] -= 1.0
    R *= weights[:, None]
    slopes = features.T @ R.astype(features.dtype, copy=False)
    return np.concatenate(
        [[loss, float(weights.sum())], R.sum(axis=0), slopes.astype(np.float64).ravel()]
    )


def unpack_loss_sums(sums: Array, K: int) -> tuple[float, float, Array, Array]:
    """Return loss, weight, gradient of the intercept (K,) and of the coefficients (m, K)."""
    return float(sums[0]), float(sums[1]), sums[2 : K + 2], sums[K + 2 :].reshape(-1, K)


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """Logistic regression on fixed features, to be solved for any λ.

    Attributes
    ----------
    features : features of the samples, in blocks
    mean, covariance : (m,), (m, m) of the whitened features, exact or estimated
    """

    features: FeatureBlocks
    mean: Array
    covariance: Array

    @classmethod
    def on_whitened_features(
        cls, basis: NystromBasis, rows: LabelledRows, executor: Executor = SERIAL
    ) -> LogisticProblem:
        """Prepare with whitened features in memory and their exact covariance."""
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
        """Prepare with float32 kernel values and an estimate of the covariance."""
        features = float32_kernel_blocks(basis, rows, executor, stored_up_to)
        return cls(features, *estimate_covariance(basis, rows, counts))

    @classmethod
    def out_of_core(
        cls, basis: NystromBasis, rows: TrainingRows, executor: Executor = SERIAL
    ) -> LogisticProblem:
        """Prepare out of core: one pass for the covariance, and one for every step."""
        equations = NormalEquations.of(whitened_blocks(basis, rows, executor))
        features = kernel_blocks(basis, rows, executor)
        return cls(features, equations.mean_z, equations.covariance())

    @property
    def n_classes(self) -> int:
        """The number of classes, K."""
        return len(self.features.rows.classes)

    @property
    def precision(self) -> npt.DTypeLike:
        """The type of the preconditioner: that of the features that are held."""
        held = self.features.held
        return np.float64 if held is None else held[0][0].dtype

    def solve(
        self,
        regularization: float,
        start: Solution | None = None,
        tolerance: float = TOLERANCE,
        most_steps: int = MOST_STEPS,
    ) -> Solution:
        """Solve for one λ, from zero or from another solution.

        The preconditioned variables are Rᵀ W and √h b, for coefficients W of centred features and
        the intercept b, with R the Cholesky factor of the approximate Hessian h (covariance) + λI.
        """
        # h: Hessian at uniform probabilities, relative to the covariance.
        K, m = self.n_classes, len(self.mean)
        hessian = (1 - 1 / K) / K
        triangle = factor_with_ridge(self.covariance.copy(), regularization / hessian)
        triangle, root = triangle * np.sqrt(hessian), float(np.sqrt(hessian))
        # A preconditioner may be rounded: the gradient of the variables is still exact.
        triangle = np.asfortranarray(triangle, dtype=self.precision)

        def coefficients_at(flat: Array) -> tuple[Array, Array]:
            B = flat.reshape(m + 1, -1)
            W = solve_lower(triangle, B[:m], transposed=True)
            return W.astype(np.float64, copy=False), B[m] / root

        def loss_and_slope(flat: Array) -> tuple[float, Array]:
            W, b = coefficients_at(flat)
            loss, slope, slope_b = self._loss_and_gradient(W, b - self.mean @ W)
            slope = slope - np.outer(self.mean, slope_b) + regularization * W
            along = solve_lower(triangle, slope)
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
        """Return the mean loss and its gradients: of the coefficients, and of the intercept."""
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
    """Minimise the loss divided by `scale` by L-BFGS; return the minimiser and the gradient."""
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


@dataclass(frozen=True, eq=False)
class SmallLogisticProblem:
    """Logistic regression on few features in memory, to be solved for several λ in a search.

    The features are preconditioned once for each λ, instead of the variables in every step.

    Attributes
    ----------
    features : (n, m) whitened features
    codes, weights : (n,) classes and weights of the samples
    n_classes : K
    mean, covariance : (m,), (m, m) of the features
    """

    features: Array
    codes: IntArray
    weights: Array
    n_classes: int
    mean: Array
    covariance: Array

    @cached_property
    def _centred(self) -> Array:
        return np.asarray((self.features - self.mean.astype(self.features.dtype)).T, order="F")

    def solve(
        self, regularization: float, start: Solution | None, tolerance: float, most_steps: int
    ) -> Solution:
        """Solve for one λ, from zero or from another solution."""
        m, K, dtype = len(self.mean), self.n_classes, self.features.dtype
        hessian = (1 - 1 / K) / K
        triangle = factor_with_ridge(self.covariance * hessian, regularization)
        A = solve_lower(triangle.astype(dtype), self._centred)
        # The coefficients are R⁻ᵀB, so their squared length is that of B in the metric R⁻¹R⁻ᵀ.
        inverse = solve_lower(triangle, np.eye(m))
        penalty = regularization * (inverse @ inverse.T)
        shares = (self.weights / self.weights.sum()).astype(dtype)
        own = self.codes, np.arange(len(self.codes))
        root = float(np.sqrt(hessian))

        def loss_and_slope(flat: Array) -> tuple[float, Array]:
            # One row for each class: sums over the classes are sums of rows, which are fast.
            B = flat.reshape(m + 1, K)
            scores = B[:m].T.astype(dtype) @ A
            scores += (B[m] / root).astype(dtype)[:, None]
            scores -= scores.max(axis=0)
            loss = -float(scores[own] @ shares)
            chances = np.exp(scores, out=scores)
            sums = chances.sum(axis=0)
            loss += float(np.log(sums) @ shares)
            chances *= shares / sums
            chances[own] -= shares
            shrunk = penalty @ B[:m]
            slope = np.empty((m + 1, K))
            slope[:m] = A @ chances.T
            slope[:m] += shrunk
            slope[m] = chances.sum(axis=1) / root
            return loss + 0.5 * float(np.vdot(B[:m], shrunk)), slope.ravel()

        x0: Array = np.zeros((m + 1) * K)
        if start is not None:
            centred = start.intercept + self.mean @ start.coefficients
            x0 = np.vstack([triangle.T @ start.coefficients, centred * root]).ravel()
        x, _, slope = lbfgs.minimize(loss_and_slope, x0, tolerance, most_steps)
        B = x.reshape(m + 1, K)
        W = solve_lower(triangle, B[:m], transposed=True)
        return Solution(W, B[m] / root - self.mean @ W, float(np.linalg.norm(slope)))
