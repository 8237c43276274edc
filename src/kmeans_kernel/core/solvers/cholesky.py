"""Tiled Cholesky factorisation H = L Lᵀ, in place in one triangle of the buffer of H.

The other strict triangle is neither read nor written, so the caller may keep the matrix there.
LAPACK's potrf on the whole matrix crashes the process above an order of 46,340, where 32-bit
indices overflow, and in OpenBLAS already at 27,500 in float32, where a block of columns outgrows an
internal buffer. So potrf is called on tiles.

Arrays here are Fortran-ordered: the transpose of a C-ordered buffer.
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

# The most entries that one call may span: the largest signed 32-bit integer.
LARGEST_SPAN = 2**31 - 1

# The most bytes of a column of a tile: 25,000 float32 entries, known to work with OpenBLAS.
LONGEST_COLUMN = 100_000


def factor_in_place(matrix: Array) -> bool:
    """Replace the lower triangle of a Fortran-ordered H (m, m) by L.

    Right-looking: after each block column the trailing matrix is updated. Returns False if H is not
    positive definite.
    """
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
    for pivot in tiles:  # forward substitution: L z = v
        divide_from_left(matrix[pivot, pivot], V[pivot], transposed=False)
        V[pivot.stop :] -= matrix[pivot.stop :, pivot] @ V[pivot]
    for pivot in reversed(tiles):  # back substitution: Lᵀ x = z
        V[pivot] -= matrix[pivot.stop :, pivot].T @ V[pivot.stop :]
        divide_from_left(matrix[pivot, pivot], V[pivot], transposed=True)


def _tiles(m: int, itemsize: int) -> list[slice]:
    """Cut m columns into tiles within the limits of BLAS; a single tile if m is small enough."""
    width = max(1, min(m, LONGEST_COLUMN // itemsize, LARGEST_SPAN // m))
    n_tiles = -(-m // width)
    edges = np.linspace(0, m, n_tiles + 1).astype(np.intp).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]
