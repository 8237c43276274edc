"""Ways to search the hyperparameters of a table: what each costs, and what it does to the error.

    make frames
    python -m benchmarks.search_tried

Every way is the default fit with some constants of the search or the encoding changed, on the
development tables of experiments/tables.py and experiments/frames.py of up to 8000 rows, with a
split that no other figure uses. Writes
benchmarks/results/search_tried.json, which docs/method.md tells of. The ways take turns on each
table, so that a slow minute of the machine slows all of them.

A difference of the mean error is told with its standard error over the tables: most ways differ by
chance alone, and then the fastest was kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.contest import RESULTS
from experiments import frames, tables
from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays import encoding
from kmeans_kernel.core.solvers import logistic
from kmeans_kernel.core.training import halving, trials, tuning
from kmeans_kernel.estimators import DroppedColumnWarning
from kmeans_kernel.report._records import run_jobs

FILE = RESULTS / "search_tried.json"
SEED = 3
FRAMES = "frame: "
MOST_ROWS = 8000

# Constants of the modules for each way; the first is the default.
WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "numbers standardised, no steps": {"halving._ENCODINGS": ("standard",)},
    "numbers standardised, or asinh of them": {"halving._ENCODINGS": ("standard", "asinh")},
    "steps alone": {"halving._ENCODINGS": ("piecewise",)},
    "steps beside standardised numbers, nothing else tried": {"halving._ENCODINGS": ("both",)},
    "steps alone tried too": {"halving._ENCODINGS": ("both", "standard", "piecewise")},
    "at most 16 steps of a column": {"encoding._MOST_STEPS": 16},
    "at most 128 steps of a column, 1024 of all": {
        "encoding._MOST_STEPS": 128,
        "encoding._MOST_STEPS_IN_ALL": 1024,
    },
    "at most 1024 steps of all columns": {"encoding._MOST_STEPS_IN_ALL": 1024},
    "at most 256 steps of all columns": {"encoding._MOST_STEPS_IN_ALL": 256},
    "scales of steps from a tenth of their squared gradients": {"encoding._SHARE_OF_STEPS": 0.1},
    "scales of steps from all of their squared gradients": {"encoding._SHARE_OF_STEPS": 1.0},
    "more folds: 4 of 4 below 800 rows, 3 of 3 below 1500, 2 of 3 below 3000": {
        "halving._FOLDS": ((800, 4, 4), (1500, 3, 3), (3000, 3, 2), (np.inf, 4, 1))
    },
    "fewer folds: 2 of 3 below 800 rows, else 1 of 4": {
        "halving._FOLDS": ((800, 3, 2), (np.inf, 4, 1))
    },
    "150 landmarks on the small problem": {"halving._SMALL_LANDMARKS": 150},
    "6000 rows and 400 landmarks on the large problem": {
        "halving._LARGE_ROWS": 6000,
        "halving._LARGE_LANDMARKS": 400,
    },
    "the large problem has no more landmarks than the small one": {
        "halving._LARGE_LANDMARKS": 100,
        "halving._LARGE_PER_CLASS": 4,
    },
    "at most two rounds of feature scales": {"halving._ROUNDS": 2},
    "logistic trials to a tolerance of 1e-4, 40 steps": {
        "trials._TRIAL_TOLERANCE": 1e-4,
        "trials._TRIAL_STEPS": 40,
    },
    "feature scales learned with the best kernel, smooth or not": {
        "halving._smooth_if_as_good": lambda trial: trial
    },
    "the width of the best kernel of one family refined": {
        "halving._best_of_each_family": lambda found: [min(found, key=lambda one: one.mean_brier)]
    },
    "both kernel families refined, however far behind": {"halving._HOPELESS": np.inf},
    "kernel families refined if within one standard error": {"halving._HOPELESS": 1.0},
    "two problems, however small the table": {"halving._MUCH_LARGER": 1.0},
    "one problem for tables of up to about 1000 rows": {"halving._MUCH_LARGER": 2.1},
    "representatives at most 35 % of the rows": {"tuning._SHARE_OF_ROWS": 0.35},
    "final logistic fit to a tolerance of 1e-5": {"logistic.TOLERANCE": 1e-5},
}


@contextmanager
def changed(constants: dict[str, Any]) -> Iterator[None]:
    """Change constants of the search for the duration of the context."""
    modules = {
        "encoding": encoding, "halving": halving, "trials": trials, "tuning": tuning,
        "logistic": logistic,
    }  # fmt: skip
    places = [(modules[path.split(".")[0]], path.split(".")[1]) for path in constants]
    before = [getattr(module, name) for module, name in places]
    for (module, name), value in zip(places, constants.values(), strict=True):
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name), value in zip(places, before, strict=True):
            setattr(module, name, value)


def names() -> list[str]:
    """Return the development tables of up to `MOST_ROWS` rows; those of frames have a prefix."""
    found = [
        name
        for name, make in tables.TABLES.items()
        if name not in tables.HELD_OUT and len(make()[0]) <= MOST_ROWS
    ]
    others = [name for name in frames.DEVELOPMENT if len(frames.TABLES[name]()[0]) <= MOST_ROWS]
    return [*found, *(f"{FRAMES}{name}" for name in others)]


def split(table: str) -> list[Any]:
    """Return rows to train on and to test, and their labels."""
    if table.startswith(FRAMES):
        return frames.split(table.removeprefix(FRAMES), SEED)
    return tables.split(table, SEED)


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Fit one table in every way."""
    warnings.simplefilter("ignore", DroppedColumnWarning)
    train, test, train_y, test_y = split(job["table"])
    found: dict[str, dict[str, float]] = {
        "error_percent": {}, "fit_seconds": {}, "search_seconds": {},
    }  # fmt: skip
    KMeansKernelClassifier(random_state=SEED).fit(train, train_y)  # the first fit is slower
    for way, constants in WAYS.items():
        with changed(constants):
            start = perf_counter()
            model = KMeansKernelClassifier(random_state=SEED).fit(train, train_y)
            found["fit_seconds"][way] = round(perf_counter() - start, 3)
        found["search_seconds"][way] = round(model.stage_seconds_["search"], 3)
        found["error_percent"][way] = round(100 * (1 - model.score(test, test_y)), 3)
    return found


def main() -> None:
    """Measure the tables that have no row yet."""
    jobs = [{"table": name, "seed": SEED, "ways": list(WAYS)} for name in names()]
    run_jobs(FILE, jobs, measure)


if __name__ == "__main__":
    main()
