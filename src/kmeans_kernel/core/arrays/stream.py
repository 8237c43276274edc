"""Rows that come a block at a time, as often as they are asked for.

All that training needs of rows is a sum over blocks. So rows may be where they like: in a file that
is larger than memory, or on other machines. A `Visitor` knows the way to them and adds up what a
function of a block gives; a `Stream` is its labelled rows, with what a first visit found. The
functions are values without hidden state, so that they can be sent to where the rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from kmeans_kernel.core.arrays.asinh import Squash
from kmeans_kernel.core.arrays.blocking import Array, IntArray
from kmeans_kernel.core.arrays.samples import Labelled, Lengths, Placement, Samples
from kmeans_kernel.core.arrays.sparse import Matrix, is_sparse
from kmeans_kernel.core.clustering.assignment import ClusterSums, nearest_sums
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.solvers.logistic import LossSums
from kmeans_kernel.core.solvers.nystrom import Moments, NormalEquations, WhiteBasis, kernel_values

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Block(NamedTuple):
    """Rows as they are visited.

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


class Part(Protocol[T_co]):
    """A function of a block, and its number; what it gives can be added."""

    def __call__(self, number: int, block: Block) -> T_co | None:
        """Look at a block; None if there is nothing to add."""


class Visitor(Protocol):
    """Someone who knows the way to the blocks."""

    def sum(self, part: Part[T], only: frozenset[int] | None = None) -> T | None:
        """Return the sum over the blocks, or some of them, in their order; None if none is there.

        Every visit finds the same blocks, in the same order.
        """

    def trusting(self) -> Visitor:
        """Return the same for later visits: what was once checked need not be again."""

    def telling(self, tell: Tell) -> Visitor:
        """Return the same; it tells how many rows of a visit it has seen, if it knows."""


Tell: TypeAlias = Callable[[int], None]


