"""What the paper's Figure 2 may have been made with: K-means stopped early.

    python -m experiments.patch_variants

With few representatives the figure lies below what the paper's text gives (experiments/figure2.py,
which has the patch size of the published script, too). Here K-means stops after few iterations.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from kmeans_kernel import paper
from kmeans_kernel.data import load_mnist
from kmeans_kernel.report._records import answer, in_fresh_process, run_jobs
from kmeans_kernel.report.reproduction import error_percents

RESULTS = Path(__file__).parent / "results" / "patch_variants.json"

PATCH = 25
QS = [100, 250, 500, 1000]
SEEDS = [0, 1]


def measure(max_iter: int, q: int, seed: int) -> dict[str, Any]:
    """Train and test one reading of the method in this process."""
    mnist = load_mnist()
    model = paper.patches(q, PATCH, random_state=seed)
    model.set_params(classifier__kmeanskernelclassifier__max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # as meant
        model.fit(mnist.X_train, mnist.y_train)
    return error_percents(model, mnist.X_test, mnist.y_test)


def main() -> None:
    """Measure what is missing."""
    jobs = [{"max_iter": n, "q": q, "seed": seed} for q in QS for n in (1, 3) for seed in SEEDS]
    run_jobs(RESULTS, jobs, lambda job: in_fresh_process("experiments.patch_variants", job))


if __name__ == "__main__":
    answer(measure) or main()
