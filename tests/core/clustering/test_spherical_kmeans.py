import numpy as np
import pytest

from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering import spherical_kmeans as kmeans
from kmeans_kernel.core.clustering.assignment import cluster_sums, own_similarities
from tests.reference import spherical_kmeans as twin

TOL = 1e-6


def run(X, n_clusters, seed=0, init="random", tol=TOL, max_iter=300, **options):
    rng = np.random.default_rng(seed)
    return kmeans.cluster(X, n_clusters, init=init, tol=tol, max_iter=max_iter, rng=rng, **options)


def sphere(n, d, seed=0, dtype=np.float64):
    return unit_rows(np.random.default_rng(seed).normal(size=(n, d)), dtype=dtype)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "d", "q"), [(30, 2, 3), (60, 5, 7), (50, 8, 40), (40, 3, 1)])
def test_every_iteration_equals_the_twin(seed, n, d, q):
    X = sphere(n, d, seed)
    first = X[kmeans.draw_centroids(X, q, "random", np.random.default_rng(seed))]
    centroids, history = twin.cluster(X, first, 1e-6, 300)
    found = run(X, q, seed)
    assert found.n_iter == len(history)
    np.testing.assert_allclose(found.centroids, centroids, atol=1e-12)
    for n_iter in range(1, len(history)):
        stopped = run(X, q, seed, max_iter=n_iter)
        np.testing.assert_array_equal(stopped.labels, history[n_iter])
        assert stopped.n_iter == n_iter


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_weighted_rows_equal_the_twin(seed, init):
    X, weights = sphere(60, 5, seed), np.random.default_rng(seed).random(60) * 9
    first = kmeans.draw_centroids(X, 7, init, np.random.default_rng(seed), weights)
    assert len(set(first)) == 7
    centroids, history = twin.cluster(X, X[first], 1e-6, 300, weights)
    found = run(X, 7, seed, init, weights=weights)
    assert found.n_iter == len(history)
    np.testing.assert_allclose(found.centroids, centroids, atol=1e-12)


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_heavy_rows_are_drawn_first(init):
    X, weights = sphere(50, 5), np.full(50, 1e-9)
    weights[[7, 9]] = 1.0
    drawn = kmeans.draw_centroids(X, 2, init, np.random.default_rng(0), weights)
    assert set(drawn) == {7, 9}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("init", ["random", "k-means++"])
@pytest.mark.parametrize("seed", range(5))
def test_the_objective_never_rises(seed, init, dtype):
    X = sphere(300, 6, seed, dtype)
    longest = run(X, 20, seed, init).n_iter

    def objective_after(n_iter):
        found = run(X, 20, seed, init, max_iter=n_iter)
        similarities = own_similarities(X, found.centroids, found.labels)
        return np.sum(1 - similarities.astype(np.float64))

    objective = [objective_after(n_iter) for n_iter in range(1, longest + 1)]
    assert longest > 2
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert (np.diff(objective) <= tolerance).all()
    assert objective[-1] < objective[0]


def test_the_steps_equal_their_twins():
    centroids, sums = sphere(6, 5, 1), 3 * sphere(6, 5, 2)
    moved = kmeans.move_centroids(centroids, sums)
    np.testing.assert_allclose(moved, twin.move_centroids(centroids, sums), rtol=1e-12)
    chords = kmeans.distances(moved, centroids)
    expected = twin.mean_deviation(moved, centroids)
    assert kmeans.mean_deviation(chords) == pytest.approx(expected, abs=1e-12)
    angles = [np.arccos(twin.dot(a, b)) for a, b in zip(moved, centroids, strict=True)]
    assert (kmeans.turned_angles(chords) >= angles).all()
    np.testing.assert_allclose(kmeans.turned_angles(chords), angles, rtol=1e-5)


