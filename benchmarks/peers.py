"""Ours and its peers on whole data sets.

    python -m benchmarks.peers           MNIST, Fashion-MNIST and digits
    python -m benchmarks.peers --quick   digits alone

Every job runs in a process of its own, again until it has five runs or half a minute is over, and
its median times and mean error are written when it ends; each run has its own seed, and a rerun
measures what is missing.
"""

from __future__ import annotations

from typing import Any

from benchmarks.contest import run_benchmark
from kmeans_kernel import datasets
from kmeans_kernel.peers import PACKAGES, jobs, measure
from kmeans_kernel.records import answer

SIZES = {  # our Q, Nystroem's components
    "digits": ([5, 10, 20, 50, 100], [100, 300]),
    "mnist": ([50, 100, 200, 500, 1000, 2000], [500, 1000, 3000]),
    "fashion_mnist": ([50, 100, 200, 500, 1000, 2000], [500, 1000, 3000]),
}


def measure_job(data: str, method: str, size: int | None) -> dict[str, Any]:
    """Measure one classifier on one data set, in this process."""
    sets = getattr(datasets, f"load_{data}")()
    return measure(sets, method, size, enough_runs=5, enough_seconds=30.0)


def _jobs(quick: bool) -> list[dict[str, Any]]:
    names = ["digits"] if quick else list(SIZES)
    return [job for name in names for job in jobs(name, *SIZES[name])]


if __name__ == "__main__":
    answer(measure_job) or run_benchmark("peers", __doc__, _jobs, PACKAGES)
