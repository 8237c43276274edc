"""Matrices of the core: types, blocks of rows, and the few operations that differ for sparse rows.

A matrix is a NumPy array or a CSR array of SciPy. Sparse rows stay sparse; their products with
representatives, and their sums, are dense. Large products go block by block, so that an n × m
matrix is never held whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

Array: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.intp]
Matrix: TypeAlias = Any  # Array | csr_array, whose types mypy cannot tell apart

# Up to this many representatives, all computations after K-means are float64: that costs
# milliseconds, and the kernel matrices of small tables are the badly conditioned ones.
FLOAT64_UP_TO = 2048

# Entries of one block: 8 MB in float32, large enough for matrix products to run at full speed,
# small enough to stay in a shared cache until it is read again.
BLOCK_ENTRIES = 1 << 21

# Columns of a block that spans a part of the rows and a part of the columns.
COLUMNS = 1024


def column_blocks(n_columns: int) -> Iterator[slice]:
    """Cut columns into slices of `COLUMNS`."""
    return blocks_of(n_columns, COLUMNS)


def blocks_of(n: int, size: int) -> Iterator[slice]:
    """Cut `range(n)` into slices of `size`; the last may be shorter."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def cached_row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut rows into slices whose float64 copies fit into the cache of one core."""
    return blocks_of(n_rows, max(1, BLOCK_ENTRIES // max(1, 16 * width)))


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut `n_rows` rows of `width` entries each into slices of about `BLOCK_ENTRIES` entries."""
    return blocks_of(n_rows, block_height(width))


def block_height(width: int) -> int:
    """Return the number of rows, of `width` entries each, in a block of `BLOCK_ENTRIES`."""
    return max(1, BLOCK_ENTRIES // max(1, width))


def is_sparse(X: Matrix) -> bool:
    """Return whether rows are sparse."""
    return isinstance(X, csr_array)


def row_width(X: Matrix) -> int:
    """Return the number of features; for sparse rows, the mean number of stored entries."""
    if is_sparse(X):
        return max(1, int(X.nnz) // max(1, n_rows(X)))
    return int(X.shape[1])


def n_rows(X: Matrix) -> int:
    """Return the number of rows."""
    return int(X.shape[0])


def dense(X: Matrix) -> Array:
    """Return rows as a dense array, without a copy if they are dense."""
    return np.asarray(X.toarray() if is_sparse(X) else X)


def join_rows(parts: Sequence[Matrix]) -> Matrix:
    """Return the rows of several matrices, one below another."""
    return csr_array(vstack(parts)) if is_sparse(parts[0]) else np.concatenate(parts)


def multiply_into(out: Array, X: Matrix, Y: Array) -> Array:
    """Write X Yᵀ to `out`, and return it."""
    if is_sparse(X):
        out[...] = X @ Y.T
        return out
    return np.matmul(X, Y.T, out=out)


def paired_products(X: Matrix, Y: Array, partners: IntArray) -> Array:
    """Return the (n,) inner products ⟨X[i], Y[partners[i]]⟩."""
    if not is_sparse(X):
        return np.asarray(np.einsum("ij,ij->i", X, Y[partners]))
    counts = np.diff(X.indptr)
    terms = X.data * Y[np.repeat(partners, counts), X.indices]
    rows = np.repeat(np.arange(n_rows(X)), counts)
    return np.bincount(rows, terms, n_rows(X)).astype(X.dtype)


def squared_lengths(X: Matrix) -> Array:
    """Return the (n,) squared lengths of rows, in float64."""
    if not is_sparse(X):
        X = X.astype(np.float64, copy=False)
        return np.asarray(np.einsum("ij,ij->i", X, X))
    squares = X.data.astype(np.float64) ** 2
    rows = np.repeat(np.arange(n_rows(X)), np.diff(X.indptr))
    return np.asarray(np.bincount(rows, squares, n_rows(X)), dtype=np.float64)


def scale_rows(X: csr_array, factors: Array, dtype: npt.DTypeLike) -> csr_array:
    """Return sparse rows, each multiplied by a factor."""
    data = (X.data * np.repeat(factors, np.diff(X.indptr))).astype(dtype)
    return csr_array((data, X.indices, X.indptr), shape=X.shape)


def scale_columns(X: csr_array, factors: Array) -> csr_array:
    """Return sparse rows with each feature multiplied by a factor."""
    return csr_array((X.data * factors[X.indices], X.indices, X.indptr), shape=X.shape)


def largest_entries(X: csr_array) -> Array:
    """Return the (n,) largest absolute entries of sparse rows, in float64."""
    found = np.zeros(n_rows(X))
    filled = np.flatnonzero(np.diff(X.indptr))
    if len(filled):
        sizes = np.abs(X.data).astype(np.float64)
        found[filled] = np.maximum.reduceat(sizes, X.indptr[filled])
    return found


def append_column(X: csr_array, column: Array) -> csr_array:
    """Return sparse rows with a column appended."""
    last = csr_array(column[:, None].astype(X.dtype))
    return csr_array(hstack([X, last], format="csr"))


def product_blocks(X: Matrix, Y: Array) -> Iterator[tuple[slice, Array]]:
    """Yield X Yᵀ in blocks of rows; all blocks share one buffer, valid until the next block.

    A fresh buffer for every block would cost a good part of the products' time in page faults.
    """
    n = n_rows(X)
    buffer = np.empty((min(n, block_height(len(Y))), len(Y)), dtype=X.dtype)
    for rows in row_blocks(n, len(Y)):
        yield rows, multiply_into(buffer[: rows.stop - rows.start], X[rows], Y)


def gathered_product_blocks(
    X: Matrix, chosen: IntArray, Y: Array
) -> Iterator[tuple[IntArray, Array]]:
    """Yield the products of the `chosen` rows of X with Y, as `product_blocks` does."""
    height = min(len(chosen), block_height(max(len(Y), row_width(X))))
    gathered = np.empty((0 if is_sparse(X) else height, X.shape[1]), dtype=X.dtype)
    buffer = np.empty((height, len(Y)), dtype=X.dtype)
    for block in blocks_of(len(chosen), max(1, height)):
        rows = chosen[block]
        if is_sparse(X):
            left = X[rows]
        else:
            left = np.take(X, rows, axis=0, out=gathered[: len(rows)], mode="clip")
        yield rows, multiply_into(buffer[: len(rows)], left, Y)


def as_counts(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return weights as integers if all of them are whole numbers, else unchanged."""
    return weights.astype(np.intp) if (weights == np.rint(weights)).all() else weights
