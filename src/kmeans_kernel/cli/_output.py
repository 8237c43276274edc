"""Output of all commands: results, errors, warnings, progress bars and figures."""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from kmeans_kernel.cli import BAD_USE, INTERRUPTED
from kmeans_kernel.cli._signals import was_interrupted
from kmeans_kernel.utils.files import check_writable, write_whole

if TYPE_CHECKING:
    from kmeans_kernel.core.arrays.events import Event, FitProgress

Quiet = Annotated[bool, typer.Option("--quiet", help="Suppress messages and progress bars.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Show the duration in seconds, and tracebacks of errors."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write the result as JSON.")]

# Width of tables, in characters, where the output is not a terminal: nothing is wrapped or cut.
_UNLIMITED_WIDTH = 10_000


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise, as `print` does, rather than exit as rich does."""
        raise BrokenPipeError


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream is not None and stream.isatty() else _UNLIMITED_WIDTH
    return _Console(
        stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False, width=width
    )


out = _console(stderr=False)
err = _console(stderr=True)


def write_json(content: object) -> None:
    """Write JSON to standard output."""
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def fail(message: str) -> NoReturn:
    """Write an error message, and exit with code 2."""
    err.print(f"Error: {message}", style="red")
    raise typer.Exit(BAD_USE)


PICTURE_SUFFIXES = (".png", ".svg", ".pdf")


def check_picture(path: Path, *inputs: str | Path) -> None:
    """Fail early if a figure cannot be written, or would overwrite an input."""
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        fail(f"the picture {path} should end in {', '.join(PICTURE_SUFFIXES)}.")
    check_writable(path, *inputs)


def write_picture(figure: Any, path: Path) -> None:
    """Write a Matplotlib figure in the format of the file's suffix."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix.lstrip(".").lower(), dpi=120)
    write_whole(path, buffer.getvalue())


def size_of(n_bytes: int) -> str:
    """Return a number of bytes in kB or MB."""
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.1f} kB"


def warn(message: str) -> None:
    """Write a warning to standard error."""
    err.print(f"Warning: {message}", style="yellow")


def note(message: str) -> None:
    """Write to standard error what was taken for granted."""
    err.print(f"Note: {message}", style="cyan")


@contextmanager
def report_errors(*, verbose: bool = False) -> Iterator[None]:
    """Report errors of the block as one line with exit code 2, and its warnings.

    Tracebacks are shown only if `verbose`.
    """
    begin = perf_counter()
    try:
        with warnings.catch_warnings(record=not verbose) as caught:
            warnings.simplefilter("default")
            yield
        if verbose:
            err.print(f"{perf_counter() - begin:.2f} s in all")
        for warning in caught or []:
            if "kmeans_kernel" in str(warning.filename) or "K-means" in str(warning.message):
                warn(str(warning.message))
    except (typer.Exit, BrokenPipeError):  # a broken pipe is no error, for example with `head`
        raise
    except KeyboardInterrupt:
        _exit_interrupted()
    except ModuleNotFoundError as error:
        fail(f"{error.name} is not installed; install it with: pip install 'kmeans-kernel[all]'")
    except (ValueError, TypeError, OSError, MemoryError) as error:
        if verbose:
            err.print_exception()
        told = str(error)
        if isinstance(error, OSError) and error.strerror:  # raised by the operating system
            told = (
                f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
            )
        fail(" ".join(told.split()) or type(error).__name__)
    except Exception as error:
        if was_interrupted():
            _exit_interrupted()
        if verbose:
            err.print_exception()
        said = " ".join(str(error).split())
        fail(
            f"internal error ({type(error).__name__}: {said}); run again with -v for its "
            "traceback, and report it."
        )


def _exit_interrupted() -> NoReturn:
    err.print("Interrupted; no incomplete file was written.")
    raise typer.Exit(INTERRUPTED) from None


def _description_column() -> Column:
    """Return a column for descriptions that leaves room for the bar on a narrow terminal."""
    return Column(no_wrap=True, overflow="ellipsis", max_width=max(err.width - 35, 10))


@contextmanager
def progress(
    *,
    quiet: bool,
    done: ProgressColumn | None = None,
    time: ProgressColumn | None = None,
) -> Iterator[Progress]:
    """Give progress bars on standard error, hidden if it is not a terminal.

    `done` and `time` are columns for the part that is done and for the time left.
    """
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=_description_column()),
        BarColumn(bar_width=10),
        done or MofNCompleteColumn(),
        time or TimeRemainingColumn(elapsed_when_finished=True),
        console=err,
        transient=True,
        disable=quiet or sys.stderr is None or not sys.stderr.isatty(),
    ) as bars:
        yield bars


