"""Ways to search the hyperparameters of a table: what each costs, and what it does to the error.

    make frames
    python -m benchmarks.search_tried

Every way is the default fit with some constants of the search or the encoding changed, on the
development tables of experiments/tables.py and experiments/frames.py of up to 2,500 rows, with a
split that no other figure uses. Writes
benchmarks/results/search_tried.json, which docs/method.md tells of. The ways take turns on each
table, so that a slow minute of the machine slows all of them.

A difference of the mean error is told with its standard error over the tables: most ways differ by
chance alone, and then the fastest was kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from benchmarks.contest import RESULTS
from experiments import frames, tables
from kmeans_kernel import AGOPProjection, KMeansKernelClassifier
from kmeans_kernel.core.arrays import encoding
from kmeans_kernel.core.solvers import nystrom
from kmeans_kernel.core.training import halving, tuning
from kmeans_kernel.estimators import DroppedColumnWarning
from kmeans_kernel.report._records import run_jobs

FILE = RESULTS / "search_tried.json"
SEED = 3
FRAMES = "frame: "
MOST_ROWS = 2_500

Fit = Callable[[Any, Any], Any]


def fit(X: Any, y: Any) -> Any:
    """Fit the classifier with its defaults."""
    return KMeansKernelClassifier(random_state=SEED).fit(X, y)


class Average:
    """The mean of the probabilities of several models."""

    def __init__(self, models: list[Any]):
        self.models = models

    def predict(self, X: Any) -> Any:
        """Return the label of the highest mean probability."""
        chances = sum(model.predict_proba(X) for model in self.models)
        return self.models[0].classes_[np.argmax(chances, axis=1)]


def fit_folds(X: Any, y: Any) -> Any:
    """Average the models of four folds, each fitted to three quarters of the rows."""
    take = X.iloc.__getitem__ if hasattr(X, "iloc") else X.__getitem__
    folds = StratifiedKFold(4, shuffle=True, random_state=SEED).split(np.zeros(len(y)), y)
    return Average([fit(take(rows), y[rows]) for rows, _ in folds])


def fit_full_agop(X: Any, y: Any) -> Any:
    """Fit behind a projection by the full AGOP if the held-out error is lower; else as it is."""
    plain = fit(X, y)
    numbers = X.select_dtypes("number") if hasattr(X, "iloc") else X
    if numbers.shape[1] < X.shape[1] or X.shape[1] > 100 or np.isnan(np.asarray(numbers)).any():
        return plain
    projected = make_pipeline(
        StandardScaler(),
        AGOPProjection(random_state=SEED),
        KMeansKernelClassifier(feature_transform=None, random_state=SEED),
    ).fit(np.asarray(X), y)
    better = projected[-1].held_out_error_ < plain.held_out_error_
    return make_pipeline(FunctionTransformer(np.asarray), projected) if better else plain


# What changes in each way: constants of the modules, or the fit; the first is the default.
WAYS: dict[str, dict[str, Any] | Fit] = {
    "as it is": {},
    "numbers standardised, no steps": {"halving._ENCODINGS": ("standard",)},
    "steps alone": {"halving._ENCODINGS": ("piecewise",)},
    "steps beside standardised numbers, nothing else tried": {"halving._ENCODINGS": ("both",)},
    "at most 16 steps of a column": {"encoding._MOST_STEPS": 16},
    "at most 512 steps of a column": {"encoding._MOST_STEPS": 512},
    "at most 256 steps of all columns": {"encoding._MOST_STEPS_IN_ALL": 256},
    "scales of steps from all of their squared gradients": {"encoding._SHARE_OF_STEPS": 1.0},
    "all rows never tried as representatives": {"halving._MOST_EXACT_ROWS": 0},
    "all rows tried on every table": {"halving._CLEAR_GAIN": -np.inf},
    "full AGOP of numbers, if the held-out error is lower": fit_full_agop,
    "four fold models averaged": fit_folds,
    "squared loss: far from all data the prior": {
        "nystrom.NormalEquations.mean_z": property(lambda self: np.zeros_like(self.z)),
        "nystrom.NormalEquations.slopes": lambda self: (
            self.zy / self.weight - np.outer(self.z, self.y) / self.weight**2
        ),
    },
    "more folds: 3 of 3 below 800 rows, 2 of 3 below 1500, else 1 of 4": {
        "halving._FOLDS": ((800, 3, 3), (1500, 3, 2), (np.inf, 4, 1))
    },
    "no more landmarks for wide tables": {"halving._WIDE": np.inf},
    "150 landmarks on the small problem": {
        "halving._SIZES": halving.Sizes(2500, 4000, 150, 250),
    },
    "6000 rows and 400 landmarks on the large problem": {
        "halving._SIZES": halving.Sizes(2500, 6000, 100, 400),
    },
    "problems no larger for 6000 rows and more": {"halving._SIZES_OF_MANY": halving._SIZES},
    "four rounds of feature scales, two on the large problem": {
        "halving._ROUNDS": 4,
        "halving._LARGE_ROUNDS": 2,
    },
    "representatives at most 35 % of the rows": {"tuning._SHARE_OF_ROWS": 0.35},
}


@contextmanager
def changed(constants: dict[str, Any]) -> Iterator[None]:
    """Change constants of the search for the duration of the context."""
    modules = {"encoding": encoding, "halving": halving, "tuning": tuning, "nystrom": nystrom}
    paths = [path.split(".") for path in constants]
    places = [(reduce(getattr, parts[1:-1], modules[parts[0]]), parts[-1]) for parts in paths]
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
    found: dict[str, dict[str, float]] = {"error_percent": {}, "fit_seconds": {}}
    fit(train, train_y)  # the first fit is slower
    for way, change in WAYS.items():
        with changed({} if callable(change) else change):
            start = perf_counter()
            model = (change if callable(change) else fit)(train, train_y)
            found["fit_seconds"][way] = round(perf_counter() - start, 3)
        wrong = np.asarray(model.predict(test)) != np.asarray(test_y)
        found["error_percent"][way] = round(100 * float(wrong.mean()), 3)
    return found


def main() -> None:
    """Measure the tables that have no row yet."""
    jobs = [{"table": name, "seed": SEED, "ways": list(WAYS)} for name in names()]
    run_jobs(FILE, jobs, measure)


if __name__ == "__main__":
    main()
