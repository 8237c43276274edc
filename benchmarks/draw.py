"""The picture of how time and memory grow, drawn from the result file."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from benchmarks.peers import OURS, STYLE
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
