"""Matrix operations, dense and sparse, against their slow twins."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kmeans_kernel.core.arrays import matrices
from tests.reference import matrices as twin


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(9, 5)) * (rng.random((9, 5)) < 0.5)
    X[3] = 0.0
    return X


@pytest.fixture(params=[np.asarray, csr_array], ids=["dense", "sparse"])
def kind(request):
    return request.param


def test_products_agree_with_the_twin(rows, kind, rng, monkeypatch):
    X = rows
    monkeypatch.setattr(matrices, "BLOCK_ENTRIES", 12)  # blocks of few rows
    Y, rows = rng.normal(size=(4, 5)), kind(X)
    expected = np.array(twin.product(X, Y))
    out = np.empty((9, 4))
    np.testing.assert_allclose(matrices.multiply_into(out, rows, Y), expected, atol=1e-14)
    found = np.empty((9, 4))
    for some, block in matrices.product_blocks(rows, Y):
        found[some] = block
    np.testing.assert_allclose(found, expected, atol=1e-14)
    chosen = np.array([7, 0, 3, 8, 8])
    gathered = [(some, b.copy()) for some, b in matrices.gathered_product_blocks(rows, chosen, Y)]
    assert np.concatenate([some for some, _ in gathered]).tolist() == chosen.tolist()
    blocks = np.concatenate([block for _, block in gathered])
    np.testing.assert_allclose(blocks, expected[chosen], atol=1e-14)


def test_paired_products_agree_with_the_twin(rows, kind, rng):
    X = rows
    Y, partners = rng.normal(size=(3, 5)), rng.integers(0, 3, 9)
    found = matrices.paired_products(kind(X), Y, partners)
    np.testing.assert_allclose(found, twin.paired_products(X, Y, partners), atol=1e-14)


def test_lengths_agree_with_the_twin(rows, kind):
    X, rows = rows, kind(rows)
    np.testing.assert_allclose(matrices.squared_lengths(rows), twin.squared_lengths(X), rtol=1e-14)
    found = matrices.largest_entries(csr_array(X))
    np.testing.assert_array_equal(found, twin.largest_entries(X))


def test_scaling_of_sparse_rows_agrees_with_the_twin(rows, rng):
    X = rows
    rows, by_row, by_column = csr_array(X), rng.normal(size=9), rng.normal(size=5)
    scaled = matrices.scale_rows(rows, by_row, np.float64).toarray()
    np.testing.assert_allclose(scaled, twin.scale_rows(X, by_row), rtol=1e-14)
    scaled = matrices.scale_columns(rows, by_column).toarray()
    np.testing.assert_allclose(scaled, twin.scale_columns(X, by_column), rtol=1e-14)
    longer = matrices.append_column(rows, by_row).toarray()
    np.testing.assert_array_equal(longer, twin.append_column(X, by_row))
    np.testing.assert_array_equal(rows.toarray(), X)  # the argument is not changed


@pytest.mark.parametrize(("n", "size"), [(0, 3), (1, 3), (3, 3), (7, 3), (7, 1), (2, 9)])
def test_blocks_hold_every_row_once(n, size):
    blocks = list(matrices.blocks_of(n, size))
    rows = [row for block in blocks for row in range(n)[block]]
    assert rows == list(range(n))
    assert all(block.stop - block.start <= size for block in blocks)


def test_joined_rows_are_those_of_the_parts(rows, kind):
    found = matrices.join_rows([kind(rows[:2]), kind(rows[2:2]), kind(rows[2:])])
    assert isinstance(found, type(kind(rows)))
    np.testing.assert_array_equal(matrices.dense(found), rows)
