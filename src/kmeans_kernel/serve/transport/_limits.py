"""Limits of sizes, times and concurrency, and the reading of a body within them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from threading import Lock
from typing import Any, TypeAlias

from kmeans_kernel.serve.transport._errors import (
    ClientDisconnected,
    RequestError,
    parse_integer,
    pluralize,
    shutting_down,
)

Receive: TypeAlias = Callable[[], Awaitable[Any]]

MEBIBYTE = 1 << 20

# Bodies up to this size are not counted: `Limits.connections` already bounds their sum.
_UNCOUNTED_BYTES = MEBIBYTE

# The memory budget, in bodies of the largest size.
_BUDGET_IN_BODIES = 16


@dataclass(frozen=True)
class SizeLimit:
    """The largest size of a body in bytes, with the words of the error for a larger one."""

    max_bytes: int
    name: str
    advice: str

    def too_large(self, actual: str) -> RequestError:
        """Return the error for a larger body (413)."""
        limit = f"{self.name} must have at most {self.max_bytes:,} bytes"
        return RequestError(413, f"{limit}, and {actual}; {self.advice}.")


@dataclass(frozen=True)
class Limits:
    """Limits of one request and of the whole server.

    Attributes
    ----------
    body_bytes : largest body, before and after decompression
    text_bytes : largest JSON or CSV body; parsing takes many times its size
    rows : most rows of one request
    header_seconds : timeout from the first byte to the end of the headers
    body_seconds : timeout from the headers to the end of the body; also of a client that does not
        read its response
    answer_seconds : timeout from the end of the body to the response
    in_flight : most requests that are processed or queued at once
    connections : most open connections
    idle_seconds : keep-alive timeout of an idle connection
    stop_seconds : how long a graceful shutdown waits for responses
    """

    body_bytes: int = 64 * MEBIBYTE
    text_bytes: int = 16 * MEBIBYTE
    rows: int = 100_000
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    answer_seconds: float = 60.0
    in_flight: int = 128
    connections: int = 1024
    idle_seconds: float = 60.0
    stop_seconds: float = 20.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"The limit {field.name!r} must be above 0, got {value!r}.")

    @cached_property
    def body(self) -> SizeLimit:
        """The limit of every body."""
        advice = "send fewer rows per request, or raise the limit with --max-body"
        return SizeLimit(self.body_bytes, "The body", advice)

    @cached_property
    def text(self) -> SizeLimit:
        """The limit of a JSON or CSV body."""
        if self.body_bytes <= self.text_bytes:
            return self.body
        advice = (
            "send binary tensors to /v2/models/NAME/infer, which may be larger, or fewer rows per "
            "request, or raise the limit with --max-text"
        )
        return SizeLimit(self.text_bytes, "JSON or CSV", advice)


def check_count(n: int, max_rows: int) -> None:
    """Raise if a request has more rows than the limit (413)."""
    if n > max_rows:
        raise RequestError(
            413,
            f"A request may have at most {pluralize(max_rows, 'row')}, got {n:,}; split them over "
            "several requests, or raise the limit with --max-rows.",
        )


class Deadlines:
    """The running timeouts of requests, which a graceful shutdown shortens."""

    def __init__(self) -> None:
        self._running: set[asyncio.Timeout] = set()
        self.shortened = False

    @contextmanager
    def track(self, timeout: asyncio.Timeout) -> Iterator[None]:
        """Register a timeout while it runs."""
        self._running.add(timeout)
        try:
            yield
        finally:
            self._running.discard(timeout)

    def shorten_to(self, when: float) -> None:
        """Reschedule every later timeout to a time of the event loop's clock."""
        self.shortened = True
        for timeout in self._running:
            usual = timeout.when()
            if not timeout.expired() and (usual is None or usual > when):
                timeout.reschedule(when)


class MemoryBudget:
    """Memory budget shared by the large bodies that are being read, decompressed or parsed."""

    def __init__(self, limits: Limits) -> None:
        self._budget = _BUDGET_IN_BODIES * limits.body_bytes
        self._used = 0
        self._lock = Lock()  # bodies are decompressed in threads

    @contextmanager
    def reserve(self) -> Iterator[Callable[[int], None]]:
        """Give a function that sets the bytes that one request uses; release them at the end.

        A call after the end raises TimeoutError, which stops a thread whose request has timed out.
        """
        counted, ended = 0, False

        def set_used_bytes(size: int) -> None:
            nonlocal counted
            if size <= _UNCOUNTED_BYTES and not ended:
                return
            with self._lock:
                if ended:
                    raise TimeoutError
                if self._used + size - counted > self._budget:
                    raise overloaded(
                        "The memory for large bodies is in use by other requests; retry in a "
                        "second."
                    )
                self._used += size - counted
                counted = size

        try:
            yield set_used_bytes
        finally:
            with self._lock:
                ended = True
                self._used -= counted


def overloaded(message: str) -> RequestError:
    """Return the error for a request that the client should retry in a second (503)."""
    return RequestError(503, message, {"retry-after": "1"})


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    size: SizeLimit,
    seconds: float,
    deadlines: Deadlines,
    set_used_bytes: Callable[[int], None],
) -> bytes:
    """Return the body as sent, still compressed; raise if it is too large or too slow."""
    declared = parse_integer(headers.get("content-length", "0"))
    if declared is not None and declared > size.max_bytes:
        raise size.too_large(f"has {declared:,}")
    chunks: list[bytes] = []
    try:
        async with asyncio.timeout(seconds) as timeout:
            with deadlines.track(timeout):
                await _collect(receive, chunks, size, set_used_bytes)
    except TimeoutError:
        if deadlines.shortened:
            raise shutting_down() from None
        raise RequestError(
            408,
            f"The body must arrive within {seconds:g} s, got {sum(map(len, chunks)):,} bytes; "
            "send it faster, or in smaller requests.",
            {"connection": "close"},
        ) from None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _collect(
    receive: Receive, chunks: list[bytes], size: SizeLimit, set_used_bytes: Callable[[int], None]
) -> None:
    """Append the chunks of a body to a list, which stays valid after a timeout."""
    so_far, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        chunks.append(message.get("body", b""))
        so_far += len(chunks[-1])
        if so_far > size.max_bytes:
            raise size.too_large("has more")
        set_used_bytes(so_far)
        more = message.get("more_body", False)
