"""The kernel matrix of the paper's system: stored in two triangles, or computed when multiplied by.

Products and kernel are computed in float64 and rounded once, when stored. Float32 products of many
terms are off by far more than that rounding, and the solve, however exact, would then solve another
system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.execution import SERIAL, Executor, deal
from kmeans_kernel.core.arrays.matrices import Array, IntArray, column_blocks
from kmeans_kernel.core.kernels.kernels import (
    Kernel,
    kernel_tiles,
    tile_rows,
    tiles_up_to_diagonal,
)
from kmeans_kernel.core.kernels.two_triangles import TwoTriangles


def gram_matrix(
    directions: Array, kernel: Kernel, dtype: npt.DTypeLike, executor: Executor = SERIAL
) -> TwoTriangles:
    """Return the symmetric (m, m) kernel matrix of unit rows, in a fresh buffer of `dtype`."""
    out = TwoTriangles.empty(len(directions), dtype)

    def fill(rows: slice) -> None:
        for columns, tile in tiles_up_to_diagonal(directions, kernel, rows):
            out.store(rows, columns, tile)

    executor.map(fill, tile_rows(len(directions)))
    return out


@dataclass(frozen=True, eq=False)
class ExactGram:
    """The kernel matrix of unit rows, computed in float64 whenever it is multiplied by."""

    directions: Array
    kernel: Kernel
    executor: Executor = SERIAL

    def multiply(self, V: Array) -> Array:
        """Return the matrix times V (m, K)."""

        def part(share: Sequence[slice]) -> Array:
            out = np.zeros_like(V)
            for rows in share:
                for columns, tile in tiles_up_to_diagonal(self.directions, self.kernel, rows):
                    out[rows] += tile @ V[columns]
                    if rows != columns:
                        out[columns] += tile.T @ V[rows]
            return out

        parts = self.executor.map(part, deal(tile_rows(len(V)), self.executor))
        return np.asarray(sum(parts))

    def multiply_rows(self, V: Array, rows: IntArray) -> Array:
        """Return some rows of the matrix times V (m, K)."""
        out = np.zeros((len(rows), V.shape[1]))
        columns = list(column_blocks(len(V)))
        for some, tile in kernel_tiles(self.directions, self.kernel, rows, columns):
            out += tile @ V[some]
        return out
