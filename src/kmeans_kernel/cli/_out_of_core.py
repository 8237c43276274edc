"""Out-of-core fits: files read in blocks of rows, and files read by a Dask cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kmeans_kernel.cli._input import FileOptions
from kmeans_kernel.cli._output import err
from kmeans_kernel.data.tables import SUFFIXES, DataFileError, Format, Reading, TableBlocks
from kmeans_kernel.data.tables._parquet import parquet_files

# Approximate peak memory of a fit per byte of its file, including copies; Parquet is compressed.
_MEMORY_PER_FILE_BYTE = {Format.csv: 10, Format.parquet: 12}

# Memory limit and usage of a Linux container, for cgroups v2 and v1.
_CGROUP_FILES = [
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
]

# Timeout for a Dask scheduler, and for its first worker.
_DASK_TIMEOUT_SECONDS = 20


def block_format(data: str, file_format: Format | None, *, wanted: bool) -> Format | None:
    """Return the format of data that must be read in blocks, or None for data read at once.

    Blocks are used for a directory of Parquet files, for a file that would take more than half of
    the available memory, and for every file if `wanted`.
    """
    path = Path(data)
    if path.is_dir() and parquet_files(path):
        return Format.parquet
    kind = file_format or SUFFIXES.get(path.suffix)
    if kind not in _MEMORY_PER_FILE_BYTE or not path.is_file():
        if wanted:
            raise DataFileError(
                f"{data} cannot be read in blocks; use a CSV file, a Parquet file, or a directory "
                "of Parquet files."
            )
        return None
    large = path.stat().st_size * _MEMORY_PER_FILE_BYTE[kind] > available_memory() / 2
    return kind if wanted or large else None


def available_memory() -> float:
    """Return the available memory of the machine or its container in bytes; infinity if unknown."""
    return min(
        _available_on_machine(), *(_available_in_container(*files) for files in _CGROUP_FILES)
    )


def _available_on_machine() -> float:
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


def _available_in_container(limit: str, used: str) -> float:
    try:
        most, now = (float(Path(file).read_text(encoding="ascii")) for file in (limit, used))
    except (OSError, ValueError):  # no container, or the limit "max"
        return float("inf")
    return max(0.0, most - now)


def check_options(
    file: FileOptions, kinds: dict[str, str], cut_target: int | None, *, on_cluster: bool
) -> list[str]:
    """Return the columns to leave out; raise for options that need the whole file in memory."""
    others = sorted({kind for kind in kinds.values() if kind not in ("number", "drop")})
    if others or cut_target is not None:
        option = "--cut-target" if not others else f"--column-type with {others[0]}"
        raise DataFileError(
            f"data read in blocks must be numbers and classes, and {option} needs all rows at "
            "once; leave it out, or read a part of the data that fits into the memory."
        )
    if on_cluster and (file.drop_missing or file.reading != Reading()):
        raise DataFileError(
            "--drop-missing, --missing, --decimal, --dates, --header and --encoding cannot be used "
            "with --dask, whose workers read the data; leave them out."
        )
    dropped = [name for name, kind in kinds.items() if kind == "drop"]
    return [*file.drop, *dropped, *filter(None, [file.id_column])]


def open_blocks(
    data: str, kind: Format, file: FileOptions, drop: list[str], *, quiet: bool
) -> TableBlocks:
    """Return a source of row blocks."""
    if file.target is None:
        raise DataFileError(f"{data} is read in blocks; name the column of labels with --target.")
    if not quiet:
        err.print(f"reading {data} in blocks")
    return TableBlocks(
        Path(data), kind, file.target, drop, drop_missing=file.drop_missing, reading=file.reading
    )


def list_input_files(data: str) -> list[str | Path]:
    """Return all input files, which the output must not overwrite."""
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
    """Fit to data that the workers of a Dask cluster read; return the number of rows."""
    import dask.dataframe as dd
    from distributed import Client

    from kmeans_kernel.data._pipelines import fit_pipeline

    if target is None:
        raise DataFileError(f"{data} needs a column of labels; name it with --target.")
    with Client(address, timeout=f"{_DASK_TIMEOUT_SECONDS}s") as client:
        try:
            client.wait_for_workers(1, timeout=_DASK_TIMEOUT_SECONDS)
        except TimeoutError as error:
            raise DataFileError(
                f"the Dask scheduler at {address} had no workers within {_DASK_TIMEOUT_SECONDS} s; "
                "start at least one."
            ) from error
        frame = (dd.read_csv if kind is Format.csv else dd.read_parquet)(data)
        unknown = [name for name in [target, *drop] if name not in frame.columns]
        if unknown:
            raise DataFileError(
                f"{data} has no column {unknown[0]!r}; its first columns are "
                f"{', '.join(map(repr, frame.columns[:10]))}."
            )
        frame = frame.drop(columns=drop)
        fit_pipeline(estimator, frame, target)
        return int(estimator[-1].representative_counts_.sum())
