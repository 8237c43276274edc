"""The least-squares machine fitted to all samples, on the basis of the representatives.

    minimise over a, b:   Σᵢ wᵢ ‖kᵢᵀ a + b − yᵢ‖²  +  λ W Σ aᵀ (Ω + δI) a,    W = Σᵢ wᵢ

with kᵢ (m,) the kernel of sample i with the representatives, Ω (m, m) that among them, a (m, K) the
dual coefficients, b (K,) the intercept. With Ω + δI = L Lᵀ the features zᵢ = L⁻¹ kᵢ are white: the
penalty is that of plain ridge regression, and the normal equations are no worse conditioned than
they must be. What they need of the samples is a sum over blocks of rows (`Moments`); its
eigenvectors give the solution for every λ, and the leave-one-out error of each (`RidgePath`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.arrays.executor import ALONE, Workers, shares
from kmeans_kernel.core.arrays.samples import Samples
from kmeans_kernel.core.arrays.sparse import Matrix
from kmeans_kernel.core.kernels.kernels import Kernel, gram_matrix, sharpened

# δ, enough for the factor of a matrix of this size, and more for larger ones.
_NUGGET = 1e-8
_NUGGET_UP_TO = 3000

# What a sample's leverage leaves at least of its residual: rounding may leave less.
_LEAST_REST = 1e-6


@dataclass(frozen=True, eq=False)
class WhiteBasis:
    """The representatives as a basis of functions whose penalty is the plain sum of squares.

    Attributes
    ----------
    directions : (m, d) unit rows, float64
    kernel : the kernel
    factor : (m, m) L, lower triangular, of Ω + δI
    """

    directions: Array
    kernel: Kernel
    factor: Array

    @classmethod
    def of(cls, directions: Array, kernel: Kernel, workers: Workers = ALONE) -> WhiteBasis:
        """Factor the kernel matrix of the representatives."""
        directions = sharpened(directions, kernel).astype(np.float64, copy=False)
        gram = gram_matrix(directions, kernel, np.float64, workers)
        np.fill_diagonal(gram.buffer, gram.diagonal + nugget(len(directions)))
        return cls(directions, kernel, cholesky(gram.buffer, lower=True, overwrite_a=True))

    def features(self, U: Matrix) -> Array:
        """Return the (n, m) white features of unit rows."""
        return self.whiten(kernel_values(U, self.directions, self.kernel).T).T

    def whiten(self, values: Array) -> Array:
        """Return L⁻¹ times columns of kernel values (m, n), which are overwritten."""
        white: Array = solve_triangular(
            self.factor, values, lower=True, overwrite_b=True, check_finite=False
        )
        return white

    def dual(self, coefficients: Array) -> Array:
        """Return the (m, K) dual coefficients of those of the white features."""
        dual: Array = solve_triangular(
            self.factor, coefficients, lower=True, trans="T", check_finite=False
        )
        return dual


def kernel_values(U: Matrix, directions: Array, kernel: Kernel) -> Array:
    """Return the (n, m) kernel values of unit rows with representatives, in float64."""
    values = U.astype(np.float64, copy=False) @ directions.astype(np.float64, copy=False).T
    kernel.apply(values)
    return np.asarray(values)


def nugget(m: int) -> float:
    """Return δ for m representatives: as little as lets rounding not spoil the factor."""
    return _NUGGET * max(1.0, m / _NUGGET_UP_TO) ** 2


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over samples; those of all samples are the sum of those of the blocks.

    Attributes
    ----------
    weight : Σ w
    z, y : (m,), (K,) Σ w z and Σ w y
    zz, zy : (m, m), (m, K) Σ w z zᵀ and Σ w z yᵀ
    """

    weight: float
    z: Array
    y: Array
    zz: Array
    zy: Array

    @classmethod
    def of(cls, Z: Array, Y: Array, weights: Array) -> Moments:
        """Sum over a block: Z (n, m) features, Y (n, K) targets, weights (n,)."""
        roots = np.sqrt(weights)
        scaled = Z * roots[:, None]
        return cls(
            weight=float(weights.sum()),
            z=roots @ scaled,
            y=weights @ Y,
            zz=scaled.T @ scaled,  # half the work: NumPy sees that it is symmetric
            zy=scaled.T @ (Y * roots[:, None]),
        )

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.weight + other.weight,
            self.z + other.z,
            self.y + other.y,
            self.zz + other.zz,
            self.zy + other.zy,
        )


