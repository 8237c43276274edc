"""The cases of fitted models: each is the plain one but for what its name says."""

import math

import numpy as np

from tests.reference import model as twin
from tests.reference.estimators import kernel_function
from tests.reference.sphere import unit_rows

_D, _M, _N = 3, 6, 5

_ASINH = {
    "kind": "asinh",
    "centers": [0.5, -1.0, 0.0],
    "widths": [0.3, 2.0, 1.5],
    "gains": [1.2, 0.7, 0.9],
}

_LAPLACE = {"name": "laplacian", "gamma": 0.8}

_POWER = {"name": "exponential_power", "gamma": 0.8, "exponent": 1.4}

# Two columns of numbers, one of three levels, one of two numbers: 0, 3; 1; 2.
_ENCODING = {
    "kind": "both",
    "n_columns": 4,
    "values": {
        "kind": "standard",
        "centers": [0.3, 0.6, 20.0],
        "widths": [1.2, 0.5, 11.0],
        "gains": [1.0, 1.0, 1.0],
    },
    "value_columns": [0, 2, 3],
    "step_columns": [0, 0, 0, 3, 3],
    "step_starts": [-1.0, -0.2, 0.7, 3.0, 17.0],
    "step_widths": [0.8, 0.9, 1.3, 14.0, 20.0],
    "step_means": [0.8, 0.55, 0.2, 0.7, 0.3],
    "step_gains": [1.9, 1.9, 1.9, 1.6, 1.6],
    "level_columns": [1, 1, 1],
    "level_codes": [0.0, 1.0, 2.0],
    "level_shares": [0.5, 0.3, 0.2],
    "missing_columns": [1, 2],
    "missing_shares": [0.1, 0.25],
}

_TAILS = {**_ENCODING["values"], "kind": "asinh", "gains": [0.9, 1.0, 1.3]}

_NO_STEPS = {name: [] for name in _ENCODING if name.startswith("step_")}

# Between, on and beyond the ends of steps; missing and unknown.
_COLUMNS = [
    [0.1, 0, 1.0, 21.5], [-0.2, 1, 0.0, 17.0], [-7.0, 2, None, 3.0], [9.5, -1, 1.0, 55.0],
    [None, None, None, None], [0.7, -1, None, -4.0],
]  # fmt: skip

_EXTREME = [[1e30, -2e30, 5e29], [3e-30, 1e-30, -2e-30], [1e30, 1e-30, 1.0], [0.0, 0.0, -1e-30]]

# Of a length that is one to the last bit, so that a row may coincide with one.
_EXACT = [[0.6, 0.8, 0.0], [0.0, -0.6, 0.8], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.8, 0.0, 0.6],
          [-0.6, 0.0, -0.8]]  # fmt: skip

