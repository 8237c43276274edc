"""Nyström kernel ridge regression: fitted to all samples, with the representatives as landmarks.

    minimise over a, b:   Σᵢ wᵢ ‖kᵢᵀ a + b − yᵢ‖²  +  λ W Σ aᵀ (Ω + δI) a,    W = Σᵢ wᵢ

with kᵢ (m,) the kernel of sample i with the representatives, Ω (m, m) the kernel matrix among them,
a (m, K) the dual coefficients, b (K,) the intercept. The representatives are the landmarks of the
Nyström approximation (Williams and Seeger, NIPS 2000), chosen as K-means centres (Zhang, Tsang and
Kwok, ICML 2008). With Ω + δI = L Lᵀ and whitened features zᵢ = L⁻¹ kᵢ the problem is ordinary ridge
regression. Its normal equations are well conditioned compared with those of the kernel values kᵢ,
and they are a sum over blocks of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.execution import SERIAL, Executor, sum_over
from kmeans_kernel.core.arrays.matrices import Array, IntArray, Matrix, blocks_of, join_rows
from kmeans_kernel.core.arrays.rows import LabelledRows, TrainingRows
from kmeans_kernel.core.arrays.sphere import PLAIN_MAP
from kmeans_kernel.core.kernels.kernels import (
    Kernel,
    kernel_matrix,
    kernel_values,
    unit_rows_for,
)
from kmeans_kernel.core.solvers.blas import cholesky_lower, divide_from_left, solve_lower

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# δ, sufficient for the Cholesky factor up to this order; `nugget` raises it for larger matrices.
_NUGGET = 1e-8
_NUGGET_UP_TO = 3000

# δ for float32 features. Rounding of a kernel value, 6e-8, is magnified by at most 1/√δ.
_FLOAT32_NUGGET = 1e-7

# Relative rounding errors, from which `factor_with_ridge` takes the least ridge that helps.
_FLOAT32_ROUNDING = float(np.finfo(np.float32).eps)
_FLOAT64_ROUNDING = float(np.finfo(np.float64).eps)

# Least value of 1 − leverage: rounding may make it smaller, or negative.
_LEAST_ONE_MINUS_LEVERAGE = 1e-6

# Most bytes of feature blocks held between passes; and most bytes of them in float64, above which
# they are float32.
STORED_UP_TO = 3 << 30
_EXACT_UP_TO = 256 << 20

# Steepness above which a kernel gets float64 cosines.
_STEEP = 1e4

# Entries of a block of kernel values, 4 MB in float32. A pass reads a block twice, for the scores
# and for the sums; the second time it comes from the cache that the cores share.
_KERNEL_ENTRIES = 1 << 20

# Rows of the sample for each landmark, at least and at most. With s of them the eigenvalues of the
# preconditioned covariance are about (1 ± 1/√s)², so a step of conjugate gradients divides the
# error by √s: by 2.5 and by 4.5. More rows pay where a pass over all rows is expensive.
_LEAST_SAMPLE, _MOST_SAMPLE, _SHARE_OF_ROWS = 6, 20, 0.04

# A sample pays if it is at most this share of the rows, and all of them would take more than this
# many operations (n m²): about two seconds on two cores. Smaller problems are solved exactly.
_SMALL_SHARE, _MOST_EXACT = 0.25, 1e11


@dataclass(frozen=True, eq=False)
class NystromBasis:
    """The Nyström basis: kernel functions of the landmarks, and the factor that whitens them.

    Attributes
    ----------
    directions : (m, d) the landmarks, float64 unit rows
    kernel : the kernel
    factor : (m, m) L, the lower Cholesky factor of Ω + δI, in float64
    dtype : the type of the features: float64, or float32 in less than half of the time
    """

    directions: Array
    kernel: Kernel
    factor: Array
    dtype: npt.DTypeLike = np.float64

    @classmethod
    def of(
        cls,
        directions: Array,
        kernel: Kernel,
        executor: Executor = SERIAL,
        dtype: npt.DTypeLike = np.float64,
    ) -> NystromBasis:
        """Factor the kernel matrix of the landmarks; δ is raised if rounding needs more."""
        directions = unit_rows_for(kernel, directions).astype(np.float64, copy=False)
        omega = kernel_matrix(directions, kernel, executor)
        return cls(directions, kernel, factor_landmarks(omega, dtype), dtype)

    @cached_property
    def _factor(self) -> Array:
        """L in the type of the features, in Fortran order for BLAS."""
        return np.asfortranarray(self.factor, dtype=self.dtype)

    @cached_property
    def _directions(self) -> Array:
        return self.directions.astype(self.dtype, copy=False)

    def features(self, U: Matrix) -> Array:
        """Return the (n, m) whitened features L⁻¹ k of unit rows."""
        values = np.asarray(U.astype(self.dtype, copy=False) @ self._directions.T)
        if self.dtype != np.float64:  # rounding may leave a cosine above one
            np.minimum(values, 1.0, out=values)
        self.kernel.apply(values)
        divide_from_left(self._factor, values.T, transposed=False)
        return values

    def whiten(self, values: Array) -> Array:
        """Return L⁻¹ times kernel values (m, n), in float64."""
        return solve_lower(self.factor, values)

    def dual(self, coefficients: Array) -> Array:
        """Map (m, K) coefficients of whitened features to kernel coefficients: L⁻ᵀ."""
        return solve_lower(self.factor, coefficients, transposed=True)


def factor_landmarks(omega: Array, dtype: npt.DTypeLike = np.float32) -> Array:
    """Return L, the factor of the kernel matrix of landmarks, for features of a type.

    The diagonal of the matrix is overwritten.
    """
    delta = nugget(len(omega)) if dtype == np.float64 else _FLOAT32_NUGGET
    return factor_with_ridge(omega, delta, _FLOAT64_ROUNDING)


def nugget(m: int) -> float:
    """Return δ for m landmarks, which keeps Ω + δI numerically positive definite."""
    return _NUGGET * max(1.0, m / _NUGGET_UP_TO) ** 2


def sample_size(n: int, m: int) -> int:
    """Return the number of rows, of n, from which to estimate the covariance of m features."""
    return int(min(max(_SHARE_OF_ROWS * n, _LEAST_SAMPLE * m), _MOST_SAMPLE * m))


def sampling_pays(n: int, m: int) -> bool:
    """Return whether to estimate the covariance from a sample instead of all n rows."""
    return sample_size(n, m) <= _SMALL_SHARE * n and float(n) * m**2 > _MOST_EXACT


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients fitted for one λ.

    Attributes
    ----------
    coefficients : (m, K) coefficients of the whitened features; of the kernel for the LS-SVM
    intercept : (K,)
    relative_residual : relative residual of the solved equations, the largest over the columns
    left_out_scores : function that returns the (n, K) leave-one-out scores of training samples;
        None if there is no closed form
    """

    coefficients: Array
    intercept: Array
    relative_residual: float
    left_out_scores: Callable[[LabelledRows], Array] | None = None


