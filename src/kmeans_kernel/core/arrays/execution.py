"""How work is run: pieces side by side, sums over blocks, events, and the time of each stage.

The core cuts its work into pieces that do not depend on each other and hands them to an
`Executor`. The caller decides what that is: the calling thread, or several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from time import perf_counter
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from kmeans_kernel.core.arrays.events import OnEvent

T = TypeVar("T")
R = TypeVar("R")

# Makes a listener from the number of rows of each class.
ListenerFactory: TypeAlias = Callable[[list[int]], OnEvent]

_listeners: ContextVar[ListenerFactory | None] = ContextVar("listeners", default=None)


@contextmanager
def listening(factory: ListenerFactory) -> Iterator[None]:
    """Let a listener that the factory makes hear the events of each training inside."""
    token = _listeners.set(factory)
    try:
        yield
    finally:
        _listeners.reset(token)


def ambient_listener(row_counts: list[int]) -> OnEvent | None:
    """Return a listener made by the factory that `listening` has set; None if there is none."""
    factory = _listeners.get()
    return None if factory is None else factory(row_counts)


class Executor(Protocol):
    """Runs independent pieces of work."""

    @property
    def count(self) -> int:
        """Number of pieces that run at a time; it does not change."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the function's results for the items, in their order.

        While several pieces run at a time, each has one core, and products of matrices inside it
        use no more.
        """

    def session(self) -> AbstractContextManager[None]:
        """Keep threads ready while the context lasts, for many short calls of `map`."""

    def raise_if_cancelled(self) -> None:
        """Raise if the work was cancelled; long pieces ask now and then."""


class Serial:
    """One piece after another, in the calling thread."""

    @property
    def count(self) -> int:
        """One."""
        return 1

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the function's results for the items."""
        return list(map(function, items))

    def session(self) -> AbstractContextManager[None]:
        """Do nothing: there are no threads to keep."""
        return nullcontext()

    def raise_if_cancelled(self) -> None:
        """Go on: an interrupt reaches the calling thread by itself."""


SERIAL = Serial()


def deal(items: Sequence[T], executor: Executor) -> list[Sequence[T]]:
    """Deal items into one share for each worker; shares differ by at most one item."""
    count = executor.count
    return [items[k::count] for k in range(count)]


def sum_over(
    part: Callable[[Any], T], items: Sequence[R], executor: Executor, load: Callable[[R], Any]
) -> T:
    """Return the sum of `part(load(item))` over items, of which there is at least one.

    Each worker adds up its own share, in order; the sums of the workers are added in their order.
    So the result depends on the number of workers by rounding alone, and not on their speed.
    """

    def add_up(share: Sequence[R]) -> T:
        total = part(load(share[0]))
        for item in share[1:]:
            total = total + part(load(item))  # type: ignore[operator]
            executor.raise_if_cancelled()
        return total

    if executor.count == 1:
        return add_up(items)
    shares = [share for share in deal(items, executor) if share]
    return reduce(add, executor.map(add_up, shares))


@dataclass(frozen=True, eq=False)
class Run:
    """The context of a training: executor, listener, random numbers, and the time of each stage.

    Attributes
    ----------
    executor : runs the pieces of work
    on_event : is called with each event; None if nobody listens
    rng : for samples and folds
    seconds : spent in each stage, added up as the stages end
    """

    executor: Executor = SERIAL
    on_event: OnEvent | None = None
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    seconds: dict[str, float] = field(default_factory=dict)

    def silent(self) -> Run:
        """Return a run with the same executor that reports and times nothing: for trials."""
        return replace(self, on_event=None, seconds={})

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time inside to a stage; the time of stages inside it is theirs alone."""
        before = sum(self.seconds.values())
        start = perf_counter()
        try:
            yield
        finally:
            inside = sum(self.seconds.values()) - before
            elapsed = perf_counter() - start - inside
            self.seconds[name] = self.seconds.get(name, 0.0) + elapsed

    def split_stage(self, name: str, parts: dict[str, float]) -> None:
        """Replace a stage by parts of it, in proportion to their seconds."""
        whole, total = self.seconds.pop(name), sum(parts.values())
        for part, seconds in parts.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + whole * seconds / total
