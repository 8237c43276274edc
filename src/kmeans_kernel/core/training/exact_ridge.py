"""Trials of exact kernel ridge regression, in which every training row is a representative.

Centroids stand for many rows each. Where a row resembles a single training row more than any
centroid, as in tables of repeated visits of the same persons, the rows themselves predict better.
A trial solves the bordered system of `solvers/dual.py` for the training samples of each fold, in
float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kmeans_kernel.core.arrays.execution import Executor
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.solvers.blas import factor_tile
from kmeans_kernel.core.solvers.nystrom import divide_by
from kmeans_kernel.core.training.search import downhill, squared_losses
from kmeans_kernel.core.training.trials import Trial, TrialFold, TrialProblem, kernel_at

# The ridge on the diagonal of the kernel matrix is 10^(k/2): range of k, first k, stride. A smaller
# ridge is lost in the rounding of float32.
_POWERS, _FIRST_POWER, _STRIDE = (-6, 2), -4, 2

# The best γ is about so many octaves above that of a fit with fewer representatives. It is searched
# in steps of two octaves, while the loss falls below this share of it: the optimum is flat.
_NARROWER, _STEP, _CLEARLY = 2, 2, 0.995

# Widths 2γ = 2ᵏ that are tried.
_WIDTHS = (-4, 14)


def search_exact(near: Trial, families: Sequence[Kernel], most: int, executor: Executor) -> Trial:
    """Search width and ridge of exact kernel ridge regression, beginning near another trial.

    At most so many training samples of each fold are used. Each family is tried once, and the width
    of the better one is followed downhill. Returns a trial of the squared loss whose regularization
    times the weight of the training samples is the ridge.
    """
    exact = ExactProblem.of(near.problem, most, executor)
    start = (near.width or 0) + _NARROWER
    kernels = [kernel_at(family, start + _shift(near.kernel, family)) for family in families]
    best = exact.best_of(kernels)
    while (further := exact.best_of(_neighbours(best))).mean_loss < _CLEARLY * best.mean_loss:
        best = further
    return best


def fit_exact(found: Trial, most: int, executor: Executor) -> Trial:
    """Fit kernel and ridge of a trial to at most so many training samples of its problem."""
    return ExactProblem.of(found.problem, most, executor).fit(found.kernel, found.power)


def _neighbours(trial: Trial) -> list[Kernel]:
    """Return the kernels with the widths on both sides of that of a trial."""
    width = trial.width or 0
    widths = [max(width - _STEP, _WIDTHS[0]), min(width + _STEP, _WIDTHS[1])]
    return [kernel_at(trial.kernel, one) for one in widths]


def _shift(old: Kernel, new: Kernel) -> int:
    """Return the difference of the best widths: kernels with a cusp have smaller ones."""
    return 2 * (int(new.is_smooth) - int(old.is_smooth))


@dataclass(frozen=True, eq=False)
class ExactProblem:
    """The folds of a problem with all of their training samples as representatives.

    Attributes
    ----------
    problem : the folds
    folds : the same with the cosines of their samples
    executor : runs trials
    tried : the trials so far, by kernel
    """

    problem: TrialProblem
    folds: Sequence[ExactFold]
    executor: Executor
    tried: dict[Kernel, Trial] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: TrialProblem, most: int, executor: Executor) -> ExactProblem:
        """Take at most so many training samples of each fold."""
        return cls(
            problem, executor.map(lambda fold: ExactFold.of(fold, most), problem.folds), executor
        )

    def best_of(self, kernels: Sequence[Kernel]) -> Trial:
        """Try kernels side by side, none of them twice, and return the best trial."""
        new = [kernel for kernel in kernels if kernel not in self.tried]
        found = self.executor.map(self._walk, new)
        self.tried.update(zip(new, found, strict=True))
        return min((self.tried[kernel] for kernel in kernels), key=lambda trial: trial.mean_loss)

    def fit(self, kernel: Kernel, power: int) -> Trial:
        """Fit with the ridge 10^(power/2)."""
        return self._fit(kernel, [fold.values(kernel) for fold in self.folds], power)

    def _walk(self, kernel: Kernel) -> Trial:
        """Try one kernel, walking over the ridge."""
        found = list[Trial]()
        prepared = [fold.values(kernel) for fold in self.folds]
        walk = downhill(_FIRST_POWER, *_POWERS, _STRIDE)
        k = next(walk)
        while k is not None:
            found.append(self._fit(kernel, prepared, k))
            k = walk.send(found[-1].mean_loss)
        return min(found, key=lambda trial: trial.mean_loss)

    def _fit(self, kernel: Kernel, prepared: Sequence[tuple[Array, Array]], power: int) -> Trial:
        """Fit with given kernel values."""
        problem, ridge = self.problem, 10.0 ** (power / 2)
        parts = [
            fold.scores(*values, ridge) for fold, values in zip(self.folds, prepared, strict=True)
        ]
        scores = np.concatenate(parts)
        losses = squared_losses(scores, problem.codes, problem.weights)
        regularization = ridge / problem.fitted_weight
        return Trial(problem, kernel, power, regularization, "squared", (), scores, losses)


@dataclass(frozen=True, eq=False)
class ExactFold:
    """A fold with the cosines of its samples.

    Attributes
    ----------
    train : the training samples
    mutual : (n, n) float32 cosines of the training samples
    tested : (t, n) float32 cosines of the held-out samples with them
    """

    train: LabelledRows
    mutual: Array
    tested: Array

    @classmethod
    def of(cls, fold: TrialFold, most: int | None = None) -> ExactFold:
        """Compute the cosines with training samples, at most so many of them."""
        n = len(fold.train)
        kept = np.linspace(0, n - 1, min(n, most or n)).astype(np.intp)
        train, tested = fold.unit[kept], fold.unit[n:]
        return cls(
            fold.train.at(kept),
            np.minimum(train @ train.T, np.float32(1.0)),
            np.minimum(tested @ train.T, np.float32(1.0)),
        )

    def values(self, kernel: Kernel) -> tuple[Array, Array]:
        """Return the kernel values."""
        mutual, tested = np.array(self.mutual, order="F"), self.tested.copy()
        kernel.apply(mutual.T)
        kernel.apply(tested)
        return mutual, tested

    def scores(self, mutual: Array, tested: Array, ridge: float) -> Array:
        """Return the (t, K) scores of the held-out samples; the class shares if rounding wins."""
        rows, n = self.train, len(self.train)
        targets = np.eye(len(rows.classes))[rows.codes]
        triangle = mutual.copy(order="F")
        triangle[np.diag_indices(n)] += ridge / rows.row_weights
        if not factor_tile(triangle):
            shares = np.average(targets, axis=0, weights=rows.row_weights)
            return np.tile(shares, (len(tested), 1))
        solved = divide_by(triangle, np.column_stack([targets, np.ones(n)])).astype(np.float64)
        body, ones = solved[:, :-1], solved[:, -1:]
        intercept = body.sum(axis=0) / ones.sum()
        dual = (body - ones * intercept).astype(np.float32)
        return np.asarray(tested @ dual + intercept, dtype=np.float64)
