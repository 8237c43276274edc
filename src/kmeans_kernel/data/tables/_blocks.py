"""CSV and Parquet files larger than memory, read in blocks of rows, all features of numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.data.tables._columns._marks import decimal_marks
from kmeans_kernel.data.tables._columns._missing import without_markers
from kmeans_kernel.data.tables._columns._numbers import Survey, is_code, plain_numbers, read_numbers
from kmeans_kernel.data.tables._content import Format
from kmeans_kernel.data.tables._csv._dialect import SAMPLE_BYTES, Dialect, detect_dialect
from kmeans_kernel.data.tables._csv._reader import (
    column_names,
    read_records,
    refuse_repeated_target,
)
from kmeans_kernel.data.tables._csv._text import is_utf8, line_feeds
from kmeans_kernel.data.tables._frames import CLASS_WORDS, is_missing, labels_from_column
from kmeans_kernel.data.tables._parquet import parquet_blocks, parquet_columns, parquet_files
from kmeans_kernel.data.tables._table import (
    DataFileError,
    Notation,
    Reading,
    complete_rows,
    is_continuous,
    quoted_list,
)

# Size of a block: bytes of CSV text, or values of a Parquet frame (32 MB as float64).
_TEXT_AT_A_TIME, _VALUES_PER_BLOCK = 1 << 24, 1 << 22


# Lines that the dialect is told from at least, however long they are.
_FIRST_LINES = 20

# Numbers whose points may be those of thousands.
_THOUSANDS = r"^[-+]?\d{1,3}(?:\.\d{3})+$"


class TableBlocks:
    """Row blocks (X, y) of a CSV file, a Parquet file or a directory of Parquet files.

    All features must be numbers, or true and false: what other columns hold can be told only from
    all rows. The type of the labels depends on all of them (one text label makes all labels text),
    so the first iteration reads the file once before it yields.

    Parameters
    ----------
    path : the file or the directory
    kind : Format.csv, in UTF-8, or Format.parquet
    target : name of the label column
    drop, drop_missing, reading : see `read_table`

    Attributes
    ----------
    counts : (L,) number of rows of each of `classes` in the last whole pass; None before
    """

    def __init__(
        self,
        path: Path,
        kind: Format,
        target: str,
        drop: Sequence[str],
        *,
        drop_missing: bool,
        reading: Reading | None = None,
    ) -> None:
        self.path, self.kind, self.target = path, kind, target
        self.drop, self.drop_missing = drop, drop_missing
        self.reading = reading or Reading()
        self.features: Sequence[str] | None = None  # set by the first block, required of the rest
        self.counts: npt.NDArray[np.intp] | None = None  # rows of each label, set by a whole pass

    def __iter__(self) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
        values, labels = self._labels
        counts = np.zeros(len(values), dtype=np.intp)
        for name, start, frame in self._frames():
            try:
                X, rows = self._features(frame, name)
            except DataFileError as error:
                if not start:
                    raise
                raise DataFileError(f"{error} Rows are counted from row {start + 1}.") from error
            self.features = X.columns
            found = np.searchsorted(values, _label_values(frame[self.target].gather(rows)))
            counts += np.bincount(found, minlength=len(values))
            if len(found):
                yield X[rows], labels[found]
        self.counts = counts

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The label of each of the values of the target column, sorted."""
        return self._labels[1]

    @property
    def notation(self) -> Notation:
        """How the file was written, for files that the model reads later."""
        if self.kind is not Format.csv:
            return Notation()
        mark = self.reading.decimal or "point"
        return Notation(dict.fromkeys(self.features or (), mark), missing=self.reading.missing)

    @cached_property
    def _labels(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The sorted distinct values of the target column, and the label of each."""
        import polars as pl

        parts, n_rows = [], 0
        for name, _, frame in self._frames():
            if self.target not in frame.columns:
                raise DataFileError(
                    f"{name} has no column {self.target!r}; its columns are "
                    f"{quoted_list(frame.columns)}."
                )
            column = frame[self.target]
            parts.append(column.filter(pl.Series(~is_missing(column))).unique())
            n_rows += len(column)
        values = np.unique(_label_values(pl.concat(parts).unique()))
        if not len(values):
            raise DataFileError(f"no row of {self.path} has a label in {self.target!r}.")
        numbers = pl.Series(values).cast(pl.Float64, strict=False)
        if not numbers.null_count() and is_continuous(numbers.to_numpy(), n_rows):
            raise DataFileError(
                f"the column {self.target!r} of {self.path} has {len(values)} different numbers, "
                "which look like a quantity and not like classes; replace them by a few classes."
            )
        return values, labels_from_column(pl.Series(self.target, values), str(self.path))

    def _features(self, frame: Any, name: str) -> tuple[Any, npt.NDArray[np.intp]]:
        """Return the features of a block as Float64, and the rows to keep."""
        chosen = self.features or self._chosen(frame.columns, name)
        columns = [_as_float64(frame[column], self.reading.decimal) for column in chosen]
        self._refuse_undecided_marks(frame.select(chosen), name)
        wrong = [k for k, column in enumerate(columns) if column is None]
        if wrong:
            raise DataFileError(_not_numbers(frame.select(chosen[k] for k in wrong), name))
        X = frame.select(columns)
        rows = complete_rows(
            X.to_numpy(),
            is_missing(frame[self.target]),
            name,
            lambda feature: f"column {chosen[feature]!r}",
            drop_missing=self.drop_missing,
        )
        return X, rows

    def _refuse_undecided_marks(self, frame: Any, name: str) -> None:
        """Raise DataFileError for numbers that have decimals with one mark, thousands with another.

        1.234 has decimals between commas; between semicolons, as in countries with a decimal comma,
        it may have thousands.
        """
        import polars as pl

        if self.kind is not Format.csv or self.reading.decimal or self._dialect.separator == ",":
            return
        found = {
            column.name: Survey.of(column)
            for column in frame
            if column.dtype == pl.String and column.str.contains(_THOUSANDS).any()
        }
        for column in decimal_marks(found, self._dialect.separator).undecided:
            raise DataFileError(
                f"{column!r} of {name} may have decimals or thousands, as in "
                f"{found[column].text.drop_nulls()[0]!r}; add --decimal comma or --decimal point."
            )

    def _chosen(self, columns: Sequence[str], name: str) -> list[str]:
        """Return the names of the features: all but the target and the dropped ones."""
        absent = [column for column in self.drop if column not in columns]
        if absent:
            raise DataFileError(
                f"{name} has no column {quoted_list(absent)}; its columns are "
                f"{quoted_list(columns)}."
            )
        chosen = [column for column in columns if column not in (self.target, *self.drop)]
        if not chosen:
            raise DataFileError(f"{name} has no column of features beside {self.target!r}.")
        return chosen

    def _frames(self) -> Iterator[tuple[str, int, Any]]:
        """Yield (file name, index of the frame's first row in the file, frame)."""
        return self._csv_frames() if self.kind is Format.csv else self._parquet_frames()

    def _csv_frames(self) -> Iterator[tuple[str, int, Any]]:
        start, name = 0, str(self.path)
        dialect = self._dialect
        names, several = column_names(dialect.names, {self.target, *self.drop})
        refuse_repeated_target(self.target, several, name)
        for text in _csv_chunks(self.path, dialect):
            frame, _ = read_records(text, dialect, name)
            frame.columns = names
            yield (
                name,
                start,
                without_markers(frame, self.reading.missing, {self.target: CLASS_WORDS}),
            )
            start += len(frame)

    @cached_property
    def _dialect(self) -> Dialect:
        with self.path.open("rb") as file:
            first = b"".join(islice(file, _FIRST_LINES))
            start = file.read(SAMPLE_BYTES)
        if len(start) == SAMPLE_BYTES:
            start = start[: start.rfind(b"\n") + 1]
        text = line_feeds((first + start).removeprefix(b"\xef\xbb\xbf"))
        _check_utf8(text, str(self.path))
        expected = {self.target, *self.drop}
        how = self.reading
        return detect_dialect(text.decode(), str(self.path), header=how.header, expected=expected)

    def _parquet_frames(self) -> Iterator[tuple[str, int, Any]]:
        for file in parquet_files(self.path):
            rows = max(1, _VALUES_PER_BLOCK // max(1, len(parquet_columns(file))))
            for _, start, frame in parquet_blocks([file], rows):
                yield str(file), start, frame


def _as_float64(column: Any, decimal: str | None) -> Any | None:
    """Return a column as Float64 with nulls for NaN, None if it is not numeric.

    Text that reads as numbers, or as true and false, is converted.
    """
    import polars as pl

    kind = column.dtype
    if kind in (pl.String, pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
        lowered = column.str.to_lowercase()
        if lowered.drop_nulls().is_in(["true", "false"]).all():
            return (lowered == "true").cast(pl.Float64).alias(column.name)
        if is_code(column):
            return None
        numbers = plain_numbers(column)
        if decimal == "comma":
            numbers = read_numbers(Survey.of(column), "comma").alias(column.name)
            numbers = numbers if numbers.null_count() == column.null_count() else None
        return None if numbers is None else numbers.cast(pl.Float64).fill_nan(None)
    if kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        return column.cast(pl.Float64).fill_nan(None)
    return None


def _not_numbers(columns: Any, name: str) -> str:
    """Return what to say of columns of a block that are no numbers."""
    import polars as pl

    told = []
    for column in columns:
        if column.dtype == pl.String:
            other = column.is_not_null() & column.cast(pl.Float64, strict=False).is_null()
            is_identifier = not other.any()
            if is_identifier:
                other = column.str.contains(r"^[+-]?0\d|\d{16}").fill_null(value=False)
            row = int(other.arg_max())
            what = ", an identifier" if is_identifier else ""
            told.append(f"{column.name!r} has {column[row]!r} in data row {row + 1}{what}")
        else:
            told.append(f"{column.name!r} holds {str(column.dtype).split('(')[0].lower()}")
    options = " ".join(f"--drop {shlex.quote(column)}" for column in columns.columns)
    return (
        f"{name} is read in blocks, where all features must be numbers with a decimal point: "
        f"{', '.join(told)}; add {options}, --decimal comma if they have one, or read the file at "
        "once, without --blocks."
    )


def _label_values(column: Any) -> npt.NDArray[Any]:
    """Return a label column as an array: numbers and booleans unchanged, any other type as text."""
    import polars as pl

    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return np.asarray(column.to_numpy())
    return np.array(column.cast(pl.String).to_list(), dtype=str)


def _csv_chunks(path: Path, dialect: Dialect) -> Iterator[bytes]:
    """Yield the rows of a CSV file in chunks of whole rows."""
    with path.open("rb") as file:
        for _ in range(dialect.skipped_lines):
            file.readline()
        rest = b""
        while text := file.read(_TEXT_AT_A_TIME):
            rest += text
            end = _end_of_row(rest)
            if rest[:end].strip():
                yield _checked(rest[:end], path)
            rest = rest[end:]
        if rest.strip():
            yield _checked(rest, path)


def _checked(text: bytes, path: Path) -> bytes:
    _check_utf8(text, str(path))
    return line_feeds(text)


def _check_utf8(text: bytes, name: str) -> None:
    if b"\0" in text or not is_utf8(text):
        raise DataFileError(
            f"{name} is read in blocks, and for that must be text in UTF-8; save it in UTF-8, or "
            "as Parquet."
        )


def _end_of_row(text: bytes) -> int:
    """Return the end of the last whole row: the last line feed outside quotes, or 0."""
    end = text.rfind(b"\n")
    while end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, end)
    return end + 1
