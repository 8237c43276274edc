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

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import Array, IntArray
from kmeans_kernel.core.arrays.rows import LabelledRows, TrainingRows, stratified_sample
from kmeans_kernel.core.solvers import lbfgs
from kmeans_kernel.core.solvers.blas import invert_lower, solve_lower
from kmeans_kernel.core.solvers.nystrom import (
    STORED_UP_TO,
    FeatureBlocks,
    NormalEquations,
    NystromBasis,
    Solution,
    block_equations,
    factor_with_ridge,
    float32_kernel_blocks,
    held_whitened_blocks,
    kernel_blocks,
    rounding_noise,
    sampling_pays,
    whitened_blocks,
)
from kmeans_kernel.core.solvers.preconditioner import estimate_covariance, sample_equations

# L-BFGS stops when a step lowers the loss by less than this share of the loss at the start. Further
# steps change scores whose sign is decided; held-out samples are predicted no better:
# benchmarks/search_tried.py.
TOLERANCE = 3e-5

MOST_STEPS = 100

# The most operations (n m²) spent on whitened features: about a minute on two cores.
_MOST_PRODUCTS = 2e12

# Largest tolerated rounding error of the scores; a difference of 1 is a factor e of the odds.
_TOLERABLE_NOISE = 0.02

# Rows for each landmark from which the covariance of float32 whitened features is taken. Half as
# many took half as many steps again where λ is small.
_MOST_ROWS = 6

# Rows for each landmark in the sample on which the first steps are taken, where the kernel values
# of all rows cannot be held. The solution on few rows is overfitted, a worse start than zero.
_SAMPLE = 100

# Least score, relative to the largest, in the exponential: e⁻⁸⁰ is about 2e-35.
_LEAST_SCORE = -80.0

# Tolerance of the steps on all rows after those.
_LAST_TOLERANCE = 5e-4


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
    if sampling_pays(n, m) or not whitening_pays(n, m):
        problem = LogisticProblem.on_kernel_values(basis, rows, counts, executor)
        if 4.0 * n * m > STORED_UP_TO:  # whitened features cannot be held
            return problem.solve(regularization)
        if _is_accurate(basis, problem.newton_step(regularization)):
            found = problem.solve(regularization)
            if _is_accurate(basis, found.coefficients):
                return found
    return LogisticProblem.on_whitened_features(basis, rows, executor).solve(regularization)


def _is_accurate(basis: NystromBasis, coefficients: Array) -> bool:
    """Return whether float32 kernel values suffice for these coefficients."""
    return rounding_noise(basis.dual(coefficients)) <= _TOLERABLE_NOISE


def loss_sums(
    inner: Array, intercept: Array, features: Array, codes: IntArray, weights: Array
) -> Array:
    """Return the sums of the loss and its gradients over a block, packed into one vector.

    The scores are features @ inner + intercept. The vector holds Σ w ℓ, Σ w, the (K,) gradient with
    respect to the intercept and the (m, K) gradient with respect to `inner`; it is additive over
    blocks.
    """
    # Only differences of scores matter, and gradients add up to zero over the classes: one column
    # of the products is spared, half of the time for two classes.
    columns = (inner[:, 1:] - inner[:, :1]).astype(features.dtype, copy=False)
    scores = np.zeros((len(intercept), len(codes)))
    scores[1:] = columns.T @ features.T
    scores += intercept[:, None]
    loss, R = log_loss_and_residuals(scores, codes, weights)
    others = (R[1:].astype(features.dtype) @ features).T.astype(np.float64)
    slopes = np.column_stack([-others.sum(axis=1), others])
    return np.concatenate([[loss, float(weights.sum())], R.sum(axis=1), slopes.ravel()])


def log_loss_and_residuals(scores: Array, codes: IntArray, weights: Array) -> tuple[float, Array]:
    """Return the weighted log-loss of scores, and its gradient w (p − y), which replaces them.

    There is one row for each class, (K, n): sums over the classes are sums of rows, which are fast.
    """
    scores -= scores.max(axis=0)
    own = codes, np.arange(len(codes))
    loss = -float(scores[own] @ weights)
    # Smaller probabilities would be subnormal numbers in float32, whose products are slow.
    np.maximum(scores, _LEAST_SCORE, out=scores)
    R = np.exp(scores, out=scores)
    sums = R.sum(axis=0)
    loss += float(np.log(sums) @ weights)
    R *= weights / sums
    R[own] -= weights
    return loss, R


