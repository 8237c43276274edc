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
    return _errors(frames.DEVELOPMENT, "--development", timed=True)


def held_out_frames_table() -> str:
    """Return the same for the held-out frames; no times, since methods ran on different days."""
    return _errors(frames.HELD_OUT, "--held-out --methods ours,CatBoost,...", timed=False)


def _errors(side: list[str], option: str, *, timed: bool) -> str:
    rows = [row for row in read_rows(frames.RESULTS) if row["table"] in side]
    found = {(row["table"], row["method"]): row for row in rows}
    tables = [name for name in side if all((name, method) in found for method in _METHODS)]
    command = f"`python -m experiments.frames {option}`"
    if not tables:
        return f"Not measured yet: {command}."
    lines = [f"| test error, % | {' | '.join(_METHODS)} |", f"|---|{'---:|' * len(_METHODS)}"]
    for mixed in (False, True):
        chosen = [name for name in tables if frames.is_mixed(found[name, "ours"]) == mixed]
        lines += [_line(name, [found[name, method] for method in _METHODS]) for name in chosen]
        kind = "mixed" if mixed else "numbers alone"
        lines += _means(f"{len(chosen)} tables, {kind}", chosen, found, timed=timed)
    return with_note(lines, command, rows)


def _line(name: str, rows: list[dict[str, Any]]) -> str:
    errors = [row["error_percent"] for row in rows]
    least = min(errors)
    told = [f"**{error:.2f}**" if error == least else f"{error:.2f}" for error in errors]
    return f"| {name} | {' | '.join(told)} |"


def _means(
    kind: str, tables: list[str], found: dict[Any, dict[str, Any]], *, timed: bool
) -> list[str]:
    """Return the lines of means: error, log-loss, ratios of errors, and of fit times if `timed`.

    The ratios are geometric means of method / ours; 0.1 percentage points are added to both errors.
    """
    errors, losses, ratios, times = [], [], [], []
    for method in _METHODS:
        rows = [found[name, method] for name in tables]
        errors.append(f"{np.mean([row['error_percent'] for row in rows]):.2f}")
        known = [row["log_loss"] for row in rows if "log_loss" in row]
        losses.append(f"{np.mean(known):.3f}" if known else "–")
        pairs = [(row, found[name, "ours"]) for name, row in zip(tables, rows, strict=True)]
        logs = [np.log(_raised(row) / _raised(own)) for row, own in pairs]
        ratios.append(f"{np.exp(np.mean(logs)):.3f}")
        logs = [np.log(row["fit_seconds"] / own["fit_seconds"]) for row, own in pairs]
        times.append(f"{np.exp(np.mean(logs)):.2f}")
    return [
        f"| **mean of {kind}** | {' | '.join(errors)} |",
        f"| log-loss | {' | '.join(losses)} |",
        f"| error, method / ours | {' | '.join(ratios)} |",
        *([f"| time of the fit, method / ours | {' | '.join(times)} |"] if timed else []),
    ]


def _raised(row: dict[str, Any]) -> float:
    return float(row["error_percent"]) + 0.1
