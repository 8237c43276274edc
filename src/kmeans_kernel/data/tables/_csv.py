"""CSV in the variants in use: separators, quotes, blank lines, markers of missing values."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from typing import Any

from kmeans_kernel.data.tables._table import DataFileError, first_line

MISSING_VALUES = [
    "", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "Null", "NULL", "None", "none",
    "?",
]  # fmt: skip

SEPARATORS = ",;\t|"


def read_csv(content: bytes, name: str, target: str | None) -> Any:
    """Read CSV into a polars frame; the target column stays text, so that 007 does not become 7."""
    import polars as pl

    names, separator, text = _split_header(_decode(content, name), name)
    repeated = [column for column, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataFileError(f"{name} has two columns called {repeated[0]!r}; rename one.")
    try:
        # Column numbers replace the header in the text, since the parsed names may need quotes.
        frame = pl.read_csv(
            io.StringIO(separator.join(map(str, range(len(names)))) + "\n" + text),
            separator=separator,
            null_values=MISSING_VALUES,
            infer_schema_length=None,
            schema_overrides={str(names.index(target)): pl.String} if target in names else None,
        )
    except pl.exceptions.PolarsError as error:
        reason = first_line(error)
        if "more fields" in reason:
            reason = f"a row has more fields than the {len(names)} of the first line."
        raise DataFileError(f"{name} could not be read as csv: {reason}") from error
    frame.columns = names
    # Spaces around a value are not part of it; a value of spaces alone is missing.
    stripped = pl.col(pl.String).str.strip_chars()
    frame = frame.with_columns(
        pl.when(stripped.is_in(MISSING_VALUES)).then(None).otherwise(stripped).name.keep()
    )
    if len(frame) == 0:
        raise DataFileError(f"{name} has column names and no rows.")
    return frame


def _decode(content: bytes, name: str) -> str:
    """Decode UTF-8, normalize line ends to line feeds, and remove blank lines."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(f"{name} is not text in UTF-8; save it in UTF-8.") from error
    if "\0" in text[:4096]:
        raise DataFileError(f"{name} is not text, so it is no CSV; name its format with --format.")
    text = text.replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    text = text.strip("\n") + "\n"
    if not re.search(r"\n[^\S\n]*\n", text):
        return text
    lines, quoted = [], False  # a blank line inside quotes is part of a value
    for line in text.split("\n"):
        if line.strip() or quoted:
            lines.append(line)
        quoted ^= line.count('"') % 2 == 1
    return "\n".join(lines) + "\n"


def _split_header(text: str, name: str) -> tuple[list[str], str, str]:
    """Return the column names, the separator, and the text after the header.

    Column k without a name is called unnamed_k, counted from 1.
    """
    declared = re.match(r"sep=(.)\n", text)  # Excel writes the separator on a line of its own
    text = text[declared.end() :] if declared else text
    record = re.match(r'(?:[^"\n]|"(?:[^"]|"")*")*', text)
    header = record[0] if record else ""
    if text[len(header) : len(header) + 1] not in ("", "\n"):
        raise DataFileError(f"the first line of {name} has a quotation mark without its partner.")
    rest = text[len(header) + 1 :]
    separator = declared[1] if declared else _detect_separator(header, rest.partition("\n")[0])
    lines = io.StringIO(header, newline="")
    (parts,) = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    parts = [part.strip() for part in parts]
    names = [part or f"unnamed_{k + 1}" for k, part in enumerate(parts)]
    return names, separator, rest


def _detect_separator(header: str, row: str) -> str:
    """Detect the separator, ignoring quoted text.

    A candidate that occurs equally often in the header and the first row is preferred, then the
    most frequent one in the header.
    """
    quoted = re.compile(r'"(?:[^"]|"")*"')
    counts = {mark: quoted.sub("", header).count(mark) for mark in SEPARATORS}
    fits = {mark: n > 0 and quoted.sub("", row).count(mark) == n for mark, n in counts.items()}
    return max(SEPARATORS, key=lambda mark: (fits[mark], counts[mark]))
