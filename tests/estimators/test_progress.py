"""What `verbose=True` writes, and the estimate of the time left, from events made by hand."""

import re
import sys

import numpy as np
import pytest

from kmeans_kernel.core.kernels.kernels import Gaussian
from kmeans_kernel.estimators import _progress
from kmeans_kernel.estimators._progress import BestError, Forecast, ProgressPrinter, duration
from kmeans_kernel.events import (
    CandidateTried,
    ClassClustered,
    FitProgress,
    KMeansIteration,
    RowsRead,
    SizeTried,
    SolveStarted,
)

RBF = Gaussian(1.0)


class Clock:
    """A clock that the test sets."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_progress, "perf_counter", clock)
    return clock


def be_a_terminal(monkeypatch, width=120):
    """Make standard error, as captured by now, a terminal."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))


def fractions(pace, n=200):
    """Return times and shares of a fit of 100 s; the pace at a share is relative to the mean."""
    shares = np.linspace(0, 1, n + 1)[1:]
    seconds = np.cumsum(1 / pace(shares))
    return 100 * seconds / seconds[-1], shares


@pytest.mark.parametrize(
    "pace",
    [
        lambda f: np.ones_like(f),
        lambda f: 1 + 0.3 * np.sin(40 * f),
        lambda f: np.where(f < 0.5, 1.0, 1.5),
        lambda f: np.where(f < 0.5, 1.5, 1.0),
    ],
)
def test_the_time_left_is_within_a_factor_of_two(clock, pace):
    """From the first tenth on, if the shares are honest by much less than that."""
    forecast, told = Forecast(), []
    for second, share in zip(*fractions(pace), strict=True):
        clock.now = 100 + second
        forecast.update(share)
        if 0.1 <= share < 0.99:
            left = forecast.seconds_left()
            assert 0.5 <= left / (100 - second) <= 2, (share, left)
            told.append(left)
    assert max(abs(np.diff(told))) < 3  # it does not jump
    assert forecast.seconds_left() == 0.0


def test_one_early_step_decides_nothing(clock):
    forecast = Forecast()
    assert forecast.seconds_left() is None
    clock.now += 1
    forecast.update(0.01)
    assert forecast.seconds_left() is None
    forecast.update(0.5)
    assert forecast.seconds_left() == pytest.approx(1.0, rel=0.01)
    forecast.update(0.4)  # the share never falls
    assert forecast.fraction == 0.5


def test_the_time_left_counts_down_between_events_and_not_to_zero(clock):
    forecast = Forecast()
    clock.now += 10
    forecast.update(0.5)
    clock.now += 3
    assert forecast.seconds_left() == pytest.approx(7)
    clock.now += 37  # half is done after 50 s
    assert forecast.seconds_left() == pytest.approx(25)


def test_a_leap_is_followed_at_once(clock):
    """A time budget ends the search: the share leaps, and the estimate with it."""
    forecast = Forecast()
    clock.now += 10
    forecast.update(0.1)
    assert forecast.seconds_left() == pytest.approx(90)
    forecast.update(0.8)
    assert forecast.seconds_left() == pytest.approx(2.5, rel=0.1)


def test_the_best_error_is_the_lowest():
    best = BestError()
    assert str(best) == ""
    best.update(SolveStarted(3))
    for error in (0.3, 0.042, 0.1):
        best.update(CandidateTried(RBF, error))
    assert str(best) == "best held-out error 4.2 %"
    best.update(SizeTried(100, 0.0119, 0.5, 1.0))
    assert str(best) == "best held-out error 1.2 %"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (99, "99 s"), (100, "2 min"),
     (3569, "59 min"), (3571, "1 h 0 min"), (7800, "2 h 10 min")],
)  # fmt: skip
def test_durations_have_the_digits_that_matter(seconds, text):
    assert duration(seconds) == text


