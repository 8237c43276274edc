"""Steps of `partial_fit`: check a batch, start online training, continue from a fitted model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from kmeans_kernel.core.arrays.execution import Executor, Run
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.training.config import TrainingConfig
from kmeans_kernel.core.training.online import OnlineModel
from kmeans_kernel.core.training.tuning import leaves_open, restrict_to_width, tune
from kmeans_kernel.estimators._parameters import config_of, deadline_of
from kmeans_kernel.estimators.columns._table import code_table
from kmeans_kernel.utils.validation import (
    check_labels,
    check_rows_and_labels,
    check_weights,
    codes_of,
)


def continue_from(estimator: Any) -> OnlineModel:
    """Return the state of online training that continues from a fitted model.

    The map to the sphere, with its feature transform and feature scales, stays that of the model.
    """
    result = estimator.result_
    # λ is the penalty relative to the mean squared error, ε relative to the sum over m
    # representatives: ε = λ m.
    on_representatives = result.online or estimator.fit_on == "representatives"
    m = 1 if on_representatives else len(result.model.directions)
    state = OnlineModel.of(result.model, result.regularization * m)
    return replace(state, held_out_error=result.held_out_error)


def check_batch(
    estimator: Any,
    X: Any,
    y: Any,
    classes: Any,
    sample_weight: Any,
    before: OnlineModel | None,
) -> LabelledRows:
    """Return a validated batch, without rows of weight zero, coded by all classes."""
    _refuse_online(estimator, before)
    if before is not None and estimator._columns is not None:
        y = check_labels(type(estimator).__name__, X, y)
        X = code_table(estimator, estimator._columns, X)
    else:
        estimator._refuse_column_types("fit, not partial_fit")
        X, y = check_rows_and_labels(estimator, X, y, reset=before is None)
    check_classification_targets(y)
    named = codes_of(np.asarray(y if classes is None else classes))[0]
    known = named if before is None else before.classes
    codes_of(y)  # raises for labels that cannot be sorted
    if before is not None and classes is not None and not np.array_equal(named, known):
        raise ValueError(
            f"classes={classes!r} are not those of the first call to partial_fit, {known.tolist()}."
        )
    if len(known) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least two classes; the first batch has one, "
            f"{known.tolist()[0]!r}. Name all that will come: partial_fit(X, y, classes=...)."
        )
    new = np.setdiff1d(y, known)
    if len(new):
        raise ValueError(
            f"y has the label {new.tolist()[0]!r}, which is not among the classes "
            f"{known.tolist()[:10]}. Name all that will come in the first call: "
            "partial_fit(X, y, classes=...)."
        )
    codes = np.searchsorted(known, y)
    weights = check_weights(estimator, sample_weight, X, known, codes)
    kept = slice(None) if weights is None else np.flatnonzero(weights)
    return LabelledRows(X[kept], codes[kept], known, None if weights is None else weights[kept])


def _refuse_online(estimator: Any, before: OnlineModel | None) -> None:
    """Raise ValueError for parameters that online training does not support."""
    config = config_of(estimator)
    if config.search_size or config.boundary_fraction or estimator.class_weight == "balanced":
        raise ValueError(
            "partial_fit sees each row once: n_representatives must be a number, boundary_fraction "
            f"0 and class_weight a dict or None, got {estimator.n_representatives!r}, "
            f"{estimator.boundary_fraction!r} and {estimator.class_weight!r}."
        )
    learned = config.feature_scales == "learned" or config.feature_transform == "asinh"
    if config.loss == "logistic" or (before is None and learned):
        raise ValueError(
            "partial_fit fits squares, and learns of the features only their means and standard "
            "deviations in the first batch: loss must not be 'logistic', feature_scales not "
            "'learned' and feature_transform not 'asinh'. It goes on from a fitted model with any."
        )


def start_online(
    estimator: Any, batch: LabelledRows, config: TrainingConfig, executor: Executor
) -> OnlineModel:
    """Return the state before the first batch, with hyperparameters chosen on that batch.

    Tables are standardised by the first batch, and the statistics stay; nothing else is learned of
    the features.
    """
    config = restrict_to_width(config, batch.n_features)
    config = replace(
        config,
        fit_on="representatives",
        feature_scales=None,
        feature_transform=None if config.feature_transform is None else "standard",
        loss="squared",
    )
    run = Run(executor)
    if leaves_open(config):
        if len(np.unique(batch.codes)) < 2:
            raise ValueError(
                "gamma and regularization are chosen with the first batch, which has rows of one "
                "class. Give both, or start with rows of several classes."
            )
        seed = check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max)
        run = replace(run, rng=np.random.default_rng(seed), deadline=deadline_of(estimator))
    with estimator._reporting(batch) as listener:
        tuned = tune(batch, config, replace(run, on_event=listener))
    state = OnlineModel.empty(batch, tuned.kernel, tuned.regularization, tuned.sphere_map)
    return replace(state, held_out_error=tuned.held_out_error)
