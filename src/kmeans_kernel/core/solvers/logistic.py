"""The machine of `_ridge` with the logistic loss instead of squares.

    minimise over a, b:   Σᵢ wᵢ ℓ(kᵢᵀ a + b, yᵢ)  +  ½ λ W Σ aᵀ (Ω + δI) a,    W = Σᵢ wᵢ

ℓ(s, y) being −log of what the softmax of the scores s gives to the class y. Least squares must
bend a score down again beyond the class it is of: where classes lie one behind the other, those in
the middle are hardly ever the highest. The logistic loss asks only that the right score be above
the others.

In white features the curvature of the mean loss is, but for a factor, their covariance; divided by
its triangle, the problem is round, and a few dozen steps of BFGS solve it. A step is one pass over
the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import log_softmax

from kmeans_kernel.core.arrays.blocking import Array, IntArray
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Samples
from kmeans_kernel.core.solvers.nystrom import NormalEquations, WhiteBasis, sum_moments
from kmeans_kernel.core.solvers.passes import (
    STORED_UP_TO,
    Columns,
    Passes,
    factor_with_ridge,
    guess_covariance,
    over_kernel_values,
    over_white_features,
)

# Steps end when one lowers the loss by less than this share of what it was at first. Further steps
# change what the model is sure of anyway; held-out samples are predicted no better.
TOLERANCE = 1e-5

MOST_STEPS = 100

# The most products for white features: about a minute on two cores.
_MOST_PRODUCTS = 2e12

# What rounding may add to scores, of which a difference of one is one of odds by a factor of e.
_TOLERABLE_NOISE = 0.02

# The steps that BFGS remembers.
_MEMORY = 10


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """The logistic regression of one λ.

    Attributes
    ----------
    coefficients : (m, K) of the white features
    intercept : (K,)
    relative_residual : the length of the gradient at the end, in that at the start
    """

    coefficients: Array
    intercept: Array
    relative_residual: float


def whitening_pays(n: int, m: int) -> bool:
    """Say whether to make the white features of n samples: they take room, and n m² products."""
    return 4.0 * n * m <= STORED_UP_TO and float(n) * m**2 <= _MOST_PRODUCTS


def fit_logistic(
    basis: WhiteBasis,
    samples: Samples,
    counts: npt.NDArray[Any],
    regularization: float,
    workers: Workers = ALONE,
) -> LogisticFit:
    """Fit to all samples by passes over white features, or over kernel values where these do.

    Parameters
    ----------
    counts : (m,) the weight of the samples that each representative stands for
    """
    n, m = len(samples), len(basis.directions)
    if not whitening_pays(n, m):
        problem = LogisticProblem.on_kernel_values(basis, samples, counts, workers)
        found = problem.solve(regularization)
        # Large coefficients that cancel make the rounding of float32 kernel values loud.
        loudest = np.linalg.norm(basis.dual(found.coefficients), axis=0).max()
        noise = float(np.finfo(np.float32).eps * loudest)
        if noise <= _TOLERABLE_NOISE or 4.0 * n * m > STORED_UP_TO:
            return found
    return LogisticProblem.on_white_features(basis, samples, workers).solve(regularization)


@dataclass(frozen=True, eq=False)
class LossSums:
    """The loss of samples, and its slopes; those of all are the sum of those of the blocks.

    Attributes
    ----------
    loss : Σ w ℓ
    slopes, bias : (m, K), (K,) its gradients by the coefficients of the values and by the intercept
    weight : Σ w
    """

    loss: float
    slopes: Array
    bias: Array
    weight: float

    @classmethod
    def of(
        cls, values: Array, inner: Array, intercept: Array, codes: IntArray, weights: Array
    ) -> LossSums:
        """Sum over a block: values (n, m), of which the scores are values @ inner + intercept."""
        logs = log_softmax(values @ inner.astype(values.dtype, copy=False) + intercept, axis=1)
        own = np.arange(len(codes)), codes
        loss = -float(weights @ logs[own])
        R = np.exp(logs)
        R[own] -= 1.0
        R *= weights[:, None]
        slopes = values.T @ R.astype(values.dtype, copy=False)
        return cls(loss, slopes.astype(np.float64), R.sum(axis=0), float(weights.sum()))

    def __add__(self, other: LossSums) -> LossSums:
        return LossSums(
            self.loss + other.loss,
            self.slopes + other.slopes,
            self.bias + other.bias,
            self.weight + other.weight,
        )


class Losses(Protocol):
    """Someone who adds up the loss of all samples."""

    @property
    def n_classes(self) -> int:
        """The number of classes, K."""

    @property
    def inward(self) -> Columns:
        """Gives the coefficients of the values, of those of the white features."""

    @property
    def outward(self) -> Columns:
        """Gives the sums over white features, of those over the values."""

    def sum(self, inner: Array, intercept: Array) -> LossSums:
        """Return the sums at these coefficients of the values."""


@dataclass(frozen=True, eq=False)
class LossesOfPasses:
    """Losses of samples in memory."""

    passes: Passes

    @property
    def n_classes(self) -> int:
        """The number of classes, K."""
        return self.passes.samples.n_classes

    @property
    def inward(self) -> Columns:
        """Gives the coefficients of the values, of those of the white features."""
        return self.passes.inward

    @property
    def outward(self) -> Columns:
        """Gives the sums over white features, of those over the values."""
        return self.passes.outward

    def sum(self, inner: Array, intercept: Array) -> LossSums:
        """Return the sums at these coefficients of the values."""
        samples = self.passes.samples

        def part(rows: slice, values: Array) -> LossSums:
            codes, weights = samples.codes[rows], samples.weights[rows]
            return LossSums.of(values, inner, intercept, codes, weights)

        return self.passes.total(part)


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """The logistic regressions of all λ.

    Attributes
    ----------
    losses : of the samples
    mean, covariance : (m,), (m, m) of the white features, exact or nearly so
    """

    losses: Losses
    mean: Array
    covariance: Array

    @classmethod
    def on_white_features(
        cls, basis: WhiteBasis, samples: Samples, workers: Workers = ALONE
    ) -> LogisticProblem:
        """Prepare with white features, and their covariance."""
        passes = over_white_features(basis, samples, workers)
        equations = NormalEquations.of(sum_moments(passes.values, samples, workers))
        return cls(LossesOfPasses(passes), equations.mean_z, equations.covariance)

    @classmethod
    def on_kernel_values(
        cls,
        basis: WhiteBasis,
        samples: Samples,
        counts: npt.NDArray[Any],
        workers: Workers = ALONE,
        stored_up_to: float = STORED_UP_TO,
    ) -> LogisticProblem:
        """Prepare with kernel values, and a guess at the covariance."""
        passes = over_kernel_values(basis, samples, workers, stored_up_to)
        return cls(LossesOfPasses(passes), *guess_covariance(basis, samples, counts))

    def solve(
        self,
        regularization: float,
        start: LogisticFit | None = None,
        tolerance: float = TOLERANCE,
        most_steps: int = MOST_STEPS,
    ) -> LogisticFit:
        """Solve for one λ, from zero or from another fit."""
        objective = _Objective.of(self, regularization)
        zero = np.zeros(objective.size)
        first, first_slope = objective.loss_and_slope(zero)
        result = minimize(
            lambda flat: tuple(part / first for part in objective.loss_and_slope(flat)),
            zero if start is None else objective.position(start),
            jac=True,
            method="L-BFGS-B",
            options={
                "maxcor": _MEMORY, "ftol": tolerance, "gtol": 0.0, "maxiter": most_steps,
                "maxfun": 2 * most_steps,
            },
        )  # fmt: skip
        length = np.linalg.norm(first_slope)
        reached = float(first * np.linalg.norm(result.jac) / length) if length > 0 else 0.0
        W, b = objective.centred(result.x)
        return LogisticFit(W, b - self.mean @ W, reached)


@dataclass(frozen=True, eq=False)
class _Objective:
    """The mean loss of one λ, in coordinates in which it is about round.

    Attributes
    ----------
    problem, regularization : whose it is
    triangle : (m, m) lower, by which coefficients become coordinates
    root : by which the intercept does
    """

    problem: LogisticProblem
    regularization: float
    triangle: Array
    root: float

    @classmethod
    def of(cls, problem: LogisticProblem, regularization: float) -> _Objective:
        """Factor the curvature."""
        K = problem.losses.n_classes
        # That of the loss where all classes are alike, in that of plain squares.
        bend = (1 - 1 / K) / K
        triangle = factor_with_ridge(problem.covariance.copy(), regularization / bend)
        return cls(problem, regularization, triangle * np.sqrt(bend), float(np.sqrt(bend)))

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return (len(self.triangle) + 1) * self.problem.losses.n_classes

    def position(self, fit: LogisticFit) -> Array:
        """Return the coordinates of a fit."""
        W = fit.coefficients
        centred = fit.intercept + self.problem.mean @ W
        return np.vstack([self.triangle.T @ W, centred * self.root]).ravel()

    def centred(self, flat: Array) -> tuple[Array, Array]:
        """Return coefficients, and the intercept for centred features, at coordinates."""
        m = len(self.triangle)
        B = flat.reshape(m + 1, -1)
        W = solve_triangular(self.triangle, B[:m], lower=True, trans="T", check_finite=False)
        return W, B[m] / self.root

    def loss_and_slope(self, flat: Array) -> tuple[float, Array]:
        """Return the mean loss with its penalty, and its gradient, at coordinates."""
        W, b = self.centred(flat)
        loss, sums, slope_b = self._pass(W, b - self.problem.mean @ W)
        slope = sums - np.outer(self.problem.mean, slope_b) + self.regularization * W
        along = solve_triangular(self.triangle, slope, lower=True, check_finite=False)
        penalty = 0.5 * self.regularization * float((W * W).sum())
        return loss + penalty, np.vstack([along, slope_b / self.root]).ravel()

    def _pass(self, W: Array, intercept: Array) -> tuple[float, Array, Array]:
        """Return the mean loss and its gradients by the coefficients and by the intercept."""
        losses = self.problem.losses
        found = losses.sum(losses.inward(W), intercept)
        weight = found.weight
        return found.loss / weight, losses.outward(found.slopes) / weight, found.bias / weight
