"""The IDX format: a four-byte magic number, the sizes, then the entries, all big-endian."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

# Data types by the third byte of the magic number.
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP_MAGIC = b"\x1f\x8b"


def read_idx(path: str | PathLike[str]) -> npt.NDArray[Any]:
    """Read an IDX file, plain or compressed with gzip.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    ndarray of the shape and data type in the header

    Raises
    ------
    ValueError
        if the magic number is not that of IDX, or the size of the file contradicts its header
    """
    path = Path(path)
    with path.open("rb") as raw:
        compressed = raw.read(2) == _GZIP_MAGIC
        raw.seek(0)
        if not compressed:
            return _read(raw, path)
        try:
            with gzip.open(raw) as unpacked:
                return _read(unpacked, path)  # type: ignore[arg-type]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is damaged or cut short: {error}. Fetch it again.") from error


def decode_idx(content: bytes, name: str) -> npt.NDArray[Any]:
    """Return the array of an uncompressed IDX file; `name` is used in error messages."""
    return _read(io.BytesIO(content), name)


def encode_idx(array: npt.NDArray[np.uint8]) -> bytes:
    """Encode a uint8 array as an uncompressed IDX file."""
    sizes = np.array(array.shape, dtype=">u4").tobytes()
    return bytes([0, 0, 0x08, array.ndim]) + sizes + array.tobytes()


def _read(stream: IO[bytes], path: Path | str) -> npt.NDArray[Any]:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES or not 1 <= magic[3] <= 8:
        raise ValueError(
            f"{path} is not an IDX file: expected a magic number 00 00 TT NN, with TT one of "
            f"{', '.join(f'{t:02x}' for t in _TYPES)} and NN the number of dimensions, up to 08, "
            f"got {magic.hex(' ') or 'an empty file'}."
        )
    dtype = np.dtype(_TYPES[magic[2]])
    header = stream.read(4 * magic[3])
    if len(header) < 4 * magic[3]:
        raise ValueError(f"{path} is cut short: it ends within its header. Fetch it again.")
    shape = tuple(np.frombuffer(header, dtype=">u4").tolist())
    expected = math.prod(shape) * dtype.itemsize
    # Read in pieces: a damaged header may announce more bytes than memory holds. One byte more
    # than announced shows a file that is too long.
    content = _read_up_to(stream, expected + 1)
    if len(content) != expected:
        problem = "is cut short" if len(content) < expected else "is longer than it says"
        raise ValueError(
            f"{path} {problem}: its header announces shape {shape}, {expected} bytes, "
            f"and {'more' if len(content) > expected else len(content)} follow. Fetch it again."
        )
    if expected == 0:
        raise ValueError(f"{path} holds nothing: its header announces shape {shape}.")
    return np.frombuffer(content, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _read_up_to(stream: IO[bytes], limit: int) -> bytes:
    pieces, left = [], limit
    while left > 0 and (piece := stream.read(min(left, 1 << 24))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
