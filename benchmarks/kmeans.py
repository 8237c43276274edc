"""Cosine K-means on one class of MNIST: ours, scikit-learn's Lloyd, and the bare products.

Interleaved and repeated in one process, the same number of iterations from the same first
centroids, as medians and ratios. Writes benchmarks/results/kmeans.json.
"""

from __future__ import annotations

import statistics
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.cluster import KMeans

from experiments.machine import facts
from experiments.paper_points import write_json
from kmeans_kernel._sphere import unit_rows
from kmeans_kernel._spherical_kmeans import cluster
from kmeans_kernel.datasets import load_mnist

RESULTS = Path(__file__).parent / "results" / "kmeans.json"
REPEATS = 3
ITERATIONS = 10


def contestants(X, q):
    """Return the three pieces of work, each a function without arguments."""
    first = X[np.random.default_rng(0).choice(len(X), q, replace=False)]

    def ours():
        cluster(X, q, init="random", tol=0.0, max_iter=ITERATIONS, rng=np.random.default_rng(0))

    def peer():
        KMeans(q, init=first, n_init=1, max_iter=ITERATIONS, tol=0.0, algorithm="lloyd").fit(X)

    def bare():
        for _ in range(ITERATIONS):
            X @ first.T

    return {"ours": ours, "scikit-learn": peer, "bare products": bare}


def measure(X, q) -> dict[str, object]:
    """Return the median seconds of each contestant, and ours against the others."""
    seconds: dict[str, list[float]] = {}
    for _ in range(REPEATS):
        for name, work in contestants(X, q).items():
            start = perf_counter()
            work()
            seconds.setdefault(name, []).append(perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "rows": len(X),
        "features": X.shape[1],
        "q": q,
        "iterations": ITERATIONS,
        "repeats": REPEATS,
        "median_seconds": {name: round(value, 4) for name, value in medians.items()},
        "times_faster_than_scikit_learn": round(medians["scikit-learn"] / medians["ours"], 2),
        "times_the_bare_products": round(medians["ours"] / medians["bare products"], 2),
    }


def main() -> None:
    """Measure the three sizes of Q."""
    warnings.simplefilter("ignore")  # all stop at max_iter, as meant
    mnist = load_mnist()
    X = unit_rows(mnist.X_train[mnist.y_train == 3].reshape(-1, 784))
    rows = []
    for q in (100, 1000, 2500):
        rows.append(measure(X, q))
        print(rows[-1])
    write_json(RESULTS, {"rows": rows, "machine": facts()})
    print(f"Written: {RESULTS}")


if __name__ == "__main__":
    main()
