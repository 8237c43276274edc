"""The kernel (Gram) matrix of the LS-SVM: stored as `TwoTriangles`, or recomputed per product.

Cosines and kernel values are computed in float64 and rounded once, when stored. The error of
float32 inner products of many terms is far larger than that rounding, and even an exact solve would
then solve another system.
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
    """The kernel matrix of unit rows, recomputed in float64 for every product with it."""

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
        """Return the product of some rows of the matrix with V (m, K)."""
        out = np.zeros((len(rows), V.shape[1]))
        columns = list(column_blocks(len(V)))
        for some, tile in kernel_tiles(self.directions, self.kernel, rows, columns):
            out += tile @ V[some]
        return out
