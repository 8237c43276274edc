"""The printer of `verbose=True`: a listener that writes progress to standard error."""

from __future__ import annotations

import sys
from threading import Lock
from time import perf_counter

from kmeans_kernel.core.arrays.events import (
    CandidateTried,
    ClassClustered,
    Event,
    KMeansIteration,
    RowsRead,
    SizeTried,
    SolveStarted,
)

# The most classes in progress that fit on a line.
_MOST_SHOWN = 2


class ProgressPrinter:
    """Listener that writes a line for each class to standard error, with the time left.

    On a terminal, a line of the classes in progress is rewritten at every iteration.
    """

    def __init__(self, row_counts: list[int]) -> None:
        self._n_rows = sum(row_counts)
        self._done_rows = 0
        self._start = perf_counter()
        self._at_work: dict[object, str] = {}
        self._passes, self._pass_began = 0, perf_counter()
        self._lock = Lock()  # classes may be at work in several threads

    def __call__(self, event: Event) -> None:
        """Write the line of an event."""
        with self._lock:
            match event:
                case KMeansIteration():
                    self._show_iteration(event)
                case ClassClustered():
                    self._write_class(event)
                case RowsRead():
                    self._show_rows(event)
                case CandidateTried():
                    text = f"tried {event.kernel}: held-out squared error {event.loss:.4f}\n"
                    self._write(text)
                case SizeTried():
                    error = 100 * event.held_out_error
                    self._write(
                        f"{event.n_representatives} representatives of each class: held-out error "
                        f"{error:.2f} %, {event.seconds:.1f} s\n"
                    )
                case SolveStarted():
                    self._write(f"solving for {event.m} representatives\n")

    def _show_iteration(self, event: KMeansIteration) -> None:
        """Rewrite the line of the classes in progress, on a terminal."""
        told = f"iteration {event.n_iter}, deviation {event.deviation:.1e}"
        self._at_work[event.label] = f"class {event.label!s}: {told}"
        if sys.stderr.isatty():
            shown = list(self._at_work.values())[:_MOST_SHOWN]
            self._write("\r" + "; ".join(shown) + " \033[K")

    def _write_class(self, event: ClassClustered) -> None:
        """Write the line of a class that has ended, with an estimate of the time left."""
        self._at_work.pop(event.label, None)
        self._done_rows += event.n_rows
        spent = perf_counter() - self._start
        left = spent / self._done_rows * (self._n_rows - self._done_rows)
        home = "\r\033[K" if sys.stderr.isatty() else ""
        self._write(
            f"{home}class {event.label!s}: {event.n_rows} rows, {event.n_representatives} "
            f"representatives, {event.n_iter} iterations, deviation {event.deviation:.1e}; "
            f"about {left:.0f} s left\n"
        )

    def _show_rows(self, event: RowsRead) -> None:
        """Rewrite the line of a pass on a terminal; the line of a finished pass stays."""
        spent = perf_counter() - self._pass_began
        left = spent / max(1, event.done) * (event.n_rows - event.done)
        ended = event.done >= event.n_rows
        if sys.stderr.isatty() or ended:
            home = "\r\033[K" if sys.stderr.isatty() else ""
            time = f"{spent:.0f} s" if ended else f"about {left:.0f} s left"
            rows = f"{event.done:,} of {event.n_rows:,} rows"
            line = f"{home}pass {self._passes + 1}: {rows}, {time}"
            self._write(line + ("\n" if ended else ""))
        if ended:
            self._passes, self._pass_began = self._passes + 1, perf_counter()

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
