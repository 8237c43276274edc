"""Four points of the paper on real MNIST: error, time of each stage, peak memory.

Each point runs in a process of its own, so that its peak memory is its own, and is written as
soon as it ends: an interrupted run goes on where it was. Settings are the paper's and the test set
is used once per row; nothing is chosen by it.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from experiments.records import answer, forget_peak, in_fresh_process, memory_bytes, run_jobs
from kmeans_kernel import paper
from kmeans_kernel.datasets import load_mnist

RESULTS = Path(__file__).parent / "results" / "paper_points.json"

# features, Q, and the error in the paper's Figures 1 and 2 where they have that Q
POINTS = [("raw", 100, 3.01), ("raw", 1000, 1.54), ("raw_fft", 1000, 1.29), ("patches", 300, None)]
SEED = 0


def measure(features: str, q: int, seed: int, **_: object) -> dict[str, Any]:
    """Train and test one classifier in this process."""
    mnist = load_mnist()
    model = getattr(paper, features)(q, random_state=seed)
    forget_peak()
    loaded = memory_bytes(peak=False)
    start = perf_counter()
    model.fit(mnist.X_train, mnist.y_train)
    fitted = perf_counter()
    fit_peak = memory_bytes(peak=True)
    wrong = np.mean(model.predict(mnist.X_test) != mnist.y_test)
    tested = perf_counter()
    classifier = (model.classifier_ if features == "patches" else model)[-1]
    return {
        "error_percent": round(100 * float(wrong), 4),
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(tested - fitted, 2),
        "stage_seconds": {k: round(v, 2) for k, v in classifier.stage_seconds_.items()},
        "iterations": classifier.n_iter_.tolist(),
        "relative_residual": classifier.relative_residual_,
        "loaded_bytes": loaded,
        "fit_peak_bytes": fit_peak,
        "peak_bytes": memory_bytes(peak=True),
    }


def main() -> None:
    """Measure the points that have no row yet."""
    jobs = [
        {"features": features, "q": q, "seed": SEED, "paper_error_percent": paper_error}
        for features, q, paper_error in POINTS
    ]
    run_jobs(RESULTS, jobs, lambda job: in_fresh_process("experiments.paper_points", job))


if __name__ == "__main__":
    answer(measure) or main()
