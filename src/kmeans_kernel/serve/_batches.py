"""Requests that wait for the same model, predicted together.

A thread predicts for a model. Whatever came while it was busy goes into its next batch, up to the
size that was measured to lower the time per row; nothing waits for more to come.
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

from kmeans_kernel.core.arrays.blocking import Array, blocks_of

Rows: TypeAlias = npt.NDArray[Any]
Predict: TypeAlias = Callable[[Rows], Array]

_LARGEST = 2048

# What a joined batch must lower the time per row by, to be worth the wait.
_WORTH = 0.95

# Measuring stops here; slow models have little to gain.
_SECONDS_TO_MEASURE = 2.0

# Long requests are cut into pieces of about this time, so that others get their turn.
_PIECE_SECONDS = 0.1


@dataclass(frozen=True)
class Sizes:
    """How rows are cut and joined.

    Attributes
    ----------
    joined : batches are joined up to so many rows; 1 for not at all
    piece : requests of more rows are cut into pieces of so many
    """

    joined: int
    piece: int


@dataclass(eq=False)
class Tally:
    """What a model has done so far; what failed is not in it."""

    batches: int = 0
    rows: int = 0
    nanoseconds: int = 0


@dataclass(frozen=True, eq=False)
class _Job:
    rows: Rows
    future: asyncio.Future[Array]

    @property
    def kind(self) -> tuple[Any, ...]:
        return (self.rows.dtype, self.rows.shape[1:])


class Batches:
    """The thread that predicts for one model, and what waits for it."""

    def __init__(
        self, predict: Predict, sizes: Sizes, on_batch: Callable[[int], None] | None = None
    ) -> None:
        self.sizes = sizes
        self.tally = Tally()
        self._predict = predict
        self._on_batch = on_batch
        self._came: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._work, name="predict", daemon=True)
        self._thread.start()

    async def predict(self, rows: Rows) -> Array:
        """Return the probabilities of finite rows of the right width."""
        if len(rows) <= self.sizes.piece:
            return await self._wait_for(rows)
        pieces = blocks_of(len(rows), self.sizes.piece)
        return np.concatenate([await self._wait_for(rows[piece]) for piece in pieces])

    def stop(self) -> None:
        """Let the thread end when it has done what waits."""
        self._came.put(None)

    async def _wait_for(self, rows: Rows) -> Array:
        future: asyncio.Future[Array] = self._loop.create_future()
        self._came.put(_Job(rows, future))
        return await future

    def _work(self) -> None:
        waiting: deque[_Job] = deque()
        while True:
            for job in self._arrivals(block=not waiting):
                if job is None:
                    return
                waiting.append(job)
            batch = take_batch(waiting, self.sizes.joined)
            if batch:
                outcomes = self._outcomes(batch)
                with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
                    self._loop.call_soon_threadsafe(_deliver, batch, outcomes)

    def _arrivals(self, *, block: bool) -> Iterator[_Job | None]:
        if block:
            yield self._came.get()
        while not self._came.empty():
            yield self._came.get()

    def _outcomes(self, batch: list[_Job]) -> list[Array | Exception]:
        """Return what came of each job; if they fail together, each has its own try."""
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
        self.tally.batches += 1
        self.tally.rows += len(rows)
        self.tally.nanoseconds += perf_counter_ns() - begin
        if self._on_batch is not None:
            self._on_batch(len(rows))
        return found


def take_batch(waiting: deque[_Job], most_rows: int) -> list[_Job]:
    """Take the first that is still wanted, and all of its kind that fit beside it."""
    while waiting and waiting[0].future.done():  # the client was told that it took too long
        waiting.popleft()
    if not waiting:
        return []
    batch = [waiting.popleft()]
    kind, rows = batch[0].kind, len(batch[0].rows)
    left: list[_Job] = []
    for job in waiting:
        fits = rows + len(job.rows) <= most_rows and job.kind == kind
        if fits and not job.future.done():
            batch.append(job)
            rows += len(job.rows)
        else:
            left.append(job)
    waiting.clear()
    waiting.extend(left)
    return batch


def _deliver(batch: list[_Job], outcomes: list[Array | Exception]) -> None:
    for job, outcome in zip(batch, outcomes, strict=True):
        if job.future.done():
            continue
        if isinstance(outcome, Exception):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)


def measure_sizes(predict: Predict, n_features: int) -> Sizes:
    """Return the sizes that suit a model, from the time that a few take here."""
    rows = np.random.default_rng(0).random((_LARGEST, n_features), dtype=np.float32)
    predict(rows[:1])  # what is done once is not counted
    begin = perf_counter()
    per_row: dict[int, float] = {}
    size = 1
    while size <= _LARGEST and perf_counter() - begin < _SECONDS_TO_MEASURE:
        per_row[size] = min(_seconds(predict, rows[:size]) for _ in range(3)) / size
        size *= 2
    best = choose_joined(per_row)
    return Sizes(best, max(best, int(_PIECE_SECONDS / per_row[best]), 1))


def choose_joined(per_row: dict[int, float]) -> int:
    """Return the size up to which each larger one that is worth it lowers the time per row."""
    best = 1
    for size, seconds in sorted(per_row.items()):
        if seconds < _WORTH * per_row[best]:
            best = size
    return best


def _seconds(predict: Predict, rows: Rows) -> float:
    begin = perf_counter()
    predict(rows)
    return perf_counter() - begin
