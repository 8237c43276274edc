"""Predictions of held-out samples: K-fold cross-validation, and leave-one-out in closed form.

- **folds**: the samples are dealt into folds; each fold is predicted by a model that clustered and
  fitted the others, with as many samples to a representative as the final model;
- **leave-one-out**: in closed form, from one fit, but with representatives that the sample helped
  to place. That flatters the model where a representative stands for few samples.

So leave-one-out is for clusters of at least `LARGE_CLUSTERS` samples, folds for smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

# Mean samples of a representative from which on leave-one-out is trusted.
LARGE_CLUSTERS = 25

# The most L-BFGS steps in a trial, which starts from the solution before.
_TRIAL_STEPS = 40

# The (n, K) scores of held-out samples as a function of the regularization.
ScoresOf: TypeAlias = Callable[[float], Array]


class HeldOut(Protocol):
    """Samples that can be predicted as if they had not been seen."""

    @property
    def codes(self) -> IntArray:
        """The (n,) positions of the classes of these samples."""

    @property
    def weights(self) -> Array:
        """The (n,) weights of these samples."""

    def scores(self, kernel: Kernel) -> ScoresOf:
        """Return their scores as a function of the regularization."""


class Fold(NamedTuple):
    """The samples that a model is fitted to, its representatives, and the samples it predicts."""

    train: LabelledRows
    basis: Representatives
    test: LabelledRows


class Path(Protocol):
    """A regularization path: fits a fold for every regularization."""

    def __call__(self, fold: Fold, kernel: Kernel, executor: Executor) -> ScoresOf:
        """Return the scores of the fold's test samples as a function of the regularization."""


def ridge_path(fold: Fold, kernel: Kernel, executor: Executor = SERIAL) -> ScoresOf:
    """Fit squares to the training samples, by their normal equations."""
    basis = NystromBasis.of(fold.basis.directions, kernel, executor)
    equations = NormalEquations.of(whitened_blocks(basis, fold.train, executor))
    features = basis.features(fold.test.directions())
    return lambda value: _linear_scores(features, equations.solve(value)[0])


def logistic_path(fold: Fold, kernel: Kernel, executor: Executor = SERIAL) -> ScoresOf:
    """Fit the logistic loss to the training samples; each fit starts from the one before."""
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
    """Fit the paper's LS-SVM to the representatives, by one eigendecomposition for every ε."""
    del executor  # the decomposition is one call
    directions = unit_rows_for(kernel, fold.basis.directions)
    omega = kernel_values(directions, directions, kernel)
    values, axes = eigh(omega, overwrite_a=True, check_finite=False)
    targets = axes.T @ np.eye(len(fold.train.classes))[fold.basis.codes]
    ones = axes.sum(axis=0)  # a vector of ones along the axes
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
    """Samples held out in folds.

    Attributes
    ----------
    folds : one for each turn
    path : how the model of a fold is fitted
    executor : runs the folds
    """

    folds: list[Fold]
    path: Path
    executor: Executor = SERIAL

    @property
    def fitted_weight(self) -> float:
        """The mean weight of the samples that a model is fitted to."""
        return float(np.mean([fold.train.row_weights.sum() for fold in self.folds]))

    @cached_property
    def codes(self) -> IntArray:
        """The positions of the classes of all samples, fold after fold."""
        return np.concatenate([fold.test.codes for fold in self.folds])

    @cached_property
    def weights(self) -> Array:
        """The weights of all samples, fold after fold."""
        return np.concatenate([fold.test.row_weights for fold in self.folds])

    def scores(self, kernel: Kernel) -> ScoresOf:
        """Prepare the fits of each fold."""
        prepare = partial(self.path, kernel=kernel, executor=self.executor)
        paths = self.executor.map(prepare, self.folds)
        return lambda regularization: np.concatenate(
            self.executor.map(lambda path: path(regularization), paths)
        )

    def holding_out(self, enough: int) -> CrossValidation:
        """Return no more of the folds than hold out `enough` samples."""
        held = np.cumsum([len(fold.test) for fold in self.folds])
        return replace(self, folds=self.folds[: 1 + int(np.searchsorted(held, enough))])


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Samples left out one at a time.

    Attributes
    ----------
    rows : the samples that the model is fitted to
    basis : its representatives
    left_out : the positions of the samples that are left out
    executor : runs the fit
    """

    rows: LabelledRows
    basis: Representatives
    left_out: IntArray
    executor: Executor = SERIAL

    @cached_property
    def codes(self) -> IntArray:
        """The positions of their classes."""
        return np.asarray(self.rows.codes[self.left_out])

    @cached_property
    def weights(self) -> Array:
        """Their weights."""
        return np.asarray(self.rows.row_weights[self.left_out])

    def scores(self, kernel: Kernel) -> ScoresOf:
        """Fit once, for all regularizations at once."""
        basis = NystromBasis.of(self.basis.directions, kernel, self.executor)
        features = whitened_blocks(basis, self.rows, self.executor)
        path = RidgePath.of(NormalEquations.of(features))
        T = path.along_axes(basis.features(self.rows.directions(self.left_out)))
        Y = np.eye(len(self.rows.classes))[self.codes]
        weights = self.rows.copy_weights[self.left_out]
        return lambda value: path.left_out_scores(T, Y, weights, value)


def deal_folds(codes: IntArray, n_folds: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Deal samples into stratified folds; give the positions in each fold, in order."""
    fold = np.empty(len(codes), dtype=np.intp)
    dealt = 0
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        fold[members] = (dealt + np.arange(len(members))) % n_folds
        dealt += len(members)
    for k in range(n_folds):
        positions = np.flatnonzero(fold == k)
        if 0 < len(positions) < len(codes):
            yield positions


def hold_out(
    rows: LabelledRows, n_folds: int, rng: np.random.Generator
) -> Iterator[tuple[LabelledRows, LabelledRows]]:
    """Deal rows into stratified folds; give the rest and the fold, in turns.

    Equal rows, which come merged into one, are dealt one by one: a fold of a table with few values
    would else hold out combinations that no other fold has.
    """
    positions_of_copies = np.repeat(np.arange(len(rows)), rows.copies)
    for positions in deal_folds(rows.codes[positions_of_copies], n_folds, rng):
        held = np.bincount(positions_of_copies[positions], minlength=len(rows))
        yield rows.with_copies(rows.copies - held), rows.with_copies(held)
