"""Kernels as values: each is an elementwise function of a matrix of cosines, applied in place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.blocking import Array, IntArray, blocks_of, column_blocks
from kmeans_kernel.core.arrays.executor import ALONE, Workers, shares
from kmeans_kernel.core.arrays.triangles import TwoTriangles

# Cosines this close to one are those of a row with itself: the root makes much of rounding.
TIP = 1e-13

# Rows of a tile; its columns are a column block.
_TILE_HEIGHT = 512


class Kernel(Protocol):
    """An elementwise function of cosines."""

    def apply(self, out: Array) -> None:
        """Replace the cosines in `out` by kernel values."""

    def derivative(self, cosines: Array) -> Array:
        """Return the slope of the kernel at each cosine."""

    @property
    def steepness(self) -> float:
        """How much more than the cosine the value changes, at most, for a change of a millionth."""


@dataclass(frozen=True)
class Polynomial:
    """Ω = cᵈ, for a whole degree d of at least 1. The paper's is d = 4."""

    degree: int

    def apply(self, out: Array) -> None:
        """Replace the cosines in `out` by their powers: square and multiply, bit by bit."""
        bits = bin(self.degree)[3:]  # the bits after the leading one
        cosines = out.copy() if "1" in bits else out
        for bit in bits:
            np.multiply(out, out, out=out)
            if bit == "1":
                np.multiply(out, cosines, out=out)

    def derivative(self, cosines: Array) -> Array:
        """Return d cᵈ⁻¹."""
        return np.asarray(self.degree * cosines ** (self.degree - 1))

    @property
    def steepness(self) -> float:
        """The slope at a cosine of one."""
        return float(self.degree)


@dataclass(frozen=True)
class Gaussian:
    """Ω = exp(−2γ(1 − c)), which is exp(−γ‖x − x'‖²) for unit vectors."""

    gamma: float

    def apply(self, out: Array) -> None:
        """Replace the cosines in `out` by the Gaussian of their distances."""
        np.subtract(out, 1.0, out=out)
        np.multiply(out, 2.0 * self.gamma, out=out)
        np.exp(out, out=out)

    def derivative(self, cosines: Array) -> Array:
        """Return 2γ exp(−2γ(1 − c))."""
        return np.asarray(2.0 * self.gamma * np.exp(2.0 * self.gamma * (cosines - 1.0)))

    @property
    def steepness(self) -> float:
        """The slope at a cosine of one."""
        return 2.0 * self.gamma


@dataclass(frozen=True)
class Laplacian:
    """Ω = exp(−2√(γ(1 − c))), which is exp(−√(2γ) ‖x − x'‖) for unit vectors.

    It has a tip where the Gaussian is round, and long tails: a function made of it may change
    abruptly.
    """

    gamma: float

    def apply(self, out: Array) -> None:
        """Replace the cosines in `out` by the exponential of their distances."""
        np.subtract(1.0, out, out=out)
        np.multiply(out, out > TIP, out=out)
        np.multiply(out, 4.0 * self.gamma, out=out)
        np.sqrt(out, out=out)
        np.negative(out, out=out)
        np.exp(out, out=out)

    def derivative(self, cosines: Array) -> Array:
        """Return √(γ / (1 − c)) exp(−2√(γ(1 − c))), and zero at the tip."""
        gaps = 1.0 - cosines
        tip = gaps < TIP
        roots = np.sqrt(self.gamma * np.where(tip, 1.0, gaps))
        return np.where(tip, 0.0, self.gamma / roots * np.exp(-2.0 * roots))

    @property
    def steepness(self) -> float:
        """How far the tip falls within a millionth."""
        return 2e3 * float(np.sqrt(self.gamma))


def sharpened(directions: Array, kernel: Kernel) -> Array:
    """Return unit rows fit for the kernel.

    Rows of float32 have a length of one but for rounding. A cosine is off by as much, which the
    root at the tip of a Laplacian makes a thousand times larger.
    """
    if isinstance(kernel, Laplacian) and directions.dtype != np.float64:
        wide = directions.astype(np.float64)
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        return np.asarray(wide / np.where(lengths > 0, lengths, 1.0))
    return directions


def gram_matrix(
    directions: Array, kernel: Kernel, dtype: npt.DTypeLike, workers: Workers = ALONE
) -> TwoTriangles:
    """Return the symmetric (m, m) kernel matrix of unit rows, in a fresh buffer of `dtype`.

    Products and kernel are computed in float64 and rounded once, when stored. Float32 products of
    many terms are off by far more than that rounding, and the solve, however exact, would then
    solve another system.
    """
    out = TwoTriangles.empty(len(directions), dtype)

    def fill(rows: slice) -> None:
        for columns, tile in _tiles_beside(directions, kernel, rows):
            out.store(rows, columns, tile)

    workers.map(fill, _rows_of_tiles(len(directions)))
    return out


@dataclass(frozen=True, eq=False)
class ExactGram:
    """The kernel matrix of unit rows, computed in float64 whenever it is multiplied by."""

    directions: Array
    kernel: Kernel
    workers: Workers = ALONE

    def multiply(self, V: Array) -> Array:
        """Return the matrix times V (m, K)."""

        def part(share: Sequence[slice]) -> Array:
            out = np.zeros_like(V)
            for rows in share:
                for columns, tile in _tiles_beside(self.directions, self.kernel, rows):
                    out[rows] += tile @ V[columns]
                    if rows != columns:
                        out[columns] += tile.T @ V[rows]
            return out

        parts = self.workers.map(part, shares(_rows_of_tiles(len(V)), self.workers))
        return np.asarray(sum(parts))

    def multiply_rows(self, V: Array, rows: IntArray) -> Array:
        """Return some rows of the matrix times V (m, K)."""
        out = np.zeros((len(rows), V.shape[1]))
        for columns, tile in _tiles(
            self.directions, self.kernel, rows, list(column_blocks(len(V)))
        ):
            out += tile @ V[columns]
        return out


def _rows_of_tiles(m: int) -> list[slice]:
    """Cut m rows into the heights of tiles; the longest rows of tiles, the last, come first."""
    return list(blocks_of(m, _TILE_HEIGHT))[::-1]


def _tiles_beside(directions: Array, kernel: Kernel, rows: slice) -> Iterator[tuple[slice, Array]]:
    """Compute these rows of the kernel matrix, tile by tile, up to the diagonal."""
    return _tiles(directions, kernel, rows, [*column_blocks(rows.start), rows])


def _tiles(
    directions: Array, kernel: Kernel, rows: slice | IntArray, columns: list[slice]
) -> Iterator[tuple[slice, Array]]:
    """Compute these rows and columns of the kernel matrix in float64, tile by tile.

    Each tile is in the same buffer: it is the caller's until the next.
    """
    left = directions[rows].astype(np.float64)
    widest = max(some.stop - some.start for some in columns)
    right = np.empty((widest, directions.shape[1]))
    buffer = np.empty((len(left), widest))
    for some in columns:
        width = some.stop - some.start
        right[:width] = directions[some]
        tile = np.matmul(left, right[:width].T, out=buffer[:, :width])
        kernel.apply(tile)
        yield some, tile
