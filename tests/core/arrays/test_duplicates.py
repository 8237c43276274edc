import numpy as np
import pytest

from kmeans_kernel.core.arrays.rows import merge_equal_rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("entries", [1 << 20, 8])
def test_weights_and_repetitions_come_to_the_same(dtype, entries, rng, monkeypatch):
    monkeypatch.setattr("kmeans_kernel.core.arrays.blocking.BLOCK_ENTRIES", entries)
    X, codes = rng.normal(size=(50, 3)).astype(dtype), rng.integers(0, 2, 50)
    weights = rng.integers(0, 4, 50)
    weighted = merge_equal_rows(X, codes, weights.astype(float))
    repeated = rng.permutation(np.repeat(np.arange(50), weights))
    for one, two in zip(
        weighted, merge_equal_rows(X[repeated], codes[repeated], None), strict=True
    ):
        np.testing.assert_array_equal(one, two)
    counted = {}
    for i in repeated:
        key = (*X[i].tolist(), codes[i])
        counted[key] = counted.get(key, 0) + 1
    rows, of_class, total = weighted
    found = {(*x.tolist(), c): w for x, c, w in zip(rows, of_class, total, strict=True)}
    assert found == counted


def test_rows_that_differ_come_as_they_were(rng):
    X, codes = rng.normal(size=(30, 2)), np.arange(30) % 2
    for weights in (None, np.ones(30)):
        rows, of_class, total = merge_equal_rows(X, codes, weights)
        assert rows is X
        assert of_class is codes
        assert total is None


def test_equal_rows_of_two_classes_stay_apart_and_the_zeros_are_one_number():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0]])
    rows, codes, total = merge_equal_rows(X, np.array([0, 0, 1]), None)
    assert sorted(zip(codes, total, strict=True)) == [(0, 2.0), (1, 1.0)]
    np.testing.assert_array_equal(rows, [[0.0, 1.0]] * 2)


def test_keys_that_collide_by_chance_merge_nothing(rng, monkeypatch):
    monkeypatch.setattr(
        "kmeans_kernel.core.arrays.duplicates._keys", lambda X, _: np.zeros(len(X), np.uint64)
    )
    X = rng.normal(size=(10, 2))
    assert merge_equal_rows(X, np.zeros(10, dtype=int), None)[2] is None
