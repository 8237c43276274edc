"""The Cholesky factorisation H = L Lᵀ in one triangle of H's own buffer, tile by tile.

The other strict triangle is neither read nor written, so the caller may keep the matrix itself
there. LAPACK's own routine crashes the process on large matrices: where 32 bits do not count the
entries, above an order of 46,340; and where a block of columns outgrows a buffer of OpenBLAS, seen
at 27,500 in float32. So it gets tiles.

Arrays here are Fortran-ordered: the transpose of an ordinary buffer.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.solvers.blas import (
    divide_from_left,
    divide_from_right,
    factor_tile,
    subtract_product,
    subtract_square,
)

# The most entries that a call may span: what 32 bits count.
LARGEST_SPAN = 2**31 - 1

# The most bytes of a column of a tile: 25,000 entries in float32, which OpenBLAS is known to take.
LONGEST_COLUMN = 100_000


def factor_in_place(matrix: Array) -> bool:
    """Replace the lower triangle of a Fortran-ordered H (m, m) by L; False if not positive."""
    tiles = _tiles(len(matrix), matrix.itemsize)
    for k, pivot in enumerate(tiles):
        corner = matrix[pivot, pivot]
        if not factor_tile(corner):
            return False
        divide_from_right(corner, matrix[pivot.stop :, pivot])
        for columns in tiles[k + 1 :]:
            own = matrix[columns, pivot]
            subtract_square(matrix[columns, columns], own)
            below = slice(columns.stop, None)
            subtract_product(matrix[below, columns], matrix[below, pivot], own)
    return True


def solve_in_place(matrix: Array, V: Array) -> None:
    """Replace a Fortran-ordered V (m, K) by H⁻¹V, with L from the lower triangle of `matrix`."""
    tiles = _tiles(len(matrix), matrix.itemsize)
    for pivot in tiles:  # L z = v, downward
        divide_from_left(matrix[pivot, pivot], V[pivot], transposed=False)
        V[pivot.stop :] -= matrix[pivot.stop :, pivot] @ V[pivot]
    for pivot in reversed(tiles):  # Lᵀ x = z, upward
        V[pivot] -= matrix[pivot.stop :, pivot].T @ V[pivot.stop :]
        divide_from_left(matrix[pivot, pivot], V[pivot], transposed=True)


def _tiles(m: int, itemsize: int) -> list[slice]:
    """Cut m columns into tiles that BLAS can take; one tile if all of it may be."""
    width = max(1, min(m, LONGEST_COLUMN // itemsize, LARGEST_SPAN // m))
    n_tiles = -(-m // width)
    edges = np.linspace(0, m, n_tiles + 1).astype(np.intp).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]
