import numpy as np
import pytest

from kmeans_kernel.core.arrays.column_order import order_of_columns
from tests.reference import column_order as twin


@pytest.fixture
def table():
    """Columns of few and of many values, two with the same values, one with missing values."""
    rng = np.random.default_rng(0)
    X = np.column_stack([
        rng.normal(size=60), rng.integers(3, size=60), rng.integers(2, size=60),
        rng.integers(2, size=60), rng.normal(size=60) * 1e6,
    ])  # fmt: skip
    X[:30, 3], X[30:, 3] = X[:30, 2][::-1], X[30:, 2][::-1]
    X[::7, 4] = np.nan
    return X, np.repeat([0, 1], 30)


def test_twin(table):
    X, codes = table
    assert order_of_columns(X, codes).tolist() == twin.order_of_columns(X.tolist(), codes)


@pytest.mark.parametrize("seed", range(5))
def test_neither_places_nor_units_nor_order_of_rows_matter(table, seed):
    X, codes = table
    rng = np.random.default_rng(seed)
    columns, rows = rng.permutation(X.shape[1]), rng.permutation(len(X))
    other = (X * 10.0 ** rng.integers(-3, 4, X.shape[1]) + 8.0)[:, columns][rows]
    there = columns[order_of_columns(other, codes[rows])]
    assert there.tolist() == order_of_columns(X, codes).tolist()


def test_columns_with_the_same_values_in_other_rows_are_told_apart(table):
    X, codes = table
    assert sorted(X[:30, 2]) == sorted(X[:30, 3])
    swapped = X[:, [0, 1, 3, 2, 4]]
    first, second = order_of_columns(X, codes), order_of_columns(swapped, codes)
    assert X[:, first].tobytes() == swapped[:, second].tobytes()


def test_equal_columns_keep_their_order():
    X = np.repeat(np.arange(6.0)[:, None], 3, axis=1)
    assert order_of_columns(X, np.array([0, 0, 0, 1, 1, 1])).tolist() == [0, 1, 2]
