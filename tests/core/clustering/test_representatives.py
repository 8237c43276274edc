from dataclasses import replace

import numpy as np
import pytest

from kmeans_kernel.core.arrays.execution import SERIAL, Run
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.clustering.assignment import nearest_sums
from kmeans_kernel.core.clustering.representatives import (
    NearestSums,
    _rows_to_cluster,
    busy_share,
    represent,
)
from kmeans_kernel.core.clustering.spherical_kmeans import cluster, warm_started
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.core.training.configs import OPEN
from tests.reference import spherical_kmeans as twin

CONFIG = replace(OPEN, n_representatives=4)


@pytest.fixture
def rows(rng):
    """Rows of four classes, of which the second has few and the third none."""
    codes = rng.permutation(np.repeat([0, 1, 3], [40, 3, 30]))
    weights = rng.integers(1, 5, 73) / 2
    return LabelledRows(rng.normal(size=(73, 3)), codes, np.arange(4), weights, SphereMap(1.0))


def generators():
    return [np.random.default_rng(k) for k in range(4)]


@pytest.mark.parametrize("executor", [SERIAL, ThreadExecutor(2)], ids=["serial", "threads"])
def test_representatives_are_those_of_each_class_by_the_twin(rows, executor):
    start = {k: rows.directions(np.flatnonzero(rows.codes == k)[:4]) for k in (0, 3)}
    found = represent(rows, CONFIG, generators(), Run(executor), start)
    assert found.codes.tolist() == [0] * 4 + [1] * 3 + [3] * 4
    assert found.n_iter[2] == found.deviations[2] == 0
    assert (found.deviations <= CONFIG.tol).all()
    assert found.counts.sum() == rows.weights.sum()
    for k in (0, 3):
        mine = np.flatnonzero(rows.codes == k)
        U, weights = rows.directions(mine), rows.weights[mine]
        centroids, history = twin.cluster(U, start[k], CONFIG.tol, CONFIG.max_iter, weights)
        np.testing.assert_allclose(found.directions[found.codes == k], centroids, atol=1e-6)
        assert found.n_iter[k] == len(history)
        labels, _ = twin.assign(U, centroids)
        counts = np.bincount(labels, weights, 4)
        np.testing.assert_allclose(found.counts[found.codes == k], counts)
    own = rows.directions(np.flatnonzero(rows.codes == 1))
    np.testing.assert_allclose(found.directions[found.codes == 1], own, atol=1e-12)
    np.testing.assert_array_equal(found.counts[found.codes == 1], rows.weights[rows.codes == 1])


def test_the_stages_of_clustering_are_sphere_and_kmeans(rows):
    run = Run()
    represent(rows, CONFIG, generators(), run)
    assert set(run.seconds) == {"sphere", "kmeans"}


def test_nearest_sums_of_blocks_add_up_to_those_of_the_twin(rows, rng):
    centroids = {k: rows.directions(np.flatnonzero(rows.codes == k)[:3]) for k in (0, 1, 3)}
    part = NearestSums(centroids)
    blocks = np.split(np.arange(73), [1, 20, 41])
    found = sum((part(rows.at(block)) for block in blocks[1:]), part(rows.at(blocks[0]))).of
    assert set(found) == {0, 1, 3}
    for k, sums in found.items():
        mine = np.flatnonzero(rows.codes == k)
        U, weights = rows.directions(mine), rows.weights[mine]
        labels, _ = twin.assign(U, centroids[k])
        expected = twin.cluster_sums(U, labels, 3, weights)
        np.testing.assert_allclose(sums.sums, expected, atol=1e-12)
        np.testing.assert_allclose(sums.counts, np.bincount(labels, weights, 3))
        whole = nearest_sums(U, centroids[k], weights)
        np.testing.assert_allclose(whole.sums, expected, atol=1e-12)
        np.testing.assert_allclose(whole.counts, sums.counts)


@pytest.mark.parametrize("n_start", [None, 0, 2, 4, 7])
def test_the_first_centroids_are_replaced_by_those_to_start_from(n_start, rng):
    drawn = rng.normal(size=(4, 3)).astype(np.float32)
    start = None if n_start is None else rng.normal(size=(n_start, 3))
    found = warm_started(drawn, start)
    assert found.dtype == np.float32
    for q in range(4):
        replaced = start is not None and q < len(start)
        np.testing.assert_allclose(found[q], start[q] if replaced else drawn[q], rtol=1e-6)


@pytest.mark.parametrize(
    ("sizes", "n_workers", "share"),
    [
        ([5, 5], 1, 1.0),
        ([5, 5], 2, 1.0),
        ([6, 2, 2], 2, 10 / 12),
        ([1, 9], 2, 10 / 18),
        ([3], 4, 0.25),
    ],
)
def test_the_share_of_time_that_workers_are_busy(sizes, n_workers, share):
    assert busy_share(sizes, n_workers) == pytest.approx(share)


@pytest.mark.parametrize(
    ("Q", "is_table", "n"),
    [
        (4, True, 200),
        (4, False, 200),
        (400, True, 4000),
        (400, False, 20_000),
        (1000, True, 10_000),
    ],
)
def test_kmeans_of_a_table_with_many_centroids_uses_fewer_rows(Q, is_table, n):
    settings = replace(CONFIG, fit_on="samples", n_representatives=Q)
    drawn = _rows_to_cluster(60_000, settings, np.random.default_rng(0), is_table=is_table)
    assert len(drawn) == n


@pytest.mark.parametrize(("fit_on", "sampled"), [("samples", True), ("representatives", False)])
def test_kmeans_of_many_rows_uses_some_of_them_and_counts_all(rows, fit_on, sampled, monkeypatch):
    monkeypatch.setattr("kmeans_kernel.core.clustering.representatives._ROWS_PER_CENTROID", 5)
    clustered = []

    def counted(X, *args, **options):
        clustered.append(len(X))
        return cluster(X, *args, **options)

    monkeypatch.setattr("kmeans_kernel.core.clustering.representatives.cluster", counted)
    found = represent(rows, replace(CONFIG, fit_on=fit_on), generators(), Run())
    assert clustered == ([20, 20] if sampled else [40, 30])
    for k in (0, 3):
        mine = np.flatnonzero(rows.codes == k)
        labels, _ = twin.assign(rows.directions(mine), found.directions[found.codes == k])
        expected = np.bincount(labels, rows.weights[mine], 4)
        np.testing.assert_allclose(found.counts[found.codes == k], expected)
