"""Runs of the paper's classifiers on MNIST: test error, time and memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from kmeans_kernel import paper
from kmeans_kernel.data import load_mnist
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier, vote_shares
from kmeans_kernel.report._inspection import classifier_of
from kmeans_kernel.report._records import (
    forget_peak,
    in_fresh_process,
    memory_bytes,
    read_rows,
    run_jobs,
)


def raw_fft_no_root(q: int, random_state: int) -> Any:
    """Return the pixel and Fourier classifier of the author's script: magnitudes without a root."""
    return paper.raw_fft(q, random_state=random_state).set_params(fourierfeatures__root=False)


def patches_26(q: int, random_state: int) -> Any:
    """Return the patch classifier with the patch size of the author's script, 26 × 26."""
    return paper.patches(q, 26, random_state=random_state)


MAKERS: dict[str, Callable[..., Any]] = {
    "raw": paper.raw,
    "raw_fft": paper.raw_fft,
    "raw_fft_no_root": raw_fft_no_root,
    "patches": paper.patches,
    "patches_26": patches_26,
}


def measure(features: str, q: int, seed: int) -> dict[str, Any]:
    """Train and test one classifier of the paper in this process.

    No setting is tuned: all are the paper's, and the test set is used once.

    Parameters
    ----------
    features : key of `MAKERS`
    q : representatives per class
    seed : random state of K-means

    Returns
    -------
    dict, a row of a result file
    """
    mnist = load_mnist()
    model = MAKERS[features](q, random_state=seed)
    forget_peak()
    loaded = memory_bytes(peak=False)
    start = perf_counter()
    model.fit(mnist.X_train, mnist.y_train)
    fitted = perf_counter()
    fit_peak = memory_bytes(peak=True)
    errors = error_percents(model, mnist.X_test, mnist.y_test)
    tested = perf_counter()
    classifier = classifier_of(model)
    return {
        **errors,
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(tested - fitted, 2),
        "stage_seconds": {k: round(v, 2) for k, v in classifier.stage_seconds_.items()},
        "iterations": classifier.n_iter_.tolist(),
        "relative_residual": classifier.relative_residual_,
        "loaded_bytes": loaded,
        "fit_peak_bytes": fit_peak,
        "peak_bytes": memory_bytes(peak=True),
    }


def error_percents(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Return the test error in per cent; for patches the errors of both votes, in one pass."""
    if not isinstance(model, PatchVotingClassifier):
        return {"error_percent": _error_percent(model.predict(X), y)}
    votes: dict[str, list[Any]] = {"error_percent": [], "sum_error_percent": []}
    for scores in model.patch_scores(X):
        for (_, winners), by_majority in zip(votes.items(), (True, False), strict=True):
            winners.append(vote_shares(scores, by_majority=by_majority).argmax(axis=1))
    return {
        name: _error_percent(model.classes_[np.concatenate(winners)], y)
        for name, winners in votes.items()
    }


def _error_percent(predicted: Any, y: Any) -> float:
    return round(100 * float(np.mean(predicted != y)), 4)


def run_figure(
    path: Path,
    jobs: list[dict[str, Any]],
    on_row: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Run the jobs without a row in the file, each in its own process, and save row by row."""
    read_rows(path, "features", "q", "seed", "error_percent", "machine")  # refuses other files
    run_jobs(path, jobs, lambda job: in_fresh_process(__package__, job), on_row=on_row)
