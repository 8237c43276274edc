"""How much a request may ask for, and how its body is read within that."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from kmeans_kernel.serve._refusals import ClientGone, Refusal, shown

Receive: TypeAlias = Callable[[], Awaitable[Any]]

MEBIBYTE = 1 << 20

# Bodies up to this size are not counted among those held: they fit, however many come.
_SMALL = MEBIBYTE

# So many bodies of the largest size may be held at once.
_LARGEST_BODIES = 16

# What a packed body says of its format, for zlib: gzip or zlib by its head, or neither.
_BY_HEAD, _RAW = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS


@dataclass(frozen=True)
class Limits:
    """What one request, and all together, may take of the server.

    Attributes
    ----------
    body_bytes : of one body, as sent and as unpacked
    rows : of one request
    header_seconds : from the first byte to the end of the headers
    body_seconds : from the headers to the end of the body
    answer_seconds : from the body to the answer
    in_flight : requests that are worked on or wait for it
    connections : open at once
    idle_seconds : how long a connection may be silent between two requests
    """

    body_bytes: int = 64 * MEBIBYTE
    rows: int = 100_000
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    answer_seconds: float = 60.0
    in_flight: int = 128
    connections: int = 1024
    idle_seconds: float = 60.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"The limit {field.name!r} must be above 0, got {value!r}.")


class Held:
    """The bytes of large bodies that are in memory at once, up to a bound."""

    def __init__(self, limits: Limits) -> None:
        self._most = _LARGEST_BODIES * limits.body_bytes
        self._now = 0

    @contextmanager
    def one(self) -> Iterator[Callable[[int], None]]:
        """Give a function that is told the size of one body as it grows; at the end it is gone."""
        counted = 0

        def grown_to(size: int) -> None:
            nonlocal counted
            if size <= _SMALL:
                return
            if self._now + size - counted > self._most:
                raise busy(
                    "The server holds as many large bodies as it may; send this one again soon."
                )
            self._now += size - counted
            counted = size

        try:
            yield grown_to
        finally:
            self._now -= counted


def busy(sentence: str) -> Refusal:
    """Return the refusal of a request that may be sent again in a second."""
    return Refusal(503, sentence, {"retry-after": "1"})


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    limits: Limits,
    grown_to: Callable[[int], None],
) -> bytes:
    """Return the body as it was sent, or refuse it for its size or its slowness."""
    declared = headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limits.body_bytes:
        raise _too_large(f"has {int(declared):,}", limits)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > limits.body_bytes:
                    raise _too_large("has more", limits)
                grown_to(size)
                more = message.get("more_body", False)
    except TimeoutError:
        raise Refusal(
            408,
            f"The body must arrive within {limits.body_seconds:g} s, got {size:,} bytes of it by "
            "then; send it faster, or in smaller requests.",
            {"connection": "close"},
        ) from None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def unpack(body: bytes, encoding: str, limits: Limits) -> bytes:
    """Return a body without its compression; no more is unpacked than a body may have."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "deflate"):
        raise Refusal(
            415,
            f"The Content-Encoding must be gzip, deflate or none, got {shown(encoding)}; send the "
            "body as it is.",
        )
    try:
        unpacked, whole = _unpack(body, _BY_HEAD, limits.body_bytes + 1)
    except zlib.error as error:
        if encoding == "gzip":
            raise _damaged(encoding) from error
        try:  # some send deflate without the head it should have
            unpacked, whole = _unpack(body, _RAW, limits.body_bytes + 1)
        except zlib.error:
            raise _damaged(encoding) from error
    if len(unpacked) > limits.body_bytes:
        raise _too_large("unpacks to more", limits)
    if not whole:
        raise _damaged(encoding)
    return unpacked


def _unpack(body: bytes, format_of: int, most: int) -> tuple[bytes, bool]:
    """Return what a body unpacks to, up to so many bytes, and whether its end was there."""
    parts: list[bytes] = []
    size, ended = 0, False
    while body and size < most:  # gzip may hold several, one after the other
        packed = zlib.decompressobj(format_of)
        parts.append(packed.decompress(body, most - size))
        size += len(parts[-1])
        ended, body = packed.eof, packed.unused_data
        if not ended:
            break
    return b"".join(parts), ended


def _damaged(encoding: str) -> Refusal:
    return Refusal(
        400,
        f"The body must be whole {encoding} data, as its Content-Encoding says, and is not; send "
        "it again, or without that header.",
    )


def _too_large(how: str, limits: Limits) -> Refusal:
    return Refusal(
        413,
        f"The body must have at most {limits.body_bytes:,} bytes, and {how}; send fewer rows at "
        "once, or raise the limit with --max-body.",
    )
