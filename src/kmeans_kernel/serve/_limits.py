"""How much a request may ask for, and how its body is read within that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from threading import Lock
from typing import Any, TypeAlias

from kmeans_kernel.serve._refusals import ClientGone, Refusal, stopping, whole_number

Receive: TypeAlias = Callable[[], Awaitable[Any]]

MEBIBYTE = 1 << 20

# Bodies up to this size are not counted among those held: they fit, however many come.
_SMALL = MEBIBYTE

# So many bodies of the largest size may be held at once.
_LARGEST_BODIES = 16


@dataclass(frozen=True)
class Size:
    """How many bytes a body may have, what it is called, and what to do if it has more."""

    most: int
    what: str
    advice: str

    def too_large(self, how: str) -> Refusal:
        """Return the refusal of a body that has more."""
        sentence = f"{self.what} must have at most {self.most:,} bytes, and {how}; {self.advice}."
        return Refusal(413, sentence)


@dataclass(frozen=True)
class Limits:
    """What one request, and all together, may take of the server.

    Attributes
    ----------
    body_bytes : of one body, as sent and as unpacked
    text_bytes : of one body of JSON or CSV, which takes many times that to read
    rows : of one request
    header_seconds : from the first byte to the end of the headers
    body_seconds : from the headers to the end of the body
    answer_seconds : from the body to the answer
    in_flight : requests that are worked on or wait for it
    connections : open at once
    idle_seconds : how long a connection may be silent between two requests
    stop_seconds : how long a stop waits for answers
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
    def body(self) -> Size:
        """The size of any body."""
        advice = "send fewer rows at once, or raise the limit with --max-body"
        return Size(self.body_bytes, "The body", advice)

    @cached_property
    def text(self) -> Size:
        """The size of a body of text."""
        if self.body_bytes <= self.text_bytes:
            return self.body
        advice = (
            "send binary tensors to /v2/models/NAME/infer, which may be larger, or fewer rows at "
            "once, or raise the limit with --max-text"
        )
        return Size(self.text_bytes, "JSON or CSV", advice)


class Waits:
    """The time limits of what is waited for, which a stop may shorten."""

    def __init__(self) -> None:
        self._now: set[asyncio.Timeout] = set()
        self.shortened = False

    @contextmanager
    def one(self, timeout: asyncio.Timeout) -> Iterator[None]:
        """Count a time limit among them while it runs."""
        self._now.add(timeout)
        try:
            yield
        finally:
            self._now.discard(timeout)

    def end_by(self, when: float) -> None:
        """Let all of them end by a time of the loop."""
        self.shortened = True
        for timeout in self._now:
            usual = timeout.when()
            if not timeout.expired() and (usual is None or usual > when):
                timeout.reschedule(when)


class Held:
    """The bytes of large bodies that are in memory at once, up to a bound."""

    def __init__(self, limits: Limits) -> None:
        self._most = _LARGEST_BODIES * limits.body_bytes
        self._now = 0
        self._lock = Lock()  # bodies are unpacked in threads

    @contextmanager
    def one(self) -> Iterator[Callable[[int], None]]:
        """Give a function that is told the size of one body as it grows; at the end it is gone.

        A thread that tells more of it after that is ended by a TimeoutError.
        """
        counted, ended = 0, False

        def grown_to(size: int) -> None:
            nonlocal counted
            if size <= _SMALL and not ended:
                return
            with self._lock:
                if ended:
                    raise TimeoutError
                if self._now + size - counted > self._most:
                    raise busy(
                        "The server holds as many large bodies as it may; send this one again soon."
                    )
                self._now += size - counted
                counted = size

        try:
            yield grown_to
        finally:
            with self._lock:
                ended = True
                self._now -= counted


def busy(sentence: str) -> Refusal:
    """Return the refusal of a request that may be sent again in a second."""
    return Refusal(503, sentence, {"retry-after": "1"})


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    size: Size,
    seconds: float,
    waits: Waits,
    grown_to: Callable[[int], None],
) -> bytes:
    """Return the body as it was sent, or refuse it for its size or its slowness."""
    declared = whole_number(headers.get("content-length", "0"))
    if declared is not None and declared > size.most:
        raise size.too_large(f"has {declared:,}")
    chunks: list[bytes] = []
    try:
        async with asyncio.timeout(seconds) as timeout:
            with waits.one(timeout):
                await _collect(receive, chunks, size, grown_to)
    except TimeoutError:
        if waits.shortened:
            raise stopping() from None
        raise Refusal(
            408,
            f"The body must arrive within {seconds:g} s, got {sum(map(len, chunks)):,} bytes of it "
            "by then; send it faster, or in smaller requests.",
            {"connection": "close"},
        ) from None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _collect(
    receive: Receive, chunks: list[bytes], size: Size, grown_to: Callable[[int], None]
) -> None:
    """Put what comes of a body into a list."""
    so_far, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunks.append(message.get("body", b""))
        so_far += len(chunks[-1])
        if so_far > size.most:
            raise size.too_large("has more")
        grown_to(so_far)
        more = message.get("more_body", False)