def _some_equations(
    share: float, K: int, features: Array, codes: IntArray, weights: Array
) -> NormalEquations:
    """Return the sums of normal equations over a share of the rows of a block."""
    n = len(codes)
    some: Any = slice(None)
    if share < 1:  # at random, since the order of the rows may have a period
        some = np.sort(np.random.default_rng(n).permutation(n)[: int(np.ceil(share * n))])
    return block_equations(K, features[some], codes[some], weights[some])


def unpack_loss_sums(sums: Array, K: int) -> tuple[float, float, Array, Array]:
    """Return loss, weight, gradient of the intercept (K,) and of the coefficients (m, K)."""
    return float(sums[0]), float(sums[1]), sums[2 : K + 2], sums[K + 2 :].reshape(-1, K)


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """The change of variables that makes the Hessian about the identity.

    For coefficients W of centred features and their intercept b the variables are Rᵀ W and √h b,
    one below the other. R is the Cholesky factor of the approximate Hessian h (covariance) + λI,
    and h the Hessian at uniform probabilities relative to the covariance.

    Attributes
    ----------
    mean : (m,) mean of the features
    inverse : (m, m) R⁻¹, lower; it may be rounded, since the gradient of the variables stays exact.
        Products with it are faster than triangular solves with few columns
    root : √h
    """

    mean: Array
    inverse: Array
    root: float

    @classmethod
    def of(
        cls,
        mean: Array,
        covariance: Array,
        K: int,
        regularization: float,
        dtype: npt.DTypeLike = np.float64,
    ) -> Preconditioner:
        """Factor the approximate Hessian of K classes."""
        hessian = (1 - 1 / K) / K
        triangle = factor_with_ridge(covariance * hessian, regularization)
        inverse = invert_lower(triangle.astype(dtype, copy=False))
        return cls(mean, inverse, float(np.sqrt(hessian)))

    def coefficients(self, variables: Array) -> tuple[Array, Array]:
        """Return the (m, K) coefficients and the (K,) intercept of features as they are."""
        B = variables.reshape(len(self.mean) + 1, -1)
        W = (self.inverse.T @ B[:-1].astype(self.inverse.dtype)).astype(np.float64, copy=False)
        return W, B[-1] / self.root - self.mean @ W

    def variables(self, solution: Solution) -> Array:
        """Return the variables of a solution, flat."""
        W = solution.coefficients
        centred = solution.intercept + self.mean @ W
        B = solve_lower(self.inverse, W, transposed=True)
        return np.vstack([B, centred * self.root]).ravel()

    def gradient(self, slope: Array, bias: Array) -> Array:
        """Return the gradient with respect to the variables, flat.

        `slope` (m, K) and `bias` (K,) are those with respect to coefficients and intercept.
        """
        centred = slope - np.outer(self.mean, bias)
        along = self.inverse @ centred.astype(self.inverse.dtype)
        return np.vstack([along, bias / self.root]).ravel()


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """Logistic regression on fixed features, to be solved for any λ.

    Attributes
    ----------
    features : features of the samples, in blocks
    mean, covariance : (m,), (m, m) of the whitened features, exact or estimated
    sample : features of some of the samples, in memory, for the first steps; None to take all steps
        on all samples
    slopes : (m, K) estimated covariance of the features with the targets; None if it is unknown
    """

    features: FeatureBlocks
    mean: Array
    covariance: Array
    sample: FeatureBlocks | None = None
    slopes: Array | None = None

    @classmethod
    def on_whitened_features(
        cls, basis: NystromBasis, rows: LabelledRows, executor: Executor = SERIAL
    ) -> LogisticProblem:
        """Prepare with whitened features in memory and their covariance.

        The covariance of many float32 features is that of some of the rows: it is a preconditioner
        only, and that of all rows costs more than the few steps it saves.
        """
        features = held_whitened_blocks(basis, rows, executor)
        n, m, K = len(rows), len(basis.directions), len(rows.classes)
        share = min(1.0, _MOST_ROWS * m / n) if basis.dtype == np.float32 else 1.0
        equations = features.total(partial(_some_equations, share, K))
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
        n, m = len(rows), len(basis.directions)
        if sampling_pays(n, m):
            equations = sample_equations(basis, rows, executor)
            mean, covariance, slopes = equations.mean_z, equations.covariance(), equations.slopes()
        else:
            mean, covariance = estimate_covariance(basis, rows, counts)
            slopes = None
        features, sample = float32_kernel_blocks(basis, rows, executor, stored_up_to), None
        if features.held is None and 4.0 * _SAMPLE * m**2 <= stored_up_to:
            some = stratified_sample(rows, _SAMPLE * m, np.random.default_rng(0))
            sample = float32_kernel_blocks(basis, some, executor, stored_up_to)
        return cls(features, mean, covariance, sample, slopes)

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
        held = (self.sample or self.features).held
        return np.float64 if held is None else held[0][0].dtype

    def newton_step(self, regularization: float) -> Array:
        """Return the estimated (m, K) coefficients after Newton's first step from zero.

        They tell beforehand how large the coefficients will be. Zero without `slopes`.
        """
        if self.slopes is None:
            return np.zeros((len(self.mean), 1))
        change = Preconditioner.of(self.mean, self.covariance, self.n_classes, regularization)
        return np.asarray(change.inverse.T @ (change.inverse @ self.slopes))

    def solve(
        self,
        regularization: float,
        start: Solution | None = None,
        tolerance: float | None = None,
        most_steps: int = MOST_STEPS,
    ) -> Solution:
        """Solve for one λ, from zero or from another solution; `tolerance` is TOLERANCE if None."""
        K, tolerance = self.n_classes, TOLERANCE if tolerance is None else tolerance
        change = Preconditioner.of(self.mean, self.covariance, K, regularization, self.precision)
        lengths = []  # of the gradients

        def loss_and_slope(features: FeatureBlocks, flat: Array) -> tuple[float, Array]:
            W, intercept = change.coefficients(flat)
            loss, slope, bias = _loss_and_gradient(features, W, intercept)
            along = change.gradient(slope + regularization * W, bias)
            lengths.append(float(np.linalg.norm(along)))
            return loss + 0.5 * regularization * float((W * W).sum()), along

        x: Array = np.zeros((len(self.mean) + 1) * K)
        if start is not None:
            x = change.variables(start)
        pairs = lbfgs.no_pairs()
        stages = [(self.features, tolerance)]
        if self.sample is not None:
            stages = [(self.sample, tolerance), (self.features, max(tolerance, _LAST_TOLERANCE))]
        # The loss at zero, where all classes have the same probability, is log K.
        with self.features.executor.session():
            for features, least in stages:
                x, _, slope = lbfgs.minimize(
                    partial(loss_and_slope, features), x, least * np.log(K), most_steps, pairs
                )
        reached = float(np.linalg.norm(slope)) / lengths[0] if lengths[0] > 0 else 0.0
        return Solution(*change.coefficients(x), reached)


