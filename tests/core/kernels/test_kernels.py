import re

import numpy as np
import pytest

from kmeans_kernel.core.arrays.execution import SERIAL
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.kernels import kernels
from kmeans_kernel.core.kernels.gram import ExactGram, gram_matrix
from kmeans_kernel.core.kernels.kernels import (
    KERNELS,
    ExponentialPower,
    Gaussian,
    Laplacian,
    Polynomial,
    check_parameter,
    kernel_from_dict,
    kernel_matrix,
    kernel_parameters,
    kernel_to_dict,
    kernel_values,
    unit_rows_for,
)
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.reference import kernels as twin

SMOOTH = [(Polynomial(d), lambda c, d=d: twin.polynomial(c, d)) for d in (1, 2, 3, 4, 5, 7, 8, 13)]
SMOOTH += [(Gaussian(g), lambda c, g=g: twin.gaussian(c, g)) for g in (0.01, 1.0, 30.0)]
SMOOTH += [
    (ExponentialPower(g, 2.0), lambda c, g=g: twin.exponential_power(c, g, 2.0))
    for g in (0.01, 1.0, 30.0)
]
WITH_TIP = [(Laplacian(g), lambda c, g=g: twin.laplacian(c, g)) for g in (0.01, 1.0, 30.0)]
WITH_TIP += [
    (ExponentialPower(g, q), lambda c, g=g, q=q: twin.exponential_power(c, g, q))
    for g in (0.01, 1.0, 30.0)
    for q in (0.3, 1.0, 1.7)
]
ALL = SMOOTH + WITH_TIP

EXECUTORS = pytest.mark.parametrize(
    "executor",
    [SERIAL, ThreadExecutor(2), ThreadExecutor(3)],
    ids=["serial", "two threads", "three threads"],
)


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(kernels, "_TILE_HEIGHT", 4)
    monkeypatch.setattr("kmeans_kernel.core.arrays.matrices.COLUMNS", 3)


