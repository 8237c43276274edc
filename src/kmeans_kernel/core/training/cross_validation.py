"""Predictions of held-out samples: K-fold cross-validation, and closed-form leave-one-out.

- **K-fold**: each fold is predicted by a model that is clustered and fitted on the other folds,
  with as many samples per representative as in the final model;
- **leave-one-out**: closed form, from one fit; but the left-out sample has taken part in K-means,
  which makes the estimate optimistic where clusters are small.

So leave-one-out is used for clusters of at least `LARGE_CLUSTERS` samples on average, K-fold
cross-validation for smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.linalg import eigh

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import Array, IntArray
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.clustering.representatives import Representatives
from kmeans_kernel.core.kernels.kernels import Kernel, kernel_values, unit_rows_for
from kmeans_kernel.core.solvers.leave_one_out import RidgePath
from kmeans_kernel.core.solvers.logistic import LogisticProblem
from kmeans_kernel.core.solvers.nystrom import (
    NormalEquations,
    NystromBasis,
    Solution,
    whitened_blocks,
)

# Mean number of samples per representative above which leave-one-out is used.
LARGE_CLUSTERS = 25

# The most L-BFGS steps of a trial; few, since a trial starts from the solution of the last λ.
_TRIAL_STEPS = 40

# The (n, K) scores of held-out samples as a function of the regularization.
ScoresOf: TypeAlias = Callable[[float], Array]


class HeldOut(Protocol):
    """Held-out samples, by K-fold cross-validation or leave-one-out."""

    @property
    def codes(self) -> IntArray:
        """The (n,) positions of the classes of the held-out samples."""

    @property
    def weights(self) -> Array:
        """The (n,) weights of the held-out samples."""

    def scores(self, kernel: Kernel) -> ScoresOf:
        """Return the held-out scores as a function of the regularization."""


class Fold(NamedTuple):
    """Training samples of a fold, their representatives, and the held-out samples."""

    train: LabelledRows
    basis: Representatives
    test: LabelledRows


class Path(Protocol):
    """A regularization path: prepares a fold for fits at any regularization."""

    def __call__(self, fold: Fold, kernel: Kernel, executor: Executor) -> ScoresOf:
        """Return the scores of the fold's held-out samples as a function of the regularization."""


def ridge_path(fold: Fold, kernel: Kernel, executor: Executor = SERIAL) -> ScoresOf:
    """Fit Nyström kernel ridge regression to the training samples, by the normal equations."""
    basis = NystromBasis.of(fold.basis.directions, kernel, executor)
    equations = NormalEquations.of(whitened_blocks(basis, fold.train, executor))
    features = basis.features(fold.test.directions())
    return lambda value: _linear_scores(features, equations.solve(value)[0])


def logistic_path(fold: Fold, kernel: Kernel, executor: Executor = SERIAL) -> ScoresOf:
    """Fit Nyström kernel logistic regression, each time from the solution of the last λ."""
    basis = NystromBasis.of(fold.basis.directions, kernel, executor)
    problem = LogisticProblem.on_whitened_features(basis, fold.train, executor)
    features = basis.features(fold.test.directions())
    last: Solution | None = None

    def scores(regularization: float) -> Array:
        nonlocal last
        last = problem.solve(regularization, last, most_steps=_TRIAL_STEPS)
        return _linear_scores(features, last)

    return scores


def dual_path(fold: Fold, kernel: Kernel, executor: Executor = SERIAL) -> ScoresOf:
    """Fit the paper's LS-SVM to the representatives; one eigendecomposition serves every ε."""
    del executor  # the decomposition is one call
    directions = unit_rows_for(kernel, fold.basis.directions)
    omega = kernel_values(directions, directions, kernel)
    values, axes = eigh(omega, overwrite_a=True, check_finite=False)
    targets = axes.T @ np.eye(len(fold.train.classes))[fold.basis.codes]
    ones = axes.sum(axis=0)  # the vector of ones in the basis of eigenvectors
    T = np.asarray(kernel_values(fold.test.directions(), directions, kernel) @ axes)

    def scores(regularization: float) -> Array:
        inverse = 1.0 / np.maximum(values + regularization, np.finfo(float).eps)
        intercept = (ones * inverse) @ targets / (ones**2 @ inverse)
        along = inverse[:, None] * (targets - np.outer(ones, intercept))
        return np.asarray(T @ along + intercept)

    return scores


def _linear_scores(features: Array, solution: Solution) -> Array:
    return np.asarray(features @ solution.coefficients + solution.intercept)


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """K-fold cross-validation.

    Attributes
    ----------
    folds : the folds
    path : the regularization path that is fitted to each fold
    executor : runs the folds
    """

    folds: list[Fold]
    path: Path
    executor: Executor = SERIAL

    @property
    def fitted_weight(self) -> float:
        """Total weight of the training samples, averaged over the folds."""
        return float(np.mean([fold.train.row_weights.sum() for fold in self.folds]))

    @cached_property
    def codes(self) -> IntArray:
        """Positions of the classes of the held-out samples, fold after fold."""
        return np.concatenate([fold.test.codes for fold in self.folds])

    @cached_property
    def weights(self) -> Array:
        """Weights of the held-out samples, fold after fold."""
        return np.concatenate([fold.test.row_weights for fold in self.folds])

    def scores(self, kernel: Kernel) -> ScoresOf:
        """Return the held-out scores, fold after fold, as a function of the regularization."""
        prepare = partial(self.path, kernel=kernel, executor=self.executor)
        paths = self.executor.map(prepare, self.folds)
        return lambda regularization: np.concatenate(
            self.executor.map(lambda path: path(regularization), paths)
        )

    def holding_out(self, enough: int) -> CrossValidation:
        """Return the first folds, only as many as hold out `enough` samples together."""
        held = np.cumsum([len(fold.test) for fold in self.folds])
        return replace(self, folds=self.folds[: 1 + int(np.searchsorted(held, enough))])


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Closed-form leave-one-out of Nyström kernel ridge regression.

    Attributes
    ----------
    rows : the samples of the fit
    basis : their representatives
    left_out : positions of the samples that are left out, one at a time
    executor : runs the fit
    """

    rows: LabelledRows
    basis: Representatives
    left_out: IntArray
    executor: Executor = SERIAL

    @cached_property
    def codes(self) -> IntArray:
        """Positions of the classes of the left-out samples."""
        return np.asarray(self.rows.codes[self.left_out])

    @cached_property
    def weights(self) -> Array:
        """Weights of the left-out samples."""
        return np.asarray(self.rows.row_weights[self.left_out])

    def scores(self, kernel: Kernel) -> ScoresOf:
        """Return the leave-one-out scores as a function of λ, from one eigendecomposition."""
        basis = NystromBasis.of(self.basis.directions, kernel, self.executor)
        features = whitened_blocks(basis, self.rows, self.executor)
        path = RidgePath.of(NormalEquations.of(features))
        T = path.along_axes(basis.features(self.rows.directions(self.left_out)))
        Y = np.eye(len(self.rows.classes))[self.codes]
        weights = self.rows.copy_weights[self.left_out]
        return lambda value: path.left_out_scores(T, Y, weights, value)
