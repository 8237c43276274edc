import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kmeans_kernel._threads import Threads, threads_for
from kmeans_kernel._workers import ALONE


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.parametrize("workers", [ALONE, Threads()], ids=["alone", "threads"])
def test_results_come_in_the_order_of_the_items(workers):
    def slower_at_first(k):
        time.sleep(0.01 / (k + 1))
        return k * k

    assert workers.map(slower_at_first, range(6)) == [k * k for k in range(6)]
    assert workers.map(slower_at_first, []) == []


def test_there_are_as_many_as_blas_has():
    with threadpool_limits(1):
        assert Threads().count == 1
    with threadpool_limits(2):
        assert Threads().count == 2
        together = threading.Barrier(2, timeout=10)
        Threads().map(lambda _: together.wait(), range(2))  # would wait for ever if one by one


def test_blas_is_single_threaded_inside_and_restored_after():
    with threadpool_limits(2):
        seen = Threads().map(lambda _: (max(blas_threads()), Threads().count), range(4))
        assert seen == [(1, 1)] * 4
        assert set(blas_threads()) == {2}


def test_blas_is_restored_when_two_overlap():
    """The one that came first leaves first; the limit must hold for the other, then end."""
    with threadpool_limits(2):
        first_in, first_out = threading.Event(), threading.Event()
        after_first = []

        def first(_):
            first_in.set()
            time.sleep(0.05)

        def second(_):
            first_out.wait(5)
            after_first.append(max(blas_threads()))

        one = threading.Thread(target=lambda: (Threads().map(first, range(2)), first_out.set()))
        one.start()
        first_in.wait(5)
        with threadpool_limits(2):  # as if the second had asked before the first limited it
            Threads().map(second, range(2))
        one.join()
        assert set(blas_threads()) == {2}


def test_a_failure_ends_the_other_pieces_and_reaches_the_caller():
    workers = Threads()
    ended = []

    def piece(k):
        if k == 0:
            raise ZeroDivisionError
        for _ in range(1000):
            time.sleep(0.01)
            try:
                workers.checkpoint()
            except KeyboardInterrupt:
                ended.append(k)
                raise

    with threadpool_limits(2):
        start = time.perf_counter()
        with pytest.raises(ZeroDivisionError):
            workers.map(piece, range(5))
        assert time.perf_counter() - start < 5
    assert ended in ([1], [1, 2], [2, 1])  # the free thread may have begun another
    ALONE.checkpoint()


def test_threads_and_one_thread_compute_the_same(rng):
    X = rng.normal(size=(50, 20))
    parts = [X[k::5] for k in range(5)]
    for alone, threaded in zip(
        ALONE.map(lambda part: part @ X.T, parts),
        Threads().map(lambda part: part @ X.T, parts),
        strict=True,
    ):
        np.testing.assert_allclose(alone, threaded, atol=1e-12)


def test_little_work_gets_one_thread():
    with threadpool_limits(2):
        with threads_for(1e3) as workers:
            assert workers.count == 1
            assert set(blas_threads()) == {1}
        with threads_for(1e12) as workers:
            assert workers.count == 2
        assert set(blas_threads()) == {2}
