"""Ideas for speed, each timed with and without: what was kept, and what was dropped and why.

    python -m benchmarks.tried

Writes benchmarks/results/tried.json, which docs/performance.md tells of. The code of what was
dropped lives here, so that the figures can be checked and a better try can begin from it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, solve_triangular
from sklearn.datasets import make_classification
from sklearn.utils import Bunch

from benchmarks.contest import RESULTS, median_seconds
from kmeans_kernel import KMeansKernelClassifier, paper
from kmeans_kernel.core.clustering import spherical_kmeans as _spherical_kmeans
from kmeans_kernel.core.clustering.assignment import assign
from kmeans_kernel.core.clustering.spherical_kmeans import cluster
from kmeans_kernel.core.kernels.gram import ExactGram, gram_matrix
from kmeans_kernel.core.kernels.kernels import Polynomial
from kmeans_kernel.core.solvers import blas
from kmeans_kernel.core.solvers.dual import solve_on_representatives
from kmeans_kernel.data import load_mnist
from kmeans_kernel.report._records import run_jobs
from kmeans_kernel.utils import threads
from kmeans_kernel.utils.threads import ThreadExecutor, one_blas_thread

REPEATS = 3

Timed = tuple[Callable[[], object], Callable[[], object]]


def features(mnist: Bunch, name: str) -> np.ndarray:
    """Return the rows that one of the paper's classifiers clusters."""
    rows: np.ndarray = getattr(paper, name)(1)[:-1].fit_transform(mnist.X_train)
    return rows


def cluster_rows(X: np.ndarray, q: int) -> None:
    """Cluster with the paper's settings."""
    cluster(X, q, init="random", tol=1e-6, max_iter=300, rng=np.random.default_rng(0))


def side_by_side(mnist: Bunch, name: str, q: int) -> Timed:
    """Cluster the ten classes one after another, or side by side."""
    X = features(mnist, name)
    classes = [X[mnist.y_train == k] for k in range(10)]
    return (
        lambda: [cluster_rows(rows, q) for rows in classes],
        lambda: ThreadExecutor().map(lambda rows: cluster_rows(rows, q), classes),
    )


def bounds(mnist: Bunch, name: str, q: int) -> Timed:
    """Cluster one class with every product, or skipping by the bounds on angles."""
    X = features(mnist, name)[mnist.y_train == 3]

    def dense() -> None:
        kept = _spherical_kmeans.reassign
        _spherical_kmeans.reassign = lambda X, centroids, *_: assign(X, centroids)
        try:
            cluster_rows(X, q)
        finally:
            _spherical_kmeans.reassign = kept

    return dense, lambda: cluster_rows(X, q)


def row_threads(mnist: Bunch, name: str, q: int) -> Timed:
    """Assign the rows of one class with threaded products, or blocks of rows in threads."""
    X = features(mnist, name)[mnist.y_train == 3]
    centroids = X[:q].copy()
    blocks = np.array_split(X, 2 * ThreadExecutor().count)
    return (
        lambda: [assign(X, centroids) for _ in range(10)],
        lambda: [
            ThreadExecutor().map(lambda rows: assign(rows, centroids), blocks) for _ in range(10)
        ],
    )


