"""Callbacks of a fit, scikit-learn's callbacks, and the time budget."""

import threading
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.execution import Run, listening
from kmeans_kernel.core.training.train import train
from kmeans_kernel.data import ArrayBlocks
from kmeans_kernel.estimators import _callbacks, _classifier, _partial_fit
from kmeans_kernel.estimators._callbacks import _tell_all
from kmeans_kernel.events import (
    CandidateTried,
    ClassClustered,
    FitProgress,
    KMeansIteration,
    RowsRead,
    SolveStarted,
)

GIVEN = {"gamma": 1.0, "regularization": 1e-6, "lift": 1.0, "feature_scales": None}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture
def shares(monkeypatch):
    """Let the core tell of the given shares, before it trains."""
    told = [0.0, 0.004, 0.25, 0.5, 1.0]

    def train_and_tell(rows, config, rngs, run, start):
        if run.on_event is not None:
            for share in told:
                run.on_event(FitProgress("search", share))
            run.on_event(CandidateTried("a kernel", 0.5))
        return train(rows, config, rngs, Run(run.executor, rng=run.rng), start)

    monkeypatch.setattr(_classifier, "train", train_and_tell)
    return told


def model(**params):
    return KMeansKernelClassifier(5, random_state=0, **(GIVEN | params))


def test_a_callback_gets_the_events(iris):
    events = []
    found = KMeansKernelClassifier(5, random_state=0).fit(*iris, callback=events.append)
    kinds = {type(event) for event in events}
    assert {CandidateTried, KMeansIteration, ClassClustered, SolveStarted} <= kinds
    assert all(0 <= one.error <= 1 for one in events if isinstance(one, CandidateTried))
    silent = KMeansKernelClassifier(5, random_state=0).fit(*iris)
    np.testing.assert_array_equal(found.dual_coef_, silent.dual_coef_)


def test_a_callback_of_out_of_core_rows(iris):
    events = []
    model().fit(ArrayBlocks(*iris, rows=40), callback=events.append)
    assert {RowsRead, KMeansIteration, SolveStarted} <= {type(event) for event in events}


def test_a_callback_through_a_pipeline(iris):
    events = []
    pipeline = make_pipeline(StandardScaler(), model())
    pipeline.fit(*iris, kmeanskernelclassifier__callback=events.append)
    assert events


def test_a_callback_beside_verbose_and_beside_the_command_line(iris, capsys):
    events, ambient = [], []
    model(verbose=True).fit(*iris, callback=events.append)
    assert "fitted in" in capsys.readouterr().err
    with listening(lambda sizes: ambient.append):
        model(verbose=True).fit(*iris, callback=events.append)
    assert capsys.readouterr().err == ""
    assert {type(event) for event in events} == {type(event) for event in ambient} != set()


def test_something_else_is_no_callback(iris):
    with pytest.raises(ValueError, match=r"a function of one argument.* or None, got 3"):
        model().fit(*iris, callback=3)


class EnoughError(Exception):
    pass


@pytest.mark.parametrize("error", [EnoughError, KeyboardInterrupt])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("kind", [KMeansIteration, SolveStarted])
def test_an_exception_in_a_callback_ends_the_fit(iris, error, blocks, kind, capsys):
    def stop(event):
        if isinstance(event, kind):
            raise error("enough")

    rows = (ArrayBlocks(*iris, rows=40),) if blocks else iris
    stopped = model(verbose=True).fit(*iris)
    with pytest.raises(error, match="enough") as raised:
        stopped.fit(*rows, callback=stop)
    assert raised.value.__context__ is None
    with pytest.raises(NotFittedError):
        stopped.predict(iris[0])
    assert capsys.readouterr().err.endswith("\n")
    assert stopped.fit(*iris).score(*iris) > 0.9


def test_an_exception_in_a_thread_reaches_the_caller(rng):
    """Classes are clustered in several threads; a callback that failed is not called again."""
    X = rng.normal(size=(6000, 40))
    y = np.arange(6000) % 4
    calls = []

    def stop(event):
        calls.append(threading.get_ident())
        raise EnoughError

    stopped = KMeansKernelClassifier(300, n_jobs=2, max_iter=5, **GIVEN)
    with pytest.raises(EnoughError):
        stopped.fit(X, y, callback=stop)
    assert len(calls) == 1
    with pytest.raises(NotFittedError):
        stopped.predict(X)