class BlockSum(Protocol[T_co]):
    """A function of a block of samples, whose values support `+`."""

    def __call__(self, features: Array, codes: IntArray, weights: Array, /) -> T_co:
        """Return the value for features (n, m), positions of the classes (n,), weights (n,)."""


@dataclass(frozen=True, eq=False)
class FeatureBlocks:
    """Features of all samples in blocks, either whitened features or kernel values.

    For few landmarks the features are whitened. For many they are kernel values, since whitening
    costs n m²; the solver then maps coefficients and sums instead, at m² K.

    Attributes
    ----------
    rows : the samples
    make : picklable function that returns the (n, m) features of a block of rows
    to_kernel : maps (m, K) coefficients of whitened features to coefficients of `make`'s features
    to_whitened : maps (m, K) sums over `make`'s features to sums over whitened features
    executor : runs the passes
    held : features, classes and weights of each block; None to recompute them in every pass
    height : most rows of a block; None for the blocks of `rows`
    """

    rows: TrainingRows
    make: Callable[[LabelledRows], Array]
    to_kernel: Callable[[Array], Array]
    to_whitened: Callable[[Array], Array]
    executor: Executor = SERIAL
    held: list[tuple[Array, IntArray, Array]] | None = None
    height: int | None = None

    def hold(self) -> FeatureBlocks:
        """Return a copy with the features of all blocks in memory."""
        rows = self.rows.load()

        def make(block: slice) -> tuple[Array, IntArray, Array]:
            return _with_labels(self.make, rows.at(block))

        blocks = [part for block in rows.blocks() for part in _cut(block, self.height)]
        return replace(self, held=self.executor.map(make, blocks))

    def total(self, part: BlockSum[T]) -> T:
        """Return the sum of a function over the blocks: one pass over the samples."""
        if self.held is not None:
            return sum_over(lambda block: part(*block), self.held, self.executor, tuple)
        whole = partial(_part_of_block, part, self.make, self.height)
        return self.rows.total(whole, self.executor)

    def sums(self, residuals: BlockSum[Array]) -> Array:
        """Return the (m, K) float64 sum Σ fᵢ rᵢᵀ of features f over the samples.

        `residuals` returns the (n, K) values r of a block.
        """

        def part(features: Array, codes: IntArray, weights: Array) -> Array:
            found = residuals(features, codes, weights).astype(features.dtype, copy=False)
            # Transposed, BLAS reads features row by row: two thirds of the time for few columns.
            return np.asarray((found.T @ features).T, dtype=np.float64)

        return self.total(part)


