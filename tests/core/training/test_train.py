import time
import weakref
from dataclasses import replace

import numpy as np
import pytest

from kmeans_kernel.core.arrays.events import (
    CandidateTried,
    ClassClustered,
    FitProgress,
    KMeansIteration,
    SizeTried,
    SolveStarted,
)
from kmeans_kernel.core.arrays.execution import SERIAL, Run
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering.spherical_kmeans import cluster
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian, Polynomial
from kmeans_kernel.core.training.train import train
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.core.training.configs import OPEN
from tests.reference import dual as twin

CONFIG = replace(
    OPEN,
    n_representatives=5,
    fit_on="representatives",
    kernel=Polynomial(4),
    regularization=1e-6,
    lift=0.0,
)


def labelled(class_rows, classes):
    sizes = [len(rows) for rows in class_rows]
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return LabelledRows(np.concatenate(class_rows), codes, classes)


def run(rows, config=CONFIG, executor=SERIAL, on_event=None):
    rngs = [np.random.default_rng(k) for k in range(len(rows.classes))]
    return train(rows, config, rngs, Run(executor, on_event, np.random.default_rng(0)))


@pytest.mark.parametrize("executor", [SERIAL, ThreadExecutor(2)], ids=["serial", "threads"])
def test_training_is_the_stages_in_order(executor, rng):
    class_rows = [rng.normal(size=(n, 4)) for n in (30, 3, 50)]
    found = run(labelled(class_rows, np.array(["a", "b", "c"])), executor=executor)
    model = found.model
    # the second class has fewer rows than representatives were asked for
    assert model.representative_classes.tolist() == [0] * 5 + [1] * 3 + [2] * 5
    assert model.representative_counts.sum() == 83
    for k, rows in enumerate(class_rows):
        expected = cluster(
            unit_rows(rows), 5, init="random", tol=1e-6, max_iter=300, rng=np.random.default_rng(k)
        )
        own = model.directions[model.representative_classes == k]
        np.testing.assert_allclose(own, expected.centroids, atol=1e-7)
        assert found.n_iter[k] == expected.n_iter
        assert found.deviations[k] == expected.deviation <= 1e-6
    gram = (model.directions @ model.directions.T) ** 4
    targets = np.eye(3)[model.representative_classes]
    residual = twin.relative_residual(gram, targets, 1e-6, model.dual_coef, model.intercept)
    assert residual <= 1e-6
    assert set(found.seconds) == {"sphere", "kmeans", "kernel", "solve"}
    assert (found.n_representatives, found.regularization, found.loss) == (5, 1e-6, "squared")
    assert (found.held_out_error, found.sizes, found.online) == (None, (), False)


@pytest.mark.parametrize(("executor", "most"), [(SERIAL, 1), (ThreadExecutor(2), 2)])
def test_classes_in_memory_are_no_more_than_workers(executor, most, rng):
    held, most_held = [], []

    class Made:
        shape, dtype = (24000, 4), np.dtype(float)

        def __getitem__(self, rows):
            made = rng.normal(size=(len(rows), 4))
            held.append(0)
            weakref.finalize(made, held.pop)
            most_held.append(len(held))
            return made

    run(LabelledRows(Made(), np.repeat(np.arange(8), 3000), np.arange(8)), executor=executor)
    assert max(most_held) <= most


def test_seconds_of_stages_add_up_to_the_time_that_passed(rng):
    rows = labelled([rng.normal(size=(4000, 30)) for _ in range(4)], np.arange(4))
    start = time.perf_counter()
    found = run(rows, executor=ThreadExecutor(2))
    assert sum(found.seconds.values()) <= time.perf_counter() - start


def test_events_are_those_of_the_training(rng):
    rows, events = labelled([rng.normal(size=(n, 4)) for n in (30, 3, 50)], np.arange(3)), []
    found = run(rows, on_event=events.append)
    ended = {event.label: event for event in events if isinstance(event, ClassClustered)}
    assert {k: (one.n_rows, one.n_representatives) for k, one in ended.items()} == {
        0: (30, 5), 1: (3, 3), 2: (50, 5),
    }  # fmt: skip
    for k, one in ended.items():
        assert (one.n_iter, one.deviation) == (found.n_iter[k], found.deviations[k])
        moves = [e for e in events if isinstance(e, KMeansIteration) and e.label == k]
        # rows that are their own centroids do not move
        n_moves = one.n_iter if k != 1 else 0
        assert [move.n_iter for move in moves] == list(range(1, n_moves + 1))
        assert not moves or moves[-1].deviation == one.deviation
    assert [event for event in events if not isinstance(event, FitProgress)][-1] == SolveStarted(13)
    shares = [event.fraction for event in events if isinstance(event, FitProgress)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


def test_a_search_reports_its_trials_and_not_their_clusterings(rng):
    rows = labelled([rng.normal(size=(n, 4)) for n in (90, 80)], np.arange(2))
    config, events = replace(OPEN, search_size=True), []
    found = run(rows, config, on_event=events.append)
    assert tuple(event for event in events if isinstance(event, SizeTried)) == found.sizes
    assert found.n_representatives in [size.n_representatives for size in found.sizes]
    first_clustering = next(
        k for k, event in enumerate(events) if isinstance(event, KMeansIteration | ClassClustered)
    )
    kinds = {type(event) for event in events[:first_clustering]}
    assert kinds == {CandidateTried, SizeTried}
    assert {type(event) for event in events[first_clustering:]} == {
        KMeansIteration, ClassClustered, SolveStarted,
    }  # fmt: skip
    assert "search" in found.seconds


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(0.5)], ids=str)
def test_float32_features_change_scores_by_less_than_a_hundredth(loss, kernel, rng, monkeypatch):
    rows = labelled([rng.normal(size=(200, 4)) + k for k in range(2)], np.arange(2))
    config = replace(
        OPEN, n_representatives=60, kernel=kernel, regularization=1e-4, lift=2.0, loss=loss
    )
    scores = []
    for products in (np.inf, 0.0):
        monkeypatch.setattr("kmeans_kernel.core.training.fit._FLOAT64_PRODUCTS", products)
        scores.append(run(rows, config).model.scores(rows.X))
    assert (scores[0] != scores[1]).any()
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-2)
