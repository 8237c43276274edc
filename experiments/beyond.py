"""Beyond memory and beyond one process: the same classifier, and what it takes.

    python -m experiments.beyond

- same: rows in memory, in blocks, as Dask arrays on threads and on two processes: how far the
  scores of test rows are apart.
- file: a file of rows larger than memory should hold, read in blocks.
- workers: a million rows on a Dask cluster of one process and of two, one thread each.
- stream: MNIST in batches of 1000, each seen once, against the fit to all at once.
- rates: what a core does at the sizes of docs/scaling.md.
- plan: what `kmeans-kernel plan` says a fit in blocks takes, and what it took, on one thread.
- sparse: rows of 50,000 features, nearly all zero.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from scipy import sparse
from threadpoolctl import threadpool_limits

from kmeans_kernel import KMeansKernelClassifier, PixelNormalizer
from kmeans_kernel.data import load_mnist
from kmeans_kernel.report._planning import Problem, measure_rates, plan
from kmeans_kernel.report._records import answer, in_fresh_process, memory_bytes, run_jobs

RESULTS = Path(__file__).parent / "results" / "beyond.json"

JOBS: list[dict[str, Any]] = [
    {"what": "same", "data": "MNIST"},
    {"what": "same", "data": "sparse"},
    {"what": "stream"},
    {"what": "sparse"},
    {"what": "workers"},
    {"what": "file"},
    {"what": "rates", "features": 768, "classes": 100, "q": 20},
    *(
        {"what": "plan", "rows": n, "features": d, "classes": K, "q": q}
        for n, d, K, q in [
            (200_000, 100, 10, 50),
            (1_000_000, 20, 4, 100),
            (100_000, 784, 10, 100),
            (50_000, 400, 50, 20),
            (2_000_000, 50, 2, 100),
        ]
    ),
]
GIVEN: dict[str, Any] = {
    "kernel": "rbf", "gamma": 2.0, "regularization": 1e-6, "feature_scales": None,
    "random_state": 0,
}  # fmt: skip

N_FILE, D_FILE, K_FILE = 6_400_000, 784, 5
N_WORKERS_ROWS, D_WORKERS, K_WORKERS = 1_000_000, 100, 10


def measure(what: str, **job: Any) -> dict[str, Any]:
    """Do one of the jobs."""
    jobs = {
        "same": same, "file": file, "workers": workers, "stream": stream, "sparse": words,
        "plan": planned, "rates": rates_of,
    }  # fmt: skip
    return jobs[what](**job)


def text_like(n: int, d: int, K: int, seed: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Return rows of about a hundred words, drawn as words are, some more often in one class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    ranks = np.minimum(rng.zipf(1.3, (n, 100)), d)
    words = (ranks * 7 + rng.integers(0, 7, (n, 100))) % d
    own = rng.random((n, 100)) < 0.25
    words = np.where(own, (words * 31 + y[:, None] * (d // K)) % d, words)
    counts = sparse.csr_array(
        (np.ones(n * 100), words.ravel(), np.arange(0, n * 100 + 1, 100)), shape=(n, d)
    )
    counts.sum_duplicates()
    lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)))
    return sparse.csr_array(counts.multiply(1 / lengths[:, None])).astype(np.float32), y


def same(data: str) -> dict[str, Any]:
    """Train the four ways, from the same seed, and compare the scores of test rows."""
    if data == "MNIST":
        found = load_mnist()
        X, y, rows = found.X_train.reshape(-1, 784), found.y_train, found.X_test.reshape(-1, 784)
        q = 100
        lazy = da.from_array(X, chunks=(7000, 784))
    else:
        (X, y), (rows, _) = text_like(8000, 20_000, 4, 0), text_like(2000, 20_000, 4, 1)
        q = 25
        parts = [X[a : a + 1500] for a in range(0, X.shape[0], 1500)]
        lazy = da.concatenate(
            [da.from_delayed(dask.delayed(one), one.shape, one.dtype) for one in parts]
        )
    model = KMeansKernelClassifier(q, **GIVEN)
    local = model.fit(X, y).decision_function(rows)

    def compare(*given: Any) -> dict[str, Any]:
        start = perf_counter()
        scores = model.fit(*given).decision_function(rows)
        return {
            "labels_that_differ": int((scores.argmax(axis=1) != local.argmax(axis=1)).sum()),
            "largest_difference_of_scores": float(np.abs(scores - local).max()),
            "seconds": round(perf_counter() - start, 1),
        }

    ways = {"blocks": compare([(X[a : a + 999], y[a : a + 999]) for a in range(0, len(y), 999)])}
    with dask.config.set(scheduler="threads"):
        ways["dask, threads"] = compare(lazy, y)
    with _cluster(2) as cluster, Client(cluster):
        ways["dask, two processes"] = compare(lazy, y)
    return {"test_rows": rows.shape[0], "ways": ways}


def stream() -> dict[str, Any]:
    """Show MNIST in batches to the paper's classifier."""
    found = load_mnist()
    pixels = PixelNormalizer().fit_transform(found.X_train)
    rows = PixelNormalizer().fit_transform(found.X_test)
    paper: dict[str, Any] = {
        "kernel": "poly", "lift": 0.0, "fit_on": "representatives", "regularization": 1e-6,
        "feature_scales": None, "random_state": 0,
    }  # fmt: skip
    model, held = KMeansKernelClassifier(100, **paper), []
    for start in range(0, len(pixels), 1000):
        some = slice(start, start + 1000)
        model.partial_fit(pixels[some], found.y_train[some], classes=np.arange(10))
        held.append(memory_bytes(peak=False))
    whole = KMeansKernelClassifier(100, **paper).fit(pixels, found.y_train)
    return {
        "error_percent": round(100 * float(np.mean(model.predict(rows) != found.y_test)), 2),
        "error_percent_of_all_at_once": round(
            100 * float(np.mean(whole.predict(rows) != found.y_test)), 2
        ),
        "megabytes_grown_after_the_tenth_batch": round((held[-1] - held[9]) / 1e6, 1),
    }


