"""Estimated cost of a fit: operations, memory, network traffic and time.

The counts follow from the sizes. An iteration of K-means computes the cosines of each row with the
q centroids of its class, 2nqd operations. The fit to all rows computes the n × m kernel matrix and
its Gram matrix in one pass, 2nm(d + m) operations. The solve factors the m × m matrix on one
machine, m³/3 operations per factor. `measure_rates` times the library's own functions on one core.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy.linalg import cholesky

from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.clustering.representatives import NearestSums
from kmeans_kernel.core.kernels.kernels import Gaussian
from kmeans_kernel.core.solvers.nystrom import NormalEquations, NystromBasis, whitened_blocks
from kmeans_kernel.data._blocks import BLOCK_BYTES
from kmeans_kernel.utils.threads import one_blas_thread

# Largest sizes to time: from these on the rate in operations per second is about constant.
_MAX_FEATURES, _MAX_CENTROIDS, _MAX_REPRESENTATIVES, _MAX_CLASSES = 2048, 500, 1000, 10

# Values of the timed block, rows × features: 16 MB in float32.
_TIMED_VALUES = 4_000_000

_FLOAT32, _FLOAT64 = 4, 8

# Memory of a block in multiples of its bytes: the block, its unit rows sorted by class, and a
# temporary float64 copy (which counts twice).
_COPIES = 4

# m × m matrices in memory at once: the factor, the sum, and the sum over the current block.
_MATRICES = 3


@dataclass(frozen=True)
class Problem:
    """Sizes of a fit.

    Attributes
    ----------
    rows, features, classes : n, d, K
    q : representatives per class
    workers, threads : number of processes, and of cores per process
    iterations : iterations of K-means
    on_samples : True if the coefficients are fitted to all rows, False for the representatives only
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
        """Number of representatives of all classes."""
        return self.q * self.classes

    @property
    def cores(self) -> int:
        """Number of cores of all workers."""
        return self.workers * self.threads

    @property
    def kmeans_operations(self) -> float:
        """Floating-point operations of one K-means iteration."""
        return 2.0 * self.rows * self.q * self.features

    @property
    def fit_operations(self) -> float:
        """Floating-point operations of the fit to all rows."""
        if not self.on_samples:
            return 0.0
        return 2.0 * self.rows * self.m * (self.features + self.m)

    @property
    def solve_operations(self) -> float:
        """Floating-point operations of the m × m kernel matrix and its Cholesky factors."""
        factors = (2 if self.on_samples else 1) * float(self.m) ** 3 / 3
        return factors + float(self.m) ** 2 * self.features

    @property
    def bytes_per_worker(self) -> float:
        """Peak memory of a worker: blocks and their copies, representatives, m × m matrices."""
        block = _COPIES * self.threads * min(BLOCK_BYTES, self.bytes_of_rows)
        basis = self.m * (self.features + 1) * (_FLOAT32 + _FLOAT64)
        return block + basis + _MATRICES * self.threads * _FLOAT64 * float(self.m) ** 2

    @property
    def bytes_of_rows(self) -> float:
        """Size of all rows in float32."""
        return self.rows * self.features * _FLOAT32

    @property
    def network_bytes_per_iteration(self) -> float:
        """Network bytes of an iteration: centroids to every worker, and their sums back."""
        numbers = float(self.m) * (self.features + 1)
        return self.workers * numbers * (_FLOAT32 + _FLOAT64) if self.workers > 1 else 0.0

    @property
    def network_bytes_of_fit(self) -> float:
        """Network bytes of the fit to all rows: a factor to every worker, and its sums back."""
        if not self.on_samples:
            return 0.0
        return self.workers * 2.0 * _FLOAT64 * float(self.m) ** 2 if self.workers > 1 else 0.0


@dataclass(frozen=True)
class Rates:
    """Rates of one core, and of the network.

    Attributes
    ----------
    kmeans, fit, solve : operations per second of one core, at the sizes of the problem
    network : bytes per second between two machines (default: 10 Gbit/s); not measured
    """

    kmeans: float
    fit: float
    solve: float
    network: float = 1.25e9