class PartOfRows(Protocol[T_co]):
    """A function of labelled rows."""

    def __call__(self, rows: Labelled) -> T_co:
        """Look at rows."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen of a block.

    Attributes
    ----------
    number : of the block
    labels, sizes, weights : (k,) what classes it has, how many rows of each, and their weight
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
class Look:
    """The first visit."""

    def __call__(self, number: int, block: Block) -> list[Seen]:
        """Look at the labels, and at how wide rows are; those without weight are not there."""
        X, y, weights, names = _with_weight(block)
        labels, codes = np.unique(y, return_inverse=True)
        sizes = np.bincount(codes, minlength=len(labels))
        sums = np.bincount(codes, weights, len(labels)).astype(np.float64)
        return [Seen(number, labels, sizes, sums, X.shape[1], is_sparse(X), names)]


def _with_weight(block: Block) -> Block:
    """Return the rows that weigh something."""
    if block.weights is None or block.weights.all():
        return block
    kept = np.flatnonzero(block.weights)
    return Block(block.X[kept], block.y[kept], block.weights[kept], block.names)


@dataclass(frozen=True, eq=False)
class _OfRows(Generic[T]):
    """A function of labelled rows as one of a block; None of one without rows.

    Attributes
    ----------
    part : the function
    labels : what makes labelled rows of a block
    sizes : how many rows each block had at the first visit
    """

    part: PartOfRows[T]
    labels: _Labels
    sizes: dict[int, int]

    def __call__(self, number: int, block: Block) -> T | None:
        rows = self.labels.put_on(block)
        if len(rows) != self.sizes.get(number, 0):
            raise blocks_changed()
        return self.part(rows) if len(rows) else None


@dataclass(frozen=True, eq=False)
class _Labels:
    """What makes labelled rows of a block.

    Attributes
    ----------
    classes : (K,) the labels, in order
    factors : (K,) what the weights of each class are multiplied by, or None for ones
    squash : what is done to the features, or None
    """

    classes: npt.NDArray[Any]
    factors: Array | None
    squash: Squash | None

    def put_on(self, block: Block) -> Labelled:
        """Return the rows with the positions of their classes."""
        X, y, weights, _ = _with_weight(block)
        codes = np.searchsorted(self.classes, y)
        if not np.array_equal(self.classes[np.minimum(codes, len(self.classes) - 1)], y):
            raise blocks_changed()
        if self.factors is not None:
            weights = self.factors[codes] * (1.0 if weights is None else weights)
        return Labelled(X, codes, self.classes, weights).squashed(self.squash)


@dataclass(frozen=True, eq=False)
class _Pick:
    """Takes rows, by their positions among those of their class in a block.

    Attributes
    ----------
    wanted : of each block, for each class
    """

    wanted: dict[int, list[IntArray]]
    labels: _Labels

    def __call__(self, number: int, block: Block) -> list[Labelled]:
        rows = self.labels.put_on(block)
        taken = []
        for k, positions in enumerate(self.wanted[number]):
            mine = np.flatnonzero(rows.codes == k)
            if len(positions) and positions.max() >= len(mine):
                raise blocks_changed()
            taken.append(mine[positions])
        return [rows.at(np.sort(np.concatenate(taken)))]


def blocks_changed() -> ValueError:
    """Return what is said of blocks that are not what they were at the first visit."""
    return ValueError(
        "The blocks are not the same at every visit. Training visits them many times: each time "
        "they are iterated over, the same blocks must come, in the same order."
    )


@dataclass(frozen=True, eq=False)
class Stream:
    """Labelled rows that come in blocks.

    Attributes
    ----------
    visitor : who knows the way to them
    seen : what was seen of each block
    classes : (K,) the labels, in order
    factors : (K,) what the weights of each class are multiplied by, or None for ones
    squash : what is done to the features, or None
    """

    visitor: Visitor
    seen: Sequence[Seen]
    classes: npt.NDArray[Any]
    factors: Array | None = None
    squash: Squash | None = None

    def __len__(self) -> int:
        return sum(self.class_sizes)

    @property
    def width(self) -> int:
        """The number of features."""
        return self.seen[0].n_features

    @cached_property
    def _sizes(self) -> IntArray:
        """How many rows of each class are in each block (B, K)."""
        sizes = np.zeros((len(self.seen), len(self.classes)), dtype=np.intp)
        for row, seen in zip(sizes, self.seen, strict=True):
            row[np.searchsorted(self.classes, seen.labels)] = seen.sizes
        return sizes

    @cached_property
    def class_sizes(self) -> list[int]:
        """How many rows each class has."""
        sizes: list[int] = self._sizes.sum(axis=0).tolist()
        return sizes

    @cached_property
    def class_weights(self) -> Array:
        """The (K,) weights of all rows of each class."""
        weights = np.zeros(len(self.classes))
        for seen in self.seen:
            weights[np.searchsorted(self.classes, seen.labels)] += seen.weights
        return weights if self.factors is None else weights * self.factors

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return float(self.class_weights.sum())

    def basis_size(self, n_representatives: int) -> int:
        """Return how many representatives there are with so many of each class, at most."""
        return sum(min(size, n_representatives) for size in self.class_sizes)

    def squashed(self, squash: Squash | None) -> Stream:
        """Return the rows squashed."""
        return self if squash is None else replace(self, squash=squash)

    def telling(self, tell: Callable[[int, int], None]) -> Stream:
        """Return the same; `tell` hears how many rows of a visit were seen, and of how many."""
        n_rows = len(self)
        return replace(self, visitor=self.visitor.telling(lambda done: tell(done, n_rows)))

    def sum(self, part: PartOfRows[T]) -> T:
        """Return the sum of what a function gives for the rows of each block."""
        sizes = {seen.number: int(seen.sizes.sum()) for seen in self.seen}
        total = self.visitor.sum(_OfRows(part, self._labels, sizes))
        if total is None:
            raise blocks_changed()
        return total

    def pick(self, positions: Sequence[IntArray]) -> Labelled:
        """Return some rows of each class, by their positions among those, in their own order."""
        starts = np.cumsum(self._sizes, axis=0) - self._sizes
        wanted: dict[int, list[IntArray]] = {}
        for b, seen in enumerate(self.seen):
            inside = [
                mine[(mine >= start) & (mine < start + size)] - start
                for mine, start, size in zip(positions, starts[b], self._sizes[b], strict=True)
            ]
            if any(map(len, inside)):
                wanted[seen.number] = inside
        parts = self.visitor.sum(_Pick(wanted, self._labels), frozenset(wanted)) or []
        if sum(map(len, parts)) != sum(map(len, positions)):
            raise blocks_changed()
        return joined(parts)

    def in_memory(self) -> Labelled:
        """Return all rows, in memory."""
        return self.pick([np.arange(size) for size in self.class_sizes])

    def lengths(self, scales: Array | None) -> Lengths:
        """Return what is known of the lengths of the rows."""
        return self.sum(_Measure(scales))

    @property
    def _labels(self) -> _Labels:
        return _Labels(self.classes, self.factors, self.squash)


def joined(parts: Sequence[Labelled]) -> Labelled:
    """Return rows one after the other, in memory."""
    matrices = [part.X[:] for part in parts]
    X = csr_array(vstack(matrices)) if is_sparse(matrices[0]) else np.concatenate(matrices)
    weights = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate([part.weight_of_each for part in parts])
    return Labelled(X, np.concatenate([part.codes for part in parts]), parts[0].classes, weights)


@dataclass(frozen=True, eq=False)
class _Measure:
    scales: Array | None

    def __call__(self, rows: Labelled) -> Lengths:
        return rows.lengths(self.scales)


@dataclass(frozen=True, eq=False)
class SumsOfClasses:
    """What K-means needs, of each class."""

    of: dict[int, ClusterSums]

    def __add__(self, other: SumsOfClasses) -> SumsOfClasses:
        both = dict(self.of)
        for k, sums in other.of.items():
            both[k] = both[k] + sums if k in both else sums
        return SumsOfClasses(both)


@dataclass(frozen=True, eq=False)
class NearestSums:
    """Adds up the rows nearest to each centroid.

    Attributes
    ----------
    centroids : (Q, d) of each class that is still at work
    placement : how rows are put on the sphere
    """

    centroids: dict[int, Array]
    placement: Placement

    def __call__(self, rows: Labelled) -> SumsOfClasses:
        """Add up the rows of a block, class by class."""
        found = {}
        for k, centroids in self.centroids.items():
            mine = np.flatnonzero(rows.codes == k)
            if len(mine):
                U = self.placement.put(rows.X[mine], centroids.dtype)
                found[k] = nearest_sums(U, centroids, rows.weight_of_each[mine])
        return SumsOfClasses(found)


@dataclass(frozen=True, eq=False)
class SumOfMoments:
    """Adds up what the normal equations need."""

    basis: WhiteBasis
    placement: Placement

    def __call__(self, rows: Labelled) -> Moments:
        """Add up the rows of a block."""
        return NormalEquations.moments(self.basis, Samples(rows, self.placement))


@dataclass(frozen=True, eq=False)
class SumOfLosses:
    """Adds up the logistic loss.

    Attributes
    ----------
    directions, kernel : of the representatives
    inner, intercept : (m, K), (K,) of the scores
    placement : how rows are put on the sphere
    """

    directions: Array
    kernel: Kernel
    inner: Array
    intercept: Array
    placement: Placement

    def __call__(self, rows: Labelled) -> LossSums:
        """Add up the rows of a block."""
        samples = Samples(rows, self.placement)
        return reduce(add, (self._of(samples, some) for some in samples.blocks))

    def _of(self, samples: Samples, rows: slice) -> LossSums:
        values = kernel_values(samples.directions(rows), self.directions, self.kernel)
        codes, weights = samples.codes[rows], samples.weights[rows]
        return LossSums.of(values, self.inner, self.intercept, codes, weights)


@dataclass(frozen=True, eq=False)
class LossesOfStream:
    """Losses of rows that come in blocks."""

    data: Stream
    basis: WhiteBasis
    placement: Placement

    @property
    def n_classes(self) -> int:
        """The number of classes, K."""
        return len(self.data.classes)

    def inward(self, columns: Array) -> Array:
        """Return the coefficients of the kernel values, of those of the white features."""
        return self.basis.dual(columns)

    def outward(self, columns: Array) -> Array:
        """Return the sums over white features, of those over the kernel values."""
        return self.basis.whiten(columns)

    def sum(self, inner: Array, intercept: Array) -> LossSums:
        """Visit all rows."""
        basis = self.basis
        return self.data.sum(
            SumOfLosses(basis.directions, basis.kernel, inner, intercept, self.placement)
        )
