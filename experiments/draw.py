"""The picture of how long a fit takes with more rows and more workers, drawn from the results."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.peers import OURS, STYLE
from kmeans_kernel.report._planning import Plan, Problem, Rates, plan

ROWS = [1e6, 1e7, 1e8, 1e9, 1e10]
WORKERS = {1: "#333333", 16: "#2b6cb0", 256: OURS}
TIMES = {1: "1 s", 60: "1 min", 3600: "1 h", 86400: "1 day", 86400 * 30: "30 days",
         86400 * 365: "1 year"}  # fmt: skip


def plans(rows: list[dict[str, Any]], n: float) -> dict[int, Plan]:
    """Return the plans of a fit to so many rows, by the number of workers."""
    found = next(row for row in rows if row["what"] == "rates")
    rates = Rates(**{name: found[name] for name in ("kmeans", "fit", "solve", "network")})
    sizes = (found["features"], found["classes"], found["q"])
    return {count: plan(Problem(n, *sizes, workers=count), rates) for count in WORKERS}


def draw_beyond(rows: list[dict[str, Any]]) -> bytes:
    """Draw the time of a fit against the rows, for some numbers of workers."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 5))
        axes = figure.subplots()
        many = np.logspace(6, 10, 41)
        for count, colour in WORKERS.items():
            found = [plans(rows, n)[count].seconds for n in many]
            name = "1 core" if count == 1 else f"{count} workers, a core each"
            axes.plot(many, [one["all"] for one in found], color=colour, label=name, lw=2)
            axes.plot(many, [one["kmeans"] for one in found], color=colour, ls=":", lw=1.2)
        axes.plot([], [], color="#333333", ls=":", lw=1.2, label="of that, K-means")
        axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="time")
        axes.set_xticks(ROWS, ["10⁶", "10⁷", "10⁸", "10⁹", "10¹⁰"])
        low, high = axes.get_ylim()
        shown = {seconds: name for seconds, name in TIMES.items() if low <= seconds <= high}
        axes.set_yticks(list(shown), list(shown.values()))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid(axis="y", alpha=0.25)
        axes.legend(frameon=False)
        figure.tight_layout()
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()
