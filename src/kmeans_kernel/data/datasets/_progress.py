"""A bar for a download that another program makes: it watches the folder grow."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_WIDTH = 30


@contextmanager
def watched_folder(folder: Path, title: str, expected_bytes: int) -> Iterator[None]:
    """Draw on standard error, if that is a terminal, how full `folder` is while the block runs."""
    if not sys.stderr.isatty():
        sys.stderr.write(f"{title} (about {expected_bytes / 1e6:.0f} MB)\n")
        yield
        return
    done = threading.Event()

    def draw() -> None:
        while not done.wait(0.2):
            sys.stderr.write("\r" + bar(title, _bytes_in(folder), expected_bytes) + "\033[K")
            sys.stderr.flush()

    artist = threading.Thread(target=draw, daemon=True)
    artist.start()
    try:
        yield
    finally:
        done.set()
        artist.join()
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


def bar(title: str, size: int, expected: int) -> str:
    """Return the text of a bar; a size beyond the expected one shows as nearly full."""
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
        except OSError:  # gone between the listing and the look
            continue
    return total
