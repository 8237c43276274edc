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


def cached_row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut rows into slices whose float64 copies stay in a core's cache through a few passes."""
    return row_blocks(n_rows, 16 * width)


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut `n_rows` rows of `width` entries each into slices of about `BLOCK_ENTRIES` entries."""
    return blocks_of(n_rows, block_height(width))


def block_height(width: int) -> int:
    return max(1, BLOCK_ENTRIES // max(1, width))