def _with_labels(
    make: Callable[[LabelledRows], Array], block: LabelledRows
) -> tuple[Array, IntArray, Array]:
    return make(block), block.codes, block.row_weights


def _part_of_block(
    part: BlockSum[T],
    make: Callable[[LabelledRows], Array],
    height: int | None,
    block: LabelledRows,
) -> T:
    if height is None or len(block) <= height:
        return part(make(block), block.codes, block.row_weights)
    return reduce(
        add,
        (
            _part_of_block(part, make, None, block.at(some))
            for some in blocks_of(len(block), height)
        ),
    )


def _cut(block: slice, height: int | None) -> list[slice]:
    """Cut a slice of rows into slices of at most `height` rows."""
    start, n = block.start, block.stop - block.start
    return [slice(start + one.start, start + one.stop) for one in blocks_of(n, height or n)]


def whitened_blocks(
    basis: NystromBasis, rows: TrainingRows, executor: Executor = SERIAL
) -> FeatureBlocks:
    """Return blocks of whitened features, recomputed in every pass."""
    return FeatureBlocks(rows, partial(_whitened, basis), identity, identity, executor)


def held_whitened_blocks(
    basis: NystromBasis, rows: LabelledRows, executor: Executor = SERIAL
) -> FeatureBlocks:
    """Return blocks of whitened features in memory; float32 above `_EXACT_UP_TO` bytes."""
    exact = 8.0 * len(rows) * len(basis.directions) <= _EXACT_UP_TO
    dtype = basis.dtype if exact else np.float32
    make = partial(_whitened_as, basis, dtype)
    return FeatureBlocks(rows, make, identity, identity, executor).hold()


def kernel_blocks(
    basis: NystromBasis, rows: TrainingRows, executor: Executor = SERIAL
) -> FeatureBlocks:
    """Return blocks of float64 kernel values with the landmarks, recomputed in every pass."""
    make = partial(_kernel_block, basis.directions, basis.kernel)
    return FeatureBlocks(rows, make, basis.dual, basis.whiten, executor)


