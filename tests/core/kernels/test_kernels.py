import numpy as np
import pytest

from kmeans_kernel.core.arrays.executor import ALONE
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.kernels import kernels as _kernels
from kmeans_kernel.core.kernels.gram import ExactGram, gram_matrix
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian, Polynomial, sharpened
from kmeans_kernel.utils.threads import Threads
from tests.reference import kernels as twin

KERNELS = [(Polynomial(d), lambda c, d=d: twin.polynomial(c, d)) for d in (1, 2, 3, 4, 5, 7, 8, 13)]
KERNELS += [(Gaussian(g), lambda c, g=g: twin.gaussian(c, g)) for g in (0.01, 1.0, 30.0)]
SMOOTH = list(KERNELS)
KERNELS += [(Laplacian(g), lambda c, g=g: twin.laplacian(c, g)) for g in (0.01, 1.0, 30.0)]


@pytest.mark.parametrize(("kernel", "function"), KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_apply_equals_the_twin_in_place(kernel, function, dtype, rng):
    cosines = rng.uniform(-1, 1, size=(6, 5)).astype(dtype)
    expected = [[function(float(c)) for c in row] for row in cosines]
    values = cosines.copy()
    kernel.apply(values)
    assert values.dtype == dtype
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(values, expected, rtol=rtol, atol=1e-30)


@pytest.mark.parametrize("workers", [ALONE, Threads(2), Threads(3)], ids=["alone", "two", "three"])
@pytest.mark.parametrize(("kernel", "function"), KERNELS)
def test_gram_equals_the_twin(kernel, function, workers, rng, monkeypatch):
    monkeypatch.setattr(_kernels, "_TILE_HEIGHT", 4)
    monkeypatch.setattr("kmeans_kernel.core.arrays.blocking.COLUMNS", 3)
    directions = unit_rows(rng.normal(size=(11, 4)), dtype=np.float64)
    expected = np.array(twin.gram_matrix(directions, function))
    for dtype, upper, lower in ((np.float64, 1e-12, 1e-12), (np.float32, 1e-7, 1e-9)):
        stored = gram_matrix(directions, kernel, dtype, workers)
        assert stored.buffer.dtype == dtype
        np.testing.assert_allclose(np.triu(stored.buffer), np.triu(expected), atol=upper)
        found = stored.multiply(np.eye(11))
        np.testing.assert_allclose(found, expected, atol=lower)
    V, exact = rng.normal(size=(11, 2)), ExactGram(directions, kernel, workers)
    product = np.array(twin.gram_product(directions, function, V.tolist()))
    np.testing.assert_allclose(exact.multiply(V), product, atol=1e-12)
    some = np.array([7, 0, 7])
    np.testing.assert_allclose(exact.multiply_rows(V, some), product[some], atol=1e-12)


def test_a_polynomial_without_odd_bits_needs_no_copy(rng):
    cosines = rng.uniform(size=(3, 3))
    kept = cosines.copy()
    Polynomial(4).apply(cosines)
    np.testing.assert_allclose(cosines, kept**4)


@pytest.mark.parametrize("gamma", [0.01, 1.0, 30.0])
def test_a_laplacian_falls_from_its_tip_and_is_flat_on_it(gamma):
    kernel = Laplacian(gamma)
    fall = 1.0 - twin.laplacian(1.0 - 1e-6, gamma)
    assert 0.9 * kernel.steepness <= fall / 1e-6 <= kernel.steepness
    cosines = np.linspace(-1, 0.99, 50)
    step = (
        np.array([twin.laplacian(c + 1e-6, gamma) for c in cosines])
        - [twin.laplacian(c - 1e-6, gamma) for c in cosines]
    ) / 2e-6
    np.testing.assert_allclose(kernel.derivative(cosines), step, rtol=1e-4)
    assert kernel.derivative(np.array([1.0, 1.0 + 1e-15])).tolist() == [0.0, 0.0]


def test_rows_of_float32_are_made_unit_rows_for_a_tip(rng):
    directions = unit_rows(rng.normal(size=(50, 8)), dtype=np.float32)
    exact = sharpened(directions, Laplacian(30.0))
    np.testing.assert_allclose((exact**2).sum(axis=1), 1.0, atol=1e-15)
    np.testing.assert_allclose(exact, directions, atol=1e-6)
    assert sharpened(directions, Gaussian(30.0)) is directions
    twice = np.concatenate([exact, sharpened(directions, Laplacian(30.0))])
    gram = gram_matrix(twice, Laplacian(30.0), np.float64).multiply(np.eye(100))
    np.testing.assert_array_equal(np.diag(gram), 1.0)
    assert np.linalg.eigvalsh(gram).min() > -1e-12
    assert (sharpened(np.zeros((2, 3), dtype=np.float32), Laplacian(1.0)) == 0).all()


@pytest.mark.parametrize(("kernel", "function"), SMOOTH)
def test_steepness_bounds_the_slope(kernel, function):
    cosines = np.linspace(-1, 1, 2001)
    values = np.array([function(c) for c in cosines])
    slopes = np.abs(np.diff(values) / np.diff(cosines))
    assert slopes.max() <= kernel.steepness * (1 + 1e-9)
    assert slopes.max() >= 0.9 * kernel.steepness
