"""The bar of a fit, drawn from events made by hand, and the option --time-budget."""

import io

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress
from sklearn.datasets import load_iris

from kmeans_kernel import load_model
from kmeans_kernel.cli import _output
from kmeans_kernel.cli._output import TrainingBars, _FitDone, _FitTimeLeft
from kmeans_kernel.core.kernels.kernels import Gaussian
from kmeans_kernel.estimators import _progress
from kmeans_kernel.events import (
    CandidateTried,
    ClassClustered,
    FitProgress,
    KMeansIteration,
    RowsRead,
    SizeTried,
    SolveStarted,
)
from kmeans_kernel.report._inspection import classifier_of
from tests.cli.test_commands import refuse, succeed

RBF = Gaussian(1.0)


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(_progress, "perf_counter", lambda: now[0])
    return now


@pytest.fixture
def screen(monkeypatch):
    """Give a function that returns the lines of the bars, and the bars."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(_output, "err", console)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)

    def lines(bars):
        with console.capture() as drawn:
            console.print(bars.get_renderable())
        return [line.strip() for line in drawn.get().splitlines() if line.strip()]

    return lines


@pytest.fixture
def bars(screen):
    """Bars as `training_bars` has them, drawn only when a test asks."""
    description = _output.TextColumn(
        "{task.description}", table_column=_output._description_column()
    )
    return Progress(description, _FitDone(), _FitTimeLeft(), console=_output.err)


def test_a_fit_has_one_bar_with_the_time_left(clock, screen, bars):
    listen = TrainingBars(bars, [50, 50])
    listen(FitProgress("search", 0.0))
    assert screen(bars) == ["search   0 %"]
    for step in range(1, 41):
        clock[0] += 1
        listen(CandidateTried(RBF, 0.1 - step / 1000))
        listen(FitProgress("search", step / 100))
    assert screen(bars) == ["search, best held-out error 6.0 %  40 % 60 s left"]
    listen(SizeTried(100, 0.042, 0.1, 1.0))
    listen(KMeansIteration(0, 3, 0.1))
    listen(ClassClustered(0, 50, 10, 3, 0.0))
    listen(RowsRead(30, 100))
    listen(FitProgress("clustering", 0.5))
    listen(SolveStarted(20))
    listen(FitProgress("solving", 0.6))
    (line,) = screen(bars)
    assert line.startswith("solving, best held-out error 4.2 %  60 % 2")
    listen(FitProgress("solving", 1.0))
    assert screen(bars) == ["solving, best held-out error 4.2 % 100 % 0.0 s left"]


def test_the_line_fits_a_terminal_of_80_characters(clock, screen):
    with _output.progress(quiet=False, done=_FitDone(), time=_FitTimeLeft()) as bars:
        listen = TrainingBars(bars, [50])
        listen(CandidateTried(RBF, 0.123))
        clock[0] += 40_000
        listen(FitProgress("clustering", 0.5))
    (line,) = screen(bars)
    assert "clustering, best held-out error 12.3 %" in line
    assert line.endswith("50 % 11 h 7 min left")


def test_without_shares_the_bars_are_those_of_the_stages(screen, bars):
    listen = TrainingBars(bars, [50, 50])
    listen(CandidateTried(RBF, 0.25))
    assert screen(bars) == ["search, best held-out error 25.0 %   0/100 -:--:--"]
    listen(RowsRead(30, 100))
    listen(KMeansIteration(1, 3, 0.1))
    first, second = screen(bars)
    assert first.startswith("K-means of 1: iteration 3, deviation 1e-01")
    assert second.startswith("rows of this pass")
    assert "30/100" in second
    listen(ClassClustered(1, 50, 10, 3, 0.0))
    assert " 50/100" in screen(bars)[0]
    listen(SolveStarted(20))
    assert screen(bars)[-1].startswith("solving for 20 representatives")


@pytest.mark.parametrize("options", [[], ["--features", "raw"]])
def test_the_time_budget(tmp_path, options):
    iris = load_iris()
    X = np.tile(iris.data, (1, 4)).reshape(-1, 4, 4) if options else iris.data
    np.savez(tmp_path / "data.npz", X=X, y=iris.target)
    rest = ["-q", "5", "-o", tmp_path / "model", *options]
    succeed("fit", tmp_path / "data.npz", *rest, "--time-budget", "0.5")
    assert classifier_of(load_model(tmp_path / "model")).time_budget == 0.5
    said = refuse("fit", tmp_path / "data.npz", *rest, "--time-budget", "0")
    assert "'time_budget' parameter" in said
    assert "a number above 0" in said
