"""Search for the number of representatives: doubled while the held-out loss falls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.events import SizeTried
from kmeans_kernel.core.arrays.execution import Run
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.arrays.rows import LabelledRows, TrainingRows, basis_size
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.model.temperature import brier_losses
from kmeans_kernel.core.training.config import TrainingConfig
from kmeans_kernel.core.training.search import hold_out, is_significantly_lower
from kmeans_kernel.core.training.tuning import Tuned, rescale, tune

# A function that trains a model on rows with given hyperparameters.
Build: TypeAlias = Callable[[TrainingRows, TrainingConfig, Tuned, Run], FittedModel]

# The first number of representatives per class that is tried.
FIRST = 12

# One row in this many is held out.
_HELD_OUT = 5

# Limits of the next step: bytes of three m × m float64 matrices, and seconds, predicted as four
# times the seconds of the last step.
MOST_BYTES = 2 << 30
MOST_SECONDS = 300.0


def search_size(
    rows: LabelledRows, config: TrainingConfig, run: Run, build: Build
) -> tuple[TrainingConfig, Tuned, tuple[SizeTried, ...]]:
    """Double Q while the Brier score of held-out rows falls by more than one standard error.

    Returns the configuration with the best Q, the hyperparameters chosen with it, and the record of
    all sizes that were tried.
    """
    rest, held = next(hold_out(rows, _HELD_OUT, run.rng))
    largest, q = max(rest.class_sizes), FIRST
    sizes: list[SizeTried] = []
    kept: list[tuple[Tuned, Array]] = []  # hyperparameters and losses of each improvement
    while True:
        start = perf_counter()
        trial = replace(config, n_representatives=min(q, largest))
        tuned = tune(rest, trial, run, kept[-1][0].squares if kept else None)
        model = build(rest.on_sphere(tuned.sphere_map), trial, tuned, run.silent())
        scores = model.scores(held.X[:], run.executor)
        losses = brier_losses(scores, held.codes, held.row_weights)
        sizes.append(_size_tried(trial, scores, losses, held, perf_counter() - start))
        if run.on_event is not None:
            run.on_event(sizes[-1])
        if kept and not is_significantly_lower(kept[-1][1], losses, held.row_weights):
            break
        kept.append((tuned, losses))
        if q >= largest or not _affordable(basis_size(rest, 2 * q), sizes[-1].seconds):
            break
        q *= 2
    tuned = kept[-1][0]
    if config.fit_on == "samples" and config.regularization is None:
        rescaled = rescale(tuned.regularization, rest.total_weight, rows.total_weight)
        tuned = replace(tuned, regularization=rescaled)
    best = sizes[len(kept) - 1].n_representatives
    return replace(config, n_representatives=best), tuned, tuple(sizes)


def _size_tried(
    config: TrainingConfig, scores: Array, losses: Array, held: LabelledRows, seconds: float
) -> SizeTried:
    weights = held.row_weights
    return SizeTried(
        config.n_representatives,
        float(np.average(scores.argmax(axis=1) != held.codes, weights=weights)),
        float(np.average(losses, weights=weights)),
        seconds,
    )


def _affordable(m: int, seconds: float) -> bool:
    """Return whether a step with m representatives keeps to the limits of memory and time."""
    return 3 * 8 * m**2 <= MOST_BYTES and 4 * seconds <= MOST_SECONDS
