"""Bodies that are compressed, in requests and in answers."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

from kmeans_kernel.serve._limits import Size
from kmeans_kernel.serve._refusals import Refusal, bad, shown

# What a packed body says of its format, for zlib: gzip or zlib by its head, or neither.
_BY_HEAD, _RAW = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS

# So much is unpacked at a time. What is behind the end of a member is copied, so less is better.
_PIECE = 1 << 16

# Of gzip; bgzip makes one of each 64 KiB.
_MOST_MEMBERS = 2000

_LEVEL = 1


def is_packed(encoding: str) -> bool:
    """Say whether a Content-Encoding names a compression."""
    return encoding.strip().lower() not in ("", "identity")


def unpack(body: bytes, encoding: str, size: Size, grown_to: Callable[[int], None]) -> bytes:
    """Return a body without its compression; no more is unpacked than a body may have.

    Parameters
    ----------
    grown_to : told how many bytes there are as they become more; it may raise to end this
    """
    if not is_packed(encoding):
        return body
    encoding = encoding.strip().lower()
    if encoding not in ("gzip", "deflate"):
        raise Refusal(
            415,
            f"The Content-Encoding must be gzip, deflate or none, got {shown(encoding)}; send the "
            "body as it is.",
        )
    try:
        unpacked, whole = _unpack(body, _BY_HEAD, size.most + 1, grown_to)
    except zlib.error as error:
        if encoding == "gzip":
            raise _damaged(encoding) from error
        try:  # some send deflate without the head it should have
            unpacked, whole = _unpack(body, _RAW, size.most + 1, grown_to)
        except zlib.error:
            raise _damaged(encoding) from error
    if len(unpacked) > size.most:
        raise size.too_large("unpacks to more")
    if not whole:
        raise _damaged(encoding)
    return unpacked


def _unpack(
    body: bytes, format_of: int, most: int, grown_to: Callable[[int], None]
) -> tuple[bytes, bool]:
    """Return what a body unpacks to, up to so many bytes, and whether its end was there."""
    packed, view = zlib.decompressobj(format_of), memoryview(body)
    parts: list[bytes] = []
    size, at, members = 0, 0, 1
    while at < len(view) and size < most:
        if packed.eof:  # gzip may hold several, one after the other
            packed, members = zlib.decompressobj(format_of), members + 1
            if members > _MOST_MEMBERS:
                raise bad(
                    f"A gzip body must be of at most {_MOST_MEMBERS:,} members, and is of more; "
                    "pack it as one."
                )
        piece = view[at : at + _PIECE]
        parts.append(packed.decompress(piece, most - size))
        at += len(piece) - len(packed.unused_data)
        size += len(parts[-1])
        grown_to(size)
    return b"".join(parts), packed.eof


def _damaged(encoding: str) -> Refusal:
    return bad(
        f"The body must be whole {encoding} data, as its Content-Encoding says, and is not; send "
        "it again, or without that header."
    )


def accepted_encoding(asked: str) -> str | None:
    """Return gzip or deflate if a client takes it, the first that it names; None for neither."""
    for one in asked.lower().split(","):
        name, _, quality = (part.strip() for part in one.partition(";"))
        refused = quality.replace(" ", "").rstrip("0") in ("q=", "q=0.")
        if name in ("gzip", "deflate") and not refused:
            return name
    return None


def pack(content: bytes, encoding: str) -> bytes:
    """Return a body compressed."""
    if encoding == "gzip":
        return gzip.compress(content, _LEVEL, mtime=0)
    return zlib.compress(content, _LEVEL)
