"""The printer of `verbose=True`, and the estimate of the time left that the command line shares."""

from __future__ import annotations

import sys
from math import exp
from shutil import get_terminal_size
from time import perf_counter

from kmeans_kernel.core.arrays.events import (
    CandidateTried,
    ClassClustered,
    Event,
    FitProgress,
    KMeansIteration,
    RowsRead,
    SizeTried,
    SolveStarted,
)

# The share of the fit from which on the time left is told; earlier, one step decides it.
_FIRST_TOLD = 0.02

# Over which share of the fit the estimate of the end forgets earlier estimates, and at most over
# which part of the share that is left: an old estimate must not outweigh the time left.
_MEMORY, _MEMORY_OF_REST = 0.05, 0.25

# Seconds between two writings of the line on a terminal, and of a line elsewhere in a long stage.
_REWRITE_SECONDS, _LINE_SECONDS = 0.1, 60.0

# Characters of the bar.
_BAR_WIDTH = 20


class Forecast:
    """Estimate of the time left, from the share of the fit that is done.

    At a share f after t seconds, t (1 − f) / f seconds are left. The end that follows from it is
    smoothed over the last twentieth of the fit, so that the time left does not jump, and stays
    within a factor of two of the unsmoothed value.
    """

    def __init__(self) -> None:
        self.fraction = 0.0
        self._start = perf_counter()
        self._end: float | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self._start

    def update(self, fraction: float) -> None:
        """Take note of the share of the fit that is done; a lower one than before is ignored."""
        gain, self.fraction = fraction - self.fraction, max(fraction, self.fraction)
        if gain <= 0.0:
            return
        end = self._start + self.elapsed / fraction
        if self._end is None:
            self._end = end
        else:
            memory = max(min(_MEMORY, _MEMORY_OF_REST * (1.0 - fraction)), 1e-9)
            self._end += (1.0 - exp(-gain / memory)) * (end - self._end)

    def seconds_left(self) -> float | None:
        """Return the estimated seconds left; None while too little is done to tell."""
        if self._end is None or self.fraction < _FIRST_TOLD:
            return None
        plain = self.elapsed * (1.0 - self.fraction) / self.fraction
        return min(max(self._end - perf_counter(), plain / 2), 2 * plain)


class BestError:
    """The lowest held-out error among the candidates that were tried."""

    def __init__(self) -> None:
        self._value: float | None = None

    def update(self, event: Event) -> None:
        """Take note of an event."""
        match event:
            case CandidateTried(error=error) | SizeTried(held_out_error=error):
                self._value = error if self._value is None else min(error, self._value)

    def __str__(self) -> str:
        """Return the text to show; empty if nothing was tried."""
        return "" if self._value is None else f"best held-out error {percent(self._value)}"


def percent(share: float) -> str:
    """Return a share as a percentage with one decimal."""
    return f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    """Return a duration with the precision that matters: "3.2 s", "48 s", "5 min", "2 h 10 min"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def stage_of(event: Event) -> str | None:
    """Return the stage that an event belongs to; None if it may come in several."""
    match event:
        case FitProgress():
            return event.stage
        case CandidateTried() | SizeTried():
            return "search"
        case KMeansIteration() | ClassClustered():
            return "clustering"
        case SolveStarted():
            return "solving"
    return None


class ProgressPrinter:
    """Listener that writes the progress of a fit to standard error.

    On a terminal it is one line, rewritten: bar, stage, time left, best held-out error. Elsewhere
    it is a line for each stage, and one a minute in a long stage. Without `FitProgress` there is no
    bar, and passes over out-of-core rows are told one by one.
    """

    def __init__(self) -> None:
        self._forecast, self._best = Forecast(), BestError()
        self._stage: str | None = None
        self._tells_share = False  # whether FitProgress has come
        self._passes, self._pass_share = 0, 0.0
        self._written = -_LINE_SECONDS  # when, in seconds of the fit
        self._on_terminal = sys.stderr.isatty()
        self._line_is_open = False

    def __call__(self, event: Event) -> None:
        """Show an event."""
        self._best.update(event)
        if isinstance(event, FitProgress):
            self._tells_share = True
            self._forecast.update(event.fraction)
        elif isinstance(event, RowsRead):
            self._note_pass(event)
        before = self._stage
        if isinstance(event, FitProgress) or not self._tells_share:
            self._stage = stage_of(event) or before
        pause = _REWRITE_SECONDS if self._on_terminal else _LINE_SECONDS
        is_due = self._forecast.elapsed - self._written >= pause
        if self._stage is not None and (self._stage != before or is_due):
            self._show()

    def finish(self, held_out_error: float | None) -> None:
        """Write the last line, of a fit that ended; the error is that of the chosen candidate."""
        told = "" if held_out_error is None else f", held-out error {percent(held_out_error)}"
        self._write_line(f"fitted in {duration(self._forecast.elapsed)}{told}")

    def close(self) -> None:
        """End the line, so that an error message starts on a new one."""
        if self._line_is_open:
            self._write("\n")
            self._line_is_open = False

    def _note_pass(self, event: RowsRead) -> None:
        """Take note of the rows of a pass; without `FitProgress`, write a line at its end."""
        self._pass_share = event.done / max(1, event.n_rows)
        if event.done < event.n_rows:
            return
        self._passes, self._pass_share = self._passes + 1, 0.0
        if not self._tells_share:
            rows = f"{event.done:,} of {event.n_rows:,} rows"
            told = f"pass {self._passes}: {rows}, {duration(self._forecast.elapsed)} so far"
            self._write_line(told)

    def _show(self) -> None:
        """Write or rewrite the line of the state."""
        self._written = self._forecast.elapsed
        told = self._share() + ", ".join(filter(None, self._parts()))
        if not self._on_terminal:
            self._write_line(told)
            return
        width = (
            get_terminal_size().columns - 1
        )  # a full line would wrap, and could not be rewritten
        self._write(f"\r{told[:width]}\033[K")
        self._line_is_open = True

    def _share(self) -> str:
        """Return the share that is done: on a terminal with a bar, elsewhere as a number."""
        done = 100 * self._forecast.fraction
        if not self._tells_share:
            return ""
        if not self._on_terminal:
            return f"{done:.0f} %: "
        filled = round(_BAR_WIDTH * self._forecast.fraction)
        return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done:3.0f} %  "

    def _parts(self) -> list[str]:
        """Return the parts of the line after the share; some may be empty."""
        left = self._forecast.seconds_left()
        return [
            self._stage or "",
            f"about {duration(left)} left" if left is not None else "",
            "" if self._on_terminal else f"{duration(self._forecast.elapsed)} so far",
            f"{100 * self._pass_share:.0f} % of this pass" if self._pass_share else "",
            str(self._best),
        ]

    def _write_line(self, text: str) -> None:
        """Write a line that stays, in place of the line that is rewritten."""
        self._write(("\r\033[K" if self._line_is_open else "") + text + "\n")
        self._line_is_open = False

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
