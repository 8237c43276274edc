import numpy as np
import pytest

from kmeans_kernel import _cholesky
from kmeans_kernel._cholesky import factor_in_place, solve_in_place


def positive(m, dtype, seed=0):
    A = np.random.default_rng(seed).normal(size=(m, m + 5))
    return (A @ A.T / m + np.eye(m)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tile", [1, 7, 26, 53, 100])
def test_factor_and_solve_equal_numpy(dtype, tile, monkeypatch, rng):
    monkeypatch.setattr(_cholesky, "TILE", tile)
    H = positive(53, dtype)
    matrix = np.asfortranarray(H)
    above = np.triu_indices(53, 1)
    matrix[above] = np.nan  # neither read nor written
    assert factor_in_place(matrix)
    assert np.isnan(matrix[above]).all()
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(np.tril(matrix), np.linalg.cholesky(H), atol=tolerance)
    V = np.asfortranarray(rng.normal(size=(53, 3)), dtype=dtype)
    expected = np.linalg.solve(H.astype(np.float64), V)
    solve_in_place(matrix, V)
    np.testing.assert_allclose(V, expected, atol=tolerance)


@pytest.mark.parametrize("tile", [4, 100])
@pytest.mark.parametrize("where", [0, 11, 29])
def test_what_is_not_positive_is_told(tile, where, monkeypatch):
    monkeypatch.setattr(_cholesky, "TILE", tile)
    H = np.asfortranarray(positive(30, np.float64))
    H[where, where] = -1.0
    assert not factor_in_place(H)
