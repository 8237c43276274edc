"""The table of scores is current, and the fitted models and estimators agree with it."""

import numpy as np
import pytest

from kmeans_kernel.core.kernels.kernels import KERNELS
from tests import vectors
from tests.vectors import _estimators, _tables
from tests.vectors.__main__ import make, readable

# Arrays of the table are rounded to six decimals.
_LAST_DECIMAL = 1.5e-6

MODELS, ESTIMATORS = vectors.cases("models"), vectors.cases("estimators")

TABLES = vectors.cases("tables")


def test_the_table_is_current():
    """Scores follow from the arrays of the table exactly; fits give these up to their rounding."""
    found, made = vectors.read(), make()
    assert_alike(found["models"], made["models"], "models")
    assert_follows(found["estimators"], made["estimators"], _estimators.expected, float)
    assert_follows(found["tables"], made["tables"], _tables.expected, lambda value: value)


def assert_follows(found, made, expected, read):
    """Compare arrays with those of another fit, and the rest with what follows from the arrays."""
    assert [case["name"] for case in found] == [case["name"] for case in made]
    for case, other in zip(found, made, strict=True):
        arrays = vectors.arrays_of(case)
        for name, array in vectors.arrays_of(other).items():
            # Whether the last decimal is rounded up or down may differ between machines.
            np.testing.assert_allclose(arrays[name], array, atol=_LAST_DECIMAL, rtol=0)
        rows = [[read(x) for x in row] for row in case["rows"]]
        follows = {**other, **expected(case["tree"], arrays, rows)}
        exact = [name for name in case if name not in ("arrays", "mixing")]
        for name in exact:
            assert_alike(case[name], follows[name], f"{case['name']}.{name}")


def test_every_registered_kernel_is_in_the_table():
    names = {case["kernel"]["name"] for case in MODELS.values()}
    assert names == set(KERNELS)


def test_the_table_is_small_and_readable():
    text = vectors.TABLE.read_text()
    assert len(text) < 220_000
    assert text == readable(vectors.read()) + "\n"


def assert_alike(found, expected, where):
    """Compare trees; numbers may differ by rounding."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key in expected:
            assert_alike(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), where
        for k, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_alike(one, other, f"{where}[{k}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-12), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("name", MODELS)
def test_fitted_models_score_as_the_table_says(name):
    case = MODELS[name]
    model, rows = vectors.fitted_model(case), vectors.rows_of(case)
    scores = model.scores(rows)
    np.testing.assert_allclose(scores, case["scores"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.probabilities(scores), case["probabilities"], atol=1e-12)
    winners = scores.argmax(axis=1)
    assert model.classes[winners].tolist() == case["labels"]
    np.testing.assert_allclose(
        model.contributions(rows, winners), case["contributions"], atol=1e-12
    )
    assert vectors.classifier(case).predict(rows).tolist() == case["labels"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_predict_as_the_table_says(name):
    case = ESTIMATORS[name]
    estimator, rows = vectors.estimator(case), np.array(case["rows"], dtype=float)
    np.testing.assert_allclose(
        estimator.predict_proba(rows), case["probabilities"], rtol=1e-9, atol=1e-11
    )
    assert estimator.predict(rows).tolist() == case["labels"]
    if "features" in case:
        np.testing.assert_allclose(
            estimator[:-1].transform(rows), case["features"], rtol=1e-9, atol=1e-11
        )
    if "mixing" in case:
        np.testing.assert_allclose(estimator[-2]._mixing, case["mixing"], rtol=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_classified_as_the_table_says(name):
    case = TABLES[name]
    estimator, rows = vectors.estimator(case), vectors.table_of(case)
    np.testing.assert_allclose(
        estimator.predict_proba(rows), case["probabilities"], rtol=1e-9, atol=1e-11
    )
    assert estimator.predict(rows).tolist() == case["labels"]


EVERY = [*MODELS.values(), *ESTIMATORS.values(), *TABLES.values()]


@pytest.mark.parametrize("case", EVERY, ids=lambda c: c["name"])
def test_no_label_hangs_on_rounding(case):
    best = np.sort(case["probabilities"], axis=1)
    assert (best[:, -1] - best[:, -2] > 1e-4).all()
