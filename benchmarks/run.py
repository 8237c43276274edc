"""Ours against the peers and the bare limit of the machine, on MNIST, in one run.

    python -m benchmarks.run          all rows, medians of three
    python -m benchmarks.run --quick  small sizes

Writes benchmarks/results/benchmark.json (or quick.json); docs/performance.md is made from it. Each
row is written when it is done, and a rerun with --resume keeps the rows that are there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import faiss
import numpy as np
from scipy.linalg import lapack
from sklearn.cluster import KMeans
from sklearn.utils import Bunch

from benchmarks import plain
from benchmarks.contest import Work, row
from experiments.machine import facts
from experiments.paper_points import write_json
from kmeans_kernel import paper
from kmeans_kernel._kernels import Polynomial, gram_matrix, gram_product
from kmeans_kernel._lssvm import solve_on_representatives
from kmeans_kernel._model import FittedModel
from kmeans_kernel._spherical_kmeans import cluster
from kmeans_kernel._threads import Threads
from kmeans_kernel.datasets import load_mnist
from kmeans_kernel.images import PixelNormalizer
from kmeans_kernel.patches import extract_patches

RESULTS = Path(__file__).parent / "results"


def kmeans_contest(X: np.ndarray, q: int, iterations: int | None) -> tuple[int, dict[str, Work]]:
    """Return K-means by ours, the peers and the bare products, the same number of iterations.

    Without a number, as many as ours takes to converge to the paper's threshold.
    """
    first = X[np.random.default_rng(0).choice(len(X), q, replace=False)]

    def ours(limit: int = 300) -> int:
        found = cluster(X, q, init="random", tol=1e-6, max_iter=limit, rng=np.random.default_rng(0))
        return found.n_iter

    n = iterations or ours()

    def by_faiss() -> None:
        peer = faiss.Kmeans(
            X.shape[1], q, niter=n, spherical=True, min_points_per_centroid=1,
            max_points_per_centroid=len(X),
        )  # fmt: skip
        peer.train(X, init_centroids=first.copy())

    def by_scikit_learn() -> None:
        KMeans(q, init=first, n_init=1, max_iter=n, tol=0, algorithm="lloyd").fit(X)

    def bare() -> None:
        out = np.empty((len(X), q), dtype=X.dtype)
        for _ in range(n):
            np.matmul(X, first.T, out=out)

    return n, {
        "ours": lambda: ours(n),
        "scikit-learn": by_scikit_learn,
        "faiss": by_faiss,
        "bare": bare,
    }


def solve_contest(rows: np.ndarray, labels: np.ndarray, m: int) -> dict[str, Work]:
    """Return the solve for m rows of pixels, and a bare float32 Cholesky of that order.

    The kernel matrix is made before the clock starts, for both: `prepared` holds it.
    """
    per_class = [np.flatnonzero(labels == k)[: m // 10] for k in range(10)]
    chosen = np.concatenate(per_class)
    directions, kernel = rows[chosen], Polynomial(4)
    targets = np.eye(10)[labels[chosen]]
    workers = Threads()
    gram = gram_matrix(directions, kernel, np.float32, workers)
    copied = gram.buffer.copy() if m <= 10_000 else None

    def prepared() -> None:
        if copied is None:  # too large for two: made again
            kept = gram_matrix(directions, kernel, np.float32, workers)
            np.copyto(gram.buffer, kept.buffer)
        else:
            np.copyto(gram.buffer, copied)

    def ours() -> None:
        solution = solve_on_representatives(
            lambda _: gram,
            lambda V: gram_product(directions, kernel, V, workers),
            targets,
            1e-6,
            workers=workers,
        )
        if solution.relative_residual > 1e-6 or solution.factored_in != "float32":
            raise RuntimeError(f"the solve missed its accuracy: {solution}")

    def bare() -> None:
        np.fill_diagonal(gram.buffer, 1 + 1e-6)
        _, info = lapack.spotrf(gram.buffer.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            raise RuntimeError("the bare factorisation failed")

    return {"prepare for ours": prepared, "ours": ours, "prepare for bare": prepared, "bare": bare}


def predict_contest(rows: np.ndarray, test: np.ndarray, m: int) -> dict[str, Work]:
    """Return the scores of the test images by m representatives, and their two bare products."""
    model = FittedModel(
        directions=rows[:m],
        representative_classes=np.zeros(m, dtype=np.intp),
        representative_counts=np.ones(m, dtype=np.intp),
        dual_coef=0.3 * np.random.default_rng(0).normal(size=(m, 10)),
        intercept=np.zeros(10),
        kernel=Polynomial(4),
        lift=0.0,
        classes=np.arange(10),
    )
    products = np.empty((len(test), m), dtype=np.float32)
    coefficients = model.dual_coef.astype(np.float32)

    def bare() -> None:
        np.matmul(test, model.directions.T, out=products)
        products @ coefficients

    return {"ours": lambda: model.scores(test, Threads()), "bare": bare}


def program_contest(q: int, errors: dict[str, float]) -> dict[str, Work]:
    """Return the whole raw + FFT program by ours and as plainly as the paper reads."""

    def ours() -> None:
        mnist = load_mnist()
        model = paper.raw_fft(q, random_state=0).fit(mnist.X_train, mnist.y_train)
        errors["ours"] = 100 * float(np.mean(model.predict(mnist.X_test) != mnist.y_test))

    def plainly() -> None:
        errors["plain float64"] = plain.raw_fft_error(q)

    return {"ours": ours, "plain float64": plainly}


def rows(mnist: Bunch, *, quick: bool) -> Iterator[tuple[str, object]]:
    """Give the title of each row and a function that measures it."""
    pixels = PixelNormalizer().fit(mnist.X_train)
    threes = mnist.X_train[mnist.y_train == 3]
    repeats = 3

    def kmeans(title, images, q, goal):
        def measure():
            n, works = kmeans_contest(pixels_of(images), q, 5 if quick else None)
            name = f"K-means, {title}, k = {q}, {n} iterations"
            target = f"at least {goal} times faster than the faster peer"
            return row(name, works, repeats, target=target, goal=goal, against="peers")

        return measure

    def pixels_of(images):
        return PixelNormalizer().fit_transform(images)

    def limit(title, works, goal):
        def measure():
            target = f"at most {goal} times the bare work"
            return row(title, works(), repeats, target=target, goal=goal, against="limit")

        return measure

    for q, goal in ((100, 1.0), (1000, 2.0), (2500, 1.8)):
        yield f"kmeans class {q}", kmeans("one class, 6131 × 784", threes, q, goal)
    sizes = (4000,) if quick else (10_000, 25_000)
    for m in sizes:
        yield (
            f"solve {m}",
            limit(
                f"solve, m = {m}",
                lambda m=m: solve_contest(pixels.transform(mnist.X_train), mnist.y_train, m),
                1.35,
            ),
        )
    m = sizes[0]
    yield (
        f"predict {m}",
        limit(
            f"predict 10,000 images, m = {m}",
            lambda: predict_contest(
                pixels.transform(mnist.X_train[:m]), pixels.transform(mnist.X_test), m
            ),
            1.25,
        ),
    )
    if quick:
        return

    def program():
        errors: dict[str, float] = {}
        works = program_contest(1000, errors)
        target = "at least 6 times faster than the plain float64 rendering"
        title = "raw + FFT, Q = 1000, from the files to the error"
        result = row(title, works, repeats, target=target, goal=6.0, against="peers")
        return {**result, "error_percent": errors}

    yield "program", program
    yield "kmeans all", kmeans("all 60,000 × 784", mnist.X_train, 1000, 1.7)
    patches = extract_patches(threes, (25, 25))[:90_000]
    yield "kmeans patches", kmeans("90,000 patches × 625", patches, 1000, 1.7)


def main() -> None:
    """Measure the rows that are wanted and write each as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--resume", action="store_true", help="keep the rows already measured")
    options = parser.parse_args()
    path = RESULTS / ("quick.json" if options.quick else "benchmark.json")
    done = json.loads(path.read_text())["rows"] if options.resume and path.exists() else {}
    machine = {**facts(), "faiss-cpu": version("faiss-cpu")}
    for key, measure in rows(load_mnist(), quick=options.quick):
        if key not in done:
            done[key] = measure()
            write_json(path, {"machine": machine, "rows": done})
    print(f"Written: {path}")


if __name__ == "__main__":
    main()
