"""Execution of the core's work: executors, sums over blocks, listeners, time of each stage.

The core cuts its work into independent pieces and hands them to an `Executor`. The caller chooses
the executor: `SERIAL` for the calling thread, or a pool of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import iadd
from time import perf_counter
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from kmeans_kernel.core.arrays.events import FitProgress, OnEvent

T = TypeVar("T")
R = TypeVar("R")

# A function that makes a listener, given the number of rows of each class.
ListenerFactory: TypeAlias = Callable[[list[int]], OnEvent]

_listeners: ContextVar[ListenerFactory | None] = ContextVar("listeners", default=None)


@contextmanager
def listening(factory: ListenerFactory) -> Iterator[None]:
    """Pass the events of every training inside the context to a listener made by the factory."""
    token = _listeners.set(factory)
    try:
        yield
    finally:
        _listeners.reset(token)


def ambient_listener(row_counts: list[int]) -> OnEvent | None:
    """Return a listener made by the factory of the enclosing `listening`; None outside of one."""
    factory = _listeners.get()
    return None if factory is None else factory(row_counts)


class Executor(Protocol):
    """Runs independent pieces of work."""

    @property
    def count(self) -> int:
        """Number of pieces that run at a time; constant over the executor's life."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the function's results for the items, in the order of the items.

        While several pieces run at a time, BLAS inside each piece has one thread.
        """

    def session(self) -> AbstractContextManager[None]:
        """Keep one pool of threads for the duration of the context, for many short `map` calls."""

    def raise_if_cancelled(self) -> None:
        """Raise if the work was cancelled; long pieces call this now and then."""


class Serial:
    """Executor that runs one piece after another, in the calling thread."""

    @property
    def count(self) -> int:
        """One."""
        return 1

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the function's results for the items."""
        return list(map(function, items))

    def session(self) -> AbstractContextManager[None]:
        """Return a context that does nothing: there is no pool of threads."""
        return nullcontext()

    def raise_if_cancelled(self) -> None:
        """Do nothing: an interrupt reaches the calling thread by itself."""


SERIAL = Serial()


def deal(items: Sequence[T], executor: Executor) -> list[Sequence[T]]:
    """Deal items into one share per worker; the sizes of shares differ by at most one."""
    count = executor.count
    return [items[k::count] for k in range(count)]


def sum_over(
    part: Callable[[Any], T], items: Sequence[R], executor: Executor, load: Callable[[R], Any]
) -> T:
    """Return the sum of `part(load(item))` over at least one item; values are added in place.

    Each worker sums its own share in order, and the workers' sums are added in a fixed order. So
    the number of workers changes the result by rounding alone, and their speed does not change it.
    """

    def add_up(share: Sequence[R]) -> T:
        total = part(load(share[0]))
        for item in share[1:]:
            total += part(load(item))  # type: ignore[operator]
            executor.raise_if_cancelled()
        return total

    if executor.count == 1:
        return add_up(items)
    shares = [share for share in deal(items, executor) if share]
    return reduce(iadd, executor.map(add_up, shares))


@dataclass(frozen=True, eq=False)
class Run:
    """The context of a training: executor, listener, random generator, time of each stage.

    Attributes
    ----------
    executor : runs the pieces of work
    on_event : the listener, called with each event; None for no listener
    rng : random generator for subsamples and cross-validation folds
    seconds : seconds spent in each stage; a stage adds its time when it ends
    deadline : when the search is to end, on the clock of `perf_counter`; None for no limit
    span : the stage that runs, and the shares of the whole fit at its start and at its end; None
        if the shares cannot be estimated
    """

    executor: Executor = SERIAL
    on_event: OnEvent | None = None
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    seconds: dict[str, float] = field(default_factory=dict)
    deadline: float | None = None
    span: tuple[str, float, float] | None = None

    def spanning(self, stage: str, start: float, end: float) -> Run:
        """Return the run of a stage that takes the fit from one share of the whole to another."""
        return replace(self, span=(stage, start, end))

    def report(self, fraction: float) -> None:
        """Tell the listener how much of the stage is done."""
        if self.on_event is not None and self.span is not None:
            stage, start, end = self.span
            self.on_event(FitProgress(stage, start + (end - start) * fraction))

    def is_out_of_time(self) -> bool:
        """Return whether the search is to end with the best found so far."""
        return self.deadline is not None and perf_counter() >= self.deadline

    def silent(self) -> Run:
        """Return a run for trials: the same executor, no listener, a separate record of times."""
        return replace(self, on_event=None, seconds={})

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the duration of the context to a stage, less the duration of nested stages."""
        before = sum(self.seconds.values())
        start = perf_counter()
        try:
            yield
        finally:
            inside = sum(self.seconds.values()) - before
            elapsed = perf_counter() - start - inside
            self.seconds[name] = self.seconds.get(name, 0.0) + elapsed

    def split_stage(self, name: str, parts: dict[str, float]) -> None:
        """Divide the time of a stage among its parts, in proportion to their seconds.

        Parts that ran in several threads add up to more than the elapsed time of the stage.
        """
        whole, total = self.seconds.pop(name), sum(parts.values())
        for part, seconds in parts.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + whole * seconds / total