def sum_moments(
    features: Callable[[slice], Array], samples: Samples, workers: Workers = ALONE
) -> Moments:
    """Return the moments of all samples, block by block; `features` gives those of its rows."""

    def part(share: Sequence[slice]) -> Moments | None:
        total = None
        for rows in share:
            Z = features(rows).astype(np.float64, copy=False)
            block = Moments.of(Z, samples.targets(rows), samples.weights[rows])
            total = block if total is None else total + block
            workers.checkpoint()
        return total

    shared = workers.map(part, shares(samples.blocks, workers))
    parts = [part for part in shared if part is not None]
    return sum(parts[1:], parts[0])


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """The ridge regression of one λ.

    Attributes
    ----------
    coefficients : (m, K) of the white features
    intercept : (K,)
    mean_z : (m,) the weighted mean of the features
    triangle : (m, m) the lower factor of their covariance + λI, exact or nearly so
    weight : Σ w
    relative_residual : of the normal equations, the largest over the columns
    """

    coefficients: Array
    intercept: Array
    mean_z: Array
    triangle: Array
    weight: float
    relative_residual: float

    def left_out_scores(self, Z: Array, Y: Array, weights: Array) -> Array:
        """Return the (n, K) scores that training samples with features Z would have had left out.

        The penalty of all samples is kept.
        """
        scores = Z @ self.coefficients + self.intercept
        half = solve_triangular(self.triangle, (Z - self.mean_z).T, lower=True, check_finite=False)
        leverage = (1.0 + np.einsum("ij,ij->j", half, half)) * weights / self.weight
        return np.asarray(Y + (scores - Y) / np.maximum(1.0 - leverage, _LEAST_REST)[:, None])


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """The covariances of features and targets, from which every λ is solved for.

    Attributes
    ----------
    mean_z, mean_y : (m,), (K,) weighted means
    covariance : (m, m) of z
    slopes : (m, K) covariance of z with y
    weight : Σ w
    """

    mean_z: Array
    mean_y: Array
    covariance: Array
    slopes: Array
    weight: float

    @classmethod
    def on(cls, basis: WhiteBasis, samples: Samples, workers: Workers = ALONE) -> NormalEquations:
        """Set them up for all samples."""
        return cls.of(cls.moments(basis, samples, workers))

    @staticmethod
    def moments(basis: WhiteBasis, samples: Samples, workers: Workers = ALONE) -> Moments:
        """Return what they need of samples."""

        def features(rows: slice) -> Array:
            return basis.features(samples.directions(rows))

        return sum_moments(features, samples, workers)

    @classmethod
    def of(cls, moments: Moments) -> NormalEquations:
        """Centre the moments."""
        mean_z, mean_y = moments.z / moments.weight, moments.y / moments.weight
        covariance = moments.zz / moments.weight - np.outer(mean_z, mean_z)
        slopes = moments.zy / moments.weight - np.outer(mean_z, mean_y)
        return cls(mean_z, mean_y, covariance, slopes, moments.weight)

    def solve(self, regularization: float) -> RidgeFit:
        """Solve for one λ."""
        ridged = self.covariance.copy()
        ridged[np.diag_indices_from(ridged)] += regularization
        try:
            triangle = cholesky(ridged, lower=True, check_finite=False)
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(
                f"the system of {len(ridged)} representatives is numerically singular at "
                f"regularization={regularization!r}: raise regularization"
            ) from error
        coefficients = divide_by(triangle, self.slopes)
        residual = self.slopes - ridged @ coefficients
        return RidgeFit(
            coefficients,
            self.mean_y - self.mean_z @ coefficients,
            self.mean_z,
            triangle,
            self.weight,
            relative_norm(residual, self.slopes),
        )


def divide_by(triangle: Array, V: Array) -> Array:
    """Return A⁻¹ V for A = R Rᵀ, from the lower triangle R."""
    half = solve_triangular(triangle, V, lower=True, check_finite=False)
    return np.asarray(solve_triangular(triangle, half, lower=True, trans="T", check_finite=False))


def relative_norm(residual: Array, right_side: Array) -> float:
    """Return the largest length of a column of the residual, in that of the right side."""
    scale = np.linalg.norm(right_side, axis=0)
    return float((np.linalg.norm(residual, axis=0) / np.where(scale > 0, scale, 1.0)).max())


@dataclass(frozen=True, eq=False)
class RidgePath:
    """The ridge regressions of all λ at once.

    Attributes
    ----------
    mean_z, mean_y : (m,), (K,) weighted means
    axes : (m, m) eigenvectors of the covariance of z, one in each column
    variances : (m,) its eigenvalues
    slopes : (m, K) covariance of y with the features along the axes
    weight : Σ w
    """

    mean_z: Array
    mean_y: Array
    axes: Array
    variances: Array
    slopes: Array
    weight: float

    @classmethod
    def of(cls, equations: NormalEquations) -> RidgePath:
        """Decompose the normal equations."""
        variances, axes = eigh(equations.covariance, check_finite=False)
        return cls(
            equations.mean_z,
            equations.mean_y,
            axes,
            np.maximum(variances, 0.0),
            axes.T @ equations.slopes,
            equations.weight,
        )

    def along_axes(self, Z: Array) -> Array:
        """Return features (n, m) along the axes, centred."""
        return np.asarray(Z @ self.axes - self.mean_z @ self.axes)

    def scores(self, T: Array, regularization: float) -> Array:
        """Return the (n, K) scores of features along the axes."""
        return (
            np.asarray(T @ (self.slopes / (self.variances + regularization)[:, None])) + self.mean_y
        )

    def left_out_scores(self, T: Array, Y: Array, weights: Array, regularization: float) -> Array:
        """Return the (n, K) scores that training samples would have had without them.

        T (n, m) are their features along the axes. The penalty of all samples is kept.
        """
        scores = self.scores(T, regularization)
        leverage = 1.0 + (T * T) @ (1.0 / (self.variances + regularization))
        leverage *= weights / self.weight
        return np.asarray(Y + (scores - Y) / np.maximum(1.0 - leverage, _LEAST_REST)[:, None])
