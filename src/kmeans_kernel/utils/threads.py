"""An executor of threads: as many as BLAS would use, each with single-threaded BLAS.

Two products in parallel, each on one core, are faster than two successive products on both cores;
and work other than matrix products is parallel too. NumPy releases the global interpreter lock in
its loops, so threads suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Event, Lock, local

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from kmeans_kernel.core.arrays.execution import R, T

# Below this many operations the overhead of threads exceeds their gain.
_WORTH_THREADS = 2e9

# Below this many, matrices are so small that BLAS's own threads gain little by sharing one, and
# lose much where other processes use the cores too: they wait for each other in busy loops.
_WORTH_BLAS_THREADS = 5e10

# Held by the executor that has limited BLAS to one thread. The limit is one number for the whole
# process, so a second executor, in another thread or nested in a piece of work, runs serially.
_blas_limit_lock = Lock()


# `_worker.at_work` is set in worker threads; a nested `map` in such a thread runs serially.
_worker = local()


class Cancelled(BaseException):
    """Raised inside a piece of work when another failed or the user interrupted."""


class ThreadExecutor:
    """Executor that runs pieces of work in threads.

    By default there are as many threads as BLAS has at the moment, so every limit on BLAS
    (environment variables, `threadpool_limits`, a joblib worker) applies to them too. A nested
    `map` runs serially.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = blas_threads() if count is None else count
        self._cancelled = Event()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def count(self) -> int:
        """Number of pieces that run at a time; constant over the executor's life."""
        return self._count

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the function's results for the items, in the order of the items."""
        items = list(items)
        count = min(self.count, len(items))
        if count < 2 or getattr(_worker, "at_work", False):
            return list(map(function, items))
        if self._pool is not None:
            return self._submit_all(self._pool, function, items)
        with one_blas_thread(wanted=True) as alone:
            if not alone:
                return list(map(function, items))
            with ThreadPoolExecutor(count, initializer=_init_worker) as pool:
                return self._submit_all(pool, function, items)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Keep the pool of threads, and the limit on BLAS, for many short `map` calls."""
        with one_blas_thread(wanted=self.count > 1 and self._pool is None) as alone:
            if not alone:
                yield
                return
            with ThreadPoolExecutor(self.count, initializer=_init_worker) as self._pool:
                try:
                    yield
                finally:
                    self._pool = None

    def _submit_all(
        self, pool: ThreadPoolExecutor, function: Callable[[T], R], items: list[T]
    ) -> list[R]:
        self._cancelled = Event()
        futures = [pool.submit(function, item) for item in items]
        try:
            return _results(futures)
        except BaseException:
            self._cancelled.set()  # stops running pieces at their next `raise_if_cancelled`
            for future in futures:  # pieces that have not started
                future.cancel()
            raise

    def raise_if_cancelled(self) -> None:
        """Raise if another piece failed or the user interrupted."""
        if self._cancelled.is_set():
            raise Cancelled


@contextmanager
def threads_for(operations: float, n_jobs: int | None = None) -> Iterator[ThreadExecutor]:
    """Yield an executor for about `operations` operations, with at most `n_jobs` threads.

    `n_jobs` is as in scikit-learn: −1 for all cores; None for the number of threads of BLAS. For
    few operations the executor is serial and BLAS is limited to one thread: NumPy and SciPy each
    bring a BLAS with its own threads, which spin for a while after their work, and slow each other
    down where work is short. For a middling number the executor has its threads, and BLAS still has
    one.
    """
    if operations < _WORTH_THREADS or n_jobs == 1:
        with one_blas_thread(wanted=True):
            yield ThreadExecutor(1)
        return
    count = blas_threads()
    if n_jobs is not None:
        count = min(effective_n_jobs(n_jobs), count)
    executor = ThreadExecutor(count)
    if operations < _WORTH_BLAS_THREADS:
        with executor.session():
            yield executor
    else:
        with _blas().limit(limits=None if n_jobs is None else count):
            yield executor


def effective_n_jobs(n_jobs: int) -> int:
    """Return the number of threads for `n_jobs`: −1 is all cores, −2 all but one."""
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def blas_threads() -> int:
    """Return the number of threads that BLAS may use now; 1 if no BLAS is found."""
    return max((library.num_threads or 1 for library in _blas().lib_controllers), default=1)


def _results(futures: list[Future[R]]) -> list[R]:
    """Return the results of all futures, or raise as soon as one has failed."""
    done, _ = wait(futures, return_when=FIRST_EXCEPTION)
    for future in futures:
        if future in done and future.exception() is not None:
            future.result()
    return [future.result() for future in futures]


@contextmanager
def one_blas_thread(*, wanted: bool) -> Iterator[bool]:
    """Limit BLAS to one thread if `wanted` and no other context has; yield whether this one did."""
    ours = wanted and _blas_limit_lock.acquire(blocking=False)
    try:
        if ours:
            with _blas().limit(limits=1):
                yield True
        else:
            yield False
    finally:
        if ours:
            _blas_limit_lock.release()


def _init_worker() -> None:
    """Mark the calling thread as a worker, and limit its BLAS to one thread.

    The second is for a BLAS whose limit is per thread; a limit per process is set already.
    """
    _worker.at_work = True
    _blas().limit(limits=1)


@cache
def _blas() -> ThreadpoolController:
    """Return the controller of the loaded BLAS libraries; cached, as the search is slow."""
    return ThreadpoolController().select(user_api="blas")
