"""Training, stage by stage: search, map to the sphere, K-means per class, kernel, solve, model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.events import SizeTried
from kmeans_kernel.core.arrays.execution import Run
from kmeans_kernel.core.arrays.lazy import LazyRows
from kmeans_kernel.core.arrays.matrices import Array, IntArray
from kmeans_kernel.core.arrays.rows import LabelledRows, TrainingRows, basis_size, stratified_sample
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.clustering.representatives import Representatives, Start, represent
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.model.temperature import HeldOutProbabilities
from kmeans_kernel.core.solvers.nystrom import Solution, sampling_pays
from kmeans_kernel.core.training.boundary import add_boundary_rows, share_with_boundary
from kmeans_kernel.core.training.config import FitOn, Loss, TrainingConfig
from kmeans_kernel.core.training.fit import calibrate, fit_coefficients
from kmeans_kernel.core.training.halving import MANY_ROWS
from kmeans_kernel.core.training.model_size import search_size
from kmeans_kernel.core.training.tuning import Tuned, leaves_open, restrict_to_width, tune

# The most training rows whose cosines with the nearest representative are kept.
_ROWS_OF_COSINES = 500

# A function that returns initial centroids of some classes, given the map to the sphere.
StartFor: TypeAlias = Callable[[SphereMap], Start]


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A fitted model and the record of its training.

    Attributes
    ----------
    model : the fitted model
    regularization, loss : as given or chosen
    n_representatives : Q, as given or chosen
    held_out_error : misclassification rate of held-out samples at the chosen hyperparameters; None
        if nothing was searched
    n_iter : (K,) K-means iterations of each class
    deviations : (K,) δ at the end of the K-means of each class
    relative_residual : relative residual of the solved system
    sizes : record of each number of representatives that was tried
    seconds : seconds spent in each stage
    online : whether the model comes from online training; `regularization` is then ε
    held_out : probabilities of held-out samples for their own classes; None if nothing was searched
    cosines : sorted cosines of some training rows with the nearest representative, as if they had
        not been trained on; None if they are not known
    """

    model: FittedModel
    regularization: float
    loss: Loss
    n_representatives: int
    held_out_error: float | None
    n_iter: npt.NDArray[np.intp]
    deviations: Array
    relative_residual: float
    sizes: tuple[SizeTried, ...]
    seconds: dict[str, float]
    online: bool = False
    held_out: HeldOutProbabilities | None = None
    cosines: Array | None = None


def train(
    rows: TrainingRows,
    config: TrainingConfig,
    rngs: Sequence[np.random.Generator],
    run: Run,
    start: StartFor | None = None,
) -> TrainingResult:
    """Train on labelled rows; arguments are trusted.

    Parameters
    ----------
    rngs : a random generator for the K-means of each class
    run : executor, listener, and the random generator of the search
    start : returns initial centroids of K-means, given the map to the sphere
    """
    config = restrict_to_width(config, rows.n_features)
    if not rows.in_memory:
        refuse_out_of_core(config)
    spans = _spans(rows, run, config)
    search, sizes = spans["search"], tuple[SizeTried, ...]()
    searches = leaves_open(config) or config.search_size
    if searches:
        search.report(0.0)
    with run.stage("search") if searches else nullcontext():
        if config.search_size:
            config, tuned, sizes = search_size(rows.load(), config, search, _build_for_trial)
        else:
            tuned = tune(rows, config, search)
    if tuned.n_representatives is not None:
        config = replace(config, n_representatives=tuned.n_representatives)
    spans["clustering"].report(0.0)
    rows = rows.on_sphere(tuned.sphere_map)
    first = None if start is None else start(tuned.sphere_map)
    basis, model, solution, on_centroids = _build(rows, config, tuned, rngs, spans, first)
    temperature = tuned.temperature
    if temperature is None:
        # Boundary rows are their own representatives, so leave-one-out of the fit with them is
        # optimistic; the fit on centroids alone sets the temperature.
        temperature = calibrate(on_centroids, rows, run)
    spans["solving"].report(1.0)
    return TrainingResult(
        model=replace(model, temperature=temperature),
        regularization=tuned.regularization,
        loss=tuned.loss,
        n_representatives=config.n_representatives,
        held_out_error=tuned.held_out_error,
        n_iter=basis.n_iter,
        deviations=basis.deviations,
        relative_residual=solution.relative_residual,
        sizes=sizes,
        seconds=run.seconds,
        held_out=tuned.held_out,
        cosines=_cosines_of_training_rows(rows, model, run),
    )


def _cosines_of_training_rows(rows: TrainingRows, model: FittedModel, run: Run) -> Array | None:
    """Return the sorted cosines of some training rows with the nearest representative.

    They are quantiles where equal rows were merged, which count as often as they were there. None
    for lazy rows, as of patches, each of which is computed once.
    """
    if isinstance(rows, LabelledRows) and isinstance(rows.X, LazyRows):
        return None
    if rows.in_memory:
        parts = _left_out(stratified_sample(rows, _ROWS_OF_COSINES, run.rng), model)
    else:  # the rows stay where they are
        share = min(1.0, _ROWS_OF_COSINES / len(rows))
        parts = rows.sum_blocks(partial(_left_out_of_some, model=model, share=share))
    cosines, copies = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(cosines, kind="stable")
    below = np.cumsum(copies[order])
    n = min(_ROWS_OF_COSINES, int(below[-1]))
    return np.asarray(cosines[order][np.searchsorted(below, (np.arange(n) + 0.5) / n * below[-1])])


