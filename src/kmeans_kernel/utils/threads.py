"""Threads as an executor: as many as BLAS would use, each with single-threaded products.

Two products side by side on one core each run faster than one after the other on both, and all
that is not a product runs on both cores too. NumPy lets go of the interpreter in its loops, so
threads are enough.
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

# Fewer operations than this are done sooner by one core than it takes to share them out.
_WORTH_SHARING = 1e9

# Held by the one who shares out work. BLAS has one number of threads for the whole process, so
# whoever comes second, in another thread or inside a piece of work, does without.
_sharing = Lock()


# Whether this thread does a piece of work: what it shares out, it does itself.
_here = local()


class Cancelled(BaseException):
    """Raised inside a piece of work when another failed or the user interrupted."""


class ThreadExecutor:
    """Pieces of work in threads.

    There are as many as BLAS has at the moment, so every way to limit BLAS (environment variables,
    `threadpool_limits`, a joblib worker) limits these too; inside them there is no second level.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = blas_threads() if count is None else count
        self._cancelled = Event()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def count(self) -> int:
        """How many pieces are done at a time; it does not change."""
        return self._count

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the function's results for the items, in their order."""
        items = list(items)
        count = min(self.count, len(items))
        if count < 2 or getattr(_here, "at_work", False):
            return list(map(function, items))
        if self._pool is not None:
            return self._share_out(self._pool, function, items)
        with one_blas_thread(wanted=True) as alone:
            if not alone:
                return list(map(function, items))
            with ThreadPoolExecutor(count, initializer=_start_work) as pool:
                return self._share_out(pool, function, items)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Keep the threads, and BLAS to one each, while much is shared out in small pieces."""
        with one_blas_thread(wanted=self.count > 1 and self._pool is None) as alone:
            if not alone:
                yield
                return
            with ThreadPoolExecutor(self.count, initializer=_start_work) as self._pool:
                try:
                    yield
                finally:
                    self._pool = None

    def _share_out(
        self, pool: ThreadPoolExecutor, function: Callable[[T], R], items: list[T]
    ) -> list[R]:
        self._cancelled = Event()
        futures = [pool.submit(function, item) for item in items]
        try:
            return _results(futures)
        except BaseException:
            self._cancelled.set()  # for those at work
            for future in futures:  # for those that wait
                future.cancel()
            raise

    def raise_if_cancelled(self) -> None:
        """Raise if another piece failed or the user interrupted."""
        if self._cancelled.is_set():
            raise Cancelled


@contextmanager
def threads_for(operations: float, n_jobs: int | None = None) -> Iterator[ThreadExecutor]:
    """Give threads for about so many operations; for few, one, and BLAS is held to one too.

    No more than `n_jobs`, of which negative ones count from all cores, as scikit-learn has it; None
    is as many as BLAS has.

    NumPy and SciPy each bring a BLAS with threads of its own, which go on spinning for a while when
    their work is done and are in each other's way where work is short.
    """
    if operations < _WORTH_SHARING or n_jobs == 1:
        with one_blas_thread(wanted=True):
            yield ThreadExecutor(1)
    elif n_jobs is None:
        yield ThreadExecutor()
    else:
        count = min(effective_n_jobs(n_jobs), blas_threads())
        with _blas().limit(limits=count):
            yield ThreadExecutor(count)


def effective_n_jobs(n_jobs: int) -> int:
    """Return how many threads a number of jobs is; −1 is all cores, −2 all but one."""
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def blas_threads() -> int:
    """Return how many threads BLAS may use now; 1 if it cannot be asked."""
    return max((library.num_threads or 1 for library in _blas().lib_controllers), default=1)


def _results(futures: list[Future[R]]) -> list[R]:
    """Return the results of all, or raise as soon as one has failed."""
    done, _ = wait(futures, return_when=FIRST_EXCEPTION)
    for future in futures:
        if future in done and future.exception() is not None:
            future.result()
    return [future.result() for future in futures]


@contextmanager
def one_blas_thread(*, wanted: bool) -> Iterator[bool]:
    """Hold BLAS to one thread, if wanted and if no one else does; give whether we do."""
    ours = wanted and _sharing.acquire(blocking=False)
    try:
        if ours:
            with _blas().limit(limits=1):
                yield True
        else:
            yield False
    finally:
        if ours:
            _sharing.release()


def _start_work() -> None:
    """Hold BLAS to one thread in the calling thread; where that is for all, it is so already."""
    _here.at_work = True
    _blas().limit(limits=1)


@cache
def _blas() -> ThreadpoolController:
    """Return the handle of the BLAS libraries; to look for them takes a while."""
    return ThreadpoolController().select(user_api="blas")
