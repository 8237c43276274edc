"""How long each stage of training takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class Clock:
    """Adds up the seconds of each stage; a stage inside another is not counted twice."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside for this stage."""
        outer_inner, self._inner = self._inner, 0.0
        start = perf_counter()
        try:
            yield
        finally:
            elapsed = perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + elapsed - self._inner
            self._inner = outer_inner + elapsed

    def split(self, name: str, parts: dict[str, float]) -> None:
        """Replace a stage by parts of it, in proportion."""
        whole = self.seconds.pop(name)
        total = sum(parts.values())
        self.seconds.update({part: whole * value / total for part, value in parts.items()})
