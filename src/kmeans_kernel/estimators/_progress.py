"""Telling a person how training goes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from time import perf_counter
from typing import TypeAlias

from kmeans_kernel.core.clustering.representatives import Unwatched
from kmeans_kernel.core.clustering.spherical_kmeans import Clustering
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.training.model_size import Step
from kmeans_kernel.core.training.train import Watcher

# Makes a watcher from the number of rows of each class.
WatcherFactory: TypeAlias = Callable[[list[int]], Watcher]

_others: ContextVar[WatcherFactory | None] = ContextVar("watcher", default=None)


@contextmanager
def watched_by(factory: WatcherFactory) -> Iterator[None]:
    """Let the fits inside be watched by what the factory makes."""
    token = _others.set(factory)
    try:
        yield
    finally:
        _others.reset(token)


def watcher_for(row_counts: list[int], *, verbose: bool) -> Watcher:
    """Return the watcher of a fit: one that was set, else one that prints, else a silent one."""
    factory = _others.get()
    if factory is not None:
        return factory(row_counts)
    return Printed(row_counts) if verbose else Silent()


# More classes at work than these would not fit on a line.
_MOST_SHOWN = 2


class Silent(Unwatched):
    """A watcher that says nothing."""

    def tried(self, kernel: Kernel, loss: float) -> None:
        """Say nothing."""

    def grown(self, step: Step) -> None:
        """Say nothing."""


class Printed(Silent):
    """A watcher that writes to standard error: a line per class, with the time left.

    On a terminal a line of the classes at work is rewritten at every iteration.
    """

    def __init__(self, row_counts: list[int]) -> None:
        self._n_rows = sum(row_counts)
        self._done_rows = 0
        self._start = perf_counter()
        self._at_work: dict[object, str] = {}
        self._visits, self._visit_began = 0, perf_counter()
        self._lock = Lock()  # classes may be at work in several threads

    def iteration(self, label: object, n_iter: int, deviation: float) -> None:
        """Rewrite the line of the classes at work, on a terminal."""
        with self._lock:
            self._at_work[label] = f"class {label!s}: iteration {n_iter}, deviation {deviation:.1e}"
            if sys.stderr.isatty():
                shown = list(self._at_work.values())[:_MOST_SHOWN]
                self._write("\r" + "; ".join(shown) + " \033[K")

    def class_done(self, label: object, n_rows: int, found: Clustering) -> None:
        """Write the line of a class that is done, and how long the others may take."""
        with self._lock:
            self._at_work.pop(label, None)
            self._done_rows += n_rows
            spent = perf_counter() - self._start
            left = spent / self._done_rows * (self._n_rows - self._done_rows)
            home = "\r\033[K" if sys.stderr.isatty() else ""
            self._write(
                f"{home}class {label!s}: {n_rows} rows, {len(found.centroids)} representatives, "
                f"{found.n_iter} iterations, deviation {found.deviation:.1e}; "
                f"about {left:.0f} s left\n"
            )

    def visited(self, done: int, n_rows: int) -> None:
        """Rewrite the line of a visit, on a terminal; when it ends, the line stays."""
        spent = perf_counter() - self._visit_began
        left = spent / max(1, done) * (n_rows - done)
        ended = done >= n_rows
        if sys.stderr.isatty() or ended:
            home = "\r\033[K" if sys.stderr.isatty() else ""
            what = f"{spent:.0f} s" if ended else f"about {left:.0f} s left"
            line = f"{home}visit {self._visits + 1}: {done:,} of {n_rows:,} rows, {what}"
            self._write(line + ("\n" if ended else ""))
        if ended:
            self._visits, self._visit_began = self._visits + 1, perf_counter()

    def tried(self, kernel: Kernel, loss: float) -> None:
        """Write what was tried."""
        self._write(f"tried {kernel}: held-out squared error {loss:.4f}\n")

    def grown(self, step: Step) -> None:
        """Write what came of a number of representatives."""
        self._write(
            f"{step.n_representatives} representatives of each class: held-out error "
            f"{100 * step.held_out_error:.2f} %, {step.seconds:.1f} s\n"
        )

    def solving(self, m: int) -> None:
        """Write that the solve begins."""
        self._write(f"solving for {m} representatives\n")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