def tail_bound(mnist: Bunch, name: str, q: int, n_axes: int = 256) -> Timed:
    """Assign with all features; or on the principal axes, and in full where these leave doubt.

    With x = (head, tail) on the principal axes, ⟨x, c⟩ is at most ⟨head, head⟩ plus the product of
    the lengths of the tails. The rotation is made beforehand and costs nothing here.
    """
    X = features(mnist, name)[mnist.y_train == 3]
    _, axes = eigh(
        (X.T @ X).astype(np.float64), subset_by_index=[X.shape[1] - n_axes, X.shape[1] - 1]
    )
    heads = X @ axes.astype(np.float32)
    tails = np.sqrt(np.maximum(1 - np.einsum("ij,ij->i", heads, heads), 0))
    chosen = np.random.default_rng(0).choice(len(X), q, replace=False)
    centroids = X[chosen]

    def by_heads() -> np.ndarray:
        products = heads @ heads[chosen].T
        likely = products.argmax(axis=1)
        best = np.einsum("ij,ij->i", X, centroids[likely])
        products += tails[:, np.newaxis] * tails[chosen]
        rows, others = np.nonzero(products > best[:, np.newaxis])
        labels = likely
        for start in range(0, len(rows), 20_000):
            some = slice(start, start + 20_000)
            exact = np.einsum("ij,ij->i", X[rows[some]], centroids[others[some]])
            better = exact > best[rows[some]]
            for row, other, cosine in zip(
                rows[some][better], others[some][better], exact[better], strict=True
            ):
                if cosine > best[row]:
                    best[row], labels[row] = cosine, other
        return labels

    if (by_heads() != assign(X, centroids).labels).mean() > 1e-3:
        raise RuntimeError("the bound on the tails lost a label")
    return lambda: assign(X, centroids), by_heads


