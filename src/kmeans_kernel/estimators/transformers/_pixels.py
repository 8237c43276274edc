"""Normalisation of pixels to centred unit rows."""

from __future__ import annotations

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.estimators.transformers._base import PixelTransformer

# Rows with larger entries are scaled down first, as sums of their squares may overflow.
LARGEST_PIXEL = 1e150


class PixelNormalizer(OneToOneFeatureMixin, PixelTransformer):
    """Subtract from each image its mean and divide it by its length (Euclidean norm).

    An image of a single shade becomes zero.

    Attributes
    ----------
    n_features_in_ : int
        Number of pixels seen in `fit`.
    image_shape_ : (height, width), or None when `fit` saw rows
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X had string column names.

    Examples
    --------
    >>> from kmeans_kernel import PixelNormalizer
    >>> PixelNormalizer().fit_transform([[0.0, 0.0, 0.0, 2.0]]).round(3).tolist()
    [[-0.289, -0.289, -0.289, 0.866]]
    """

    @property
    def _n_features_out(self) -> int:
        n_features: int = self.n_features_in_
        return n_features

    def _write_features(self, X: Array, out: Array) -> None:
        out[...] = unit_rows(centered(X), dtype=out.dtype)


def centered(X: Array) -> Array:
    """Subtract from each row its mean; a constant row becomes exactly zero.

    Rows with entries above `LARGEST_PIXEL` are scaled down: only the direction matters.
    """
    highest, lowest = X.max(axis=1, keepdims=True), X.min(axis=1, keepdims=True)
    size = np.maximum(highest, -lowest)
    if (size > LARGEST_PIXEL).any():
        return centered(X / np.maximum(size, 1.0))
    out: Array = X - X.mean(axis=1, keepdims=True)
    out[(highest == lowest)[:, 0]] = 0.0
    return out