def test_one_event_at_a_time():
    inside, most, seen = [], [], []

    def slow(event):
        inside.append(event)
        most.append(len(inside))
        time.sleep(0.001)
        inside.remove(event)
        seen.append(event)

    tell = _tell_all([slow])
    threads = [threading.Thread(target=tell, args=(SolveStarted(k),)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert sorted(event.m for event in seen) == list(range(8))


def test_a_callback_is_not_kept(iris):
    found = model().fit(*iris, callback=lambda event: None)
    assert "callback" not in found.get_params()
    assert not any("callback" in name for name in vars(clone(found)) | vars(found))


class Recorder:
    """A callback in the manner of scikit-learn."""

    def __init__(self, fail_in=None):
        self.calls, self.fail_in = [], fail_in

    def _note(self, name, context, *more):
        self.calls.append((name, context.task_name, *more))
        if self.fail_in == name:
            raise EnoughError

    def setup(self, estimator, context):
        self._note("setup", context)

    def teardown(self, estimator, context):
        self._note("teardown", context)

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self._note("begin", context, X is not None and y is not None)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        score = fitted_estimator.score(X, y) if hasattr(fitted_estimator, "score") else None
        self._note("end", context, score)


class AutoRecorder(Recorder):
    max_propagation_depth = None


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")


@pytest.mark.usefixtures("callbacks")
def test_callbacks_of_scikit_learn_are_told_of_each_hundredth(iris, shares):
    recorder = Recorder()
    found = model().set_callbacks(recorder).fit(*iris)
    begin, *inner, end, teardown = recorder.calls[1:]
    assert recorder.calls[0] == ("setup", "fit")
    assert begin == ("begin", "fit", True)
    assert inner == [("begin", "search", False), ("end", "search", None)] * 100
    assert end == ("end", "fit", found.score(*iris))
    assert teardown == ("teardown", "fit")
    assert not any(name.startswith("_callback") for name in vars(found))


@pytest.mark.usefixtures("callbacks")
@pytest.mark.parametrize("where", ["setup", "begin", "end", "teardown"])
def test_an_exception_in_a_callback_of_scikit_learn_ends_the_fit(iris, shares, where):
    stopped, recorder = model(), Recorder(where)
    with pytest.raises(EnoughError):
        stopped.set_callbacks(recorder).fit(*iris)
    assert recorder.calls[-1][0] == "teardown"
    with pytest.raises(NotFittedError):
        stopped.predict(iris[0])
    assert stopped.set_callbacks().fit(*iris).score(*iris) > 0.9


@pytest.mark.usefixtures("callbacks")
def test_callbacks_of_a_pipeline_reach_the_classifier(iris, shares):
    recorder = AutoRecorder()
    make_pipeline(StandardScaler(), model()).set_callbacks(recorder).fit(*iris)
    assert len([one for one in recorder.calls if one[:2] == ("end", "search")]) == 100


def test_the_bar_of_scikit_learn(iris, shares, callbacks, capfd):
    pytest.importorskip("rich")
    model().set_callbacks(callbacks.ProgressBar()).fit(ArrayBlocks(*iris, rows=40))
    assert "100%" in capfd.readouterr().out


def test_an_earlier_scikit_learn_has_no_callbacks(iris):
    """The stand-ins do nothing; the callback of `fit` works with all versions."""
    import importlib
    import sys

    kept = sys.modules.get("sklearn.callback")
    sys.modules["sklearn.callback"] = None
    try:
        spec = importlib.util.spec_from_file_location("without", _callbacks.__file__)
        without = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(without)
    finally:
        del sys.modules["sklearn.callback"]
        if kept is not None:
            sys.modules["sklearn.callback"] = kept
    assert not hasattr(without.CallbackSupportMixin, "set_callbacks")
    assert without.with_callbacks(len) is len


@pytest.fixture
def deadlines(monkeypatch):
    """Give the list of the deadlines of trainings, in seconds from the start of the test."""
    found, start = [], time.perf_counter()

    def note(function):
        def noting(rows, config, *others):
            run = next(one for one in others if isinstance(one, Run))
            found.append(None if run.deadline is None else run.deadline - start)
            return function(rows, config, *others)

        return noting

    monkeypatch.setattr(_classifier, "train", note(_classifier.train))
    monkeypatch.setattr(_partial_fit, "tune", note(_partial_fit.tune))
    return found


def test_the_time_budget_is_a_deadline(iris, deadlines):
    X, y = iris
    model().fit(X, y)
    assert deadlines == [None]
    model(time_budget=1000).fit(X, y)
    model(time_budget=1000).fit(ArrayBlocks(X, y, rows=40))
    model(time_budget=1000, gamma="auto").partial_fit(X, y)
    assert all(1000 <= one < 1060 for one in deadlines[1:])
    assert len(deadlines) == 4


def test_a_tiny_time_budget_still_gives_a_model(iris):
    found = KMeansKernelClassifier(5, time_budget=1e-9, random_state=0).fit(*iris)
    assert found.score(*iris) > 0.9