def test_sums_computed_anew_change_nothing(monkeypatch):
    X = sphere(400, 6)
    kept_up = run(X, 12, tol=0.0)
    assert kept_up.n_iter > 6
    monkeypatch.setattr(kmeans, "_ITERATIONS_BETWEEN_FULL_SUMS", 2)
    anew = run(X, 12, tol=0.0)
    np.testing.assert_array_equal(anew.labels, kept_up.labels)
    np.testing.assert_allclose(anew.centroids, kept_up.centroids, atol=1e-12)


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_blocks_do_not_change_the_result(monkeypatch, init):
    X = sphere(200, 4)
    whole = run(X, 9, init=init)
    monkeypatch.setattr("kmeans_kernel.core.arrays.matrices.BLOCK_ENTRIES", 100)
    cut = run(X, 9, init=init)
    np.testing.assert_array_equal(cut.labels, whole.labels)
    np.testing.assert_allclose(cut.centroids, whole.centroids, atol=1e-12)


def test_the_seed_decides_the_result():
    X = sphere(500, 8, dtype=np.float32)
    one, two, other = run(X, 10, 3), run(X, 10, 3), run(X, 10, 4)
    np.testing.assert_array_equal(one.centroids, two.centroids)
    assert not np.array_equal(one.centroids, other.centroids)


@pytest.mark.parametrize("q", [4, 5, 50])
def test_rows_are_their_own_centroids_if_clusters_are_as_many(q):
    X = sphere(4, 3)
    found = run(X, q)
    np.testing.assert_array_equal(found.centroids, X)
    np.testing.assert_array_equal(found.labels, np.arange(4))
    assert found.deviation <= TOL
    assert not np.shares_memory(found.centroids, X)


def test_an_empty_cluster_keeps_its_centroid():
    X = np.repeat(sphere(2, 3), 10, axis=0)  # two points only, five clusters
    found = run(X, 5)
    assert found.deviation <= TOL
    assert np.isfinite(found.centroids).all()
    np.testing.assert_allclose(np.linalg.norm(found.centroids, axis=1), 1, atol=1e-12)
    assert np.unique(found.labels).size <= 2


def test_a_cluster_whose_sum_is_zero_keeps_its_place():
    centroids = np.eye(2)
    sums = cluster_sums(np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([1, 1]), 2, np.ones(2))
    np.testing.assert_array_equal(kmeans.move_centroids(centroids, sums), centroids)


def test_rows_without_direction_leave_centroids_finite():
    X = np.vstack([np.zeros((5, 3)), sphere(20, 3)])
    for seed in range(10):
        found = run(X, 4, seed)
        assert np.isfinite(found.centroids).all()
        assert found.deviation <= TOL


def test_rows_without_any_direction_converge_to_zero():
    found = run(np.zeros((6, 3)), 2)
    assert found.deviation <= TOL
    np.testing.assert_array_equal(found.centroids, np.zeros((2, 3)))


def test_max_iter_stops_before_convergence():
    found = run(sphere(300, 6), 20, max_iter=1)
    assert found.n_iter == 1
    assert found.deviation > TOL


def test_each_iteration_is_reported():
    heard = []
    found = run(sphere(300, 6), 20, on_iteration=lambda n, d: heard.append((n, d)))
    assert [n for n, _ in heard] == list(range(1, found.n_iter + 1))
    assert heard[-1][1] == found.deviation <= TOL


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_first_centroids_are_distinct_rows(init):
    X = np.repeat(sphere(3, 4), 5, axis=0)  # fewer distinct directions than clusters
    chosen = kmeans.draw_centroids(X, 9, init, np.random.default_rng(0))
    assert np.unique(chosen).size == 9


def test_spread_centroids_hit_every_far_cluster():
    centers = np.eye(6)
    X = unit_rows(np.repeat(centers, 50, axis=0) + 0.01, dtype=np.float64)
    for seed in range(20):
        chosen = kmeans.draw_centroids(X, 6, "k-means++", np.random.default_rng(seed))
        assert set(chosen // 50) == set(range(6))
