"""Training, stage by stage: choice, sphere, K-means per class, kernel, solve, model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.asinh import Squash
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Labelled, Placement
from kmeans_kernel.core.arrays.stream import Stream
from kmeans_kernel.core.clustering.representatives import Start
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.training.build import BuildWatcher, Recipe, build
from kmeans_kernel.core.training.fit import Loss
from kmeans_kernel.core.training.model_size import GrowthWatcher, Step, grow
from kmeans_kernel.core.training.timing import Clock
from kmeans_kernel.core.training.tuning import Open, make_choice

StartFor: TypeAlias = Callable[[Placement, Squash | None], Start]


class Watcher(BuildWatcher, GrowthWatcher, Protocol):
    """Someone to tell how training goes."""


@dataclass(frozen=True)
class Settings:
    """What the user decided, validated.

    Attributes
    ----------
    recipe : how the model is built
    grows : whether the number of representatives is to be found
    open_ : the rest, some of which may be left to us
    """

    recipe: Recipe
    grows: bool
    open_: Open


@dataclass(frozen=True, eq=False)
class Training:
    """A fitted model and how it came about.

    Attributes
    ----------
    model : the fitted model
    regularization, loss : those of the fit
    n_iter : (K,) K-means iterations of each class
    converged : (K,) whether K-means of each class reached the tolerance
    relative_residual : of the system that was solved
    held_out_error : the share of held-out samples that were misclassified when the choice was made;
        None if nothing was to be chosen
    n_representatives : of each class, as given or found
    steps : the numbers that were tried
    seconds : spent in each stage
    """

    model: FittedModel
    regularization: float
    loss: Loss
    n_iter: npt.NDArray[np.intp]
    converged: npt.NDArray[np.bool_]
    relative_residual: float
    held_out_error: float | None
    n_representatives: int
    steps: tuple[Step, ...]
    seconds: dict[str, float]


def train(
    data: Labelled | Stream,
    settings: Settings,
    rngs: Sequence[np.random.Generator],
    choice_rng: np.random.Generator,
    watcher: Watcher,
    workers: Workers = ALONE,
    start: StartFor | None = None,
) -> Training:
    """Train on labelled rows; arguments are trusted.

    Parameters
    ----------
    rngs : one for each class
    choice_rng : for what is left to us
    start : gives centroids to start from, of some classes, once rows can be put on the sphere
    """
    clock = Clock()
    recipe, steps = settings.recipe, tuple[Step, ...]()
    kmeans = recipe.kmeans
    open_ = settings.open_.for_width(data.width)
    chosen = open_.as_given(data)
    if isinstance(data, Stream):
        refuse_what_needs_memory(settings)
    elif settings.grows:
        with clock.stage("choice"):
            growth = grow(data, recipe, open_, choice_rng, watcher, workers)
        chosen, steps = growth.chosen, growth.steps
        kmeans = replace(kmeans, n_representatives=growth.n_representatives)
    if chosen is None:
        with clock.stage("choice"):
            chosen = make_choice(data, kmeans, recipe.fit_on, open_, choice_rng, watcher, workers)
    recipe, data = replace(recipe, kmeans=kmeans), data.squashed(chosen.squash)
    first = None if start is None else start(chosen.placement, chosen.squash)
    built = build(data, recipe, chosen, rngs, watcher, workers, clock, first)
    temperature = chosen.temperature
    if temperature is None:
        # Rows at the border are as their own representatives say, whatever else does.
        temperature = built.on_centroids.temperature(data, choice_rng)
    return Training(
        model=replace(built.fit.model, temperature=temperature, squash=chosen.squash),
        regularization=chosen.regularization,
        loss=chosen.loss,
        n_iter=built.basis.n_iter,
        converged=built.basis.converged,
        relative_residual=built.fit.relative_residual,
        held_out_error=chosen.held_out_error,
        n_representatives=kmeans.n_representatives,
        steps=steps,
        seconds=clock.seconds,
    )


def refuse_what_needs_memory(settings: Settings) -> None:
    """Say what cannot be done with rows that come in blocks."""
    if settings.grows:
        raise ValueError(
            "n_representatives='auto' needs rows in memory: it holds out a part of them and fits "
            "again and again. Find the number with a sample of the rows, and give it."
        )
    if settings.recipe.border:
        raise ValueError(
            f"border={settings.recipe.border:g} needs rows in memory: those at the border are "
            "found among all. Set border=0.0."
        )
