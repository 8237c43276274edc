import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmeans_kernel.core.arrays.sphere import unit_rows, unlift
from tests.reference import sphere as twin

ROWS = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(-1e300, 1e300, allow_subnormal=False),
)


@given(ROWS, st.sampled_from([0.0, 1e-3, 1.0, 1e200]))
def test_unit_rows_equal_the_twin_for_any_finite_rows(X, lift):
    found = unit_rows(X, lift, np.float64)
    np.testing.assert_allclose(found, twin.unit_rows(X, lift), rtol=1e-12, atol=1e-300)


@given(ROWS, st.sampled_from([0.0, 2.5]))
def test_rows_have_length_one_or_are_zero(X, lift):
    lengths = np.linalg.norm(unit_rows(X, lift).astype(np.float64), axis=1)
    zero = (X == 0).all(axis=1) & (lift == 0)
    np.testing.assert_allclose(lengths, np.where(zero, 0, 1), atol=1e-6)


@pytest.mark.parametrize("lift", [0.0, 3.0])
def test_a_zero_row_is_zero_or_the_pole(lift):
    found = unit_rows(np.zeros((2, 3)), lift)
    np.testing.assert_array_equal(found, [[0, 0, 0]] * 2 if lift == 0 else [[0, 0, 0, 1]] * 2)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_numbers_of_any_type_become_float32(dtype, rng):
    X = rng.integers(0, 255, size=(7, 5)).astype(dtype)
    found = unit_rows(X)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, twin.unit_rows(X), rtol=1e-6)


def test_blocks_do_not_change_the_result(rng, monkeypatch):
    monkeypatch.setattr("kmeans_kernel.core.arrays.matrices.BLOCK_ENTRIES", 10)
    X = rng.normal(size=(23, 4))
    np.testing.assert_allclose(unit_rows(X, 1.0, np.float64), twin.unit_rows(X, 1.0), rtol=1e-12)


def test_the_argument_is_not_modified(rng):
    X = np.vstack([rng.normal(size=(3, 4)), np.full((1, 4), 1e200)])
    before = X.copy()
    unit_rows(X, 1.0, np.float64)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("lift", [0.0, 2.0])
def test_unlift_inverts_the_lift_up_to_length(lift, rng):
    directions = unit_rows(rng.normal(size=(5, 3)), lift, np.float64)
    points = unlift(directions, lift)
    np.testing.assert_allclose(points, twin.unlift(directions, lift), rtol=1e-12)
    np.testing.assert_allclose(unit_rows(points, lift, np.float64), directions, rtol=1e-12)
