"""Content encodings gzip and deflate, with bounds against decompression bombs."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

from kmeans_kernel.serve.transport._errors import RequestError, abbreviate, bad_request
from kmeans_kernel.serve.transport._limits import SizeLimit

# The wbits argument of zlib: detect a gzip or zlib header, or expect raw deflate.
_DETECT_HEADER, _RAW_DEFLATE = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS

# Compressed bytes per call of zlib. It copies the bytes after the end of a gzip member, so large
# chunks would make a body of many members take quadratic time.
_CHUNK_BYTES = 1 << 16

# Most gzip members of a body. Each costs a new decompressor, and an empty one has only 20 bytes;
# bgzip writes one per 64 KiB, so 2,000 are enough for 128 MB.
_MAX_MEMBERS = 2000

# The fastest level: small responses are compressed in the event loop.
_COMPRESSION_LEVEL = 1


def is_compressed(encoding: str) -> bool:
    """Whether a Content-Encoding header names a compression."""
    return encoding.strip().lower() not in ("", "identity")


def decompress(
    body: bytes, encoding: str, size: SizeLimit, set_used_bytes: Callable[[int], None]
) -> bytes:
    """Return the decompressed body; stop at the size limit.

    Parameters
    ----------
    set_used_bytes : called with the decompressed size after each chunk; may raise to abort
    """
    if not is_compressed(encoding):
        return body
    encoding = encoding.strip().lower()
    if encoding not in ("gzip", "deflate"):
        raise RequestError(
            415,
            f"The Content-Encoding must be gzip, deflate or none, got {abbreviate(encoding)}; send "
            "the body uncompressed.",
        )
    try:
        decompressed, whole = _inflate(body, _DETECT_HEADER, size.max_bytes + 1, set_used_bytes)
    except zlib.error as error:
        if encoding == "gzip":
            raise _corrupt(encoding) from error
        try:  # some clients send raw deflate, without the zlib header of RFC 9110
            decompressed, whole = _inflate(body, _RAW_DEFLATE, size.max_bytes + 1, set_used_bytes)
        except zlib.error:
            raise _corrupt(encoding) from error
    if len(decompressed) > size.max_bytes:
        raise size.too_large("decompresses to more")
    if not whole:
        raise _corrupt(encoding)
    return decompressed


def _inflate(
    body: bytes, wbits: int, max_bytes: int, set_used_bytes: Callable[[int], None]
) -> tuple[bytes, bool]:
    """Return at most `max_bytes` decompressed bytes, and whether the data ended properly."""
    decompressor, view = zlib.decompressobj(wbits), memoryview(body)
    parts: list[bytes] = []
    size, at, members = 0, 0, 1
    while at < len(view) and size < max_bytes:
        if decompressor.eof:  # gzip data may be several members in a row
            decompressor, members = zlib.decompressobj(wbits), members + 1
            if members > _MAX_MEMBERS:
                raise bad_request(
                    f"A gzip body must have at most {_MAX_MEMBERS:,} members, and has more; "
                    "compress it as one."
                )
        chunk = view[at : at + _CHUNK_BYTES]
        parts.append(decompressor.decompress(chunk, max_bytes - size))
        at += len(chunk) - len(decompressor.unused_data)
        size += len(parts[-1])
        set_used_bytes(size)
    return b"".join(parts), decompressor.eof


def _corrupt(encoding: str) -> RequestError:
    return bad_request(
        f"The body must be complete {encoding} data, as its Content-Encoding says, and is not; "
        "compress it again, or leave out that header."
    )


def negotiate_encoding(accepted: str) -> str | None:
    """Return the first of gzip and deflate in an Accept-Encoding header; None for neither."""
    for item in accepted.lower().split(","):
        name, _, quality = (part.strip() for part in item.partition(";"))
        refused = quality.replace(" ", "").rstrip("0") in ("q=", "q=0.")
        if name in ("gzip", "deflate") and not refused:
            return name
    return None


def compress(content: bytes, encoding: str) -> bytes:
    """Return a compressed body."""
    if encoding == "gzip":
        return gzip.compress(content, _COMPRESSION_LEVEL, mtime=0)
    return zlib.compress(content, _COMPRESSION_LEVEL)
