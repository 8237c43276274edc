"""Dask: threads, and a real cluster of two processes."""

import os
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.events import KMeansIteration, SolveStarted
from kmeans_kernel.core.arrays.execution import listening
from kmeans_kernel.data._dask import DaskSource
from kmeans_kernel.data._pipelines import fit_pipeline
from tests.models import GIVEN, assert_same, fit


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(900, 10, n_informative=6, n_classes=3, random_state=0)
    return X, y


@pytest.fixture(scope="module")
def cluster():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(params=["threads", "cluster"])
def scheduler(request):
    if request.param == "threads":
        with dask.config.set(scheduler="threads"):
            yield
    else:
        with request.getfixturevalue("cluster").as_current():
            yield


def arrays(X, y, rows=130, columns=4):
    return da.from_array(X, chunks=(rows, columns)), da.from_array(y, chunks=200)


@pytest.mark.parametrize("options", [GIVEN, {}, {**GIVEN, "loss": "logistic"}], ids=str)
def test_dask_gives_the_model_of_all_rows(table, options, scheduler):
    X, y = table
    assert_same(fit(*arrays(X, y), **options), fit(X, y, **options), X)


def test_what_is_sent_is_sent_once_if_it_is_large(table, cluster, monkeypatch):
    X, y = table
    monkeypatch.setattr("kmeans_kernel.data._dask._LARGE", 100)
    scattered = []
    scatter = Client.scatter
    monkeypatch.setattr(Client, "scatter", lambda *a, **k: scattered.append(1) or scatter(*a, **k))
    with cluster.as_current():
        found = fit(*arrays(X, y), **GIVEN)
    assert_same(found, fit(X, y, **GIVEN), X)
    assert len(scattered) >= found.n_iter_.max()


def test_rows_are_never_gathered(table, monkeypatch):
    """But for centroids' first rows, those of the choice, and those that order the columns."""
    X, y = table
    monkeypatch.setattr("kmeans_kernel.estimators._classifier._ROWS_OF_ORDER", 40)
    monkeypatch.setattr("kmeans_kernel.core.training.fit._ROWS_OF_TEMPERATURE", 50)
    sizes = []
    compute = dask.compute

    def watched(*what, **options):
        found = compute(*what, **options)
        sizes.append(
            sum(len(one.codes) for one in found[0] if hasattr(one, "codes"))
            if isinstance(found[0], list)
            else 0
        )
        return found

    monkeypatch.setattr("kmeans_kernel.data._dask.dask.compute", watched)
    fit(*arrays(X, y), **GIVEN)
    # Classes, rows that order the columns, units of the features, first centroids.
    assert sizes[1] == 40
    assert sizes[4] == 24
    assert max(sizes) < 60  # and those that set the temperature


def test_predictions_are_lazy_and_the_same(table, scheduler):
    X, y = table
    found = fit(X, y, **GIVEN)
    rows, _ = arrays(X, y)
    for method in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(found, method)(rows)
        assert isinstance(lazy, da.Array)
        direct = getattr(found, method)(X)
        assert lazy.shape == direct.shape
        assert lazy.dtype == direct.dtype
        np.testing.assert_allclose(lazy.compute(), direct, rtol=0, atol=1e-12)


def frame_of(table):
    X, y = table
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    frame["label"] = np.array(["ape", "bear", "cat"])[y]
    return frame


