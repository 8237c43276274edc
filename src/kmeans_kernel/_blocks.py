"""Row blocks: how the core visits an array without ever holding an n × m product whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.intp]

# Entries of one block: 4 MB in float32, large enough for the products to run at full speed,
# small enough to stay in a shared cache while it is read again.
BLOCK_ENTRIES = 1 << 20


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut `n_rows` rows of `width` entries each into slices of about `BLOCK_ENTRIES` entries."""
    step = max(1, BLOCK_ENTRIES // max(1, width))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
