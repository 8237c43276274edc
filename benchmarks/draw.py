"""The pictures of how time and memory grow, drawn from the result files."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.peers import OURS, PEERS, STYLE
from benchmarks.scaling import fitted_exponent

STAGES = {"kmeans": ("K-means", OURS), "solve": ("solve", "#c1272d"),
          "kernel": ("kernel matrix", "#e08214"), "predict": ("predict", "#2b6cb0")}  # fmt: skip
GROWS = {
    "n": "training rows n",
    "q": "representatives per class Q",
    "d": "features d",
}
# The exponent of each stage in what grows; a stage that does not depend on it is left out.
THEORY = {
    "n": {"kmeans": 1},
    "q": {"kmeans": 1, "kernel": 2, "solve": 3, "predict": 1},
    "d": {"kmeans": 1, "kernel": 1, "predict": 1},
}
MEMORY_THEORY = {"n": 1, "q": 2, "d": 1}

# The picture of the default fit: titles of what grows, colours of the methods, measures.
DEFAULTS_GROW = {"n": "training rows", "d": "columns", "classes": "classes"}
FIXED = {"n": "{:,} rows", "d": "{:,} columns", "classes": "{:,} classes"}
METHOD_COLOURS = {"ours": OURS, "LightGBM": PEERS["LightGBM"][0], "CatBoost": "#e08214"}
MEASURES = {"fit_seconds": ("seconds to fit", 1.0), "bytes_above_data": ("MB above the data", 1e6)}
LABEL_GAP = 0.075  # between the names at the ends of curves, as a share of the panel's height


def draw_scaling(rows: list[dict[str, Any]]) -> bytes:
    """Draw time and memory against n, Q and d, with the fitted exponents."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12, 7))
        grid = figure.subplots(2, 3)
        for grows, above, below in zip(GROWS, *grid, strict=True):
            points = [row for row in rows if row["grows"] == grows]
            values = [row[grows] for row in points]
            for stage, theory in THEORY[grows].items():
                name, colour = STAGES[stage]
                seconds = [row["seconds"][stage] for row in points]
                label = f"{name}: {fitted_exponent(values, seconds):.2f} ({theory})"
                above.plot(values, seconds, "o-", color=colour, label=label)
            megabytes = [row["bytes_above_data"] / 1e6 for row in points]
            exponent = fitted_exponent(values, megabytes)
            below.plot(
                values, megabytes, "o-", color="#333333",
                label=f"memory: {exponent:.2f} ({MEMORY_THEORY[grows]})",
            )  # fmt: skip
            for axes, label in ((above, "seconds"), (below, "MB above the data")):
                axes.set(xscale="log", yscale="log", xlabel=GROWS[grows], ylabel=label)
                axes.set_xticks(values, [f"{v:,}" for v in values])
                axes.minorticks_off()
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
                axes.legend(frameon=False, title="exponent: fitted (theory)", fontsize=9)
        figure.tight_layout()
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def exponents(rows: list[dict[str, Any]]) -> Iterable[tuple[str, str, int, float]]:
    """Give what grows, the stage, its exponent in theory and as fitted."""
    for grows, stages in THEORY.items():
        points = [row for row in rows if row["grows"] == grows]
        values = [row[grows] for row in points]
        for stage, theory in stages.items():
            seconds = [row["seconds"][stage] for row in points]
            yield GROWS[grows], STAGES[stage][0], theory, fitted_exponent(values, seconds)
        megabytes = [row["bytes_above_data"] for row in points]
        yield GROWS[grows], "memory", MEMORY_THEORY[grows], fitted_exponent(values, megabytes)


def draw_default_growth(rows: list[dict[str, Any]]) -> bytes:
    """Draw time and memory of the default fits against rows, columns and classes.

    A hollow triangle marks a fit that was stopped at the time limit.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12, 7))
        grid = figure.subplots(2, 3, sharey="row")
        for grows, panels in zip(DEFAULTS_GROW, grid.T, strict=True):
            points = sorted((r for r in rows if r["grows"] == grows), key=lambda r: r[grows])
            others = [name for name in FIXED if name != grows]
            panels[0].set_title(
                ", ".join(FIXED[name].format(points[0][name]) for name in others if points),
                fontsize=10, color="#555555",
            )  # fmt: skip
            for axes, measure in zip(panels, MEASURES, strict=True):
                _scale_default_axes(axes, grows, points)
                for method, colour in METHOD_COLOURS.items():
                    found = [row for row in points if row["method"] == method]
                    _draw_default_curve(axes, found, grows, measure, colour)
        for axes, (label, _) in zip(grid[:, 0], MEASURES.values(), strict=True):
            axes.set_ylabel(label)
        figure.tight_layout(w_pad=3)
        for axes in grid.flat:  # the final scale of the panels is known now
            _name_curves(axes)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _scale_default_axes(axes: Any, grows: str, points: list[dict[str, Any]]) -> None:
    axes.set(xscale="log", yscale="log", xlabel=DEFAULTS_GROW[grows])
    values = sorted({row[grows] for row in points})
    if values:
        axes.set_xticks(values, [f"{value:,}" for value in values])
        axes.set_xlim(values[0] / 1.3, values[-1] * (values[-1] / values[0]) ** 0.3)
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _draw_default_curve(
    axes: Any, rows: list[dict[str, Any]], grows: str, measure: str, colour: str
) -> None:
    """Draw one method; a curve has its method as label, by which it is named later."""
    scale = MEASURES[measure][1]
    curve = [(row[grows], row[measure] / scale) for row in rows if row.get(measure, 0) > 0]
    if not curve:
        return
    width = 2.4 if rows[0]["method"] == "ours" else 1.4
    axes.plot(*zip(*curve, strict=True), "o-", color=colour, linewidth=width, markersize=5,
              label=rows[0]["method"])  # fmt: skip
    stopped = [row for row in rows if "over_limit_seconds" in row and "skipped" not in row]
    for row in stopped if measure == "fit_seconds" else ():
        at = (row[grows], row["over_limit_seconds"])
        axes.plot(*zip(curve[-1], at, strict=True), ":", color=colour)
        axes.plot(*at, "^", color=colour, markerfacecolor="white", markersize=8)


def _name_curves(axes: Any) -> None:
    """Write the name of each method beside the end of its curve, names apart from each other.

    A curve that ends before the others has its name above its end, not on theirs.
    """
    curves = [line for line in axes.lines if line.get_label() in METHOD_COLOURS]
    to_share = axes.transAxes.inverted()
    ends = [
        (to_share.transform(axes.transData.transform(line.get_xydata()[-1])), line)
        for line in curves
    ]
    last = max((float(x) for (x, _), _ in ends), default=0.0)
    heights: dict[float, float] = {}  # of the highest name so far, by where curves end
    for (x, y), line in sorted(ends, key=lambda end: float(end[0][1])):
        end = round(float(x), 2)
        height = heights[end] = max(y, heights.get(end, -1.0) + LABEL_GAP)
        above = x < last - 0.01
        axes.annotate(
            line.get_label(), (x, height), (-4, 6) if above else (7, 0), xycoords="axes fraction",
            textcoords="offset points", color=line.get_color(), fontsize=9,
            va="bottom" if above else "center", ha="right" if above else "left",
            fontweight="bold" if line.get_label() == "ours" else "normal",
        )  # fmt: skip
