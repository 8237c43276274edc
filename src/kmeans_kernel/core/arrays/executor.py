"""Who does the work: pieces that may be done side by side, and how many at a time.

The core cuts its work into pieces that do not depend on each other and hands them to `Workers`.
What these are, the caller decides: one thread, several, or later several machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Workers(Protocol):
    """Someone who does pieces of work."""

    @property
    def count(self) -> int:
        """How many pieces are done at a time; it does not change."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the function's results for the items, in their order.

        While several pieces are done at a time, each has one core, and products of matrices
        inside it use no more.
        """

    def together(self) -> AbstractContextManager[None]:
        """Stay ready while the context lasts, for much that is shared out in small pieces."""

    def checkpoint(self) -> None:
        """Raise if the work was called off; a piece that takes long asks now and then."""


class Alone:
    """One piece after another, in the calling thread."""

    @property
    def count(self) -> int:
        """One."""
        return 1

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the function's results for the items."""
        return [function(item) for item in items]

    def together(self) -> AbstractContextManager[None]:
        """There is nothing to keep."""
        return nullcontext()

    def checkpoint(self) -> None:
        """Go on: an interrupt reaches the calling thread by itself."""


ALONE = Alone()


def shares(items: Sequence[T], workers: Workers) -> list[Sequence[T]]:
    """Deal items out, as many hands as there are workers; hands differ by at most one item."""
    count = workers.count
    return [items[k::count] for k in range(count)]
