"""The Cholesky factorisation H = L Lᵀ in one triangle of H's own buffer, tile by tile.

The other strict triangle is neither read nor written, so the caller may keep the matrix itself
there. Almost all work is products of tiles, at the full speed of the machine, and no call spans
more entries than 32 bits count: LAPACK's own routine crashes the process above an order of 46,340.

Arrays here are Fortran-ordered: the transpose of an ordinary buffer.
"""

from __future__ import annotations

from kmeans_kernel._blas import (
    divide_from_left,
    divide_from_right,
    factor_tile,
    subtract_product,
    subtract_square,
)
from kmeans_kernel._blocks import Array

# Wide enough for the products to run at full speed; 1024 to 4096 measured the same within noise.
TILE = 2048


def factor_in_place(matrix: Array) -> bool:
    """Replace the lower triangle of a Fortran-ordered H (m, m) by L; False if not positive."""
    tiles = _tiles(len(matrix))
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
    tiles = _tiles(len(matrix))
    for pivot in tiles:  # L z = v, downward
        divide_from_left(matrix[pivot, pivot], V[pivot], transposed=False)
        V[pivot.stop :] -= matrix[pivot.stop :, pivot] @ V[pivot]
    for pivot in reversed(tiles):  # Lᵀ x = z, upward
        V[pivot] -= matrix[pivot.stop :, pivot].T @ V[pivot.stop :]
        divide_from_left(matrix[pivot, pivot], V[pivot], transposed=True)


def _tiles(m: int) -> list[slice]:
    return [slice(start, min(start + TILE, m)) for start in range(0, m, TILE)]