class _FitDone(MofNCompleteColumn):
    """The share of a fit in percent; of other tasks, the number of rows."""

    def render(self, task: Task) -> Text:
        if "forecast" in task.fields:
            return Text(f"{task.percentage:3.0f} %", style="progress.percentage")
        return super().render(task)


class _FitTimeLeft(TimeRemainingColumn):
    """The time left by the forecast of the fit; of other tasks, by rich."""

    def render(self, task: Task) -> Text:
        from kmeans_kernel.estimators._progress import duration

        if "forecast" not in task.fields:
            return super().render(task)
        left = task.fields["forecast"].seconds_left()
        told = "" if left is None else f"{duration(left)} left"
        return Text(told, style="progress.remaining")


class TrainingBars:
    """Progress bar of a fit: share done, stage, best held-out error, time left.

    Until the first `FitProgress` the bars are those of single stages: rows clustered so far, and
    rows of a pass over out-of-core data.
    """

    def __init__(self, bars: Progress, row_counts: list[int]) -> None:
        from kmeans_kernel.estimators._progress import BestError, Forecast

        self._bars = bars
        self._kmeans = bars.add_task("K-means", total=sum(row_counts))
        self._pass: TaskID | None = None
        self._fit: TaskID | None = None
        self._at_work: dict[object, str] = {}
        self._forecast, self._best = Forecast(), BestError()

    def __call__(self, event: Event) -> None:
        """Show an event of the training."""
        from kmeans_kernel.core.arrays.events import FitProgress

        self._best.update(event)
        if isinstance(event, FitProgress):
            self._show_fit(event)
        elif self._fit is None:
            self._show_stage(event)

    def _show_fit(self, event: FitProgress) -> None:
        """Show the one bar of the fit, in place of the bars of stages."""
        self._forecast.update(event.fraction)
        if self._fit is None:
            for stage in self._bars.task_ids:
                self._bars.update(stage, visible=False)
            self._fit = self._bars.add_task("", total=1.0, forecast=self._forecast)
        told = ", ".join(filter(None, [event.stage, str(self._best)]))
        self._bars.update(self._fit, completed=self._forecast.fraction, description=told)

    def _show_stage(self, event: Event) -> None:
        """Show an event by the bar of its stage."""
        from kmeans_kernel.core.arrays import events

        match event:
            case events.RowsRead():
                self._show_pass(event.done, event.n_rows)
            case events.KMeansIteration():
                told = f"iteration {event.n_iter}, deviation {event.deviation:.0e}"
                self._at_work[event.label] = f"{event.label!s}: {told}"
                self._describe(f"K-means of {'; '.join(self._at_work.values())}")
            case events.ClassClustered():
                self._at_work.pop(event.label, None)
                self._bars.advance(self._kmeans, event.n_rows)
            case events.SizeTried() | events.CandidateTried():
                self._describe(f"search, {self._best}")
            case events.SolveStarted():
                self._bars.update(self._kmeans, visible=False)
                self._bars.add_task(f"solving for {event.m} representatives", total=None)

    def _describe(self, text: str) -> None:
        self._bars.update(self._kmeans, description=text)

    def _show_pass(self, done: int, n_rows: int) -> None:
        """Show the progress of a pass over row blocks."""
        if self._pass is None:
            self._pass = self._bars.add_task("rows of this pass", total=n_rows)
        if done >= n_rows:
            self._bars.reset(self._pass)
        else:
            self._bars.update(self._pass, completed=done)


@contextmanager
def training_bars(*, quiet: bool) -> Iterator[None]:
    """Show the progress of all fits in the block."""
    from kmeans_kernel.core.arrays.execution import listening

    with (
        progress(quiet=quiet, done=_FitDone(), time=_FitTimeLeft()) as bars,
        listening(lambda counts: TrainingBars(bars, counts)),
    ):
        yield


@contextmanager
def row_bar(title: str, n_rows: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Give a function that advances a progress bar by a number of rows."""
    with progress(quiet=quiet) as bars:
        task = bars.add_task(title, total=n_rows)
        yield lambda done: bars.advance(task, done)


@contextmanager
def byte_bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    """Give a function that sets a progress bar to the bytes read and, if known, their total."""
    with progress(quiet=quiet, done=DownloadColumn()) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def format_number(value: Any) -> str:
    """Return a number with three decimals; a dash for None and NaN."""
    return "–" if value is None or value != value else f"{value:.3f}"
