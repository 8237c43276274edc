"""Threads as workers: as many as BLAS would use, each with single-threaded products.

Two products side by side on one core each run faster than one after the other on both, and all
that is not a product runs on both cores too. NumPy lets go of the interpreter in its loops, so
threads are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Event, Lock

from threadpoolctl import ThreadpoolController

from kmeans_kernel._workers import R, T

# Fewer operations than this are done sooner by one core than it takes to share them out.
_WORTH_SHARING = 1e9

# Held by the one who shares out work. BLAS has one number of threads for the whole process, so
# whoever comes second, in another thread or inside a piece of work, does without.
_sharing = Lock()


class CalledOff(BaseException):
    """Raised inside a piece of work when another failed or the user interrupted."""


class Threads:
    """Pieces of work in threads.

    There are as many as BLAS has at the moment, so every way to limit BLAS (environment variables,
    `threadpool_limits`, a joblib worker) limits these too; inside them there is no second level.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = blas_threads() if count is None else count
        self._called_off = Event()

    @property
    def count(self) -> int:
        """How many pieces are done at a time; it does not change."""
        return self._count

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the function's results for the items, in their order."""
        items = list(items)
        count = min(self.count, len(items))
        with _one_blas_thread(wanted=count > 1) as alone:
            if count < 2 or not alone:
                return [function(item) for item in items]
            self._called_off = Event()
            # Where BLAS counts its threads per calling thread, each has to say so itself.
            with ThreadPoolExecutor(count, initializer=_limit_this_thread) as pool:
                futures = [pool.submit(function, item) for item in items]
                try:
                    return _results(futures)
                except BaseException:
                    self._called_off.set()  # for those at work
                    pool.shutdown(wait=False, cancel_futures=True)  # for those that wait
                    raise

    def checkpoint(self) -> None:
        """Raise if another piece failed or the user interrupted."""
        if self._called_off.is_set():
            raise CalledOff


@contextmanager
def threads_for(operations: float) -> Iterator[Threads]:
    """Give threads for about so many operations; for few, one, and BLAS is held to one too.

    NumPy and SciPy each bring a BLAS with threads of its own, which go on spinning for a while when
    their work is done and are in each other's way where work is short.
    """
    if operations < _WORTH_SHARING:
        with _one_blas_thread(wanted=True):
            yield Threads(1)
    else:
        yield Threads()


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
def _one_blas_thread(*, wanted: bool) -> Iterator[bool]:
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


def _limit_this_thread() -> None:
    """Hold BLAS to one thread in the calling thread; where that is for all, it is so already."""
    _blas().limit(limits=1)


@cache
def _blas() -> ThreadpoolController:
    """Return the handle of the BLAS libraries; to look for them takes a while."""
    return ThreadpoolController().select(user_api="blas")
