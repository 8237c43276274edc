"""Fits to what is not held out, for every regularisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import eigh

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Samples
from kmeans_kernel.core.clustering.representatives import Representation
from kmeans_kernel.core.kernels.kernels import Kernel, sharpened
from kmeans_kernel.core.solvers.logistic import LogisticFit, LogisticProblem
from kmeans_kernel.core.solvers.nystrom import NormalEquations, WhiteBasis, kernel_values

# The most steps for the logistic loss in a trial, which starts from the one before.
_TRIAL_STEPS = 40


class Path(Protocol):
    """Fits for every regularisation."""

    def features(self, U: Array) -> Array:
        """Return what `scores` needs of unit rows."""

    def scores(self, T: Array, regularization: float) -> Array:
        """Return the (n, K) scores of rows with these features."""


class PathOf(Protocol):
    """A way to fit."""

    def __call__(
        self, samples: Samples, basis: Representation, kernel: Kernel, workers: Workers
    ) -> Path:
        """Prepare the fits of samples on a basis."""


class Solution(Protocol):
    """Coefficients of white features, and an intercept."""

    @property
    def coefficients(self) -> Array:
        """The (m, K) coefficients."""

    @property
    def intercept(self) -> Array:
        """The (K,) intercept."""


@dataclass(frozen=True, eq=False)
class SamplesPath:
    """Fits to all samples, for every λ.

    Attributes
    ----------
    white : the basis
    solve : gives the solution for a λ
    """

    white: WhiteBasis
    solve: Callable[[float], Solution]

    @classmethod
    def of_squares(
        cls, samples: Samples, basis: Representation, kernel: Kernel, workers: Workers = ALONE
    ) -> SamplesPath:
        """Set up the normal equations."""
        white = WhiteBasis.of(basis.directions, kernel, workers)
        return cls(white, NormalEquations.on(white, samples, workers).solve)

    @classmethod
    def of_logistic(
        cls, samples: Samples, basis: Representation, kernel: Kernel, workers: Workers = ALONE
    ) -> SamplesPath:
        """Make the white features of all samples; each fit starts from the one before."""
        white = WhiteBasis.of(basis.directions, kernel, workers)
        problem = LogisticProblem.on_white_features(white, samples, workers)
        last: LogisticFit | None = None

        def solve(regularization: float) -> LogisticFit:
            nonlocal last
            last = problem.solve(regularization, last, most_steps=_TRIAL_STEPS)
            return last

        return cls(white, solve)

    def features(self, U: Array) -> Array:
        """Return what `scores` needs of unit rows."""
        return self.white.features(U)

    def scores(self, T: Array, regularization: float) -> Array:
        """Return the (n, K) scores of rows with these features."""
        found = self.solve(regularization)
        return np.asarray(T @ found.coefficients + found.intercept)


@dataclass(frozen=True, eq=False)
class RepresentativesPath:
    """The paper's fits, to the representatives themselves, for every ε.

    Attributes
    ----------
    directions : (m, d) the representatives
    kernel : the kernel
    axes, values : (m, m), (m,) eigenvectors, one in each column, and eigenvalues of Ω
    targets : (m, K) along the axes
    ones : (m,) a vector of ones along the axes
    """

    directions: Array
    kernel: Kernel
    axes: Array
    values: Array
    targets: Array
    ones: Array

    @classmethod
    def of(
        cls, samples: Samples, basis: Representation, kernel: Kernel, workers: Workers = ALONE
    ) -> RepresentativesPath:
        """Decompose the kernel matrix of the representatives."""
        del workers  # the decomposition is one call
        directions = sharpened(basis.directions, kernel)
        omega = kernel_values(directions, directions, kernel)
        values, axes = eigh(omega, overwrite_a=True, check_finite=False)
        targets = axes.T @ np.eye(samples.n_classes)[basis.owners]
        return cls(directions, kernel, axes, values, targets, axes.sum(axis=0))

    def features(self, U: Array) -> Array:
        """Return what `scores` needs of unit rows."""
        return np.asarray(kernel_values(U, self.directions, self.kernel) @ self.axes)

    def scores(self, T: Array, regularization: float) -> Array:
        """Return the (n, K) scores of rows with these features."""
        inverse = 1.0 / np.maximum(self.values + regularization, np.finfo(float).eps)
        intercept = (self.ones * inverse) @ self.targets / (self.ones**2 @ inverse)
        along = inverse[:, None] * (self.targets - np.outer(self.ones, intercept))
        return np.asarray(T @ along + intercept)
