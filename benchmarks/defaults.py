"""The default fit against the peers' defaults, in one run.

    python -m benchmarks.defaults                  all of it, hours
    python -m benchmarks.defaults --only tables    one part: tables, large, given or growth
    python -m benchmarks.defaults --quick          small sizes, about a minute

tables: twelve development tables of experiments/tables.py, 70 % of the rows to train.
large: 100,000 rows of five classes and 1,000,000 rows of two, 30 columns, against LightGBM.
given: a fit with nothing to choose, against its float32 products and factorisations alone.
growth: time and memory against rows, columns and classes.

Methods take turns in one process and the medians of three fits count; a peer that takes over ten
times as long as ours is fitted once; in "growth" every method has
a process of its own, and a limit on its time. A row is written when it is done, to one file for
each part (benchmarks/results/defaults_*.json), and a rerun measures what is missing. The peers have
their defaults except C = 10 of SVC, which gets standardised rows.

Measure on a quiet machine: the threads of LightGBM wait for each other by spinning, and beside
another process on two cores a fit of 200 rows took 18 s instead of 0.1 s. On Linux every row says
how many cores other processes kept busy meanwhile (`other_cores`), and how many the host of a
virtual machine withheld (`stolen_cores`). A row with more than a tenth of a core stolen is measured
again, up to five times in all, and the one with the least is kept.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.contest import RESULTS, Work, median_seconds
from experiments import tables
from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.report._records import (
    answer,
    forget_peak,
    in_fresh_process,
    memory_bytes,
    read_rows,
    run_jobs,
    version_of,
)

PACKAGES = ("catboost", "lightgbm")
REPEATS = 3
MOST_STOLEN, MOST_TRIES = 0.1, 5  # cores withheld by the host of a virtual machine; tries of a row
HOPELESS = 10.0  # a peer that takes over this many times as long as ours is fitted once
# Each part, and what it is about.
PARTS = {
    "tables": "development tables",
    "large": "many rows",
    "given": "nothing to choose",
    "growth": "rows, columns, classes",
}

# Spread over rows, columns and classes; chosen before anything was measured, none held out.
TABLES = [
    "KEEL: australian", "KEEL: vowel", "KEEL: german", "KEEL: contraceptive", "KEEL: segment",
    "blobs, 26 classes", "clusters, 6 classes", "KEEL: phoneme", "KEEL: texture", "MNIST, sums",
    "KEEL: ring", "KEEL: letter",
]  # fmt: skip
QUICK_TABLES = ["breast cancer", "diabetes"]

Size = dict[str, int]
LARGE: list[Size] = [
    {"n": 100_000, "d": 30, "classes": 5},
    {"n": 1_000_000, "d": 30, "classes": 2},
]
QUICK_LARGE: list[Size] = [{"n": 500, "d": 30, "classes": 5}]

GIVEN: Size = {"n": 10_000, "d": 20, "m": 2000}
QUICK_GIVEN: Size = {"n": 2000, "d": 20, "m": 200}

# What grows, its values, and the values of the others.
GROWING: dict[str, tuple[list[int], Size]] = {
    "n": ([1000, 10_000, 100_000, 1_000_000], {"d": 20, "classes": 2}),
    "d": ([4, 16, 64, 256, 1000], {"n": 5000, "classes": 2}),
    "classes": ([2, 10, 100, 1000], {"n": 20_000, "d": 20}),
}
QUICK_GROWING: dict[str, tuple[list[int], Size]] = {
    "n": ([200, 400], {"d": 20, "classes": 2}),
    "d": ([4, 16], {"n": 200, "classes": 2}),
    "classes": ([2, 8], {"n": 200, "d": 20}),
}
GROWING_METHODS = ("ours", "LightGBM", "CatBoost")
LIMIT_SECONDS = 120.0  # for a process of "growth": import, data, fit and prediction
SHORT_SECONDS = 20.0  # fits of "growth" are repeated while they took less in all


def catboost() -> Any:
    """Return CatBoost with its defaults, silent."""
    from catboost import CatBoostClassifier

    return CatBoostClassifier(verbose=0, allow_writing_files=False, random_seed=0)


def lightgbm() -> Any:
    """Return LightGBM with its defaults, silent."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1, random_state=0)


