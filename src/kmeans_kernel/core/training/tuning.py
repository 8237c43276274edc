"""What the user left to us: kernel, regularisation, scales of the features, loss, temperature.

The choice is made on a smaller problem of the same kind: fewer representatives, and fewer rows to
each where they have plenty. It costs a few fits of that size, whatever the size of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.asinh import Squash
from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Data, Labelled, Placement, Samples, draw
from kmeans_kernel.core.arrays.sparse import is_sparse
from kmeans_kernel.core.clustering.representatives import (
    KMeans,
    Representation,
    Unwatched,
    represent,
)
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.model.agop import ENOUGH_ROWS, learn_scales
from kmeans_kernel.core.model.temperature import chance_losses, fit_temperature
from kmeans_kernel.core.training.cross_validation import (
    LARGE_CLUSTERS,
    Fold,
    Folds,
    HeldOut,
    LeaveOneOut,
    hold_out,
)
from kmeans_kernel.core.training.fit import FitOn, Loss, fit
from kmeans_kernel.core.training.regularization_path import RepresentativesPath, SamplesPath
from kmeans_kernel.core.training.search import Choice, Family, choose, falls

Learned: TypeAlias = Literal["auto", "learned"]

# The most representatives of the smaller problem.
_MOST_REPRESENTATIVES = 1000

# Folds, and more of them for fewer rows than that: what is held out says less, and costs less.
_FOLDS, _MORE_FOLDS, _FEW_ROWS = 3, 5, 1500

# Scales are learned again from the model that the last ones gave, at most so often.
_MOST_ROUNDS = 4

# Scales, unless they are asked for, and kernels of more than one family are tried on rows of at
# most so many features.
MOST_FEATURES_OF_A_TABLE = 100

# Where the logistic loss starts to look for its λ, in that of squares; how many roots of ten apart
# it tries them, each being a fit of its own; on how many samples, if there are as many.
_LOGISTIC_SHARE, _STRIDE, _ENOUGH_HELD_OUT = 0.1, 2, 1500

# How λ falls with the weight of the samples.
_POWER_OF_WEIGHT = 1.5

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
    kernel, regularization, loss : for the fit to all the data
    placement : the lift and the scales of the features
    squash : what is done to the features before, or None
    temperature, held_out_error : of the samples held out; None if nothing was tried
    squares : the best fit of squares that was tried
    """

    kernel: Kernel
    regularization: float
    loss: Loss
    placement: Placement
    squash: Squash | None = None
    temperature: float | None = None
    held_out_error: float | None = None
    squares: Choice | None = None


@dataclass(frozen=True)
class Open:
    """What is to be chosen: whatever is None.

    Attributes
    ----------
    kernel : one, or the families among which one is chosen
    regularization : None to choose it
    lift : None for the typical length of a row
    feature_scales : to learn some if they predict better ("auto"), in any case ("learned"), or not
    squash : the same for what is done to long tails, "auto" only if something else is to be chosen
    loss : None to choose it, which needs a regularisation that is to be chosen
    """

    kernel: Kernel | Sequence[Family]
    regularization: float | None
    lift: float | None
    feature_scales: Learned | None
    squash: Learned | None = None
    loss: Loss | None = "squared"

    def for_width(self, n_features: int) -> Open:
        """Return what is open for rows of so many features: some is tried on tables only."""
        if n_features <= MOST_FEATURES_OF_A_TABLE:
            return self
        return replace(
            self,
            kernel=self.kernel[:1] if isinstance(self.kernel, Sequence) else self.kernel,
            feature_scales=None if self.feature_scales == "auto" else self.feature_scales,
            squash=None if self.squash == "auto" else self.squash,
        )

    def as_given(self, data: Data) -> Chosen | None:
        """Return what was given, if it is all that has to be chosen."""
        if (
            isinstance(self.kernel, Sequence)
            or self.regularization is None
            or self.feature_scales is not None
            or self.squash == "learned"
        ):
            return None
        placement = Placement.of(data, self.lift)
        return Chosen(self.kernel, self.regularization, self.loss or "squared", placement)


