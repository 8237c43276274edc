"""How a contest is run: interleaved and repeated in one process, as medians and ratios."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable
from time import perf_counter

Work = Callable[[], object]


def median_seconds(contestants: dict[str, Work], repeats: int) -> dict[str, float]:
    """Run every contestant in turn, `repeats` times over, and return the medians."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, work in contestants.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # peers warn of stopping at max_iter, as meant
                start = perf_counter()
                work()
                seconds[name].append(perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def row(
    title: str,
    contestants: dict[str, Work],
    repeats: int,
    *,
    target: str,
    goal: float,
    against: str,
) -> dict[str, object]:
    """Return one row of the table: the medians, and ours against "peers" or "limit".

    Against peers the ratio is the fastest peer's time over ours, which should be at least the
    goal; against the limit it is ours over the bare work's, which should be at most the goal.
    """
    seconds = median_seconds(contestants, repeats)
    others = {k: v for k, v in seconds.items() if k not in ("ours", "bare")}
    if against == "peers":
        ratio = min(others.values()) / seconds["ours"]
        met = ratio >= goal
    else:
        ratio = seconds["ours"] / seconds["bare"]
        met = ratio <= goal
    result = {
        "work": title,
        "repeats": repeats,
        "median_seconds": {name: round(value, 4) for name, value in seconds.items()},
        "against": against,
        "ratio": round(ratio, 2),
        "goal": goal,
        "target": target,
        "met": met,
    }
    print(f"{title}: {result['ratio']} ({target}) {result['median_seconds']}", flush=True)
    return result
