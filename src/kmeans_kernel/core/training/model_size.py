"""The number of representatives: doubled until a held-out part says that more do not help."""

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
from kmeans_kernel.core.training.cross_validation import hold_out
from kmeans_kernel.core.training.search import is_significantly_lower
from kmeans_kernel.core.training.tuning import Tuned, rescale, tune

# Builds a model of rows by a configuration and hyperparameters.
Build: TypeAlias = Callable[[TrainingRows, TrainingConfig, Tuned, Run], FittedModel]

# The first number of representatives of a class.
FIRST = 12

# The share of the rows that is held out is one in this many.
_HELD_OUT = 5

# The search ends before three matrices of m × m float64 would need more than this many bytes, and
# before a step that would take more than this many seconds if it takes four times the last.
MOST_BYTES = 2 << 30
MOST_SECONDS = 300.0


def search_size(
    rows: LabelledRows, config: TrainingConfig, run: Run, build: Build
) -> tuple[TrainingConfig, Tuned, tuple[SizeTried, ...]]:
    """Double the representatives while the loss of held-out rows falls significantly.

    Returns the configuration with the smallest number that no larger one beats, the hyperparameters
    chosen with it, and all sizes that were tried.
    """
    rest, held = next(hold_out(rows, _HELD_OUT, run.rng))
    largest, q = max(rest.class_sizes), FIRST
    sizes: list[SizeTried] = []
    kept: list[tuple[Tuned, Array]] = []  # those that beat all before
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
    """Say whether a step with m representatives keeps within memory and time."""
    return 3 * 8 * m**2 <= MOST_BYTES and 4 * seconds <= MOST_SECONDS
