"""What the paper's Figure 2 may have been made with: fewer patches, K-means stopped early.

    python -m experiments.patch_variants

With few representatives the figure lies below what the paper's text gives (experiments/figure2.py,
which has the patch size of the published script, too). Here K-means stops after few iterations; or
the corners of the patches run over three rows and columns, as the indices in the text say, and not
over four, as its number of patches does.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from kmeans_kernel import paper
from kmeans_kernel.datasets import load_mnist
from kmeans_kernel.records import answer, in_fresh_process, run_jobs
from kmeans_kernel.reproduction import error_percents

RESULTS = Path(__file__).parent / "results" / "patch_variants.json"

UNTIL_CONVERGED = 300
PATCH = 25
VARIANTS: list[dict[str, Any]] = [
    {"max_iter": 1},
    {"max_iter": 3},
    {"max_iter": UNTIL_CONVERGED, "corners": 3},
]
QS = [100, 250, 500, 1000]
SEEDS = [0, 1]


def measure(max_iter: int, q: int, seed: int, corners: int = 4) -> dict[str, Any]:
    """Train and test one reading of the method in this process."""
    side = PATCH + corners - 1
    mnist = load_mnist()
    model = paper.patches(q, PATCH, random_state=seed)
    model.set_params(classifier__kmeanskernelclassifier__max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # as meant
        model.fit(mnist.X_train[:, :side, :side], mnist.y_train)
    return error_percents(model, mnist.X_test[:, :side, :side], mnist.y_test)


def main() -> None:
    """Measure what is missing."""
    jobs = [{**variant, "q": q, "seed": seed} for q in QS for variant in VARIANTS for seed in SEEDS]
    run_jobs(RESULTS, jobs, lambda job: in_fresh_process("experiments.patch_variants", job))


if __name__ == "__main__":
    answer(measure) or main()