def _loss_and_gradient(
    features: FeatureBlocks, W: Array, intercept: Array
) -> tuple[float, Array, Array]:
    """Return the mean loss and its gradients: of the coefficients, and of the intercept."""
    sums = features.total(partial(loss_sums, features.to_kernel(W), intercept))
    loss, weight, bias, slopes = unpack_loss_sums(sums, len(intercept))
    return loss / weight, features.to_whitened(slopes) / weight, bias / weight


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
        change = Preconditioner.of(self.mean, self.covariance, K, regularization)
        # Preconditioned features, and a last one for the intercept.
        A = np.full((m + 1, len(self.codes)), 1.0 / change.root, dtype, order="F")
        A[:m] = change.inverse.astype(dtype) @ self._centred
        # The coefficients are R⁻ᵀB, so their squared length is that of B in the metric R⁻¹R⁻ᵀ.
        penalty = np.zeros((m + 1, m + 1))
        penalty[:m, :m] = regularization * (change.inverse @ change.inverse.T)
        shares = (self.weights / self.weights.sum()).astype(dtype)

        def loss_and_slope(flat: Array) -> tuple[float, Array]:
            B = flat.reshape(m + 1, K)
            loss, R = log_loss_and_residuals(B.T.astype(dtype) @ A, self.codes, shares)
            shrunk = penalty @ B
            return loss + 0.5 * float(np.vdot(B, shrunk)), (A @ R.T + shrunk).ravel()

        x0 = np.zeros((m + 1) * K) if start is None else change.variables(start)
        x, _, slope = lbfgs.minimize(loss_and_slope, x0, tolerance, most_steps)
        return Solution(*change.coefficients(x), float(np.linalg.norm(slope)))
