import numpy as np
import pytest

from kmeans_kernel.core.arrays.execution import SERIAL
from kmeans_kernel.core.kernels import two_triangles
from kmeans_kernel.core.kernels.two_triangles import TwoTriangles
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.reference import dual as twin


def symmetric(m, rng):
    values = rng.uniform(-1, 1, size=(m, m))
    return (values + values.T) / 2


def stored(matrix, dtype, height):
    out = TwoTriangles.empty(len(matrix), dtype)
    for top in range(0, len(matrix), height):
        rows = slice(top, min(top + height, len(matrix)))
        if top:
            out.store(rows, slice(0, top), matrix[rows, :top].copy())
        out.store(rows, rows, matrix[rows, rows].copy())
    return out


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2.0**-31), (np.float64, 0.0)])
@pytest.mark.parametrize("height", [1, 4, 17, 100])
def test_both_triangles_hold_the_matrix(dtype, tolerance, height, rng):
    matrix = symmetric(17, rng)
    found = stored(matrix, dtype, height)
    np.testing.assert_array_equal(np.triu(found.buffer), np.triu(matrix.astype(dtype)))
    np.testing.assert_array_equal(found.diagonal, matrix.diagonal())
    # The product with the identity is the matrix that is kept below the diagonal.
    np.testing.assert_allclose(found.multiply(np.eye(17)), matrix, rtol=0, atol=tolerance)


@pytest.mark.parametrize("value", [-1.999, -1.0, 0.0, 1.0, 1.2, 1.999])
def test_entries_below_two_in_size_fit(value):
    found = stored(np.full((3, 3), value), np.float32, 2)
    np.testing.assert_allclose(found.multiply(np.eye(3)), np.full((3, 3), value), atol=2.0**-31)


@pytest.mark.parametrize(
    "executor",
    [SERIAL, ThreadExecutor(2), ThreadExecutor(3)],
    ids=["serial", "two threads", "three threads"],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("height", "width"), [(256, 1024), (5, 3), (3, 8)])
def test_product_equals_the_twin_and_needs_no_upper_triangle(
    height, width, dtype, executor, rng, monkeypatch
):
    monkeypatch.setattr(two_triangles, "_TILE_HEIGHT", height)
    monkeypatch.setattr(two_triangles, "_TILE_WIDTH", width)
    matrix, V = symmetric(17, rng), rng.normal(size=(17, 2))
    found = stored(matrix, dtype, 6)
    found.buffer[np.triu_indices(17)] = np.nan
    expected = twin.symmetric_from_lower(matrix, matrix.diagonal()) @ V
    np.testing.assert_allclose(found.multiply(V, executor), expected, atol=1e-8)


def test_rounding_is_the_root_mean_square_error_of_the_entries(rng):
    matrix = symmetric(200, rng)
    found = stored(matrix, np.float32, 64)
    below = np.tril_indices(200, -1)
    error = found.multiply(np.eye(200))[below] - matrix[below]
    assert float(np.sqrt(np.mean(error**2))) == pytest.approx(found.rounding, rel=0.05)
    assert not found.is_exact
    assert stored(matrix, np.float64, 64).is_exact


@pytest.mark.parametrize("value", [2.0, -2.0, 1e9, np.nan])
def test_larger_entries_are_refused(value):
    with pytest.raises(OverflowError, match="2 and more cannot be stored"):
        stored(np.full((3, 3), value), np.float32, 2)
