"""MNIST as rows, without a word about images: what to give up for training in seconds.

    python -m experiments.rows

Trains on the first 50,000 training images, as pixels centred and of unit length, and predicts the
other 10,000; the test images have no part in it. `python -m benchmarks.targets --only "rows fit"`
sets what came of it against a support vector machine, on the test images.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline

from kmeans_kernel import AGOPProjection, KMeansKernelClassifier, PixelNormalizer
from kmeans_kernel.data import load_mnist
from kmeans_kernel.report._records import answer, in_fresh_process, run_jobs

RESULTS = Path(__file__).parent / "results" / "rows.json"
N_TRAIN = 50_000

# AGOP directions, None for plain pixels; representatives of each class; the share of these that are
# boundary rows; γ; ε.
Row = tuple[int | None, int, float, float, float]
ROWS: list[Row] = [
    (None, 500, 0.0, 2.0, 1e-6),
    (100, 500, 0.0, 2.0, 1e-6),
    (150, 500, 0.0, 2.0, 1e-6),
    (150, 500, 0.0, 4.0, 1e-6),
    (200, 500, 0.0, 2.0, 1e-6),
    (None, 1500, 0.0, 2.0, 1e-6),
    (150, 1500, 0.0, 2.0, 1e-6),
    (150, 1800, 0.0, 2.0, 1e-6),
    (150, 2000, 0.0, 2.0, 1e-6),
    (150, 1800, 0.0, 2.0, 1e-2),
    (150, 2000, 0.0, 2.0, 1e-2),
    (150, 2000, 0.0, 1.0, 1e-2),
    (200, 2000, 0.0, 2.0, 1e-2),
    (150, 2200, 0.0, 2.0, 1e-2),
    (150, 1800, 0.0, 1.0, 1e-2),
    (150, 1800, 0.0, 0.5, 1e-2),
    (100, 1800, 0.0, 1.0, 1e-2),
    (150, 1900, 0.0, 1.0, 1e-2),
    (None, 1500, 0.6, 2.0, 1e-2),
    (150, 1000, 0.5, 1.0, 1e-2),
    (150, 1000, 0.5, 2.0, 1e-2),
    (150, 1000, 0.6, 1.0, 1e-2),
    (150, 1500, 0.4, 1.0, 1e-2),
    (150, 1500, 0.6, 1.0, 1e-2),
    (150, 1500, 0.6, 2.0, 1e-2),
    (150, 1500, 0.6, 1.0, 1e-3),
    (150, 1500, 0.7, 1.0, 1e-2),
]


# What it led to: the lowest error that trains in half the time of a support vector machine.
CHOSEN: Row = (150, 1500, 0.4, 1.0, 1e-2)


def pipeline(
    n_components: int | None, q: int, boundary_fraction: float, gamma: float, epsilon: float
) -> Pipeline:
    """Return the classifier of a row; nothing is left to choose."""
    given: dict[str, Any] = {"lift": 0.0, "random_state": 0}
    metric = AGOPProjection(n_components or 1, gamma=2.0, regularization=1e-6, **given)
    return make_pipeline(
        "passthrough" if n_components is None else metric,
        KMeansKernelClassifier(
            q, boundary_fraction=boundary_fraction, kernel="rbf", gamma=gamma,
            fit_on="representatives", regularization=epsilon, feature_scales=None, **given,
        ),
    )  # fmt: skip


def measure(**row: Any) -> dict[str, Any]:
    """Train and predict."""
    found = load_mnist()
    pixels = PixelNormalizer().fit_transform(found.X_train)
    labels = found.y_train
    start = perf_counter()
    model = pipeline(**row).fit(pixels[:N_TRAIN], labels[:N_TRAIN])
    fitted = perf_counter()
    wrong = model.predict(pixels[N_TRAIN:]) != labels[N_TRAIN:]
    ended = perf_counter()
    return {
        "error_percent": round(100 * float(np.mean(wrong)), 3),
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(ended - fitted, 2),
    }


def main() -> None:
    """Measure what is missing."""
    names = ("n_components", "q", "boundary_fraction", "gamma", "epsilon")
    jobs = [dict(zip(names, row, strict=True)) for row in ROWS]
    run_jobs(RESULTS, jobs, lambda job: in_fresh_process("experiments.rows", job))


if __name__ == "__main__":
    answer(measure) or main()
