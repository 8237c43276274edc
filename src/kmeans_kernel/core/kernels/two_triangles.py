"""A symmetric matrix twice in one buffer: to be factored, and to be multiplied by.

On and above the diagonal the entries are rounded to the buffer's type; a factorisation may replace
them. Below it they stay for residuals, as whole multiples of 2⁻³⁰ in the same 32 bits. That is
finer than float32 for entries above 2⁻⁷, eight times so near a tenth, and it is the large entries
whose rounding shows. Kernel values are at most 1 but for the rounding of the rows, which for the
steepest kernel allowed makes it 1.3, so entries below 2 in size always fit. The diagonal is kept
apart, in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.execution import SERIAL, Executor, deal
from kmeans_kernel.core.arrays.matrices import Array

_STEPS = 2.0**30
_LARGEST = 2.0

# A float64 tile of the lower triangle: it stays in the cache of a core while it is used twice.
_TILE_HEIGHT, _TILE_WIDTH = 128, 512


@dataclass(frozen=True, eq=False)
class TwoTriangles:
    """A symmetric matrix with entries below 2 in size.

    Attributes
    ----------
    buffer : (m, m) float32 or float64: the matrix on and above the diagonal; below it the matrix
        again, in steps of 2⁻³⁰ in place of float32
    diagonal : (m,) float64
    """

    buffer: Array
    diagonal: Array

    @classmethod
    def empty(cls, m: int, dtype: npt.DTypeLike) -> TwoTriangles:
        """Return a matrix that is still to be stored, tile by tile."""
        return cls(np.empty((m, m), dtype=dtype), np.empty(m))

    @property
    def is_exact(self) -> bool:
        """Whether what is kept below the diagonal is float64, as it came."""
        return not self._in_steps

    @property
    def rounding(self) -> float:
        """The root mean square of what rounding an entry below the diagonal makes it differ."""
        step = 1 / _STEPS if self._in_steps else float(np.finfo(np.float64).eps) / 2
        return step / float(np.sqrt(12.0))

    def store(self, rows: slice, columns: slice, tile: Array) -> None:
        """Store a float64 tile that lies below the diagonal, or whose diagonal is its own.

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
        # The tiles are too small for BLAS to share out among cores, so the rows of tiles are.
        parts = executor.map(lambda share: self._part_product(V, share), deal(tops, executor))
        product = sum(parts) / _STEPS if self._in_steps else sum(parts)
        return np.asarray(product + self.diagonal[:, np.newaxis] * V)

    @property
    def _in_steps(self) -> bool:
        return self.buffer.dtype == np.float32

    @property
    def _below(self) -> npt.NDArray[Any]:
        """The buffer, read and written as what is kept below the diagonal."""
        return self.buffer.view(np.int32) if self._in_steps else self.buffer

    def _part_product(self, V: Array, tops: Sequence[int]) -> Array:
        """Multiply by the rows of tiles that begin at `tops`, and by their mirror images."""
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
