"""Blocks of rows in this process: arrays, memory maps, Parquet files, anything that gives them.

A block is (X, y) or (X, y, sample_weight); the source gives the same blocks, in the same order,
each time it is iterated over.
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

from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.stream import Block, Part, T, Tell
from kmeans_kernel.utils.files import parquet_files
from kmeans_kernel.utils.validation import as_floats, check_finite, codes_of, is_count

# Arrays on disk are read in blocks if they are larger than this, of about so many bytes each.
READ_WHOLE_UP_TO = 1 << 30
BLOCK_BYTES = 32 << 20


@dataclass(frozen=True)
class Check:
    """What every block has to pass.

    Attributes
    ----------
    owner : the name of the estimator, for what is said
    finite : whether to look at every number, as the first visit does
    """

    owner: str
    finite: bool = True

    def __call__(self, number: int, rows: Any) -> Block | None:
        """Return a block, checked; None if it is empty."""
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
            codes_of(y)  # refuses labels that cannot be sorted
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
class Blocks:
    """Visits blocks in this process, as many at a time as there are workers.

    Attributes
    ----------
    source : gives the blocks, each time it is iterated over
    check : what they have to pass
    workers : who looks at them
    tell : hears how many rows of a visit were seen
    """

    source: Iterable[Any]
    check: Check
    workers: Workers = ALONE
    tell: Tell | None = None

    def sum(self, part: Part[T], only: frozenset[int] | None = None) -> T | None:
        """Return the sum over the blocks, or some of them, in their order."""

        def look(numbered: tuple[int, Any]) -> tuple[int, T | None]:
            number, rows = numbered
            block = self.check(number, rows)
            return (0, None) if block is None else (len(block.y), part(number, block))

        done = 0
        numbered = ((k, rows) for k, rows in enumerate(self.source) if only is None or k in only)
        total: T | None = None
        while some := list(islice(numbered, self.workers.count)):
            looked = self.workers.map(look, some)
            found = [one for _, one in looked if one is not None]
            done += sum(n for n, _ in looked)
            if self.tell is not None and only is None:
                self.tell(done)
            parts = found if total is None else [total, *found]
            total = reduce(add, parts) if parts else None
        return total

    def telling(self, tell: Tell) -> Blocks:
        """Return the same; it tells how many rows of a visit it has seen."""
        return replace(self, tell=tell)

    def trusting(self) -> Blocks:
        """Return the same without the look at every number, which once is enough for."""
        return replace(self, check=replace(self.check, finite=False))


class ArrayBlocks:
    """Blocks of arrays, or of whatever can be cut like them, on disk or elsewhere.

    Parameters
    ----------
    X : (n, d), anything that has a shape and gives an array for a slice: a memory map, a data set
        of an HDF5 or Zarr file
    y : (n,) labels
    sample_weight : (n,) or None for ones
    rows : how many make a block; about 32 MB of them by default
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
            _let_go(self.X)


def _let_go(X: Any) -> None:
    """Tell the system that what was read of a memory map need not stay in memory."""
    if is_mapped(X) and hasattr(mmap, "MADV_DONTNEED") and X.mode != "c":
        X._mmap.madvise(mmap.MADV_DONTNEED)


def is_mapped(X: Any) -> bool:
    """Say whether an array is on disk; a copy of one has its type, and is not."""
    return isinstance(X, np.memmap) and getattr(X, "_mmap", None) is not None


def refuse_one_shot(owner: str, blocks: Any) -> None:
    """Refuse what gives its blocks once."""
    if isinstance(blocks, Iterator):
        raise ValueError(
            f"{owner} visits the blocks many times, and {type(blocks).__name__} gives them once. "
            "Give something that starts anew whenever it is iterated over: a list of blocks, or an "
            "object whose __iter__ opens the file."
        )


class ParquetBlocks:
    """Blocks of the rows of Parquet files; it needs polars.

    Parameters
    ----------
    path : a file, or a directory whose files are read in the order of their names
    target : the column of the labels
    weight : the column of the weights, if there is one
    drop : columns that are no features
    drop_missing : whether to leave out rows with missing values; else they are an error
    rows : how many make a block; about 32 MB of them by default

    Attributes
    ----------
    feature_names : the columns that are features, in the order of the first file
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
            raise FileNotFoundError(f"{self.path} is no Parquet file, nor a directory of some.")
        columns = self._columns(self.files[0])
        for name in filter(None, [target, weight, *drop]):
            if name not in columns:
                raise ValueError(
                    f"{self.files[0]} has no column {name!r}; it has {', '.join(columns[:20])}."
                )
        others = {target, weight, *drop}
        self.feature_names = [name for name in columns if name not in others]
        if not self.feature_names:
            raise ValueError(f"{self.files[0]} has no column that is a feature.")
        self.rows = rows or max(1, BLOCK_BYTES // (8 * len(self.feature_names)))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        import polars as pl

        needed = [*self.feature_names, self.target, *filter(None, [self.weight])]
        for file in self.files:
            missing = [name for name in needed if name not in self._columns(file)]
            if missing:
                raise ValueError(f"{file} has no column {missing[0]!r}, which {self.files[0]} has.")
            frame = pl.scan_parquet(file).select(needed)
            n_rows = frame.select(pl.len()).collect().item()
            for start in range(0, n_rows, self.rows):
                yield self._block(file, start, frame.slice(start, self.rows).collect())

    def _block(self, file: Path, start: int, block: Any) -> tuple[Any, ...]:
        types = zip(block.columns, block.dtypes, strict=True)
        features = set(self.feature_names)
        words = [name for name, kind in types if name in features and not _is_number(kind)]
        if words:
            raise ValueError(
                f"{file} has columns that are no numbers: {', '.join(words[:5])}. Encode them, or "
                "name them in drop."
            )
        if self.drop_missing:
            block = block.drop_nulls().drop_nans()
        unlabelled = block[self.target].is_null()
        if unlabelled.any():
            raise ValueError(
                f"{file} has no label in column {self.target!r} at row "
                f"{start + unlabelled.arg_max()}. Leave such rows out; drop_missing does."
            )
        weights = None if self.weight is None else block[self.weight].to_numpy()
        return block.select(self.feature_names), block[self.target].to_numpy(), weights

    @staticmethod
    def _columns(file: Path) -> list[str]:
        import polars as pl

        names: list[str] = pl.scan_parquet(file).collect_schema().names()
        return names


def _is_number(kind: Any) -> bool:
    import polars as pl

    return bool(kind.is_numeric() or kind == pl.Boolean)


class TransformedBlocks:
    """Blocks that go through a function on their way.

    Parameters
    ----------
    blocks : re-iterable, of (X, y) or (X, y, sample_weight)
    function : of the rows of a block
    """

    def __init__(self, blocks: Iterable[Any], function: Callable[[Any], Any]) -> None:
        self.blocks, self.function = blocks, function

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for X, *others in self.blocks:
            if len(others[0]):
                yield self.function(X), *others
