from collections import Counter

import numpy as np
import pytest

from kmeans_kernel.core.arrays.rows import (
    LabelledRows,
    basis_size,
    merge_equal_rows,
    stratified_sample,
    water_fill,
    with_typical_lift,
)
from kmeans_kernel.core.arrays.sphere import PLAIN_MAP, SphereMap
from kmeans_kernel.utils.threads import ThreadExecutor


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("entries", [1 << 20, 8])
def test_weights_are_repetitions(dtype, entries, rng, monkeypatch):
    monkeypatch.setattr("kmeans_kernel.core.arrays.matrices.BLOCK_ENTRIES", entries)
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


def test_different_rows_stay_as_they_are(rng):
    X, codes = rng.normal(size=(30, 2)), np.arange(30) % 2
    for weights in (None, np.ones(30)):
        rows, of_class, total = merge_equal_rows(X, codes, weights)
        assert rows is X
        assert of_class is codes
        assert total is None


def test_classes_are_kept_apart_and_both_zeros_are_equal():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0]])
    rows, codes, total = merge_equal_rows(X, np.array([0, 0, 1]), None)
    assert sorted(zip(codes, total, strict=True)) == [(0, 2.0), (1, 1.0)]
    np.testing.assert_array_equal(rows, [[0.0, 1.0]] * 2)


def test_merged_rows_are_in_lexicographic_order(rng):
    X = rng.integers(0, 3, (200, 3)).astype(float)
    codes = rng.integers(0, 2, 200)
    rows, of_class, total = merge_equal_rows(X, codes, None)
    counted = Counter((c, *x) for c, x in zip(codes.tolist(), X.tolist(), strict=True))
    found = [(c, *x) for c, x in zip(of_class.tolist(), rows.tolist(), strict=True)]
    assert found == sorted(counted)
    assert total.tolist() == [counted[key] for key in found]