_CASES = {
    "polynomial of degree 4": {},
    "polynomial of degree 1": {"kernel": {"name": "poly", "degree": 1}},
    "polynomial of degree 7": {"kernel": {"name": "poly", "degree": 7}},
    "polynomial, lifted": {"lift": 0.75},
    "gaussian": {"kernel": {"name": "rbf", "gamma": 1.3}},
    "gaussian, lifted": {"kernel": {"name": "rbf", "gamma": 4.0}, "lift": 2.0},
    "laplacian": {"kernel": _LAPLACE},
    "laplacian, lifted": {"kernel": _LAPLACE, "lift": 1.5},
    "laplacian, rows that are representatives": {
        "kernel": _LAPLACE,
        "directions": _EXACT,
        "rows": [_EXACT[0], [5 * x for x in _EXACT[1]], _EXACT[5], [0.1, 0.2, 0.3]],
    },
    "scaled features": {"feature_scales": [0.25, 3.0, 1.5], "lift": 0.75},
    "asinh": {"feature_transform": _ASINH, "lift": 0.75, "kernel": {"name": "rbf", "gamma": 0.9}},
    "asinh and scales, sharp": {
        "feature_transform": _ASINH,
        "feature_scales": [2.0, 0.5, 1.0],
        "lift": 1.1,
        "temperature": 0.2,
    },
    "soft": {"temperature": 3.5},
    "two classes": {"classes": [-1, 1]},
    "text for labels": {"classes": ["ä", "b c", "d"]},
    "two classes of text, lifted": {"classes": ["no", "yes"], "lift": 0.5, "temperature": 0.3},
    "a row of zeros": {"rows": [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]},
    "a row of zeros, lifted": {"rows": [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]], "lift": 0.75},
    "large and tiny rows": {"rows": _EXTREME},
    "large and tiny rows, lifted": {"rows": _EXTREME, "lift": 0.75},
    "large and tiny rows, asinh": {"rows": _EXTREME, "feature_transform": _ASINH, "lift": 0.75},
    "a class without representatives": {"classes": [3, 5, 8], "absent": 1},
    "exponential power": {"kernel": _POWER},
    "exponential power, lifted": {"kernel": {**_POWER, "exponent": 0.6}, "lift": 1.5},
    "exponential power, rows that are representatives": {
        "kernel": _POWER,
        "directions": _EXACT,
        "rows": [_EXACT[0], [5 * x for x in _EXACT[1]], _EXACT[5], [0.1, 0.2, 0.3]],
    },
    "columns": {
        "feature_transform": _ENCODING,
        "kernel": {"name": "rbf", "gamma": 0.7},
        "rows": _COLUMNS,
        "lift": 1.2,
    },
    "columns, scaled": {
        "feature_transform": _ENCODING,
        "feature_scales": [1.5, 0.2, 0.7, 0.4, 0.4, 0.4, 0.9, 0.9, 0.6, 0.6, 0.6, 0.3, 0.1],
        "kernel": _LAPLACE,
        "rows": _COLUMNS,
        "lift": 0.8,
    },
    "columns, steps alone": {
        "feature_transform": {
            **_ENCODING,
            "kind": "piecewise",
            "values": {
                name: value if name == "kind" else value[1:2]
                for name, value in _ENCODING["values"].items()
            },
            "value_columns": [2],
        },
        "kernel": _LAPLACE,
        "rows": _COLUMNS,
        "lift": 1.2,
    },
    "columns, asinh": {
        "feature_transform": {**_ENCODING, "kind": "asinh", "values": _TAILS, **_NO_STEPS},
        "rows": _COLUMNS,
        "lift": 1.2,
    },
    "columns, levels alone": {
        "feature_transform": {
            **_ENCODING,
            "kind": "standard",
            "n_columns": 2,
            "values": None,
            "value_columns": [],
            **_NO_STEPS,
            "missing_columns": [0],
            "missing_shares": [0.1],
            "level_columns": [0, 0, 1],
            "level_codes": [0.0, 1.0, 0.0],
        },
        "kernel": {"name": "rbf", "gamma": 0.7},
        "rows": [[0, 0], [1, -1], [-1, 0], [None, 0], [1, None]],
    },
    "standardised, seconds and metres": {
        "feature_transform": {
            "kind": "standard",
            "centers": [1.7e9, 5.4e6, 0.5],
            "widths": [2.5e4, 0.7, 1.5],
            "gains": [1.0, 1.0, 1.0],
        },
        "directions": [[*row, 0.0] for row in _EXACT[:5]] + [[0.0, 0.0, -0.6, 0.8]],
        "rows": [[1.7e9 + 30720, 5.4e6 - 0.5, 1.0], [1.7e9 - 1280, 5.4e6 + 1, -2.0]],
        "feature_scales": [2.0, 0.5, 1.0],
        "lift": 1.5,
    },
}


def make():
    """Return all cases, with what is expected of them."""
    return [_expected(_case(k, name, **change)) for k, (name, change) in enumerate(_CASES.items())]


def _case(seed, name, absent=None, rows=None, directions=None, **change):
    rng = np.random.default_rng(100 + seed)
    lift = change.get("lift", 0.0)
    classes = change.pop("classes", [0, 1, 2])
    codes = np.arange(_M) % len(classes)
    dual_coef = rng.normal(size=(_M, len(classes))).round(3)
    if absent is not None:
        codes[codes == absent] = 0
        dual_coef[:, absent] = 0.0
    width = _width(change.get("feature_transform"))
    points = unit_rows(rng.normal(size=(_M, width)).round(3), lift)
    return {
        "name": name,
        "directions": directions or points,
        "representative_classes": codes.tolist(),
        "representative_counts": rng.integers(1, 9, _M).tolist(),
        "dual_coef": dual_coef.tolist(),
        "intercept": rng.normal(size=len(classes)).round(3).tolist(),
        "kernel": {"name": "poly", "degree": 4},
        "lift": 0.0,
        "classes": classes,
        "temperature": 1.0,
        "feature_scales": None,
        "feature_transform": None,
        **change,
        "rows": rows or rng.normal(size=(_N, _D)).round(3).tolist(),
    }


def _width(transform):
    """The number of features."""
    if transform is None or "n_columns" not in transform:
        return _D
    parts = ("value_columns", "step_columns", "level_columns", "missing_columns")
    return sum(len(transform[part]) for part in parts)


def _expected(case):
    numbers = [[math.nan if x is None else x for x in row] for row in case["rows"]]
    where = case["lift"], case["feature_scales"], case["feature_transform"]
    function = kernel_function(case["kernel"])
    parts = numbers, case["directions"], case["dual_coef"]
    scores = twin.scores(*parts, case["intercept"], function, *where)
    winners = [row.index(max(row)) for row in scores]
    return {
        **case,
        "scores": scores,
        "probabilities": [twin.probabilities(row, case["temperature"]) for row in scores],
        "labels": [case["classes"][k] for k in winners],
        "contributions": twin.contributions(*parts, winners, function, *where),
    }
