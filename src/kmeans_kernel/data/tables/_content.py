"""Content of a file, and detection of its format."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, TypeAlias

from kmeans_kernel.data.tables._csv._text import wide_encoding
from kmeans_kernel.data.tables._table import DataFileError

# Progress callback: bytes read so far, and total bytes or None if unknown.
OnBytes: TypeAlias = Callable[[int, int | None], None]

STANDARD_INPUT = "-"

_CHUNK_BYTES = 1 << 22


class Format(StrEnum):
    """Formats that `read_table` reads."""

    csv = "csv"
    parquet = "parquet"
    npz = "npz"
    svmlight = "svmlight"
    idx = "idx"


SUFFIXES: dict[str, Format] = {
    ".csv": Format.csv, ".tsv": Format.csv, ".tab": Format.csv, ".parquet": Format.parquet,
    ".pq": Format.parquet, ".npz": Format.npz, ".svm": Format.svmlight,
    ".svmlight": Format.svmlight, ".libsvm": Format.svmlight, ".idx": Format.idx,
}  # fmt: skip

# First bytes of files that are called CSV or have no suffix: what they are, and what to do.
_OTHER_PROGRAMS = (
    (rb"\xd0\xcf\x11\xe0", "a spreadsheet of an old Excel", "save the sheet as CSV"),
    (rb"<(!doctype )?html", "a web page", "download the file that it links to"),
    (rb"<table", "a web page", "save its table as CSV"),
    (rb"<\?xml", "XML", "convert it to CSV"),
    (rb"\{\s*\"|\[\s*[\[{]", "JSON", "convert it to CSV"),
    (rb"%pdf-", "a PDF document", "convert its table to CSV"),
    (rb"(%[^\n]*\n\s*)*@relation", "an ARFF file", "convert it to CSV"),
    (rb"sqlite format 3", "a database", "export its table as CSV"),
    (rb"bzh\d", "compressed with bzip2", "decompress it"),
    (rb"\xfd7zxz", "compressed with xz", "decompress it"),
    (rb"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it"),
)


def read_content(source: str | Path, on_bytes: OnBytes | None) -> tuple[bytes, str]:
    """Return the bytes of a file, decompressed, and its name for error messages."""
    if str(source) == STANDARD_INPUT:
        if sys.stdin is None:
            raise DataFileError("standard input is closed; name a file.")
        content, name = _read_all(sys.stdin.buffer, None, on_bytes), "standard input"
    else:
        path = Path(source)
        if path.is_dir():
            raise DataFileError(f"{path} is a directory; name a file in it.")
        try:
            with path.open("rb") as file:
                content, name = _read_all(file, path.stat().st_size or None, on_bytes), str(path)
        except FileNotFoundError as error:
            raise DataFileError(f"there is no file {path}; check the name.") from error
        except OSError as error:
            raise DataFileError(f"{path} cannot be read: {error.strerror}.") from error
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{name} is not a whole gzip file; copy it again.") from error
    if not content.strip():
        raise DataFileError(f"{name} is empty; it should hold rows to train on or to classify.")
    return content, name


def _read_all(file: BinaryIO, total: int | None, on_bytes: OnBytes | None) -> bytes:
    """Return all bytes of a stream."""
    content = bytearray()
    while block := file.read(_CHUNK_BYTES):
        content += block
        if on_bytes is not None:
            on_bytes(len(content), total)
    return bytes(content)


def detect_format(name: str, content: bytes) -> Format:
    """Detect the format from the suffix of the name, else from the first bytes.

    Text of unknown suffix is svmlight if its first line reads "label index:value …", else CSV.
    Raises `DataFileError` for files of other programs that are called CSV.
    """
    kind = SUFFIXES.get(Path(name.removesuffix(".gz")).suffix.lower())
    start = content[:4096]
    if kind in (None, Format.csv):
        _refuse_other_programs(name, start)
    if kind is not None:
        return kind
    if start[:4] == b"PAR1":
        return Format.parquet
    if start[:4] == b"PK\x03\x04":  # NPZ is a ZIP archive
        return Format.npz
    # IDX: two zero bytes, then the code of the data type.
    if start[:2] == b"\0\0" and len(start) > 4 and start[2] in (8, 9, 11, 12, 13, 14):
        return Format.idx
    wide = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")  # byte order marks of UTF-16 and UTF-32
    if start.startswith(wide) or wide_encoding(start) is not None:
        return Format.csv
    if b"\0" in start:
        raise DataFileError(
            f"{name} is binary and of no known format; {', '.join(Format)} can be read. Name the "
            "format with --format."
        )
    first = start.strip().splitlines()[0]
    is_sparse = re.fullmatch(rb"\S+(\s+\d+:\S+)+(\s*#.*)?", first.strip())
    return Format.svmlight if is_sparse else Format.csv


def _refuse_other_programs(name: str, start: bytes) -> None:
    """Raise `DataFileError` for the first bytes of a file that is none of our formats."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    found = [one for one in _OTHER_PROGRAMS if re.match(one[0], text, re.IGNORECASE)]
    if start[:4] == b"PK\x03\x04" and b".npy" not in start:
        is_workbook = any(part in start for part in (b"xl/", b"[Content_Types].xml", b"mimetype"))
        sheet = (b"", "a spreadsheet", "save the sheet as CSV")
        found = [sheet if is_workbook else (b"", "a ZIP archive", "unpack it")]
    if found:
        _, what, remedy = found[0]
        raise DataFileError(f"{name} is {what}, which cannot be read; {remedy} first.")
