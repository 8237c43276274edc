"""The average gradient outer product (AGOP) of the scores, and feature scales from its diagonal.

A feature on which the scores do not depend only adds noise to the distances between rows. So each
feature is multiplied by the root mean square gradient of the scores with respect to it, and the
model is fitted again: a recursive feature machine with a diagonal metric (Radhakrishnan et al.,
"Mechanism for feature learning in neural networks and backpropagation-free machine learning
models", Science 383, 2024). Gradients are with respect to the features after the feature transform.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kmeans_kernel.core.arrays.matrices import Array, Matrix, blocks_of, dense
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.model.fitted_model import FittedModel

# The least scale, relative to the largest: a scale of zero could never grow in a later round.
_SMALLEST_SHARE = 1e-3

# Number of rows over which gradients are averaged.
ENOUGH_ROWS = 2000

_BLOCK_ROWS = 512


def learn_scales(model: FittedModel, X: Matrix, weights: Array) -> Array:
    """Return (d,) feature scales from the diagonal of the AGOP, with a mean square of one.

    The scales replace the scales of the model; they are not factors of them.
    """
    mean = np.average(squared_gradients(model, X), axis=0, weights=weights)
    importance = np.sqrt(mean)
    if not importance.max() > 0:
        return np.ones(X.shape[1])
    scales = np.maximum(importance / importance.max(), _SMALLEST_SHARE)
    return np.asarray(scales * np.sqrt(len(scales) / (scales @ scales)))


def squared_gradients(model: FittedModel, X: Matrix) -> Array:
    """Return the (n, d) squared gradients of the scores at rows, summed over the classes."""
    out = np.zeros(X.shape)
    for rows in blocks_of(X.shape[0], _BLOCK_ROWS):
        for gradients in _gradients(model, dense(X[rows])):
            out[rows] += gradients**2
    return out


def average_gradient_outer_product(model: FittedModel, X: Matrix, weights: Array) -> Array:
    """Return the (d, d) AGOP: weighted mean over rows of Σ_k ∇f_k ∇f_kᵀ, f_k the class scores.

    The diagonal is the mean of the squared gradients; off-diagonal entries are large for features
    that act on the scores jointly.
    """
    out = np.zeros((X.shape[1], X.shape[1]))
    roots = np.sqrt(weights / weights.sum())
    for rows in blocks_of(X.shape[0], _BLOCK_ROWS):
        for gradients in _gradients(model, dense(X[rows])):
            scaled = gradients * roots[rows, None]
            out += scaled.T @ scaled
    return out


def _gradients(model: FittedModel, X: Array) -> Iterator[Array]:
    """Yield the (n, d) gradients of the score of each class.

    With scales s, lift r, u = [s∘x, r] / ‖[s∘x, r]‖ and c = uᵀξ, a score is Σ κ(c) a and its
    gradient s∘(I − u uᵀ) Σ κ'(c) a ξ / ‖[s∘x, r]‖, without the component of the lift.
    """
    sphere_map, d = model.sphere_map, X.shape[1]
    X = sphere_map.transform(X)
    scales = np.ones(d) if sphere_map.scales is None else sphere_map.scales
    directions = model.directions.astype(np.float64)
    U = unit_rows(X, sphere_map.lift, np.float64, sphere_map.scales)
    with np.errstate(over="ignore"):  # an infinite length makes the gradient zero
        lengths = np.hypot(np.linalg.norm(X * scales, axis=1), sphere_map.lift)
    lengths = np.where(lengths > 0, lengths, 1.0)[:, None]
    cosines = U @ directions.T
    slopes = model.kernel.derivative(cosines)
    towards = (slopes * cosines) @ model.dual_coef
    for k, dual in enumerate(model.dual_coef.T):
        along = slopes @ (dual[:, None] * directions) - towards[:, k, None] * U
        yield along[:, :d] * scales / lengths
