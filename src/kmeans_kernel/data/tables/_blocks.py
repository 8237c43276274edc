"""Files that are larger than memory: their rows, some at a time, read as those of any file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.data.tables._content import Format
from kmeans_kernel.data.tables._csv import read_csv
from kmeans_kernel.data.tables._frames import labels_of, table_of_frame
from kmeans_kernel.data.tables._table import DataFileError, first_line
from kmeans_kernel.utils.files import parquet_files

# Bytes of text, and numbers of a frame, that make a block.
_TEXT_AT_A_TIME, _NUMBERS_AT_A_TIME = 1 << 24, 1 << 22


class TableBlocks:
    """The rows of a CSV or Parquet file, or of a directory of Parquet files, in blocks.

    Parameters
    ----------
    path : the file or the directory
    kind : CSV or Parquet
    target : the column of the labels
    drop, drop_missing : see `read_table`
    """

    def __init__(
        self, path: Path, kind: Format, target: str, drop: Sequence[str], *, drop_missing: bool
    ) -> None:
        self.path, self.kind, self.target = path, kind, target
        self.drop, self.drop_missing = drop, drop_missing
        self.features: Sequence[str] | None = None  # those of the first block, then of all

    def __iter__(self) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
        known, labels = self._labels
        for name, start, frame in self._frames():
            try:
                table = table_of_frame(
                    frame, name, target=self.target, labels=True, features=self.features,
                    drop=self.drop if self.features is None else (),
                    drop_missing=self.drop_missing,
                )  # fmt: skip
            except DataFileError as error:
                if not start:
                    raise
                raise DataFileError(f"{error} Rows are counted from row {start + 1}.") from error
            self.features = table.X.columns
            mine = _values(frame[self.target].gather(table.rows))
            if len(mine):
                yield table.X, labels[np.searchsorted(known, mine)]

    @cached_property
    def _labels(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The values of the target, in order, and the labels they are, as in the whole file."""
        import polars as pl

        found = []
        for name, _, frame in self._frames():
            if self.target not in frame.columns:
                raise DataFileError(f"{name} has no column {self.target!r}.")
            found.append(frame[self.target].drop_nulls().unique())
        column = pl.concat(found).unique()
        if column.dtype.is_float():
            column = column.drop_nans()
        known = np.unique(_values(column))
        return known, labels_of(pl.Series(self.target, known), str(self.path))

    def _frames(self) -> Iterator[tuple[str, int, Any]]:
        """Give the name of a file, the rows before, and a frame of rows."""
        return self._csv_frames() if self.kind is Format.csv else self._parquet_frames()

    def _csv_frames(self) -> Iterator[tuple[str, int, Any]]:
        start = 0
        for text in _pieces(self.path):
            frame = read_csv(text, str(self.path), self.target)
            yield str(self.path), start, frame
            start += len(frame)

    def _parquet_frames(self) -> Iterator[tuple[str, int, Any]]:
        import polars as pl

        for file in parquet_files(self.path):
            try:
                lazy = pl.scan_parquet(file)
                width = len(lazy.collect_schema())
                n_rows = lazy.select(pl.len()).collect().item()
                size = max(1, _NUMBERS_AT_A_TIME // max(1, width))
                for start in range(0, n_rows, size):
                    yield str(file), start, lazy.slice(start, size).collect()
            except (pl.exceptions.PolarsError, OSError) as error:
                told = first_line(error)
                raise DataFileError(f"{file} could not be read as parquet: {told}") from error


def _values(column: Any) -> npt.NDArray[Any]:
    """Return a column of labels as it is: numbers, or text."""
    import polars as pl

    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return np.asarray(column.to_numpy())
    return np.array(column.cast(pl.String).to_list(), dtype=str)


def _pieces(path: Path) -> Iterator[bytes]:
    """Give a CSV file in parts, each with the first line, cut where a row ends."""
    with path.open("rb") as file:
        header = file.readline()
        if header.removeprefix(b"\xef\xbb\xbf").startswith(b"sep="):
            header += file.readline()
        rest = b""
        while piece := file.read(_TEXT_AT_A_TIME):
            rest += piece
            end = _end_of_row(rest)
            if end:
                yield header + rest[:end]
                rest = rest[end:]
        if rest.strip():
            yield header + rest


def _end_of_row(text: bytes) -> int:
    """Return where the last whole row ends: at a line feed that is not within quotes."""
    end = text.rfind(b"\n")
    while end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, end)
    return end + 1
