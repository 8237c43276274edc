import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.events import ClassClustered
from kmeans_kernel.core.arrays.execution import (
    SERIAL,
    Run,
    ambient_listener,
    deal,
    listening,
    sum_over,
)
from kmeans_kernel.utils.threads import ThreadExecutor


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 5, 12])
def test_shares_hold_every_item_once(count, n):
    dealt = deal(range(n), ThreadExecutor(count))
    assert len(dealt) == count
    assert sorted(item for share in dealt for item in share) == list(range(n))
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


EXECUTORS = {"serial": SERIAL, "one": ThreadExecutor(1), "three": ThreadExecutor(3)}


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS.keys())
@pytest.mark.parametrize("n", [1, 2, 3, 11])
def test_sums_are_added_in_the_order_of_the_shares(executor, n, rng):
    terms, loaded = 10.0 ** rng.integers(-12, 12, n) * rng.normal(size=n), []

    def load(k):
        loaded.append(k)
        return terms[k]

    def part(term):
        time.sleep(0.002 * rng.random())  # the speed of the workers does not matter
        return term

    expected = None
    for first in range(min(executor.count, n)):
        share = 0.0
        for k in range(first, n, executor.count):
            share = share + terms[k]
        expected = share if expected is None else expected + share
    assert sum_over(part, range(n), executor, load) == expected
    assert sorted(loaded) == list(range(n))
    assert expected == pytest.approx(np.sum(terms), rel=1e-9)


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS.keys())
def test_sums_of_anything_that_can_be_added(executor):
    found = sum_over(lambda k: [k, -k], list(range(7)), executor, lambda k: 10 * k)
    assert sorted(found) == sorted([10 * k for k in range(7)] + [-10 * k for k in range(7)])


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS.keys())
def test_a_failing_part_of_a_sum_reaches_the_caller(executor):
    with pytest.raises(ZeroDivisionError):
        sum_over(lambda k: 1 / (k - 4), range(9), executor, lambda k: k)


def test_the_time_of_a_stage_inside_a_stage_counts_once():
    run = Run()
    with run.stage("outer"):
        with run.stage("inner"):
            time.sleep(0.05)
        time.sleep(0.01)
    assert run.seconds["inner"] >= 0.05
    assert run.seconds["outer"] < 0.04


def test_stages_add_up_to_the_time_that_passed(monkeypatch):
    now = 0.0
    monkeypatch.setattr("kmeans_kernel.core.arrays.execution.perf_counter", lambda: now)
    run = Run()
    with run.stage("a"):
        now += 1
        with run.stage("b"):
            now += 2
            with run.stage("c"):
                now += 4
            with run.stage("a"):  # a stage may come again, inside itself too
                now += 8
        now += 16
        with suppress(ZeroDivisionError), run.stage("c"):  # or end by an error
            now += 32
            raise ZeroDivisionError
    with run.stage("b"):
        now += 64
    assert run.seconds == {"a": 1 + 8 + 16, "b": 2 + 64, "c": 4 + 32}


def test_a_stage_is_split_in_proportion():
    run = Run(seconds={"whole": 6.0, "one": 1.0, "other": 5.0})
    run.split_stage("whole", {"one": 10.0, "two": 20.0})
    assert run.seconds == {"one": 1.0 + 2.0, "two": 4.0, "other": 5.0}


def test_a_silent_run_reports_and_times_nothing():
    run = Run(ThreadExecutor(2), print, np.random.default_rng(3))
    silent = run.silent()
    with silent.stage("trial"):
        pass
    assert run.seconds == {}
    assert silent.on_event is None
    assert silent.executor is run.executor
    assert silent.rng is run.rng


def test_listeners_are_made_inside_the_context_only():
    calls = []

    def factory(name):
        return lambda row_counts: calls.append((name, row_counts)) or name

    assert ambient_listener([1]) is None
    with listening(factory("outer")):
        assert ambient_listener([2, 3]) == "outer"
        with suppress(ZeroDivisionError), listening(factory("inner")):
            assert ambient_listener([4]) == "inner"
            raise ZeroDivisionError
        assert ambient_listener([5]) == "outer"
        in_thread = []
        thread = threading.Thread(target=lambda: in_thread.append(ambient_listener([6])))
        thread.start()
        thread.join()
        assert in_thread == [None]  # another thread does not listen with us
    assert ambient_listener([7]) is None
    assert calls == [("outer", [2, 3]), ("inner", [4]), ("outer", [5])]


def test_an_ambient_listener_hears_a_fit(rng):
    X, y = rng.normal(size=(50, 3)), np.repeat([0, 1], [20, 30])
    counts, events = [], []

    def factory(row_counts):
        counts.append(row_counts)
        return events.append

    with listening(factory):
        KMeansKernelClassifier(4, random_state=0, gamma=1.0, regularization=0.1).fit(X, y)
    KMeansKernelClassifier(4, random_state=0, gamma=1.0, regularization=0.1).fit(X, y)
    assert counts == [[20, 30]]
    ended = [event for event in events if isinstance(event, ClassClustered)]
    assert sorted((event.label, event.n_rows) for event in ended) == [(0, 20), (1, 30)]
