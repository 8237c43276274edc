"""From what was chosen to a fitted model: cluster, fit, look for the border, fit again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Labelled
from kmeans_kernel.core.arrays.stream import Stream
from kmeans_kernel.core.clustering.representatives import (
    ClusterWatcher,
    KMeans,
    Representation,
    Start,
    represent,
)
from kmeans_kernel.core.training.boundary import add_border, split
from kmeans_kernel.core.training.fit import Fit, FitOn, fit
from kmeans_kernel.core.training.timing import Clock
from kmeans_kernel.core.training.tuning import Chosen


class BuildWatcher(ClusterWatcher, Protocol):
    """Someone to tell how a model is built."""

    def solving(self, m: int) -> None:
        """Hear that the system of `m` representatives is about to be solved."""


@dataclass(frozen=True)
class Recipe:
    """How a model is built.

    Attributes
    ----------
    kmeans : how to cluster
    border : the share of the representatives that are rows at the border
    fit_on : what the coefficients are fitted to
    """

    kmeans: KMeans
    border: float
    fit_on: FitOn


@dataclass(frozen=True, eq=False)
class Built:
    """A fitted model.

    Attributes
    ----------
    basis, fit : the representatives and the fit
    on_centroids : the fit without those at the border, the same if there are none
    """

    basis: Representation
    fit: Fit
    on_centroids: Fit


def build(
    data: Labelled | Stream,
    recipe: Recipe,
    chosen: Chosen,
    rngs: Sequence[np.random.Generator],
    watcher: BuildWatcher,
    workers: Workers = ALONE,
    clock: Clock | None = None,
    start: Start | None = None,
) -> Built:
    """Build a model of rows that are already squashed; there is one rng for each class.

    `start` are centroids to start from, of some classes.
    """
    clock = Clock() if clock is None else clock
    kmeans, n_border = split(data, recipe.kmeans, recipe.border)
    with clock.stage("clustering"):
        basis = represent(data, kmeans, chosen.placement, rngs, watcher, workers, start)
    clock.split("clustering", basis.seconds)

    def fit_on_basis() -> Fit:
        watcher.solving(len(basis.directions))
        return fit(
            data, chosen.placement, basis, chosen.kernel, chosen.regularization, recipe.fit_on,
            chosen.loss, workers, clock,
        )  # fmt: skip

    first = fit_on_basis()
    if not n_border or isinstance(data, Stream):
        return Built(basis, first, first)
    with clock.stage("border"):
        basis = add_border(basis, first.model, data, chosen.placement, n_border, workers)
    return Built(basis, fit_on_basis(), first)
