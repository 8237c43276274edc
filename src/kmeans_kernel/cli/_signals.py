"""Detection of Ctrl-C, also when a library replaces KeyboardInterrupt by its own exception."""

from __future__ import annotations

import signal
from types import FrameType

_interrupted = False


def record_interrupts() -> None:
    """Install a SIGINT handler that records the signal and raises KeyboardInterrupt."""
    signal.signal(signal.SIGINT, _record_interrupt)


def was_interrupted() -> bool:
    """Return whether SIGINT was received."""
    return _interrupted


def _record_interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    global _interrupted
    _interrupted = True
    raise KeyboardInterrupt
