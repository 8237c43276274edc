import time

import numpy as np

from kmeans_kernel._kernels import Polynomial
from kmeans_kernel._progress import Silent
from kmeans_kernel._sphere import unit_rows
from kmeans_kernel._spherical_kmeans import cluster
from kmeans_kernel._training import Settings, _Clock, train
from tests.reference import lssvm as twin

SETTINGS = Settings(5, Polynomial(4), 1e-6, 0.0, "random", 1e-6, 300)


def test_training_is_the_stages_in_order(rng):
    class_rows = [rng.normal(size=(n, 4)) for n in (30, 3, 50)]
    classes = np.array(["a", "b", "c"])
    rngs = [np.random.default_rng(k) for k in range(3)]
    found = train(iter(class_rows), classes, SETTINGS, rngs, Silent())
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


def test_only_one_class_is_held_at_a_time(rng):
    given_out = []

    class Rows(np.ndarray):
        def __del__(self):
            given_out.append(None)

    def class_rows():
        for k in range(3):
            assert len(given_out) >= max(0, k - 1)
            yield rng.normal(size=(30, 4)).view(Rows)

    train(class_rows(), np.arange(3), SETTINGS, map(np.random.default_rng, range(3)), Silent())


def test_a_stage_within_a_stage_counts_once():
    clock = _Clock()
    with clock.stage("outer"):
        with clock.stage("inner"):
            time.sleep(0.05)
        time.sleep(0.01)
    assert clock.seconds["inner"] >= 0.05
    assert clock.seconds["outer"] < 0.04
