import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kmeans_kernel.core.arrays.execution import SERIAL, deal
from kmeans_kernel.utils.threads import Cancelled, ThreadExecutor, _blas, threads_for


def blas_threads():
    """The threads of NumPy's and SciPy's BLAS; other tests may have loaded peers with their own."""
    return {lib["num_threads"] for lib in _blas().info()}


@pytest.fixture(autouse=True)
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        yield
        assert blas_threads() == {2}  # whatever a test did, BLAS has its threads back


@pytest.mark.parametrize(
    "executor", [SERIAL, ThreadExecutor(2), ThreadExecutor(5)], ids=["serial", "two", "five"]
)
def test_results_come_in_the_order_of_the_items(executor):
    def slower_at_first(k):
        time.sleep(0.01 / (k + 1))
        return k * k

    assert executor.map(slower_at_first, range(6)) == [k * k for k in range(6)]
    assert executor.map(slower_at_first, []) == []


def test_threads_are_as_many_as_blas_has():
    assert ThreadExecutor().count == 2
    with threadpool_limits(1):
        assert ThreadExecutor().count == 1
    both_run = threading.Barrier(2, timeout=10)
    ThreadExecutor().map(lambda _: both_run.wait(), range(2))  # would wait for ever if one by one


def test_blas_is_single_threaded_inside_pieces():
    seen = ThreadExecutor().map(lambda _: (blas_threads(), ThreadExecutor().count), range(4))
    assert seen == [({1}, 1)] * 4


def test_a_second_executor_runs_serially_and_blas_is_restored():
    """In either order of leaving."""
    for first_leaves_first in (True, False):
        inside, leave = threading.Event(), threading.Event()

        def run_second(inside=inside, leave=leave):
            with threads_for(1.0):
                assert ThreadExecutor(2).map(lambda k: k, range(3)) == [0, 1, 2]
                inside.set()
                leave.wait(10)

        thread = threading.Thread(target=run_second)
        with threads_for(1.0):
            thread.start()
            assert inside.wait(10)
            assert blas_threads() == {1}
            if not first_leaves_first:
                leave.set()
                thread.join()
        leave.set()
        thread.join()
        assert blas_threads() == {2}
    # and another thread may limit BLAS afterwards, as anyone may
    seen = []
    thread = threading.Thread(target=lambda: seen.append(limited_to_one()))
    with threadpool_limits(None):
        pass
    thread.start()
    thread.join()
    assert seen


def limited_to_one():
    with threadpool_limits(1, user_api="blas"):
        return blas_threads()


def test_products_are_right_while_another_thread_comes_and_goes(rng):
    X, done = rng.normal(size=(40, 5)), threading.Event()

    def come_and_go():
        while not done.is_set():
            with threads_for(1.0):
                pass

    thread = threading.Thread(target=come_and_go)
    thread.start()
    for _ in range(200):
        executor = ThreadExecutor()
        parts = executor.map(lambda share: X[list(share)].sum(), deal(range(40), executor))
        assert sum(parts) == pytest.approx(X.sum())
    done.set()
    thread.join()


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_ends_the_other_pieces_and_reaches_the_caller(failing):
    executor = ThreadExecutor(2)
    ended = []

    def piece(k):
        if k == failing:
            raise ZeroDivisionError
        for _ in range(1000):
            time.sleep(0.01)
            try:
                executor.raise_if_cancelled()
            except Cancelled:
                ended.append(k)
                raise

    start = time.perf_counter()
    with pytest.raises(ZeroDivisionError):
        executor.map(piece, range(6))
    assert time.perf_counter() - start < 5
    assert len(ended) <= 2  # those at work, and none that waited
    again = executor.map(lambda k: executor.raise_if_cancelled(), range(3))
    assert again == [None] * 3
    SERIAL.raise_if_cancelled()


def test_an_interrupt_ends_a_fit_soon():
    code = (
        "import numpy as np, kmeans_kernel\n"
        "X = np.random.default_rng(0).normal(size=(60_000, 100))\n"
        "print('begun', flush=True)\n"
        "kmeans_kernel.KMeansKernelClassifier(12_000).fit(X, np.arange(60_000) % 2)\n"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment, start_new_session=True,
    ) as process:  # fmt: skip
        process.stdout.readline()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert said.decode().splitlines()[-1].startswith("KeyboardInterrupt")


def test_products_in_threads_equal_those_in_one_thread(rng):
    X = rng.normal(size=(50, 20))
    parts = [X[k::5] for k in range(5)]
    for serial, threaded in zip(
        SERIAL.map(lambda part: part @ X.T, parts),
        ThreadExecutor(2).map(lambda part: part @ X.T, parts),
        strict=True,
    ):
        np.testing.assert_allclose(serial, threaded, atol=1e-12)


def test_little_work_gets_one_thread():
    with threads_for(1e3) as executor:
        assert executor.count == 1
        assert blas_threads() == {1}
    with threads_for(1e12) as executor:
        assert executor.count == 2
        assert blas_threads() == {2}


@pytest.mark.parametrize(("n_jobs", "count"), [(None, 2), (2, 2), (-1, 2), (1, 1)])
def test_middling_work_gets_threads_with_one_blas_thread_each(n_jobs, count):
    """BLAS's own threads wait for each other in busy loops if a core is taken by others."""
    with threads_for(1e10, n_jobs) as executor:
        assert executor.count == count
        assert blas_threads() == {1}
        together = threading.Barrier(count, timeout=10)
        executor.map(lambda _: together.wait(), range(count))
        assert executor.map(lambda _: frozenset(blas_threads()), range(4)) == [frozenset({1})] * 4


def test_a_session_keeps_threads_for_many_calls():
    executor, seen = ThreadExecutor(2), []

    def piece(k):
        seen.append((threading.get_ident(), frozenset(blas_threads())))
        time.sleep(0.005)
        return -k

    with executor.session():
        for _ in range(3):
            assert executor.map(piece, range(4)) == [0, -1, -2, -3]
        with executor.session():  # inside another it does nothing
            assert executor.map(piece, range(2)) == [0, -1]
        assert blas_threads() == {1}
        with pytest.raises(ZeroDivisionError):
            executor.map(lambda k: 1 / k, range(2))
        assert executor.map(piece, range(2)) == [0, -1]  # a failure does not end the session
    assert len({ident for ident, _ in seen}) == 2
    assert {limit for _, limit in seen} == {frozenset({1})}
    assert executor.map(piece, range(2)) == [0, -1]
    with SERIAL.session():
        assert SERIAL.map(abs, [-1, 2]) == [1, 2]
