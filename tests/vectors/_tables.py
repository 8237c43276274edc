"""The cases of tables as they come: fitted to a few rows of values, their arrays rounded."""

import warnings

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.export.model_file._estimators import describe
from kmeans_kernel.export.model_file._file import Place
from tests.reference import encoding
from tests.reference import estimators as twin
from tests.vectors._estimators import is_of_scores, plain, rounded

_DAY = 86_400

_SINCE = 1_577_836_800  # the first second of 2020, a Wednesday


def _classifier(kind, **options):
    """A classifier that leaves nothing to choose, so that the fit is the same everywhere."""
    given = {
        "kernel": "rbf", "gamma": 0.05, "fit_on": "representatives", "regularization": 0.1,
        "lift": 1.0, "feature_scales": None, "random_state": 0,
    }  # fmt: skip
    return KMeansKernelClassifier(2, feature_transform=kind, **{**given, **options})


def _shop(n):
    """An ordinary table: an id, words, a boolean, numbers, days, times, and values missing."""
    k = np.arange(n)
    table = pd.DataFrame(
        {
            "order id": [f"A-{i:03d}" for i in k],
            "city": np.array(["Rome", "Oslo", 'São "P"', "Rome", "Oslo"], dtype=object)[k % 5],
            "express": (k % 3 == 1).astype(object),
            "weight": np.round(0.35 * (k * 3 % 7) + 0.1, 2),
            "pieces": (k * 3 % 4).astype(float),
            "day": pd.to_datetime(_SINCE + 73 * _DAY * (k * 3 % 5), unit="s"),
            "paid": pd.to_datetime(_SINCE + 30_000 * (k * 2 % 5), unit="s"),
            "currency": "EUR",
        }
    )
    table.loc[k % 7 == 3, "weight"] = np.nan
    table.loc[k % 8 == 5, "city"] = None
    table.loc[k % 9 == 4, "day"] = pd.NaT
    return table, np.where((k % 5 < 2) ^ (k % 3 == 1), "late", "in time")


_SHOP = [
    ["A-001", "Rome", True, 0.1, 3, _SINCE + 3 * _DAY, _SINCE + 7_201.5, "EUR"],
    ["B-777", "Paris", False, None, 0, None, _SINCE + 86_399, "EUR"],
    [None, None, None, 5.25, None, _SINCE - 40 * _DAY, None, None],
    ["A-002", 'São "P"', True, -1.0, 99, _SINCE + 399 * _DAY, _SINCE - 0.25, "USD"],
    [None, None, None, None, None, None, None, None],
    ["A-003", "Oslo", False, 2.2, 5, _SINCE + 59 * _DAY, _SINCE + 250_000, "EUR"],
]


def _codes(n):
    """Levels that are numbers, of which the rare ones share a place, and plain numbers."""
    k = np.arange(n)
    shop = np.where(k % 37 == 20, 100.0 + k, np.array([3.0, 7.0, 12.5])[k % 3])
    table = pd.DataFrame({"shop": shop, "size": np.sqrt(k * 5 % 6), "<b>&": k % 4 * 1.0})
    return table, (k % 3 + (k * 5 % 6 > 3)) % 3


_CODES = [
    [7, 1.25, 3], [12.5, 0.0, 0], [120, 3.3, 2], [-5, None, 1], [None, 2.0, None], [3, 9.9, 17],
]  # fmt: skip

# Name: estimator, table and labels, rows.
_CASES = {
    "orders": (_classifier("both"), _shop(24), _SHOP),
    "orders, steps": (_classifier("piecewise", kernel="laplacian"), _shop(25), _SHOP),
    "rare levels that are numbers": (
        make_pipeline(
            _classifier("asinh", gamma=0.3, column_types={"shop": "category"})),
        _codes(100), _CODES),
}  # fmt: skip


def make():
    """Return all cases, with what is expected of them."""
    return [_case(name, *case) for name, case in _CASES.items()]


def _case(name, estimator, data, rows):
    arrays = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the id
        tree = describe(estimator.fit(*data), Place("", arrays))
    arrays = {name: rounded(array) for name, array in arrays.items() if is_of_scores(name)}
    return {
        "name": name,
        "tree": tree,
        "arrays": {name: plain(array) for name, array in arrays.items()},
        "rows": rows,
        **expected(tree, arrays, rows),
    }


def expected(tree, arrays, rows):
    probabilities = twin.probabilities(tree, arrays, rows)
    numbers = [encoding.numbers(twin.columns_of(tree), row) for row in rows]
    return {
        "numbers": [[None if x != x else x for x in row] for row in numbers],
        "labels": [twin.classes(tree)[row.index(max(row))] for row in probabilities],
        "probabilities": probabilities,
    }
