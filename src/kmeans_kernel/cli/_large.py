"""Rows that do not fit into memory, or are on other machines: how `fit` reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from kmeans_kernel.cli._output import err
from kmeans_kernel.tables import DataFileError, Format

if TYPE_CHECKING:
    from kmeans_kernel.blocks import ParquetBlocks

# Bytes that a byte of a file takes as a table, with the copies that are made of it, about.
_GROWTH = {Format.csv: 4, Format.parquet: 12}

_SUFFIXES = {".csv": Format.csv, ".parquet": Format.parquet, ".pq": Format.parquet}


def large_kind(data: str, file_format: Format | None, *, wanted: bool) -> Format | None:
    """Return what a file, or a directory of Parquet files, is that is to be read in blocks.

    That is one that takes more than half of the memory that is free, or any if it is wanted so;
    None for all others.
    """
    path = Path(data)
    if path.is_dir() and any(path.glob("*.parquet")):
        return Format.parquet
    kind = file_format or _SUFFIXES.get(path.suffix)
    if kind not in _GROWTH or not path.is_file():
        if wanted:
            raise DataFileError(
                f"{data} cannot be read in blocks: that needs a Parquet file, a directory of some, "
                "or a CSV file."
            )
        return None
    large = path.stat().st_size * _GROWTH[kind] > free_memory() / 2
    return kind if wanted or large else None


def free_memory() -> float:
    """Return the bytes of memory that are free; without end where the system does not say."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as lines:
            free = next(line for line in lines if line.startswith("MemAvailable"))
        return 1024.0 * int(free.split()[1])
    except (OSError, StopIteration):
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


@contextmanager
def blocks_of(
    data: str, kind: Format, target: str | None, drop: list[str], *, drop_missing: bool, quiet: bool
) -> Iterator[ParquetBlocks]:
    """Give the rows in blocks; a CSV file becomes a Parquet file beside it first, for a while."""
    from kmeans_kernel.blocks import ParquetBlocks

    if target is None:
        raise DataFileError(f"{data} has rows in blocks; name the column of labels with --target.")
    path = Path(data)
    if not quiet:
        err.print(f"reading {data} in blocks")
    if kind is Format.parquet:
        yield ParquetBlocks(path, target, drop=drop, drop_missing=drop_missing)
        return
    import polars as pl

    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        file = Path(folder) / "rows.parquet"
        try:
            pl.scan_csv(path, infer_schema_length=10_000).sink_parquet(file)
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            raise DataFileError(f"{data} could not be read in blocks: {reason}") from error
        yield ParquetBlocks(file, target, drop=drop, drop_missing=drop_missing)


def fit_on_cluster(
    estimator: Any,
    address: str,
    data: str,
    kind: Format | None,
    target: str | None,
    drop: list[str],
) -> int:
    """Fit to a file, or a directory, that the workers of a Dask cluster read; return the rows."""
    import dask.dataframe as dd
    from distributed import Client

    from kmeans_kernel.distributed import fit_pipeline

    if kind is None or target is None:
        raise DataFileError(
            f"--dask reads Parquet or CSV files with a column of labels, --target; got {data}."
        )
    with Client(address, timeout="20s"):
        frame = (dd.read_csv if kind is Format.csv else dd.read_parquet)(data)
        unknown = [name for name in [target, *drop] if name not in frame.columns]
        if unknown:
            raise DataFileError(f"{data} has no column {unknown[0]!r}.")
        frame = frame.drop(columns=drop)
        fit_pipeline(estimator, frame, target)
        return int(frame[target].count().compute())
