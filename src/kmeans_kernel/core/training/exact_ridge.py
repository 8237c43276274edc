"""Trials of exact kernel ridge regression, in which every training row is a representative.

Centroids stand for many rows each. Where a row resembles a single training row more than any
centroid, as in tables of repeated visits of the same persons, the rows themselves predict better.
A trial solves the bordered system of `solvers/dual.py` for the training samples of each fold, in
float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kmeans_kernel.core.arrays.execution import Executor
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.solvers.blas import factor_tile
from kmeans_kernel.core.solvers.nystrom import divide_by
from kmeans_kernel.core.training.search import downhill, squared_losses
from kmeans_kernel.core.training.trials import Trial, TrialFold, TrialProblem, kernel_at

# The ridge on the diagonal of the kernel matrix is 10^(k/2): range of k, first k, stride. A smaller
# ridge is lost in the rounding of float32.
_POWERS, _FIRST_POWER, _STRIDE = (-6, 2), -4, 2

# The best γ is about so many octaves above that of a fit with fewer representatives. It is searched
# in steps of two octaves, while the loss falls by more than this share: the optimum is flat.
_NARROWER, _STEP, _WORTH_A_STEP = 2, 2, 0.005

# Widths 2γ = 2ᵏ that are tried.
_WIDTHS = (-4, 14)


def search_exact(near: Trial, families: Sequence[Kernel], executor: Executor) -> Trial:
    """Search width and ridge of exact kernel ridge regression, beginning near another trial.

    Each family is tried once; the better one is followed downhill in width. Returns a trial of the
    squared loss whose regularization times the weight of its training samples is the ridge.
    """
    problem = ExactProblem(near.problem, executor)
    start = (near.width or 0) + _NARROWER
    first = [kernel_at(family, start + _shift(near.kernel, family)) for family in families]
    best = min(map(problem.try_kernel, first), key=lambda trial: trial.mean_loss)
    for step in (_STEP, -_STEP):
        while (further := problem.try_beyond(best, step)) is not None:
            best = further
    return best


def _shift(old: Kernel, new: Kernel) -> int:
    """Return the difference of the best widths: kernels with a cusp have smaller ones."""
    return 2 * (int(new.is_smooth) - int(old.is_smooth))


@dataclass(frozen=True, eq=False)
class ExactProblem:
    """The folds of a problem with all of their training samples as representatives.

    Attributes
    ----------
    problem : the folds
    executor : runs folds
    tried : the trials so far, by kernel
    """

    problem: TrialProblem
    executor: Executor
    tried: dict[Kernel, Trial] = field(default_factory=dict)

    @cached_property
    def _folds(self) -> list[ExactFold]:
        return self.executor.map(ExactFold.of, self.problem.folds)

    def try_kernel(self, kernel: Kernel) -> Trial:
        """Try one kernel, walking over the ridge."""
        if kernel not in self.tried:
            self.tried[kernel] = self._walk(kernel)
        return self.tried[kernel]

    def _walk(self, kernel: Kernel) -> Trial:
        problem, found = self.problem, list[Trial]()
        prepared = self.executor.map(lambda fold: fold.values(kernel), self._folds)
        walk = downhill(_FIRST_POWER, *_POWERS, _STRIDE)
        k = next(walk)
        while k is not None:
            ridge = 10.0 ** (k / 2)
            parts = [
                fold.scores(*values, ridge)
                for fold, values in zip(self._folds, prepared, strict=True)
            ]
            scores = np.concatenate(parts)
            losses = squared_losses(scores, problem.codes, problem.weights)
            regularization = ridge / problem.fitted_weight
            found.append(Trial(problem, kernel, k, regularization, "squared", (), scores, losses))
            k = walk.send(found[-1].mean_loss)
        return min(found, key=lambda trial: trial.mean_loss)

    def try_beyond(self, best: Trial, step: int) -> Trial | None:
        """Return the trial at another width if it is clearly better, else None."""
        width = (best.width or 0) + step
        if not _WIDTHS[0] <= width <= _WIDTHS[1]:
            return None
        trial = self.try_kernel(kernel_at(best.kernel, width))
        return trial if trial.mean_loss < (1.0 - _WORTH_A_STEP) * best.mean_loss else None


@dataclass(frozen=True, eq=False)
class ExactFold:
    """A fold with the cosines of its samples.

    Attributes
    ----------
    fold : the samples
    mutual : (n, n) float32 cosines of the training samples
    tested : (t, n) float32 cosines of the held-out samples with them
    """

    fold: TrialFold
    mutual: Array
    tested: Array

    @classmethod
    def of(cls, fold: TrialFold) -> ExactFold:
        """Compute the cosines."""
        n = len(fold.train)
        cosines = np.minimum(fold.unit @ fold.unit[:n].T, np.float32(1.0))
        return cls(fold, cosines[:n], cosines[n:])

    def values(self, kernel: Kernel) -> tuple[Array, Array]:
        """Return the kernel values."""
        mutual, tested = np.array(self.mutual, order="F"), self.tested.copy()
        kernel.apply(mutual.T)
        kernel.apply(tested)
        return mutual, tested

    def scores(self, mutual: Array, tested: Array, ridge: float) -> Array:
        """Return the (t, K) scores of the held-out samples; the class shares if rounding wins."""
        rows, n = self.fold.train, len(self.fold.train)
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
