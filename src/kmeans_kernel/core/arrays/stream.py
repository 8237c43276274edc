"""Rows out of core: a source gives blocks, as often as they are asked for.

All that training needs of rows is a sum over blocks. So rows may be in a file that is larger than
memory, or on other machines: a `RowSource` knows where, and adds up a function of each block. A
`RowStream` is its labelled rows, with what the first pass found. The functions are values without
hidden state, so that they can be sent to where the rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from kmeans_kernel.core.arrays.execution import Executor
from kmeans_kernel.core.arrays.matrices import Array, IntArray, Matrix, is_sparse
from kmeans_kernel.core.arrays.rows import LabelledRows, LengthSums
from kmeans_kernel.core.arrays.sphere import PLAIN_MAP, SphereMap

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Block(NamedTuple):
    """A block of rows as its source gives it.

    Attributes
    ----------
    X : (n, d) finite floats, dense or sparse
    y : (n,) labels
    weights : (n,) or None for ones
    names : of the features, if they have some
    """

    X: Matrix
    y: npt.NDArray[Any]
    weights: Array | None
    names: tuple[str, ...] | None = None


class BlockFunction(Protocol[T_co]):
    """A function of a block and its number, whose values can be added."""

    def __call__(self, number: int, block: Block) -> T_co | None:
        """Return the value of a block; None if there is nothing to add."""


class RowSource(Protocol):
    """A source of row blocks: the same blocks, in the same order, in every pass."""

    def sum(self, part: BlockFunction[T], only: frozenset[int] | None = None) -> T | None:
        """Return the sum over the blocks, or some of them, in their order; None if there are none.

        A pass over the blocks is one call of this method.
        """

    def unchecked(self) -> RowSource:
        """Return the source for later passes, without checks that the first pass has made."""

    def run_by(self, executor: Executor) -> RowSource:
        """Return the source with an executor for its passes, if it has no engine of its own."""

    def with_progress(self, on_rows: Callable[[int], None]) -> RowSource:
        """Return the source with a listener for the number of rows read so far in a pass."""


@dataclass(frozen=True, eq=False)
class BlockSummary:
    """Facts about a block that the first pass finds.

    Attributes
    ----------
    number : of the block
    labels, sizes, weights : (k,) the classes in it, their rows, and their weights
    n_features, sparse, names : of its rows
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
    """The function of the first pass: labels and shapes; rows without weight do not count."""

    def __call__(self, number: int, block: Block) -> list[BlockSummary]:
        """Summarize a block."""
        X, y, weights, names = _with_weight(block)
        labels, codes = np.unique(y, return_inverse=True)
        sizes = np.bincount(codes, minlength=len(labels))
        sums = np.bincount(codes, weights, len(labels)).astype(np.float64)
        return [BlockSummary(number, labels, sizes, sums, X.shape[1], is_sparse(X), names)]


def _with_weight(block: Block) -> Block:
    """Return the rows whose weight is not zero."""
    if block.weights is None or block.weights.all():
        return block
    kept = np.flatnonzero(block.weights)
    return Block(block.X[kept], block.y[kept], block.weights[kept], block.names)


@dataclass(frozen=True, eq=False)
class _Labeller:
    """Makes labelled rows of a block.

    Attributes
    ----------
    classes : (K,) the labels, in order
    factors : (K,) the class weights that the weights of the rows are multiplied by; None for ones
    sphere_map : how the rows are mapped to the sphere
    """

    classes: npt.NDArray[Any]
    factors: Array | None
    sphere_map: SphereMap

    def rows(self, block: Block) -> LabelledRows:
        """Return the rows with the positions of their classes."""
        X, y, weights, _ = _with_weight(block)
        codes = np.searchsorted(self.classes, y)
        if not np.array_equal(self.classes[np.minimum(codes, len(self.classes) - 1)], y):
            raise blocks_changed()
        if self.factors is not None:
            weights = self.factors[codes] * (1.0 if weights is None else weights)
        return LabelledRows(X, codes, self.classes, weights, self.sphere_map)


@dataclass(frozen=True, eq=False)
class _OfRows(Generic[T]):
    """A function of labelled rows as a function of a block; None of a block without rows.

    Attributes
    ----------
    part : the function
    labeller : makes labelled rows of a block
    sizes : the rows of each block in the first pass
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
    """Picks rows, by their positions among those of their class in a block.

    Attributes
    ----------
    wanted : positions in each block, for each class
    labeller : makes labelled rows of a block
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


@dataclass(frozen=True, eq=False)
class _Total(Generic[T]):
    """The sum of a function over the small blocks that rows in memory are cut into."""

    part: Callable[[LabelledRows], T]

    def __call__(self, rows: LabelledRows) -> T:
        return rows.total(self.part)


def blocks_changed() -> ValueError:
    """Return the error for blocks that differ from those of the first pass."""
    return ValueError(
        "The blocks are not the same in every pass. Training reads them many times: each time they "
        "are iterated over, the same blocks must come, in the same order."
    )


@dataclass(frozen=True, eq=False)
class RowStream:
    """Labelled rows out of core.

    Attributes
    ----------
    source : gives the blocks
    summaries : facts about each block
    classes : (K,) the labels, in order
    factors : (K,) the class weights that the weights of the rows are multiplied by; None for ones
    sphere_map : how rows are mapped to the sphere
    """

    source: RowSource
    summaries: Sequence[BlockSummary]
    classes: npt.NDArray[Any]
    factors: Array | None = None
    sphere_map: SphereMap = PLAIN_MAP

    in_memory = False

    def __len__(self) -> int:
        return sum(self.class_sizes)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.summaries[0].n_features

    @cached_property
    def _sizes(self) -> IntArray:
        """Number of rows of each class in each block (B, K)."""
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
        """The (K,) weights of all rows of each class."""
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

    def with_progress(self, on_rows: Callable[[int], None]) -> RowStream:
        """Return the same rows with a listener for the number of rows read in a pass."""
        return replace(self, source=self.source.with_progress(on_rows))

    def sum_blocks(self, part: Callable[[LabelledRows], T]) -> T:
        """Return the sum of a function over the blocks of the source, each whole."""
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
        """Return some rows of each class, by their positions within it, in their own order."""
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
        return _Labeller(self.classes, self.factors, self.sphere_map)


def concatenate_rows(parts: Sequence[LabelledRows]) -> LabelledRows:
    """Return rows one after the other, in memory."""
    matrices = [part.X[:] for part in parts]
    X = csr_array(vstack(matrices)) if is_sparse(matrices[0]) else np.concatenate(matrices)
    weights = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate([part.row_weights for part in parts])
    codes = np.concatenate([part.codes for part in parts])
    return replace(parts[0], X=X, codes=codes, weights=weights)
