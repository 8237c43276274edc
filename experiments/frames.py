"""Public tables as they come, against the peers that read them or the usual way to encode them.

    make frames
    python -m experiments.frames [--development | --held-out] [--methods a,b] [table ...]
    python -m experiments.frames --summary [--development | --held-out] [--methods a,b]

experiments/frame_tables.py has the tables; 70 % of the rows train.

The seconds are indicative only: other processes used the machine at the same time, and CatBoost
on `kr-vs-k` was paused for a while.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from experiments.frame_tables import DEVELOPMENT, HELD_OUT, TABLES
from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.report._records import answer, in_fresh_process, read_rows, run_jobs

RESULTS = Path(__file__).parent / "results" / "frames.json"
SEEDS = [0]
PACKAGES = ("catboost", "lightgbm", "pandas")


def split(table: str, seed: int) -> list[Any]:
    """Return the rows of a table to train on and to test, and their labels as numbers."""
    X, y = TABLES[table]()
    found: list[Any] = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    return found


def dates_to_days(X: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with dates as days since 1970."""
    days = {
        name: (column - pd.Timestamp(0, tz=column.dt.tz)) / pd.Timedelta(days=1)
        for name, column in X.select_dtypes(["datetime", "datetimetz"]).items()
    }
    return X.assign(**days)


def number_columns(X: pd.DataFrame) -> list[str]:
    """Return the names of the columns of numbers; booleans and dates are none."""
    return list(X.select_dtypes("number").columns)


def word_columns(X: pd.DataFrame) -> list[str]:
    """Return the names of the columns of words and booleans."""
    dates = ["number", "datetime", "datetimetz"]
    return list(X.select_dtypes(exclude=dates).columns)


def as_words(X: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with words and booleans as strings; a missing one is a word of its own."""
    words = {name: X[name].astype(object) for name in word_columns(X)}
    filled = {
        name: column.where(column.notna(), "missing").astype(str) for name, column in words.items()
    }
    return X.assign(**filled)


class Categories(TransformerMixin, BaseEstimator):
    """Words become categories: the `most` frequent ones of the training rows; others are missing.

    The columns get plain names, since LightGBM refuses some characters.
    """

    def __init__(self, most: int | None = None):
        self.most = most

    def fit(self, X: pd.DataFrame, y: object = None) -> Categories:  # noqa: ARG002
        """Remember the categories of each column of words."""
        self.dtypes_ = {
            name: pd.CategoricalDtype(
                X[name].dropna().astype(str).value_counts().index[: self.most]
            )
            for name in word_columns(X)
        }
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the frame with columns of categories."""
        words = as_words(X[[*self.dtypes_]])
        known = {
            name: words[name].where(words[name].isin(dtype.categories)).astype(dtype)
            for name, dtype in self.dtypes_.items()
        }
        return X.assign(**known).set_axis([f"x{k}" for k in range(X.shape[1])], axis=1)


def encoder(*, scale: bool) -> ColumnTransformer:
    """Return what makes numbers of a frame: medians for missing ones, one column per word."""
    median = SimpleImputer(strategy="median", keep_empty_features=True)
    numbers = make_pipeline(median, StandardScaler()) if scale else median
    words = OneHotEncoder(max_categories=100, handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer([("numbers", numbers, number_columns), ("words", words, word_columns)])


class CatBoost(BaseEstimator):
    """CatBoost, which is told at `fit` which columns are words."""

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, X: pd.DataFrame, y: npt.NDArray[Any]) -> CatBoost:
        """Train on the frame, its words as strings."""
        from catboost import CatBoostClassifier

        self.model_ = CatBoostClassifier(
            cat_features=word_columns(X), random_state=self.seed, verbose=False,
            allow_writing_files=False,
        ).fit(as_words(X), y)  # fmt: skip
        return self

    def predict(self, X: pd.DataFrame) -> npt.NDArray[Any]:
        """Return the labels."""
        found: npt.NDArray[Any] = np.ravel(self.model_.predict(as_words(X)))
        return found

    def predict_proba(self, X: pd.DataFrame) -> npt.NDArray[Any]:
        """Return the probabilities of the classes."""
        found: npt.NDArray[Any] = self.model_.predict_proba(as_words(X))
        return found


def lightgbm(seed: int) -> Any:
    """Return LightGBM, which reads pandas categories."""
    from lightgbm import LGBMClassifier

    return make_pipeline(Categories(), LGBMClassifier(random_state=seed, verbosity=-1))


def gradient_boosting(seed: int) -> Any:
    """Return scikit-learn's gradient boosting, which takes at most 255 categories."""
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed)
    return make_pipeline(Categories(254), model)


