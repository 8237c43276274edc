"""The tables of docs/method.md on frames as they come: behaviours, errors and times."""

from __future__ import annotations

from typing import Any

import numpy as np

from docs.notes import with_note
from experiments import behaviours, frames
from kmeans_kernel.report._records import read_rows

_METHODS = ("ours", "CatBoost", "LightGBM", "gradient boosting", "random forest", "SVC, C = 10")


def behaviours_table() -> str:
    """Return what each method does with a business table: a row for each question."""
    rows = {row["method"]: row for row in read_rows(behaviours.RESULTS)}
    if not rows:
        return "Not measured yet: `python -m experiments.behaviours`."
    questions = [
        "as it comes", "error, prepared", "unknown level", "missing at prediction",
        "another unit", "the id",
    ]  # fmt: skip
    lines = [f"| | {' | '.join(rows)} |", f"|---|{'---|' * len(rows)}"]
    for question in questions:
        answers = [str(row[question]).replace("|", "/") for row in rows.values()]
        lines.append(f"| {question} | {' | '.join(answers)} |")
    return with_note(lines, "`python -m experiments.behaviours`", rows.values())


def frames_table() -> str:
    """Return errors on the development frames, and means for numbers alone and mixed frames."""
    rows = [row for row in read_rows(frames.RESULTS) if row["table"] in frames.DEVELOPMENT]
    found = {(row["table"], row["method"]): row for row in rows}
    tables = [name for name in frames.DEVELOPMENT if (name, "ours") in found]
    if not tables:
        return "Not measured yet: `python -m experiments.frames --development`."
    lines = [f"| test error, % | {' | '.join(_METHODS)} |", f"|---|{'---:|' * len(_METHODS)}"]
    for mixed in (False, True):
        chosen = [
            name
            for name in tables
            if frames.is_mixed(found[name, "ours"]) == mixed
            and all((name, method) in found for method in _METHODS)
        ]
        lines += [_line(name, [found[name, method] for method in _METHODS]) for name in chosen]
        kind = "mixed" if mixed else "numbers alone"
        lines += _means(f"{len(chosen)} tables, {kind}", chosen, found)
    return with_note(lines, "`python -m experiments.frames --development`", rows)


def _line(name: str, rows: list[dict[str, Any]]) -> str:
    errors = [row["error_percent"] for row in rows]
    least = min(errors)
    told = [f"**{error:.2f}**" if error == least else f"{error:.2f}" for error in errors]
    return f"| {name} | {' | '.join(told)} |"


def _means(kind: str, tables: list[str], found: dict[Any, dict[str, Any]]) -> list[str]:
    """Return the lines of the mean error, the mean log-loss, and the ratio of the fit times."""
    errors, losses, times = [], [], []
    for method in _METHODS:
        rows = [found[name, method] for name in tables]
        errors.append(f"{np.mean([row['error_percent'] for row in rows]):.2f}")
        known = [row["log_loss"] for row in rows if "log_loss" in row]
        losses.append(f"{np.mean(known):.3f}" if known else "–")
        ratios = [
            row["fit_seconds"] / found[name, "ours"]["fit_seconds"]
            for name, row in zip(tables, rows, strict=True)
        ]
        times.append(f"{np.exp(np.mean(np.log(ratios))):.2f}")
    return [
        f"| **mean of {kind}** | {' | '.join(errors)} |",
        f"| log-loss | {' | '.join(losses)} |",
        f"| time of the fit, method / ours | {' | '.join(times)} |",
    ]