@pytest.mark.parametrize(("factor", "shift"), [(1000.0, 0.0), (1.0, 1e6), (0.001, -7.0)])
def test_the_order_of_merged_rows_does_not_depend_on_unit_and_offset(factor, shift, rng):
    X = rng.integers(-3, 3, (200, 4)).astype(float)
    codes = rng.integers(0, 3, 200)
    rows, of_class, total = merge_equal_rows(X, codes, None)
    moved = X.copy()
    moved[:, 2] = factor * X[:, 2] + shift
    again = merge_equal_rows(moved, codes, None)
    rows[:, 2] = factor * rows[:, 2] + shift
    for one, other in zip((rows, of_class, total), again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_alike_in_the_features_compared_are_ordered_by_their_values(rng, monkeypatch):
    monkeypatch.setattr("kmeans_kernel.core.arrays.rows._MOST_COMPARED", 1)
    X = np.repeat(rng.integers(0, 2, (30, 5)).astype(float), 2, axis=0)
    codes = np.zeros(60, dtype=int)
    shuffled = rng.permutation(60)
    for one, other in zip(
        merge_equal_rows(X, codes, None), merge_equal_rows(X[shuffled], codes, None), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_colliding_keys_merge_nothing(rng, monkeypatch):
    monkeypatch.setattr(
        "kmeans_kernel.core.arrays.rows._keys", lambda X, _: np.zeros(len(X), np.uint64)
    )
    X = rng.normal(size=(10, 2))
    assert merge_equal_rows(X, np.zeros(10, dtype=int), None)[2] is None


def test_copies_are_multiples_of_the_least_weight():
    codes, classes = np.array([0, 0, 0, 1, 1]), np.arange(2)
    weights = np.array([0.5, 1.0, 50.0, 1.0, 1.5])
    rows = LabelledRows(np.zeros((5, 1)), codes, classes, weights)
    assert rows.copies.tolist() == [1, 2, 30, 2, 3]
    np.testing.assert_allclose(rows.copy_weights, weights / rows.copies)
    odd = LabelledRows(np.zeros((5, 1)), codes, classes, np.array([0.5, 1.0, 2.0, 1.0, 1.01]))
    assert odd.copies.tolist() == [1, 2, 4, 1, 1]
    assert LabelledRows(np.zeros((5, 1)), codes, classes).copies.tolist() == [1] * 5


@pytest.mark.parametrize(
    ("weights", "copies"),
    [
        ([50.0], [30]),  # one distinct row
        ([15.0, 7.0], [15, 7]),
        ([0.5], [1]),
        ([15.5, 7.25], [1, 1]),
        ([7.0] * 10, [1] * 10),  # alike, and enough of them
        ([17.0, 29.0] * 50, [1] * 100),  # enough distinct rows
    ],
)
def test_whole_weights_of_few_distinct_rows_are_copies(weights, copies):
    n = len(weights)
    rows = LabelledRows(np.zeros((n, 1)), np.zeros(n, int), np.arange(1), np.array(weights))
    assert rows.copies.tolist() == copies


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_typical_length_is_the_root_of_the_mean_square(scaled, weighted, rng):
    weights = rng.random(30) if weighted else None
    rows = LabelledRows(rng.normal(size=(30, 4)), np.arange(30) % 2, np.arange(2), weights)
    factors = np.array([1.0, 2.0, 0.0, 0.5]) if scaled else np.ones(4)
    squares = [sum((x * s) ** 2 for x, s in zip(row, factors, strict=True)) for row in rows.X]
    expected = np.sqrt(np.average(squares, weights=weights))
    sphere_map = SphereMap(0.0, factors if scaled else None)
    found = with_typical_lift(rows, sphere_map)
    assert found.lift == pytest.approx(expected)
    assert (found.scales is None) == (not scaled)


def test_the_lift_of_rows_without_length_or_too_much_is_finite():
    for value, expected in ((0.0, 1.0), (1e300, 1e150)):
        rows = LabelledRows(np.full((4, 2), value), np.array([0, 1, 0, 1]), np.arange(2))
        assert with_typical_lift(rows, PLAIN_MAP).lift == expected


@pytest.fixture
def labelled(rng):
    codes = rng.permutation(np.repeat([0, 1, 2], [2000, 900, 7]))
    X = rng.normal(size=(2907, 3))
    return LabelledRows(X, codes, np.arange(3), rng.random(2907), SphereMap(0.7))


@pytest.mark.parametrize("n_workers", [1, 3])
def test_totals_are_sums_over_all_rows(labelled, n_workers):
    found = labelled.total(
        lambda block: block.row_weights @ block.directions(), ThreadExecutor(n_workers)
    )
    np.testing.assert_allclose(found, labelled.weights @ labelled.directions(), rtol=1e-12)
    assert labelled.sum_blocks(len) == labelled.total(len) == 2907


def test_picked_rows_are_counted_within_their_class(labelled):
    positions = [np.array([5, 0]), np.array([899]), np.arange(7)]
    found = labelled.pick(positions)
    members = [np.flatnonzero(labelled.codes == k) for k in range(3)]
    expected = np.sort(np.concatenate([m[p] for m, p in zip(members, positions, strict=True)]))
    np.testing.assert_array_equal(found.X, labelled.X[expected])
    np.testing.assert_array_equal(found.codes, labelled.codes[expected])
    np.testing.assert_array_equal(found.weights, labelled.weights[expected])
    assert found.sphere_map is labelled.sphere_map
    assert labelled.load() is labelled


def test_samples_are_drawn_without_replacement(labelled, rng):
    np.testing.assert_array_equal(labelled.sample(2907, rng), np.arange(2907))
    some = labelled.sample(100, rng)
    assert len(np.unique(some)) == 100
    assert (np.diff(some) > 0).all()
    found = stratified_sample(labelled, 290, rng)
    assert found.class_sizes == [int(np.ceil(290 / 2907 * n)) for n in labelled.class_sizes]
    assert len(np.unique(found.X, axis=0)) == len(found)
    assert stratified_sample(labelled, 5000, rng).class_sizes == labelled.class_sizes


@pytest.mark.parametrize(("q", "m"), [(1, 3), (7, 21), (8, 23), (1000, 1907), (5000, 2907)])
def test_the_size_of_the_basis_is_limited_by_the_rows(labelled, q, m):
    assert basis_size(labelled, q) == m


def test_targets_are_one_in_the_column_of_the_class(labelled):
    targets = labelled.targets()
    assert targets.shape == (2907, 3)
    for row, code in zip(targets, labelled.codes, strict=True):
        assert row.tolist() == [k == code for k in range(3)]


@pytest.mark.parametrize("sizes", [[5], [3, 8], [1, 1, 40], [7, 2, 9, 2]])
@pytest.mark.parametrize("total", [1, 3, 10, 17, 1000])
def test_water_fill_is_the_largest_size_that_fits(sizes, total):
    fits = [q for q in range(1, max(sizes) + 1) if sum(min(q, size) for size in sizes) <= total]
    assert water_fill(sizes, total) == max(fits, default=1)
