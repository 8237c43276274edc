"""Samples that are predicted as if they had not been seen.

There are two ways:

- **folds**: the samples are dealt into parts; each is predicted by a model that clustered and
  fitted the others, with as many samples to a representative as the model at the end;
- **leave-one-out**: in closed form, from one fit, but with representatives that the sample helped
  to place. That flatters the model where a representative stands for few samples.

So leave-one-out is for clusters of at least `LARGE_CLUSTERS` samples, folds for smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.blocking import Array, IntArray
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Labelled, Samples
from kmeans_kernel.core.clustering.representatives import Representation
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.solvers.nystrom import NormalEquations, RidgePath, WhiteBasis
from kmeans_kernel.core.training.regularization_path import Path, PathOf

# Mean samples of a representative from which on leave-one-out is trusted.
LARGE_CLUSTERS = 25

Scores: TypeAlias = Callable[[float], Array]


class HeldOut(Protocol):
    """Samples that can be predicted as if they had not been seen."""

    @property
    def codes(self) -> IntArray:
        """The (n,) columns of the classes of these samples."""

    @property
    def weights(self) -> Array:
        """The (n,) weights of these samples."""

    def scores(self, kernel: Kernel) -> Scores:
        """Return a function of the regularisation that gives their (n, K) scores."""


class Fold(NamedTuple):
    """The samples a model is fitted to, its basis, and the samples it predicts."""

    train: Samples
    basis: Representation
    test: Samples


@dataclass(frozen=True, eq=False)
class Folds:
    """Samples held out in turns.

    Attributes
    ----------
    folds : one for each turn
    path_of : how the model of a fold is fitted
    """

    folds: list[Fold]
    path_of: PathOf
    workers: Workers = ALONE

    @property
    def fitted_weight(self) -> float:
        """The weight of the samples that a model is fitted to, in the mean."""
        return float(np.mean([fold.train.weights.sum() for fold in self.folds]))

    @cached_property
    def codes(self) -> IntArray:
        """The columns of the classes of all samples, fold after fold."""
        return np.concatenate([fold.test.codes for fold in self.folds])

    @cached_property
    def weights(self) -> Array:
        """Their weights."""
        return np.concatenate([fold.test.weights for fold in self.folds])

    def scores(self, kernel: Kernel) -> Scores:
        """Prepare the fit to each fold."""

        def prepare(fold: Fold) -> tuple[Path, Array]:
            path = self.path_of(fold.train, fold.basis, kernel, self.workers)
            return path, path.features(fold.test.directions())

        prepared = self.workers.map(prepare, self.folds)
        return lambda regularization: np.concatenate(
            self.workers.map(lambda one: one[0].scores(one[1], regularization), prepared)
        )

    def holding_out(self, enough: int) -> Folds:
        """Return no more of the folds than hold out so many samples."""
        held = np.cumsum([len(fold.test) for fold in self.folds])
        return replace(self, folds=self.folds[: 1 + int(np.searchsorted(held, enough))])


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Samples left out one at a time.

    Attributes
    ----------
    samples : to which the model is fitted
    basis : its basis
    left_out : the positions of those that are left out
    """

    samples: Samples
    basis: Representation
    left_out: IntArray
    workers: Workers = ALONE

    @cached_property
    def codes(self) -> IntArray:
        """The columns of their classes."""
        return np.asarray(self.samples.codes[self.left_out])

    @cached_property
    def weights(self) -> Array:
        """Their weights."""
        return np.asarray(self.samples.weights[self.left_out])

    def scores(self, kernel: Kernel) -> Scores:
        """Fit once, for all regularisations at once."""
        white = WhiteBasis.of(self.basis.directions, kernel, self.workers)
        path = RidgePath.of(NormalEquations.on(white, self.samples, self.workers))
        T = path.along_axes(white.features(self.samples.directions(self.left_out)))
        Y = self.samples.targets(self.left_out)
        weights = self.samples.weight_of_a_copy[self.left_out]
        return lambda value: path.left_out_scores(T, Y, weights, value)


def deal(codes: IntArray, n_folds: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Deal samples into folds, every class evenly; give the positions in each fold, in order."""
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
    data: Labelled, n_folds: int, rng: np.random.Generator
) -> Iterator[tuple[Labelled, Labelled]]:
    """Deal rows into folds; give the rest and the fold, in turns.

    Equal rows, which come as one, are dealt one by one: a fold of a table with few values would
    else be asked what no other has seen.
    """
    rows = np.repeat(np.arange(len(data)), data.copies)
    for positions in deal(data.codes[rows], n_folds, rng):
        held = np.bincount(rows[positions], minlength=len(data))
        yield data.part(data.copies - held), data.part(held)
