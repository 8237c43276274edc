"""Each routine on tiles inside a larger array, whose other entries must stay as they are."""

import numpy as np
import pytest

from kmeans_kernel.core.solvers.blas import (
    cholesky_lower,
    divide_from_left,
    divide_from_right,
    factor_tile,
    invert_lower,
    solve_lower,
    subtract_product,
    subtract_square,
)
from tests.reference import cholesky as twin

pytestmark = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture
def tolerance(dtype):
    return 1e-4 if dtype == np.float32 else 1e-12


def inside(values, dtype):
    """A larger Fortran-ordered array of ones, and the part of it that holds the values."""
    n, m = values.shape
    whole = np.ones((n + 5, m + 4), dtype=dtype, order="F")
    part = whole[3 : 3 + n, 2 : 2 + m]
    part[...] = values
    return whole, part


def assert_ones_outside(whole, part):
    kept = part.copy()
    part[...] = 1.0
    np.testing.assert_array_equal(whole, 1.0)
    part[...] = kept


def positive_definite(rng, n=6):
    A = rng.normal(size=(n, n + 2))
    return A @ A.T + np.eye(n)


def lower(rng, dtype, n=6):
    """A lower triangle with numbers above the diagonal that must not be read."""
    L = np.array(twin.factor(positive_definite(rng, n)))
    return L, inside(L + np.triu(np.full((n, n), 1e3), 1), dtype)[1]


def test_factor_tile_equals_the_twin(dtype, tolerance, rng):
    H = positive_definite(rng)
    whole, tile = inside(H, dtype)
    assert factor_tile(tile)
    np.testing.assert_allclose(np.tril(tile), twin.factor(H), atol=tolerance)
    np.testing.assert_array_equal(np.triu(tile, 1), np.triu(H.astype(dtype), 1))
    assert_ones_outside(whole, tile)
    H[4, 4] = -1.0
    assert twin.factor(H) is None
    assert not factor_tile(inside(H, dtype)[1])


@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("transposed", [False, True])
def test_divide_from_left_equals_the_twin(dtype, tolerance, transposed, n, rng):
    L, triangle = lower(rng, dtype)
    P = rng.normal(size=(6, n))
    whole, panel = inside(P, dtype)
    divide_from_left(triangle, panel, transposed=transposed)
    divide = twin.divide_from_left_transposed if transposed else twin.divide_from_left
    np.testing.assert_allclose(panel.T, [divide(L, column) for column in P.T], atol=tolerance)
    assert_ones_outside(whole, panel)


@pytest.mark.parametrize("m", [1, 127, 128, 129, 300])
def test_many_columns_are_divided_as_accurately_as_few(m, dtype, rng):
    """Landmarks that nearly coincide: the diagonal of L falls to the root of the nugget."""
    U = np.concatenate([rng.normal(size=(m, 3)), np.ones((m, 1))], axis=1)
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    nugget = 1e-7 if dtype == np.float32 else 1e-8
    L = np.linalg.cholesky(np.exp(U @ U.T - 1) + nugget * np.eye(m))
    P = np.exp(rng.normal(size=(50, 4)) @ U.T / 3)
    expected = np.linalg.solve(L, P.T)
    garbage = np.asfortranarray(L + np.triu(np.ones((m, m)), 1), dtype=dtype)
    many, few = (np.asfortranarray(P.T, dtype=dtype) for _ in range(2))
    divide_from_left(garbage, many, transposed=False)
    for column in range(50):
        divide_from_left(garbage, few[:, column : column + 1], transposed=False)
    scale = np.abs(expected).max()
    bound = max(2 * np.abs(few - expected).max() / scale, 10 * np.finfo(dtype).eps)
    assert np.abs(many - expected).max() / scale <= bound


def test_the_inverse_of_a_triangle_equals_the_twin(dtype, tolerance, rng):
    L, triangle = lower(rng, dtype)
    columns = [twin.divide_from_left(L, column) for column in np.eye(6)]
    found = invert_lower(triangle)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.T, columns, atol=tolerance)
    np.testing.assert_array_equal(np.triu(found, 1), 0)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_divide_from_right_equals_the_twin(dtype, tolerance, n, rng):
    L, triangle = lower(rng, dtype)
    P = rng.normal(size=(n, 6))
    whole, panel = inside(P, dtype)
    divide_from_right(triangle, panel)
    expected = [twin.divide_from_left(L, row) for row in P]
    np.testing.assert_allclose(panel, np.reshape(expected, (n, 6)), atol=tolerance)
    assert_ones_outside(whole, panel)


def test_subtracted_products_equal_numpy(dtype, tolerance, rng):
    A, B, C, S = (rng.normal(size=shape) for shape in ((5, 3), (4, 3), (5, 4), (5, 5)))
    (_, left), (_, right) = inside(A, dtype), inside(B, dtype)
    whole, tile = inside(C, dtype)
    subtract_product(tile, left, right)
    np.testing.assert_allclose(tile, C - A @ B.T, atol=tolerance)
    assert_ones_outside(whole, tile)
    whole, tile = inside(S, dtype)
    subtract_square(tile, left)
    np.testing.assert_allclose(np.tril(tile), np.tril(S - A @ A.T), atol=tolerance)
    np.testing.assert_array_equal(np.triu(tile, 1), np.triu(S.astype(dtype), 1))
    assert_ones_outside(whole, tile)


def test_cholesky_and_triangular_solves_equal_scipy(dtype, rng):
    A = rng.normal(size=(20, 8))
    A = (A.T @ A + np.eye(8)).astype(dtype)
    V = rng.normal(size=(8, 3))
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    factor = cholesky_lower(A)
    np.testing.assert_allclose(factor, np.linalg.cholesky(A), rtol=rtol, atol=rtol)
    assert factor.dtype == dtype
    before = V.copy()
    np.testing.assert_allclose(solve_lower(factor, V), np.linalg.solve(factor, V), rtol=rtol)
    transposed = solve_lower(factor, V, transposed=True)
    np.testing.assert_allclose(transposed, np.linalg.solve(factor.T, V), rtol=10 * rtol)
    np.testing.assert_array_equal(V, before)
    assert cholesky_lower(-A) is None
    assert cholesky_lower(np.full((3, 3), np.nan)) is None