@dataclass(frozen=True)
class Plan:
    """Estimated cost of a fit.

    Attributes
    ----------
    problem, rates : the sizes and rates that the estimate is for
    seconds : by stage: "kmeans", "fit", "solve", "network", and their sum "all"
    bottleneck : the stage or resource that limits the fit, with a remedy
    """

    problem: Problem
    rates: Rates
    seconds: dict[str, float]
    bottleneck: str

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate as values that JSON can hold."""
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
    """Estimate the cost of a fit.

    Parameters
    ----------
    problem : sizes of the fit
    rates : rates of a core, as `measure_rates` returns them
    memory : bytes of memory of a worker; None if unlimited

    Returns
    -------
    Plan
    """
    network = problem.iterations * problem.network_bytes_per_iteration
    network += problem.network_bytes_of_fit
    # Tree reduction: log2(workers) rounds, and the transfers of a round run in parallel.
    rounds = np.log2(max(2, problem.workers)) / max(1, problem.workers)
    seconds = {
        "kmeans": (1 + problem.iterations) * problem.kmeans_operations
        / (problem.cores * rates.kmeans),
        "fit": problem.fit_operations / (problem.cores * rates.fit),
        "solve": problem.solve_operations / (problem.threads * rates.solve),
        "network": float(network * rounds / rates.network),
    }  # fmt: skip
    return Plan(problem, rates, {**seconds, "all": sum(seconds.values())}, _bottleneck(
        problem, seconds, memory
    ))  # fmt: skip


def _bottleneck(problem: Problem, seconds: dict[str, float], memory: float | None) -> str:
    if memory is not None and problem.bytes_per_worker > memory:
        fits = bisect_right(range(1, problem.q), memory, key=lambda q: _bytes_with_q(problem, q))
        if not fits:
            return (
                "memory: even q = 1 needs more than a worker has; use fewer threads per worker, or "
                "workers with more memory"
            )
        return (
            f"memory: the representatives and the {problem.m} × {problem.m} matrices need more "
            f"than a worker has; q = {fits} would fit"
        )
    slowest = max(seconds, key=lambda name: seconds[name])
    advice = {
        "kmeans": "more workers, fewer iterations (a higher tol), or a lower q",
        "fit": "more workers, or a lower q: the time grows with its square",
        "solve": "a lower q: the time grows with its cube, on one machine",
        "network": "fewer, larger workers",
    }
    return f"{slowest}: {advice[slowest]}"


def _bytes_with_q(problem: Problem, q: int) -> float:
    """Return the peak memory of a worker with `q` representatives per class."""
    return replace(problem, q=q).bytes_per_worker


def measure_rates(problem: Problem, network: float = 1.25e9) -> Rates:
    """Measure the rates of one core of this machine, in a few seconds.

    Parameters
    ----------
    problem : sizes of the fit; smaller sizes stand in for very large ones
    network : bytes per second between two machines (default: 10 Gbit/s)

    Returns
    -------
    Rates
    """
    d = min(problem.features, _MAX_FEATURES)
    q, m = min(problem.q, _MAX_CENTROIDS), min(problem.m, _MAX_REPRESENTATIVES)
    rng = np.random.default_rng(0)
    K = min(problem.classes, _MAX_CLASSES)
    n = max(2 * q * K, min(50_000, _TIMED_VALUES // d))
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += 3 * rng.standard_normal((max(2, q), d), dtype=np.float32)[rng.integers(max(2, q), size=n)]
    sphere_map = SphereMap(float(np.sqrt(d)))
    data = LabelledRows(X, rng.integers(0, K, n), np.arange(K), None, sphere_map)
    centroids = {k: sphere_map.apply(X[k * q : (k + 1) * q], np.float32) for k in range(K)}
    some = data.at(np.arange(min(n, 8 * 1024)))
    landmarks = sphere_map.apply(rng.standard_normal((m, d)), np.float64)
    basis = NystromBasis.of(landmarks, Gaussian(1.0))
    matrix = basis.factor @ basis.factor.T
    with one_blas_thread(wanted=True):
        kmeans = _best_seconds(lambda: NearestSums(centroids)(data))
        fit = _best_seconds(lambda: NormalEquations.of(whitened_blocks(basis, some)))
        solve = _best_seconds(lambda: cholesky(matrix, lower=True, check_finite=False))
    return Rates(
        kmeans=2.0 * n * q * d / kmeans,
        fit=2.0 * len(some) * m * (d + m) / fit,
        solve=m**3 / 3 / solve,
        network=network,
    )


def _best_seconds(work: Callable[[], object], least: float = 0.5) -> float:
    """Return the seconds of the fastest run; runs are repeated for at least `least` seconds."""
    best, began = np.inf, perf_counter()
    while perf_counter() - began < least or best == np.inf:
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return float(best)
