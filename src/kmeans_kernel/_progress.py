"""Telling a person how training goes."""

from __future__ import annotations

import sys
from time import perf_counter

from kmeans_kernel._spherical_kmeans import Clustering


class Silent:
    """A watcher that says nothing."""

    def iteration(self, label: object, n_iter: int, deviation: float) -> None:
        """Say nothing."""

    def class_done(self, label: object, n_rows: int, found: Clustering) -> None:
        """Say nothing."""

    def solving(self, m: int) -> None:
        """Say nothing."""


class Printed:
    """A watcher that writes to standard error: a line per class, with the time left.

    On a terminal the line of the class at work is rewritten at every iteration.
    """

    def __init__(self, row_counts: list[int]) -> None:
        self._left = list(row_counts)
        self._done_rows = 0
        self._start = perf_counter()

    def iteration(self, label: object, n_iter: int, deviation: float) -> None:
        """Rewrite the line of the class at work, on a terminal."""
        if sys.stderr.isatty():
            self._write(f"\rclass {label!s}: iteration {n_iter}, deviation {deviation:.1e} \033[K")

    def class_done(self, label: object, n_rows: int, found: Clustering) -> None:
        """Write the line of a class that is done, and how long the others may take."""
        self._done_rows += n_rows
        spent = perf_counter() - self._start
        left = spent / self._done_rows * (sum(self._left) - self._done_rows)
        home = "\r" if sys.stderr.isatty() else ""
        self._write(
            f"{home}class {label!s}: {n_rows} rows, {len(found.centroids)} representatives, "
            f"{found.n_iter} iterations, deviation {found.deviation:.1e}; about {left:.0f} s left\n"
        )

    def solving(self, m: int) -> None:
        """Write that the solve begins."""
        self._write(f"solving for {m} representatives\n")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
