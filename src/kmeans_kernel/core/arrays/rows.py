"""Labelled rows: the protocol that training sees, and its implementation in memory.

Training needs the classes of its rows, a few rows of each class in memory, and sums over blocks.
`TrainingRows` is that protocol; `LabelledRows` holds the rows in memory, and `stream.RowStream`
reads them out of core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from kmeans_kernel.core.arrays.execution import SERIAL, Executor, sum_over
from kmeans_kernel.core.arrays.matrices import (
    Array,
    IntArray,
    Matrix,
    blocks_of,
    cached_row_blocks,
    is_sparse,
    n_rows,
    row_blocks,
    row_width,
    scale_columns,
    squared_lengths,
)
from kmeans_kernel.core.arrays.sphere import PLAIN_MAP, SphereMap

T = TypeVar("T")

# The largest lift: its square does not overflow.
_LONGEST = 1e150

_ALL = slice(None)

# Rows of a block: enough for triangular solves to run at the speed of matrix products; fewer where
# that would leave a worker idle.
_LEAST_BLOCK_ROWS, _BLOCK_ROWS, _BLOCKS = 256, 2048, 8

# The most copies of a row that are dealt into folds; a heavier row counts as this many.
_MOST_COPIES = 30

# Up to this many rows a sample is drawn from a permutation of all positions, an array of that
# length; above it by NumPy's sampling without replacement.
_SHUFFLED = 10_000_000

# The most features by which merged rows are sorted: those of a table.
_MOST_COMPARED = 100

# The lightest row of a class stands for at most this many copies.
_SMALLEST_PART = 10

# In a class of fewer distinct rows than this, with equal weights and with different ones, whole
# weights are taken for numbers of copies: combinations of few levels, none of which a fold should
# hold out entirely.
_FEW_ALIKE, _FEW_DISTINCT = 10, 100


class RowMatrix(Protocol):
    """A matrix, or an object such as `LazyRows` that computes rows when it is indexed."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, number of features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the rows."""

    def __getitem__(self, rows: Any) -> Matrix:
        """Return the rows that a slice or an array of indices selects."""


