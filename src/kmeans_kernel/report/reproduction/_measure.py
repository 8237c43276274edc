"""One run of one point: train with the paper's settings, test once, and say what it took."""

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
    """Return the classifier of pixels and Fourier magnitudes as the author's script has it."""
    return paper.raw_fft(q, random_state=random_state).set_params(fourierfeatures__root=False)


def patches_26(q: int, random_state: int) -> Any:
    """Return the classifier of patches of the size that the author's script has."""
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

    Nothing is chosen: settings are the paper's, and the test set is used once.
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
    """Return the test error in per cent; of patches by both votes, from the same scores."""
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
    """Measure the runs that the file lacks, each in its own process and written at its end."""
    read_rows(path, "features", "q", "seed", "error_percent", "machine")  # sees that it is ours
    run_jobs(path, jobs, lambda job: in_fresh_process(__package__, job), on_row=on_row)
