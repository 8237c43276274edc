"""The table of docs/method.md on attributions beside SHAP's."""

from __future__ import annotations

import numpy as np

from docs.notes import with_note
from experiments import explanations
from kmeans_kernel.report._records import read_rows


def explanations_table() -> str:
    """Return agreement, time and deletion test of each table, and their means."""
    rows = sorted(read_rows(explanations.RESULTS), key=lambda row: (row["columns"], row["table"]))
    if not rows:
        return "Not measured yet: `python -m experiments.explanations`."
    lines = [
        "| table | columns | largest error of the sum | largest difference from SHAP | correlation "
        "| ms a row: ours, SHAP | fall: ours, SHAP |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['table']} | {row['columns']} | {row['largest_error_of_sum']:.0e} "
        f"| {row['largest_difference']:.0e} | {row['correlation']:.3f} "
        f"| {row['milliseconds']:.2f}, {row['shap_milliseconds']:.1f} "
        f"| {row['fall']:.3f}, {row['shap_fall']:.3f} |"
        for row in rows
    ]
    faster = np.exp(
        np.mean([np.log(row["shap_milliseconds"] / row["milliseconds"]) for row in rows])
    )
    falls = np.mean([row["fall"] / row["shap_fall"] for row in rows])
    lines += [
        "",
        f"Geometric mean of times, SHAP / ours: {faster:.0f}; mean ratio of falls, ours / SHAP: "
        f"{falls:.3f}.",
    ]
    return with_note(lines, "`python -m experiments.explanations`", rows)