def make_choice(
    data: Data,
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
    with workers.together():
        outcome = trials.run()
    best = outcome.best
    regularization = best.regularization
    if open_.regularization is None and fit_on == "samples":
        regularization = carry(regularization, outcome.weight, data.total_weight)
    wrong = best.scores.argmax(axis=1) != best.codes
    return Chosen(
        best.kernel,
        regularization,
        outcome.loss,
        Placement.of(data.squashed(outcome.squash), open_.lift, outcome.scales),
        outcome.squash,
        fit_temperature(best.scores, best.codes, best.weights),
        float(np.average(wrong, weights=best.weights)),
        outcome.squares,
    )


def carry(regularization: float, weight: float, total: float) -> float:
    """Return the λ for samples of a total weight that was best for some of less weight.

    More samples, and as many more representatives, know finer detail, so that λ falls faster than
    the inverse of the weight, which would keep the penalty of all samples together. The power suits
    the validation images: docs/method.md.
    """
    return regularization * float((weight / total) ** _POWER_OF_WEIGHT)


def smaller_problem(
    data: Data, kmeans: KMeans, rng: np.random.Generator
) -> tuple[Labelled, KMeans]:
    """Return a part of the rows of each class, and the settings to cluster it.

    Representatives stand for as many rows as in the whole, up to `LARGE_CLUSTERS`.
    """
    m = data.basis_size(kmeans.n_representatives)
    share = min(1.0, _MOST_REPRESENTATIVES / m)
    fewer = replace(kmeans, n_representatives=max(1, round(share * kmeans.n_representatives)))
    row_share = min(share, share * m * LARGE_CLUSTERS / len(data))
    if row_share == 1.0:
        return data.in_memory(), kmeans
    kept = [draw(size, int(np.ceil(row_share * size)), rng) for size in data.class_sizes]
    return data.pick(kept), fewer


@dataclass(frozen=True, eq=False)
class _Placed:
    """Rows, how they are put on the sphere, and their representatives there."""

    data: Labelled
    placement: Placement
    basis: Representation


@dataclass(frozen=True, eq=False)
class _Dealt:
    """Rows, and the same dealt into folds: what is fitted to in each, and what is held out."""

    whole: Labelled
    rests: Sequence[Labelled]
    held: Sequence[Labelled]

    @property
    def share(self) -> float:
        """The share of the rows that is fitted to."""
        return (len(self.rests) - 1) / len(self.rests)

    def squashed(self, squash: Squash) -> _Dealt:
        """Return the rows squashed."""
        return _Dealt(
            self.whole.squashed(squash),
            [rest.squashed(squash) for rest in self.rests],
            [part.squashed(squash) for part in self.held],
        )


@dataclass(frozen=True, eq=False)
class _Found:
    """What was best for squares.

    Attributes
    ----------
    squares : the choice
    folds, placed : what it was tried on
    scales, squash : of the features, or None
    """

    squares: Choice
    folds: Folds
    placed: list[_Placed]
    scales: Array | None = None
    squash: Squash | None = None


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What was best.

    Attributes
    ----------
    best : the best choice
    loss : its loss
    squares : the best choice for squares
    scales, squash : of the features, or None
    weight : of the samples that `best` was fitted to
    """

    best: Choice
    loss: Loss
    squares: Choice
    scales: Array | None
    squash: Squash | None
    weight: float


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

    def run(self) -> _Outcome:
        """Try squares, by leaving one out or by folds, and then the other loss."""
        m = self.data.basis_size(self.kmeans.n_representatives)
        large = len(self.data) >= LARGE_CLUSTERS * m
        given = self.open_
        if large and self.fit_on == "samples" and not (given.feature_scales or given.squash):
            weight, found = self.data.total_weight, self._leave_one_out()
        else:
            found = self._folds()
            weight = found.folds.fitted_weight
        best, loss = self._choose_loss(found.squares, found.folds)
        if loss == "logistic":
            weight = found.folds.fitted_weight
        return _Outcome(best, loss, found.squares, found.scales, found.squash, weight)

    def _leave_one_out(self) -> _Found:
        placed = self._place(self.data, None)
        left_out = self.data.some_rows(_MOST_LEFT_OUT, self.rng)
        samples = Samples(self.data, placed.placement)
        held_out = LeaveOneOut(samples, placed.basis, left_out, self.workers)
        squares = self._choose(held_out, self.near)
        # What is not in closed form is tried on one part; clusters are too large to know it.
        rest, held = next(hold_out(self.data, _FOLDS, self.rng))
        one = [replace(placed, data=rest)]
        return _Found(squares, self._folds_of(one, [held]), one)

    def _folds(self) -> _Found:
        n_folds = _MORE_FOLDS if len(self.data) < _FEW_ROWS else _FOLDS
        dealt = _Dealt(self.data, *zip(*hold_out(self.data, n_folds, self.rng), strict=True))
        best, squash = self._try(dealt, self.near), self._squash()
        if squash is not None:
            squashed = dealt.squashed(squash)
            found = replace(self._try(squashed, best.squares), squash=squash)
            if self.open_.squash == "learned" or found.squares.mean_loss < best.squares.mean_loss:
                dealt, best = squashed, found
        if self.open_.feature_scales is None:
            return best
        scaled = self._learn_scales(dealt, best)
        if self.open_.feature_scales == "auto" and not falls(
            best.squares.losses, scaled.squares.losses, best.squares.weights
        ):
            return best
        return scaled

    def _squash(self) -> Squash | None:
        """Return how to squash the features, if that is to be tried and there are long tails."""
        if self.open_.squash is None or is_sparse(self.data.X):
            return None
        X = np.asarray(self.data.X[:])
        squash = Squash.of(X, self.data.weight_of_each)
        return squash if self.open_.squash == "learned" or squash.has_long_tails(X) else None

    def _try(self, dealt: _Dealt, near: Choice | None) -> _Found:
        """Choose what is best in folds that are each clustered on their own."""
        # A representative of a fold stands for as many rows as in the whole.
        placed = [self._place(rest, None, dealt.share) for rest in dealt.rests]
        folds = self._folds_of(placed, dealt.held)
        return _Found(self._choose(folds, near), folds, placed)

    def _choose_loss(self, squares: Choice, folds: Folds) -> tuple[Choice, Loss]:
        """Try the logistic loss, if it is asked for or may be better.

        Squares come first, as one factorisation gives every λ; it starts from what was best.
        """
        given = self.open_
        chosen_too = given.loss is None and given.regularization is None
        if self.fit_on != "samples" or not (given.loss == "logistic" or chosen_too):
            return squares, "squared"
        near = replace(squares, regularization=_LOGISTIC_SHARE * squares.regularization)
        fewer = folds.holding_out(_ENOUGH_HELD_OUT)
        tried = replace(fewer, path_of=SamplesPath.of_logistic)
        logistic = choose(
            tried, given.kernel, given.regularization, near, self.watcher.tried, _STRIDE,
            chance_losses,
        )  # fmt: skip
        if given.loss == "logistic":
            return logistic, "logistic"
        alike = choose(fewer, squares.kernel, squares.regularization, losses=chance_losses)
        if logistic.mean_loss < alike.mean_loss:
            return logistic, "logistic"
        return squares, "squared"

    def _learn_scales(self, dealt: _Dealt, plain: _Found) -> _Found:
        """Learn scales, in each fold from what is not held out, while the held-out error falls."""
        whole, last = self._place(dealt.whole, None), plain
        trials: list[_Found] = []
        for _ in range(_MOST_ROUNDS):
            scales = self._scales_of(whole, last.squares)
            placed = [
                self._place(fold.data, self._scales_of(fold, last.squares), dealt.share)
                for fold in last.placed
            ]
            folds = self._folds_of(placed, dealt.held)
            trial = _Found(self._choose(folds, last.squares), folds, placed, scales, plain.squash)
            trials.append(trial)
            if trial.squares.mean_loss >= last.squares.mean_loss:
                break
            whole, last = self._place(dealt.whole, scales), trial
        return min(trials, key=lambda found: found.squares.mean_loss)

    def _folds_of(self, placed: list[_Placed], held: Sequence[Labelled]) -> Folds:
        """Return the folds, to be predicted by models of the others."""
        folds = [
            Fold(Samples(fold.data, fold.placement), fold.basis, Samples(part, fold.placement))
            for fold, part in zip(placed, held, strict=True)
        ]
        on_samples = self.fit_on == "samples"
        path_of = SamplesPath.of_squares if on_samples else RepresentativesPath.of
        return Folds(folds, path_of, self.workers)

    def _choose(self, held_out: HeldOut, near: Choice | None) -> Choice:
        """Choose what fits squares best."""
        given = self.open_
        # A regularisation that is given is that of the loss that is given.
        regularization = None if given.loss == "logistic" else given.regularization
        return choose(held_out, given.kernel, regularization, near, self.watcher.tried)

    def _place(self, data: Labelled, scales: Array | None, share: float = 1.0) -> _Placed:
        placement = Placement.of(data, self.open_.lift, scales)
        fewer = max(1, round(share * self.kmeans.n_representatives))
        kmeans = replace(self.kmeans, n_representatives=fewer)
        # The same every time, so that trials differ by what is tried alone.
        rngs = [np.random.default_rng(k) for k in range(len(data.classes))]
        return _Placed(
            data,
            placement,
            represent(data, kmeans, placement, rngs, Unwatched(), self.workers),
        )

    def _scales_of(self, placed: _Placed, choice: Choice) -> Array:
        """Return the scales that a model of the rows suggests."""
        data = placed.data
        model = fit(
            data, placed.placement, placed.basis, choice.kernel, choice.regularization, self.fit_on,
            workers=self.workers,
        ).model  # fmt: skip
        rows = data.some_rows(ENOUGH_ROWS, self.rng)
        return learn_scales(model, data.X[rows], data.weight_of_each[rows])
