"""Dynamic micro-batching: queued requests for the same model are predicted together.

Each model has one prediction thread. Requests that arrive while it is busy form its next batch, up
to the size that was measured to lower the time per row. There is no batching delay.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from time import perf_counter, perf_counter_ns
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array, blocks_of

Rows: TypeAlias = npt.NDArray[Any]
Predict: TypeAlias = Callable[[Rows], Array]

# Largest batch that is measured, in rows.
_MAX_BATCH_ROWS = 2048

# A larger batch must lower the time per row by at least 5 %: less is within the noise of the
# measurement, and each request waits for its whole batch.
_REQUIRED_RATIO = 0.95

# Time limit of the measurement at startup; slow models gain little from batching.
_MEASUREMENT_SECONDS = 2.0

# Long requests are split into chunks of about this duration, so that short ones need not wait.
_CHUNK_SECONDS = 0.1


@dataclass(frozen=True)
class BatchSizes:
    """Sizes of batches and chunks.

    Attributes
    ----------
    batch_rows : most rows of a batch of several requests; 1 turns batching off
    chunk_rows : most rows that are predicted at once; larger requests are split
    """

    batch_rows: int
    chunk_rows: int


@dataclass(eq=False)
class BatchStatistics:
    """Counters of the successful batches of a model."""

    batches: int = 0
    rows: int = 0
    nanoseconds: int = 0


@dataclass(frozen=True, eq=False)
class _Job:
    rows: Rows
    future: asyncio.Future[Array]

    @property
    def signature(self) -> tuple[Any, ...]:
        """Dtype and row shape; jobs can share a batch only if these are equal."""
        return (self.rows.dtype, self.rows.shape[1:])


class MicroBatcher:
    """The prediction thread of one model, with its queue."""

    def __init__(
        self, predict: Predict, sizes: BatchSizes, on_batch: Callable[[int], None] | None = None
    ) -> None:
        self.sizes = sizes
        self.statistics = BatchStatistics()
        self._predict = predict
        self._on_batch = on_batch
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._work, name="predict", daemon=True)
        self._thread.start()

    async def predict(self, rows: Rows) -> Array:
        """Return the probabilities of validated rows."""
        if len(rows) <= self.sizes.chunk_rows:
            return await self._wait_for(rows)
        chunks = blocks_of(len(rows), self.sizes.chunk_rows)
        return np.concatenate([await self._wait_for(rows[chunk]) for chunk in chunks])

    def stop(self) -> None:
        """Let the thread end after its current batch."""
        self._queue.put(None)

    async def _wait_for(self, rows: Rows) -> Array:
        future: asyncio.Future[Array] = self._loop.create_future()
        self._queue.put(_Job(rows, future))
        return await future

    def _work(self) -> None:
        waiting: deque[_Job] = deque()
        while True:
            for job in self._drain_queue(block=not waiting):
                if job is None:
                    return
                waiting.append(job)
            batch = take_batch(waiting, self.sizes.batch_rows)
            if batch:
                outcomes = self._outcomes(batch)
                with suppress(RuntimeError):  # the event loop is closed
                    self._loop.call_soon_threadsafe(_deliver, batch, outcomes)

    def _drain_queue(self, *, block: bool) -> Iterator[_Job | None]:
        if block:
            yield self._queue.get()
        while not self._queue.empty():
            yield self._queue.get()

    def _outcomes(self, batch: list[_Job]) -> list[Array | Exception]:
        """Return the result or the error of each job.

        A batch that fails is predicted again job by job, so that one invalid request does not fail
        the others.
        """
        if len(batch) == 1:
            return [self._outcome(batch[0].rows)]
        try:
            together = self._outcome(np.concatenate([job.rows for job in batch]))
        except MemoryError as error:
            together = error
        if isinstance(together, Exception):
            return [self._outcome(job.rows) for job in batch]
        ends = np.cumsum([len(job.rows) for job in batch])[:-1]
        return list(np.split(together, ends))

    def _outcome(self, rows: Rows) -> Array | Exception:
        begin = perf_counter_ns()
        try:
            found = self._predict(rows)
        except Exception as error:
            return error
        self.statistics.batches += 1
        self.statistics.rows += len(rows)
        self.statistics.nanoseconds += perf_counter_ns() - begin
        if self._on_batch is not None:
            self._on_batch(len(rows))
        return found


def take_batch(waiting: deque[_Job], max_rows: int) -> list[_Job]:
    """Remove and return the first pending job with all later ones that can share its batch."""
    while waiting and waiting[0].future.done():  # the request timed out
        waiting.popleft()
    if not waiting:
        return []
    batch = [waiting.popleft()]
    signature, rows = batch[0].signature, len(batch[0].rows)
    remaining: list[_Job] = []
    for job in waiting:
        fits = rows + len(job.rows) <= max_rows and job.signature == signature
        if fits and not job.future.done():
            batch.append(job)
            rows += len(job.rows)
        else:
            remaining.append(job)
    waiting.clear()
    waiting.extend(remaining)
    return batch


def _deliver(batch: list[_Job], outcomes: list[Array | Exception]) -> None:
    for job, outcome in zip(batch, outcomes, strict=True):
        if job.future.done():
            continue
        if isinstance(outcome, Exception):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)


def measure_batch_sizes(predict: Predict, width: int) -> BatchSizes:
    """Measure the time per row of `width` numbers at doubling batch sizes, and choose from it."""
    rows = np.random.default_rng(0).random((_MAX_BATCH_ROWS, width), dtype=np.float32)
    predict(rows[:1])  # warm-up
    begin = perf_counter()
    per_row: dict[int, float] = {}
    size = 1
    while size <= _MAX_BATCH_ROWS and perf_counter() - begin < _MEASUREMENT_SECONDS:
        per_row[size] = min(_seconds(predict, rows[:size]) for _ in range(3)) / size
        size *= 2
    best = choose_batch_rows(per_row)
    return BatchSizes(best, max(best, int(_CHUNK_SECONDS / per_row[best]), 1))


def choose_batch_rows(per_row: dict[int, float]) -> int:
    """Return the batch size beyond which no larger one lowers the time per row by 5 %.

    Parameters
    ----------
    per_row : seconds per row, by batch size
    """
    best = 1
    for size, seconds in sorted(per_row.items()):
        if seconds < _REQUIRED_RATIO * per_row[best]:
            best = size
    return best


def _seconds(predict: Predict, rows: Rows) -> float:
    begin = perf_counter()
    predict(rows)
    return perf_counter() - begin
