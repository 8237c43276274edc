"""Tables of the default fit against the peers' defaults, from results of benchmarks.defaults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks import defaults, draw, search_tried
from docs.notes import with_note
from kmeans_kernel.report._records import read_rows

# The smallest, a middle and the largest table, chosen before they were measured.
README_TABLES = ("KEEL: australian", "KEEL: texture", "KEEL: letter")


def rows_of(part: str) -> list[dict[str, Any]]:
    """Return the rows of one part of benchmarks/defaults.py; none if it is not measured yet."""
    return read_rows(defaults.result_file(part))


def not_measured(part: str) -> str:
    """Return the sentence that stands for results that are not there."""
    return f"Not measured yet: `python -m benchmarks.defaults --only {part}`."


def ratio_of(row: dict[str, Any], peer: str) -> str:
    """Return the time of ours in that of a peer, a dash without the peer."""
    seconds = row["fit_seconds"]
    return f"{seconds['ours'] / seconds[peer]:.2f}" if peer in seconds else "–"


def errors_of(row: dict[str, Any], methods: Iterable[str]) -> list[str]:
    """Return the errors of the methods in per cent, the least in bold."""
    found = [row["error_percent"].get(method) for method in methods]
    least = f"{min(error for error in found if error is not None):.2f}"
    told = ["–" if error is None else f"{error:.2f}" for error in found]
    return [f"**{one}**" if one == least else one for one in told]


def tables_table() -> str:
    """Return times and errors of the default fits to tables."""
    rows = rows_of("tables")
    if not rows:
        return not_measured("tables")
    return "\n\n".join([times(rows), errors(rows), summary(rows)])


def times(rows: list[dict[str, Any]]) -> str:
    """Return the seconds of ours, the ratios to the peers, and what ours chose."""
    others = [method for method in defaults.METHODS if method != "ours"]
    lines = [
        "| table | rows × columns, classes | ours | ours / "
        + " | ours / ".join(others)
        + " | search | m | kernel, loss |",
        "|---|---|---:|" + "---:|" * len(others) + "---:|---:|---|",
    ]
    for row in rows:
        chosen = row["ours"]
        ratios = " | ".join(ratio_of(row, peer) for peer in others)
        lines.append(
            f"| {row['table']} | {shape_of(row)} | {row['fit_seconds']['ours']:.2f} s | {ratios} "
            f"| {chosen['search_share']:.0%} | {chosen['representatives']:,} "
            f"| {chosen['kernel']}, {chosen['loss']} |"
        )
    return "\n".join(lines)


def shape_of(row: dict[str, Any]) -> str:
    """Return rows, columns and classes of a table."""
    return f"{row['rows']:,} × {row['features']}, {row['classes']}"


def errors(rows: list[dict[str, Any]]) -> str:
    """Return the test errors of all methods on the tables."""
    methods = list(defaults.METHODS)
    lines = [
        f"| test error, % | {' | '.join(methods)} |",
        "|---|" + "---:|" * len(methods),
    ]
    lines += [f"| {row['table']} | {' | '.join(errors_of(row, methods))} |" for row in rows]
    return "\n".join(lines)


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the ratios over all tables, and where they were measured."""
    lines = [
        "| time of ours / time of the peer | geometric mean | largest | ours is faster on |",
        "|---|---:|---:|---:|",
    ]
    lines += [
        f"| {one.peer} | {one.geometric_mean:.2f} | {one.worst:.2f}, {one.worst_table} "
        f"| {one.n_faster} of {one.n_tables} |"
        for one in defaults.comparisons(rows)
    ]
    share = defaults.search_share(rows)
    note = (
        f"Medians of three, one fit of a peer that takes over {defaults.HOPELESS:.0f} times as "
        f"long as ours; the search takes {share:.0%} of the time of all our fits{busy(rows)}"
    )
    return with_note(lines, note, rows)


def busy(rows: list[dict[str, Any]]) -> str:
    """Return a remark if other processes kept a fifth of a core or more busy in some row."""
    most = max(row.get("other_cores", 0.0) for row in rows)
    return f"; other processes kept up to {most:.1f} cores busy" if most >= 0.2 else ""