def fit_by_hand(printer, clock):
    """Feed the events of a fit of ten seconds."""
    for share in np.arange(1, 61) / 100:
        clock.now += 0.1
        printer(FitProgress("search", share))
        printer(CandidateTried(RBF, 0.1 - share / 10))
    for n_iter, share in enumerate(np.arange(61, 81) / 100, start=1):
        clock.now += 0.1
        printer(KMeansIteration(0, n_iter, 0.1))
        printer(FitProgress("clustering", share))
    printer(ClassClustered(0, 100, 10, 20, 0.0))
    printer(SolveStarted(10))
    for share in np.arange(81, 101) / 100:
        clock.now += 0.1
        printer(FitProgress("solving", share))
    printer.finish(0.042)
    printer.close()


def test_a_file_gets_a_line_for_each_stage(clock, capsys):
    fit_by_hand(ProgressPrinter(), clock)
    assert capsys.readouterr().err.splitlines() == [
        "1 %: search, 0.1 s so far",
        "61 %: clustering, about 3.9 s left, 6.1 s so far, best held-out error 4.0 %",
        "81 %: solving, about 1.9 s left, 8.1 s so far, best held-out error 4.0 %",
        "fitted in 10 s, held-out error 4.2 %",
    ]


def test_a_file_gets_a_line_a_minute_in_a_long_stage(clock, capsys):
    printer = ProgressPrinter()
    for second in range(200):
        printer(FitProgress("search", second / 1000))
        clock.now += 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4
    assert said[2] == "12 %: search, about 15 min left, 2 min so far"


def test_a_terminal_gets_one_line(clock, capsys, monkeypatch):
    be_a_terminal(monkeypatch)
    fit_by_hand(ProgressPrinter(), clock)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.endswith("\r\033[Kfitted in 10 s, held-out error 4.2 %\n")
    line = r"\[#{10}\.{10}\]  5[01] %  search, about [45]\.\d s left, best held-out error 5\.\d %"
    assert re.search(f"\r{line}\033\\[K", said)
    assert "deviation" not in said
    assert len(re.findall("\r", said)) <= 102  # events between two writings are not drawn


def test_a_narrow_terminal_is_not_wrapped(clock, capsys, monkeypatch):
    be_a_terminal(monkeypatch, width=30)
    fit_by_hand(ProgressPrinter(), clock)
    lines = re.findall("\r(.*?)\033", capsys.readouterr().err)
    assert max(map(len, lines)) == 29


def test_an_open_line_is_ended(clock, capsys, monkeypatch):
    be_a_terminal(monkeypatch)
    printer = ProgressPrinter()
    printer(FitProgress("search", 0.1))
    printer.close()
    printer.close()
    assert capsys.readouterr().err.count("\n") == 1


def test_without_shares_stages_and_passes_are_told(clock, capsys):
    printer = ProgressPrinter()
    printer(CandidateTried(RBF, 0.25))
    for _ in range(2):
        clock.now += 2
        printer(RowsRead(300, 700))
        printer(RowsRead(700, 700))
    printer(KMeansIteration(0, 1, 0.1))
    printer(SolveStarted(10))
    assert capsys.readouterr().err.splitlines() == [
        "search, 0.0 s so far, best held-out error 25.0 %",
        "pass 1: 700 of 700 rows, 2.0 s so far",
        "pass 2: 700 of 700 rows, 4.0 s so far",
        "clustering, 4.0 s so far, best held-out error 25.0 %",
        "solving, 4.0 s so far, best held-out error 25.0 %",
    ]


def test_with_shares_the_line_has_the_rows_of_the_pass(clock, capsys, monkeypatch):
    be_a_terminal(monkeypatch)
    printer = ProgressPrinter()
    clock.now += 2
    printer(FitProgress("clustering", 0.5))
    clock.now += 0.5
    printer(RowsRead(300, 600))
    clock.now += 1
    printer(RowsRead(600, 600))
    said = capsys.readouterr().err
    assert "clustering, about 1.5 s left, 50 % of this pass\033" in said
    assert "rows" not in said