def test_frames_with_the_name_of_the_column_of_labels(table, scheduler):
    frame = frame_of(table)
    lazy = dd.from_pandas(frame, npartitions=5)
    found = fit(lazy, "label", **GIVEN)
    X = frame.drop(columns="label")
    assert found.feature_names_in_.tolist() == list(X.columns)
    assert_same(found, fit(X, frame["label"], **GIVEN), X)
    assert_same(fit(lazy.drop(columns="label"), lazy["label"], **GIVEN), found, X)
    labels = found.predict(lazy.drop(columns="label"))
    np.testing.assert_array_equal(labels.compute(), found.predict(X))
    chances = found.predict_proba(lazy.drop(columns="label"))
    np.testing.assert_allclose(chances.compute(), found.predict_proba(X))


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own
def test_frames_of_parquet_files(table, tmp_path, scheduler):
    """Dask joins small partitions of a column that is read alone."""
    frame = frame_of(table)
    for k in range(10):
        frame.iloc[90 * k : 90 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet", index=False)
    lazy = dd.read_parquet(tmp_path)
    X = frame.drop(columns="label")
    whole = fit(X, frame["label"], **GIVEN)
    assert_same(fit(lazy, "label", **GIVEN), whole, X)
    assert_same(fit(lazy.drop(columns="label"), lazy["label"], **GIVEN), whole, X)


def test_a_partition_may_be_empty(table):
    frame = frame_of(table).sort_values("x0").reset_index(drop=True)
    lazy = dd.from_pandas(frame, npartitions=6, sort=False)
    some, here = lazy[lazy.x0 > 0], frame[frame.x0 > 0]
    found = fit(some, "label", **GIVEN)
    X = here.drop(columns="label")
    assert_same(found, fit(X, here["label"], **GIVEN), X)
    labels = found.predict(some.drop(columns="label"))
    np.testing.assert_array_equal(labels.compute(), found.predict(X))


def test_a_prediction_is_that_of_the_model_that_was_asked(table):
    X, y = table
    found = fit(X, y, **GIVEN)
    before = found.predict(X)
    lazy = found.predict(arrays(X, y)[0])
    found.fit(X, (y + 1) % 3)
    np.testing.assert_array_equal(lazy.compute(), before)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_an_array_for_a_model_with_names(table):
    frame = frame_of(table)
    found = fit(frame.drop(columns="label"), frame["label"], **GIVEN)
    labels = found.predict(arrays(*table)[0])
    np.testing.assert_array_equal(labels.compute(), found.predict(frame.drop(columns="label")))
    small = dd.from_pandas(frame.drop(columns="label").astype(np.float32), npartitions=2)
    lazy = found.decision_function(small)
    assert lazy.dtype == lazy.compute().dtype


def test_the_pipeline_of_the_command_line_only(table):
    lazy = dd.from_pandas(frame_of(table), npartitions=3)
    for scaler in (MinMaxScaler(), StandardScaler(with_mean=False)):
        with pytest.raises(ValueError, match="StandardScaler with its usual settings"):
            fit_pipeline(make_pipeline(scaler, KMeansKernelClassifier(5)), lazy, "label")
    holes = lazy.assign(x3=lazy.x3.where(lazy.x3 < 1))
    pipeline = make_pipeline(StandardScaler(), KMeansKernelClassifier(5))
    with pytest.raises(ValueError, match="column 'x3'"):
        fit_pipeline(pipeline, holes, "label")
    with pytest.raises(ValueError, match="no numbers: label"):
        fit_pipeline(pipeline, lazy, "x1")


def test_unknown_lengths_are_fine_if_both_are_alike(table):
    X, y = table
    lazy = dd.from_pandas(frame_of(table).assign(label=y), npartitions=5)
    rows, labels = lazy.drop(columns="label").to_dask_array(), lazy["label"].to_dask_array()
    assert np.isnan(rows.shape[0])
    found = fit(rows, labels, **GIVEN)
    assert_same(found, fit(X, y, **GIVEN), X)
    with pytest.raises(ValueError, match=r"call X.compute_chunk_sizes\(\) first"):
        fit(rows, y, **GIVEN)
    with pytest.raises(ValueError, match="5 blocks of rows and y has 2"):
        fit(rows, da.from_array(y, chunks=450), **GIVEN)


def test_labels_in_memory_and_weights(table):
    X, y = table
    rows, _ = arrays(X, y)
    weights = np.ones(len(X))
    assert_same(fit(rows, y, weights, **GIVEN), fit(X, y, **GIVEN), X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, None), "target y is None"),
        (lambda X, y: (X, "label"), "must be a column of X"),
        (lambda X, y: (X[:, 0], y), "two dimensions"),
        (lambda X, y: (dask.delayed(1), y), "must be a Dask array or frame, got Delayed"),
        (lambda X, y: (X, y[:100]), "X has 900 rows, y has 100"),
        (lambda X, y: (X, y[:100].compute()), "X has 900 rows, y has 100"),
        (lambda X, y: (da.where(X > 3, np.nan, X), y), "NaN .block"),
        (lambda X, y: (X, da.zeros_like(y)), "at least two classes"),
    ],
)
def test_wrong_collections_are_refused(table, change, message):
    with pytest.raises(ValueError, match=message):
        fit(*change(*arrays(*table)), **GIVEN)


def test_an_error_of_ours_is_not_tried_again(table):
    tries = []

    class Bad:
        def __call__(self, number, block):
            tries.append(number)
            raise RuntimeError("no")

    from kmeans_kernel.data._blocks import BlockCheck

    X, y = table
    block = (dask.delayed(X), dask.delayed(y))
    with dask.config.set(scheduler="sync"), pytest.raises(RuntimeError, match="no"):
        DaskSource([block], BlockCheck("it")).sum(Bad())
    assert tries == [0]


def make_block(k, n=6000):
    rng = np.random.default_rng(k)
    y = rng.integers(0, 3, n)
    return (rng.normal(size=(n, 40)) + 2 * np.eye(40)[y * 5]).astype(np.float32), y


def lazy_blocks(n_blocks=8, n=6000):
    made = [dask.delayed(make_block, pure=True)(k, n) for k in range(n_blocks)]
    X = da.concatenate([da.from_delayed(one[0], (n, 40), np.float32) for one in made])
    y = da.concatenate([da.from_delayed(one[1], (n,), np.int64) for one in made])
    return X, y


class Killer:
    """Kills a worker in the middle of K-means, and another in the middle of the fit."""

    def __init__(self, client):
        self.client, self.killed = client, []

    def _kill_soon(self):
        pids = list(self.client.run(os.getpid).values())
        self.killed.append(pids[0])
        threading.Timer(0.15, os.kill, (pids[0], signal.SIGKILL)).start()

    def __call__(self, event):
        if isinstance(event, KMeansIteration) and event.n_iter == 2 and not self.killed:
            self._kill_soon()
        elif isinstance(event, SolveStarted):
            self.client.wait_for_workers(2)
            self._kill_soon()


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies_costs_a_recomputation_not_the_fit():
    X, y = lazy_blocks()
    options = {**GIVEN, "n_representatives": 60, "max_iter": 20, "tol": 0.0}
    with dask.config.set(scheduler="threads"), pytest.warns(Warning, match="stopped at max_iter"):
        undisturbed = fit(X, y, **options)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        killer = Killer(client)
        before = set(client.run(os.getpid).values())
        with listening(lambda sizes: killer):
            found = fit(X, y, **options)
        time.sleep(0.3)
        assert len(killer.killed) == 2
        client.wait_for_workers(2)
        assert not set(client.run(os.getpid).values()) & set(killer.killed)
        assert killer.killed[0] in before
    rows = make_block(99)[0]
    np.testing.assert_array_equal(found.predict(rows), undisturbed.predict(rows))
    np.testing.assert_allclose(
        found.decision_function(rows), undisturbed.decision_function(rows), atol=1e-8
    )
