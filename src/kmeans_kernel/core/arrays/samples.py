"""The labelled rows that a model is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.asinh import Squash, SquashedRows
from kmeans_kernel.core.arrays.blocking import Array, IntArray, blocks_of, row_blocks
from kmeans_kernel.core.arrays.sparse import (
    Matrix,
    is_sparse,
    row_width,
    scale_columns,
    squared_lengths,
)
from kmeans_kernel.core.arrays.sphere import unit_rows

# Rows may be longer; their length would not fit into a number.
_LONGEST = 1e150

_ALL = slice(None)

# Rows of a block: enough for triangular solves to run at the speed of products.
_BLOCK_ROWS = 1024

# A row that weighs more than so many is dealt out as so many.
_MOST_COPIES = 30

# Among no more rows than this, some are drawn by shuffling all; that takes their number in memory.
_SHUFFLED = 10_000_000

# The least weight may be that of as many equal rows.
_SMALLEST_PART = 10


class Rows(Protocol):
    """A matrix, or something that makes rows of one when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows, of how many features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the rows."""

    def __getitem__(self, rows: Any) -> Matrix:
        """Return the rows that a slice or an array of indices selects."""


class Data(Protocol):
    """Labelled rows, in memory or not."""

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The (K,) labels."""

    @property
    def class_sizes(self) -> list[int]:
        """How many rows each class has."""

    @property
    def width(self) -> int:
        """The number of features."""

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""

    def __len__(self) -> int: ...

    def basis_size(self, n_representatives: int) -> int:
        """Return how many representatives there are with so many of each class, at most."""

    def pick(self, positions: Sequence[IntArray]) -> Labelled:
        """Return some rows of each class, by their positions among those, in memory."""

    def in_memory(self) -> Labelled:
        """Return all rows, in memory."""

    def lengths(self, scales: Array | None) -> Lengths:
        """Return what is known of the lengths of the rows, each feature times its scale."""

    def squashed(self, squash: Squash | None) -> Self:
        """Return the rows squashed."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows as they came, the class of each and its weight.

    Attributes
    ----------
    X : (n, d) the rows
    codes : (n,) the position of the class of each among `classes`
    classes : (K,) the labels
    weights : (n,) or None for ones
    """

    X: Rows
    codes: IntArray
    classes: npt.NDArray[Any]
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def class_sizes(self) -> list[int]:
        """How many rows each class has."""
        sizes: list[int] = np.bincount(self.codes, minlength=len(self.classes)).tolist()
        return sizes

    @cached_property
    def weight_of_each(self) -> Array:
        """The (n,) weights."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @cached_property
    def copies(self) -> IntArray:
        """How many equal rows each may be (n,).

        Equal rows come as one that weighs as much as all. So where the weights within a class are
        multiples of one, the least or a small part of it, that is how many there are; else each is
        one.
        """
        copies = np.ones(len(self), dtype=np.intp)
        if self.weights is None:
            return copies
        for k in range(len(self.classes)):
            rows = np.flatnonzero(self.codes == k)
            shares = self.weights[rows] / self.weights[rows].min(initial=np.inf)
            for part in range(1, _SMALLEST_PART + 1):
                whole = np.rint(part * shares)
                if np.allclose(part * shares, whole, rtol=1e-6, atol=0.0):
                    copies[rows] = np.minimum(whole, _MOST_COPIES)
                    break
        return copies

    def part(self, taken: IntArray) -> Labelled:
        """Return some of the copies of each row, those of which some are taken."""
        rows = np.flatnonzero(taken)
        part = self.at(rows)
        if self.weights is None:
            return part
        return replace(part, weights=part.weight_of_each * taken[rows] / self.copies[rows])

    def at(self, rows: IntArray) -> Labelled:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Labelled(self.X[rows], self.codes[rows], self.classes, weights)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.X.shape[1])

    @cached_property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return float(self.weight_of_each.sum())

    def pick(self, positions: Sequence[IntArray]) -> Labelled:
        """Return some rows of each class, by their positions among those, in their own order."""
        rows = [np.flatnonzero(self.codes == k)[mine] for k, mine in enumerate(positions)]
        return self.at(np.sort(np.concatenate(rows)))

    def in_memory(self) -> Labelled:
        """Return itself."""
        return self

    def lengths(self, scales: Array | None) -> Lengths:
        """Return what is known of the lengths of the rows."""
        return lengths_of(self, scales)

    def squashed(self, squash: Squash | None) -> Labelled:
        """Return the rows squashed."""
        return self if squash is None else replace(self, X=SquashedRows(self.X, squash))

    def some_rows(self, most: int, rng: np.random.Generator) -> IntArray:
        """Return the positions of all rows, or of some drawn at random if they are too many."""
        if len(self) <= most:
            return np.arange(len(self))
        return np.sort(rng.choice(len(self), most, replace=False))

    def basis_size(self, n_representatives: int) -> int:
        """Return how many representatives there are with so many of each class, at most."""
        return sum(min(size, n_representatives) for size in self.class_sizes)


def draw(size: int, n: int, rng: np.random.Generator) -> IntArray:
    """Return n of so many positions, at random."""
    if size <= _SHUFFLED:
        return rng.permutation(size)[:n]
    return rng.choice(size, n, replace=False)


def some_of(data: Data, most: int, rng: np.random.Generator) -> Labelled:
    """Return all rows, or the same share of each class if they are too many, in memory."""
    share = min(1.0, most / len(data))
    return data.pick([draw(size, int(np.ceil(share * size)), rng) for size in data.class_sizes])


@dataclass(frozen=True, eq=False)
class Placement:
    """How rows are put on the sphere.

    Attributes
    ----------
    lift : the constant appended to each row
    scales : (d,) what each feature is multiplied by before, or None for ones
    """

    lift: float
    scales: Array | None = None

    @classmethod
    def of(cls, data: Data, lift: float | None, scales: Array | None = None) -> Placement:
        """Take the lift that is given, else the typical length of a row."""
        return cls(data.lengths(scales).typical if lift is None else lift, scales)

    def put(self, X: Matrix, dtype: npt.DTypeLike) -> Matrix:
        """Return rows on the sphere."""
        return unit_rows(X, self.lift, dtype, self.scales)


@dataclass(frozen=True, eq=False)
class Samples:
    """Labelled rows on the sphere, put there when they are asked for.

    Attributes
    ----------
    data : the rows
    placement : how they are put there
    """

    data: Labelled
    placement: Placement

    def __len__(self) -> int:
        return len(self.data)

    @property
    def codes(self) -> IntArray:
        """The (n,) positions of the classes."""
        return self.data.codes

    @property
    def weights(self) -> Array:
        """The (n,) weights."""
        return self.data.weight_of_each

    @property
    def weight_of_a_copy(self) -> Array:
        """The (n,) weights of one of the equal rows that each may be."""
        return np.asarray(self.weights / self.data.copies)

    @property
    def n_classes(self) -> int:
        """The number of classes, K."""
        return len(self.data.classes)

    @property
    def blocks(self) -> list[slice]:
        """All rows, a block at a time."""
        return list(blocks_of(len(self), _BLOCK_ROWS))

    def directions(self, rows: Any = _ALL) -> Matrix:
        """Return some unit rows, in float64."""
        return self.placement.put(self.data.X[rows], np.float64)

    def targets(self, rows: Any = _ALL) -> Array:
        """Return the (n, K) targets of some rows: 1 in the column of the class, else 0."""
        return np.asarray(np.eye(self.n_classes)[self.codes[rows]])


@dataclass(frozen=True)
class Lengths:
    """What is known of the lengths of rows; that of all rows is the sum of that of the blocks.

    Attributes
    ----------
    largest : the largest
    squares : the weighted sum of their squares, each divided by the largest
    weight : the sum of the weights
    """

    largest: float
    squares: float
    weight: float

    def __add__(self, other: Lengths) -> Lengths:
        largest = max(self.largest, other.largest)
        scale = largest if 0 < largest < np.inf else 1.0
        squares = sum(part.squares * (part.largest / scale) ** 2 for part in (self, other))
        return Lengths(largest, squares, self.weight + other.weight)

    @property
    def typical(self) -> float:
        """The root of the weighted mean squared length; 1 if all are zero.

        As a lift it puts the rows, on average, half-way between the equator and the pole. It has
        as many digits as do not depend on how rows come in blocks.
        """
        if not 0 < self.largest < _LONGEST:
            return min(max(1.0, self.largest), _LONGEST)
        return float(f"{self.largest * np.sqrt(self.squares / self.weight):.12g}")


def lengths_of(data: Labelled, scales: Array | None = None) -> Lengths:
    """Measure rows, each feature multiplied by its scale."""
    lengths = np.empty(len(data))
    for rows in row_blocks(len(data), row_width(data.X)):
        with np.errstate(over="ignore"):
            block = data.X[rows].astype(np.float64)
            if scales is not None:
                block = scale_columns(block, scales) if is_sparse(block) else block * scales
            lengths[rows] = np.sqrt(squared_lengths(block))
    largest = float(lengths.max(initial=0.0))
    shares = lengths / largest if 0 < largest < np.inf else np.zeros(len(data))
    squares = float(data.weight_of_each @ shares**2)
    return Lengths(largest, squares, float(data.weight_of_each.sum()))
