"""What the classifier and its peers do with an ordinary business table, as it comes.

    python -m experiments.behaviours

The table has an id, numbers with missing values, text categories, a boolean and a date. Every
method is asked the same questions: does it fit the frame; and, with the preparation that it needs
(`frames.METHODS`), what does it do with a level that training has not seen, with a value that is
missing only at prediction, with another unit of a column, with the id. Writes
experiments/results/behaviours.json, from which docs/method.md has its table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from benchmarks.defaults import catboost, lightgbm
from experiments import frames
from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.report._records import run_jobs

RESULTS = Path(__file__).parent / "results" / "behaviours.json"

N_TRAIN = 700


def table(n: int = 1000) -> tuple[pd.DataFrame, npt.NDArray[Any]]:
    """Return the frame and its labels."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({
        "customer": [f"c{k:05d}" for k in rng.permutation(n)],
        "age": rng.integers(18, 90, n).astype(float),
        "income": rng.lognormal(10, 1, n).round(2),
        "city": rng.choice(["Rome", "Oslo", "Paris"], n, p=[0.5, 0.3, 0.2]),
        "newsletter": rng.random(n) < 0.3,
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), "D"),
    })  # fmt: skip
    stays = ((X["age"] > 50) ^ (X["city"] == "Rome")).to_numpy() ^ (rng.random(n) < 0.05)
    X.loc[rng.random(n) < 0.1, "age"] = np.nan
    return X, np.where(stays, "stays", "leaves")


# The bare estimators, to which the frame is given as it comes.
BARE: dict[str, Callable[[], Any]] = {
    "ours": lambda: KMeansKernelClassifier(random_state=0),
    "CatBoost": catboost,
    "LightGBM": lightgbm,
    "gradient boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "random forest": lambda: RandomForestClassifier(random_state=0),
}


def outcome(act: Callable[[], str]) -> str:
    """Return what an action says, or the first words of its error."""
    try:
        return act()
    except Exception as error:  # each package has types of its own
        words = " ".join(str(error).split())
        return f"error: {words[:90]}{'…' if len(words) > 90 else ''}"


def measure(method: str) -> dict[str, Any]:
    """Ask one method all questions."""
    warnings.simplefilter("ignore")
    X, y = table()
    found = {"as it comes": outcome(lambda: fits(BARE[method](), X, y))}
    if method != "ours":  # the peers read no dates
        X = frames.dates_to_days(X)
    fitted = frames.METHODS[method](0).fit(X[:N_TRAIN], y[:N_TRAIN])
    fresh = X[N_TRAIN:]
    found["error, prepared"] = (
        f"{100 * np.mean(fitted.predict(fresh).ravel() != y[N_TRAIN:]):.1f} %"
    )
    found["unknown level"] = outcome(lambda: predicts(fitted, fresh.assign(city="Lima")))
    found["missing at prediction"] = outcome(
        lambda: predicts(fitted, fresh.assign(income=np.nan, city=None))
    )
    found["another unit"] = outcome(lambda: change_of_unit(method, X, y))
    found["the id"] = outcome(lambda: effect_of_id(method, X, y))
    return found


def fits(model: Any, X: pd.DataFrame, y: npt.NDArray[Any]) -> str:
    """Say that a model fits."""
    model.fit(X[:N_TRAIN], y[:N_TRAIN])
    return f"fits, error {100 * np.mean(model.predict(X[N_TRAIN:]) != y[N_TRAIN:]):.1f} %"


def predicts(model: Any, X: pd.DataFrame) -> str:
    """Say that a model predicts rows."""
    return "predicted" if np.isfinite(model.predict_proba(X)).all() else "not finite"


def change_of_unit(method: str, X: pd.DataFrame, y: npt.NDArray[Any]) -> str:
    """Return the largest change of a probability if a column is multiplied by 1000."""
    chances = []
    for rows in (X, X.assign(income=1000 * X["income"])):
        model = frames.METHODS[method](0).fit(rows[:N_TRAIN], y[:N_TRAIN])
        chances.append(model.predict_proba(rows[N_TRAIN:]))
    largest = float(np.abs(chances[0] - chances[1]).max())
    return "no change" if largest < 1e-6 else f"a probability changes by {largest:.2g}"


def effect_of_id(method: str, X: pd.DataFrame, y: npt.NDArray[Any]) -> str:
    """Say whether the id changes predictions."""
    if method == "ours":
        model = KMeansKernelClassifier(random_state=0).fit(X[:N_TRAIN], y[:N_TRAIN])
        (column,) = (one for one in model.columns_ if one.name == "customer")
        return "left out, with a warning" if column.kind == "dropped" else "used"
    chances = []
    for rows in (X, X.drop(columns="customer")):
        model = frames.METHODS[method](0).fit(rows[:N_TRAIN], y[:N_TRAIN])
        chances.append(model.predict_proba(rows[N_TRAIN:]))
    return "no effect" if np.allclose(*chances, atol=1e-9) else "used as a feature"


def main() -> None:
    """Measure the methods that have no row yet."""
    run_jobs(RESULTS, [{"method": method} for method in BARE], lambda job: measure(**job))


if __name__ == "__main__":
    main()
