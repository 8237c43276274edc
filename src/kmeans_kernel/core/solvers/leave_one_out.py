"""Closed-form leave-one-out predictions of ridge regression, for every λ.

The leave-one-out (PRESS) residual of a sample is its residual divided by one minus its leverage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.solvers.nystrom import NormalEquations, without_own_influence


@dataclass(frozen=True, eq=False)
class RidgePath:
    """The regularization path of ridge regression, from one eigendecomposition.

    Attributes
    ----------
    mean_z, mean_y : (m,), (K,) weighted means of whitened features and targets
    axes : (m, m) eigenvectors of the covariance of the features, in columns
    variances : (m,) eigenvalues of that covariance
    slopes : (m, K) covariance of the projected features with the targets
    weight : Σ w, the total weight
    """

    mean_z: Array
    mean_y: Array
    axes: Array
    variances: Array
    slopes: Array
    weight: float

    @classmethod
    def of(cls, equations: NormalEquations) -> RidgePath:
        """Decompose the covariance of the normal equations."""
        variances, axes = eigh(equations.covariance(), check_finite=False)
        return cls(
            equations.mean_z,
            equations.mean_y,
            axes,
            np.maximum(variances, 0.0),
            axes.T @ equations.slopes(),
            equations.weight,
        )

    def along_axes(self, Z: Array) -> Array:
        """Return features (n, m) projected on the eigenvectors, centred."""
        return np.asarray(Z @ self.axes - self.mean_z @ self.axes)

    def scores(self, T: Array, regularization: float) -> Array:
        """Return the (n, K) scores of projected features T (n, m) at one λ."""
        return (
            np.asarray(T @ (self.slopes / (self.variances + regularization)[:, None])) + self.mean_y
        )

    def left_out_scores(self, T: Array, Y: Array, weights: Array, regularization: float) -> Array:
        """Return the (n, K) leave-one-out scores of training samples at one λ.

        T (n, m) are their projected features, Y (n, K) their targets, `weights` (n,) the weights of
        the copies that are left out. The penalty λW does not change when a sample is left out.
        """
        scores = self.scores(T, regularization)
        leverage = 1.0 + (T * T) @ (1.0 / (self.variances + regularization))
        leverage *= weights / self.weight
        return without_own_influence(scores, Y, leverage)
