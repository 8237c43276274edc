"""Daemon threads for parsing and serialisation that would block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

from kmeans_kernel.serve.transport._errors import RequestError

T = TypeVar("T")

_Job: TypeAlias = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]

# Parsing holds the GIL, so more threads would use more memory and be no faster.
_THREADS = 2


class DaemonThreadPool:
    """A thread pool that never delays the end of the process.

    `asyncio.to_thread` is no alternative: the event loop joins its threads when it closes, so one
    long parse would delay a shutdown.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()

    def start(self) -> None:
        """Start the threads."""
        for _ in range(_THREADS):
            Thread(target=self._work, name="worker", daemon=True).start()

    def stop(self) -> None:
        """Let each thread end after its current job."""
        for _ in range(_THREADS):
            self._jobs.put(None)

    async def call(self, function: Callable[[], T]) -> T:
        """Return the result of a function that runs in one of the threads."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((function, future, loop))
        try:
            return await future
        finally:
            # Without this an exception, its traceback, this frame and the future form a
            # reference cycle, which keeps the request body alive until the next collection.
            del future

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future, loop = job
            if not future.done():  # done: the request timed out
                outcome, error = _outcome(function)
                with suppress(RuntimeError):  # the event loop is closed
                    loop.call_soon_threadsafe(_deliver, future, outcome, error)
                del outcome, error
            del job, function, future, loop  # an idle thread must not keep a request body alive


def _outcome(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return function(), None
    except RequestError as error:
        # The message is all that is needed; the traceback would keep the parsed values alive.
        error.__traceback__ = error.__context__ = error.__cause__ = None
        return None, error
    except Exception as error:
        return None, error


def _deliver(future: asyncio.Future[Any], outcome: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(outcome)
    else:
        future.set_exception(error)
