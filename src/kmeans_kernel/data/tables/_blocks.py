"""CSV and Parquet files larger than memory, read in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.data.tables._content import Format
from kmeans_kernel.data.tables._csv import read_csv
from kmeans_kernel.data.tables._frames import labels_from_column, table_from_frame
from kmeans_kernel.data.tables._parquet import parquet_blocks, parquet_columns, parquet_files
from kmeans_kernel.data.tables._table import DataFileError

# Size of a block: bytes of CSV text, or values of a Parquet frame (32 MB as float64).
_TEXT_AT_A_TIME, _VALUES_PER_BLOCK = 1 << 24, 1 << 22


class TableBlocks:
    """Row blocks (X, y) of a CSV file, a Parquet file or a directory of Parquet files.

    Columns and labels are converted as `read_table` converts the whole file. The type of the
    labels depends on all of them (one text label makes all labels text), so the first iteration
    reads the file once before it yields.

    Parameters
    ----------
    path : the file or the directory
    kind : Format.csv or Format.parquet
    target : name of the label column
    drop, drop_missing : see `read_table`
    """

    def __init__(
        self, path: Path, kind: Format, target: str, drop: Sequence[str], *, drop_missing: bool
    ) -> None:
        self.path, self.kind, self.target = path, kind, target
        self.drop, self.drop_missing = drop, drop_missing
        self.features: Sequence[str] | None = None  # set by the first block, required of the rest

    def __iter__(self) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
        values, labels = self._labels
        for name, start, frame in self._frames():
            try:
                table = table_from_frame(
                    frame, name, target=self.target, labels=True, features=self.features,
                    drop=self.drop if self.features is None else (),
                    drop_missing=self.drop_missing,
                )  # fmt: skip
            except DataFileError as error:
                if not start:
                    raise
                raise DataFileError(f"{error} Rows are counted from row {start + 1}.") from error
            self.features = table.X.columns
            block_values = _label_values(frame[self.target].gather(table.rows))
            if len(block_values):
                yield table.X, labels[np.searchsorted(values, block_values)]

    @cached_property
    def _labels(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The sorted distinct values of the target column, and the label of each."""
        import polars as pl

        parts = []
        for name, _, frame in self._frames():
            if self.target not in frame.columns:
                raise DataFileError(f"{name} has no column {self.target!r}.")
            parts.append(frame[self.target].drop_nulls().unique())
        column = pl.concat(parts).unique()
        if column.dtype.is_float():
            column = column.drop_nans()
        values = np.unique(_label_values(column))
        return values, labels_from_column(pl.Series(self.target, values), str(self.path))

    def _frames(self) -> Iterator[tuple[str, int, Any]]:
        """Yield (file name, index of the frame's first row in the file, frame)."""
        return self._csv_frames() if self.kind is Format.csv else self._parquet_frames()

    def _csv_frames(self) -> Iterator[tuple[str, int, Any]]:
        start = 0
        for text in _csv_chunks(self.path):
            frame = read_csv(text, str(self.path), self.target)
            yield str(self.path), start, frame
            start += len(frame)

    def _parquet_frames(self) -> Iterator[tuple[str, int, Any]]:
        for file in parquet_files(self.path):
            rows = max(1, _VALUES_PER_BLOCK // max(1, len(parquet_columns(file))))
            for _, start, frame in parquet_blocks([file], rows):
                yield str(file), start, frame


def _label_values(column: Any) -> npt.NDArray[Any]:
    """Return a label column as an array: numbers and booleans unchanged, any other type as text."""
    import polars as pl

    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return np.asarray(column.to_numpy())
    return np.array(column.cast(pl.String).to_list(), dtype=str)


def _csv_chunks(path: Path) -> Iterator[bytes]:
    """Yield a CSV file in chunks of whole rows, each with the header line in front."""
    with path.open("rb") as file:
        header = file.readline()
        if header.removeprefix(b"\xef\xbb\xbf").startswith(b"sep="):  # Excel; the names follow
            header += file.readline()
        rest = b""
        while text := file.read(_TEXT_AT_A_TIME):
            rest += text
            end = _end_of_row(rest)
            if end:
                yield header + rest[:end]
                rest = rest[end:]
        if rest.strip():
            yield header + rest


def _end_of_row(text: bytes) -> int:
    """Return the end of the last whole row: the last line feed outside quotes, or 0."""
    end = text.rfind(b"\n")
    while end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, end)
    return end + 1
