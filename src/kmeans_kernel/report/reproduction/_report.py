"""Comparison of our figures with the paper's: plot, table and HTML page."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

from kmeans_kernel.report.reproduction._points import FIGURES, Figure, Point, paper_points, paper_qs

COLOURS = ("#0b6e4f", "#e08214", "#2b6cb0", "#8c6bb1")
PAPER_TITLES = {"raw": "raw", "raw_fft": "raw + FFT", "patches_25": "patches"}


def draw_figure(figure: Figure, points: Sequence[Point]) -> bytes:
    """Return a PNG of our points with their standard deviation, and of the paper's points."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(7.2, 4.8), layout="constrained")
    axes = canvas.add_subplot()
    curves = dict.fromkeys(curve.paper_features for curve in figure.curves)
    for name, marker in zip(curves, "ox", strict=False):
        known = sorted((q, e) for (features, q), e in paper_points().items() if features == name)
        axes.plot(
            *zip(*known, strict=True), linestyle="--", marker=marker, color="#888888",
            markersize=5, label=f"the paper: {PAPER_TITLES[name]}",
        )  # fmt: skip
    for curve, colour in zip(figure.curves, COLOURS, strict=False):
        own = [point for point in points if point.curve == curve]
        if own:
            axes.errorbar(
                [p.q for p in own], [p.mean for p in own], [p.deviation or 0.0 for p in own],
                color=colour, marker="o", markersize=4, capsize=2, label=f"ours: {curve.title}",
            )  # fmt: skip
    axes.set(xlabel="Q, representatives per class", ylabel="test error, %", title=figure.title)
    axes.set_xlim(0, max(paper_qs(figure)) * 1.03)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()


def table_rows(points: Sequence[Point]) -> list[list[str]]:
    """Return the cells of the table, one row per point."""
    return [
        [
            point.curve.title,
            str(point.q),
            f"{point.mean:.2f}" + ("" if point.deviation is None else f" ± {point.deviation:.2f}"),
            str(len(point.errors)),
            "–" if point.paper is None else f"{point.paper:.2f}",
            "–" if point.difference is None else f"{point.difference:+.2f}".replace("-", "−"),
        ]
        for point in points
    ]


HEADINGS = ["features", "Q", "ours, %", "runs", "the paper's, %", "difference"]


def markdown_table(points: Sequence[Point]) -> str:
    """Return the points as a Markdown table."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---|---:|---:|---:|---:|---:|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in table_rows(points)]
    return "\n".join(lines)


def summary(points: Sequence[Point]) -> list[str]:
    """Return a sentence for each curve: its mean and largest difference from the paper's."""
    sentences = []
    for curve in dict.fromkeys(point.curve for point in points):
        gaps = [
            (abs(p.difference), p) for p in points if p.curve == curve and p.difference is not None
        ]
        if gaps:
            mean = sum(gap for gap, _ in gaps) / len(gaps)
            largest, at = max(gaps, key=lambda pair: pair[0])
            sentences.append(
                f"{curve.title}: mean absolute difference {mean:.3f} percentage points over "
                f"{len(gaps)} points, the largest {largest:.2f} at Q = {at.q}."
            )
    return sentences


def html_report(results: Mapping[str, Sequence[Point]], machine: dict[str, Any]) -> str:
    """Return a self-contained HTML page of plots, tables and differences from the paper."""
    parts = []
    for name, points in results.items():
        figure = FIGURES[name]
        picture = base64.b64encode(draw_figure(figure, points)).decode()
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in summary(points))
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for cells in table_rows(points)
        )
        parts.append(
            f"<section><h2>Figure {figure.number}</h2>"
            f'<img alt="{html.escape(figure.title)}" src="data:image/png;base64,{picture}">'
            f"<ul>{items}</ul><div class=wide><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table></div></section>"
        )
    footer = ", ".join(f"{key} {value}" for key, value in machine.items())
    return _PAGE.format(sections="".join(parts), machine=html.escape(footer))


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The paper's figures, measured again</title>
<style>
:root {{ color-scheme: light dark; --line: #8884; }}
body {{
  font: 16px/1.5 system-ui, sans-serif;
  max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
}}
img {{ max-width: 100%; background: white; border-radius: 6px; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: right; }}
td {{ white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }}
footer {{ color: gray; font-size: .85rem; margin-top: 3rem; }}
</style>
<h1>The paper's figures, measured again</h1>
<p>M. Andrecut, “K-Means Kernel Classifier” (2020), on real MNIST with the paper's settings. The
paper's points were read off its published plots, to about ±0.02 percentage points; ours are means
of the runs given, with their standard deviation.</p>
{sections}
<footer>{machine}</footer>
</html>
"""
