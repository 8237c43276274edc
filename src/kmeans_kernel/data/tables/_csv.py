"""CSV as people write it: other separators, quotes, blank lines, marks for what is missing."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from typing import Any

from kmeans_kernel.data.tables._table import DataFileError, first_line

MISSING_MARKS = [
    "", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "Null", "NULL", "None", "none",
    "?",
]  # fmt: skip

SEPARATORS = ",;\t|"


def read_csv(content: bytes, name: str, target: str | None) -> Any:
    """Read text into a frame; the target stays text, so that 007 is not 7."""
    import polars as pl

    names, separator, text = _split_header(_text_of(content, name), name)
    twice = [part for part, count in Counter(names).items() if count > 1]
    if twice:
        raise DataFileError(f"{name} has two columns called {twice[0]!r}; rename one.")
    try:
        frame = pl.read_csv(
            io.StringIO(separator.join(map(str, range(len(names)))) + "\n" + text),
            separator=separator,
            null_values=MISSING_MARKS,
            infer_schema_length=None,
            schema_overrides={str(names.index(target)): pl.String} if target in names else None,
        )
    except pl.exceptions.PolarsError as error:
        told = first_line(error)
        if "more fields" in told:
            told = f"a row has more fields than the {len(names)} of the first line."
        raise DataFileError(f"{name} could not be read as csv: {told}") from error
    frame.columns = names
    # Spaces around a value do not belong to it, and a value of nothing else is missing.
    stripped = pl.col(pl.String).str.strip_chars()
    frame = frame.with_columns(
        pl.when(stripped.is_in(MISSING_MARKS)).then(None).otherwise(stripped).name.keep()
    )
    if len(frame) == 0:
        raise DataFileError(f"{name} has column names and no rows.")
    return frame


def _text_of(content: bytes, name: str) -> str:
    """Return the text of a file without blank lines, its lines ended by a line feed."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(f"{name} is not text in UTF-8; save it as that.") from error
    if "\0" in text[:4096]:
        raise DataFileError(f"{name} is not text, so it is no CSV; --format names another format.")
    text = text.replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    text = text.strip("\n") + "\n"
    if not re.search(r"\n[^\S\n]*\n", text):
        return text
    lines, inside = [], False  # a blank line within quotes belongs to a value
    for line in text.split("\n"):
        if line.strip() or inside:
            lines.append(line)
        inside ^= line.count('"') % 2 == 1
    return "\n".join(lines) + "\n"


def _split_header(text: str, name: str) -> tuple[list[str], str, str]:
    """Return the names of the columns, what separates them, and the text after them.

    A column without a name is called unnamed_ and its number.
    """
    told = re.match(r"sep=(.)\n", text)  # as a spreadsheet may write it
    text = text[told.end() :] if told else text
    record = re.match(r'(?:[^"\n]|"(?:[^"]|"")*")*', text)
    header = record[0] if record else ""
    if text[len(header) : len(header) + 1] not in ("", "\n"):
        raise DataFileError(f"the first line of {name} has a quotation mark without its partner.")
    rest = text[len(header) + 1 :]
    separator = told[1] if told else _separator_of(header, rest.partition("\n")[0])
    lines = io.StringIO(header, newline="")
    (parts,) = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    parts = [part.strip() for part in parts]
    names = [part or f"unnamed_{k + 1}" for k, part in enumerate(parts)]
    return names, separator, rest


def _separator_of(header: str, row: str) -> str:
    """Tell what separates the columns: what occurs as often in the first row, else most often."""
    quoted = re.compile(r'"(?:[^"]|"")*"')
    counts = {mark: quoted.sub("", header).count(mark) for mark in SEPARATORS}
    fits = {mark: n > 0 and quoted.sub("", row).count(mark) == n for mark, n in counts.items()}
    return max(SEPARATORS, key=lambda mark: (fits[mark], counts[mark]))