def on_numbers(model: Any, *, scale: bool) -> Any:
    """Return a model of numbers on the encoded frame."""
    return make_pipeline(FunctionTransformer(as_words), encoder(scale=scale), model)


METHODS: dict[str, Callable[[int], Any]] = {
    "ours": lambda seed: KMeansKernelClassifier(random_state=seed),
    "CatBoost": CatBoost,
    "LightGBM": lightgbm,
    "gradient boosting": gradient_boosting,
    "random forest": lambda seed: on_numbers(
        RandomForestClassifier(random_state=seed, n_jobs=-1), scale=False
    ),
    "SVC, C = 10": lambda seed: on_numbers(SVC(C=10, random_state=seed), scale=True),
}


def measure(table: str, method: str, seed: int) -> dict[str, Any]:
    """Train and test one method on one split of a table."""
    X_train, X_test, y_train, y_test = split(table, seed)
    told = facts_of(X_train, X_test, y_test)
    if method != "ours":  # the peers read no dates
        X_train, X_test = dates_to_days(X_train), dates_to_days(X_test)
    model = METHODS[method](seed)
    start = perf_counter()
    model.fit(X_train, y_train)
    fitted = perf_counter()
    found = model.predict(X_test)
    done = perf_counter()
    return {
        **told,
        "error_percent": round(100 * float(np.mean(found != y_test)), 3),
        **scores(model, X_test, y_test),
        "fit_seconds": round(fitted - start, 3),
        "predict_seconds": round(done - fitted, 3),
    }


def facts_of(
    X_train: pd.DataFrame, X_test: pd.DataFrame, y_test: npt.NDArray[Any]
) -> dict[str, Any]:
    """Return the sizes of a table, its kinds of columns, and the majority's error."""
    X = pd.concat([X_train, X_test])
    numeric, categorical = len(number_columns(X)), len(word_columns(X))
    largest = np.bincount(y_test).max() / len(y_test)
    return {
        "rows": len(X), "features": X.shape[1], "numeric": numeric, "categorical": categorical,
        "dates": X.shape[1] - numeric - categorical, "classes": len(np.unique(y_test)),
        "missing_percent": round(100 * float(X.isna().to_numpy().mean()), 3),
        "majority_error_percent": round(100 * float(1 - largest), 3),
    }  # fmt: skip


def scores(model: Any, X: pd.DataFrame, y: npt.NDArray[Any]) -> dict[str, float]:
    """Return the log-loss of the probabilities, and for two classes the area under the curve."""
    found = {}
    if sure := hasattr(model, "predict_proba"):
        chances = model.predict_proba(X)
        found["log_loss"] = round(float(log_loss(y, chances)), 4)
    if len(np.unique(y)) == 2:
        ranks = chances[:, 1] if sure else model.decision_function(X)
        found["auc"] = round(float(roc_auc_score(y, ranks)), 4)
    return found


def is_mixed(row: dict[str, Any]) -> bool:
    """Return whether a table has a column that is not of numbers, or a missing cell."""
    return row["numeric"] < row["features"] or row["missing_percent"] > 0


def least_errors(rows: list[dict[str, Any]]) -> npt.NDArray[Any]:
    """Return the errors in percent, at least half a test row each."""
    return np.array([max(row["error_percent"], 50 / (0.3 * row["rows"])) for row in rows])


