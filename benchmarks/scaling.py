"""Time and memory against the number of rows, of representatives and of features.

    python -m benchmarks.scaling           minutes
    python -m benchmarks.scaling --quick   small sizes

One of the three grows, the others stay; the solve is float32 throughout. Rows are MNIST's pixels;
for other numbers of features they are multiplied by a random matrix. K-means does the same number
of iterations everywhere. Every job runs in a process of its own, and its medians are written when
it ends.
"""

from __future__ import annotations

import statistics
import warnings
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.contest import run_benchmark
from kmeans_kernel import PixelNormalizer, paper
from kmeans_kernel.data import load_mnist
from kmeans_kernel.report._records import answer, forget_peak, memory_bytes

ITERATIONS = 10
RUNS = 3

# Which of n, Q and d grows, its values, and the values of the others.
GROWING: list[tuple[str, list[int], dict[str, int]]] = [
    ("n", [7500, 15_000, 30_000, 60_000], {"q": 250, "d": 784}),
    ("q", [250, 500, 1000, 2000], {"n": 60_000, "d": 784}),
    ("d", [196, 392, 784, 1568, 3136], {"n": 20_000, "q": 250}),
]
QUICK: list[tuple[str, list[int], dict[str, int]]] = [
    ("n", [2000, 4000], {"q": 50, "d": 784}),
    ("q", [50, 100], {"n": 4000, "d": 784}),
    ("d", [196, 784], {"n": 4000, "q": 50}),
]


def jobs(growing: list[tuple[str, list[int], dict[str, int]]]) -> list[dict[str, Any]]:
    """Return one job for each value of what grows."""
    return [
        {"grows": name, "n": 0, "q": 0, "d": 0, **others, name: value}
        for name, values, others in growing
        for value in values
    ]


def measure(n: int, q: int, d: int, **_: object) -> dict[str, Any]:
    """Train and test in this process; medians of three."""
    X_train, y_train, X_test = data(n, d)
    forget_peak()
    loaded = memory_bytes(peak=False)
    runs: list[dict[str, float]] = []
    for _ in range(RUNS):
        classifier = paper.classifier(q, random_state=0)
        classifier.set_params(tol=0.0, max_iter=ITERATIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # K-means is meant to stop there
            classifier.fit(X_train, y_train)
        start = perf_counter()
        classifier.predict(X_test)
        runs.append({**classifier.stage_seconds_, "predict": perf_counter() - start})
    seconds = {stage: round(statistics.median(run[stage] for run in runs), 5) for stage in runs[0]}
    return {"seconds": seconds, "bytes_above_data": memory_bytes(peak=True) - loaded}


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return n rows of d features with their labels, and 10,000 rows to predict."""
    mnist = load_mnist()
    pixels = PixelNormalizer().fit(mnist.X_train)
    X_train, X_test = pixels.transform(mnist.X_train[:n]), pixels.transform(mnist.X_test)
    if d != X_train.shape[1]:
        mix = np.random.default_rng(0).normal(size=(X_train.shape[1], d)).astype(np.float32)
        X_train, X_test = X_train @ mix, X_test @ mix
    return X_train, mnist.y_train[:n], X_test


def fitted_exponent(values: list[float], measured: list[float]) -> float:
    """Return the slope of the line through the logarithms."""
    return float(np.polyfit(np.log(values), np.log(measured), 1)[0])


if __name__ == "__main__":
    answer(measure) or run_benchmark(
        "scaling", __doc__, lambda quick: jobs(QUICK if quick else GROWING)
    )
