"""Reproduction of the paper's figures: their points, our runs, and a report of both."""

from kmeans_kernel.report._records import read_rows
from kmeans_kernel.report.reproduction._measure import error_percents, measure, run_figure
from kmeans_kernel.report.reproduction._points import (
    FIGURES,
    Figure,
    Point,
    compare,
    figure_jobs,
    paper_qs,
)
from kmeans_kernel.report.reproduction._report import (
    draw_figure,
    html_report,
    markdown_table,
    summary,
)

__all__ = [
    "FIGURES",
    "Figure",
    "Point",
    "compare",
    "draw_figure",
    "error_percents",
    "figure_jobs",
    "html_report",
    "markdown_table",
    "measure",
    "paper_qs",
    "read_rows",
    "run_figure",
    "summary",
]
