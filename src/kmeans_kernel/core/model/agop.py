"""The average gradient outer product (AGOP) of the scores, and feature scales from its diagonal.

A feature on which the scores do not depend only adds noise to the distances between rows. So each
feature is multiplied by the root mean square gradient of the scores with respect to it, and the
model is fitted again: a recursive feature machine with a diagonal metric (Radhakrishnan et al.,
"Mechanism for feature learning in neural networks and backpropagation-free machine learning
models", Science 383, 2024). Gradients are with respect to the features after the feature transform.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kmeans_kernel.core.arrays.encoding import FeatureGroups
from kmeans_kernel.core.arrays.matrices import Array, Matrix, blocks_of, dense
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.model.fitted_model import FittedModel

# The least scale, relative to the largest: a scale of zero could never grow in a later round.
_SMALLEST_SHARE = 1e-3

# Number of rows over which gradients are averaged.
ENOUGH_ROWS = 2000

_BLOCK_ROWS = 512


def learn_scales(
    model: FittedModel, X: Matrix, weights: Array, groups: FeatureGroups | None = None
) -> Array:
    """Return (D,) feature scales from the diagonal of the AGOP, with a mean square of one.

    The scales replace the scales of the model; they are not factors of them. Features of the same
    group, such as the levels of a category, get the same scale.
    """
    mean = mean_squared_gradients(model, X, weights)
    if groups is not None:
        mean = np.asarray(np.bincount(groups.index, groups.shares * mean)[groups.index])
    importance = np.sqrt(mean)
    if not importance.max() > 0:
        return np.ones(len(mean))
    scales = np.maximum(importance / importance.max(), _SMALLEST_SHARE)
    return np.asarray(scales * np.sqrt(len(scales) / (scales @ scales)))


def mean_squared_gradients(model: FittedModel, X: Matrix, weights: Array) -> Array:
    """Return the (D,) diagonal of the AGOP, without the gradients themselves.

    With B_k = S ∘ a_kᵀ and weights w, the gradient of score k is B_k Ξ − t_k u, up to scales and
    lengths. The sum over classes of its weighted squares is the diagonal of Ξᵀ C Ξ with
    C = (A Aᵀ) ∘ (Sᵀ w S), less twice that of Uᵀ w (S ∘ T Aᵀ) Ξ, plus Σ w ‖t‖² u²: its cost hardly
    depends on the number of classes.
    """
    d, shares = _width(model), weights / weights.sum()
    directions = model.directions.astype(np.float64)[:, :d]
    dual, m = model.dual_coef, len(directions)
    within, across, alone = np.zeros((m, m)), np.zeros((m, d)), np.zeros(d)
    for rows in blocks_of(X.shape[0], _BLOCK_ROWS):
        at = _Slopes.of(model, dense(X[rows]))
        w = (shares[rows] / at.lengths**2)[:, None]
        unit = at.unit[:, :d]
        within += at.slopes.T @ (w * at.slopes)
        across += (w * at.slopes * (at.towards @ dual.T)).T @ unit
        alone += (w[:, 0] * (at.towards**2).sum(axis=1)) @ unit**2
    within *= dual @ dual.T
    found = ((within @ directions - 2.0 * across) * directions).sum(axis=0) + alone
    scales = model.sphere_map.scales
    # Rounding may leave less than zero where nothing depends on a feature.
    return np.asarray(np.maximum(found, 0.0) * (1.0 if scales is None else scales**2))


def average_gradient_outer_product(model: FittedModel, X: Matrix, weights: Array) -> Array:
    """Return the (d, d) AGOP: weighted mean over rows of Σ_k ∇f_k ∇f_kᵀ, f_k the class scores.

    The diagonal is the mean of the squared gradients; off-diagonal entries are large for features
    that act on the scores jointly.
    """
    out = np.zeros((_width(model), _width(model)))
    roots = np.sqrt(weights / weights.sum())
    for rows in blocks_of(X.shape[0], _BLOCK_ROWS):
        for gradients in _gradients(model, dense(X[rows])):
            scaled = gradients * roots[rows, None]
            out += scaled.T @ scaled
    return out


def _width(model: FittedModel) -> int:
    """Return D, the number of features after the feature transform."""
    return int(model.directions.shape[1]) - (model.sphere_map.lift > 0)


def _gradients(model: FittedModel, X: Array) -> Iterator[Array]:
    """Yield the (n, D) gradients of the score of each class.

    With scales s, lift r, u = [s∘x, r] / ‖[s∘x, r]‖ and c = uᵀξ, a score is Σ κ(c) a and its
    gradient s∘(I − u uᵀ) Σ κ'(c) a ξ / ‖[s∘x, r]‖, without the component of the lift.
    """
    d, at, scales = _width(model), _Slopes.of(model, X), model.sphere_map.scales
    directions = model.directions.astype(np.float64)
    factors = (1.0 if scales is None else scales) / at.lengths[:, None]
    for k, dual in enumerate(model.dual_coef.T):
        along = at.slopes @ (dual[:, None] * directions) - at.towards[:, k, None] * at.unit
        yield along[:, :d] * factors


@dataclass(frozen=True, eq=False)
class _Slopes:
    """What the gradients at some rows are made of.

    Attributes
    ----------
    unit : (n, D) u, rows on the sphere; (n, D + 1) with a lift
    lengths : (n,) their lengths before
    slopes : (n, m) κ'(c)
    towards : (n, K) t = Σ κ'(c) c a, the component of each gradient along u
    """

    unit: Array
    lengths: Array
    slopes: Array
    towards: Array

    @classmethod
    def of(cls, model: FittedModel, X: Array) -> _Slopes:
        """Compute them at rows as they come."""
        sphere_map = model.sphere_map
        X = sphere_map.transform(X)
        unit = unit_rows(X, sphere_map.lift, np.float64, sphere_map.scales)
        scaled = X if sphere_map.scales is None else X * sphere_map.scales
        with np.errstate(over="ignore"):  # an infinite length makes the gradient zero
            lengths = np.hypot(np.linalg.norm(scaled, axis=1), sphere_map.lift)
        cosines = unit @ model.directions.astype(np.float64).T
        slopes = model.kernel.derivative(cosines)
        towards = (slopes * cosines) @ model.dual_coef
        return cls(unit, np.where(lengths > 0, lengths, 1.0), slopes, towards)
