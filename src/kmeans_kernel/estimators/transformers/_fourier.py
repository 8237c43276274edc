"""Pixels and the magnitudes of their Fourier transform."""

from __future__ import annotations

import numpy as np
from scipy.fft import rfft
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.estimators.transformers._base import PixelTransformer
from kmeans_kernel.estimators.transformers._pixels import centered


class FourierFeatures(ClassNamePrefixFeaturesOutMixin, PixelTransformer):
    """Concatenate the pixels of each image with the magnitudes of its Fourier transform.

    The transform is that of the flattened image; the magnitudes are symmetric, and their first half
    is kept. Pixels and magnitudes are centred and normalised separately, so that both have equal
    weight, and the concatenated row has length one.

    Parameters
    ----------
    root : bool, default=True
        Whether to take the square root of the magnitudes, as the paper's text does.

    Attributes
    ----------
    n_features_in_ : int
        Number of pixels seen in `fit`.
    image_shape_ : (height, width), or None when `fit` saw rows
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X had string column names.

    Examples
    --------
    >>> from kmeans_kernel import FourierFeatures
    >>> import numpy as np
    >>> FourierFeatures().fit_transform(np.eye(784)[:3]).shape
    (3, 1176)
    """

    def __init__(self, root: bool = True) -> None:
        self.root = root

    @property
    def _n_features_out(self) -> int:
        n_features: int = self.n_features_in_
        return n_features + half_of(n_features)

    def _write_features(self, X: Array, out: Array) -> None:
        d = X.shape[1]
        pixels = centered(X)
        magnitudes = np.abs(rfft(pixels, axis=1)[:, : half_of(d)])
        if self.root:
            np.sqrt(magnitudes, out=magnitudes)
        out[:, :d] = unit_rows(pixels, dtype=out.dtype)
        out[:, d:] = unit_rows(centered(magnitudes), dtype=out.dtype)
        out *= np.sqrt(0.5)


def half_of(n_features: int) -> int:
    """Return the number of Fourier bins that are kept: the first half, rounded up."""
    return (n_features + 1) // 2