def conjugate_gradients(mnist: Bunch, name: str, m: int, rank: int = 1500) -> Timed:
    """Solve by Cholesky, or by conjugate gradients preconditioned by some of the columns."""
    X = features(mnist, name)
    chosen = np.concatenate([np.flatnonzero(mnist.y_train == k)[: m // 10] for k in range(10)])
    directions, kernel, executor = X[chosen], Polynomial(4), ThreadExecutor()
    targets = np.eye(10)[mnist.y_train[chosen]]
    whole = (directions @ directions.T) ** 4
    np.fill_diagonal(whole, 1 + 1e-6)

    def factored() -> None:
        solve_on_representatives(
            lambda dtype: gram_matrix(directions, kernel, dtype, executor),
            ExactGram(directions, kernel, executor),
            targets, 1e-6, executor=executor,
        )  # fmt: skip

    def iterated() -> None:
        gram_matrix(directions, kernel, np.float32, executor)  # so that both make it
        some = np.sort(np.random.default_rng(0).choice(m, rank, replace=False))
        corner = whole[np.ix_(some, some)] + 1e-5 * np.eye(rank, dtype=np.float32)
        columns = solve_triangular(np.linalg.cholesky(corner), whole[some], lower=True).T
        left_over = np.float32(np.mean(1 - np.einsum("ij,ij->i", columns, columns)))
        inner = cho_factor(columns.T @ columns + left_over * np.eye(rank, dtype=np.float32))

        def precondition(V: np.ndarray) -> np.ndarray:
            return (V - columns @ cho_solve(inner, columns.T @ V)) / left_over

        right = np.hstack([targets, np.ones((m, 1))]).astype(np.float32)
        residual, solution = right.copy(), np.zeros_like(right)
        step = precondition(residual)
        direction, power = step.copy(), (residual * step).sum(axis=0)
        goal = 1e-6 * np.linalg.norm(right, axis=0)
        for _ in range(1000):
            product = whole @ direction
            length = power / (direction * product).sum(axis=0)
            solution += length * direction
            residual -= length * product
            if (np.linalg.norm(residual, axis=0) <= goal).all():
                break
            step = precondition(residual)
            power, before = (residual * step).sum(axis=0), power
            direction = step + power / before * direction
        else:
            raise RuntimeError("conjugate gradients did not arrive")

    return factored, iterated


def triangular_products(m: int, n: int, times: int) -> Timed:
    """Divide n columns by a float32 triangle of order m: by trsm, or by inverted blocks, on a core.

    This is how kernel values are whitened.
    """
    rng = np.random.default_rng(0)
    A = rng.normal(size=(2 * m, m))
    triangle = np.asfortranarray(np.linalg.cholesky(A.T @ A), dtype=np.float32)
    columns = np.asfortranarray(rng.normal(size=(m, n)), dtype=np.float32)

    def divide(fewest: int) -> None:
        kept, blas._MANY_COLUMNS = blas._MANY_COLUMNS, fewest
        try:
            with one_blas_thread(wanted=True):
                for _ in range(times):
                    blas.solve_lower(triangle, columns)
        finally:
            blas._MANY_COLUMNS = kept

    return lambda: divide(n + 1), lambda: divide(1)


@contextmanager
def busy(n_processes: int) -> Iterator[None]:
    """Keep processes busy beside the work inside, as a shared machine does."""
    beside = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_processes)
    ]
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.wait()


def one_blas_thread_each(n: int, d: int, n_classes: int, n_busy: int) -> Timed:
    """Fit with the defaults: BLAS with its threads, or with one in each of ours."""
    X, y = make_classification(
        n, d, n_informative=8, n_classes=n_classes, flip_y=0.05, random_state=0
    )

    def fit(least: float) -> None:
        kept, threads._WORTH_BLAS_THREADS = threads._WORTH_BLAS_THREADS, least
        try:
            with busy(n_busy):
                KMeansKernelClassifier(random_state=0).fit(X, y)
        finally:
            threads._WORTH_BLAS_THREADS = kept

    return lambda: fit(0.0), lambda: fit(np.inf)


# idea, on what, whether it was kept, how it is timed
IDEAS: list[tuple[str, str, str, Callable[[Bunch], Timed]]] = [
    ("bounds on angles", "K-means, one class, raw, Q = 1000", "yes",
     lambda mnist: bounds(mnist, "raw", 1000)),
    ("classes side by side", "K-means, ten classes, raw, Q = 100", "yes",
     lambda mnist: side_by_side(mnist, "raw", 100)),
    ("classes side by side", "K-means, ten classes, raw + FFT, Q = 1000", "yes",
     lambda mnist: side_by_side(mnist, "raw_fft", 1000)),
    ("blocks of rows in threads", "ten assignments, one class, raw, Q = 1000", "no",
     lambda mnist: row_threads(mnist, "raw", 1000)),
    ("bound on the tails, 256 principal axes", "first assignment, one class, raw + FFT, Q = 1000",
     "no", lambda mnist: tail_bound(mnist, "raw_fft", 1000)),
    ("conjugate gradients", "kernel and solve, raw + FFT, m = 10,000", "no",
     lambda mnist: conjugate_gradients(mnist, "raw_fft", 10_000)),
    ("triangular solve by products", "100 solves of order 100, 2000 columns", "yes",
     lambda _: triangular_products(100, 2000, 100)),
    ("triangular solve by products", "one solve of order 2000, 4000 columns", "yes",
     lambda _: triangular_products(2000, 4000, 1)),
    ("one BLAS thread in each of ours", "default fit, 2000 × 12, three classes", "yes",
     lambda _: one_blas_thread_each(2000, 12, 3, 0)),
    ("one BLAS thread in each of ours", "the same beside two busy processes", "yes",
     lambda _: one_blas_thread_each(2000, 12, 3, 2)),
    ("one BLAS thread in each of ours", "default fit, 4000 × 30, six classes", "yes",
     lambda _: one_blas_thread_each(4000, 30, 6, 0)),
    ("one BLAS thread in each of ours", "4000 × 30 beside two busy processes", "yes",
     lambda _: one_blas_thread_each(4000, 30, 6, 2)),
]  # fmt: skip


def measure(job: dict[str, Any], mnist: Bunch) -> dict[str, Any]:
    """Time one idea with and without."""
    make = next(make for idea, on, _, make in IDEAS if (idea, on) == (job["idea"], job["on"]))
    without, with_it = make(mnist)
    seconds = median_seconds({"without": without, "with": with_it}, REPEATS)
    return {f"{name}_seconds": round(value, 4) for name, value in seconds.items()}


def main() -> None:
    """Measure what is missing."""
    mnist = load_mnist()
    jobs = [{"idea": idea, "on": on, "kept": kept} for idea, on, kept, _ in IDEAS]
    run_jobs(RESULTS / "tried.json", jobs, lambda job: measure(job, mnist))


if __name__ == "__main__":
    main()
