"""Threads as workers: as many as BLAS would use, each with single-threaded products.

Two products side by side on one core each run faster than one after the other on both, and all
that is not a product runs on both cores too. NumPy lets go of the interpreter in its loops, so
threads are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Event, Lock
from typing import Any

from threadpoolctl import ThreadpoolController

from kmeans_kernel._workers import R, T


class Threads:
    """Pieces of work in threads.

    There are as many as BLAS has at the moment, so every way to limit BLAS (environment variables,
    `threadpool_limits`, a joblib worker) limits these too; inside them there is no second level.
    """

    def __init__(self) -> None:
        self._called_off = Event()

    @property
    def count(self) -> int:
        """The threads that BLAS may use now; 1 if it cannot be asked."""
        return max((library.num_threads for library in _blas().lib_controllers), default=1)

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the function's results for the items, in their order."""
        items = list(items)
        count = min(self.count, len(items))
        if count < 2:
            return [function(item) for item in items]
        with _single_threaded_blas(), ThreadPoolExecutor(count) as pool:
            try:
                return list(pool.map(function, items))
            except BaseException:  # an interrupt, or a piece that failed: let the others end soon
                self._called_off.set()
                pool.shutdown(cancel_futures=True)
                raise

    def checkpoint(self) -> None:
        """Raise if another piece failed or the user interrupted."""
        if self._called_off.is_set():
            raise KeyboardInterrupt


@cache
def _blas() -> ThreadpoolController:
    """Return the handle of the BLAS libraries; to look for them takes a while."""
    return ThreadpoolController().select(user_api="blas")


_lock = Lock()
_limits: list[Any] = []  # one for each that wants BLAS single-threaded; the first did the limiting


# Fewer operations than this are done sooner by one core than it takes to share them out.
_WORTH_SHARING = 1e9


@contextmanager
def threads_for(operations: float) -> Iterator[Threads]:
    """Give threads for about so many operations; for few, one, and BLAS is held to one too.

    NumPy and SciPy each bring a BLAS with threads of its own, which go on spinning for a while when
    their work is done and are in each other's way where work is short.
    """
    if operations < _WORTH_SHARING:
        with _single_threaded_blas():
            yield Threads()
    else:
        yield Threads()


@contextmanager
def _single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread until the last of those who asked for it, in any thread, is done."""
    with _lock:
        _limits.append(_limits[0] if _limits else _blas().limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            limiter = _limits.pop()
            if not _limits:
                limiter.restore_original_limits()
