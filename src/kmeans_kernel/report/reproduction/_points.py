"""Points of the paper's figures, and the points of our runs."""

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
    """One of our curves, and the paper's curve to compare it with.

    Attributes
    ----------
    features : classifier that `measure` trains, a key of `MAKERS`
    error : key of the error in a row; a run of patches has one error for each vote
    paper_features : features of the paper's curve in paper_figures.csv
    title : title in legends and tables
    """

    features: str
    error: str
    paper_features: str
    title: str


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, and our curves for it."""

    number: int
    title: str
    curves: tuple[Curve, ...]

    @property
    def name(self) -> str:
        """Name of the figure's result file and picture."""
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
    """One point of a curve.

    Attributes
    ----------
    curve : the curve of the point
    q : representatives per class
    errors : test errors of our runs, in per cent
    paper : the paper's test error, in per cent; None if its figure has no point at this q
    """

    curve: Curve
    q: int
    errors: tuple[float, ...]
    paper: float | None

    @property
    def mean(self) -> float:
        """Mean error of the runs, in per cent."""
        return statistics.fmean(self.errors)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the runs; None for a single run."""
        return statistics.stdev(self.errors) if len(self.errors) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, in percentage points."""
        return None if self.paper is None else self.mean - self.paper


@cache
def paper_points() -> dict[tuple[str, int], float]:
    """Return the paper's errors by (features, Q), read off its published plots."""
    text = files(__package__).joinpath("paper_figures.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {(row["features"], int(row["q"])): float(row["error_percent"]) for row in rows}


def paper_qs(figure: Figure) -> list[int]:
    """Return the values of Q in a figure of the paper, sorted."""
    wanted = {curve.paper_features for curve in figure.curves}
    return sorted({q for features, q in paper_points() if features in wanted})


def figure_jobs(
    figure: Figure, qs: Iterable[int], runs: int | None, seed: int, features: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the jobs of a figure in the order of Q, so that the fast runs come first.

    More runs add seeds to the same list, so that a result file with fewer runs can be continued.

    Parameters
    ----------
    figure : the figure
    qs : values of Q
    runs : runs per point; None for the number of the committed results, `default_runs`
    seed : seed of the first run of each point
    features : classifiers to run; empty for all of the figure
    """
    wanted = dict.fromkeys(features) or sorted({curve.features for curve in figure.curves})
    return [
        {"features": name, "q": q, "seed": seed + k}
        for q in sorted(set(qs))
        for name in wanted
        for k in range(runs if runs is not None else default_runs(figure, q))
    ]


def default_runs(figure: Figure, q: int) -> int:
    """Return the number of runs of a point: fewer for large Q, where a run takes long."""
    if figure.number == 1:
        return 5 if q <= 1000 else 3
    return 2 if q <= 1000 else 1


def compare(figure: Figure, rows: list[dict[str, Any]]) -> list[Point]:
    """Return the points of a figure that the rows of a result file measure."""
    points = []
    for curve in figure.curves:
        own = [row for row in rows if row["features"] == curve.features]
        for q in sorted({row["q"] for row in own}):
            errors = tuple(row[curve.error] for row in own if row["q"] == q)
            points.append(Point(curve, q, errors, paper_points().get((curve.paper_features, q))))
    return points
