"""Text of a CSV file as UTF-8 with line feeds, from any encoding and any line ends."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

import numpy as np

from kmeans_kernel.data.tables._table import DataFileError

_BOMS = {
    codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be",
}  # fmt: skip

_CHUNK_BYTES = 1 << 24

# Words of another script in an eight-bit encoding: most of their bytes are above 127, and of many
# values. Words of Western languages have single such letters, of few values.
_LONG_RUN, _MANY_VALUES = 4, 8

# Share of the bytes above 127 that may have no letter in Windows-1252.
_FEW_STRANGE = 0.05


@dataclass(frozen=True)
class Text:
    """Text in UTF-8 with line feeds, and notes of how it was read."""

    content: bytes
    notes: tuple[str, ...] = ()


def decode(content: bytes, name: str, encoding: str | None = None) -> Text:
    """Return the text of a file in UTF-8, without byte order mark, with line feeds as line ends.

    Raises `DataFileError` for a file that is no text, or whose encoding cannot be told.

    Parameters
    ----------
    encoding : name of the encoding; by default UTF-8 or UTF-16 if the bytes are, else Western
        European: that of Windows, or of the Mac if its line ends are
    """
    notes: tuple[str, ...] = ()
    bom = next((mark for mark in _BOMS if content.startswith(mark)), b"")
    kind = encoding or _BOMS.get(bom) or wide_encoding(content[:4096])
    if kind is not None:
        text = _decode_as(kind, content[len(bom) :] if encoding is None else content, name)
    elif is_utf8(content):
        text = content
    else:
        text, note = _decode_western(content, name)
        notes = (note,)
    text = text.removeprefix(codecs.BOM_UTF8).rstrip(b"\0\x1a")
    if b"\0" in text[:4096]:
        raise DataFileError(
            f"{name} has zero bytes, as no text has; remove them, or name its format with --format."
        )
    if not text.strip():
        raise DataFileError(f"{name} is empty; it should hold rows to train on or to classify.")
    return Text(line_feeds(text), notes)


def wide_encoding(start: bytes) -> str | None:
    """Return the encoding of UTF-16 without byte order mark, told by its zero bytes, or None."""
    codes = np.frombuffer(start[: len(start) // 2 * 2], np.uint8).reshape(-1, 2)
    first, second = np.count_nonzero(codes == 0, axis=0).tolist()
    # A letter such as U+4E00 has its zero byte in the other place; a binary file has both alike.
    if 3 * max(first, second) < len(codes) or max(first, second) <= 4 * min(first, second):
        return None
    return "utf-16-le" if second > first else "utf-16-be"


def is_utf8(content: bytes) -> bool:
    """Return whether bytes are UTF-8, without holding the decoded text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _CHUNK_BYTES):
            decoder.decode(content[start : start + _CHUNK_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _decode_as(encoding: str, content: bytes, name: str) -> bytes:
    """Return text of a known encoding as UTF-8."""
    try:
        return content.decode(encoding).encode()
    except LookupError as error:
        raise DataFileError(
            f"there is no encoding {encoding!r}; use for example --encoding utf-8, cp1252, "
            "utf-16, shift_jis or gb18030."
        ) from error
    except UnicodeError as error:
        raise DataFileError(
            f"{name} is not text in {encoding}; save it in UTF-8, or name its encoding with "
            "--encoding."
        ) from error


def _decode_western(content: bytes, name: str) -> tuple[bytes, str]:
    """Return text in a Western encoding, or damaged UTF-8, as UTF-8, and a note about it."""
    whole = content.decode("utf-8", "surrogateescape")
    damaged = len(re.findall("[\udc80-\udcff]", whole))
    if damaged < len(re.findall("[\u0080-\ud7ff\ue000-\U0010ffff]", whole)):
        repaired = re.sub("[\udc80-\udcff]", _as_cp1252, whole)
        return repaired.encode(), (
            f"{'1 byte' if damaged == 1 else f'{damaged} bytes'} of {name} "
            f"{'is' if damaged == 1 else 'are'} not UTF-8, as its other letters are, and "
            f"{'was' if damaged == 1 else 'were'} read as Windows-1252; if words are wrong, name "
            "the encoding with --encoding."
        )
    encoding, told = "cp1252", "Windows-1252 (Latin-1)"
    if b"\n" not in content and b"\r" in content:
        # The letters of Mac Roman are bytes that are signs in Windows-1252, and the reverse.
        codes = np.frombuffer(content, np.uint8)
        if np.count_nonzero((codes >= 0x80) & (codes < 0xA0)) > np.count_nonzero(codes >= 0xC0):
            encoding, told = "mac_roman", "Mac Roman"
    text = content.decode(encoding, "replace")
    strange = text.count("\ufffd")  # bytes that the encoding has no letter for
    if strange > _FEW_STRANGE * damaged or _is_another_script(content):
        raise DataFileError(
            f"{name} is not text in UTF-8, and does not look Western European; name its encoding, "
            "for example --encoding shift_jis, gb18030, cp1251 or cp850, or save it in UTF-8."
        )
    example = re.search(r"[^\s,;|\"]*[^\x00-\x7f][^\s,;|\"]*", text)
    shown = f", for example {example[0]!r}" if example else ""
    return text.encode(), (
        f"{name} is not UTF-8 and was read as {told}{shown}; if words are wrong, name the encoding "
        "with --encoding."
    )


def _as_cp1252(letter: re.Match[str]) -> str:
    return bytes([ord(letter[0]) & 0xFF]).decode("cp1252", "replace")


def _is_another_script(content: bytes) -> bool:
    """Return whether most bytes above 127 stand in long runs, as words of no Latin script do."""
    codes = np.frombuffer(content, np.uint8)
    high = codes >= 128
    edges = np.flatnonzero(np.diff(high, prepend=False, append=False))
    lengths = np.diff(edges)[::2]
    in_long = lengths[lengths >= _LONG_RUN].sum()
    return bool(2 * in_long > lengths.sum() and len(np.unique(codes[high])) >= _MANY_VALUES)


def line_feeds(text: bytes) -> bytes:
    """Return text with a line feed at the end of each line, also where the Mac of old had none."""
    if b"\r" not in text:
        return text
    text = text.replace(b"\r\r\n", b"\n").replace(b"\r\n", b"\n")
    # Where carriage returns end the lines, line feeds are breaks inside quoted values.
    if text.count(b"\r") > text.count(b"\n"):
        text = text.replace(b"\r", b"\n")
    return text