def large_table() -> str:
    """Return the default fits to many rows."""
    rows = rows_of("large")
    if not rows:
        return not_measured("large")
    lines = [
        "| rows × columns, classes | ours | LightGBM | ours / LightGBM | error: ours, LightGBM, % "
        "| memory of ours above the data | search |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        seconds = row["fit_seconds"]
        theirs = f"{seconds['LightGBM']:.1f} s" if "LightGBM" in seconds else "–"
        lines.append(
            f"| {row['n']:,} × {row['d']}, {row['classes']} | {seconds['ours']:.1f} s | {theirs} "
            f"| {ratio_of(row, 'LightGBM')} "
            f"| {', '.join(errors_of(row, ('ours', 'LightGBM')))} "
            f"| {row['bytes_above_data'] / 1e9:.2f} GB | {row['ours']['search_share']:.0%} |"
        )
    return with_note(lines, f"Medians of three{busy(rows)}", rows)


def given_table() -> str:
    """Return fits with nothing to choose, against their products and factorisations."""
    rows = rows_of("given")
    if not rows:
        return not_measured("given")
    lines = [
        "| loss | rows × columns, m | ours | bare | ratio "
        "| of ours: K-means, kernel, solve, rest |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        stages = row["ours"]["stage_seconds"]
        parts = [stages.get(name, 0.0) for name in ("kmeans", "kernel", "solve")]
        rest = max(row["fit_seconds"]["ours"] - sum(parts), 0.0)
        told = ", ".join(f"{seconds:.2f}" for seconds in (*parts, rest))
        lines.append(
            f"| {row['loss']} | {row['n']:,} × {row['d']}, {row['ours']['representatives']:,} "
            f"| {row['fit_seconds']['ours']:.2f} s | {row['fit_seconds']['bare']:.2f} s "
            f"| {ratio_of(row, 'bare')} | {told} s |"
        )
    return with_note(lines, f"Medians of three{busy(rows)}", rows)


def growth_part() -> str:
    """Return the picture of growth, and the table of the largest points."""
    rows = rows_of("growth")
    if not rows:
        return not_measured("growth")
    lines = [
        "![Time and memory of default fits against rows, columns and classes]"
        "(images/default_growth.png)",
        "",
        "| at | method | time | memory above the data | test error |",
        "|---|---|---:|---:|---:|",
    ]
    for grows, title in draw.DEFAULTS_GROW.items():
        points = [row for row in rows if row["grows"] == grows]
        most = max((row[grows] for row in points), default=0)
        lines += [growth_line(f"{most:,} {title}", row) for row in points if row[grows] == most]
    note = f"Medians of three, fewer where that takes over {defaults.SHORT_SECONDS:.0f} s"
    return with_note(lines, f"{note}{busy(rows)}", rows)


def growth_line(title: str, row: dict[str, Any]) -> str:
    """Return one line of the table of growth."""
    if "over_limit_seconds" in row:
        return f"| {title} | {row['method']} | over {row['over_limit_seconds']:.0f} s | – | – |"
    return (
        f"| {title} | {row['method']} | {row['fit_seconds']:.1f} s "
        f"| {row['bytes_above_data'] / 1e9:.2f} GB | {row['error_percent']:.2f} % |"
    )


def search_tried_table() -> str:
    """Return the ways to search: their time, and their error with its standard error."""
    rows = read_rows(search_tried.FILE)
    if not rows:
        return "Not measured yet: `python -m benchmarks.search_tried`."
    lines = [
        "| the search | mean error, % | difference | ratio of errors | time of the fit |",
        "|---|---:|---:|---:|---:|",
    ]
    first, *others = rows[0]["ways"]
    for way in (first, *others):
        errors = np.array([row["error_percent"][way] for row in rows])
        off = errors - [row["error_percent"][first] for row in rows]
        spread = off.std() / np.sqrt(len(off))
        change = "–" if way is first else f"{off.mean():+.2f} ± {spread:.2f}"
        logs = np.log(errors + 0.1) - np.log(errors - off + 0.1)
        seconds = [row["fit_seconds"][way] / row["fit_seconds"][first] for row in rows]
        time = np.exp(np.mean(np.log(seconds)))
        lines.append(
            f"| {way} | {errors.mean():.2f} | {change} | {np.exp(logs.mean()):.3f} | {time:.2f} |"
        )
    note = (
        f"{len(rows)} development tables, one split that no other figure uses; errors "
        "with their standard errors, geometric means of errors (0.1 points added) and times "
        "relative to the first line"
    )
    return with_note(lines, note, rows)


def readme_part() -> str:
    """Return the section of README on the default fit; nothing before it is measured."""
    rows = rows_of("tables")
    found = {row["table"]: row for row in rows if "CatBoost" in row["fit_seconds"]}
    told = [found[name] for name in README_TABLES if name in found]
    if not told:
        return ""
    means = ", ".join(f"{one.peer} {one.geometric_mean:.2f}" for one in defaults.comparisons(rows))
    lines = [
        "## The defaults against CatBoost's",
        "",
        "| table | rows × columns, classes | time, ours / CatBoost | error: ours, CatBoost, % |",
        "|---|---|---:|---:|",
    ]
    lines += [
        f"| {row['table']} | {shape_of(row)} | {ratio_of(row, 'CatBoost')} "
        f"| {', '.join(errors_of(row, ('ours', 'CatBoost')))} |"
        for row in told
    ]
    return "\n".join([
        *lines,
        "",
        f"The smallest, a middle and the largest of {len(rows)} tables. Geometric means of time "
        f"ratios over all of them, ours / peer: {means}. All tables, growth and memory: "
        "[docs/performance.md](docs/performance.md).",
    ])  # fmt: skip
