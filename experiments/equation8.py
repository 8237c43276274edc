"""The paper's decision rule, eq. 8, read literally: a sum of exponentials, one per representative.

    python -m experiments.equation8

As printed, the score of a class is a sum over the representatives of exp(Ω a), where the published
script has the exponential of the sum. The literal reading is measured here once, on MNIST with raw
pixels, beside the other; docs/paper.md tells of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kmeans_kernel import paper
from kmeans_kernel.core.arrays.matrices import row_blocks
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.data import load_mnist
from kmeans_kernel.report._records import run_jobs

RESULTS = Path(__file__).parent / "results" / "equation8.json"


def literal_scores(model: FittedModel, X: np.ndarray) -> np.ndarray:
    """Return for each row and class the sum over the representatives of exp(Ω a + b)."""
    scores = np.empty((len(X), len(model.classes)))
    for rows in row_blocks(len(X), 10 * len(model.directions)):
        values = model.sphere_map.apply(X[rows], np.float64) @ model.directions.T
        model.kernel.apply(values)
        for k in range(len(model.classes)):
            terms = values * model.dual_coef[:, k] + model.intercept[k]
            scores[rows, k] = np.exp(np.minimum(terms, 700.0)).sum(axis=1)
    return scores


def measure(q: int, seed: int) -> dict[str, Any]:
    """Train once and read the decision rule both ways."""
    mnist = load_mnist()
    model = paper.raw(q, random_state=seed).fit(mnist.X_train, mnist.y_train)
    X_test = model[:-1].transform(mnist.X_test)
    literal = literal_scores(model[-1].model_, X_test).argmax(axis=1)
    return {
        "literal_error_percent": round(100 * float(np.mean(literal != mnist.y_test)), 4),
        "error_percent": round(
            100 * float(np.mean(model.predict(mnist.X_test) != mnist.y_test)), 4
        ),
    }


def main() -> None:
    """Measure what is missing."""
    jobs = [{"q": q, "seed": 0} for q in (20, 100)]
    run_jobs(RESULTS, jobs, lambda job: measure(**job))


if __name__ == "__main__":
    main()
