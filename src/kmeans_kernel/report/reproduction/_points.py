"""The points of the paper's figures, and ours beside them."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Curve:
    """One of our curves: what it is measured on, and the paper's curve that it should meet.

    Attributes
    ----------
    features : what `measure` runs
    error : the name of the error in its rows; one run of patches has two
    theirs : the features of the paper's curve
    title : what a person reads
    """

    features: str
    error: str
    theirs: str
    title: str


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: its curves, and the top of its axis."""

    number: int
    title: str
    curves: tuple[Curve, ...]

    @property
    def name(self) -> str:
        """The name of its result file and picture."""
        return f"figure{self.number}"


FIGURES = {
    "figure1": Figure(
        1,
        "MNIST, test error against Q: pixels, and pixels with Fourier magnitudes",
        (
            Curve("raw", "error_percent", "raw", "raw"),
            Curve("raw_fft", "error_percent", "raw_fft", "raw + FFT, with the root"),
            Curve("raw_fft_no_root", "error_percent", "raw_fft", "raw + FFT, without the root"),
        ),
    ),
    "figure2": Figure(
        2,
        "MNIST, test error against Q: patches",
        (
            Curve("patches", "error_percent", "patches_25", "25 × 25, majority"),
            Curve("patches", "sum_error_percent", "patches_25", "25 × 25, summed scores"),
            Curve("patches_26", "error_percent", "patches_25", "26 × 26, majority"),
            Curve("patches_26", "sum_error_percent", "patches_25", "26 × 26, summed scores"),
        ),
    ),
}


@dataclass(frozen=True)
class Point:
    """One point of a curve: ours over some runs, and the paper's."""

    curve: Curve
    q: int
    errors: tuple[float, ...]
    paper: float | None

    @property
    def mean(self) -> float:
        """The mean error of the runs, in per cent."""
        return statistics.fmean(self.errors)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the runs; None for a single one."""
        return statistics.stdev(self.errors) if len(self.errors) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, in percentage points."""
        return None if self.paper is None else self.mean - self.paper


@cache
def paper_points() -> dict[tuple[str, int], float]:
    """Return the paper's errors by features and Q, as read off its published plots."""
    text = files(__package__).joinpath("paper_figures.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {(row["features"], int(row["q"])): float(row["error_percent"]) for row in rows}


def paper_qs(figure: Figure) -> list[int]:
    """Return the values of Q of a figure."""
    theirs = {curve.theirs for curve in figure.curves}
    return sorted({q for features, q in paper_points() if features in theirs})


def figure_jobs(
    figure: Figure, qs: Iterable[int], runs: int | None, seed: int, features: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the runs of a figure, the quick ones first; without a number, as many as committed.

    Adding runs adds seeds, so a file that has some is gone on with.
    """
    wanted = dict.fromkeys(features) or sorted({curve.features for curve in figure.curves})
    return [
        {"features": name, "q": q, "seed": seed + k}
        for q in sorted(set(qs))
        for name in wanted
        for k in range(runs if runs is not None else default_runs(figure, q))
    ]


def default_runs(figure: Figure, q: int) -> int:
    """Return how many runs a point gets: fewer where they are long."""
    if figure.number == 1:
        return 5 if q <= 1000 else 3
    return 2 if q <= 1000 else 1


def compare(figure: Figure, rows: list[dict[str, Any]]) -> list[Point]:
    """Return the points of a figure that have runs."""
    points = []
    for curve in figure.curves:
        own = [row for row in rows if row["features"] == curve.features]
        for q in sorted({row["q"] for row in own}):
            errors = tuple(row[curve.error] for row in own if row["q"] == q)
            points.append(Point(curve, q, errors, paper_points().get((curve.theirs, q))))
    return points
