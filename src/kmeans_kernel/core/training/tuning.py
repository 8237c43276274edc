"""Choice of open hyperparameters: kernel, γ, λ, lift, feature scales, transform, loss.

They are chosen on a smaller problem of the same kind: fewer representatives, and fewer rows per
representative where clusters are large. The cost is a few fits of that size, whatever the size of
the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.encoding import FeatureMap
from kmeans_kernel.core.arrays.execution import Run
from kmeans_kernel.core.arrays.feature_transform import FeatureMoments
from kmeans_kernel.core.arrays.matrices import Array, is_sparse
from kmeans_kernel.core.arrays.rows import (
    LabelledRows,
    TrainingRows,
    basis_size,
    draw,
    stratified_sample,
    water_fill,
    with_typical_lift,
)
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.clustering.representatives import Representatives, represent
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.model.agop import ENOUGH_ROWS, learn_scales
from kmeans_kernel.core.model.temperature import (
    HeldOutProbabilities,
    brier_losses,
    fit_temperature,
    label_smoothing,
)
from kmeans_kernel.core.training.config import Loss, TrainingConfig
from kmeans_kernel.core.training.cross_validation import (
    LARGE_CLUSTERS,
    CrossValidation,
    Fold,
    LeaveOneOut,
    dual_path,
    logistic_path,
    ridge_path,
)
from kmeans_kernel.core.training.fit import fit_coefficients
from kmeans_kernel.core.training.halving import Halving, Searched, transforms_to_try
from kmeans_kernel.core.training.search import (
    Candidate,
    hold_out,
    is_significantly_lower,
    search,
)

# The most representatives of the smaller problem.
_MOST_REPRESENTATIVES = 1000

# Number of folds; more below `_FEW_ROWS` rows, where a fold is less informative and cheaper.
_FOLDS, _MORE_FOLDS, _FEW_ROWS = 3, 5, 1500

# The most rounds of the recursive feature machine: fit, learn scales, fit again.
_MOST_ROUNDS = 4

# The walk over λ of the logistic loss: its start as a share of the best λ of the squared loss, its
# step in half powers of ten (large, since every λ is a fit of its own), and the number of held-out
# samples.
_LOGISTIC_SHARE, _STRIDE, _ENOUGH_HELD_OUT = 0.1, 2, 1500

# The most representatives as a share of the rows; and, where a quarter of the landmarks of the
# search was enough, their number relative to those of the search.
_SHARE_OF_ROWS, _MARGIN_OF_SIZE = 0.5, 1.5

# λ falls as the total weight of the samples to the power of minus this.
_POWER_OF_WEIGHT = 1.5

# The most samples whose leave-one-out predictions are computed.
_MOST_LEFT_OUT = 5000

# The most samples from which a feature transform is learned if nothing is searched.
_ROWS_OF_TRANSFORM = 10_000

# Training rows and held-out rows of each fold.
_Parts: TypeAlias = Sequence[tuple[LabelledRows, LabelledRows]]

# The best candidate with the squared loss, its folds, and the map of all rows to the sphere, whose
# lift is still to be set.
_Found: TypeAlias = tuple[Candidate, CrossValidation, SphereMap]


@dataclass(frozen=True, eq=False)
class Tuned:
    """Hyperparameters, chosen or given.

    Attributes
    ----------
    kernel, regularization, loss : for the fit to all rows
    sphere_map : the map of rows to the unit sphere
    temperature, held_out_error : from the held-out samples; None if nothing was searched
    n_representatives : Q, if the search has chosen fewer than were allowed; else None
    squares : the best candidate with the squared loss; None if nothing was searched
    exact : whether all rows are representatives, so that a fit to these is one to all rows
    held_out : probabilities of held-out samples for their own classes; None if nothing was searched
    """

    kernel: Kernel
    regularization: float
    loss: Loss
    sphere_map: SphereMap
    temperature: float | None = None
    held_out_error: float | None = None
    n_representatives: int | None = None
    squares: Candidate | None = None
    exact: bool = False
    held_out: HeldOutProbabilities | None = None


def restrict_to_width(config: TrainingConfig, n_features: int) -> TrainingConfig:
    """Return the configuration without the searches that are for tables only, if d is large."""
    if config.sees_table(n_features):
        return config
    return replace(
        config,
        kernel=config.kernel[:1] if isinstance(config.kernel, tuple) else config.kernel,
        feature_scales=None if config.feature_scales == "auto" else config.feature_scales,
        feature_transform=None if config.feature_transform == "auto" else config.feature_transform,
    )


def leaves_open(config: TrainingConfig) -> bool:
    """Return whether a hyperparameter, other than the number of representatives, is open."""
    return (
        isinstance(config.kernel, tuple)
        or config.regularization is None
        or config.feature_scales is not None
    )


def tune(
    rows: TrainingRows, config: TrainingConfig, run: Run, near: Candidate | None = None
) -> Tuned:
    """Choose the open hyperparameters.

    `near` is the best candidate of a similar problem, from which the search starts.
    """
    if not leaves_open(config):
        return _as_given(rows, config)
    if config.fit_on == "samples" and config.sees_table(rows.n_features):
        return _tune_table(rows, config, run)
    small, fewer = smaller_problem(rows, config, run.rng)
    with run.executor.session():
        if _suits_leave_one_out(small, fewer):
            squares, folds, sphere_map = _search_by_leave_one_out(small, fewer, run, near)
            weight = small.total_weight
        else:
            squares, folds, sphere_map = _search_by_folds(small, fewer, run, near)
            weight = folds.fitted_weight
        best, loss = _choose_loss(squares, folds, fewer, run)
    if loss == "logistic":
        weight = folds.fitted_weight
    regularization = best.regularization
    if config.regularization is None and config.fit_on == "samples":
        regularization = rescale(regularization, weight, rows.total_weight)
    temperature = fit_temperature(
        best.scores, best.codes, best.weights, label_smoothing(len(best.codes))
    )
    return Tuned(
        best.kernel,
        regularization,
        loss,
        _with_lift(rows, config, sphere_map),
        temperature,
        best.error,
        squares=squares,
        held_out=HeldOutProbabilities.of(best.scores, best.codes, best.weights, temperature),
    )


def _tune_table(rows: TrainingRows, config: TrainingConfig, run: Run) -> Tuned:
    """Choose the hyperparameters of a table by successive halving."""
    with run.executor.session():
        searched = Halving(config, run).search(rows)
    best = searched.trial
    regularization, problem = best.regularization, best.problem
    if searched.exact:  # the same ridge, that is λ times the weight
        regularization *= problem.fitted_weight / rows.total_weight
    elif config.regularization is None:
        regularization = rescale(regularization, problem.fitted_weight, rows.total_weight)
    temperature = fit_temperature(
        best.scores, problem.codes, problem.weights, label_smoothing(problem.n_copies)
    )
    return Tuned(
        best.kernel,
        regularization,
        best.loss,
        _with_lift(rows, config, searched.sphere_map),
        temperature,
        best.error,
        _enough_representatives(rows, config, searched),
        exact=searched.exact,
        held_out=HeldOutProbabilities.of(best.scores, problem.codes, problem.weights, temperature),
    )


def _enough_representatives(
    rows: TrainingRows, config: TrainingConfig, searched: Searched
) -> int | None:
    """Return Q, where it may be chosen: a share of the rows, or fewer if the search says so.

    More landmarks than `_SHARE_OF_ROWS` of the rows do not lower the error of development tables,
    and make no typical rows.
    """
    if searched.exact:
        return max(rows.class_sizes)
    if not config.may_shrink:
        return None
    # A table of few distinct rows, which are merged, may have all of them as representatives.
    total = _SHARE_OF_ROWS * (rows.load().n_copies if rows.in_memory else len(rows))
    if searched.enough_landmarks is not None:
        total = min(total, searched.enough_landmarks * _MARGIN_OF_SIZE)
    chosen = water_fill(rows.class_sizes, round(total))
    return chosen if chosen < config.n_representatives else None


def _as_given(rows: TrainingRows, config: TrainingConfig) -> Tuned:
    """Return the hyperparameters of a configuration without open ones."""
    kernel, regularization = config.kernel, config.regularization
    if isinstance(kernel, tuple) or regularization is None:
        raise TypeError("the configuration leaves a hyperparameter open")
    sphere_map = _with_lift(rows, config, SphereMap(0.0, None, _given_transform(rows, config)))
    return Tuned(kernel, regularization, config.loss or "squared", sphere_map)


def _given_transform(rows: TrainingRows, config: TrainingConfig) -> FeatureMap | None:
    """Return the feature transform where nothing is searched; "auto" is "standard"."""
    if config.feature_transform is None:
        return None
    if config.feature_transform not in ("auto", "standard") or config.n_levels is not None:
        sample = stratified_sample(rows, _ROWS_OF_TRANSFORM, np.random.default_rng(0))
        kind = "standard" if config.feature_transform == "auto" else config.feature_transform
        return transforms_to_try(sample, replace(config, feature_transform=kind))[0]
    blocks = rows.sum_blocks(moments_of)
    return reduce(add, blocks).standard_transform() if blocks else None


def moments_of(rows: LabelledRows) -> list[FeatureMoments]:
    """Return the moments of the features of a block of rows; none for sparse rows."""
    return [] if is_sparse(rows.X) else [FeatureMoments.of(rows.X[:], rows.row_weights)]


def _with_lift(rows: TrainingRows, config: TrainingConfig, sphere_map: SphereMap) -> SphereMap:
    """Return a map with the given lift, or with the root mean square length of the rows."""
    if config.lift is None:
        return with_typical_lift(rows, sphere_map)
    return replace(sphere_map, lift=config.lift)


def rescale(regularization: float, weight: float, total: float) -> float:
    """Return λ for samples of weight `total`, given the best λ for samples of less weight.

    λ multiplies the total weight in the objective, so λ ∝ 1 / weight would keep the penalty
    constant. More samples, with more representatives, resolve finer detail, and λ falls faster. The
    exponent was chosen on validation images: docs/method.md.
    """
    return regularization * float((weight / total) ** _POWER_OF_WEIGHT)


def smaller_problem(
    rows: TrainingRows, config: TrainingConfig, rng: np.random.Generator
) -> tuple[LabelledRows, TrainingConfig]:
    """Return a stratified subsample, and the configuration with fewer representatives.

    The number of rows per representative is that of the whole problem, up to `LARGE_CLUSTERS`.
    """
    m = basis_size(rows, config.n_representatives)
    share = min(1.0, _MOST_REPRESENTATIVES / m)
    fewer = max(1, round(share * config.n_representatives))
    row_share = min(share, share * m * LARGE_CLUSTERS / len(rows))
    if row_share == 1.0:
        return rows.load(), config
    kept = [draw(size, int(np.ceil(row_share * size)), rng) for size in rows.class_sizes]
    return rows.pick(kept), replace(config, n_representatives=fewer)


def _suits_leave_one_out(rows: LabelledRows, config: TrainingConfig) -> bool:
    m = basis_size(rows, config.n_representatives)
    features_are_fixed = not (config.feature_scales or config.feature_transform)
    large = len(rows) >= LARGE_CLUSTERS * m
    return large and config.fit_on == "samples" and features_are_fixed


def _search_by_leave_one_out(
    rows: LabelledRows, config: TrainingConfig, run: Run, near: Candidate | None
) -> _Found:
    """Search by closed-form leave-one-out; add one fold, for the logistic loss."""
    base = SphereMap(0.0, None, transforms_to_try(rows, config)[0])
    rows = rows.on_sphere(_with_lift(rows, config, base))
    basis = _cluster(rows, config, run)
    left_out = rows.sample(_MOST_LEFT_OUT, run.rng)
    held_out = LeaveOneOut(rows, basis, left_out, run.executor)
    squares = search(held_out, config.kernel, _ridge_lambda(config), near, run.on_event)
    # The logistic loss has no closed form and needs a fold. Its representatives are those of all
    # rows: in large clusters a held-out row hardly moves its centroid.
    rest, held = next(hold_out(rows, _FOLDS, run.rng))
    return squares, CrossValidation([Fold(rest, basis, held)], ridge_path, run.executor), base


def _search_by_folds(
    rows: LabelledRows, config: TrainingConfig, run: Run, near: Candidate | None
) -> _Found:
    """Search by K-fold cross-validation: plain features, then asinh transform, then scales."""
    n_folds = _MORE_FOLDS if len(rows) < _FEW_ROWS else _FOLDS
    parts = list(hold_out(rows, n_folds, run.rng))
    first, *others = transforms_to_try(rows, config)
    base = SphereMap(0.0, None, first)
    folds = _cluster_folds(parts, [base] * len(parts), config, run)
    best = search(folds, config.kernel, _ridge_lambda(config), near, run.on_event)
    found = best, folds, base
    for other in others:
        transform = SphereMap(0.0, None, other)
        folds = _cluster_folds(parts, [transform] * len(parts), config, run)
        trial = search(folds, config.kernel, _ridge_lambda(config), best, run.on_event)
        if trial.mean_loss < best.mean_loss:
            best, found = trial, (trial, folds, transform)
    if config.feature_scales is None:
        return found
    scaled = _search_scales(rows, parts, config, run, found)
    significant = is_significantly_lower(best.losses, scaled[0].losses, best.weights)
    return scaled if config.feature_scales == "learned" or significant else found


def _cluster_folds(
    parts: _Parts, maps: Sequence[SphereMap], config: TrainingConfig, run: Run
) -> CrossValidation:
    """Cluster the training rows of each fold; `maps` has a map to the sphere for each fold."""
    # As many rows per representative as in the whole.
    share = (len(parts) - 1) / len(parts)
    fewer = max(1, round(share * config.n_representatives))
    config = replace(config, n_representatives=fewer)
    folds = []
    for (rest, held), sphere_map in zip(parts, maps, strict=True):
        lifted = _with_lift(rest, config, sphere_map)
        train = rest.on_sphere(lifted)
        folds.append(Fold(train, _cluster(train, config, run), held.on_sphere(lifted)))
    path = ridge_path if config.fit_on == "samples" else dual_path
    return CrossValidation(folds, path, run.executor)


def _search_scales(
    rows: LabelledRows, parts: _Parts, config: TrainingConfig, run: Run, plain: _Found
) -> _Found:
    """Learn feature scales (AGOP) in rounds, while the held-out loss falls.

    The scales of each fold are learned from its training rows alone; the scales of all rows, for
    the final model, are learned beside them.
    """
    (last, folds, base), trials = plain, list[_Found]()
    whole = rows.on_sphere(_with_lift(rows, config, base))
    basis = _cluster(whole, config, run)
    for _ in range(_MOST_ROUNDS):
        scales = _learn_scales(whole, basis, config, run, last)
        maps = [
            replace(base, scales=_learn_scales(fold.train, fold.basis, config, run, last))
            for fold in folds.folds
        ]
        folds = _cluster_folds(parts, maps, config, run)
        found = search(folds, config.kernel, _ridge_lambda(config), last, run.on_event)
        scaled = replace(base, scales=scales)
        trials.append((found, folds, scaled))
        if found.mean_loss >= last.mean_loss:
            break
        last = found
        whole = rows.on_sphere(_with_lift(rows, config, scaled))
        basis = _cluster(whole, config, run)
    return min(trials, key=lambda trial: trial[0].mean_loss)


def _learn_scales(
    rows: LabelledRows, basis: Representatives, config: TrainingConfig, run: Run, best: Candidate
) -> Array:
    """Return the feature scales of a model that is fitted to the rows."""
    model, _ = fit_coefficients(
        rows, basis, best.kernel, best.regularization, config.fit_on, "squared", run.silent()
    )
    some = rows.sample(ENOUGH_ROWS, run.rng)
    transform = rows.sphere_map.feature_transform
    groups = None if transform is None else transform.groups
    return learn_scales(model, rows.X[some], rows.row_weights[some], groups)


def _cluster(rows: LabelledRows, config: TrainingConfig, run: Run) -> Representatives:
    """Cluster with fixed seeds, so that trials differ by their hyperparameters alone."""
    rngs = [np.random.default_rng(k) for k in range(len(rows.classes))]
    return represent(rows, config, rngs, run.silent())


def _ridge_lambda(config: TrainingConfig) -> float | None:
    """Return λ of the squared loss, None to search it: with loss="logistic" λ is not for it."""
    return None if config.loss == "logistic" else config.regularization


def _choose_loss(
    squares: Candidate, folds: CrossValidation, config: TrainingConfig, run: Run
) -> tuple[Candidate, Loss]:
    """Return the best candidate and its loss, after a trial of the logistic loss if it is allowed.

    The squared loss is searched first, as it is cheap at every λ; the logistic search starts from
    its best candidate. The two are compared by their Brier scores.
    """
    searched = config.loss is None and config.regularization is None
    if config.fit_on != "samples" or not (config.loss == "logistic" or searched):
        return squares, "squared"
    near = replace(squares, regularization=_LOGISTIC_SHARE * squares.regularization)
    fewer = folds.holding_out(_ENOUGH_HELD_OUT)
    tried = replace(fewer, path=logistic_path)
    logistic = search(
        tried, config.kernel, config.regularization, near, run.on_event, _STRIDE, brier_losses
    )
    if config.loss == "logistic":
        return logistic, "logistic"
    same = search(fewer, squares.kernel, squares.regularization, losses=brier_losses)
    if logistic.mean_loss < same.mean_loss:
        return logistic, "logistic"
    return squares, "squared"
