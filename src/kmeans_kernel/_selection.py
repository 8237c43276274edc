"""Choosing the width of the kernel and the regularisation by predictions of what was held out.

Two ways to predict a sample as if it had not been seen:

- **folds**: the samples are dealt into parts; each is predicted by a model that clustered and
  fitted the others, with as many samples to a representative as the model at the end;
- **leave-one-out**: in closed form, from one fit, but with representatives that the sample helped
  to place. That flatters the model where a representative stands for few samples.

So leave-one-out is for clusters of at least `LARGE_CLUSTERS` samples, folds for smaller ones.

Squares are tried first: one factorisation gives every λ. The logistic loss, which has to be
minimised anew for each, then starts from what was best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import numpy as np
from scipy.linalg import eigh

from kmeans_kernel._blocks import Array, IntArray
from kmeans_kernel._calibration import chance_losses
from kmeans_kernel._kernels import Gaussian, Kernel, Laplacian, sharpened
from kmeans_kernel._logistic import LogisticFit, LogisticProblem
from kmeans_kernel._passes import WhiteFeatures
from kmeans_kernel._representation import Representation
from kmeans_kernel._ridge import (
    NormalEquations,
    RidgePath,
    WhiteBasis,
    kernel_values,
    sum_moments,
)
from kmeans_kernel._samples import Labelled, Samples
from kmeans_kernel._workers import ALONE, Workers

# Mean samples of a representative from which on leave-one-out is trusted.
LARGE_CLUSTERS = 25

# Where the walks start, and how far they go: 2γ = 2ᵏ and λ = 10^(k/2).
_FIRST_WIDTH, _WIDTHS = 2, (-3, 10)
_FIRST_POWER, _POWERS = -8, (-16, 2)

# Samples to try the logistic loss on, if there are as many.
_ENOUGH_HELD_OUT = 1500

# The most steps for the logistic loss in a trial, which starts from the one before.
_TRIAL_STEPS = 40

Scores: TypeAlias = Callable[[float], Array]

# A kernel for each inverse width γ.
Family: TypeAlias = type[Gaussian] | type[Laplacian]

Loss: TypeAlias = Literal["squared", "logistic"]


class HeldOut(Protocol):
    """Samples that can be predicted as if they had not been seen."""

    @property
    def targets(self) -> Array:
        """The (n, K) targets of these samples."""

    @property
    def weights(self) -> Array:
        """The (n,) weights of these samples."""

    def scores(self, kernel: Kernel) -> Scores:
        """Return a function of the regularisation that gives their (n, K) scores."""

    def losses(self, scores: Array) -> Array:
        """Return the (n,) losses of such scores."""


@dataclass(frozen=True, eq=False)
class Choice:
    """What predicts best.

    Attributes
    ----------
    kernel, regularization : the best
    losses : (n,) of each held-out sample, the squared error of its scores or of its probabilities
    scores, targets : (n, K) their scores, and what these should be
    weights : (n,)
    """

    kernel: Kernel
    regularization: float
    losses: Array
    scores: Array
    targets: Array
    weights: Array

    @property
    def mean_loss(self) -> float:
        """The weighted mean of the losses."""
        return float(np.average(self.losses, weights=self.weights))

    @property
    def codes(self) -> IntArray:
        """The (n,) columns of the classes of the held-out samples."""
        return np.asarray(self.targets.argmax(axis=1))


def choose(
    held_out: HeldOut,
    kernels: Kernel | Sequence[Family],
    regularization: float | None,
    near: Choice | None = None,
    on_trial: Callable[[Kernel, float], None] | None = None,
    stride: int = 1,
) -> Choice:
    """Return the kernel and the regularisation with the least loss of the held out.

    Kernels of a family are tried at 2γ = 2ᵏ, and regularisations, if None is given, `stride` roots
    of ten apart. The loss has one valley over each, so that walks downhill find it; they start
    at `near`, if that is known, and stay in its family.
    """
    last = near

    def best_of(candidate: Kernel) -> Choice:
        nonlocal last
        scores = held_out.scores(candidate)

        def at(value: float) -> Choice:
            found = scores(value)
            losses = held_out.losses(found)
            return Choice(candidate, value, losses, found, held_out.targets, held_out.weights)

        if regularization is None:
            start = _FIRST_POWER if last is None else round(2 * np.log10(last.regularization))
            last = _walk(lambda k: at(10.0 ** (k / 2)), start, *_POWERS, stride)
        else:
            last = at(regularization)
        if on_trial is not None:
            on_trial(candidate, last.mean_loss)
        return last

    if not isinstance(kernels, Sequence):
        return best_of(kernels)
    start = _FIRST_WIDTH
    if near is not None and isinstance(near.kernel, Gaussian | Laplacian):
        start, kernels = round(np.log2(2.0 * near.kernel.gamma)), [type(near.kernel)]
    best: Choice | None = None
    for family in kernels:
        last = near
        found = _walk(lambda k: best_of(family(2.0 ** (k - 1))), start, *_WIDTHS)  # noqa: B023
        if best is None or found.mean_loss < best.mean_loss:
            best = found
    if best is None:
        raise ValueError("there are no kernels to choose from")
    return best


def _walk(
    attempt: Callable[[int], Choice], start: int, lowest: int, highest: int, stride: int = 1
) -> Choice:
    """Walk from a place along whole numbers while it goes downhill."""
    best = attempt(start)
    for direction in (stride, -stride):
        k = start + direction
        while lowest <= k <= highest and (trial := attempt(k)).mean_loss < best.mean_loss:
            best, k = trial, k + direction
        if k != start + direction:
            break
    return best


@dataclass(frozen=True, eq=False)
class Folds:
    """Samples held out in turns.

    Attributes
    ----------
    folds : the samples a model is fitted to, its basis, and the samples it predicts
    on_samples : whether the model is fitted to all samples, or to the representatives
    """

    folds: list[tuple[Samples, Representation, Samples]]
    on_samples: bool
    workers: Workers = ALONE

    @property
    def fitted_weight(self) -> float:
        """The weight of the samples that a model is fitted to, in the mean."""
        return float(np.mean([train.weights.sum() for train, *_ in self.folds]))

    @cached_property
    def targets(self) -> Array:
        """The targets of all samples, fold after fold."""
        return np.concatenate([test.targets() for *_, test in self.folds])

    @cached_property
    def weights(self) -> Array:
        """Their weights."""
        return np.concatenate([test.weights for *_, test in self.folds])

    def scores(self, kernel: Kernel) -> Scores:
        """Prepare the fit to each fold."""
        path_of = SamplesPath.of if self.on_samples else RepresentativesPath.of

        def prepare(fold: tuple[Samples, Representation, Samples]) -> tuple[Path, Array]:
            train, basis, test = fold
            path: Path = path_of(train, basis, kernel, self.workers)
            return path, path.features(test.directions())

        prepared = self.workers.map(prepare, self.folds)
        return lambda regularization: np.concatenate(
            self.workers.map(lambda one: one[0].scores(one[1], regularization), prepared)
        )

    def losses(self, scores: Array) -> Array:
        """Return the squared errors of the scores."""
        return np.asarray(((scores - self.targets) ** 2).sum(axis=1))


class LogisticFolds(Folds):
    """Samples held out in turns, for the logistic loss."""

    @classmethod
    def of(cls, folds: Folds) -> LogisticFolds:
        """Take of folds as many as hold out enough."""
        held = np.cumsum([len(test) for *_, test in folds.folds])
        enough = 1 + int(np.searchsorted(held, _ENOUGH_HELD_OUT))
        return cls(folds.folds[:enough], folds.on_samples, folds.workers)

    def scores(self, kernel: Kernel) -> Scores:
        """Prepare the fit to each fold; each starts from the one before."""

        def prepare(
            fold: tuple[Samples, Representation, Samples],
        ) -> tuple[LogisticProblem, Array]:
            train, basis, test = fold
            white = WhiteBasis.of(basis.directions, kernel, self.workers)
            problem = LogisticProblem.of(WhiteFeatures.of(white, train, self.workers))
            return problem, white.features(test.directions())

        prepared = self.workers.map(prepare, self.folds)
        last: list[LogisticFit | None] = [None] * len(prepared)

        def at(regularization: float) -> Array:
            def scores(k: int) -> Array:
                problem, T = prepared[k]
                fit = problem.solve(regularization, last[k], most_steps=_TRIAL_STEPS)
                last[k] = fit
                return np.asarray(T @ fit.coefficients + fit.intercept)

            return np.concatenate(self.workers.map(scores, range(len(prepared))))

        return at

    def losses(self, scores: Array) -> Array:
        """Return the squared errors of the probabilities."""
        return chance_losses(scores, self.targets.argmax(axis=1), self.weights)


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
    def targets(self) -> Array:
        """Their targets."""
        return self.samples.targets(self.left_out)

    @cached_property
    def weights(self) -> Array:
        """Their weights."""
        return np.asarray(self.samples.weights[self.left_out])

    def scores(self, kernel: Kernel) -> Scores:
        """Fit once, for all regularisations at once."""
        white = WhiteBasis.of(self.basis.directions, kernel, self.workers)
        path = RidgePath.of(NormalEquations.of(sum_moments(white, self.samples, self.workers)))
        T = path.along_axes(white.features(self.samples.directions(self.left_out)))
        Y, weights = self.targets, self.samples.weight_of_a_copy[self.left_out]
        return lambda value: path.left_out_scores(T, Y, weights, value)

    def losses(self, scores: Array) -> Array:
        """Return the squared errors of the scores."""
        return np.asarray(((scores - self.targets) ** 2).sum(axis=1))


class Path(Protocol):
    """Fits for every regularisation."""

    def features(self, U: Array) -> Array:
        """Return what `scores` needs of unit rows."""

    def scores(self, T: Array, regularization: float) -> Array:
        """Return the (n, K) scores of rows with these features."""


@dataclass(frozen=True, eq=False)
class SamplesPath:
    """Fits to all samples, for every λ."""

    white: WhiteBasis
    equations: NormalEquations

    @classmethod
    def of(
        cls, samples: Samples, basis: Representation, kernel: Kernel, workers: Workers = ALONE
    ) -> SamplesPath:
        """Set up the normal equations."""
        white = WhiteBasis.of(basis.directions, kernel, workers)
        return cls(white, NormalEquations.of(sum_moments(white, samples, workers)))

    def features(self, U: Array) -> Array:
        """Return what `scores` needs of unit rows."""
        return self.white.features(U)

    def scores(self, T: Array, regularization: float) -> Array:
        """Return the (n, K) scores of rows with these features."""
        found = self.equations.solve(regularization)
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


def falls(old: Array, new: Array, weights: Array) -> bool:
    """Say whether the new losses of the same samples are lower by more than noise."""
    gains = old - new
    mean = float(np.average(gains, weights=weights))
    variance = float(np.average((gains - mean) ** 2, weights=weights))
    return mean > float(np.sqrt(variance / len(gains)))