def summary_line(method: str, rows: list[dict[str, Any]], first: list[dict[str, Any]]) -> str:
    """Return a method's mean error and log-loss, and its errors over those of the first method."""
    error = np.mean([row["error_percent"] for row in rows])
    losses = [row["log_loss"] for row in rows if "log_loss" in row]
    loss = f"{np.mean(losses):.4f}" if losses else "     -"
    ratio = np.exp(np.mean(np.log(least_errors(rows) / least_errors(first))))
    return f"  {method:18} error {error:6.2f} %  log-loss {loss}  ratio {ratio:.3f}"


def summary_lines(rows: list[dict[str, Any]], methods: list[str]) -> list[str]:
    """Return a line per kind of table and method, over the splits that all methods have.

    The ratio is the geometric mean of a method's errors over those of the first method.
    """
    lines = []
    for kind, mixed in (("numbers alone", False), ("mixed", True)):
        found: dict[str, dict[Any, Any]] = {method: {} for method in methods}
        for row in rows:
            if row["method"] in found and is_mixed(row) == mixed:
                found[row["method"]][row["table"], row["seed"]] = row
        shared = sorted(set.intersection(*(set(of_splits) for of_splits in found.values())))
        lines.append(f"{kind}: {len({table for table, _ in shared})} tables")
        if shared:
            of_shared = {method: [found[method][key] for key in shared] for method in methods}
            first = of_shared[methods[0]]
            lines += [summary_line(method, of_shared[method], first) for method in methods]
    return lines


def summary(tables: Iterable[str], methods: list[str] | None = None) -> None:
    """Print the means of the methods that were measured on these tables."""
    chosen = set(tables)
    rows = [row for row in read_rows(RESULTS) if row["table"] in chosen]
    measured = [name for name in METHODS if any(row["method"] == name for row in rows)]
    print("\n".join(summary_lines(rows, methods or measured) if measured else ["no results"]))


def measured_afresh(job: dict[str, Any]) -> dict[str, Any]:
    """Measure one method on one split in a process of its own."""
    return in_fresh_process("experiments.frames", job)


def run(tables: Iterable[str], methods: list[str] | None = None) -> None:
    """Measure what is missing, each in a process of its own; a failure does not end the run.

    The proposed method is measured on held-out tables only if `methods` names it.
    """
    for table in tables:
        usual = [name for name in METHODS if name != "ours" or table not in HELD_OUT]
        jobs = [
            {"table": table, "method": method, "seed": seed}
            for seed in SEEDS
            for method in methods or usual
        ]
        for job in jobs:
            try:
                run_jobs(RESULTS, [job], measured_afresh, PACKAGES)
            except OSError as error:
                print(error, flush=True)


def main(words: list[str]) -> None:
    """Measure or summarise the tables that the command line names."""
    parser = ArgumentParser(prog="python -m experiments.frames")
    parser.add_argument("tables", nargs="*", metavar="table")
    parser.add_argument("--development", action="store_true", help="the tables for development")
    parser.add_argument("--held-out", action="store_true", help="the tables held out")
    parser.add_argument("--methods", help="their names, with commas between")
    parser.add_argument("--summary", action="store_true", help="print the means of what is there")
    chosen = parser.parse_args(words)
    sides = DEVELOPMENT * chosen.development + HELD_OUT * chosen.held_out
    (summary if chosen.summary else run)(
        chosen.tables or sides or list(TABLES), methods_of(chosen.methods)
    )


def methods_of(words: str | None) -> list[str] | None:
    """Return the methods named in a list; None if there is no list."""
    if words is None:
        return None
    names = re.split(r",(?! )", words)  # the comma in the name of SVC has a space behind it
    if unknown := set(names) - set(METHODS):
        raise SystemExit(f"--methods must be among {list(METHODS)}, got {sorted(unknown)}.")
    return names


if __name__ == "__main__":
    if not answer(measure):
        main(sys.argv[1:])
