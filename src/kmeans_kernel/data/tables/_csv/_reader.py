"""CSV in the dialects in use, read into a frame of text.

Rows are counted from 1 below the header in messages; blank lines are no rows.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.data.tables._csv._dialect import (
    SAMPLE_BYTES,
    Dialect,
    detect_dialect,
    is_number,
    read_rows,
)
from kmeans_kernel.data.tables._csv._records import Records, cut_records
from kmeans_kernel.data.tables._csv._text import decode
from kmeans_kernel.data.tables._table import DataFileError, Reading

# Lines that the dialect is told from, however long they are.
_LEAST_LINES = 20

# Values that rows may have beyond the header, all empty.
_MOST_EXTRA = 1000

# A line that databases and Markdown draw below the header.
_DASHES = r"(?::?-{3,}:?|:-+:?|-+:)"
_RULE = re.compile(rf"[\s|+,;]*{_DASHES}(?:[\s|+,;]+{_DASHES})*[\s|+,;]*|[\s|+,;-]*--[\s|+,;-]*")

# Lines without separators after the last row, such as a source, are no rows if there are so few.
_MOST_FOOTERS = 20


@dataclass(frozen=True, eq=False)
class RawTable:
    """A file as read: columns of text for CSV, of their types for Parquet.

    Attributes
    ----------
    frame : polars frame
    notes : sentences that say what was taken for granted
    separator : the separator of CSV, None for Parquet
    repeated : names that several columns have
    """

    frame: Any
    notes: tuple[str, ...] = ()
    separator: str | None = None
    repeated: tuple[str, ...] = ()


def read_csv(content: bytes, name: str, how: Reading, expected: Collection[str] = ()) -> RawTable:
    """Read CSV into a frame of text.

    Parameters
    ----------
    expected : names that some columns should have, by which the dialect is told
    """
    text = decode(content, name, how.encoding)
    dialect = detect_dialect(
        sample(text.content).decode(), name, header=how.header, expected=expected
    )
    below = _below(text.content, dialect.skipped_lines)
    written = _with_blanks(text.content[: len(text.content) - len(below)], dialect)
    names, several = column_names(written, expected)
    frame, notes = read_records(below, dialect, name)
    if dialect.titles:
        shown = repr(dialect.titles[0])
        notes = (f"the lines before the header of {name} were left out, the first is {shown}.",
                 *notes)  # fmt: skip
    frame.columns = names
    frame, repeated = _without_headers(frame, dialect.names)
    if not len(frame):
        raise DataFileError(f"{name} has column names and no rows.")
    listed = ", ".join(map(repr, several))
    renamed = (f"columns of the same name got a number, as in name_2: {listed}.",)
    notes = (*text.notes, *(renamed if several else ()), *notes, *repeated)
    return RawTable(frame, notes, dialect.separator, several)


def sample(text: bytes) -> bytes:
    """Return the first lines of a text, all whole: some even if they are very long."""
    end = 0
    for _ in range(_LEAST_LINES):
        end = text.find(b"\n", end) + 1
        if not end:
            return text
    return text[: max(end, text.rfind(b"\n", 0, SAMPLE_BYTES) + 1)]


def read_records(text: bytes, dialect: Dialect, name: str) -> tuple[Any, tuple[str, ...]]:
    """Return the rows of a text as a frame with columns "0", "1", …, and notes."""
    width = len(dialect.names)
    if width == 1:  # else blank lines are left out, those at the end too
        text = text.rstrip(b"\n") + b"\n" * text.endswith(b"\n")
    records = cut_records(text, dialect.separator, dialect.quote, width, name)
    records = _without_blanks(records, width)
    records, comments = _without_comments(records, width)
    records, notes = _without_footers(records, width)
    notes = (*comments, *notes)
    if not len(records):
        raise DataFileError(f"{name} has column names and no rows.")
    if dialect.separator == " ":
        _refuse_blank_cells(records, width, name)
    most = max(width, min(int(records.widths.max()), width + _MOST_EXTRA))
    frame = records.frame(most, name)
    _refuse_long_rows(frame, records, width, name)
    notes += _short_rows(records, width, name, is_cut_off=not text.endswith(b"\n"))
    return frame[:, :width], notes


def _with_blanks(head: bytes, dialect: Dialect) -> Sequence[str]:
    """Return the names of the columns with blanks in front, which the dialect is told without.

    They count where a frame has both "a" and " a", as pandas reads them.

    Parameters
    ----------
    head : the lines before the first row of values
    """
    last = head.removesuffix(b"\n").rpartition(b"\n")[2].decode()
    rows = read_rows(last, dialect.separator, dialect.quote, skip_blanks=False)
    try:
        cells = next(rows, [])
    except csv.Error:  # the last of several lines of names, cut within quotation marks
        return dialect.names
    same = list(map(bare_name, cells)) == list(map(bare_name, dialect.names))
    return cells if same else dialect.names


def _below(text: bytes, n_lines: int) -> bytes:
    """Return the text below its first lines."""
    end = 0
    for _ in range(n_lines):
        end = text.find(b"\n", end) + 1
        if not end:
            return b""
    return text[end:]


def column_names(
    written: Sequence[str], expected: Collection[str] = ()
) -> tuple[list[str], tuple[str, ...]]:
    """Return names of the columns that are all different, and those that several columns had.

    Column k without a name is called unnamed_k, counted from 1; the second x is called x_2.
    Blanks at the ends of a name are left out, unless it is expected with them.
    """
    names = [
        name if name.strip() and name in expected else bare_name(name) or f"unnamed_{k + 1}"
        for k, name in enumerate(written)
    ]
    counts, taken, found = Counter(names), set(names), []
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        number, unique = seen[name], name
        while number > 1 and unique in taken:
            unique = f"{name}_{number}"
            number += 1
        taken.add(unique)
        found.append(unique)
    return found, tuple(name for name, count in counts.items() if count > 1)


def bare_name(name: str) -> str:
    """Return the name of a column without blanks at its ends."""
    return name.strip(" \t\ufeff\u00a0")


def refuse_repeated_target(target: str | None, repeated: Sequence[str], name: str) -> None:
    """Raise DataFileError if several columns have the name of the labels."""
    if target in repeated:
        raise DataFileError(
            f"several columns of {name} are called {target!r}, so that --target may mean either; "
            "rename the others, or delete them."
        )


def _without_blanks(records: Records, width: int) -> Records:
    """Return the records without blank lines, and without a line of dashes below the header.

    In a table of one column blank lines are missing values.
    """
    if width == 1 or not len(records):
        return records
    blank = np.zeros(len(records), dtype=bool)
    for number in np.flatnonzero(records.widths == 1).tolist():
        blank[number] = not records.record(number).strip()
    blank[0] |= _RULE.fullmatch(records.record(0)) is not None
    return records.keep(~blank) if blank.any() else records


def _without_comments(records: Records, width: int) -> tuple[Records, tuple[str, ...]]:
    """Return the records without lines such as "# by hand" that have fewer values than rows."""
    first = np.frombuffer(records.text, np.uint8)[records.starts]
    found = np.flatnonzero((first == ord("#")) & (records.widths < width))
    comments = [
        row
        for row in found.tolist()
        if records.record(row).startswith("# ") or records.widths[row] == 1 < width - 1
    ]
    if not comments:
        return records, ()
    one = len(comments) == 1
    lines = "1 line that begins" if one else f"{len(comments)} lines that begin"
    note = (f"{lines} with # {'was' if one else 'were'} left out as comments: "
            f"{_shown(records.record(comments[0]))}.")  # fmt: skip
    return records.keep(~np.isin(np.arange(len(records)), comments)), (note,)


def _without_footers(records: Records, width: int) -> tuple[Records, tuple[str, ...]]:
    """Return the records without lines of text at the end that have no separators."""
    count = 0
    while (
        width > 2
        and count < min(_MOST_FOOTERS, len(records) - 1)
        and records.widths[-1 - count] == 1
        and not is_number(records.record(len(records) - 1 - count))
    ):
        count += 1
    if not count:
        return records, ()
    n_rows = len(records) - count
    lines = "1 line below the rows was" if count == 1 else f"{count} lines below the rows were"
    note = f"{lines} left out: {records.record(n_rows)!r}."
    return records.keep(np.arange(len(records)) < n_rows), (note,)


def _refuse_blank_cells(records: Records, width: int, name: str) -> None:
    """Raise DataFileError if rows between white space have too few or too many values.

    White space does not show which cell is blank, so that the values behind it would move.
    """
    wrong = np.flatnonzero(records.widths != width)
    if not len(wrong):
        return
    raise DataFileError(
        f"{_first_values(records, wrong, name)} between spaces, and "
        f"{_header_names(width, wrong, 'rows differ')}: a cell is blank, or a value has a space in "
        "it; save the table as CSV, or write NA into blank cells and values with spaces between "
        "quotation marks."
    )


def _first_values(records: Records, wrong: npt.NDArray[np.intp], name: str) -> str:
    """Return words for the first of some rows and the number of its values."""
    row = int(wrong[0])
    return f"data row {row + 1} of {name} has {records.widths[row]} values"


def _header_names(width: int, wrong: npt.NDArray[np.intp], others: str) -> str:
    """Return words for the width of the header, and for the number of rows that differ from it."""
    more = f" ({len(wrong)} {others})" if len(wrong) > 1 else ""
    return f"the header {width} names{more}"


def _refuse_long_rows(frame: Any, records: Records, width: int, name: str) -> None:
    """Raise DataFileError if a row has values beyond the header that are not empty."""
    import polars as pl

    if not (records.widths > width).any():
        return
    extra = frame[:, width:].select(
        pl.any_horizontal(pl.all().str.strip_chars().fill_null("") != "")
    ).to_series()  # fmt: skip
    wrong = extra.arg_true().to_numpy()
    if not len(wrong):
        return
    raise DataFileError(
        f"{_first_values(records, wrong, name)}, {_shown(records.record(int(wrong[0])))}, and "
        f"{_header_names(width, wrong, 'rows are too long')}; put values that contain the "
        f"separator {records.separator!r}, maybe as a decimal comma, between quotation marks."
    )


def _short_rows(records: Records, width: int, name: str, *, is_cut_off: bool) -> tuple[str, ...]:
    """Return a note about rows that lack values at the end; raise where it is not safe to go on."""
    short = np.flatnonzero(records.widths < width)
    if not len(short):
        return ()
    row = int(short[0])
    pairs = short[:-1][np.diff(short) == 1]
    broken = pairs[records.widths[pairs] + records.widths[pairs + 1] == width + 1]
    if len(broken):
        row = int(broken[0])
        raise DataFileError(
            f"data rows {row + 1} and {row + 2} of {name} look like one row with a line break, "
            f"{_shown(records.record(row))}; put values that contain line breaks between quotation "
            "marks."
        )
    if is_cut_off and row == len(records) - 1:
        raise DataFileError(
            f"{name} ends in the middle of data row {row + 1}, after {records.widths[row]} of "
            f"{width} values; copy the file again, or delete that row."
        )
    if len(short) == len(records) > 1 and len(set(records.widths.tolist())) == 1:
        raise DataFileError(
            f"all rows of {name} have {records.widths[0]} values, and the header {width} names; "
            "put names that contain the separator between quotation marks."
        )
    rows = "1 row has" if len(short) == 1 else f"{len(short)} rows have"
    return (f"{rows} fewer values than the header of {name} has names, the first is data row "
            f"{row + 1}; the values that lack at the end are missing.",)  # fmt: skip


def _without_headers(frame: Any, written: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """Return a frame without rows that repeat the header, as files put together have them."""
    import polars as pl

    names = [name.strip() for name in written]
    if len(names) < 2 or all(map(is_number, names)):
        return frame, ()
    equal = [
        pl.col(column).str.strip_chars().fill_null("") == name
        for column, name in zip(frame.columns, names, strict=True)
    ]
    if not frame.select(equal[0].any()).item():
        return frame, ()
    repeated = frame.select(pl.all_horizontal(equal)).to_series()
    count = int(repeated.sum())
    if not count:
        return frame, ()
    told = (
        "1 row that repeats the header was"
        if count == 1
        else (f"{count} rows that repeat the header were")
    )
    return frame.filter(~repeated), (f"{told} left out.",)


def _shown(record: str) -> str:
    return repr(record if len(record) <= 60 else record[:57] + "…")
