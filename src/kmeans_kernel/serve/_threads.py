"""Threads for what would keep the event loop from others; a stop does not wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

from kmeans_kernel.serve._refusals import Refusal

T = TypeVar("T")

_Job: TypeAlias = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]

# Reading text keeps other threads of Python waiting, so more would only take more memory.
_THREADS = 2


class Pool:
    """A few threads that end with the process, whatever they are at.

    Those of `asyncio.to_thread` would be waited for when the loop ends.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()

    def start(self) -> None:
        """Let the threads begin."""
        for _ in range(_THREADS):
            Thread(target=self._work, name="aside", daemon=True).start()

    def stop(self) -> None:
        """Let each thread end when it has done what it is at."""
        for _ in range(_THREADS):
            self._jobs.put(None)

    async def call(self, function: Callable[[], T]) -> T:
        """Return what a function returns in one of the threads."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((function, future, loop))
        try:
            return await future
        finally:
            del future  # else an error would hold itself, and all that it came from

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future, loop = job
            if not future.done():  # else nobody waits for it any more
                outcome, error = _outcome(function)
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(_deliver, future, outcome, error)
                del outcome, error
            del job, function, future, loop  # a thread that waits holds nothing


def _outcome(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return function(), None
    except Refusal as refusal:
        # It is told in its sentence; where it came from would hold what was read so far.
        refusal.__traceback__ = refusal.__context__ = refusal.__cause__ = None
        return None, refusal
    except Exception as error:
        return None, error


def _deliver(future: asyncio.Future[Any], outcome: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(outcome)
    else:
        future.set_exception(error)
