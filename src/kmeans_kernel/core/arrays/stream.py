"""Out-of-core rows: training reads them as sums of a function over row blocks.

The rows may be in a file larger than memory, or on other machines. A `RowSource` reads the blocks
and adds up a function of each; a `RowStream` is the labelled rows of a source, with the summaries
of the blocks from the first pass. The functions are picklable records without hidden state, so that
they can be sent to the workers that hold the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.execution import Executor
from kmeans_kernel.core.arrays.matrices import Array, IntArray, Matrix, is_sparse, join_rows
from kmeans_kernel.core.arrays.rows import LabelledRows, LengthSums
from kmeans_kernel.core.arrays.sphere import PLAIN_MAP, SphereMap

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Block(NamedTuple):
    """A block of rows as read from its source.

    Attributes
    ----------
    X : (n, d) finite floats, dense or sparse
    y : (n,) labels
    weights : (n,) sample weights; None for ones
    names : names of the features; None if they have none
    """

    X: Matrix
    y: npt.NDArray[Any]
    weights: Array | None
    names: tuple[str, ...] | None = None


class BlockFunction(Protocol[T_co]):
    """A function of a block and its number, whose values support `+`."""

    def __call__(self, number: int, block: Block) -> T_co | None:
        """Return the value of a block; None for nothing to add."""


class RowSource(Protocol):
    """A source of row blocks: the same blocks, in the same order, in every pass."""

    def sum(self, part: BlockFunction[T], only: frozenset[int] | None = None) -> T | None:
        """Return the sum of a function over the blocks, or over those numbered in `only`.

        Values are added in the order of the blocks; None if there is no value. One call is one pass
        over the data.
        """

    def unchecked(self) -> RowSource:
        """Return the source for later passes, without the check for finite numbers."""

    def run_by(self, executor: Executor) -> RowSource:
        """Return the source with an executor for its passes; Dask ignores the executor."""

    def with_progress(self, on_rows: Callable[[int], None]) -> RowSource:
        """Return the source with a callback for the number of rows read so far in a pass."""


@dataclass(frozen=True, eq=False)
class BlockSummary:
    """Summary of a block, from the first pass.

    Attributes
    ----------
    number : position of the block in the source
    labels : (k,) the classes in the block
    sizes, weights : (k,) number of rows, and sum of weights, of each of these classes
    n_features : number of features
    sparse : whether the rows are sparse
    names : names of the features; None if they have none
    """

    number: int
    labels: npt.NDArray[Any]
    sizes: IntArray
    weights: Array
    n_features: int
    sparse: bool
    names: tuple[str, ...] | None


@dataclass(frozen=True)
class SummarizeBlock:
    """The function of the first pass: summarizes a block, without its rows of weight zero."""

    def __call__(self, number: int, block: Block) -> list[BlockSummary]:
        """Return the summary in a list, so that `+` joins the summaries of all blocks."""
        X, y, weights, names = _without_zero_weights(block)
        labels, codes = np.unique(y, return_inverse=True)
        sizes = np.bincount(codes, minlength=len(labels))
        sums = np.bincount(codes, weights, len(labels)).astype(np.float64)
        return [BlockSummary(number, labels, sizes, sums, X.shape[1], is_sparse(X), names)]


def _without_zero_weights(block: Block) -> Block:
    """Return the rows whose weight is not zero."""
    if block.weights is None or block.weights.all():
        return block
    kept = np.flatnonzero(block.weights)
    return Block(block.X[kept], block.y[kept], block.weights[kept], block.names)


@dataclass(frozen=True, eq=False)
class _Labeller:
    """Turns a block into labelled rows.

    Attributes
    ----------
    classes : (K,) the labels, sorted
    factors : (K,) class weights, multiplied into the sample weights; None for ones
    sphere_map : the map of the rows to the unit sphere
    order : the order of the columns; None as they come
    """

    classes: npt.NDArray[Any]
    factors: Array | None
    sphere_map: SphereMap
    order: IntArray | None = None

    def rows(self, block: Block) -> LabelledRows:
        """Return the labelled rows; ValueError for a label that the first pass has not seen."""
        X, y, weights, _ = _without_zero_weights(block)
        codes = np.searchsorted(self.classes, y)
        if not np.array_equal(self.classes[np.minimum(codes, len(self.classes) - 1)], y):
            raise blocks_changed()
        if self.factors is not None:
            weights = self.factors[codes] * (1.0 if weights is None else weights)
        if self.order is not None:
            X = np.take(X, self.order, axis=1)
        return LabelledRows(X, codes, self.classes, weights, self.sphere_map)


@dataclass(frozen=True, eq=False)
class _OfRows(Generic[T]):
    """Adapter from a function of labelled rows to a function of a block; None if it has no rows.

    Attributes
    ----------
    part : the function of labelled rows
    labeller : turns the block into labelled rows
    sizes : number of rows of each block in the first pass, to detect changed blocks
    """

    part: Callable[[LabelledRows], T]
    labeller: _Labeller
    sizes: dict[int, int]

    def __call__(self, number: int, block: Block) -> T | None:
        rows = self.labeller.rows(block)
        if len(rows) != self.sizes.get(number, 0):
            raise blocks_changed()
        return self.part(rows) if len(rows) else None


@dataclass(frozen=True, eq=False)
class _Pick:
    """Selects rows of a block, given their positions among the rows of their class.

    Attributes
    ----------
    wanted : for each block number, the positions in each class
    labeller : turns the block into labelled rows
    """

    wanted: dict[int, list[IntArray]]
    labeller: _Labeller

    def __call__(self, number: int, block: Block) -> list[LabelledRows]:
        rows = self.labeller.rows(block)
        taken = []
        for k, positions in enumerate(self.wanted[number]):
            mine = np.flatnonzero(rows.codes == k)
            if len(positions) and positions.max() >= len(mine):
                raise blocks_changed()
            taken.append(mine[positions])
        return [rows.at(np.sort(np.concatenate(taken)))]


@dataclass(frozen=True)
class _First:
    """Takes the first n rows of a block, in a list, so that `+` joins those of several blocks."""

    n: int

    def __call__(self, rows: LabelledRows) -> list[LabelledRows]:
        return [rows.at(slice(0, self.n))]


@dataclass(frozen=True, eq=False)
class _Total(Generic[T]):
    """Sums a function over small blocks of the rows of a source block."""

    part: Callable[[LabelledRows], T]

    def __call__(self, rows: LabelledRows) -> T:
        return rows.total(self.part)


def blocks_changed() -> ValueError:
    """Return the error for blocks that differ from the blocks of the first pass."""
    return ValueError(
        "The blocks are not the same in every pass. Training reads them many times: each time they "
        "are iterated over, the same blocks must come, in the same order."
    )


@dataclass(frozen=True, eq=False)
class RowStream:
    """Labelled rows out of core: `TrainingRows` over a `RowSource`.

    Attributes
    ----------
    source : the source of the row blocks
    summaries : the summary of each block
    classes : (K,) the labels, sorted
    factors : (K,) class weights, multiplied into the sample weights; None for ones
    sphere_map : the map of the rows to the unit sphere
    order : the order of the columns, for dense rows; None as they come
    """

    source: RowSource
    summaries: Sequence[BlockSummary]
    classes: npt.NDArray[Any]
    factors: Array | None = None
    sphere_map: SphereMap = PLAIN_MAP
    order: IntArray | None = None

    in_memory = False

    def __len__(self) -> int:
        return sum(self.class_sizes)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.summaries[0].n_features

    @cached_property
    def _sizes(self) -> IntArray:
        """The (B, K) number of rows of each class in each of B blocks."""
        sizes = np.zeros((len(self.summaries), len(self.classes)), dtype=np.intp)
        for row, summary in zip(sizes, self.summaries, strict=True):
            row[np.searchsorted(self.classes, summary.labels)] = summary.sizes
        return sizes

    @cached_property
    def class_sizes(self) -> list[int]:
        """Number of rows of each class."""
        sizes: list[int] = self._sizes.sum(axis=0).tolist()
        return sizes

    @cached_property
    def class_weights(self) -> Array:
        """The (K,) total weight of the rows of each class."""
        weights = np.zeros(len(self.classes))
        for summary in self.summaries:
            weights[np.searchsorted(self.classes, summary.labels)] += summary.weights
        return weights if self.factors is None else weights * self.factors

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(self.class_weights.sum())

    def on_sphere(self, sphere_map: SphereMap) -> RowStream:
        """Return the same rows with another map to the sphere."""
        return replace(self, sphere_map=sphere_map)

    def with_columns(self, order: IntArray) -> RowStream:
        """Return the rows with their columns in another order than they came in."""
        return replace(self, order=order)

    @property
    def is_sparse(self) -> bool:
        """Whether the rows of a block are sparse."""
        return any(summary.sparse for summary in self.summaries)

    def first(self, n: int) -> LabelledRows:
        """Return the first n rows, in memory; blocks behind them are not read."""
        counts = self._sizes.sum(axis=1)
        begins = np.cumsum(counts) - counts
        wanted = [
            (summary.number, int(count))
            for summary, count, begin in zip(self.summaries, counts, begins, strict=True)
            if count and begin < n
        ]
        part = _OfRows(_First(n), self._labeller, dict(wanted))
        parts = self.source.sum(part, frozenset(number for number, _ in wanted))
        if not parts:
            raise blocks_changed()
        return concatenate_rows(parts).at(slice(0, n))

    def with_progress(self, on_rows: Callable[[int], None]) -> RowStream:
        """Return the same rows with a callback for the number of rows read so far in a pass."""
        return replace(self, source=self.source.with_progress(on_rows))

    def sum_blocks(self, part: Callable[[LabelledRows], T]) -> T:
        """Return the sum of a function over the blocks of the source, each block whole."""
        sizes = {summary.number: int(summary.sizes.sum()) for summary in self.summaries}
        total = self.source.sum(_OfRows(part, self._labeller, sizes))
        if total is None:
            raise blocks_changed()
        return total

    def total(self, part: Callable[[LabelledRows], T], executor: Executor) -> T:
        """Return the sum of a function over small blocks; the source runs it, not the executor."""
        del executor
        return self.sum_blocks(_Total(part))

    def length_sums(self) -> LengthSums:
        """Return the sums of squared lengths of each block."""
        return self.sum_blocks(LabelledRows.length_sums)

    def pick(self, positions: Sequence[IntArray]) -> LabelledRows:
        """Return some rows of each class, given their positions within it, in original order."""
        starts = np.cumsum(self._sizes, axis=0) - self._sizes
        wanted: dict[int, list[IntArray]] = {}
        for b, summary in enumerate(self.summaries):
            inside = [
                mine[(mine >= start) & (mine < start + size)] - start
                for mine, start, size in zip(positions, starts[b], self._sizes[b], strict=True)
            ]
            if any(map(len, inside)):
                wanted[summary.number] = inside
        parts = self.source.sum(_Pick(wanted, self._labeller), frozenset(wanted)) or []
        if sum(map(len, parts)) != sum(map(len, positions)):
            raise blocks_changed()
        return concatenate_rows(parts)

    def load(self) -> LabelledRows:
        """Return all rows, in memory."""
        return self.pick([np.arange(size) for size in self.class_sizes])

    @property
    def _labeller(self) -> _Labeller:
        return _Labeller(self.classes, self.factors, self.sphere_map, self.order)


def concatenate_rows(parts: Sequence[LabelledRows]) -> LabelledRows:
    """Return the concatenation of labelled rows, in memory."""
    matrices = [part.X[:] for part in parts]
    X = join_rows(matrices)
    weights = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate([part.row_weights for part in parts])
    codes = np.concatenate([part.codes for part in parts])
    return replace(parts[0], X=X, codes=codes, weights=weights)
