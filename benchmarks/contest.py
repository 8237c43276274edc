"""How a contest is run: interleaved and repeated in one process, or each in a fresh one."""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from kmeans_kernel.report._records import in_fresh_process, run_jobs

RESULTS = Path(__file__).parent / "results"

Work = Callable[[], object]


# Whoever takes so many times as long as ours in the first round is out of the race.
HOPELESS = 5.0


def median_seconds(
    contestants: dict[str, Work], repeats: int, hopeless: float = HOPELESS
) -> dict[str, float]:
    """Run every contestant in turn, `repeats` times over, and return the medians.

    One that takes over `hopeless` times as long as ours runs once: it takes most of the time, and
    its place is certain.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, work in contestants.items():
            if seconds[name] and seconds[name][0] > hopeless * seconds.get("ours", [np.inf])[0]:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # peers warn of stopping at max_iter, as meant
                start = perf_counter()
                work()
                seconds[name].append(perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def against_rivals(
    title: str, contestants: dict[str, Work], repeats: int, goal: float, rivals: Iterable[str]
) -> dict[str, Any]:
    """Measure how many times faster ours is than the fastest of the rivals that are there."""
    seconds = median_seconds(contestants, repeats)
    there = [name for name in rivals if name in seconds]
    ratio = min(seconds[name] for name in there) / seconds["ours"]
    target = f"at least {goal} times faster than {' and '.join(there)}"
    return _row(title, target, goal, ratio, ratio >= goal, seconds=seconds, repeats=repeats)


def against_limit(
    title: str, contestants: dict[str, Work], repeats: int, goal: float
) -> dict[str, Any]:
    """Measure how many times the time of the bare work ours takes."""
    seconds = median_seconds(contestants, repeats)
    ratio = seconds["ours"] / seconds["bare"]
    target = f"at most {goal} times the bare work"
    return _row(title, target, goal, ratio, ratio <= goal, seconds=seconds, repeats=repeats)


def against_bytes(
    title: str, used: float, allowed: float, target: str, goal: float
) -> dict[str, Any]:
    """Compare memory that was used with what is allowed; the goal is a multiple of that."""
    ratio = used / allowed
    gigabytes = {"ours": used / 1e9, "limit": goal * allowed / 1e9}
    return _row(title, target, goal, ratio, ratio <= goal, gigabytes=gigabytes)


def _row(
    title: str, target: str, goal: float, ratio: float, met: bool, **measured: Any
) -> dict[str, Any]:
    rounded = {
        key: {name: round(x, 4) for name, x in value.items()} if isinstance(value, dict) else value
        for key, value in measured.items()
    }
    row = {
        "work": title, **rounded, "ratio": round(ratio, 3), "goal": goal, "target": target,
        "met": bool(met),
    }  # fmt: skip
    print(f"{title}: {ratio:.2f} ({target}) {rounded}", flush=True)
    return row


def run_benchmark(
    name: str,
    told: str | None,
    jobs: Callable[[bool], list[dict[str, Any]]],
    packages: Iterable[str] = (),
) -> None:
    """Measure the jobs that are missing, each in a process of its own: the program of a benchmark.

    `jobs` takes whether the quick version is wanted; that is measured anew.
    """
    parser = argparse.ArgumentParser(description=told)
    parser.add_argument("--quick", action="store_true", help="small sizes, measured anew")
    quick = parser.parse_args().quick
    path = RESULTS / (f"quick_{name}.json" if quick else f"{name}.json")
    if quick:
        path.unlink(missing_ok=True)
    run_jobs(path, jobs(quick), lambda job: in_fresh_process(f"benchmarks.{name}", job), packages)
