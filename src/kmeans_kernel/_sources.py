"""Where rows come from that are not given as one matrix: blocks of them, one after the other."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
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
from kmeans_kernel._validation import as_floats, check_finite, class_factors
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

    def column_names(self, X: Any, y: Any) -> list[str] | None:
        """Return the names of the features, if they have some."""

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
        try:
            X = check_array(
                X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False,
                ensure_min_samples=0,
            )  # fmt: skip
            y = column_or_1d(y)
        except ValueError as error:
            raise ValueError(f"In block {number}: {error}") from error
        if X.shape[0] != len(y):
            raise ValueError(
                f"Block {number} has {X.shape[0]} rows and {len(y)} labels. Each row needs one."
            )
        if not len(y):
            return None
        if self.finite:
            check_finite(self.owner, X, where=f"block {number}, ")
            check_classification_targets(y)
        return Block(as_floats(X), y, self._weights(number, weights, len(y)))

    def _weights(self, number: int, given: list[Any], n: int) -> npt.NDArray[np.float64] | None:
        if not given or given[0] is None:
            return None
        weights = column_or_1d(given[0]).astype(np.float64)
        if len(weights) != n or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(
                f"sample_weight of block {number} must be {n} finite numbers of at least 0."
            )
        return cast("npt.NDArray[np.float64]", weights)


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
        lengths = {len(one) for one in (X, y, sample_weight) if one is not None}
        if len(lengths) != 1:
            raise ValueError(
                f"X has {len(X)} rows and y has {len(y)} labels; X, y and sample_weight must be "
                "of one length."
            )
        self.X, self.y, self.sample_weight = X, y, sample_weight
        self.rows = rows or max(1, BLOCK_BYTES // max(1, X.shape[1] * X.dtype.itemsize))

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        for start in range(0, len(self.X), self.rows):
            some = slice(start, start + self.rows)
            weights = None if self.sample_weight is None else self.sample_weight[some]
            yield self.X[some], self.y[some], weights
            _let_go(self.X)


def _let_go(X: Any) -> None:
    """Tell the system that what was read of a memory map need not stay in memory."""
    if isinstance(X, np.memmap) and hasattr(mmap, "MADV_DONTNEED") and X.mode != "c":
        X._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def visitor_of(owner: str, X: Any, y: Any, sample_weight: Any, workers: Workers) -> Visitor | None:
    """Return the way to the blocks of what was given; None if it is rows in memory."""
    check, edge = Check(owner), edge_for(X)
    if edge is not None:
        return edge.open_blocks(X, y, sample_weight, check)
    if isinstance(X, np.memmap) and X.nbytes > READ_WHOLE_UP_TO and X.ndim == 2:
        return Blocks(ArrayBlocks(X, y, sample_weight), check, workers)
    if not _gives_blocks(X):
        return None
    if isinstance(X, Iterator):
        raise ValueError(
            f"{owner} visits the blocks many times, and {type(X).__name__} gives them once. Give "
            "something that starts anew whenever it is iterated over: a list of blocks, or an "
            "object whose __iter__ opens the file."
        )
    if y is not None or sample_weight is not None:
        raise ValueError(
            f"{type(X).__name__} is taken for blocks of (X, y) or (X, y, sample_weight), so y and "
            "sample_weight must be in these: call fit(blocks)."
        )
    return Blocks(X, check, workers)


def _gives_blocks(X: Any) -> bool:
    """Say whether X is something that gives blocks, and no matrix, frame or list of rows."""
    if isinstance(X, LazyRows | str | PathLike | dict) or issparse(X) or hasattr(X, "__array__"):
        return False
    if hasattr(X, "__dataframe__") or hasattr(X, "shape") or not isinstance(X, Iterable):
        return False
    if isinstance(X, list | tuple):  # a list of rows is one, too
        return bool(X) and all(isinstance(one, tuple) and _is_block(one) for one in X)
    return True


def _is_block(one: tuple[Any, ...]) -> bool:
    return len(one) in (2, 3) and getattr(one[0], "ndim", len(getattr(one[0], "shape", ()))) == 2


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
        if (one.labels.dtype.kind in "OUS") != (first.labels.dtype.kind in "OUS"):
            raise ValueError(
                f"Labels must be of one type: block {first.number} has {first.labels.dtype}, "
                f"block {one.number} has {one.labels.dtype}."
            )
