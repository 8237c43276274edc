"""Access log: one JSON line per request on standard error, without any data of the request."""

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

# Queued lines beyond this number are dropped: a blocked reader of the log must not block requests.
_MAX_QUEUED_LINES = 10_000

# The writer waits this long to write several lines at once; a wake-up per line costs throughput.
_PAUSE_SECONDS = 0.02

_FLUSH_SECONDS = 1.0


class Log:
    """A JSON-lines log with its own writer thread."""

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._dropped = 0
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start the writer thread."""
        if self._enabled:
            self._thread = Thread(target=self._write, name="log", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Write the queued lines, for at most a second."""
        if self._thread is not None:
            self._lines.put(None)
            self._thread.join(_FLUSH_SECONDS)

    def write(self, **fields: Any) -> None:
        """Queue one line, with a timestamp."""
        if not self._enabled:
            return
        if self._lines.qsize() >= _MAX_QUEUED_LINES:
            self._dropped += 1
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._lines.put(orjson.dumps({"time": now, **fields}))

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
        except (OSError, ValueError):  # standard error is closed
            self._enabled = False


class LogHandler(logging.Handler):
    """Logging handler that writes uvicorn's warnings to the same log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record without its traceback, which may contain data."""
        self._log.write(level=record.levelname.lower(), message=record.getMessage().strip())


def stack_locations(error: BaseException) -> list[str]:
    """Return the innermost frames of a traceback, without the message, which may contain data."""
    trace: TracebackType | None = error.__traceback__
    places = []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return places[-8:]