def words() -> dict[str, Any]:
    """Train on sparse rows that would fill 4 GB in float32."""
    X, y = text_like(20_000, 50_000, 10, 0)
    rows, labels = text_like(5000, 50_000, 10, 1)
    before = memory_bytes(peak=False)
    start = perf_counter()
    model = KMeansKernelClassifier(20, **GIVEN).fit(X, y)
    return {
        "megabytes_of_the_rows": round((X.data.nbytes + X.indices.nbytes) / 1e6, 1),
        "megabytes_of_the_representatives": round(model.model_.directions.nbytes / 1e6, 1),
        "megabytes_taken": round((memory_bytes(peak=True) - before) / 1e6),
        "megabytes_if_dense": round(X.shape[0] * X.shape[1] * 4 / 1e6),
        "seconds": round(perf_counter() - start, 1),
        "error_percent": round(100 * float(np.mean(model.predict(rows) != labels)), 2),
    }


def some_rows(k: int, n: int, d: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a block of rows: each class is some clusters."""
    rng, centers = np.random.default_rng(k), np.random.default_rng(0).normal(size=(K * 8, d))
    own = rng.integers(0, K * 8, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += centers.astype(np.float32)[own]
    return X, own % K


def workers() -> dict[str, Any]:
    """Train on one process and on two, of one thread each."""
    seconds: dict[int, dict[str, float]] = {}
    n = N_WORKERS_ROWS // 40
    for count in (1, 2):
        with _cluster(count) as cluster, Client(cluster) as client:
            make = dask.delayed(some_rows)
            made = [make(k, n, D_WORKERS, K_WORKERS) for k in range(40)]
            X = [da.from_delayed(one[0], (n, D_WORKERS), np.float32) for one in made]
            y = [da.from_delayed(one[1], (n,), np.int64) for one in made]
            rows, labels = client.persist([da.concatenate(X), da.concatenate(y)])
            dask.compute(rows.sum(), labels.sum())  # until all are there
            model = KMeansKernelClassifier(50, max_iter=10, tol=0.0, **GIVEN)
            start = perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(rows, labels)
            seconds[count] = {
                "all": round(perf_counter() - start, 1),
                **{k: round(v, 1) for k, v in model.stage_seconds_.items()},
            }
    return {
        "rows": N_WORKERS_ROWS,
        "features": D_WORKERS,
        "seconds_of_one": seconds[1],
        "seconds_of_two": seconds[2],
        "times_faster": round(seconds[1]["all"] / seconds[2]["all"], 2),
    }


def file(path: str | None = None) -> dict[str, Any]:
    """Write a file of 20 GB, and train on it in a process of its own, which has the path."""
    if path is not None:
        return train_on_file(Path(path))
    size, labels = 50_000, []
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.f32"
        with rows.open("wb") as out:
            for k in range(N_FILE // size):
                X, y = some_rows(k, size, D_FILE, K_FILE)
                X.tofile(out)
                labels.append(y)
        np.save(rows.with_suffix(".npy"), np.concatenate(labels))
        return in_fresh_process("experiments.beyond", {"what": "file", "path": str(rows)})


def train_on_file(path: Path) -> dict[str, Any]:
    """Train on the file, and say what memory that took."""
    X = np.memmap(path, dtype=np.float32, mode="r", shape=(N_FILE, D_FILE))
    y = np.load(path.with_suffix(".npy"), mmap_mode="r")
    start = perf_counter()
    model = KMeansKernelClassifier(20, tol=1e-4, **GIVEN).fit(X, y)
    seconds = perf_counter() - start
    rows, labels = some_rows(10**6, 5000, D_FILE, K_FILE)
    return {
        "gigabytes": round(X.nbytes / 1e9, 1),
        "rows": N_FILE,
        "peak_gigabytes": round(memory_bytes(peak=True) / 1e9, 2),
        "iterations": model.n_iter_.tolist(),
        "seconds": round(seconds, 1),
        "error_percent": round(100 * float(np.mean(model.predict(rows) != labels)), 2),
    }


class Made:
    """Blocks of rows that were made before, so that to make them takes no time."""

    def __init__(self, rows: int, features: int, classes: int, size: int = 25_000) -> None:
        self.blocks = [some_rows(k, size, features, classes) for k in range(rows // size)]

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return iter(self.blocks)


def planned(rows: int, features: int, classes: int, q: int) -> dict[str, Any]:
    """Plan a fit, and do it."""
    problem = Problem(rows, features, classes, q, iterations=8)
    rates = measure_rates(problem)
    said = plan(problem, rates).seconds
    blocks = Made(rows, features, classes)
    model = KMeansKernelClassifier(q, max_iter=8, tol=0.0, n_jobs=1, **GIVEN)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        took = model.fit(blocks).stage_seconds_
    said = {"kmeans": said["kmeans"], "fit": said["fit"] + said["solve"]}
    found = {"kmeans": took["kmeans"], "fit": took["kernel"] + took["solve"]}
    return {
        "rates": {name: float(f"{rate:.3g}") for name, rate in asdict(rates).items()},
        "seconds_said": {name: round(value, 2) for name, value in said.items()},
        "seconds_taken": {name: round(value, 2) for name, value in found.items()},
        "taken_in_said": round(sum(found.values()) / sum(said.values()), 2),
    }


def rates_of(features: int, classes: int, q: int) -> dict[str, Any]:
    """Measure what a core does, for the sums in docs/scaling.md."""
    return asdict(measure_rates(Problem(1e6, features, classes, q)))


def _cluster(count: int) -> LocalCluster:
    return LocalCluster(
        n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None
    )


def main() -> None:
    """Measure what is missing."""
    run_jobs(RESULTS, JOBS, lambda job: in_fresh_process("experiments.beyond", job), ("dask",))


if __name__ == "__main__":
    answer(measure) or main()
