"""Whether the user pressed Ctrl-C: a library may turn the interrupt into an error of its own."""

from __future__ import annotations

import signal
from types import FrameType

_seen = False


def watch_for_interrupt() -> None:
    """Remember an interrupt, and raise KeyboardInterrupt as usual."""
    signal.signal(signal.SIGINT, _remember)


def was_interrupted() -> bool:
    """Say whether there was one."""
    return _seen


def _remember(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    global _seen
    _seen = True
    raise KeyboardInterrupt
