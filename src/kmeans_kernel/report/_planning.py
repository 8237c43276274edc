"""What a fit will take: operations, memory, network and time, before it is begun.

Everything follows from the sizes. K-means looks at a row for every representative of its class, as
often as it iterates; the fit to all rows makes the kernel of a row with every representative and
adds its outer product to an m × m matrix, once; the solve factors that matrix on one machine. How
fast a core does each is measured here, with the functions that do the work.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy.linalg import cholesky

from kmeans_kernel.core.arrays.samples import Labelled, Placement
from kmeans_kernel.core.arrays.stream import NearestSums, SumOfMoments
from kmeans_kernel.core.kernels.kernels import Gaussian
from kmeans_kernel.core.solvers.nystrom import WhiteBasis
from kmeans_kernel.data._blocks import BLOCK_BYTES
from kmeans_kernel.utils.threads import one_blas_thread

# The largest sizes that are measured; beyond them, time is in proportion.
_MOST_FEATURES, _MOST_CENTROIDS, _MOST_REPRESENTATIVES, _MOST_CLASSES = 2048, 500, 1000, 10

# Rows of the block that is measured, in numbers.
_MEASURED_NUMBERS = 4_000_000

_FLOAT32, _FLOAT64 = 4, 8

# A block on the sphere, sorted by classes, and in float64 for a while: so many times its bytes.
_COPIES = 4

# Matrices of m × m that the fit holds at once: the factor, the sums, and a block's share of them.
_MATRICES = 3


@dataclass(frozen=True)
class Problem:
    """The sizes of a fit.

    Attributes
    ----------
    rows, features, classes : n, d, K
    q : representatives of each class
    workers, threads : how many processes, and the cores of each
    iterations : of K-means
    on_samples : whether the coefficients are fitted to all rows, or to the representatives
    """

    rows: float
    features: int
    classes: int
    q: int
    workers: int = 1
    threads: int = 1
    iterations: int = 30
    on_samples: bool = True

    @property
    def m(self) -> int:
        """All representatives."""
        return self.q * self.classes

    @property
    def cores(self) -> int:
        """All cores."""
        return self.workers * self.threads

    @property
    def kmeans_operations(self) -> float:
        """Multiplications and additions of one iteration."""
        return 2.0 * self.rows * self.q * self.features

    @property
    def fit_operations(self) -> float:
        """Those of the fit to all rows."""
        if not self.on_samples:
            return 0.0
        return 2.0 * self.rows * self.m * (self.features + self.m)

    @property
    def solve_operations(self) -> float:
        """Those of the factors of m × m, and of the kernel matrix."""
        factors = (2 if self.on_samples else 1) * float(self.m) ** 3 / 3
        return factors + float(self.m) ** 2 * self.features

    @property
    def bytes_per_worker(self) -> float:
        """What a worker holds at once: blocks and their copies, representatives, matrices."""
        block = _COPIES * self.threads * min(BLOCK_BYTES, self.bytes_of_rows)
        basis = self.m * (self.features + 1) * (_FLOAT32 + _FLOAT64)
        return block + basis + _MATRICES * self.threads * _FLOAT64 * float(self.m) ** 2

    @property
    def bytes_of_rows(self) -> float:
        """All rows, in float32."""
        return self.rows * self.features * _FLOAT32

    @property
    def network_bytes_per_iteration(self) -> float:
        """The representatives to every worker, and the sums of each back."""
        numbers = float(self.m) * (self.features + 1)
        return self.workers * numbers * (_FLOAT32 + _FLOAT64) if self.workers > 1 else 0.0

    @property
    def network_bytes_of_fit(self) -> float:
        """The factor to every worker, and its sums back."""
        if not self.on_samples:
            return 0.0
        return self.workers * 2.0 * _FLOAT64 * float(self.m) ** 2 if self.workers > 1 else 0.0


@dataclass(frozen=True)
class Rates:
    """What one core does in a second.

    Attributes
    ----------
    kmeans, fit, solve : operations, at the sizes of the problem
    network : bytes between two machines; given, not measured
    """

    kmeans: float
    fit: float
    solve: float
    network: float = 1.25e9


@dataclass(frozen=True)
class Plan:
    """What a fit will take.

    Attributes
    ----------
    seconds : of K-means, the fit, the solve, and the network, and of all
    bottleneck : what most of the time or the memory goes into, and what to do about it
    """

    problem: Problem
    rates: Rates
    seconds: dict[str, float]
    bottleneck: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as numbers and words."""
        problem = self.problem
        return {
            "problem": asdict(problem),
            "representatives": problem.m,
            "operations": {
                "kmeans_iteration": problem.kmeans_operations,
                "fit": problem.fit_operations,
                "solve": problem.solve_operations,
            },
            "bytes_of_rows": problem.bytes_of_rows,
            "bytes_per_worker": problem.bytes_per_worker,
            "network_bytes_per_iteration": problem.network_bytes_per_iteration,
            "network_bytes_of_fit": problem.network_bytes_of_fit,
            "rates_of_a_core": asdict(self.rates),
            "seconds": self.seconds,
            "bottleneck": self.bottleneck,
        }


