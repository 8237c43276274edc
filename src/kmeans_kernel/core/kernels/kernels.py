"""Kernels as frozen dataclasses in one registry, and the tiles of kernel matrices.

A kernel is an elementwise function of the cosine c between unit rows, applied in place. To add one,
write a frozen dataclass with the methods of `Kernel` here and decorate it with `@register`; its
counterparts for ONNX and JavaScript have the same name in export/onnx/_kernels.py and
export/web/scripts/kernels.js, and tests/vectors holds all three to the same values.

The fields of the dataclass are the parameters of the kernel. The hyperparameter search tunes the
field `gamma` of a kernel that has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import Array, IntArray, Matrix, blocks_of, column_blocks

# A cosine within this of one is that of a row with itself, and 1 − c counts as zero: the square
# root in kernels with a cusp would magnify its rounding.
TIP = 1e-13

# Rows of a tile of a kernel matrix; its columns are one of `column_blocks`.
_TILE_HEIGHT = 512


class Kernel(Protocol):
    """An elementwise function of cosines."""

    name: ClassVar[str]

    def apply(self, out: Array) -> None:
        """Replace the cosines in `out` by kernel values."""

    def derivative(self, cosines: Array) -> Array:
        """Return the derivative of the kernel with respect to the cosine, at each cosine."""

    @property
    def steepness(self) -> float:
        """Largest |Δκ| / |Δc| over changes of the cosine of 1e-6, the size of float32 errors."""

    @property
    def is_smooth(self) -> bool:
        """Whether the kernel is differentiable at a cosine of one."""


KERNELS: dict[str, type[Any]] = {}

KernelType = TypeVar("KernelType", bound=type[Any])


def register(kernel: KernelType) -> KernelType:
    """Add a kernel to the registry under its name."""
    KERNELS[kernel.name] = kernel
    return kernel


def parameter(least: float, most: float, *, above: bool = False) -> Any:
    """Return a dataclass field in [least, most], or in (least, most] if `above`."""
    return field(metadata={"least": least, "most": most, "above": above})


def kernel_parameters(kernel: type[Any]) -> tuple[Field[Any], ...]:
    """Return the fields of a kernel class, with the ranges of parameters as metadata."""
    return fields(kernel)


def kernel_to_dict(kernel: Kernel) -> dict[str, Any]:
    """Return a kernel as a dictionary of its name and its parameters."""
    return {"name": kernel.name, **asdict(kernel)}  # type: ignore[call-overload]


def kernel_from_dict(tree: dict[str, Any]) -> Kernel:
    """Return the kernel described by a dictionary; ValueError if the dictionary is invalid."""
    name = tree.get("name") if isinstance(tree, dict) else tree
    kernel = KERNELS.get(name) if isinstance(name, str) else None
    if kernel is None:
        raise ValueError(f"its kernel is {name!r}")
    values = {one: value for one, value in tree.items() if one != "name"}
    if set(values) != {one.name for one in fields(kernel)}:
        raise ValueError(f"its kernel {kernel.name} has parameters {sorted(values)}")
    for one in fields(kernel):
        check_parameter(kernel, one, values[one.name])
    found: Kernel = kernel(**values)
    return found


def check_parameter(kernel: type[Any], parameter: Field[Any], value: Any) -> None:
    """Raise ValueError if a value is out of the range of a kernel's parameter."""
    least, most = parameter.metadata["least"], parameter.metadata["most"]
    kinds = int if parameter.type == "int" else (int, float)
    inside = (
        isinstance(value, kinds)
        and not isinstance(value, bool)
        and (value > least if parameter.metadata["above"] else value >= least)
        and value <= most
    )
    if not inside:
        what = "a whole number" if parameter.type == "int" else "a number"
        bound = "above" if parameter.metadata["above"] else "of at least"
        raise ValueError(
            f"{parameter.name} of the kernel {kernel.name!r} must be {what} {bound} {least:g} and "
            f"at most {most:g}, got {value!r}"
        )


@register
@dataclass(frozen=True)
class Polynomial:
    """Ω = cᵈ, for a whole degree d of at least 1. The paper's is d = 4."""

    name: ClassVar[str] = "poly"

    degree: int = parameter(1, 1000)

    def apply(self, out: Array) -> None:
        """Replace the cosines in `out` by their d-th powers, by square-and-multiply."""
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

    @property
    def is_smooth(self) -> bool:
        """True."""
        return True


@register
@dataclass(frozen=True)
class Gaussian:
    """Ω = exp(−2γ(1 − c)), which is exp(−γ‖x − x'‖²) for unit vectors."""

    name: ClassVar[str] = "rbf"

    gamma: float = parameter(0.0, 1e6, above=True)

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

    @property
    def is_smooth(self) -> bool:
        """True."""
        return True


