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
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import log_softmax

from kmeans_kernel._blocks import Array
from kmeans_kernel._passes import (
    STORED_UP_TO,
    Passes,
    SampleKernel,
    WhiteFeatures,
    factor_with_ridge,
)
from kmeans_kernel._ridge import WhiteBasis
from kmeans_kernel._samples import Samples
from kmeans_kernel._workers import ALONE, Workers

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
        kernel = SampleKernel.of(basis, samples, counts, workers)
        found = LogisticProblem.of(kernel).solve(regularization)
        # Large coefficients that cancel make the rounding of float32 kernel values loud.
        loudest = np.linalg.norm(kernel.inward(found.coefficients), axis=0).max()
        noise = float(np.finfo(np.float32).eps * loudest)
        if noise <= _TOLERABLE_NOISE or 4.0 * n * m > STORED_UP_TO:
            return found
    return LogisticProblem.of(WhiteFeatures.of(basis, samples, workers)).solve(regularization)


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """The logistic regressions of all λ.

    Attributes
    ----------
    passes : over the samples
    mean, covariance : (m,), (m, m) of the white features, exact or nearly so
    """

    passes: Passes
    mean: Array
    covariance: Array

    @classmethod
    def of(cls, passes: Passes) -> LogisticProblem:
        """Prepare."""
        return cls(passes, *passes.covariance())

    def solve(
        self,
        regularization: float,
        start: LogisticFit | None = None,
        tolerance: float = TOLERANCE,
        most_steps: int = MOST_STEPS,
    ) -> LogisticFit:
        """Solve for one λ, from zero or from another fit."""
        samples, passes = self.passes.samples, self.passes
        m, K = len(self.mean), samples.n_classes
        weight = float(samples.weights.sum())
        # The curvature of the loss where all classes are alike, in that of plain squares.
        bend = (1 - 1 / K) / K
        triangle = factor_with_ridge(self.covariance.copy(), regularization / bend)
        triangle *= np.sqrt(bend)

        def unpack(flat: Array) -> tuple[Array, Array]:
            B = flat.reshape(m + 1, K)
            W = solve_triangular(triangle, B[:m], lower=True, trans="T", check_finite=False)
            return W, B[m] / np.sqrt(bend)

        def loss_and_slope(flat: Array) -> tuple[float, Array]:
            W, b = unpack(flat)
            inner, shift = passes.inward(W), b - self.mean @ W
            found: dict[int, tuple[float, Array]] = {}

            def residuals(rows: slice, values: Array) -> Array:
                codes, weights = samples.codes[rows], samples.weights[rows] / weight
                logs = log_softmax(values @ inner.astype(values.dtype, copy=False) + shift, axis=1)
                own = np.arange(len(codes)), codes
                loss = -float(weights @ logs[own])
                R = np.exp(logs)
                R[own] -= 1.0
                R *= weights[:, None]
                found[rows.start] = loss, R.sum(axis=0)
                return np.asarray(R)

            sums = passes.outward(passes.sums(residuals, K))
            parts = [found[start] for start in sorted(found)]  # threads come as they like
            total = sum(part[0] for part in parts)
            slope_b = np.sum([part[1] for part in parts], axis=0)
            slope = sums - np.outer(self.mean, slope_b) + regularization * W
            along = solve_triangular(triangle, slope, lower=True, check_finite=False)
            gradient = np.vstack([along, slope_b / np.sqrt(bend)])
            return total + 0.5 * regularization * float((W * W).sum()), gradient.ravel()

        flat = np.zeros((m + 1) * K)
        first, first_slope = loss_and_slope(flat)
        if start is not None:
            flat = np.vstack(
                [
                    triangle.T @ start.coefficients,
                    (start.intercept + self.mean @ start.coefficients) * np.sqrt(bend),
                ]
            ).ravel()
        result = minimize(
            lambda flat: tuple(part / first for part in loss_and_slope(flat)),
            flat,
            jac=True,
            method="L-BFGS-B",
            options={
                "maxcor": _MEMORY, "ftol": tolerance, "gtol": 0.0, "maxiter": most_steps,
                "maxfun": 2 * most_steps,
            },
        )  # fmt: skip
        W, b = unpack(result.x)
        length = np.linalg.norm(first_slope)
        reached = float(first * np.linalg.norm(result.jac) / length) if length > 0 else 0.0
        return LogisticFit(W, b - self.mean @ W, reached)
