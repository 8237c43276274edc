import numpy as np
import pytest

from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering import assignment as _assignment
from kmeans_kernel.core.clustering.assignment import (
    assign,
    cluster_sums,
    own_similarities,
    reassign,
    update_sums,
)
from tests.reference import spherical_kmeans as twin


def sphere(n, d, seed=0, dtype=np.float64):
    return unit_rows(np.random.default_rng(seed).normal(size=(n, d)), dtype=dtype)


def turned(centroids, amounts, seed=0):
    """Return centroids pushed by the given amounts, and the angles they turned by."""
    push = np.random.default_rng(seed).normal(size=centroids.shape) * amounts[:, np.newaxis]
    moved = unit_rows(centroids + push, dtype=centroids.dtype)
    moved[amounts == 0] = centroids[amounts == 0]
    chords = np.linalg.norm(moved.astype(np.float64) - centroids, axis=1)
    return moved, 2 * np.arcsin(chords / 2) * (1 + 1e-6)


def assert_bounds_hold(X, centroids, found):
    angles = np.arccos(np.clip(X.astype(np.float64) @ centroids.T.astype(np.float64), -1, 1))
    rows = np.arange(len(X))
    assert (found.near >= angles[rows, found.labels] - 1e-12).all()
    angles[rows, found.labels] = np.inf
    assert (found.far <= angles.min(axis=1) + 1e-12).all()


def test_assign_equals_the_twin():
    X, centroids = sphere(40, 5), sphere(6, 5, 1)
    found = assign(X, centroids)
    labels, similarities = twin.assign(X, centroids)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_allclose(own_similarities(X, centroids, found.labels), similarities)
    assert_bounds_hold(X, centroids, found)


def test_ties_go_to_the_first():
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = assign(X, np.array([[0.6, 0.8], [0.6, 0.8], [0.8, 0.6], [0.8, 0.6]]))
    np.testing.assert_array_equal(found.labels, [2, 0])


def test_a_single_centroid_is_never_in_doubt():
    found = assign(sphere(5, 3), sphere(1, 3, 1))
    np.testing.assert_allclose(found.far, np.pi)


PUSHES = {
    "nothing moved": lambda q, rng: np.zeros(q),
    "one moved far": lambda q, rng: np.where(np.arange(q) == 3, 1.0, 0.0),
    "a few moved": lambda q, rng: np.where(rng.random(q) < 0.2, 0.1, 0.0),
    "all moved a little": lambda q, rng: np.full(q, 1e-3),
    "some fast, the rest slow": lambda q, rng: np.where(rng.random(q) < 0.1, 0.3, 1e-4),
    "all moved far": lambda q, rng: np.full(q, 1.0),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("push", PUSHES.values(), ids=PUSHES.keys())
@pytest.mark.parametrize("q", [2, 10, 60])
def test_reassign_equals_assign_over_many_moves(push, q, dtype):
    X, centroids = sphere(500, 8, dtype=dtype), sphere(q, 8, 1, dtype)
    rng = np.random.default_rng(0)
    found = assign(X, centroids)
    for step in range(6):
        amounts = push(q, rng)[:q]
        centroids, turns = turned(centroids, amounts, step)
        found = reassign(X, centroids, found, turns)
        np.testing.assert_array_equal(found.labels, assign(X, centroids).labels)
        assert_bounds_hold(X, centroids, found)


def test_reassign_skips_most_products(monkeypatch):
    """When few centroids move, far fewer products are computed than the dense algorithm would."""
    X, centroids = sphere(2000, 8), sphere(100, 8, 1)
    before = assign(X, centroids)
    moved, turns = turned(centroids, np.where(np.arange(100) < 5, 0.1, 0.0))
    compared = []
    two_best = _assignment._two_best
    monkeypatch.setattr(_assignment, "_two_best", lambda p: compared.append(len(p)) or two_best(p))
    reassign(X, moved, before, turns)
    assert sum(compared) < 400


def test_the_assignment_before_is_not_modified():
    X, centroids = sphere(300, 4), sphere(20, 4, 1)
    before = assign(X, centroids)
    kept = [before.labels.copy(), before.near.copy(), before.far.copy()]
    moved, turns = turned(centroids, np.full(20, 0.01))
    reassign(X, moved, before, turns)
    for now, then in zip((before.labels, before.near, before.far), kept, strict=True):
        np.testing.assert_array_equal(now, then)


def test_rows_without_direction_stay_with_the_first():
    X, centroids = np.zeros((4, 3)), sphere(5, 3)
    before = assign(X, centroids)
    moved, turns = turned(centroids, np.full(5, 0.01))
    np.testing.assert_array_equal(reassign(X, moved, before, turns).labels, 0)


def test_sums_equal_the_twin_before_and_after_updates(rng, monkeypatch):
    X = sphere(60, 4, dtype=np.float32)
    before, after = rng.integers(7, size=(2, 60))
    weights = rng.random(60)
    for entries in (1 << 20, 40):
        monkeypatch.setattr("kmeans_kernel.core.arrays.matrices.BLOCK_ENTRIES", entries)
        sums = cluster_sums(X, before, 7, weights)
        assert sums.dtype == np.float64
        np.testing.assert_allclose(sums, twin.cluster_sums(X, before, 7, weights), atol=1e-12)
        touched = update_sums(sums, X, before, after, weights)
        np.testing.assert_allclose(sums, twin.cluster_sums(X, after, 7, weights), atol=1e-12)
        changed = before != after
        np.testing.assert_array_equal(touched, np.union1d(before[changed], after[changed]))
        kept = sums.copy()
        assert update_sums(sums, X, after, after, weights).size == 0
        np.testing.assert_array_equal(sums, kept)
