"""A symmetric matrix stored twice in one square buffer: for factorisation, and for products.

On and above the diagonal the entries are in the buffer's type, and the Cholesky factor replaces
them. Below the diagonal they are kept for residuals; in a float32 buffer as fixed-point numbers,
whole multiples of 2⁻³⁰ in 32 bits. This is finer than float32 for entries above 2⁻⁷ (near 0.1 eight
times finer), and the rounding of large entries dominates the error. Kernel values are at most 1 up
to the rounding of the rows, which for the steepest kernel allowed makes it 1.3, so entries of
magnitude below 2 always fit. The diagonal is kept separately, in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.execution import SERIAL, Executor, deal
from kmeans_kernel.core.arrays.matrices import Array

# The fixed-point scale, and the bound on the magnitude of entries that 32 bits then hold.
_STEPS = 2.0**30
_LARGEST = 2.0

# Shape of a float64 tile of the lower triangle: small enough to stay in the cache of one core while
# the tile and its transpose are multiplied by.
_TILE_HEIGHT, _TILE_WIDTH = 128, 512


@dataclass(frozen=True, eq=False)
class TwoTriangles:
    """A symmetric matrix with entries of magnitude below 2.

    Attributes
    ----------
    buffer : (m, m) float32 or float64: the upper triangle holds the matrix or its Cholesky factor;
        the strict lower triangle the matrix, in a float32 buffer as multiples of 2⁻³⁰
    diagonal : (m,) float64
    """

    buffer: Array
    diagonal: Array

    @classmethod
    def empty(cls, m: int, dtype: npt.DTypeLike) -> TwoTriangles:
        """Return a matrix with uninitialised entries, to be filled by `store`."""
        return cls(np.empty((m, m), dtype=dtype), np.empty(m))

    @property
    def is_exact(self) -> bool:
        """Whether the entries below the diagonal are float64, without rounding."""
        return not self._in_steps

    @property
    def rounding(self) -> float:
        """Root mean square rounding error of an entry below the diagonal: step / √12."""
        step = 1 / _STEPS if self._in_steps else float(np.finfo(np.float64).eps) / 2
        return step / float(np.sqrt(12.0))

    def store(self, rows: slice, columns: slice, tile: Array) -> None:
        """Store a float64 tile below the diagonal, or a tile on it (rows == columns).

        Overwrites the tile.
        """
        if rows == columns:
            self.diagonal[rows] = tile.diagonal()
            below: Any = np.tril(np.ones(tile.shape, dtype=bool), -1)
        else:
            below = True
        self.buffer[columns, rows] = tile.T
        if self._in_steps:
            if not -_LARGEST < tile.min() <= tile.max() < _LARGEST:
                raise OverflowError(f"kernel values of {_LARGEST:g} and more cannot be stored")
            np.multiply(tile, _STEPS, out=tile)
            np.rint(tile, out=tile)
        np.copyto(self._below[rows, columns], tile, where=below, casting="unsafe")

    def multiply(self, V: Array, executor: Executor = SERIAL) -> Array:
        """Return the matrix times V (m, K), in float64, from the triangle below the diagonal."""
        V = np.ascontiguousarray(V)
        tops = range(0, len(self.buffer), _TILE_HEIGHT)
        # The tiles are too small for threaded BLAS, so rows of tiles are dealt to the workers.
        parts = executor.map(lambda share: self._part_product(V, share), deal(tops, executor))
        product = sum(parts) / _STEPS if self._in_steps else sum(parts)
        return np.asarray(product + self.diagonal[:, np.newaxis] * V)

    @property
    def _in_steps(self) -> bool:
        return self.buffer.dtype == np.float32

    @property
    def _below(self) -> npt.NDArray[Any]:
        """A view of the buffer in the type of the strict lower triangle."""
        return self.buffer.view(np.int32) if self._in_steps else self.buffer

    def _part_product(self, V: Array, tops: Sequence[int]) -> Array:
        """Return the product with the rows of tiles at `tops` and with their transposes."""
        out = np.zeros_like(V)
        below, scratch = self._below, np.empty((_TILE_HEIGHT, _TILE_WIDTH))
        for top in tops:
            rows = slice(top, min(top + _TILE_HEIGHT, len(V)))
            for left in range(0, top, _TILE_WIDTH):
                columns = slice(left, min(left + _TILE_WIDTH, top))
                tile = scratch[: rows.stop - top, : columns.stop - left]
                tile[...] = below[rows, columns]
                out[rows] += tile @ V[columns]
                out[columns] += tile.T @ V[rows]
            corner = np.tril(below[rows, rows], -1).astype(np.float64)
            out[rows] += corner @ V[rows] + corner.T @ V[rows]
        return out
