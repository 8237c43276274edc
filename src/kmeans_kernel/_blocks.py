"""Row blocks: how the core visits an array without ever holding an n × m product whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.intp]

# Entries of one block: 8 MB in float32, large enough for the products to run at full speed,
# small enough to stay in a shared cache while it is read again.
BLOCK_ENTRIES = 1 << 21

# Columns of a block that is cut both ways.
COLUMNS = 1024


def column_blocks(n_columns: int) -> Iterator[slice]:
    """Cut columns into slices of `COLUMNS`."""
    return blocks_of(n_columns, COLUMNS)


def blocks_of(n: int, size: int) -> Iterator[slice]:
    """Cut a length into slices of this size; the last may be shorter."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def product_blocks(X: Array, Y: Array) -> Iterator[tuple[slice, Array]]:
    """Give X Yᵀ in blocks of rows, each in the same buffer: it is the caller's until the next.

    A fresh buffer for every block would cost a good part of the products' time in page faults.
    """
    buffer = np.empty((min(len(X), _block_height(len(Y))), len(Y)), dtype=X.dtype)
    for rows in row_blocks(len(X), len(Y)):
        yield rows, np.matmul(X[rows], Y.T, out=buffer[: rows.stop - rows.start])


def gathered_product_blocks(
    X: Array, chosen: IntArray, Y: Array
) -> Iterator[tuple[IntArray, Array]]:
    """Give the products of the `chosen` rows of X with Y, as `product_blocks` does."""
    height = min(len(chosen), _block_height(max(len(Y), X.shape[1])))
    gathered = np.empty((height, X.shape[1]), dtype=X.dtype)
    buffer = np.empty((height, len(Y)), dtype=X.dtype)
    for block in blocks_of(len(chosen), max(1, height)):
        rows = chosen[block]
        left = np.take(X, rows, axis=0, out=gathered[: len(rows)], mode="clip")
        yield rows, np.matmul(left, Y.T, out=buffer[: len(rows)])


def cached_row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut rows into slices whose float64 copies stay in a core's cache through a few passes."""
    return row_blocks(n_rows, 16 * width)


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut `n_rows` rows of `width` entries each into slices of about `BLOCK_ENTRIES` entries."""
    return blocks_of(n_rows, _block_height(width))


def _block_height(width: int) -> int:
    return max(1, BLOCK_ENTRIES // max(1, width))
