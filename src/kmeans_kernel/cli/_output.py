"""What the verbs share: where they write, how they fail, how they show progress."""

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
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from kmeans_kernel.cli import BAD_USE, INTERRUPTED
from kmeans_kernel.cli._signals import was_interrupted
from kmeans_kernel.utils.files import check_writable, write_whole

if TYPE_CHECKING:
    from kmeans_kernel.core.clustering.spherical_kmeans import Clustering

Quiet = Annotated[bool, typer.Option("--quiet", help="Write nothing but the result.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Tell the time it takes, and where an error came from."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write the result as JSON.")]

# Off a terminal a table is as wide as it needs to be.
_WIDE = 10_000


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to `one_sentence`."""
        raise BrokenPipeError


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream is not None and stream.isatty() else _WIDE
    return _Console(
        stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False, width=width
    )


out = _console(stderr=False)
err = _console(stderr=True)


def write_json(content: object) -> None:
    """Write JSON to standard output."""
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def fail(sentence: str) -> NoReturn:
    """Say in one sentence what is wrong, and leave."""
    err.print(f"Error: {sentence}", style="red")
    raise typer.Exit(BAD_USE)


PICTURES = (".png", ".svg", ".pdf")


def check_picture(path: Path, *inputs: str | Path) -> None:
    """See before the work that a picture can be written, and over nothing that is read."""
    if path.suffix.lower() not in PICTURES:
        fail(f"the picture {path} should end in {', '.join(PICTURES)}.")
    check_writable(path, *inputs)


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure of Matplotlib, in the format that the name says."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix.lstrip(".").lower(), dpi=120)
    write_whole(path, buffer.getvalue())


def size_of(n_bytes: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.1f} kB"


def warn(sentence: str) -> None:
    """Say in one sentence what may be wrong."""
    err.print(f"Warning: {sentence}", style="yellow")


@contextmanager
def one_sentence(*, verbose: bool = False) -> Iterator[None]:
    """Turn what a user can cause into one sentence and exit code 2; never a traceback."""
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
    except (typer.Exit, BrokenPipeError):  # the reader of our output may go, as `head` does
        raise
    except KeyboardInterrupt:
        _leave_interrupted()
    except ModuleNotFoundError as error:
        fail(f"{error.name} is not installed; install it with: pip install 'kmeans-kernel[all]'")
    except (ValueError, TypeError, OSError, MemoryError) as error:
        if verbose:
            err.print_exception()
        told = str(error)
        if isinstance(error, OSError) and error.strerror:  # the system's own
            told = (
                f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
            )
        fail(" ".join(told.split()) or type(error).__name__)
    except Exception as error:
        if was_interrupted():
            _leave_interrupted()
        if verbose:
            err.print_exception()
        said = " ".join(str(error).split())
        fail(f"this should not happen ({type(error).__name__}: {said}); -v shows where it did.")


def _leave_interrupted() -> NoReturn:
    err.print("Interrupted; what was not finished was not written.")
    raise typer.Exit(INTERRUPTED) from None


def _shortened() -> Column:
    """Return a column that gives way to the others where the terminal is narrow."""
    return Column(no_wrap=True, overflow="ellipsis", max_width=max(err.width - 35, 10))


@contextmanager
def progress(*, quiet: bool, in_bytes: bool = False) -> Iterator[Progress]:
    """Give bars on standard error; silent when that is no terminal."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=_shortened()),
        BarColumn(bar_width=10),
        DownloadColumn() if in_bytes else MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=err,
        transient=True,
        disable=quiet or sys.stderr is None or not sys.stderr.isatty(),
    ) as bars:
        yield bars


class TrainingBars:
    """A watcher that moves bars: rows clustered, and what each class at work is doing."""

    def __init__(self, bars: Progress, row_counts: list[int]) -> None:
        self._bars = bars
        self._kmeans = bars.add_task("K-means", total=sum(row_counts))
        self._at_work: dict[object, str] = {}
        self._visit: TaskID | None = None

    def visited(self, done: int, n_rows: int) -> None:
        """Move the bar of a visit to rows in blocks."""
        if self._visit is None:
            self._visit = self._bars.add_task("rows of this visit", total=n_rows)
        if done >= n_rows:
            self._bars.reset(self._visit)
        else:
            self._bars.update(self._visit, completed=done)

    def moved(self, centroids: dict[int, Any]) -> None:
        """Be told by class instead."""

    def iteration(self, label: object, n_iter: int, deviation: float) -> None:
        """Tell of the classes at work."""
        self._at_work[label] = f"{label!s}: iteration {n_iter}, deviation {deviation:.0e}"
        doing = "; ".join(list(self._at_work.values()))
        self._bars.update(self._kmeans, description=f"K-means of {doing}")

    def class_done(self, label: object, n_rows: int, found: Clustering) -> None:  # noqa: ARG002
        """Move the bar by the rows of a class."""
        self._at_work.pop(label, None)
        self._bars.advance(self._kmeans, n_rows)

    def grown(self, step: Any) -> None:
        """Show what came of a number of representatives."""
        told = f"{step.n_representatives} of each class: error {100 * step.held_out_error:.2f} %"
        self._bars.update(self._kmeans, description=told)

    def tried(self, kernel: object, loss: float) -> None:
        """Show what was tried."""
        self._bars.update(self._kmeans, description=f"choosing: {kernel}, error {loss:.4f}")

    def solving(self, m: int) -> None:
        """Show that the solve is on."""
        self._bars.update(self._kmeans, visible=False)
        self._bars.add_task(f"solving for {m} representatives", total=None)


@contextmanager
def training_bars(*, quiet: bool) -> Iterator[None]:
    """Show the fits inside as bars."""
    from kmeans_kernel.estimators._progress import watched_by

    with progress(quiet=quiet) as bars, watched_by(lambda counts: TrainingBars(bars, counts)):
        yield


@contextmanager
def row_bar(title: str, n_rows: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Give a function that moves a bar by a number of rows."""
    with progress(quiet=quiet) as bars:
        task = bars.add_task(title, total=n_rows)
        yield lambda done: bars.advance(task, done)


@contextmanager
def byte_bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    """Give a function that sets a bar to the bytes that were read, of how many if that is known."""
    with progress(quiet=quiet, in_bytes=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def told(value: Any) -> str:
    """Return a number as a person reads it."""
    return "–" if value is None or value != value else f"{value:.3f}"
