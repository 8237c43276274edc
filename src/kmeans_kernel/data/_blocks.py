"""Row blocks in this process: of arrays, memory maps, Parquet files or any re-iterable.

A block is (X, y) or (X, y, sample_weight). Every iteration yields the same blocks, in the same
order.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from operator import add
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.stream import Block, BlockFunction, T
from kmeans_kernel.data.tables._parquet import parquet_blocks, parquet_columns, parquet_files
from kmeans_kernel.utils.validation import as_floats, check_finite, codes_of, is_count

# Memory maps of more than `READ_WHOLE_UP_TO` bytes are read in blocks of about `BLOCK_BYTES`.
READ_WHOLE_UP_TO = 1 << 30
BLOCK_BYTES = 32 << 20


@dataclass(frozen=True)
class BlockCheck:
    """Validates a block: shapes, types, weights, finite numbers.

    Attributes
    ----------
    owner : the name of the estimator, for error messages
    finite : whether to check every number, as in the first pass
    """

    owner: str
    finite: bool = True

    def __call__(self, number: int, rows: Any) -> Block | None:
        """Return the validated block; None if it has no rows."""
        if not isinstance(rows, tuple | list) or len(rows) not in (2, 3):
            raise ValueError(
                f"{self.owner} needs blocks of (X, y) or (X, y, sample_weight), got "
                f"{type(rows).__name__} as block {number}."
            )
        X, y, *weights = rows
        if not np.shape(y)[:1] or not np.shape(y)[0]:
            return None
        names = getattr(X, "columns", None)
        try:
            X = check_array(
                X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False,
                ensure_min_samples=0,
            )  # fmt: skip
            y = column_or_1d(y)
        except (ValueError, TypeError) as error:
            raise ValueError(f"In block {number}: {error}") from error
        if X.shape[0] != len(y):
            raise ValueError(
                f"Block {number} has {X.shape[0]} rows and {len(y)} labels. Each row needs one."
            )
        if self.finite:
            check_finite(self.owner, X, names, where=f"block {number}, ")
            codes_of(y)  # raises for labels that cannot be sorted
            check_classification_targets(y)
        named = tuple(names) if names is not None else ()
        known = bool(named) and all(isinstance(name, str) for name in named)
        checked = self._weights(number, weights, len(y))
        return Block(as_floats(X), y, checked, named if known else None)

    def _weights(self, number: int, given: list[Any], n: int) -> npt.NDArray[np.float64] | None:
        if not given or given[0] is None:
            return None
        weights = np.asarray(given[0], dtype=np.float64)
        if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(
                f"sample_weight of block {number} must be {n} finite numbers of at least 0."
            )
        return weights


@dataclass(frozen=True, eq=False)
class LocalSource:
    """A `RowSource` of blocks in this process; holds as many blocks at a time as workers.

    Attributes
    ----------
    blocks : re-iterable of blocks
    check : validates a block
    executor : runs a function on several blocks at a time
    on_rows : callback for the number of rows read so far in a pass; None for none
    """

    blocks: Iterable[Any]
    check: BlockCheck
    executor: Executor = SERIAL
    on_rows: Callable[[int], None] | None = None

    def sum(self, part: BlockFunction[T], only: frozenset[int] | None = None) -> T | None:
        """Return the sum over the blocks, or over those in `only`, in their order."""

        def value(numbered: tuple[int, Any]) -> tuple[int, T | None]:
            number, rows = numbered
            block = self.check(number, rows)
            return (0, None) if block is None else (len(block.y), part(number, block))

        done = 0
        end = None if only is None else max(only, default=-1) + 1  # no block behind it is read
        read = enumerate(islice(self.blocks, end))
        numbered = ((k, rows) for k, rows in read if only is None or k in only)
        total: T | None = None
        while some := list(islice(numbered, self.executor.count)):
            values = self.executor.map(value, some)
            found = [one for _, one in values if one is not None]
            done += sum(n for n, _ in values)
            if self.on_rows is not None and only is None:
                self.on_rows(done)
            parts = found if total is None else [total, *found]
            total = reduce(add, parts) if parts else None
        return total

    def run_by(self, executor: Executor) -> LocalSource:
        """Return the source with an executor for its passes."""
        return replace(self, executor=executor)

    def with_progress(self, on_rows: Callable[[int], None]) -> LocalSource:
        """Return the source with a callback for the number of rows read so far in a pass."""
        return replace(self, on_rows=on_rows)

    def unchecked(self) -> LocalSource:
        """Return the source without the check for finite numbers, made in the first pass."""
        return replace(self, check=replace(self.check, finite=False))


class ArrayBlocks:
    """Row blocks of an array, or of an array-like on disk.

    Parameters
    ----------
    X : (n, d) array, or object with a shape, a dtype and slices of rows: a memory map, a data set
        of an HDF5 or Zarr file
    y : (n,) labels
    sample_weight : (n,) sample weights; None for ones
    rows : number of rows of a block; by default about 32 MB
    """

    def __init__(
        self, X: Any, y: Any, sample_weight: Any = None, *, rows: int | None = None
    ) -> None:
        if len(getattr(X, "shape", ())) != 2 or not hasattr(X, "dtype"):
            raise ValueError(
                f"X must be an array of two dimensions, or be cut like one, got {type(X).__name__}."
            )
        if y is None:
            raise ValueError("ArrayBlocks needs y, the labels of the rows, got None.")
        if rows is not None and not is_count(rows):
            raise ValueError(f"rows must be a whole number of at least 1, got {rows!r}.")
        lengths = {"X": X.shape[0], "y": len(y)}
        if sample_weight is not None:
            lengths["sample_weight"] = len(sample_weight)
        if len(set(lengths.values())) != 1:
            told = ", ".join(f"{name} has {n}" for name, n in lengths.items())
            raise ValueError(f"X, y and sample_weight must be of one length, and {told}.")
        self.X, self.y, self.sample_weight = X, y, sample_weight
        self.rows = rows or max(1, BLOCK_BYTES // max(1, X.shape[1] * X.dtype.itemsize))

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        for start in range(0, self.X.shape[0], self.rows):
            some = slice(start, start + self.rows)
            weights = None if self.sample_weight is None else self.sample_weight[some]
            yield self.X[some], self.y[some], weights
            _release_pages(self.X)


def _release_pages(X: Any) -> None:
    """Let the system drop the pages of a memory map that were read (madvise DONTNEED)."""
    if is_mapped(X) and hasattr(mmap, "MADV_DONTNEED") and X.mode != "c":
        X._mmap.madvise(mmap.MADV_DONTNEED)


def is_mapped(X: Any) -> bool:
    """Return whether an array is a memory map; a copy of a map has its type but no map."""
    return isinstance(X, np.memmap) and getattr(X, "_mmap", None) is not None


def refuse_one_shot(owner: str, blocks: Any) -> None:
    """Raise ValueError for an iterator or generator, which yields its blocks only once."""
    if isinstance(blocks, Iterator):
        raise ValueError(
            f"{owner} reads the blocks many times, and {type(blocks).__name__} gives them once. "
            "Give something that starts anew whenever it is iterated over: a list of blocks, or an "
            "object whose __iter__ opens the file."
        )


class ParquetBlocks:
    """Row blocks of Parquet files. Needs polars.

    Parameters
    ----------
    path : a Parquet file, or a directory whose Parquet files are read in the order of their names
    target : name of the label column
    weight : name of the sample weight column; None for weights of one
    drop : names of columns that are not features
    drop_missing : True leaves out rows with missing values; False makes them an error
    rows : number of rows of a block; by default about 32 MB

    Attributes
    ----------
    feature_names : names of the feature columns, in the order of the first file
    """

    def __init__(
        self,
        path: str | PathLike[str],
        target: str,
        *,
        weight: str | None = None,
        drop: Sequence[str] = (),
        drop_missing: bool = False,
        rows: int | None = None,
    ) -> None:
        self.path, self.target, self.weight = Path(path), target, weight
        self.drop_missing = drop_missing
        self.files = parquet_files(self.path)
        if not self.files or not self.files[0].exists():
            raise FileNotFoundError(
                f"{self.path} is no Parquet file, and no directory with Parquet files."
            )
        columns = parquet_columns(self.files[0])
        for name in filter(None, [target, weight, *drop]):
            if name not in columns:
                raise ValueError(
                    f"{self.files[0]} has no column {name!r}; it has {', '.join(columns[:20])}."
                )
        others = {target, weight, *drop}
        self.feature_names = [name for name in columns if name not in others]
        if not self.feature_names:
            raise ValueError(
                f"{self.files[0]} has no feature column beside the label, the weight and the "
                "dropped columns."
            )
        self.rows = rows or max(1, BLOCK_BYTES // (8 * len(self.feature_names)))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        needed = [*self.feature_names, self.target, *filter(None, [self.weight])]
        for file, start, frame in parquet_blocks(self.files, self.rows, needed):
            yield self._block(file, start, frame)

    def _block(self, file: Path, start: int, block: Any) -> tuple[Any, ...]:
        """Return (X, y, weights) of a frame; `start`, its first row in the file, is for errors."""
        text = [name for name in self.feature_names if not _is_numeric(block[name].dtype)]
        if text:
            raise ValueError(
                f"{file} has columns that are no numbers: {', '.join(text[:5])}. Encode them, or "
                "name them in drop."
            )
        if self.drop_missing:
            block = block.drop_nulls().drop_nans()
        unlabelled = block[self.target].is_null()
        if unlabelled.any():
            raise ValueError(
                f"{file} has no label in column {self.target!r} at row "
                f"{start + unlabelled.arg_max()}. Pass drop_missing=True to leave such rows out."
            )
        weights = None if self.weight is None else block[self.weight].to_numpy()
        return block.select(self.feature_names), block[self.target].to_numpy(), weights


def _is_numeric(dtype: Any) -> bool:
    import polars as pl

    return bool(dtype.is_numeric() or dtype == pl.Boolean)


class TransformedBlocks:
    """Row blocks with a function applied to X, such as `transform` of a fitted step.

    Parameters
    ----------
    blocks : re-iterable of (X, y) or (X, y, sample_weight)
    function : maps the X of a block
    """

    def __init__(self, blocks: Iterable[Any], function: Callable[[Any], Any]) -> None:
        self.blocks, self.function = blocks, function

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for X, *others in self.blocks:
            if len(others[0]):
                yield self.function(X), *others
