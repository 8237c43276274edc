"""Progress bar of a download by another program, from the size of its folder."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_WIDTH = 30


@contextmanager
def folder_progress(folder: Path, title: str, expected_bytes: int) -> Iterator[None]:
    """Show the bytes in `folder` as a progress bar on standard error while the context is open.

    If standard error is no terminal, only the title is written.
    """
    if not sys.stderr.isatty():
        sys.stderr.write(f"{title} (about {expected_bytes / 1e6:.0f} MB)\n")
        yield
        return
    done = threading.Event()

    def draw() -> None:
        while not done.wait(0.2):
            sys.stderr.write("\r" + bar(title, _bytes_in(folder), expected_bytes) + "\033[K")
            sys.stderr.flush()

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield
    finally:
        done.set()
        drawing.join()
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


def bar(title: str, size: int, expected: int) -> str:
    """Return the text of the bar; at most 99 %, since the expected size is an estimate."""
    share = min(size / expected, 0.99)
    filled = round(_WIDTH * share)
    return (
        f"{title} [{'#' * filled}{'.' * (_WIDTH - filled)}] "
        f"{size / 1e6:.0f} of about {expected / 1e6:.0f} MB"
    )


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # removed since it was listed
            continue
    return total
