"""The average gradient outer product (AGOP) of the scores, and feature scales from its diagonal.

A feature whose change does not move the scores only blurs the distances between rows. So each is
multiplied by the root-mean-square gradient of the scores with respect to it, and the model is
fitted again: recursive feature machines with a diagonal metric (Radhakrishnan et al., "Mechanism
for feature learning in neural networks and backpropagation-free machine learning models", Science
383, 2024). Gradients are by the features after the asinh transform, if the model has one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kmeans_kernel.core.arrays.matrices import Array, Matrix, blocks_of, dense
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.model.fitted_model import FittedModel

# No feature is scaled below this share of the most important: it may matter later.
_SMALLEST_SHARE = 1e-3

# Rows whose gradients are enough for a mean.
ENOUGH_ROWS = 2000

_BLOCK_ROWS = 512


def learn_scales(model: FittedModel, X: Matrix, weights: Array) -> Array:
    """Return the (d,) scales that a model suggests, their mean square being one.

    They replace the scales that the model has.
    """
    mean = np.average(squared_gradients(model, X), axis=0, weights=weights)
    importance = np.sqrt(mean)
    if not importance.max() > 0:
        return np.ones(X.shape[1])
    scales = np.maximum(importance / importance.max(), _SMALLEST_SHARE)
    return np.asarray(scales * np.sqrt(len(scales) / (scales @ scales)))


def squared_gradients(model: FittedModel, X: Matrix) -> Array:
    """Return the (n, d) squared gradients of the scores of rows, summed over the classes."""
    out = np.zeros(X.shape)
    for rows in blocks_of(X.shape[0], _BLOCK_ROWS):
        for gradients in _gradients(model, dense(X[rows])):
            out[rows] += gradients**2
    return out


def average_gradient_outer_product(model: FittedModel, X: Matrix, weights: Array) -> Array:
    """Return the (d, d) weighted mean of the outer products of the gradients, over all classes.

    Its diagonal is the mean of the squared gradients; the rest tells which features matter
    together.
    """
    out = np.zeros((X.shape[1], X.shape[1]))
    roots = np.sqrt(weights / weights.sum())
    for rows in blocks_of(X.shape[0], _BLOCK_ROWS):
        for gradients in _gradients(model, dense(X[rows])):
            scaled = gradients * roots[rows, None]
            out += scaled.T @ scaled
    return out


def _gradients(model: FittedModel, X: Array) -> Iterator[Array]:
    """Give the (n, d) gradients of the scores of each class.

    With u = [s∘x, r] / ‖[s∘x, r]‖ and c = uᵀξ, a score is Σ κ(c) a and its gradient
    s∘(I − u uᵀ) Σ κ'(c) a ξ / ‖[s∘x, r]‖, without its last component.
    """
    sphere_map, d = model.sphere_map, X.shape[1]
    X = sphere_map.transform(X)
    scales = np.ones(d) if sphere_map.scales is None else sphere_map.scales
    directions = model.directions.astype(np.float64)
    U = unit_rows(X, sphere_map.lift, np.float64, sphere_map.scales)
    with np.errstate(over="ignore"):  # a row of no finite length has no slope
        lengths = np.hypot(np.linalg.norm(X * scales, axis=1), sphere_map.lift)
    lengths = np.where(lengths > 0, lengths, 1.0)[:, None]
    cosines = U @ directions.T
    slopes = model.kernel.derivative(cosines)
    for dual in model.dual_coef.T:
        pull = slopes * dual
        along = pull @ directions - np.einsum("ij,ij->i", pull, cosines)[:, None] * U
        yield along[:, :d] * scales / lengths
