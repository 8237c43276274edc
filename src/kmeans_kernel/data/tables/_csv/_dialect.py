"""The dialect of a CSV file: its separator, its quotation mark, and the lines before its rows."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from kmeans_kernel.data.tables._columns._missing import PUNCTUATION_MARKERS
from kmeans_kernel.data.tables._table import DataFileError
from kmeans_kernel.utils.words import MISSING_VALUES

# Separators in use, and those that are tried where none of them fits. A blank is any white space.
SEPARATORS, RARE_SEPARATORS = ",;\t|", " :^~\x01\x1f"

# Bytes of text, and rows, that the dialect is told from.
SAMPLE_BYTES, _SAMPLE_ROWS = 1 << 18, 1000

# Share of the rows between white space that have all cells, where some are blank.
_MOST_ROWS = 0.8

# Numbers in any notation, for telling a row of values from a row of names.
_NUMBER = re.compile(r"[-+]?[$€£]?\s?[-+]?(\d[\d.,' ]*|[.,]\d+)([eE][-+]?\d+)?\s?[%€]?")

# Other types of values, by how they begin.
_TYPES = (
    (
        "date",
        re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?!\d)"),
    ),
    ("time", re.compile(r"\d{1,2}:\d{2}(:\d{2})?$")),
    ("boolean", re.compile(r"(true|false)$", re.IGNORECASE)),
)

_MARKERS = {*MISSING_VALUES, *PUNCTUATION_MARKERS}

Rows = list[list[str]]


@dataclass(frozen=True)
class Dialect:
    """How the rows of a file are written.

    Attributes
    ----------
    separator : the character between values; a blank stands for white space
    quote : the quotation mark; None where quotation marks are letters like any other
    names : the names of the columns as the header has them, of which some may be empty
    skipped_lines : number of lines before the first row of values
    titles : the first values of rows before the header, such as a title, that are left out
    """

    separator: str
    quote: str | None
    names: Sequence[str]
    skipped_lines: int
    titles: Sequence[str] = ()


def detect_dialect(
    text: str, name: str, *, header: bool | None = None, expected: Collection[str] = ()
) -> Dialect:
    """Return the dialect of a file.

    Parameters
    ----------
    text : the file, or as many of its first lines as `SAMPLE_BYTES` hold
    header : whether the first row has the names of the columns; None decides by its values
    expected : names that some columns should have
    """
    expected = {one.strip() for one in expected}
    declared = re.match(r'\s*"?sep=([\x01-\x7e])"?[^\S\n]*\n', text)  # a line for Excel
    start = declared.end() if declared else 0
    comments = re.compile(r"(?:#[^\n]*\n|[^\S\n]*\n)*").match(text, start)
    end = comments.end() if comments else start
    rest, lines = text[end:], text.count("\n", 0, end)
    if not rest.strip():
        raise DataFileError(f"{name} has comments and no rows.")
    best = max(
        _samples(rest, declared[1] if declared else None, expected),
        key=lambda one: one.fit(expected),
    )
    if len(best.rows) < 2 and rest.count(best.quote) % 2:
        raise DataFileError(
            f"the first line of {name} has a quotation mark without its partner; correct it."
        )
    if header is False:
        return best.dialect([f"column_{k + 1}" for k in range(best.width)], lines)
    is_known = bool(expected) and expected <= {one.strip() for one in best.names}
    if header is None and not is_known and best.starts_with_values:
        names = best.split(text[start:end].strip().rpartition("\n")[2].lstrip("# "))
        if len(names) == best.width > 1:  # the last comment has the names
            return best.dialect(names, lines)
        raise DataFileError(
            f"the first line of {name} looks like values, {_shown(best.names)}, and not like the "
            "names of the columns; say --no-header if it has none, else --header."
        )
    return best.dialect(best.names, lines, has_header=True)


@dataclass(frozen=True)
class _Sample:
    """The first rows of a file, cut by a separator that may be the right one.

    Attributes
    ----------
    rows : the rows that are not blank
    lines : (n,) the number of lines up to the end of each
    """

    separator: str
    quote: str
    rows: Rows
    lines: Sequence[int]

    @cached_property
    def width(self) -> int:
        """The most frequent number of values of a row; of two, that of the first row."""
        counts = Counter(len(row) for row in self.rows)
        most = max(counts.values(), default=0)
        widths = [width for width, count in counts.items() if count == most]
        return max(widths, key=lambda width: (width == len(self.rows[0]), width), default=0)

    @cached_property
    def first(self) -> int:
        """The index of the row of names: the first, or one below titles of fewer values."""
        whole = [k for k, row in enumerate(self.rows) if len(row) == self.width]
        named = [k for k in whole if any(cell.strip() for cell in self.rows[k][1:])]
        found = min([*named, *whole][:1], default=0)
        if any(len(row) > self.width for row in self.rows[:found]) or self._is_one_short:
            return 0
        names, below = self.rows[found], self.rows[found + 1 :]
        return 0 if looks_like_values(names, below) else found

    @cached_property
    def names(self) -> list[str]:
        """The row of names, with an empty one where all rows have one value more."""
        names = self.rows[self.first]
        if not self._is_one_short:
            return names
        return [*names, ""] if self._ends_with_separators else ["", *names]

    @property
    def body(self) -> Rows:
        """The rows below the names."""
        return self.rows[self.first + 1 :]

    @cached_property
    def starts_with_values(self) -> bool:
        """Whether the row of names looks like a row of values."""
        return looks_like_values(self.names, self.body)

    @cached_property
    def _ends_with_separators(self) -> bool:
        return all(not row[-1].strip() for row in self.rows[1:])

    @cached_property
    def _is_one_short(self) -> bool:
        """Whether the first row has no name for a separator at the end of all rows, or row names.

        Between commas, where one value more may be the decimals of a number, row names are words
        that differ, or count the rows.
        """
        longer = {len(row) for row in self.rows[1:]} == {len(self.rows[0]) + 1}
        if longer and self._ends_with_separators:
            return True
        if longer and self.separator == ",":
            first = [row[0].strip() for row in self.rows[1:]]
            counts = first == [str(k + 1) for k in range(len(first))]
            differ = len(set(first)) == len(first) and not any(map(is_number, first))
            return len(first) > 2 and (counts or differ)
        return longer and any(map(is_number, self.rows[1]))

    def is_likely(self, expected: Collection[str]) -> bool:
        """Return whether white space separates values, though some may be blank.

        Nearly all rows have as many values as the header, or the header has the expected names.
        """
        width = len(self.names)
        if width < 3:
            return False
        if expected and set(expected) <= set(self.names):
            return True
        cells = [cell for row in self.body for cell in row]
        alike = sum(len(row) == width for row in self.body)
        return alike >= _MOST_ROWS * len(self.body) and 3 * sum(map(is_number, cells)) > len(cells)

    def fit(self, expected: Collection[str]) -> tuple[float, ...]:
        """Return how well the separator fits; larger is better."""
        if not self.rows:
            return (-1.0,)
        hits = len(set(expected) & {name.strip() for name in self.names})
        alike = sum(len(row) == len(self.names) for row in self.body) / max(1, len(self.body))
        cells = [cell for row in self.body for cell in row if cell.strip()]
        share = sum(map(is_number, cells)) / max(1, len(cells))
        return hits, alike >= 0.9, round(share, 1), -self.first, len(self.names)

    def dialect(
        self, names: Sequence[str], lines_before: int, *, has_header: bool = False
    ) -> Dialect:
        """Return the dialect with these names; the rows begin below the row of names if any is."""
        first = self.first
        if not has_header:  # all rows of full width are values
            first = next((k for k, row in enumerate(self.rows) if len(row) == self.width), 0)
        ends = [0, *self.lines]
        skipped = lines_before + ends[first + 1 if has_header else first]
        titles = [next(filter(None, row), "") for row in self.rows[:first]]
        return Dialect(self.separator, self.quote, names, skipped, titles)

    def split(self, line: str) -> list[str]:
        """Return the values of another line."""
        return next(read_rows(line, self.separator, self.quote), [])


def read_rows(
    text: str,
    separator: str,
    quote: str | None,
    escape: str | None = None,
    *,
    skip_blanks: bool = True,
) -> Iterator[list[str]]:
    """Return the rows of a text, read leniently: quotation marks in values, blanks before them."""
    text = text.replace("\r", " ")
    if separator == " ":
        text = re.sub(r"(?m)[ \t]+$", "", text).replace("\t", " ")
    return csv.reader(
        io.StringIO(text, newline="\n"), delimiter=separator, quotechar=quote,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE, escapechar=escape,
        skipinitialspace=skip_blanks,
    )  # fmt: skip


def is_number(value: str) -> bool:
    """Return whether a text is a number in some notation."""
    return _NUMBER.fullmatch(value.strip()) is not None


def looks_like_values(names: list[str], rows: Rows) -> bool:
    """Return whether a row is values, not names: of the types of the values below, or among them.

    Whole numbers that count up, such as years, may be names beside names that are words. A word
    over nothing but numbers is a name.
    """
    rows = [row for row in rows if row != names]  # files put together repeat the header
    filled = [(k, cell.strip()) for k, cell in enumerate(names) if cell.strip()]
    numbers = [cell for _, cell in filled if is_number(cell)]
    counting = _count_up(numbers)
    if len(numbers) == len(filled):
        return bool(filled) and not (counting and len(filled) < len(names))
    alike = 0
    for k, cell in filled:
        below = [row[k].strip() for row in rows if len(row) > k and row[k].strip()]
        types = [_type_of(value) for value in below if value not in _MARKERS]
        type_ = _type_of(cell)
        if type_ == "word":
            if types and cell not in _MARKERS and set(types) == {"number"}:
                return False
            alike += cell in below
        else:
            same = 2 * types.count(type_) > len(types)
            alike += same and not (type_ == "number" and counting)
    return 2 * alike >= len(filled)


def _count_up(numbers: Sequence[str]) -> bool:
    """Return whether texts are whole numbers one after the other, or years in their order."""
    if not all(cell.isdecimal() for cell in numbers):
        return False
    steps = [int(after) - int(before) for before, after in pairwise(numbers)]
    are_years = all(1800 <= int(cell) <= 2100 for cell in numbers)
    return all(step == 1 or (are_years and step > 0) for step in steps)


def _type_of(value: str) -> str:
    """Return the type of a value, as far as one can tell without the others."""
    if is_number(value):
        return "number"
    return next((name for name, pattern in _TYPES if pattern.match(value)), "word")


def _samples(text: str, declared: str | None, expected: Collection[str]) -> list[_Sample]:
    """Return the first rows cut by each separator in use, or by a rare one that fits exactly."""
    quote = _quote(text)
    if declared is not None:
        return [_sample(text, declared, quote)]
    if text.partition("\n")[0].strip(' "') in expected:  # a name without separators: one column
        return [_sample(text, "\x1f", quote)]
    found = [_sample(text, mark, quote) for mark in SEPARATORS]
    usual = [one for one in found if one.width > 1]
    if usual:
        return usual
    for one in (_sample(text, mark, quote) for mark in RARE_SEPARATORS):
        numbers = [is_number(cell) for row in one.body for cell in row]
        alike = {len(row) for row in one.body} == {len(one.names)}
        if one.width > 1 < len(one.rows[0]) and alike and 3 * sum(numbers) > len(numbers):
            return [one]
        if one.separator == " " and one.is_likely(expected):
            return [one]
    return found[:1]


def _sample(text: str, separator: str, quote: str) -> _Sample:
    reader = read_rows(text, separator, quote)
    rows, lines = [], []
    try:
        for row in reader:
            if len(row) > 1 or any(cell.strip() for cell in row):
                rows.append(row)
                lines.append(int(reader.line_num))  # type: ignore[attr-defined]
            if len(rows) == _SAMPLE_ROWS:
                break
    except csv.Error:  # a value longer than the module takes, after a mark without its partner
        pass
    return _Sample(separator, quote, rows, lines)


def _quote(text: str) -> str:
    """Return the quotation mark: the single one only where it encloses whole values."""
    if '"' in text:
        return '"'
    values = re.findall(r"(?:^|[,;\t|])[ ]?'[^'\n]*'(?=[ ]?(?:[,;\t|]|$))", text, re.MULTILINE)
    return "'" if 4 * len(values) > text.count("'") > 0 else '"'


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:4])
    return shown + (", …" if len(names) > 4 else "")
