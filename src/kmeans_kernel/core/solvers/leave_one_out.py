"""Leave-one-out predictions of ridge regression in closed form, for every λ at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.solvers.nystrom import NormalEquations, without_own_influence


@dataclass(frozen=True, eq=False)
class RidgePath:
    """The ridge regressions of all λ, from one eigendecomposition.

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
        """Return features (n, m) along the axes, centred."""
        return np.asarray(Z @ self.axes - self.mean_z @ self.axes)

    def scores(self, T: Array, regularization: float) -> Array:
        """Return the (n, K) scores of features along the axes."""
        return (
            np.asarray(T @ (self.slopes / (self.variances + regularization)[:, None])) + self.mean_y
        )

    def left_out_scores(self, T: Array, Y: Array, weights: Array, regularization: float) -> Array:
        """Return the (n, K) scores of training samples by the fit without each of them.

        T (n, m) are their features along the axes, Y (n, K) their targets, `weights` (n,) those of
        the copy that is left out. The penalty of all samples is kept.
        """
        scores = self.scores(T, regularization)
        leverage = 1.0 + (T * T) @ (1.0 / (self.variances + regularization))
        leverage *= weights / self.weight
        return without_own_influence(scores, Y, leverage)
