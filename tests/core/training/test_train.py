import time
import weakref

import numpy as np
import pytest

from kmeans_kernel.core.arrays.executor import ALONE
from kmeans_kernel.core.arrays.samples import Labelled
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering.representatives import KMeans, busy_share
from kmeans_kernel.core.clustering.spherical_kmeans import cluster
from kmeans_kernel.core.kernels.kernels import Polynomial
from kmeans_kernel.core.training.build import Recipe
from kmeans_kernel.core.training.timing import Clock
from kmeans_kernel.core.training.train import Settings, train
from kmeans_kernel.core.training.tuning import Open
from kmeans_kernel.estimators._progress import Silent
from kmeans_kernel.utils.threads import Threads
from tests.reference import lssvm as twin

SETTINGS = Settings(
    Recipe(KMeans(5, "random", 1e-6, 300), 0.0, "representatives"),
    grows=False,
    open_=Open(Polynomial(4), 1e-6, 0.0, None),
)


def run(class_rows, classes, workers=ALONE):
    sizes = [len(rows) for rows in class_rows]
    data = Labelled(np.concatenate(class_rows), np.repeat(np.arange(len(sizes)), sizes), classes)
    rngs = [np.random.default_rng(k) for k in range(len(sizes))]
    return train(data, SETTINGS, rngs, np.random.default_rng(0), Silent(), workers)


@pytest.mark.parametrize("workers", [ALONE, Threads(2)], ids=["alone", "threads"])
def test_training_is_the_stages_in_order(workers, rng):
    class_rows = [rng.normal(size=(n, 4)) for n in (30, 3, 50)]
    found = run(class_rows, np.array(["a", "b", "c"]), workers)
    model = found.model
    # the second class has fewer rows than representatives were asked for
    assert model.representative_classes.tolist() == [0] * 5 + [1] * 3 + [2] * 5
    assert model.representative_counts.sum() == 83
    for k, rows in enumerate(class_rows):
        alone = cluster(
            unit_rows(rows), 5, init="random", tol=1e-6, max_iter=300, rng=np.random.default_rng(k)
        )
        own = model.directions[model.representative_classes == k]
        np.testing.assert_allclose(own, alone.centroids, atol=1e-7)
        assert found.n_iter[k] == alone.n_iter
    gram = (model.directions @ model.directions.T) ** 4
    targets = np.eye(3)[model.representative_classes]
    residual = twin.relative_residual(gram, targets, 1e-6, model.dual_coef, model.intercept)
    assert residual <= 1e-6
    assert set(found.seconds) == {"sphere", "kmeans", "kernel", "solve"}


@pytest.mark.parametrize(("workers", "most"), [(ALONE, 1), (Threads(2), 2)])
def test_no_more_classes_are_held_than_there_are_workers(workers, most, rng):
    held, most_held = [], []

    class Made:
        shape, dtype = (24000, 4), np.dtype(float)

        def __getitem__(self, rows):
            made = rng.normal(size=(len(rows), 4))
            held.append(0)
            weakref.finalize(made, held.pop)
            most_held.append(len(held))
            return made

    data = Labelled(Made(), np.repeat(np.arange(8), 3000), np.arange(8))
    rngs = [np.random.default_rng(k) for k in range(8)]
    train(data, SETTINGS, rngs, rng, Silent(), workers)
    assert max(most_held) <= most


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


def test_seconds_of_stages_add_up_to_what_passed(rng):
    start = time.perf_counter()
    found = run([rng.normal(size=(4000, 30)) for _ in range(4)], np.arange(4), Threads(2))
    assert sum(found.seconds.values()) <= time.perf_counter() - start


def test_a_stage_within_a_stage_counts_once():
    clock = Clock()
    with clock.stage("outer"):
        with clock.stage("inner"):
            time.sleep(0.05)
        time.sleep(0.01)
    assert clock.seconds["inner"] >= 0.05
    assert clock.seconds["outer"] < 0.04
