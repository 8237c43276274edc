from itertools import pairwise

import numpy as np
import pytest

from kmeans_kernel.core.solvers import cholesky
from kmeans_kernel.core.solvers.cholesky import factor_in_place, solve_in_place
from tests.reference import cholesky as twin


def positive_definite(m, dtype, seed=0):
    A = np.random.default_rng(seed).normal(size=(m, m + 5))
    return (A @ A.T / m + np.eye(m)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tile", [1, 7, 26, 53])
def test_factor_and_solve_equal_numpy_and_the_twin(dtype, tile, monkeypatch, rng):
    monkeypatch.setattr(cholesky, "LARGEST_SPAN", tile * 53)
    H = positive_definite(53, dtype)
    matrix = np.asfortranarray(H)
    above = np.triu_indices(53, 1)
    matrix[above] = np.nan  # neither read nor written
    assert factor_in_place(matrix)
    assert np.isnan(matrix[above]).all()
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(np.tril(matrix), np.linalg.cholesky(H), atol=tolerance)
    np.testing.assert_allclose(np.tril(matrix), twin.factor(H), atol=tolerance)
    V = np.asfortranarray(rng.normal(size=(53, 3)), dtype=dtype)
    expected = np.linalg.solve(H.astype(np.float64), V)
    naive = [twin.solve(twin.factor(H), column) for column in V.T]
    solve_in_place(matrix, V)
    np.testing.assert_allclose(V, expected, atol=tolerance)
    np.testing.assert_allclose(V.T, naive, atol=tolerance)


@pytest.mark.parametrize("tile", [4, 30])
@pytest.mark.parametrize("where", [0, 11, 29])
def test_indefinite_matrix_is_reported(tile, where, monkeypatch):
    monkeypatch.setattr(cholesky, "LARGEST_SPAN", tile * 30)
    H = np.asfortranarray(positive_definite(30, np.float64))
    H[where, where] = -1.0
    assert twin.factor(H) is None
    assert not factor_in_place(H)


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("m", [1, 12_500, 12_501, 25_000, 27_500, 46_341, 50_000, 200_000])
def test_no_tile_is_too_large_for_blas(m, itemsize):
    """32 bits count what a call spans, and OpenBLAS's buffer holds a block of columns."""
    tiles = cholesky._tiles(m, itemsize)
    assert tiles[0].start == 0
    assert tiles[-1].stop == m
    assert all(a.stop == b.start for a, b in pairwise(tiles))
    widest = max(t.stop - t.start for t in tiles)
    assert widest * m < 2**31
    assert widest * itemsize <= 100_000
    assert (len(tiles) == 1) == (m * itemsize <= 100_000)
