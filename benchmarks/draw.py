"""The pictures of docs/performance.md, drawn from the result files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.scaling import fitted_exponent

TITLES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "digits": "digits, 8 × 8"}
TIMES = {"fit_seconds": "training, seconds", "predict_seconds": "prediction, seconds"}

OURS = "#0b6e4f"
PEERS = {  # method: colour, marker
    "Nystroem + ridge, RBF": ("#8c6bb1", "s"),
    "Nystroem + ridge, degree 4": ("#8c6bb1", "v"),
    "SVC, RBF": ("#c1272d", "o"),
    "SVC, degree 4": ("#c1272d", "^"),
    "intelex SVC, RBF": ("#e08214", "o"),
    "intelex SVC, degree 4": ("#e08214", "^"),
    "LightGBM": ("#2b6cb0", "D"),
    "k nearest neighbours": ("#555555", "P"),
}
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "figure.facecolor": "white",
}

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


def draw_peers(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the error against training and prediction time, one row of panels for each data set."""
    names = [name for name in TITLES if any(row["data"] == name for row in rows)]
    with plt.rc_context(STYLE):
        size = (10.5, 3.6 * len(names) + 0.7)
        figure, grid = plt.subplots(len(names), 2, figsize=size, squeeze=False)
        for name, panels in zip(names, grid, strict=True):
            for axes, (time, label) in zip(panels, TIMES.items(), strict=True):
                _draw_methods(axes, [row for row in rows if row["data"] == name], time)
                axes.set(xscale="log", xlabel=label, ylabel="test error, %")
                axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
                axes.xaxis.set_minor_formatter(NullFormatter())
            panels[0].set_title(TITLES[name], loc="left", fontweight="bold")
            panels[1].sharey(panels[0])
        legend = {}
        for axes in grid[:, 0]:
            handles, labels = axes.get_legend_handles_labels()
            legend.update(zip(labels, handles, strict=True))
        figure.legend(legend.values(), legend.keys(), loc="upper center", ncols=4, frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.75 / size[1]))
        figure.savefig(path, dpi=110)
        plt.close(figure)


def _draw_methods(axes: Axes, rows: list[dict[str, Any]], time: str) -> None:
    curve = [row for row in rows if row["method"] == "ours"]
    axes.plot(
        [row[time] for row in curve], [row["error_percent"] for row in curve],
        "o-", color=OURS, linewidth=2, label="ours, Q as written", zorder=3,
    )  # fmt: skip
    for row in curve:
        at = (row[time], row["error_percent"])
        axes.annotate(
            f"{row['size']}", at, (4, 5), textcoords="offset points", color=OURS, fontsize=8
        )
    for method, (colour, marker) in PEERS.items():
        found = [row for row in rows if row["method"] == method]
        if found:
            axes.plot(
                [row[time] for row in found], [row["error_percent"] for row in found],
                marker=marker, color=colour, linewidth=1, linestyle=":", label=method,
            )  # fmt: skip
    axes.set_ylim(0)


def draw_scaling(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw time and memory against n, Q and d, with the fitted exponents."""
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(2, 3, figsize=(12, 7))
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
        figure.savefig(path, dpi=110)
        plt.close(figure)


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
