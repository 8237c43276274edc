"""What to look at in an image: features compared on a validation split of the training images.

    python -m experiments.images

Trained on the first 50,000 training images of MNIST and of Fashion-MNIST, tested on the other
10,000; the test images are not touched. `image_classifier` has what came out best for both.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline

from kmeans_kernel import Deskewer, KMeansKernelClassifier, OrientedGradients, PixelNormalizer
from kmeans_kernel.datasets import load_fashion_mnist, load_mnist
from kmeans_kernel.records import answer, in_fresh_process, run_jobs

RESULTS = Path(__file__).parent / "results" / "images.json"

LOADERS = {"mnist": load_mnist, "fashion_mnist": load_fashion_mnist}
N_TRAIN = 50_000

BASE: dict[str, Any] = {
    "deskew": False, "orientations": 8, "blur": 1.5, "stride": 2, "kernel": "gaussian", "q": 100,
}  # fmt: skip

# One thing is changed at a time.
CHANGES: list[dict[str, Any]] = [
    {},
    {"orientations": 0},
    {"deskew": True},
    {"orientations": 6},
    {"orientations": 12},
    {"blur": 1.0},
    {"blur": 2.0},
    {"stride": 3},
    {"kernel": "poly"},
    {"q": 300},
]


def pipeline(
    deskew: bool, orientations: int, blur: float, stride: int, kernel: str, q: int, seed: int
) -> Pipeline:
    """Return the classifier of a row; no orientations are plain pixels."""
    steps: list[Any] = [Deskewer()] if deskew else []
    if orientations:
        steps.append(OrientedGradients(orientations, blur, stride))
    else:
        steps.append(PixelNormalizer())
    return make_pipeline(
        *steps,
        KMeansKernelClassifier(q, kernel=kernel, lift=0.0, random_state=seed),
    )


def measure(data: str, seed: int, **features: Any) -> dict[str, Any]:
    """Train on a part of the training images and test on the rest."""
    found = LOADERS[data]()
    X, y = found.X_train, found.y_train
    model = pipeline(**features, seed=seed)
    start = perf_counter()
    model.fit(X[:N_TRAIN], y[:N_TRAIN])
    fitted = perf_counter()
    wrong = model.predict(X[N_TRAIN:]) != y[N_TRAIN:]
    classifier = model[-1]
    return {
        "validation_error_percent": round(100 * float(np.mean(wrong)), 3),
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(perf_counter() - fitted, 2),
        "stage_seconds": {k: round(v, 2) for k, v in classifier.stage_seconds_.items()},
        "gamma": classifier.gamma_,
        "regularization": classifier.regularization_,
        "held_out_error_percent": round(100 * float(classifier.held_out_error_), 3),
    }


def main() -> None:
    """Measure what is missing."""
    jobs = [{"data": data, "seed": 0, **BASE, **change} for change in CHANGES for data in LOADERS]
    run_jobs(RESULTS, jobs, lambda job: in_fresh_process("experiments.images", job))


if __name__ == "__main__":
    answer(measure) or main()
