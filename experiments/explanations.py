"""Attributions beside SHAP's KernelExplainer on the same models: agreement, time, deletion.

    make frames
    .venv/bin/python -m pip install shap
    python -m experiments.explanations

Both compare a row with the same typical row. KernelExplainer has its default number of samples,
which are all coalitions up to ten columns. The deletion test puts the typical row's values in place
of the five columns with the largest attributions, and tells how far the score falls. The tables are
development tables of experiments/frame_tables.py without dates. Writes
experiments/results/explanations.json, from which docs/method.md has its table.
"""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments import frames
from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.estimators import Explanation
from kmeans_kernel.report._records import run_jobs

RESULTS = Path(__file__).parent / "results" / "explanations.json"

TABLES = [
    "abalone", "ada", "automobile", "cells", "compactiv", "Cracker", "CreditCard", "gbsg", "german",
    "GSOEP9402", "Hawks", "HI", "HMDA", "insurance", "maternal health risk", "RainIbk",
    "Sacramento", "SaratogaHouses", "skillcraft1", "wa_churn", "wizmir",
]  # fmt: skip
N_ROWS, N_DELETED = 40, 5

Array = npt.NDArray[np.float64]


def scores(explanation: Explanation, rows: Any, k: int) -> Array:
    """Return the scores of one class."""
    model = explanation.model
    return np.asarray(model.contributions(rows, np.full(len(rows), k)).sum(axis=1))


def by_shap(explanation: Explanation) -> Array:
    """Return the attributions of KernelExplainer, by column of the table."""
    import shap

    found = np.zeros((len(explanation), len(explanation.columns)))
    for row, k, out in zip(explanation.X, explanation.class_positions, found, strict=True):
        explainer = shap.KernelExplainer(
            lambda rows, k=k: scores(explanation, rows, k), explanation.baseline_row
        )
        values = explainer.shap_values(row[None], silent=True).ravel()
        np.add.at(out, explanation.table.owners, values)
    return found


def mean_fall(explanation: Explanation, attributions: Array) -> float:
    """Return how far scores fall without the columns of the largest attributions."""
    falls = []
    for i, k in enumerate(explanation.class_positions):
        largest = np.argsort(-attributions[i])[:N_DELETED]
        row = explanation.X[i : i + 1].copy()
        deleted = np.isin(explanation.table.owners, largest)
        row[:, deleted] = explanation.baseline_row[:, deleted]
        own = explanation.X[i : i + 1]
        falls.append(float(scores(explanation, own, k)[0] - scores(explanation, row, k)[0]))
    return float(np.mean(falls))


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Explain test rows of a table in both ways."""
    warnings.simplefilter("ignore")
    logging.getLogger("shap").setLevel(logging.ERROR)
    X_train, X_test, y_train, _ = frames.split(job["table"], 0)
    classifier = KMeansKernelClassifier(random_state=0).fit(X_train, y_train)
    _ = classifier.explain(X_test[:2]).attributions  # the first call is slower
    start = perf_counter()
    explanation = classifier.explain(X_test[:N_ROWS])
    ours = explanation.attributions
    explained = perf_counter()
    theirs = by_shap(explanation)
    done = perf_counter()
    difference = explanation.scores - explanation.baseline_scores
    return {
        "columns": len(explanation.columns),
        "representatives": len(explanation.representative_classes),
        "largest_error_of_sum": float(np.abs(ours.sum(axis=1) - difference).max()),
        "largest_difference": float(np.abs(ours - theirs).max()),
        "correlation": round(float(np.corrcoef(ours.ravel(), theirs.ravel())[0, 1]), 4),
        "milliseconds": round(1e3 * (explained - start) / N_ROWS, 3),
        "shap_milliseconds": round(1e3 * (done - explained) / N_ROWS, 3),
        "fall": round(mean_fall(explanation, ours), 4),
        "shap_fall": round(mean_fall(explanation, theirs), 4),
    }


def main() -> None:
    """Measure the tables that have no row yet."""
    run_jobs(RESULTS, [{"table": table} for table in TABLES], measure, ("shap",))


if __name__ == "__main__":
    main()
