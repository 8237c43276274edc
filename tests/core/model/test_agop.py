import numpy as np
import pytest

from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian, Polynomial
from kmeans_kernel.core.model.agop import learn_scales, outer_gradients, squared_gradients
from kmeans_kernel.core.model.fitted_model import FittedModel
from tests.reference import scales as twin


def model(rng, kernel=Gaussian(2.0), lift=1.0, scales=None, dual=None):  # noqa: B008
    points = rng.normal(size=(9, 4))
    return FittedModel(
        directions=unit_rows(points, lift, np.float64, scales),
        representative_classes=np.arange(9) % 3,
        representative_counts=np.ones(9),
        dual_coef=rng.normal(size=(9, 3)) if dual is None else dual,
        intercept=rng.normal(size=3),
        kernel=kernel,
        lift=lift,
        classes=np.arange(3),
        feature_scales=scales,
    )


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.5), Gaussian(4.0), Laplacian(1.0), Polynomial(4)], ids=str
)
@pytest.mark.parametrize("lift", [0.0, 1.5])
@pytest.mark.parametrize("scaled", [False, True])
def test_gradients_equal_differences(kernel, lift, scaled, rng, monkeypatch):
    monkeypatch.setattr("kmeans_kernel.core.model.agop._BLOCK_ROWS", 8)
    scales = np.array([0.5, 1.0, 2.0, 0.1]) if scaled else None
    found, X = model(rng, kernel, lift, scales), rng.normal(size=(20, 4))
    np.testing.assert_allclose(
        squared_gradients(found, X), twin.squared_gradients(found.scores, X), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("lift", [0.0, 1.5])
def test_outer_products_equal_those_of_differences(lift, rng, monkeypatch):
    monkeypatch.setattr("kmeans_kernel.core.model.agop._BLOCK_ROWS", 8)
    found, X, weights = model(rng, lift=lift), rng.normal(size=(20, 4)), rng.random(20)
    outer = outer_gradients(found, X, weights)
    np.testing.assert_allclose(
        outer, twin.outer_gradients(found.scores, X, weights), rtol=1e-5, atol=1e-7
    )
    squared = np.average(squared_gradients(found, X), axis=0, weights=weights)
    np.testing.assert_allclose(np.diag(outer), squared)


def test_scales_are_in_proportion_to_the_gradients_and_bounded_below(rng):
    X, weights = rng.normal(size=(50, 4)), rng.random(50)
    found = model(rng)
    scales = learn_scales(found, X, weights)
    steepness = np.sqrt(np.average(squared_gradients(found, X), axis=0, weights=weights))
    np.testing.assert_allclose(scales / scales.max(), steepness / steepness.max())
    assert (scales**2).mean() == pytest.approx(1.0)
    blind = model(rng, scales=np.array([1.0, 1.0, 1.0, 1e-9]))
    assert learn_scales(blind, X, weights).min() >= 1e-3 * learn_scales(blind, X, weights).max()


def test_a_model_that_says_nothing_keeps_the_features_as_they_are(rng):
    found = model(rng, dual=np.zeros((9, 3)))
    np.testing.assert_array_equal(learn_scales(found, rng.normal(size=(5, 4)), np.ones(5)), 1.0)
