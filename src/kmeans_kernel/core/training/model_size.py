"""How many representatives: twice as many again, until a held-out part says it is enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol

import numpy as np

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Labelled
from kmeans_kernel.core.clustering.representatives import Unwatched
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.model.temperature import chance_losses
from kmeans_kernel.core.training.build import Recipe, build
from kmeans_kernel.core.training.cross_validation import hold_out
from kmeans_kernel.core.training.search import falls
from kmeans_kernel.core.training.tuning import Chosen, Open, carry, make_choice

# The first number of representatives of a class.
FIRST = 12

# One row in so many is held out.
_HELD_OUT = 5

# Growth ends before three matrices of m × m float64 would need more than this many bytes, and
# before a step that would take more than this many seconds if it takes four times the last.
MOST_BYTES = 2 << 30
MOST_SECONDS = 300.0


class GrowthWatcher(Protocol):
    """Someone to tell how the growth goes."""

    def tried(self, kernel: Kernel, loss: float) -> None:
        """Hear of a kernel that was tried, and the mean squared error of what was held out."""

    def grown(self, step: Step) -> None:
        """Hear of a number of representatives that was tried."""


@dataclass(frozen=True)
class Step:
    """A number of representatives that was tried.

    Attributes
    ----------
    n_representatives : of each class
    held_out_error : the share of the held-out rows that were misclassified
    held_out_loss : the mean squared error of their probabilities
    seconds : what it took
    """

    n_representatives: int
    held_out_error: float
    held_out_loss: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Growth:
    """What was tried, and what was enough.

    Attributes
    ----------
    steps : all that was tried, the smallest first
    n_representatives : the smallest that no larger one beat by more than noise
    chosen : what was chosen with it, on the part that was not held out
    """

    steps: tuple[Step, ...]
    n_representatives: int
    chosen: Chosen


def grow(
    data: Labelled,
    recipe: Recipe,
    open_: Open,
    rng: np.random.Generator,
    watcher: GrowthWatcher,
    workers: Workers = ALONE,
) -> Growth:
    """Double the representatives while the squared error of held-out rows falls beyond noise."""
    rest, held = next(hold_out(data, _HELD_OUT, rng))
    weights, largest = held.weight_of_each, max(rest.class_sizes)
    steps: list[Step] = []
    kept: list[tuple[Chosen, Array]] = []  # those that beat all before
    q = FIRST
    while True:
        start = perf_counter()
        wanted = replace(recipe.kmeans, n_representatives=min(q, largest))
        near = kept[-1][0].squares if kept else None
        chosen = open_.as_given(rest) or make_choice(
            rest, wanted, recipe.fit_on, open_, rng, watcher, workers, near
        )
        # The same every time, so that steps differ by their number alone.
        rngs = [np.random.default_rng(k) for k in range(len(rest.classes))]
        squashed = rest.squashed(chosen.squash)
        built = build(squashed, replace(recipe, kmeans=wanted), chosen, rngs, Unwatched(), workers)
        scores = built.fit.model.scores(held.squashed(chosen.squash).X[:], workers)
        losses = chance_losses(scores, held.codes, weights)
        step = Step(
            wanted.n_representatives,
            float(np.average(scores.argmax(axis=1) != held.codes, weights=weights)),
            float(np.average(losses, weights=weights)),
            perf_counter() - start,
        )
        steps.append(step)
        watcher.grown(step)
        if kept and not falls(kept[-1][1], losses, weights):
            break
        kept.append((chosen, losses))
        if q >= largest or not _affordable(rest.basis_size(2 * q), step):
            break
        q *= 2
    chosen = kept[-1][0]
    if recipe.fit_on == "samples" and open_.regularization is None:
        carried = carry(chosen.regularization, rest.total_weight, data.total_weight)
        chosen = replace(chosen, regularization=carried)
    return Growth(tuple(steps), steps[len(kept) - 1].n_representatives, chosen)


def _affordable(m: int, last: Step) -> bool:
    """Say whether a step with m representatives keeps within memory and time."""
    return 3 * 8 * m**2 <= MOST_BYTES and 4 * last.seconds <= MOST_SECONDS
