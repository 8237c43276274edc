"""Records of CSV text: where they end, how many values each has, and all of them as a frame.

polars cuts text into columns fast, but says little of rows that are too long or too short and is at
a loss with stray quotation marks. So the ends of the records are found first, by counting quotation
marks; text whose marks are not in place is rewritten by Python's lenient reader.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.data.tables._csv._dialect import read_rows
from kmeans_kernel.data.tables._table import DataFileError, first_line

_CHUNK_BYTES = 1 << 24
_LINE_FEED = 10


@dataclass(frozen=True, eq=False)
class Records:
    """Text cut into records, n of which are not blank.

    Attributes
    ----------
    text : the text, which ends with a line feed
    ends : (n,) position of the line feed after each record
    starts : (n,) position of its first character
    widths : (n,) its number of values
    separator, quote : how values are separated and quoted; quote is None where nothing is
    """

    text: bytes
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int64]
    separator: str
    quote: str | None

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.ends)

    def keep(self, chosen: npt.NDArray[np.bool_]) -> Records:
        """Return some of the records."""
        return Records(
            self.text, self.starts[chosen], self.ends[chosen], self.widths[chosen],
            self.separator, self.quote,
        )  # fmt: skip

    def record(self, number: int) -> str:
        """Return the text of a record."""
        return self.text[self.starts[number] : self.ends[number]].decode()

    def frame(self, width: int, name: str) -> Any:
        """Return the records as a polars frame of text with columns "0", "1", ….

        Empty values are null or empty, values that a record lacks are null.
        """
        import polars as pl

        try:
            frame = pl.read_csv(
                self._joined(width),
                separator=self.separator,
                quote_char=self.quote,
                infer_schema_length=0,
            )
        except pl.exceptions.PolarsError as error:
            raise DataFileError(f"{name} could not be read as csv: {first_line(error)}") from error
        if len(frame) != len(self):
            raise DataFileError(
                f"{name} could not be read as csv: {len(self)} rows were cut into {len(frame)}; "
                "check its quotation marks."
            )
        return frame

    def _joined(self, width: int) -> bytes:
        """Return a header of numbers and the text of the records."""
        breaks = np.flatnonzero(self.starts[1:] != self.ends[:-1] + 1)
        first = self.starts[np.concatenate([[0], breaks + 1])].tolist()
        last = self.ends[np.concatenate([breaks, [len(self) - 1]])].tolist()
        parts = [self.separator.join(map(str, range(width))).encode() + b"\n"]
        parts += [self.text[begin : end + 1] for begin, end in zip(first, last, strict=True)]
        return b"".join(parts)


def cut_records(text: bytes, separator: str, quote: str | None, width: int, name: str) -> Records:
    """Return the records of a text.

    Quotation marks that do not enclose whole values are read leniently, or as letters like any
    other where that gives rows of `width` values and the lenient reading swallows the ends of
    lines. Raises `DataFileError` for a mark without its partner.
    """
    text = text if text.endswith(b"\n") or not text else text + b"\n"
    if separator == " ":
        separator, text = ",", _rewritten(text, " ", ",", quote) or text
    found = _scan(text, separator, quote)
    if found is not None:
        escaped = _without_escapes(text, separator, quote) if (found.widths > width).any() else None
        return escaped if escaped is not None and (escaped.widths == width).all() else found
    literal = _scan(text, separator, None)
    escape = "\\" if b'\\"' in text else None
    rewritten = _rewritten(text, separator, separator, quote, escape)
    lenient = None if rewritten is None else _scan(rewritten, separator, '"')
    n_lenient = 0 if lenient is None else len(lenient)
    if literal is not None and len(literal) > n_lenient and (literal.widths == width).all():
        return literal
    if lenient is None:
        raise DataFileError(f"{name} has a quotation mark without its partner; correct it.")
    swallowing = [*np.flatnonzero(lenient.widths != width).tolist(), n_lenient - 1]
    for number in swallowing if text.count((quote or '"').encode()) % 2 else swallowing[:-1]:
        if "\n" in lenient.record(number):
            raise DataFileError(
                f"data row {number + 1} of {name} has a quotation mark without its partner; "
                "correct it, or double it if it is a letter like any other."
            )
    return lenient


def _without_escapes(text: bytes, separator: str, quote: str | None) -> Records | None:
    """Return the records of a text in which backslashes precede separators in values, or None."""
    if b"\\" + separator.encode() not in text:
        return None
    rewritten = _rewritten(text, separator, separator, quote, "\\")
    return None if rewritten is None else _scan(rewritten, separator, '"')


def _rewritten(
    text: bytes, separator: str, new_separator: str, quote: str | None, escape: str | None = None
) -> bytes | None:
    """Return text that is read leniently and written strictly, None if a value takes no end."""
    read = text.decode()
    if escape:  # a backslash in front of any other letter is a letter itself, as in C:\temp
        special = re.escape(f'{separator}{quote or ""}"\\')
        read = re.sub(rf"\\([{special}])|\\", lambda one: one[0] if one[1] else r"\\", read)
    out = io.StringIO()
    writer = csv.writer(out, delimiter=new_separator, lineterminator="\n")
    try:
        writer.writerows(read_rows(read, separator, quote, escape))
    except csv.Error:  # a value longer than the module takes, after a mark without its partner
        return None
    return out.getvalue().encode()


def _scan(text: bytes, separator: str, quote: str | None) -> Records | None:
    """Return the records of a text, None if quotation marks do not enclose whole values."""
    codes = np.frombuffer(text, np.uint8)
    mark = -1 if quote is None else ord(quote)
    ends: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)]
    separators_before = [np.zeros(0, np.int64)]
    n_quotes = n_separators = 0
    for start in range(0, len(codes), _CHUNK_BYTES):
        part = codes[start : start + _CHUNK_BYTES]
        quotes = np.flatnonzero(part == mark) + start if mark >= 0 else ends[0]
        if len(quotes) and not _in_place(codes, quotes, n_quotes % 2, ord(separator)):
            return None
        marks = np.flatnonzero((part == ord(separator)) | (part == _LINE_FEED)) + start
        marks = marks[(np.searchsorted(quotes, marks) + n_quotes) % 2 == 0]
        is_end = codes[marks] == _LINE_FEED
        ends.append(marks[is_end])
        separators_before.append(np.cumsum(~is_end)[is_end] + n_separators)
        n_separators += int(np.count_nonzero(~is_end))
        n_quotes += len(quotes)
    if n_quotes % 2:
        return None
    all_ends, counts = np.concatenate(ends), np.concatenate(separators_before)
    starts = np.concatenate([[0], all_ends[:-1] + 1])[: len(all_ends)]
    return Records(text, starts, all_ends, np.diff(counts, prepend=0) + 1, separator, quote)


def _in_place(
    codes: npt.NDArray[np.uint8], quotes: npt.NDArray[np.int64], open_before: int, separator: int
) -> bool:
    """Return whether quotation marks begin and end values, or are doubled inside them.

    Parameters
    ----------
    codes : the whole text
    quotes : positions of the marks of a part of it
    open_before : 1 if the first of them closes a value, else 0
    """
    padded = np.concatenate([[_LINE_FEED], codes[max(0, quotes[0] - 1) : quotes[-1] + 2]])
    offset = quotes - max(0, quotes[0] - 1) + 1
    before, after = padded[offset - 1], padded[offset + 1]
    mark = codes[quotes[0]]
    opening = np.arange(len(quotes)) % 2 == open_before
    beside = np.where(opening, before, after)
    return bool(np.isin(beside, [separator, _LINE_FEED, mark]).all())