def float32_kernel_blocks(
    basis: NystromBasis,
    rows: LabelledRows,
    executor: Executor = SERIAL,
    stored_up_to: float = STORED_UP_TO,
) -> FeatureBlocks:
    """Return blocks of float32 kernel values, in memory up to `stored_up_to` bytes."""
    directions = directions_for_cosines(basis)
    make = partial(_float32_kernel_block, directions, basis.kernel)
    height = max(1, _KERNEL_ENTRIES // len(directions))
    blocks = FeatureBlocks(rows, make, basis.dual, basis.whiten, executor, height=height)
    if 4.0 * len(rows) * len(directions) <= stored_up_to:
        return blocks.hold()
    return replace(blocks, rows=_on_sphere(rows, directions.dtype, executor))


def _on_sphere(rows: LabelledRows, dtype: npt.DTypeLike, executor: Executor) -> LabelledRows:
    """Return the rows after the map to the sphere, which is then not repeated in every pass."""
    parts = executor.map(lambda block: rows.directions(block, dtype), rows.blocks())
    return replace(rows, X=join_rows(parts), sphere_map=PLAIN_MAP)


def identity(columns: Array) -> Array:
    """Return the argument: whitened features need no map."""
    return columns


def _whitened(basis: NystromBasis, block: LabelledRows) -> Array:
    return basis.features(block.directions(dtype=basis.dtype))


def _whitened_as(basis: NystromBasis, dtype: npt.DTypeLike, block: LabelledRows) -> Array:
    return np.ascontiguousarray(_whitened(basis, block), dtype=dtype)


def _kernel_block(directions: Array, kernel: Kernel, block: LabelledRows) -> Array:
    return kernel_values(block.directions(), directions, kernel)


def _float32_kernel_block(directions: Array, kernel: Kernel, block: LabelledRows) -> Array:
    values = cosines(block, directions)
    kernel.apply(values)
    return values.astype(np.float32, copy=False)


def directions_for_cosines(basis: NystromBasis) -> Array:
    """Return the landmarks in the precision that the kernel needs for its cosines."""
    steep = basis.kernel.steepness > _STEEP
    return basis.directions.astype(np.float64 if steep else np.float32)


def cosines(block: LabelledRows, directions: Array) -> Array:
    """Return the (n, m) cosines of rows with landmarks, in the type of `directions`."""
    return np.asarray(block.directions(dtype=directions.dtype) @ directions.T)


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """The normal equations of ridge regression: weighted sums over samples, additive over blocks.

    Attributes
    ----------
    weight : Σ w
    z, y : (m,), (K,) Σ w z and Σ w y, of whitened features z and targets y
    zz, zy : (m, m), (m, K) Σ w z zᵀ and Σ w z yᵀ; zz of a single block may be float32
    """

    weight: float
    z: Array
    y: Array
    zz: Array
    zy: Array

    @classmethod
    def of(cls, features: FeatureBlocks) -> NormalEquations:
        """Sum over whitened features and targets of all samples: one pass."""
        return features.total(partial(block_equations, len(features.rows.classes)))

    def __add__(self, other: NormalEquations) -> NormalEquations:
        total = replace(self, zz=self.zz.astype(np.float64))
        total += other
        return total

    def __iadd__(self, other: NormalEquations) -> NormalEquations:
        """Add in float64, without another array of order m."""
        zz = self.zz.astype(np.float64, copy=False)
        zz += other.zz
        return NormalEquations(
            self.weight + other.weight, self.z + other.z, self.y + other.y, zz, self.zy + other.zy
        )

    @property
    def mean_z(self) -> Array:
        """The (m,) weighted mean of the features."""
        return self.z / self.weight

    @property
    def mean_y(self) -> Array:
        """The (K,) weighted mean of the targets."""
        return self.y / self.weight

    def covariance(self) -> Array:
        """Return the (m, m) covariance of the features, in a fresh array."""
        covariance = self.zz.astype(np.float64)
        covariance /= self.weight
        covariance -= np.outer(self.mean_z, self.mean_z)
        return covariance

    def slopes(self) -> Array:
        """Return the (m, K) covariance of the features with the targets."""
        return self.zy / self.weight - np.outer(self.mean_z, self.mean_y)

    def solve(self, regularization: float) -> tuple[Solution, Array]:
        """Solve for one λ; return the solution and the (m, m) lower factor of covariance + λI.

        Where rounding makes the sum indefinite, λ > 0 is raised, and λ = 0 is an error.
        """
        ridged, slopes = self.covariance(), self.slopes()
        if regularization > 0:
            triangle = factor_with_ridge(ridged, regularization, _FLOAT64_ROUNDING)
        else:
            triangle = _factor_without_ridge(ridged)
        coefficients = divide_by(triangle, slopes)
        residual = slopes - ridged @ coefficients
        intercept = self.mean_y - self.mean_z @ coefficients
        return Solution(coefficients, intercept, relative_norm(residual, slopes)), triangle


def block_equations(K: int, features: Array, codes: IntArray, weights: Array) -> NormalEquations:
    """Return the sums over one block; K is the number of classes.

    Products are in the type of the features, so that float32 sums run over one block at most; the
    sums over blocks are float64.
    """
    Y, dtype = np.eye(K)[codes], features.dtype
    equal = bool((weights == weights[0]).all())
    roots = np.sqrt(weights).astype(dtype)
    scaled = features if equal else features * roots[:, None]
    share = float(weights[0]) if equal else 1.0
    columns = (
        np.column_stack([np.ones(len(Y)), Y])
        * (np.ones(len(Y)) if equal else np.sqrt(weights))[:, None]
    )
    sums = (scaled.T @ columns.astype(dtype)).astype(np.float64) * share
    zz = scaled.T @ scaled  # NumPy calls syrk for A.T @ A: half the operations
    if share != 1.0:
        zz *= np.asarray(share, dtype=dtype)
    return NormalEquations(
        weight=float(weights.sum()), z=sums[:, 0], y=weights @ Y, zz=zz, zy=sums[:, 1:]
    )


def left_out_scores(
    basis: NystromBasis,
    solution: Solution,
    mean_z: Array,
    triangle: Array,
    weight: float,
    rows: LabelledRows,
) -> Array:
    """Return the (n, K) leave-one-out scores of training samples, by their leverage.

    The penalty λW does not change when a sample is left out.

    Parameters
    ----------
    mean_z, weight : mean feature and total weight of the samples of the fit
    triangle : (m, m) lower factor of their covariance + λI, exact or estimated
    """
    Z, Y = basis.features(rows.directions()), rows.targets()
    scores = Z @ solution.coefficients + solution.intercept
    half = solve_lower(triangle.astype(Z.dtype, copy=False), (Z - mean_z.astype(Z.dtype)).T)
    leverage = (1.0 + np.einsum("ij,ij->j", half, half)) * rows.copy_weights / weight
    return without_own_influence(scores, Y, leverage)


def without_own_influence(scores: Array, Y: Array, leverage: Array) -> Array:
    """Return leave-one-out scores y + (f − y) / (1 − h) from scores, targets and leverages h."""
    return np.asarray(
        Y + (scores - Y) / np.maximum(1.0 - leverage, _LEAST_ONE_MINUS_LEVERAGE)[:, None]
    )


def rounding_noise(dual: Array) -> float:
    """Return the standard error of the scores that the rounding of float32 kernel values makes.

    Large coefficients (m, K) that cancel magnify it.
    """
    return _FLOAT32_ROUNDING * float(np.linalg.norm(dual, axis=0).max())


def divide_by(triangle: Array, V: Array) -> Array:
    """Return A⁻¹ V for A = R Rᵀ, given the lower Cholesky factor R."""
    return solve_lower(triangle, solve_lower(triangle, V), transposed=True)


def relative_norm(residual: Array, right_side: Array) -> float:
    """Return the relative residual norm, the largest over the columns."""
    scale = np.linalg.norm(right_side, axis=0)
    return float((np.linalg.norm(residual, axis=0) / np.where(scale > 0, scale, 1.0)).max())


def factor_with_ridge(
    covariance: Array, ridge: float, rounding: float = _FLOAT32_ROUNDING
) -> Array:
    """Return the lower Cholesky factor of a covariance + ridge; the diagonal is overwritten.

    Rounding may make the sum indefinite. Then the ridge is raised tenfold, and to at least
    `rounding`, the relative error of the covariance, until the factorisation succeeds.
    """
    diagonal = covariance.diagonal().copy()
    # Whitened features and kernel values are at most about one, and so is the unit of rounding
    # where the diagonal vanishes.
    least = max(rounding * float(diagonal.max()), _FLOAT64_ROUNDING)
    while True:
        np.fill_diagonal(covariance, diagonal + ridge)
        factor = cholesky_lower(covariance)
        if factor is not None:
            return factor
        if not np.isfinite(diagonal).all():
            raise ValueError("the matrix to be factored is not finite")
        ridge = max(10 * ridge, least)


def _factor_without_ridge(covariance: Array) -> Array:
    """Return the lower Cholesky factor of a covariance, which λ = 0 asks for."""
    factor = cholesky_lower(covariance)
    if factor is None:
        raise np.linalg.LinAlgError(
            f"the system of {len(covariance)} representatives is numerically singular at "
            "regularization=0.0: raise regularization"
        )
    return factor
