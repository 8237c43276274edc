"""Four points of the paper on real MNIST: error, time of each stage, peak memory.

Each point runs in a process of its own, so that its peak memory is its own, and is written as
soon as it ends: an interrupted run goes on where it was. Settings are the paper's and the test set
is used once per row; nothing is chosen by it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

RESULTS = Path(__file__).parent / "results" / "paper_points.json"

# features, Q, and the error in the paper's Figures 1 and 2 where they have that Q
POINTS = [("raw", 100, 3.01), ("raw", 1000, 1.54), ("raw_fft", 1000, 1.29), ("patches", 300, None)]
SEED = 0


def measure(features: str, q: int) -> dict[str, object]:
    """Train and test one classifier in this process."""
    import numpy as np

    from experiments.machine import facts, peak_memory_bytes
    from kmeans_kernel import paper
    from kmeans_kernel.datasets import load_mnist

    mnist = load_mnist()
    model = getattr(paper, features)(q, random_state=SEED)
    start = perf_counter()
    model.fit(mnist.X_train, mnist.y_train)
    fitted = perf_counter()
    peak = peak_memory_bytes()
    wrong = np.mean(model.predict(mnist.X_test) != mnist.y_test)
    tested = perf_counter()
    classifier = (model.classifier_ if features == "patches" else model)[-1]
    return {
        "features": features,
        "q": q,
        "seed": SEED,
        "error_percent": round(100 * float(wrong), 4),
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(tested - fitted, 2),
        "stage_seconds": {k: round(v, 2) for k, v in classifier.stage_seconds_.items()},
        "iterations": classifier.n_iter_.tolist(),
        "relative_residual": classifier.relative_residual_,
        "fit_peak_bytes": peak,
        "machine": facts(),
    }


def main() -> None:
    """Measure the points that have no row yet."""
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    done = {(row["features"], row["q"]) for row in rows}
    for features, q, paper_error in POINTS:
        if (features, q) in done:
            print(f"{features} {q}: already measured")
            continue
        command = [sys.executable, "-m", "experiments.paper_points", features, str(q)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603
        row = {**json.loads(output), "paper_error_percent": paper_error}
        rows.append(row)
        write_json(RESULTS, rows)
        print(f"{features} {q}: {row['error_percent']:.2f} %, {row['fit_seconds']} s")


def write_json(path: Path, content: object) -> None:
    """Write to a temporary name, then rename."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    temporary.replace(path)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