def plan(problem: Problem, rates: Rates, memory: float | None = None) -> Plan:
    """Work out what a fit will take; `memory` is what a worker has, in bytes."""
    network = problem.iterations * problem.network_bytes_per_iteration
    network += problem.network_bytes_of_fit
    # A tree: the transfers of different pairs of workers go on at the same time.
    levels = np.log2(max(2, problem.workers)) / max(1, problem.workers)
    seconds = {
        "kmeans": (1 + problem.iterations) * problem.kmeans_operations
        / (problem.cores * rates.kmeans),
        "fit": problem.fit_operations / (problem.cores * rates.fit),
        "solve": problem.solve_operations / (problem.threads * rates.solve),
        "network": float(network * levels / rates.network),
    }  # fmt: skip
    return Plan(problem, rates, {**seconds, "all": sum(seconds.values())}, _bottleneck(
        problem, seconds, memory
    ))  # fmt: skip


def _bottleneck(problem: Problem, seconds: dict[str, float], memory: float | None) -> str:
    if memory is not None and problem.bytes_per_worker > memory:
        fits = bisect_right(range(1, problem.q), memory, key=lambda q: bytes_with(problem, q))
        if not fits:
            return (
                "memory: even q = 1 needs more than a worker has; use fewer threads, or larger ones"
            )
        return (
            f"memory: representatives and matrices of {problem.m} × {problem.m} need more than a "
            f"worker has; q = {fits} would fit"
        )
    slowest = max(seconds, key=lambda name: seconds[name])
    advice = {
        "kmeans": "more workers, fewer iterations (a higher tol), or a lower q",
        "fit": "more workers, or a lower q: it grows with its square",
        "solve": "a lower q: it grows with its cube, on one machine",
        "network": "fewer, larger workers",
    }
    return f"{slowest}: {advice[slowest]}"


def bytes_with(problem: Problem, q: int) -> float:
    """Return what a worker would hold with so many representatives of each class."""
    return replace(problem, q=q).bytes_per_worker


def measure_rates(problem: Problem, network: float = 1.25e9) -> Rates:
    """Measure what one core of this machine does, in a few seconds."""
    d = min(problem.features, _MOST_FEATURES)
    q, m = min(problem.q, _MOST_CENTROIDS), min(problem.m, _MOST_REPRESENTATIVES)
    rng = np.random.default_rng(0)
    K = min(problem.classes, _MOST_CLASSES)
    n = max(2 * q * K, min(50_000, _MEASURED_NUMBERS // d))
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += 3 * rng.standard_normal((max(2, q), d), dtype=np.float32)[rng.integers(max(2, q), size=n)]
    placement = Placement(float(np.sqrt(d)))
    data = Labelled(X, rng.integers(0, K, n), np.arange(K))
    centroids = {k: placement.put(X[k * q : (k + 1) * q], np.float32) for k in range(K)}
    some = data.at(np.arange(min(n, 8 * 1024)))
    basis = WhiteBasis.of(placement.put(rng.standard_normal((m, d)), np.float64), Gaussian(1.0))
    matrix = basis.factor @ basis.factor.T
    with one_blas_thread(wanted=True):
        kmeans = _seconds(lambda: NearestSums(centroids, placement)(data))
        fit = _seconds(lambda: SumOfMoments(basis, placement)(some))
        solve = _seconds(lambda: cholesky(matrix, lower=True, check_finite=False))
    return Rates(
        kmeans=2.0 * n * q * d / kmeans,
        fit=2.0 * len(some) * m * (d + m) / fit,
        solve=m**3 / 3 / solve,
        network=network,
    )


def _seconds(work: Callable[[], object], least: float = 0.5) -> float:
    """Return the seconds of the fastest of some runs."""
    best, began = np.inf, perf_counter()
    while perf_counter() - began < least or best == np.inf:
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return float(best)
