"""What to look at in an image: features compared on a validation split of the training images.

    python -m experiments.images          the comparison, on training images alone
    python -m experiments.images --test   what came of it, `image_classifier()`, on the test images
    python -m experiments.images --moved  with 300 representatives, and moved copies to train on

The comparison trains on the first 50,000 training images of MNIST and of Fashion-MNIST and
predicts the other 10,000. The test images are for the classifier that it led to, trained on all
60,000 with the same settings for both.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline, make_pipeline

from kmeans_kernel import (
    Deskewer,
    EdgePatterns,
    KMeansKernelClassifier,
    OrientedGradients,
    PixelNormalizer,
    image_classifier,
)
from kmeans_kernel.data import load_fashion_mnist, load_mnist
from kmeans_kernel.report._records import answer, in_fresh_process, run_jobs

FOLDER = Path(__file__).parent / "results"
RESULTS = FOLDER / "images.json"
TEST_RESULTS = FOLDER / "images_test.json"
MOVED_RESULTS = FOLDER / "images_moved.json"

LOADERS = {"mnist": load_mnist, "fashion_mnist": load_fashion_mnist}
N_TRAIN = 50_000

# Features; whether images are deskewed; representatives of each class; the share of these that are
# boundary rows.
ROWS: list[tuple[str, bool, int, float]] = [
    ("pixels", False, 100, 0.0),
    ("edges, directions blunt", False, 100, 0.0),
    ("edges", False, 100, 0.0),
    ("edges", True, 100, 0.0),
    ("patterns", True, 100, 0.0),
    ("twice the patterns", True, 100, 0.0),
    ("patterns", True, 300, 0.0),
    ("patterns", True, 1000, 0.0),
    ("patterns", True, 1000, 0.7),
]


def pipeline(features: str, upright: bool, q: int, boundary_fraction: float) -> Pipeline:
    """Return the classifier of a row."""
    steps: dict[str, Any] = {
        "pixels": PixelNormalizer(),
        "edges, directions blunt": OrientedGradients(sharpness=1),
        "edges": OrientedGradients(),
        "patterns": EdgePatterns(random_state=0),
        "twice the patterns": EdgePatterns(256, random_state=0),
    }
    return make_pipeline(
        *([Deskewer()] if upright else []),
        steps[features],
        KMeansKernelClassifier(
            q, boundary_fraction=boundary_fraction, loss="squared", lift=0.0, random_state=0
        ),
    )


def moved(images: npt.NDArray[Any], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return images moved by a pixel, each up, down, left or right, as chance will have it."""
    out = np.empty_like(images)
    ways = rng.integers(0, 4, len(images))
    for way, (axis, step) in enumerate(((1, 1), (1, -1), (2, 1), (2, -1))):
        chosen = ways == way
        out[chosen] = np.roll(images[chosen], step, axis)  # the margin is empty
    return out


def measure(data: str, test: bool = False, copies: int = 0, **row: Any) -> dict[str, Any]:
    """Train and predict: on the validation split, or the final classifier on the test images."""
    found = LOADERS[data]()
    X, y = found.X_train, found.y_train
    if copies:
        rng = np.random.default_rng(0)
        train = np.concatenate([X, *(moved(X, rng) for _ in range(copies))]), np.tile(y, copies + 1)
        rest, model = (found.X_test, found.y_test), image_classifier(row["q"], random_state=0)
        model.set_params(kmeanskernelclassifier__boundary_fraction=0.0)
    elif test:
        train, rest = (X, y), (found.X_test, found.y_test)
        model = image_classifier(random_state=0)
    else:
        train, rest = (X[:N_TRAIN], y[:N_TRAIN]), (X[N_TRAIN:], y[N_TRAIN:])
        model = pipeline(**row)
    start = perf_counter()
    model.fit(*train)
    fitted = perf_counter()
    scores = model.decision_function(rest[0])
    ended = perf_counter()
    classifier = model[-1]
    wrong = classifier.classes_[scores.argmax(axis=1)] != rest[1]
    return {
        "error_percent": round(100 * float(np.mean(wrong)), 3),
        "n_features": classifier.n_features_in_,
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(ended - fitted, 2),
        "stage_seconds": {k: round(v, 2) for k, v in classifier.stage_seconds_.items()},
        "gamma": classifier.gamma_,
        "regularization": classifier.regularization_,
    }


def main() -> None:
    """Measure what is missing."""
    if sys.argv[1:] == ["--test"]:
        results, jobs = TEST_RESULTS, [{"data": data, "test": True} for data in LOADERS]
    elif sys.argv[1:] == ["--moved"]:
        results, jobs = MOVED_RESULTS, [{"data": "mnist", "q": 300, "copies": 2}]
    else:
        results, jobs = RESULTS, [
            {
                "data": data, "features": features, "upright": upright, "q": q,
                "boundary_fraction": boundary_fraction,
            }
            for features, upright, q, boundary_fraction in ROWS
            for data in LOADERS
        ]  # fmt: skip
    run_jobs(results, jobs, lambda job: in_fresh_process("experiments.images", job))


if __name__ == "__main__":
    answer(measure) or main()
