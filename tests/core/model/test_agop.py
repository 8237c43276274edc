import numpy as np
import pytest

from kmeans_kernel.core.arrays.feature_transform import FeatureTransform
from kmeans_kernel.core.arrays.sphere import SphereMap, unit_rows
from kmeans_kernel.core.kernels.kernels import ExponentialPower, Gaussian, Laplacian, Polynomial
from kmeans_kernel.core.model.agop import (
    average_gradient_outer_product,
    learn_scales,
    mean_squared_gradients,
)
from kmeans_kernel.core.model.fitted_model import FittedModel
from tests.reference import agop as twin

PLAIN = Gaussian(2.0)


def model(rng, kernel=PLAIN, lift=1.0, scales=None, dual=None, transform=None):
    points = rng.normal(size=(9, 4))
    return FittedModel(
        directions=unit_rows(points, lift, np.float64, scales),
        representative_classes=np.arange(9) % 3,
        representative_counts=np.ones(9),
        dual_coef=rng.normal(size=(9, 3)) if dual is None else dual,
        intercept=rng.normal(size=3),
        kernel=kernel,
        sphere_map=SphereMap(lift, scales, transform),
        classes=np.arange(3),
    )


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("kmeans_kernel.core.model.agop._BLOCK_ROWS", 8)


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.5), Gaussian(4.0), Laplacian(1.0), ExponentialPower(1.0, 1.5), Polynomial(4)],
    ids=str,
)
@pytest.mark.parametrize("lift", [0.0, 1.5])
@pytest.mark.parametrize("scaled", [False, True])
def test_squared_gradients_equal_differences(kernel, lift, scaled, rng):
    scales = np.array([0.5, 1.0, 2.0, 0.1]) if scaled else None
    found, X = model(rng, kernel, lift, scales), rng.normal(size=(20, 4))
    weights = rng.uniform(0.5, 2.0, 20)
    squared = twin.squared_gradients(found.scores, X)
    expected = np.average(squared, axis=0, weights=weights)
    np.testing.assert_allclose(
        mean_squared_gradients(found, X, weights), expected, rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("kind", ["standard", "asinh"])
@pytest.mark.parametrize("lift", [0.0, 1.5])
def test_gradients_are_by_the_features_after_the_transform(lift, kind, rng):
    widths, gains = rng.uniform(0.5, 2, (2, 4))
    transform = FeatureTransform(kind, rng.normal(size=4), widths, gains)
    found = model(rng, lift=lift, transform=transform)
    X, weights = rng.normal(size=(20, 4)), np.ones(20)

    def scores(transformed):
        return found.scores(transform.invert(transformed))

    expected = twin.squared_gradients(scores, transform.apply(X)).mean(axis=0)
    found_mean = mean_squared_gradients(found, X, weights)
    np.testing.assert_allclose(found_mean, expected, rtol=1e-5, atol=1e-7)
    outer = twin.average_gradient_outer_product(scores, transform.apply(X), weights)
    np.testing.assert_allclose(
        average_gradient_outer_product(found, X, weights), outer, rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("lift", [0.0, 1.5])
def test_average_gradient_outer_product_equals_that_of_differences(lift, rng):
    found, X, weights = model(rng, lift=lift), rng.normal(size=(20, 4)), rng.random(20)
    outer = average_gradient_outer_product(found, X, weights)
    np.testing.assert_allclose(
        outer,
        twin.average_gradient_outer_product(found.scores, X, weights),
        rtol=1e-5,
        atol=1e-7,
    )
    squared = mean_squared_gradients(found, X, weights)
    np.testing.assert_allclose(np.diag(outer), squared)


def test_scales_are_in_proportion_to_the_gradients_and_bounded_below(rng):
    X, weights = rng.normal(size=(50, 4)), rng.random(50)
    found = model(rng)
    scales = learn_scales(found, X, weights)
    importance = np.sqrt(mean_squared_gradients(found, X, weights))
    np.testing.assert_allclose(scales / scales.max(), importance / importance.max())
    assert (scales**2).mean() == pytest.approx(1.0)
    np.testing.assert_allclose(scales, twin.learn_scales(found.scores, X, weights), rtol=1e-5)
    blind = model(rng, scales=np.array([1.0, 1.0, 1.0, 1e-9]))
    bounded = learn_scales(blind, X, weights)
    assert bounded.min() >= 1e-3 * bounded.max()
    np.testing.assert_allclose(bounded, twin.learn_scales(blind.scores, X, weights), rtol=1e-5)


def test_scales_of_a_constant_model_are_ones(rng):
    found = model(rng, dual=np.zeros((9, 3)))
    np.testing.assert_array_equal(learn_scales(found, rng.normal(size=(5, 4)), np.ones(5)), 1.0)