def _left_out(rows: LabelledRows, model: FittedModel) -> list[tuple[Array, IntArray]]:
    """Return the cosines of rows as if they were new, and how often each is there."""
    cosines = model.left_out_cosines(rows.directions(), rows.codes, rows.copy_weights)
    return [(cosines, rows.copies)]


def _left_out_of_some(
    rows: LabelledRows, *, model: FittedModel, share: float
) -> list[tuple[Array, IntArray]]:
    """Return those of a share of the rows of a block, evenly spaced."""
    n = int(np.ceil(share * len(rows)))
    return _left_out(rows.at(np.linspace(0, len(rows) - 1, n).astype(np.intp)), model)


def _spans(rows: TrainingRows, run: Run, config: TrainingConfig) -> dict[str, Run]:
    """Return the run of each stage, which knows the shares of the whole fit that it spans.

    The shares are estimates of seconds; their factors were measured on development tables, and only
    their ratios count. Out of core, and where the size is searched, the passes tell how far they
    are.
    """
    if not rows.in_memory or config.search_size:
        return dict.fromkeys(("search", "clustering", "solving"), run)
    n, m = float(len(rows)), float(basis_size(rows, config.n_representatives))
    K, d = len(rows.classes), rows.n_features
    if config.may_shrink:
        m = min(m, n / 2)
    kmeans = 5e-3 * K + 3e-10 * n * m / K * d
    if config.fit_on == "representatives":
        search, solve = 20 * 3e-11 * min(m, 1000.0) ** 3, 3e-11 * m**3
    else:
        search = 0.1 + 1e-4 * min(n, 4000.0) + 0.02 * min(K, 30)
        search *= 3.0 if n >= MANY_ROWS else 1.0
        solve = 5e-11 * n * m**2 + 3e-9 * n * m * K
        if sampling_pays(len(rows), round(m)):
            solve = 2e-8 * n * m
        if not config.sees_table(d):
            search = 60 * 1e-10 * min(n, 6000.0) * min(m, 1000.0) ** 2
    search = search if leaves_open(config) else 0.0
    whole = search + kmeans + solve
    searched, clustered = search / whole, (search + kmeans) / whole
    return {
        "search": run.spanning("search", 0.0, searched),
        "clustering": run.spanning("clustering", searched, clustered),
        "solving": run.spanning("solving", clustered, 1.0),
    }


def _build(
    rows: TrainingRows,
    config: TrainingConfig,
    tuned: Tuned,
    rngs: Sequence[np.random.Generator],
    runs: Mapping[str, Run],
    start: Start | None = None,
) -> tuple[Representatives, FittedModel, Solution, Solution]:
    """Cluster and fit; with boundary rows, add them and fit again.

    Returns representatives, model and solution, and the solution on centroids alone.
    """
    n_boundary = 0
    if config.boundary_fraction > 0:
        config, n_boundary = share_with_boundary(rows, config)
    basis = represent(rows, config, rngs, runs["clustering"], start)
    run = runs["solving"]
    run.report(0.0)

    fit_on: FitOn = "representatives" if tuned.exact else config.fit_on
    regularization: float | Array = tuned.regularization
    if tuned.exact:  # the ridge of each row
        regularization = tuned.regularization * rows.total_weight / basis.counts

    def fit() -> tuple[FittedModel, Solution]:
        return fit_coefficients(rows, basis, tuned.kernel, regularization, fit_on, tuned.loss, run)

    model, solution = fit()
    if not n_boundary:
        return basis, model, solution, solution
    with run.stage("boundary"):
        basis = add_boundary_rows(basis, model, rows.load(), n_boundary, run.executor)
    return basis, *fit(), solution


def _build_for_trial(
    rows: TrainingRows, config: TrainingConfig, tuned: Tuned, run: Run
) -> FittedModel:
    """Build a model with fixed seeds, so that trials differ by the number of centroids alone."""
    rngs = [np.random.default_rng(k) for k in range(len(rows.classes))]
    return _build(rows, config, tuned, rngs, {"clustering": run, "solving": run})[1]


def refuse_out_of_core(config: TrainingConfig) -> None:
    """Raise ValueError for parameters that cannot be trained out of core."""
    if config.search_size:
        raise ValueError(
            "n_representatives='auto' needs rows in memory: it holds out a part of them and fits "
            "again and again. Find the number with a sample of the rows, and give it."
        )
    if config.boundary_fraction:
        raise ValueError(
            f"boundary_fraction={config.boundary_fraction:g} needs rows in memory: rows near the "
            "boundary are found among all. Set boundary_fraction=0.0."
        )
