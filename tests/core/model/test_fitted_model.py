import dataclasses

import numpy as np
import pytest

from kmeans_kernel.core.arrays.executor import ALONE
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.kernels.kernels import Polynomial
from kmeans_kernel.core.model.fitted_model import FittedModel
from tests.reference import kernels as naive_kernels
from tests.reference import model as twin


def model(lift=0.0, dtype=np.float64, m=8, d=3, n_classes=3, temperature=0.5):
    rng = np.random.default_rng(0)
    return FittedModel(
        directions=unit_rows(rng.normal(size=(m, d)), lift, dtype),
        representative_classes=np.arange(m) % n_classes,
        representative_counts=np.ones(m, dtype=np.intp),
        dual_coef=rng.normal(size=(m, n_classes)),
        intercept=rng.normal(size=n_classes),
        kernel=Polynomial(3),
        lift=lift,
        classes=np.array(["a", "b", "c"]),
        temperature=temperature,
    )


@pytest.mark.parametrize("lift", [0.0, 1.5])
@pytest.mark.parametrize("columns", [1024, 3])
def test_scores_and_probabilities_equal_the_twin(lift, columns, monkeypatch):
    monkeypatch.setattr("kmeans_kernel.core.arrays.blocking.BLOCK_ENTRIES", 4 * columns)
    monkeypatch.setattr("kmeans_kernel.core.model.fitted_model._BLOCK_COLUMNS", columns)
    monkeypatch.setattr("kmeans_kernel.core.model.fitted_model._BLOCK_ROWS", 2)
    X = np.vstack([np.random.default_rng(1).normal(size=(9, 3)), np.zeros((1, 3))])
    fitted = model(lift)
    expected = twin.scores(
        X,
        fitted.directions,
        fitted.dual_coef,
        fitted.intercept,
        lambda c: naive_kernels.polynomial(c, 3),
        lift,
    )
    found = fitted.scores(X)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    proba = [twin.probabilities(row, 0.5) for row in expected]
    np.testing.assert_allclose(fitted.probabilities(found), proba, atol=1e-12)


@pytest.mark.parametrize("rows", [np.float32, np.float64])
@pytest.mark.parametrize("own", [np.float32, np.float64])
def test_float64_only_when_rows_and_representatives_are(rows, own):
    X = np.random.default_rng(1).normal(size=(5, 3))
    scores = model(dtype=own).scores(X.astype(rows))
    assert scores.dtype == (np.float64 if rows == own == np.float64 else np.float32)
    np.testing.assert_allclose(scores, model().scores(X), atol=1e-5)


def test_float64_where_float32_would_be_noise():
    X = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    quiet = model(dtype=np.float32)
    assert not quiet.needs_float64
    alike = dataclasses.replace(
        quiet, dual_coef=1e6 * quiet.dual_coef, intercept=1e6 * quiet.intercept
    )
    assert not alike.needs_float64  # margins are as much larger
    loud = dataclasses.replace(quiet, dual_coef=quiet.dual_coef + 1e6)
    assert loud.needs_float64
    assert loud.scores(X).dtype == np.float64


def test_the_record_cannot_be_changed():
    fitted = model()
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted.lift = 1.0
    with pytest.raises(ValueError, match="read-only"):
        fitted.dual_coef[0, 0] = 1.0


def test_representatives_are_points_of_the_input_space():
    fitted = model(lift=2.0)
    assert fitted.representatives.shape == (8, 3)
    lifted = unit_rows(fitted.representatives, 2.0, np.float64)
    np.testing.assert_allclose(lifted, fitted.directions, atol=1e-12)


def test_float64_decides_where_two_scores_are_as_near_as_rounding():
    """Two classes whose scores differ by less than float32 can tell, at many rows."""
    rng = np.random.default_rng(0)
    directions = unit_rows(rng.normal(size=(700, 20)), dtype=np.float32)
    dual = rng.normal(size=(700, 1))
    fitted = FittedModel(
        directions=directions,
        representative_classes=np.arange(700) % 2,
        representative_counts=np.ones(700, dtype=np.intp),
        dual_coef=np.hstack([dual, dual + 1e-9 * rng.normal(size=(700, 1))]),
        intercept=np.zeros(2),
        kernel=Polynomial(4),
        lift=0.0,
        classes=np.arange(2),
    )
    X = rng.normal(size=(300, 20)).astype(np.float32)
    exact = fitted.on_sphere(X, np.float64) @ directions.T.astype(np.float64)
    expected = exact**4 @ fitted.dual_coef
    found = fitted.scores(X)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected.astype(np.float32))
    assert np.abs(fitted._scores(X, np.float32, ALONE) - expected).max() < fitted.noise
