"""Deskewing of images by their second moments."""

from __future__ import annotations

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators.transformers._base import ImageTransformer

# The largest shear: 45 degrees.
STEEPEST = 1.0


class Deskewer(OneToOneFeatureMixin, ImageTransformer):
    """Deskew each image: shear it so that x and y of its bright pixels are uncorrelated.

    The slant is the slope of the regression of x on y over the pixels, weighted by brightness. The
    rows of the image are shifted by the slant, about its centre of mass.

    Parameters
    ----------
    image_shape : (height, width) or None, default=None
        Shape of the images, for rows of pixels of images that are not square.

    Attributes
    ----------
    n_features_in_ : int
        Number of pixels seen in `fit`.
    image_shape_ : (height, width)
        Shape of the images.

    Examples
    --------
    >>> import numpy as np
    >>> from kmeans_kernel import Deskewer
    >>> Deskewer().fit_transform(np.eye(5)[None])[0].reshape(5, 5)[:, 2].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, image_shape: tuple[int, int] | None = None) -> None:
        self.image_shape = image_shape

    @property
    def _n_features_out(self) -> int:
        n_features: int = self.n_features_in_
        return n_features

    def _write_features(self, X: Array, out: Array) -> None:
        out[...] = deskewed(self._images(X)).reshape(len(X), -1)


def deskewed(images: Array) -> Array:
    """Shear images (n, height, width) along their rows so that x and y are uncorrelated.

    Pixels are weighted by their brightness, negative ones by zero. An image without bright pixels,
    or with all of them on one row, is unchanged.
    """
    n, height, width = images.shape
    weights = np.maximum(images, 0.0)
    top = weights.max(axis=(1, 2), keepdims=True, initial=0.0)
    weights = weights / np.where(top > 0, top, 1.0)
    rows, columns = np.arange(height, dtype=float), np.arange(width, dtype=float)
    of_rows, of_columns = weights.sum(axis=2), weights.sum(axis=1)
    total = of_rows.sum(axis=1)
    total = np.where(total > 0, total, 1.0)
    middle_row, middle_column = of_rows @ rows / total, of_columns @ columns / total
    spread = of_rows @ rows**2 / total - middle_row**2
    together = np.einsum("nij,i,j->n", weights, rows, columns) / total
    together -= middle_row * middle_column
    slant = np.clip(
        np.where(spread > 1e-9, together / np.where(spread > 1e-9, spread, 1.0), 0.0),
        -STEEPEST,
        STEEPEST,
    )
    shifts = slant[:, None] * (rows - middle_row[:, None])  # (n, height)
    sources = columns + shifts[:, :, None]
    left = np.floor(sources)
    share = sources - left
    padded = np.zeros((n, height, width + 2))
    padded[:, :, 1:-1] = images
    first = np.clip(left + 1, 0, width + 1).astype(np.intp)
    second = np.clip(left + 2, 0, width + 1).astype(np.intp)
    return np.asarray(
        (1 - share) * np.take_along_axis(padded, first, axis=2)
        + share * np.take_along_axis(padded, second, axis=2)
    )
