"""One line of JSON for each request, on standard error; nothing of the data is in it."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from queue import SimpleQueue
from threading import Thread
from time import sleep
from types import TracebackType
from typing import Any

import orjson

# Lines that nobody takes from us are dropped beyond this; a server must not wait for its log.
_MOST_WAITING = 10_000

# The writer collects what comes within this time: it need not wake for each line.
_PAUSE_SECONDS = 0.02

_SECONDS_TO_FINISH = 1.0


class Log:
    """Lines of JSON, written by a thread of their own."""

    def __init__(self, *, wanted: bool = True) -> None:
        self._wanted = wanted
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._dropped = 0
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin to write."""
        if self._wanted:
            self._thread = Thread(target=self._write, name="log", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Write what is left, if that does not take long."""
        if self._thread is not None:
            self._lines.put(None)
            self._thread.join(_SECONDS_TO_FINISH)

    def write(self, **facts: Any) -> None:
        """Write one line, with the time."""
        if not self._wanted:
            return
        if self._lines.qsize() >= _MOST_WAITING:
            self._dropped += 1
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._lines.put(orjson.dumps({"time": now, **facts}))

    def _write(self) -> None:
        while True:
            lines = [self._lines.get()]
            if lines[0] is not None:
                sleep(_PAUSE_SECONDS)
            while not self._lines.empty():
                lines.append(self._lines.get())
            if self._dropped:
                lines.append(orjson.dumps({"dropped_lines": self._dropped}))
                self._dropped = 0
            self._write_lines([line for line in lines if line is not None])
            if None in lines:
                return

    def _write_lines(self, lines: list[bytes]) -> None:
        try:
            sys.stderr.write(b"".join(line + b"\n" for line in lines).decode())
            sys.stderr.flush()
        except (OSError, ValueError):  # whoever read them has gone
            self._wanted = False


class LogHandler(logging.Handler):
    """What the HTTP server warns of, as lines of the same log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one, without the trace: that may show data."""
        self._log.write(level=record.levelname.lower(), message=record.getMessage().strip())


def where(error: BaseException) -> list[str]:
    """Return where an error came from, innermost last; not its words, which may show data."""
    trace: TracebackType | None = error.__traceback__
    places = []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return places[-8:]
