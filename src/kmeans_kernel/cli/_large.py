"""Rows that do not fit into memory, or are on other machines: how `fit` reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kmeans_kernel.cli._output import err
from kmeans_kernel.data.tables import SUFFIXES, DataFileError, Format, TableBlocks
from kmeans_kernel.utils.files import parquet_files

# Bytes that a byte of a file takes as a table, with the copies that are made of it, about.
_GROWTH = {Format.csv: 4, Format.parquet: 12}

# Where Linux says how much a container may have, and has: for version 2 and 1 of its groups.
_LIMITS = [
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
]

# Seconds to wait for a scheduler, and for its first worker.
_PATIENCE = 20


def large_kind(data: str, file_format: Format | None, *, wanted: bool) -> Format | None:
    """Return what a file, or a directory of Parquet files, is that is to be read in blocks.

    That is one that takes more than half of the memory that is free, or any if it is wanted so;
    None for all others.
    """
    path = Path(data)
    if path.is_dir() and parquet_files(path):
        return Format.parquet
    kind = file_format or SUFFIXES.get(path.suffix)
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
    """Return the bytes that are free, of the machine and of the container that this runs in.

    It is without end where the system does not say.
    """
    return min(_free_of_machine(), *(_free_of_container(*files) for files in _LIMITS))


def _free_of_machine() -> float:
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


def _free_of_container(limit: str, used: str) -> float:
    try:
        most, now = (float(Path(file).read_text(encoding="ascii")) for file in (limit, used))
    except (OSError, ValueError):  # no container, or "max": no limit
        return float("inf")
    return max(0.0, most - now)


def blocks_of(
    data: str, kind: Format, target: str | None, drop: list[str], *, drop_missing: bool, quiet: bool
) -> TableBlocks:
    """Return the rows in blocks."""
    if target is None:
        raise DataFileError(f"{data} has rows in blocks; name the column of labels with --target.")
    if not quiet:
        err.print(f"reading {data} in blocks")
    return TableBlocks(Path(data), kind, target, drop, drop_missing=drop_missing)


def input_files(data: str) -> list[str | Path]:
    """Return what is read, which nothing may be written over."""
    path = Path(data)
    return [data, *(parquet_files(path) if path.is_dir() else [])]


def fit_on_cluster(
    estimator: Any,
    address: str,
    data: str,
    kind: Format,
    target: str | None,
    drop: list[str],
) -> int:
    """Fit to a file, or a directory, that the workers of a Dask cluster read; return the rows."""
    import dask.dataframe as dd
    from distributed import Client

    from kmeans_kernel.data._pipelines import fit_pipeline

    if target is None:
        raise DataFileError(f"name the column of labels of {data} with --target.")
    with Client(address, timeout=f"{_PATIENCE}s") as client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise DataFileError(f"the scheduler at {address} has no workers.") from error
        frame = (dd.read_csv if kind is Format.csv else dd.read_parquet)(data)
        unknown = [name for name in [target, *drop] if name not in frame.columns]
        if unknown:
            raise DataFileError(f"{data} has no column {unknown[0]!r}.")
        frame = frame.drop(columns=drop)
        fit_pipeline(estimator, frame, target)
        return int(estimator[-1].representative_counts_.sum())