@register
@dataclass(frozen=True)
class Laplacian:
    """Ω = exp(−2√(γ(1 − c))), which is exp(−√(2γ) ‖x − x'‖) for unit vectors.

    The exponential kernel. It has a cusp at c = 1 and long tails, so the score functions it spans
    are less smooth than those of the Gaussian.
    """

    name: ClassVar[str] = "laplacian"

    gamma: float = parameter(0.0, 1e6, above=True)

    def apply(self, out: Array) -> None:
        """Replace the cosines in `out` by the exponential of their distances."""
        np.subtract(1.0, out, out=out)
        np.multiply(out, out > TIP, out=out)
        np.multiply(out, 4.0 * self.gamma, out=out)
        np.sqrt(out, out=out)
        np.negative(out, out=out)
        np.exp(out, out=out)

    def derivative(self, cosines: Array) -> Array:
        """Return √(γ / (1 − c)) exp(−2√(γ(1 − c))), and zero at the cusp c = 1."""
        gaps = 1.0 - cosines
        tip = gaps < TIP
        roots = np.sqrt(self.gamma * np.where(tip, 1.0, gaps))
        return np.where(tip, 0.0, self.gamma / roots * np.exp(-2.0 * roots))

    @property
    def steepness(self) -> float:
        """The fall from the cusp over a change of the cosine of 1e-6, divided by 1e-6."""
        return 2e3 * float(np.sqrt(self.gamma))

    @property
    def is_smooth(self) -> bool:
        """False: the kernel has a cusp at a cosine of one."""
        return False


@register
@dataclass(frozen=True)
class ExponentialPower:
    """Ω = exp(−(√(2γ(1 − c)))^q), which is exp(−(√γ ‖x − x'‖)^q) for unit vectors, 0 < q ≤ 2.

    The family between the exponential and the Gaussian kernel, also called powered exponential:
    q = 2 is `Gaussian(γ)`, and q = 1 is `Laplacian(γ / 2)`. It is positive definite for q ≤ 2.
    """

    name: ClassVar[str] = "exponential_power"

    gamma: float = parameter(0.0, 1e6, above=True)
    exponent: float = parameter(0.0, 2.0, above=True)

    def apply(self, out: Array) -> None:
        """Replace the cosines in `out` by the exponential of a power of their distances."""
        np.subtract(1.0, out, out=out)
        np.multiply(out, out > TIP, out=out)
        np.multiply(out, 2.0 * self.gamma, out=out)
        np.power(out, self.exponent / 2.0, out=out)
        np.negative(out, out=out)
        np.exp(out, out=out)

    def derivative(self, cosines: Array) -> Array:
        """Return γ q u^(q/2 − 1) exp(−u^(q/2)) with u = 2γ(1 − c); zero at the cusp if q < 2."""
        gaps = 1.0 - cosines
        tip = gaps < TIP
        u = 2.0 * self.gamma * np.where(tip, 1.0, np.maximum(gaps, TIP))
        half = self.exponent / 2.0
        slopes = self.gamma * self.exponent * u ** (half - 1.0) * np.exp(-(u**half))
        at_tip = 2.0 * self.gamma if self.is_smooth else 0.0
        return np.where(tip, at_tip, slopes)

    @property
    def steepness(self) -> float:
        """The fall from c = 1 over a change of the cosine of 1e-6, divided by 1e-6."""
        return float((2e-6 * self.gamma) ** (self.exponent / 2.0) * 1e6)

    @property
    def is_smooth(self) -> bool:
        """Whether q = 2, the Gaussian."""
        return self.exponent == 2.0


def unit_rows_for(kernel: Kernel, directions: Array) -> Array:
    """Return unit rows in the precision that the kernel needs.

    The length of a float32 row is one up to rounding, and its cosines have errors of the same size.
    The square root at the cusp of a kernel that is not smooth makes them a thousand times larger,
    so for such a kernel the rows are normalised again in float64.
    """
    if not kernel.is_smooth and directions.dtype != np.float64:
        wide = directions.astype(np.float64)
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        return np.asarray(wide / np.where(lengths > 0, lengths, 1.0))
    return directions


def kernel_values(U: Matrix, directions: Array, kernel: Kernel) -> Array:
    """Return the (n, m) kernel values of unit rows with representatives, in float64."""
    values = U.astype(np.float64, copy=False) @ directions.astype(np.float64, copy=False).T
    kernel.apply(values)
    return np.asarray(values)


def kernel_matrix(directions: Array, kernel: Kernel, executor: Executor = SERIAL) -> Array:
    """Return the symmetric (m, m) kernel matrix of unit rows, in float64."""
    out = np.empty((len(directions), len(directions)))

    def fill(rows: slice) -> None:
        for columns, tile in tiles_up_to_diagonal(directions, kernel, rows):
            out[columns, rows] = tile.T
            # A diagonal tile is symmetric only up to rounding: its lower triangle is mirrored.
            below: Any = rows != columns or np.tril(np.ones(tile.shape, dtype=bool), -1)
            np.copyto(out[rows, columns], tile, where=below)

    executor.map(fill, tile_rows(len(directions)))
    return out


def tile_rows(m: int) -> list[slice]:
    """Cut m rows into slices of the height of a tile, the last first.

    Up to the diagonal the last slices have the most tiles; parallel work starts with the longest.
    """
    return list(blocks_of(m, _TILE_HEIGHT))[::-1]


def tiles_up_to_diagonal(
    directions: Array, kernel: Kernel, rows: slice
) -> Iterator[tuple[slice, Array]]:
    """Yield the tiles of these rows of the kernel matrix up to the diagonal."""
    return kernel_tiles(directions, kernel, rows, [*column_blocks(rows.start), rows])


def kernel_tiles(
    directions: Array, kernel: Kernel, rows: slice | IntArray, columns: list[slice]
) -> Iterator[tuple[slice, Array]]:
    """Yield these rows and columns of the kernel matrix in float64, tile by tile.

    All tiles share one buffer: a tile is valid until the next, and the caller may overwrite it.
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