METHODS: dict[str, Callable[[], Any]] = {
    "ours": lambda: KMeansKernelClassifier(random_state=0),
    "CatBoost": catboost,
    "LightGBM": lightgbm,
    "SVC, C = 10": lambda: make_pipeline(StandardScaler(), SVC(C=10)),
    "gradient boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def installed(method: str) -> bool:
    """Say whether the package that a method needs is there."""
    return method.lower() not in PACKAGES or version_of(method.lower()) is not None


@dataclass
class Outcome:
    """Fits of several methods to the same rows: median seconds, models, memory of the first fit."""

    seconds: dict[str, float]
    models: dict[str, list[Any]]
    bytes_of_first: dict[str, int]

    def errors(self, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
        """Return the error of each method in per cent, from its last fit."""
        return {name: error_percent(found[-1], X, y) for name, found in self.models.items()}

    def ours(self) -> dict[str, Any]:
        """Return what our fits chose, and the median seconds of their stages."""
        fits = self.models["ours"]
        stages = median_stages([one.stage_seconds_ for one in fits])
        return {
            "stage_seconds": stages,
            "search_share": round(stages.get("search", 0.0) / self.seconds["ours"], 3),
            "representatives": len(fits[-1].representatives_),
            "loss": str(fits[-1].loss_),
            "kernel": str(fits[-1].kernel_),
        }


def median_stages(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median seconds of each stage; calibration is in none of them."""
    return {stage: round(statistics.median(run[stage] for run in runs), 4) for stage in runs[0]}


def error_percent(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the share of rows with a wrong label, in per cent."""
    predicted = np.asarray(model.predict(X)).ravel()  # CatBoost gives a column for many classes
    return round(100 * float(np.mean(predicted != y)), 3)


def compete(methods: Iterable[str], X: np.ndarray, y: np.ndarray, repeats: int) -> Outcome:
    """Fit every method in turn, `repeats` times over."""
    makers = {name: METHODS[name] for name in methods if installed(name)}
    models: dict[str, list[Any]] = {name: [] for name in makers}
    memory: dict[str, int] = {}

    def fit(name: str) -> None:
        forget_peak()
        before = memory_bytes(peak=False)
        models[name].append(makers[name]().fit(X, y))
        memory.setdefault(name, memory_bytes(peak=True) - before)

    for make in makers.values():
        make()  # its package is imported before the clock starts
    works: dict[str, Work] = {name: partial(fit, name) for name in makers}
    seconds = median_seconds(works, repeats, hopeless=HOPELESS)
    return Outcome({name: round(s, 4) for name, s in seconds.items()}, models, memory)


def drawn(n: int, d: int, classes: int) -> tuple[np.ndarray, ...]:
    """Return n rows to train on and a tenth of that, 2,000 at least, to test, of one draw.

    scikit-learn's generator with four clusters for each class, at the corners of a cube of up to 12
    dimensions, a fifth of the columns linear combinations of those, the rest noise, and 5 % of the
    labels drawn at random.
    """
    informative = min(d, 12)
    X, y = make_classification(
        n + max(n // 10, 2000), d, n_informative=informative,
        n_redundant=min(d // 5, d - informative), n_classes=classes, n_clusters_per_class=4,
        flip_y=0.05, random_state=0,
    )  # fmt: skip
    return X[:n], y[:n], X[n:], y[n:]


def measure_table(table: str, repeats: int) -> dict[str, Any]:
    """Measure all methods on one split of a table."""
    X_train, X_test, y_train, y_test = tables.split(table, 0)
    outcome = compete(METHODS, X_train, y_train, repeats)
    return {
        "rows": len(y_train) + len(y_test),
        "features": X_train.shape[1],
        "classes": len(np.unique(y_train)),
        "fit_seconds": outcome.seconds,
        "error_percent": outcome.errors(X_test, y_test),
        "ours": outcome.ours(),
    }


def measure_large(n: int, d: int, classes: int, repeats: int) -> dict[str, Any]:
    """Measure ours and LightGBM on many rows; ours is the first fit of a fresh process."""
    X, y, X_test, y_test = drawn(n, d, classes)
    outcome = compete(("ours", "LightGBM"), X, y, repeats)
    return {
        "fit_seconds": outcome.seconds,
        "error_percent": outcome.errors(X_test, y_test),
        "bytes_above_data": outcome.bytes_of_first["ours"],
        "ours": outcome.ours(),
    }


def measure_given(n: int, d: int, m: int, loss: str, repeats: int) -> dict[str, Any]:
    """Measure a fit with everything given, and its products and factorisations alone."""
    X, y, X_test, y_test = drawn(n, d, 2)
    classifier = KMeansKernelClassifier(
        m // 2, kernel="rbf", gamma=1.0, regularization=1e-4, loss=loss, feature_scales=None,
        feature_transform="standard", random_state=0,
    )  # fmt: skip
    standard = StandardScaler().fit_transform(X)
    unit = (standard / np.linalg.norm(standard, axis=1, keepdims=True)).astype(np.float32)
    stages: list[dict[str, float]] = []
    works: dict[str, Work] = {
        "ours": lambda: stages.append(classifier.fit(X, y).stage_seconds_),
        "bare": partial(bare_fit, unit, unit[:m].copy()),
    }
    seconds = median_seconds(works, repeats, hopeless=np.inf)
    return {
        "fit_seconds": {name: round(s, 4) for name, s in seconds.items()},
        "error_percent": {"ours": error_percent(classifier, X_test, y_test)},
        "ours": {
            "stage_seconds": median_stages(stages),
            "representatives": len(classifier.representatives_),
        },
    }


def bare_fit(X: np.ndarray, centres: np.ndarray, ridge: float = 1e-2) -> None:
    """Run the products and factorisations of a squared fit in float32, on n unit rows.

    Kernel of the m centres and its Cholesky factor; kernel of the rows, n × m; a triangular solve,
    m² n; the m × m product of its result with itself; the Cholesky factor of that.
    """
    gram = centres @ centres.T
    factor = cholesky(np.exp(gram - 1, out=gram), ridge)
    kernel = X @ centres.T
    np.exp(np.subtract(kernel, 1, out=kernel), out=kernel)
    white = blas.strsm(1.0, factor, kernel.T, lower=1, overwrite_b=1)
    cholesky(blas.ssyrk(1.0, white, lower=1), ridge)


def cholesky(matrix: np.ndarray, ridge: float) -> np.ndarray:
    """Return the lower Cholesky factor of a float32 matrix plus a ridge, in its place."""
    matrix.flat[:: len(matrix) + 1] += ridge
    factor, info = lapack.spotrf(matrix.T if matrix.flags.c_contiguous else matrix, lower=1,
                                 overwrite_a=1)  # fmt: skip
    if info != 0:
        raise RuntimeError("the bare factorisation failed")
    return np.asarray(factor)


def measure_growth(
    n: int, d: int, classes: int, method: str, repeats: int, **_: object
) -> dict[str, Any]:
    """Measure one method in this process, three times over if it is quick."""
    X, y, X_test, y_test = drawn(n, d, classes)
    begin = perf_counter()
    fits = [compete([method], X, y, 1)]
    while len(fits) < repeats and perf_counter() - begin < SHORT_SECONDS:
        fits.append(compete([method], X, y, 1))
    return {
        "fit_seconds": round(statistics.median(fit.seconds[method] for fit in fits), 4),
        "runs": len(fits),
        "bytes_above_data": fits[0].bytes_of_first[method],
        "error_percent": fits[0].errors(X_test, y_test)[method],
    }


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "tables": measure_table,
    "large": measure_large,
    "given": measure_given,
    "growth": measure_growth,
}


def measure(part: str, **job: Any) -> dict[str, Any]:
    """Measure one row of a part, in this process."""
    return MEASURES[part](**job)


def jobs(part: str, *, quick: bool) -> list[dict[str, Any]]:
    """Return one job for each row of a part."""
    found: list[dict[str, Any]]
    if part == "tables":
        found = [{"table": table} for table in (QUICK_TABLES if quick else TABLES)]
    elif part == "large":
        found = [dict(size) for size in (QUICK_LARGE if quick else LARGE)]
    elif part == "given":
        size = QUICK_GIVEN if quick else GIVEN
        found = [{**size, "loss": loss} for loss in ("squared", "logistic")]
    else:
        found = [
            {"grows": grows, **others, grows: value, "method": method}
            for grows, (values, others) in (QUICK_GROWING if quick else GROWING).items()
            for value in values
            for method in GROWING_METHODS
            if installed(method)
        ]
    return [{"part": part, **job, "repeats": 1 if quick else REPEATS} for job in found]


def within_limit(path: Path, job: dict[str, Any], limit: float = LIMIT_SECONDS) -> dict[str, Any]:
    """Measure a row of "growth" in a fresh process, unless a smaller one was over the limit."""
    grows = job["grows"]
    smaller = [
        row
        for row in read_rows(path)
        if (row["grows"], row["method"]) == (grows, job["method"]) and row[grows] < job[grows]
    ]
    if any("over_limit_seconds" in row for row in smaller):
        return {"over_limit_seconds": limit, "skipped": True}
    try:
        return in_fresh_process("benchmarks.defaults", job, limit)
    except TimeoutError:
        return {"over_limit_seconds": limit}


def with_load(
    run: Callable[[dict[str, Any]], dict[str, Any]], job: dict[str, Any]
) -> dict[str, Any]:
    """Measure a row, with the number of cores that others kept busy or the host withheld."""
    begin, (busy, stolen), own = perf_counter(), machine_seconds(), own_seconds()
    row = run(job)
    seconds, (busy_after, stolen_after) = perf_counter() - begin, machine_seconds()
    others = (busy_after - busy) - (own_seconds() - own)
    return {
        **row,
        "other_cores": round(max(others / seconds, 0.0), 2),
        "stolen_cores": round((stolen_after - stolen) / seconds, 2),
    }


def least_stolen(
    run: Callable[[dict[str, Any]], dict[str, Any]], job: dict[str, Any]
) -> dict[str, Any]:
    """Measure a row again while the host withholds cores; keep the one with the least of that."""
    best = with_load(run, job)
    for _ in range(MOST_TRIES - 1):
        if best["stolen_cores"] <= MOST_STOLEN:
            break
        best = min(best, with_load(run, job), key=lambda row: row["stolen_cores"])
    return best


def machine_seconds() -> tuple[float, float]:
    """Return the seconds that all cores were busy and withheld by a host; 0 without /proc/stat."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0, 0.0
    fields = [int(one) / os.sysconf("SC_CLK_TCK") for one in stat.read_text().split()[1:9]]
    user, nice, system, _, _, _, _, stolen = fields
    return user + nice + system, stolen


def own_seconds() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


@dataclass(frozen=True)
class Comparison:
    """Times of ours against a peer's over several tables, as ratios ours / peer."""

    peer: str
    geometric_mean: float
    worst: float
    worst_table: str
    n_faster: int
    n_tables: int


def comparison(rows: list[dict[str, Any]], peer: str) -> Comparison | None:
    """Compare the times on the tables; None if the peer was measured on none of them."""
    ratios = {
        row["table"]: row["fit_seconds"]["ours"] / row["fit_seconds"][peer]
        for row in rows
        if peer in row["fit_seconds"]
    }
    if not ratios:
        return None
    worst = max(ratios, key=ratios.__getitem__)
    faster = sum(ratio < 1 for ratio in ratios.values())
    mean = statistics.geometric_mean(ratios.values())
    return Comparison(peer, mean, ratios[worst], worst, faster, len(ratios))


def comparisons(rows: list[dict[str, Any]]) -> list[Comparison]:
    """Return the comparisons with all peers that were measured."""
    found = [comparison(rows, method) for method in METHODS if method != "ours"]
    return [one for one in found if one is not None]


def search_share(rows: list[dict[str, Any]]) -> float:
    """Return the share of the search in the time of all our fits to tables."""
    search = sum(row["ours"]["stage_seconds"].get("search", 0.0) for row in rows)
    return float(search / sum(row["fit_seconds"]["ours"] for row in rows))


def print_summary(rows: list[dict[str, Any]]) -> None:
    """Print the ratios over the tables."""
    for one in comparisons(rows):
        print(
            f"ours / {one.peer}: geometric mean {one.geometric_mean:.2f}, worst {one.worst:.2f} "
            f"({one.worst_table}), faster on {one.n_faster} of {one.n_tables}"
        )
    print(f"share of the search: {search_share(rows):.0%}")


def result_file(part: str, *, quick: bool = False) -> Path:
    """Return the result file of a part."""
    return RESULTS / f"{'quick_' if quick else ''}defaults_{part}.json"


def main() -> None:
    """Measure the rows that are missing and write each as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, measured anew")
    parser.add_argument("--only", choices=PARTS, metavar="NAME", help=f"one of {', '.join(PARTS)}")
    options = parser.parse_args()
    for part in [options.only] if options.only else PARTS:
        path = result_file(part, quick=options.quick)
        if options.quick:
            path.unlink(missing_ok=True)
        run = partial(within_limit, path)
        if part != "growth":
            run = partial(in_fresh_process, "benchmarks.defaults")
        run_jobs(path, jobs(part, quick=options.quick), partial(least_stolen, run), PACKAGES)
        if part == "tables":
            print_summary(read_rows(path))


if __name__ == "__main__":
    answer(measure) or main()
