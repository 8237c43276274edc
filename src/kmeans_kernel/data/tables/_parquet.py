"""Parquet files read in blocks of rows; polars is imported when a file is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kmeans_kernel.data.tables._table import DataFileError, first_line, quoted_list

_SUFFIXES = (".parquet", ".pq")


def parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files of a directory in the order of their names, or the file itself."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)


def parquet_columns(file: Path) -> list[str]:
    """Return the column names of a Parquet file, from its footer alone."""
    import polars as pl

    with _read_errors(file):
        names: list[str] = pl.scan_parquet(file).collect_schema().names()
    return names


def parquet_blocks(
    files: Sequence[Path], rows: int, columns: Sequence[str] | None = None
) -> Iterator[tuple[Path, int, Any]]:
    """Yield (file, index of the block's first row in the file, polars frame), file by file.

    Parameters
    ----------
    files : Parquet files, as `parquet_files` lists them
    rows : number of rows of a block; the last block of a file may have fewer
    columns : names of the columns to read, in this order; None reads all
    """
    import polars as pl

    for file in files:
        found = parquet_columns(file)
        missing = [name for name in columns or () if name not in found]
        if missing:
            raise DataFileError(
                f"{file} has no column {missing[0]!r}; its columns are {quoted_list(found)}. All "
                "files of a directory need the same columns."
            )
        with _read_errors(file):
            lazy = pl.scan_parquet(file).select(found if columns is None else columns)
            n_rows = lazy.select(pl.len()).collect().item()
            for start in range(0, n_rows, rows):
                yield file, start, lazy.slice(start, rows).collect()


@contextmanager
def _read_errors(file: Path) -> Iterator[None]:
    """Raise errors of polars and of the system as a `DataFileError` that names the file."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataFileError(f"{file} could not be read as parquet: {first_line(error)}") from error
