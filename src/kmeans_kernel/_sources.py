"""Where rows come from that are not given as one matrix: blocks of them, one after the other."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from importlib import import_module
from itertools import islice
from operator import add
from os import PathLike
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from kmeans_kernel._lazy import LazyRows
from kmeans_kernel._stream import Block, Look, Part, Seen, Stream, T, Tell, Visitor
from kmeans_kernel._validation import as_floats, check_finite, class_factors, codes_of, is_count
from kmeans_kernel._workers import ALONE, Workers

# Arrays on disk are read in blocks if they are larger than this, of about so many bytes each.
READ_WHOLE_UP_TO = 1 << 30
BLOCK_BYTES = 32 << 20

# Which module of ours knows the rows of another library, by the name of that library. They are
# edges, and import this one.
_EDGES = {"dask": "kmeans_kernel.distributed", "dask_expr": "kmeans_kernel.distributed"}


class Edge(Protocol):
    """A module that knows the rows of another library."""

    def open_blocks(self, X: Any, y: Any, sample_weight: Any, check: Check) -> Visitor:
        """Return the way to the blocks."""

    def type_of(self, X: Any) -> npt.DTypeLike:
        """Return the type that the numbers of the rows have in common."""

    def apply(self, function: Any, X: Any, example: npt.NDArray[Any]) -> Any:
        """Return a function of rows, of which `example` is what it gives for one, for all rows."""


def edge_for(X: Any) -> Edge | None:
    """Return the module of ours that knows these rows, if one has to."""
    name = _EDGES.get(type(X).__module__.split(".")[0])
    return None if name is None else cast(Edge, import_module(name))


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
    if _is_mapped(X) and hasattr(mmap, "MADV_DONTNEED") and X.mode != "c":
        X._mmap.madvise(mmap.MADV_DONTNEED)


def _is_mapped(X: Any) -> bool:
    """Say whether an array is on disk; a copy of one has its type, and is not."""
    return isinstance(X, np.memmap) and getattr(X, "_mmap", None) is not None


def visitor_of(owner: str, X: Any, y: Any, sample_weight: Any, workers: Workers) -> Visitor | None:
    """Return the way to the blocks of what was given; None if it is rows in memory."""
    check, edge = Check(owner), edge_for(X)
    if edge is not None:
        return edge.open_blocks(X, y, sample_weight, check)
    if isinstance(X, str | PathLike):
        raise ValueError(
            f"X is a path, {str(X)!r}. For Parquet files: "
            "fit(kmeans_kernel.blocks.ParquetBlocks(path, target))."
        )
    if _is_mapped(X) and X.nbytes > READ_WHOLE_UP_TO and X.ndim == 2:
        return Blocks(ArrayBlocks(X, y, sample_weight), check, workers)
    if not _gives_blocks(X):
        return None
    refuse_one_shot(owner, X)
    if y is not None or sample_weight is not None:
        raise ValueError(
            f"{type(X).__name__} is taken for blocks of (X, y) or (X, y, sample_weight), so y and "
            "sample_weight must be in these: call fit(blocks)."
        )
    return Blocks(X, check, workers)


def refuse_one_shot(owner: str, blocks: Any) -> None:
    """Refuse what gives its blocks once."""
    if isinstance(blocks, Iterator):
        raise ValueError(
            f"{owner} visits the blocks many times, and {type(blocks).__name__} gives them once. "
            "Give something that starts anew whenever it is iterated over: a list of blocks, or an "
            "object whose __iter__ opens the file."
        )


def _gives_blocks(X: Any) -> bool:
    """Say whether X is something that gives blocks, and no matrix, frame or list of rows."""
    if isinstance(X, LazyRows | dict) or issparse(X) or hasattr(X, "__array__"):
        return False
    if hasattr(X, "__dataframe__") or hasattr(X, "shape") or not isinstance(X, Iterable):
        return False
    if isinstance(X, list | tuple):  # a list of rows is one, too
        return bool(X) and all(isinstance(one, tuple | list) and _is_block(one) for one in X)
    return True


def _is_block(one: Sequence[Any]) -> bool:
    return len(one) in (2, 3) and len(getattr(one[0], "shape", ())) == 2


def open_stream(owner: str, visitor: Visitor, class_weight: Any) -> Stream:
    """Visit the blocks for the first time, and say what is wrong with them."""
    seen: list[Seen] = visitor.sum(Look()) or []
    if not seen:
        raise ValueError(f"{owner} found no rows: every block is empty.")
    _check_alike(seen)
    try:
        classes = np.unique(np.concatenate([one.labels for one in seen]))
    except TypeError as error:
        raise ValueError(
            "the labels of the blocks are of different types; convert them to one."
        ) from error
    if not len(classes):
        raise ValueError(f"{owner} found no row that has a weight above 0.")
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs at least two classes in y, got one class: {classes.tolist()[0]!r}. "
            "Check that the labels were read as intended."
        )
    stream = Stream(visitor.trusting(), seen, classes)
    factors = class_factors(owner, class_weight, classes, stream.class_weights)
    if factors is not None and not factors.all():
        raise ValueError(
            "a class_weight of 0 needs rows in memory; leave the rows of that class out of the "
            "blocks."
        )
    return replace(stream, factors=factors)


def _check_alike(seen: list[Seen]) -> None:
    first = seen[0]
    for one in seen:
        if one.n_features != first.n_features:
            raise ValueError(
                f"Blocks must have the same features: block {first.number} has "
                f"{first.n_features}, block {one.number} has {one.n_features}."
            )
        if one.sparse != first.sparse:
            raise ValueError(
                f"Blocks must be all dense or all sparse: block {first.number} and block "
                f"{one.number} differ."
            )
        if one.names != first.names:
            raise ValueError(
                f"Blocks must have the same columns, in the same order: those of block "
                f"{first.number} and block {one.number} differ."
            )
        if len(one.labels) and (one.labels.dtype.kind in "OUS") != (
            first.labels.dtype.kind in "OUS"
        ):
            raise ValueError(
                f"Labels must be of one type: block {first.number} has {first.labels.dtype}, "
                f"block {one.number} has {one.labels.dtype}."
            )