@pytest.mark.parametrize(("kernel", "function"), ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_apply_equals_the_twin_in_place(kernel, function, dtype, rng):
    cosines = rng.uniform(-1, 1, size=(6, 5)).astype(dtype)
    expected = [[function(float(c)) for c in row] for row in cosines]
    values = cosines.copy()
    kernel.apply(values)
    assert values.dtype == dtype
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(values, expected, rtol=rtol, atol=1e-30)


@EXECUTORS
@pytest.mark.parametrize(("kernel", "function"), ALL)
@pytest.mark.usefixtures("small_tiles")
def test_gram_matrix_equals_the_twin(kernel, function, executor, rng):
    directions = unit_rows(rng.normal(size=(11, 4)), dtype=np.float64)
    expected = np.array(twin.gram_matrix(directions, function))
    for dtype, upper, lower in ((np.float64, 1e-12, 1e-12), (np.float32, 1e-7, 1e-9)):
        stored = gram_matrix(directions, kernel, dtype, executor)
        assert stored.buffer.dtype == dtype
        np.testing.assert_allclose(np.triu(stored.buffer), np.triu(expected), atol=upper)
        found = stored.multiply(np.eye(11))
        np.testing.assert_allclose(found, expected, atol=lower)
    V, exact = rng.normal(size=(11, 2)), ExactGram(directions, kernel, executor)
    product = np.array(twin.gram_product(directions, function, V.tolist()))
    np.testing.assert_allclose(exact.multiply(V), product, atol=1e-12)
    some = np.array([7, 0, 7])
    np.testing.assert_allclose(exact.multiply_rows(V, some), product[some], atol=1e-12)


@EXECUTORS
@pytest.mark.parametrize(("kernel", "function"), ALL)
@pytest.mark.usefixtures("small_tiles")
def test_kernel_matrix_and_values_equal_the_twin(kernel, function, executor, rng):
    directions = unit_rows(rng.normal(size=(11, 4)), dtype=np.float64)
    found = kernel_matrix(directions, kernel, executor)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, twin.gram_matrix(directions, function), atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    U = unit_rows(rng.normal(size=(5, 4)), dtype=np.float64)
    values = kernel_values(U, directions, kernel)
    np.testing.assert_allclose(values, twin.kernel_values(U, directions, function), atol=1e-12)


def test_a_polynomial_without_odd_bits_needs_no_copy(rng):
    cosines = rng.uniform(size=(3, 3))
    kept = cosines.copy()
    Polynomial(4).apply(cosines)
    np.testing.assert_allclose(cosines, kept**4)


@pytest.mark.parametrize(("kernel", "function"), ALL)
def test_derivative_equals_differences_of_the_twin(kernel, function):
    cosines = np.linspace(-1, 0.99, 50)
    step = (
        np.array([function(c + 1e-6) for c in cosines]) - [function(c - 1e-6) for c in cosines]
    ) / 2e-6
    atol = 1e-9 if isinstance(kernel, Polynomial) else 0.0  # whose slope at zero is zero
    np.testing.assert_allclose(kernel.derivative(cosines), step, rtol=1e-4, atol=atol)


@pytest.mark.parametrize(("kernel", "function"), WITH_TIP)
def test_steepness_is_the_fall_from_the_tip_and_the_derivative_there_is_zero(kernel, function):
    assert not kernel.is_smooth
    fall = 1.0 - function(1.0 - 1e-6)
    assert -np.expm1(-1e-6 * kernel.steepness) == pytest.approx(fall, rel=1e-6)
    assert fall / 1e-6 <= kernel.steepness
    assert kernel.derivative(np.array([1.0, 1.0 + 1e-15])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("gamma", [0.01, 1.0, 30.0])
def test_steepness_of_a_laplacian_is_near_its_fall(gamma):
    fall = 1.0 - twin.laplacian(1.0 - 1e-6, gamma)
    assert 0.9 * Laplacian(gamma).steepness <= fall / 1e-6 <= Laplacian(gamma).steepness


@pytest.mark.parametrize(("kernel", "function"), SMOOTH)
def test_steepness_of_a_smooth_kernel_bounds_the_slope(kernel, function):
    assert kernel.is_smooth
    cosines = np.linspace(-1, 1, 2001)
    values = np.array([function(c) for c in cosines])
    slopes = np.abs(np.diff(values) / np.diff(cosines))
    assert slopes.max() <= kernel.steepness * (1 + 1e-9)
    assert slopes.max() >= 0.9 * kernel.steepness
    np.testing.assert_allclose(kernel.derivative(np.array([1.0])), kernel.steepness)


@pytest.mark.parametrize("kernel", [Laplacian(30.0), ExponentialPower(30.0, 1.2)], ids=str)
def test_float32_rows_are_normalized_for_a_kernel_with_a_tip(kernel, rng):
    directions = unit_rows(rng.normal(size=(50, 8)), dtype=np.float32)
    exact = unit_rows_for(kernel, directions)
    np.testing.assert_allclose((exact**2).sum(axis=1), 1.0, atol=1e-15)
    np.testing.assert_allclose(exact, directions, atol=1e-6)
    assert unit_rows_for(kernel, exact) is exact
    for smooth in (Gaussian(30.0), ExponentialPower(30.0, 2.0), Polynomial(4)):
        assert unit_rows_for(smooth, directions) is directions
    twice = np.concatenate([exact, unit_rows_for(kernel, directions)])
    gram = gram_matrix(twice, kernel, np.float64).multiply(np.eye(100))
    np.testing.assert_array_equal(np.diag(gram), 1.0)
    assert np.linalg.eigvalsh(gram).min() > -1e-12
    assert (unit_rows_for(kernel, np.zeros((2, 3), dtype=np.float32)) == 0).all()


@pytest.mark.parametrize("gamma", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponential_power_of_two_and_one_are_gaussian_and_laplacian(gamma, dtype):
    cosines = np.linspace(-1, 1, 201)
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    for one, other in (
        (ExponentialPower(gamma, 2.0), Gaussian(gamma)),
        (ExponentialPower(gamma, 1.0), Laplacian(gamma / 2)),
    ):
        values, expected = cosines.astype(dtype), cosines.astype(dtype)
        one.apply(values)
        other.apply(expected)
        np.testing.assert_allclose(values, expected, rtol=rtol, atol=1e-30)
        np.testing.assert_allclose(one.derivative(cosines), other.derivative(cosines), rtol=1e-10)
        assert one.steepness == pytest.approx(other.steepness)
        assert one.is_smooth == other.is_smooth


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("exponent", [0.1, 0.5, 1.0, 1.5, 1.9, 2.0])
def test_exponential_power_is_positive_definite(gamma, exponent, rng):
    directions = unit_rows(rng.normal(size=(80, 4)), dtype=np.float64)
    eigenvalues = np.linalg.eigvalsh(kernel_matrix(directions, ExponentialPower(gamma, exponent)))
    assert eigenvalues.min() > -1e-13 * eigenvalues.max()
    if exponent < 2:
        assert eigenvalues.min() > 0


@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_an_exponent_above_two_is_indefinite(gamma, rng):
    """So the rows of the test above can tell."""
    directions = unit_rows(rng.normal(size=(80, 4)), dtype=np.float64)
    eigenvalues = np.linalg.eigvalsh(kernel_matrix(directions, ExponentialPower(gamma, 3.0)))
    assert eigenvalues.min() < -1e-6 * eigenvalues.max()


def test_registry_has_every_kernel_under_its_name():
    assert {
        "poly": Polynomial,
        "rbf": Gaussian,
        "laplacian": Laplacian,
        "exponential_power": ExponentialPower,
    } == KERNELS
    for name, kernel in KERNELS.items():
        assert kernel.name == name
    names = {name: [one.name for one in kernel_parameters(k)] for name, k in KERNELS.items()}
    assert names == {
        "poly": ["degree"],
        "rbf": ["gamma"],
        "laplacian": ["gamma"],
        "exponential_power": ["gamma", "exponent"],
    }


@pytest.mark.parametrize(
    ("kernel", "tree"),
    [
        (Polynomial(4), {"name": "poly", "degree": 4}),
        (Gaussian(0.5), {"name": "rbf", "gamma": 0.5}),
        (Laplacian(1e6), {"name": "laplacian", "gamma": 1e6}),
        (
            ExponentialPower(3.0, 0.7),
            {"name": "exponential_power", "gamma": 3.0, "exponent": 0.7},
        ),
    ],
    ids=str,
)
def test_dictionary_round_trip(kernel, tree):
    assert kernel_to_dict(kernel) == tree
    again = kernel_from_dict(tree)
    assert type(again) is type(kernel)
    assert again == kernel


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "its kernel is None"),
        ({"gamma": 1.0}, "its kernel is None"),
        ({"name": None, "gamma": 1.0}, "its kernel is None"),
        ({"name": "sigmoid", "gamma": 1.0}, "its kernel is 'sigmoid'"),
        ({"name": "gaussian", "gamma": 1.0}, "its kernel is 'gaussian'"),
        ({"name": 3, "gamma": 1.0}, "its kernel is 3"),
        ({"name": "rbf"}, "its kernel rbf has parameters []"),
        ({"name": "exponential_power", "gamma": 1.0}, "has parameters ['gamma']"),
        ({"name": "rbf", "degree": 2}, "has parameters ['degree']"),
        ({"name": "rbf", "gamma": 1.0, "degree": 2}, "has parameters ['degree', 'gamma']"),
    ],
    ids=str,
)
def test_dictionaries_of_unknown_kernels_and_other_parameters_are_refused(tree, message):
    kept = dict(tree)
    with pytest.raises(ValueError, match=re.escape(message)):
        kernel_from_dict(tree)
    assert tree == kept


