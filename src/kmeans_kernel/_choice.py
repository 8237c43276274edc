"""What the user left to us: kernel width, regularisation, scales of the features, temperature.

The choice is made on a smaller problem of the same kind: fewer representatives, and fewer rows to
each where they have plenty. It costs a few fits of that size, whatever the size of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np

from kmeans_kernel._blocks import Array
from kmeans_kernel._calibration import fit_temperature
from kmeans_kernel._fit import FitOn, fit
from kmeans_kernel._kernels import Kernel
from kmeans_kernel._representation import KMeans, Placement, Representation, Unwatched, represent
from kmeans_kernel._samples import Labelled
from kmeans_kernel._scales import learn_scales
from kmeans_kernel._selection import (
    LARGE_CLUSTERS,
    Choice,
    Folds,
    HeldOut,
    LeaveOneOut,
    choose,
    deal,
    falls,
)
from kmeans_kernel._workers import ALONE, Workers

Scales: TypeAlias = Literal["auto", "learned"]

# The most representatives of the smaller problem.
_MOST_REPRESENTATIVES = 1000

N_FOLDS = 3

# Scales are learned again from the model that the last ones gave, at most so often.
_MOST_ROUNDS = 4

# Rows whose gradients are averaged.
_ROWS_OF_GRADIENTS = 2000

# The most samples that are left out, one at a time.
_MOST_LEFT_OUT = 5000


class ChoiceWatcher(Protocol):
    """Someone to tell how the choice goes."""

    def tried(self, kernel: Kernel, loss: float) -> None:
        """Hear of a kernel that was tried, and the mean squared error of what was held out."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """What was chosen, or given.

    Attributes
    ----------
    kernel, regularization : for the fit to all the data
    placement : the lift and the scales of the features
    temperature, held_out_error : of the samples held out; None if nothing was tried
    choice : the best that was tried
    """

    kernel: Kernel
    regularization: float
    placement: Placement
    temperature: float | None = None
    held_out_error: float | None = None
    choice: Choice | None = None


@dataclass(frozen=True)
class Open:
    """What is to be chosen: whatever is None.

    Attributes
    ----------
    kernel : None for a Gaussian whose width is chosen
    regularization : None to choose it
    lift : None for the typical length of a row
    feature_scales : to learn some if they predict better ("auto"), in any case ("learned"), or not
    """

    kernel: Kernel | None
    regularization: float | None
    lift: float | None
    feature_scales: Scales | None

    def as_given(self, data: Labelled) -> Chosen | None:
        """Return what was given, if it is all that has to be chosen."""
        if self.kernel is None or self.regularization is None or self.feature_scales is not None:
            return None
        return Chosen(self.kernel, self.regularization, Placement.of(data, self.lift))


def make_choice(
    data: Labelled,
    kmeans: KMeans,
    fit_on: FitOn,
    open_: Open,
    rng: np.random.Generator,
    watcher: ChoiceWatcher,
    workers: Workers = ALONE,
    near: Choice | None = None,
) -> Chosen:
    """Choose whatever is open; `near` is what was best for something alike."""
    small, fewer = smaller_problem(data, kmeans, rng)
    trials = _Trials(small, fewer, fit_on, open_, rng, watcher, workers, near)
    best, scales, fitted_weight = trials.run()
    regularization = best.regularization
    if open_.regularization is None and fit_on == "samples":
        # The penalty of all samples together, λW, is what carries over to another number of them.
        regularization *= fitted_weight / float(data.weight_of_each.sum())
    codes = best.targets.argmax(axis=1)
    wrong = best.scores.argmax(axis=1) != codes
    return Chosen(
        best.kernel,
        regularization,
        Placement.of(data, open_.lift, scales),
        fit_temperature(best.scores, codes, best.weights),
        float(np.average(wrong, weights=best.weights)),
        best,
    )


def smaller_problem(
    data: Labelled, kmeans: KMeans, rng: np.random.Generator
) -> tuple[Labelled, KMeans]:
    """Return a part of the rows of each class, and the settings to cluster it.

    Representatives stand for as many rows as in the whole, up to `LARGE_CLUSTERS`.
    """
    m = sum(min(size, kmeans.n_representatives) for size in data.class_sizes)
    share = min(1.0, _MOST_REPRESENTATIVES / m)
    fewer = replace(kmeans, n_representatives=max(1, round(share * kmeans.n_representatives)))
    row_share = min(share, share * m * LARGE_CLUSTERS / len(data))
    if row_share == 1.0:
        return data, kmeans
    kept = [
        rng.permutation(np.flatnonzero(data.codes == k))[: int(np.ceil(row_share * size))]
        for k, size in enumerate(data.class_sizes)
    ]
    return data.at(np.sort(np.concatenate(kept))), fewer


@dataclass(frozen=True, eq=False)
class _Trials:
    """The smaller problem, tried with what is open."""

    data: Labelled
    kmeans: KMeans
    fit_on: FitOn
    open_: Open
    rng: np.random.Generator
    watcher: ChoiceWatcher
    workers: Workers
    near: Choice | None

    def run(self) -> tuple[Choice, Array | None, float]:
        """Return the best choice, the scales, and the weight of the samples it was fitted to."""
        m = sum(min(size, self.kmeans.n_representatives) for size in self.data.class_sizes)
        large = len(self.data) >= LARGE_CLUSTERS * m
        if large and self.fit_on == "samples" and not self.open_.feature_scales:
            return self._leave_one_out()
        return self._folds()

    def _leave_one_out(self) -> tuple[Choice, None, float]:
        placement = Placement.of(self.data, self.open_.lift)
        left_out = np.arange(len(self.data))
        if len(left_out) > _MOST_LEFT_OUT:
            left_out = np.sort(self.rng.choice(len(self.data), _MOST_LEFT_OUT, replace=False))
        held_out = LeaveOneOut(
            self.data.on_sphere(placement.lift, placement.scales),
            self._represent(self.data, self.kmeans, placement),
            left_out,
            self.workers,
        )
        return self._choose(held_out), None, float(self.data.weight_of_each.sum())

    def _folds(self) -> tuple[Choice, Array | None, float]:
        parts = [
            (np.setdiff1d(np.arange(len(self.data)), held, assume_unique=True), held)
            for held in deal(self.data.codes, N_FOLDS, self.rng)
        ]
        folds = [_Fold(self.data.at(rest), self.data.at(held)) for rest, held in parts]
        whole = self.data
        scales_of: list[Array | None] = [None] * len(folds)
        scales: Array | None = None
        rounds: list[tuple[Choice, Array | None]] = []
        for k in range(1 + (_MOST_ROUNDS if self.open_.feature_scales else 0)):
            placed = [
                self._place(fold.fitted, some, share=(N_FOLDS - 1) / N_FOLDS)
                for fold, some in zip(folds, scales_of, strict=True)
            ]
            held_out = Folds(
                [
                    (
                        fold.fitted.on_sphere(place.lift, place.scales),
                        basis,
                        fold.held.on_sphere(place.lift, place.scales),
                    )
                    for fold, (place, basis) in zip(folds, placed, strict=True)
                ],
                self.fit_on == "samples",
                self.workers,
            )
            choice = self._choose(held_out, rounds[-1][0] if rounds else None)
            better = not rounds or choice.loss < rounds[-1][0].loss
            if better or (k == 1 and self.open_.feature_scales == "learned"):
                rounds.append((choice, scales))
            if not better or k == _MOST_ROUNDS or not self.open_.feature_scales:
                break
            scales_of = [
                self._learn(fold.fitted, *place, choice)
                for fold, place in zip(folds, placed, strict=True)
            ]
            scales = self._learn(whole, *self._place(whole, scales), choice)
        best = rounds[-1]
        first = rounds[0][0]
        if self.open_.feature_scales == "auto" and not falls(
            first.losses, best[0].losses, first.weights
        ):
            best = rounds[0]
        weight = np.mean([fold.fitted.weight_of_each.sum() for fold in folds])
        return *best, float(weight)

    def _choose(self, held_out: HeldOut, near: Choice | None = None) -> Choice:
        return choose(
            held_out,
            self.open_.kernel,
            self.open_.regularization,
            near or self.near,
            self.watcher.tried,
        )

    def _place(
        self, data: Labelled, scales: Array | None, share: float = 1.0
    ) -> tuple[Placement, Representation]:
        placement = Placement.of(data, self.open_.lift, scales)
        fewer = max(1, round(share * self.kmeans.n_representatives))
        return placement, self._represent(
            data, replace(self.kmeans, n_representatives=fewer), placement
        )

    def _represent(self, data: Labelled, kmeans: KMeans, placement: Placement) -> Representation:
        rngs = [np.random.default_rng(k) for k in range(len(data.classes))]
        return represent(data, kmeans, placement, rngs, Unwatched(), self.workers)

    def _learn(
        self, data: Labelled, placement: Placement, basis: Representation, choice: Choice
    ) -> Array:
        model = fit(
            data, placement, basis, choice.kernel, choice.regularization, self.fit_on, self.workers
        ).model
        rows = np.arange(len(data))
        if len(rows) > _ROWS_OF_GRADIENTS:
            rows = self.rng.choice(len(rows), _ROWS_OF_GRADIENTS, replace=False)
        return learn_scales(model, data.X[rows], data.weight_of_each[rows])


@dataclass(frozen=True, eq=False)
class _Fold:
    fitted: Labelled
    held: Labelled
