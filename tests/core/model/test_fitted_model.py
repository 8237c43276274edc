import dataclasses

import numpy as np
import pytest

from kmeans_kernel.core.arrays.execution import SERIAL
from kmeans_kernel.core.arrays.feature_transform import FeatureTransform
from kmeans_kernel.core.arrays.sphere import SphereMap, unit_rows
from kmeans_kernel.core.kernels.kernels import Polynomial
from kmeans_kernel.core.model.fitted_model import FittedModel, margins
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.reference import kernels as naive_kernels
from tests.reference import model as twin

SCALES = [0.5, 2.0, 1.0]
ASINH = {
    "kind": "asinh",
    "centers": np.array([0.5, -1.0, 0.0]),
    "widths": np.array([0.3, 2.0, 1.5]),
    "gains": np.array([1.2, 0.7, 0.9]),
}
STANDARD = {**ASINH, "kind": "standard"}
TRANSFORMS = [(None, None), (SCALES, None), (None, ASINH), (SCALES, ASINH), (SCALES, STANDARD)]


def model(
    lift=0.0, dtype=np.float64, m=8, d=3, n_classes=3, temperature=0.5, scales=None, transform=None
):
    rng = np.random.default_rng(0)
    transform = None if transform is None else FeatureTransform(**transform)
    return FittedModel(
        directions=unit_rows(rng.normal(size=(m, d)), lift, dtype),
        representative_classes=np.arange(m) % n_classes,
        representative_counts=np.ones(m, dtype=np.intp),
        dual_coef=rng.normal(size=(m, n_classes)),
        intercept=rng.normal(size=n_classes),
        kernel=Polynomial(3),
        sphere_map=SphereMap(lift, None if scales is None else np.array(scales), transform),
        classes=np.array(["a", "b", "c"]),
        temperature=temperature,
    )


def cubed(cosine):
    return naive_kernels.polynomial(cosine, 3)


@pytest.mark.parametrize("executor", [SERIAL, ThreadExecutor(2)], ids=["serial", "threads"])
@pytest.mark.parametrize(("scales", "transform"), TRANSFORMS)
@pytest.mark.parametrize("lift", [0.0, 1.5])
@pytest.mark.parametrize("columns", [1024, 3])
def test_scores_and_probabilities_equal_the_twin(
    lift, scales, transform, columns, executor, monkeypatch
):
    monkeypatch.setattr("kmeans_kernel.core.arrays.matrices.BLOCK_ENTRIES", 4 * columns)
    monkeypatch.setattr("kmeans_kernel.core.model.fitted_model._BLOCK_COLUMNS", columns)
    monkeypatch.setattr("kmeans_kernel.core.model.fitted_model._BLOCK_ROWS", 2)
    X = np.vstack([np.random.default_rng(1).normal(size=(9, 3)), np.zeros((1, 3))])
    fitted = model(lift, scales=scales, transform=transform)
    directions, dual_coef, where = fitted.directions, fitted.dual_coef, (lift, scales, transform)
    expected = twin.scores(X, directions, dual_coef, fitted.intercept, cubed, *where)
    found = fitted.scores(X, executor)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    proba = [twin.probabilities(row, 0.5) for row in expected]
    np.testing.assert_allclose(fitted.probabilities(found), proba, atol=1e-12)
    of_class = np.arange(10) % 3
    terms = fitted.contributions(X, of_class)
    naive = twin.contributions(X, directions, dual_coef, of_class, cubed, *where)
    np.testing.assert_allclose(terms, naive, atol=1e-12)
    totals = terms.sum(axis=1) + fitted.intercept[of_class]
    np.testing.assert_allclose(totals, found[np.arange(10), of_class], atol=1e-12)


def test_margins_equal_the_twin(rng):
    scores = np.vstack([rng.normal(size=(20, 4)), np.zeros((1, 4))])
    np.testing.assert_array_equal(margins(scores), [twin.margin(row) for row in scores])
    np.testing.assert_array_equal(margins(scores[:, :2]), [twin.margin(r) for r in scores[:, :2]])


@pytest.mark.parametrize("rows", [np.float32, np.float64])
@pytest.mark.parametrize("own", [np.float32, np.float64])
def test_scores_are_float64_only_when_rows_and_representatives_are(rows, own):
    X = np.random.default_rng(1).normal(size=(5, 3))
    scores = model(dtype=own).scores(X.astype(rows))
    assert scores.dtype == (np.float64 if rows == own == np.float64 else np.float32)
    np.testing.assert_allclose(scores, model().scores(X), atol=1e-5)


def test_scores_are_float64_where_the_error_of_float32_is_large():
    X = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    small = model(dtype=np.float32)
    assert not small.needs_float64
    scaled = dataclasses.replace(
        small, dual_coef=1e6 * small.dual_coef, intercept=1e6 * small.intercept
    )
    assert not scaled.needs_float64  # margins are as much larger
    large = dataclasses.replace(small, dual_coef=small.dual_coef + 1e6)
    assert large.needs_float64
    assert large.scores(X).dtype == np.float64


def test_model_cannot_be_changed():
    fitted = model(1.5, scales=SCALES, transform=ASINH)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted.sphere_map = SphereMap(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted.sphere_map.lift = 1.0
    for array in (
        fitted.dual_coef,
        fitted.sphere_map.scales,
        fitted.sphere_map.feature_transform.centers,
        fitted.sphere_map.feature_transform.widths,
        fitted.sphere_map.feature_transform.gains,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0


@pytest.mark.parametrize(("scales", "transform"), TRANSFORMS)
def test_representatives_are_points_of_the_input_space(scales, transform):
    fitted = model(lift=2.0, scales=scales, transform=transform)
    assert fitted.representatives.shape == (8, 3)
    naive = twin.on_sphere(fitted.representatives, 2.0, scales, transform)
    np.testing.assert_allclose(naive, fitted.directions, atol=1e-12)
    mapped = fitted.sphere_map.apply(fitted.representatives, np.float64)
    np.testing.assert_allclose(mapped, fitted.directions, atol=1e-12)
    if scales is None and transform is None:
        lifted = unit_rows(fitted.representatives, 2.0, np.float64)
        np.testing.assert_allclose(lifted, fitted.directions, atol=1e-12)


def test_float64_decides_where_two_scores_differ_by_no_more_than_rounding():
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
        sphere_map=SphereMap(0.0),
        classes=np.arange(2),
    )
    X = rng.normal(size=(300, 20)).astype(np.float32)
    exact = fitted.sphere_map.apply(X, np.float64) @ directions.T.astype(np.float64)
    expected = exact**4 @ fitted.dual_coef
    found = fitted.scores(X)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected.astype(np.float32))
    assert np.abs(fitted._scores(X, np.float32, SERIAL) - expected).max() < fitted.noise