class TrainingRows(Protocol):
    """Labelled rows as training sees them, in memory or out of core."""

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The (K,) labels."""

    @property
    def class_sizes(self) -> list[int]:
        """Number of rows of each class."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""

    @property
    def sphere_map(self) -> SphereMap:
        """The map of the rows to the unit sphere."""

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in memory, where random access is cheap."""

    def __len__(self) -> int: ...

    def on_sphere(self, sphere_map: SphereMap) -> Self:
        """Return the same rows with another map to the sphere."""

    def pick(self, positions: Sequence[IntArray]) -> LabelledRows:
        """Return some rows of each class in memory, given their positions within the class."""

    def load(self) -> LabelledRows:
        """Return all rows, in memory."""

    def length_sums(self) -> LengthSums:
        """Return the sums of squared lengths of the rows, one entry for each block."""

    def sum_blocks(self, part: Callable[[LabelledRows], T]) -> T:
        """Return the sum of a function over the blocks of the source, each block whole."""

    def total(self, part: Callable[[LabelledRows], T], executor: Executor) -> T:
        """Return the sum of a function over small blocks of rows; its values support `+`."""


# For each block: the largest length, the weighted sum of the squares of (length / largest length),
# and the sum of the weights. `+` joins the lists, so `sum_blocks` works on them unchanged; dividing
# by the largest length keeps the squares from overflowing.
LengthSums = list[tuple[float, float, float]]


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Labelled rows in memory.

    Attributes
    ----------
    X : (n, d) the rows as given, before the map to the sphere
    codes : (n,) the position of the class of each row among `classes`
    classes : (K,) the labels
    weights : (n,) sample weights; None for ones
    sphere_map : the map of the rows to the unit sphere
    """

    X: RowMatrix
    codes: IntArray
    classes: npt.NDArray[Any]
    weights: Array | None = None
    sphere_map: SphereMap = PLAIN_MAP

    in_memory = True

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @cached_property
    def class_sizes(self) -> list[int]:
        """Number of rows of each class."""
        sizes: list[int] = np.bincount(self.codes, minlength=len(self.classes)).tolist()
        return sizes

    @cached_property
    def row_weights(self) -> Array:
        """The (n,) sample weights, ones if none were given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @cached_property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(self.row_weights.sum())

    @cached_property
    def copies(self) -> IntArray:
        """The (n,) number of equal rows that each row stands for.

        `merge_equal_rows` replaces equal rows by one row with their total weight. Where all weights
        of a class are multiples of its least weight, or of that divided by a whole number of at
        most `_SMALLEST_PART`, the multiple is the number of copies; else each row is one copy. In
        a class of few distinct rows whole weights are the numbers of copies.
        """
        copies = np.ones(len(self), dtype=np.intp)
        if self.weights is None:
            return copies
        for k in range(len(self.classes)):
            rows = np.flatnonzero(self.codes == k)
            found, own = _multiples(self.weights[rows]), self.weights[rows]
            alike = own.min(initial=np.inf) == own.max(initial=0.0)
            few = len(rows) < (_FEW_ALIKE if alike else _FEW_DISTINCT)
            if few and found.sum() < own.sum() and not (own % 1).any():
                found = own
            copies[rows] = np.minimum(found, _MOST_COPIES)
        return copies

    @property
    def n_copies(self) -> int:
        """Number of rows before equal ones were merged."""
        return int(self.copies.sum())

    @property
    def copy_weights(self) -> Array:
        """The (n,) weight of one copy of each row."""
        return np.asarray(self.row_weights / self.copies)

    def with_columns(self, order: IntArray) -> LabelledRows:
        """Return the rows with their columns in another order.

        Where equal rows were merged, the rows are sorted again as `merge_equal_rows` does: by their
        values, column by column.
        """
        X = np.take(self.X[:], order, axis=1)  # in C order, unlike X[:, order]
        if self.weights is None:
            return replace(self, X=X)
        places = _lexicographic_order(X, self.codes, np.arange(len(X)))
        return LabelledRows(
            X[places], self.codes[places], self.classes, self.weights[places], self.sphere_map
        )

    def on_sphere(self, sphere_map: SphereMap) -> LabelledRows:
        """Return the same rows with another map to the sphere."""
        return replace(self, sphere_map=sphere_map)

    def at(self, rows: IntArray | slice) -> LabelledRows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=self.X[rows], codes=self.codes[rows], weights=weights)

    def with_copies(self, taken: IntArray) -> LabelledRows:
        """Return `taken` (n,) copies of each row, leaving out rows with zero copies."""
        rows = np.flatnonzero(taken)
        part = self.at(rows)
        if self.weights is None:
            return part
        return replace(part, weights=part.row_weights * taken[rows] / self.copies[rows])

    def pick(self, positions: Sequence[IntArray]) -> LabelledRows:
        """Return some rows of each class, given their positions within it, in original order."""
        rows = [np.flatnonzero(self.codes == k)[mine] for k, mine in enumerate(positions)]
        return self.at(np.sort(np.concatenate(rows)))

    def load(self) -> LabelledRows:
        """Return `self`: the rows are in memory."""
        return self

    def sample(self, most: int, rng: np.random.Generator) -> IntArray:
        """Return the sorted positions of `most` rows drawn at random, or of all if fewer."""
        if len(self) <= most:
            return np.arange(len(self))
        return np.sort(rng.choice(len(self), most, replace=False))

    def directions(self, rows: Any = _ALL, dtype: npt.DTypeLike = np.float64) -> Matrix:
        """Return some rows, mapped to the unit sphere."""
        return self.sphere_map.apply(self.X[rows], dtype)

    def targets(self) -> Array:
        """Return the (n, K) one-hot targets: 1 in the column of the class, else 0."""
        return np.asarray(np.eye(len(self.classes))[self.codes])

    def blocks(self) -> list[slice]:
        """Return the slices of small blocks that cover all rows."""
        height = min(max(len(self) // _BLOCKS, _LEAST_BLOCK_ROWS), _BLOCK_ROWS)
        return list(blocks_of(len(self), height))

    def sum_blocks(self, part: Callable[[LabelledRows], T]) -> T:
        """Return the value of a function of all rows: rows in memory are one block."""
        return part(self)

    def total(self, part: Callable[[LabelledRows], T], executor: Executor = SERIAL) -> T:
        """Return the sum of a function over small blocks of rows."""
        return sum_over(part, self.blocks(), executor, self.at)

    def length_sums(self) -> LengthSums:
        """Return the sums of squared lengths, after the feature transform and feature scales."""
        scales, lengths = self.sphere_map.scales, np.empty(len(self))
        for rows in cached_row_blocks(len(self), row_width(self.X)):
            with np.errstate(over="ignore"):
                block = self.sphere_map.transform(self.X[rows]).astype(np.float64)
                if scales is not None:
                    block = scale_columns(block, scales) if is_sparse(block) else block * scales
                lengths[rows] = np.sqrt(squared_lengths(block))
        largest = float(lengths.max(initial=0.0))
        shares = lengths / largest if 0 < largest < np.inf else np.zeros(len(self))
        weights = self.row_weights
        return [(largest, float(weights @ shares**2), float(weights.sum()))]


def basis_size(rows: TrainingRows, n_representatives: int) -> int:
    """Return m, the number of representatives of all classes: min(Q, rows) for each class."""
    return sum(min(size, n_representatives) for size in rows.class_sizes)


def water_fill(sizes: Sequence[int], total: int) -> int:
    """Return the largest Q of at least 1 with Σ min(Q, size) ≤ total, at most the largest size."""
    low, high = 1, max(1, *sizes)
    while low < high:
        q = (low + high + 1) // 2
        if sum(min(size, q) for size in sizes) <= total:
            low = q
        else:
            high = q - 1
    return low


def draw(size: int, n: int, rng: np.random.Generator) -> IntArray:
    """Return n positions below `size`, drawn at random without replacement."""
    if size <= _SHUFFLED:
        return rng.permutation(size)[:n]
    return rng.choice(size, n, replace=False)


def stratified_sample(rows: TrainingRows, most: int, rng: np.random.Generator) -> LabelledRows:
    """Return about `most` rows, the same share of each class, or all if fewer; in memory."""
    share = min(1.0, most / len(rows))
    return rows.pick([draw(size, int(np.ceil(share * size)), rng) for size in rows.class_sizes])


def with_typical_lift(rows: TrainingRows, sphere_map: SphereMap) -> SphereMap:
    """Return a map whose lift is the root mean square length of the rows, before the lift.

    The lift is 1 if all rows are zero. A row of this length comes half-way between the equator and
    the pole of the sphere. The value is rounded to 12 digits, so that it does not depend on how the
    rows are divided into blocks.
    """
    largest, squares, weight = 0.0, 0.0, 0.0
    for part_largest, part_squares, part_weight in rows.on_sphere(sphere_map).length_sums():
        higher = max(largest, part_largest)
        scale = higher if 0 < higher < np.inf else 1.0
        squares = squares * (largest / scale) ** 2 + part_squares * (part_largest / scale) ** 2
        largest, weight = higher, weight + part_weight
    lift = min(max(1.0, largest), _LONGEST)
    if 0 < largest < _LONGEST:
        lift = float(f"{largest * np.sqrt(squares / weight):.12g}")
    return replace(sphere_map, lift=lift)


def _multiples(weights: Array) -> Array:
    """Return weights as multiples of the least one or of a whole part of it; ones if they are not.

    Parts are whole fractions down to 1 / `_SMALLEST_PART`.
    """
    shares = weights / weights.min(initial=np.inf)
    for part in range(1, _SMALLEST_PART + 1):
        whole = np.rint(part * shares)
        if np.allclose(part * shares, whole, rtol=1e-6, atol=0.0):
            return np.asarray(whole)
    return np.ones(len(weights))


def merge_equal_rows(
    X: Matrix, codes: IntArray, weights: npt.NDArray[np.float64] | None
) -> tuple[Matrix, IntArray, npt.NDArray[np.float64] | None]:
    """Merge equal rows of one class, adding their weights, and drop rows of weight zero.

    Parameters
    ----------
    X : (n, d) floats, NaN equal to NaN; if sparse, without stored zeros, with sorted indices
    codes : (n,) the class of each row
    weights : (n,) at least 0, or None for ones

    Returns
    -------
    the rows, their classes and their weights. If every resulting weight is one, the rows keep
    their order and the weights are None. Else the order depends on the values of the rows alone,
    and for dense rows of up to `_MOST_COMPARED` features not on the unit or the offset of a
    feature, so that neither do the folds into which the rows are dealt.
    """
    if weights is not None and not weights.all():
        kept = np.flatnonzero(weights)
        X, codes, weights = X[kept], codes[kept], weights[kept]
    keys = _keys(X, codes)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    first, second = order[same], order[same + 1]
    equal = _equal_rows(X, first, second) & (codes[first] == codes[second])
    if not equal.any() and (weights is None or (weights == 1).all()):
        return X, codes, None
    starts = np.setdiff1d(np.arange(n_rows(X)), same[equal] + 1, assume_unique=True)
    total = np.add.reduceat((np.ones(n_rows(X)) if weights is None else weights)[order], starts)
    kept = order[starts]
    if not is_sparse(X):
        places = _lexicographic_order(X, codes, kept)
        kept, total = kept[places], total[places]
    return X[kept], codes[kept], total


def _lexicographic_order(X: Array, codes: IntArray, rows: IntArray) -> IntArray:
    """Return the order of some rows by class and then feature by feature.

    Rows that are alike in the first `_MOST_COMPARED` features keep their order. Each feature sorts
    only the rows that all features before it have left tied.
    """
    order = np.argsort(codes[rows], kind="stable")
    starts = np.ones(len(rows), dtype=np.bool_)  # whether a place begins a group of tied rows
    starts[1:] = np.diff(codes[rows[order]]) != 0
    for j in range(min(X.shape[1], _MOST_COMPARED)):
        tied = np.flatnonzero(~(starts & np.append(starts[1:], True)))
        if not len(tied):
            break
        values, groups = _comparable(X[rows[order[tied]], j]), np.cumsum(starts)[tied]
        places = np.lexsort((values, groups))
        order[tied] = order[tied[places]]
        values = values[places]
        starts[tied[1:]] |= values[1:] != values[:-1]
    return order


def _equal_rows(X: Matrix, first: IntArray, second: IntArray) -> npt.NDArray[np.bool_]:
    if is_sparse(X):
        different = csr_array(X[first] != X[second])
        return np.asarray(np.diff(different.indptr) == 0)
    return np.asarray((_comparable(X[first]) == _comparable(X[second])).all(axis=1))


def _comparable(numbers: Array) -> Array:
    """Return numbers with infinity in the place of NaN, which equals itself."""
    return np.where(np.isnan(numbers), np.inf, numbers)


def _keys(X: Matrix, codes: IntArray) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each row and its class: a random linear form of the bits."""
    rng = np.random.default_rng(0)
    factors = rng.integers(1 << 63, size=X.shape[1], dtype=np.uint64) * 2 + 1
    keys = codes.astype(np.uint64) * (rng.integers(1 << 63, dtype=np.uint64) * 2 + 1)
    if is_sparse(X):
        filled = np.flatnonzero(np.diff(X.indptr))
        if len(filled):
            keys[filled] += np.add.reduceat(
                _bit_patterns(X.data) * factors[X.indices], X.indptr[filled]
            )
    else:
        for rows in row_blocks(*X.shape):
            keys[rows] += np.einsum("ij,j->i", _bit_patterns(X[rows]), factors)
    keys ^= keys >> np.uint64(32)
    return keys


def _bit_patterns(numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return the bit patterns of floats, mixed; equal floats have equal patterns."""
    numbers = np.ascontiguousarray(numbers) + numbers.dtype.type(0)  # −0.0 becomes 0.0
    numbers[np.isnan(numbers)] = np.nan  # one bit pattern of many
    bits = numbers.view(f"u{numbers.dtype.itemsize}").astype(np.uint64, copy=False)
    # Low bits are often all zero, and a product by an odd factor would leave them so.
    bits ^= bits >> np.uint64(29)
    return bits
