"""Kernels as values: each is an elementwise function of a matrix of cosines, applied in place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kmeans_kernel._blocks import Array, column_blocks


class Kernel(Protocol):
    """An elementwise function of cosines."""

    def apply(self, out: Array) -> None:
        """Replace the cosines in `out` by kernel values."""

    @property
    def steepness(self) -> float:
        """How much more than the cosine the value changes, at most."""


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

    @property
    def steepness(self) -> float:
        """The slope at a cosine of one."""
        return 2.0 * self.gamma


def gram_matrix(directions: Array, kernel: Kernel, dtype: npt.DTypeLike) -> Array:
    """Return the symmetric (m, m) kernel matrix of unit rows, in a fresh buffer of `dtype`.

    Products and kernel are computed in float64 and rounded once, when stored. Float32 products of
    many terms are off by far more than that rounding, and the solve, however exact, would then
    solve another system.
    """
    out = np.empty((len(directions), len(directions)), dtype=dtype)
    for rows, columns, tile in _lower_tiles(directions, kernel):
        out[rows, columns] = tile
        out[columns, rows] = tile.T
    return out


def gram_product(directions: Array, kernel: Kernel, V: Array) -> Array:
    """Return the kernel matrix of unit rows times V (m, K), in float64, without storing it."""
    out = np.zeros_like(V)
    for rows, columns, tile in _lower_tiles(directions, kernel):
        out[rows] += tile @ V[columns]
        if rows != columns:
            out[columns] += tile.T @ V[rows]
    return out


def _lower_tiles(directions: Array, kernel: Kernel) -> Iterator[tuple[slice, slice, Array]]:
    """Compute the kernel matrix in float64, tile by tile, diagonal and below."""
    blocks = list(column_blocks(len(directions)))
    for i, rows in enumerate(blocks):
        left = directions[rows].astype(np.float64)
        for columns in blocks[: i + 1]:
            tile = left @ directions[columns].astype(np.float64).T
            kernel.apply(tile)
            yield rows, columns, tile