RANGES = {
    ("poly", "degree"): "a whole number of at least 1 and at most 1000",
    ("rbf", "gamma"): "a number above 0 and at most 1e+06",
    ("laplacian", "gamma"): "a number above 0 and at most 1e+06",
    ("exponential_power", "gamma"): "a number above 0 and at most 1e+06",
    ("exponential_power", "exponent"): "a number above 0 and at most 2",
}
OUTSIDE = {"degree": [0, -1, 1001, 2.0, 10**30], "gamma": [0, 0.0, -1.0, 1.01e6]}
OUTSIDE["exponent"] = [0, 0.0, -1.0, 2.01, 3]
INSIDE = {"degree": [1, 4, 1000], "gamma": [1, 5e-324, 1e6], "exponent": [1, 1e-9, 2, 2.0]}
NO_NUMBERS = [True, False, None, "1", [1.0], {}, 1j, float("nan"), float("inf"), -float("inf")]


@pytest.mark.parametrize(("kernel", "parameter"), list(RANGES))
def test_parameters_are_numbers_of_their_range(kernel, parameter):
    valid = {"name": kernel, **{one.name: 1 for one in kernel_parameters(KERNELS[kernel])}}
    field = next(one for one in kernel_parameters(KERNELS[kernel]) if one.name == parameter)
    for value in [*OUTSIDE[parameter], *NO_NUMBERS]:
        message = f"{parameter} of the kernel '{kernel}' must be {RANGES[kernel, parameter]}, got "
        with pytest.raises(ValueError, match="^" + re.escape(message + repr(value)) + "$"):
            kernel_from_dict({**valid, parameter: value})
        with pytest.raises(ValueError, match=re.escape(message)):
            check_parameter(KERNELS[kernel], field, value)
    for value in INSIDE[parameter]:
        check_parameter(KERNELS[kernel], field, value)
        assert getattr(kernel_from_dict({**valid, parameter: value}), parameter) == value
