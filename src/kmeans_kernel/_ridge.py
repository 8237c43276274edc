"""The least-squares machine fitted to all samples, on the basis of the representatives.

    minimise over a, b:   Σᵢ wᵢ ‖kᵢᵀ a + b − yᵢ‖²  +  λ W Σ aᵀ (Ω + δI) a,    W = Σᵢ wᵢ

with kᵢ (m,) the kernel of sample i with the representatives, Ω (m, m) that among them, a (m, K) the
dual coefficients, b (K,) the intercept. With Ω + δI = L Lᵀ the features zᵢ = L⁻¹ kᵢ are white: the
penalty is that of plain ridge regression, and the normal equations are no worse conditioned than
they must be. What they need of the samples is a sum over blocks of rows (`Moments`); its
eigenvectors give the solution for every λ, and the leave-one-out error of each (`RidgePath`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from kmeans_kernel._blocks import Array
from kmeans_kernel._kernels import Kernel, gram_matrix
from kmeans_kernel._workers import ALONE, Workers

# δ, enough for the factor of a matrix of this size, and more for larger ones.
_NUGGET = 1e-8
_NUGGET_UP_TO = 3000


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
        directions = directions.astype(np.float64, copy=False)
        gram = gram_matrix(directions, kernel, np.float64, workers)
        np.fill_diagonal(gram.buffer, gram.diagonal + nugget(len(directions)))
        return cls(directions, kernel, cholesky(gram.buffer, lower=True, overwrite_a=True))

    def features(self, U: Array) -> Array:
        """Return the (n, m) white features of unit rows."""
        values = U.astype(np.float64, copy=False) @ self.directions.T
        self.kernel.apply(values)
        white: Array = solve_triangular(
            self.factor, values.T, lower=True, overwrite_b=True, check_finite=False
        )
        return white.T

    def dual(self, coefficients: Array) -> Array:
        """Return the (m, K) dual coefficients of those of the white features."""
        dual: Array = solve_triangular(
            self.factor, coefficients, lower=True, trans="T", check_finite=False
        )
        return dual


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
        weighted = Z.T * weights
        return cls(
            weight=float(weights.sum()),
            z=weighted.sum(axis=1),
            y=weights @ Y,
            zz=weighted @ Z,
            zy=weighted @ Y,
        )

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.weight + other.weight,
            self.z + other.z,
            self.y + other.y,
            self.zz + other.zz,
            self.zy + other.zy,
        )


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
    def of(cls, moments: Moments) -> RidgePath:
        """Decompose the normal equations."""
        mean_z, mean_y = moments.z / moments.weight, moments.y / moments.weight
        covariance = moments.zz / moments.weight - np.outer(mean_z, mean_z)
        variances, axes = eigh(covariance, overwrite_a=True, check_finite=False)
        slopes = axes.T @ (moments.zy / moments.weight - np.outer(mean_z, mean_y))
        return cls(mean_z, mean_y, axes, np.maximum(variances, 0.0), slopes, moments.weight)

    def solution(self, regularization: float) -> tuple[Array, Array]:
        """Return the (m, K) coefficients of the features and the (K,) intercept."""
        coefficients = self.axes @ (self.slopes / (self.variances + regularization)[:, None])
        return coefficients, self.mean_y - self.mean_z @ coefficients

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
        return Y + (scores - Y) / (1.0 - leverage)[:, None]
