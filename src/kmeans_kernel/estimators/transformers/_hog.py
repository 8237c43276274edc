"""Histograms of oriented gradients (HOG): gradient magnitudes by orientation, pooled."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.estimators.transformers._base import ImageTransformer
from kmeans_kernel.utils.validation import check_count, check_number


class OrientedGradients(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    """Histogram of oriented gradients (HOG), with smooth orientation bins and Gaussian pooling.

    The gradient magnitude at each pixel is distributed over signed orientations, evenly spaced on
    the circle, by a power of the cosine between the gradient and the orientation; the map of each
    orientation is blurred and subsampled. The square root raises the weight of weak edges, and the
    features of each image have length one.

    Parameters
    ----------
    n_orientations : int, default=8
        Number of orientations.
    blur : float, default=1.5
        Standard deviation of the Gaussian blur, in pixels.
    stride : int, default=2
        Distance between samples, in pixels.
    sharpness : float, default=8
        Power of the cosine between gradient and orientation; a higher power makes narrower bins.
    image_shape : (height, width) or None, default=None
        Shape of the images, for rows of pixels of images that are not square.

    Attributes
    ----------
    n_features_in_ : int
        Number of pixels seen in `fit`.
    image_shape_ : (height, width)
        Shape of the images.

    References
    ----------
    N. Dalal and B. Triggs, "Histograms of oriented gradients for human detection", CVPR 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from kmeans_kernel import OrientedGradients
    >>> OrientedGradients().fit_transform(np.ones((2, 28, 28))).shape
    (2, 1568)
    """

    def __init__(
        self,
        n_orientations: int = 8,
        blur: float = 1.5,
        stride: int = 2,
        sharpness: float = 8.0,
        image_shape: tuple[int, int] | None = None,
    ) -> None:
        self.n_orientations = n_orientations
        self.blur = blur
        self.stride = stride
        self.sharpness = sharpness
        self.image_shape = image_shape

    def _check_parameters(self) -> None:
        check_count(self, "n_orientations", maximum=360)
        check_count(self, "stride")
        check_number(self, "blur", above=True, maximum=1e3)
        check_number(self, "sharpness", above=True, maximum=1e3)

    @property
    def _n_features_out(self) -> int:
        height, width = (n_sampled(length, self.stride) for length in self.image_shape_)
        return self.n_orientations * height * width

    def _write_features(self, X: Array, out: Array) -> None:
        slopes = oriented_slopes(self._images(X), self.n_orientations, self.sharpness)
        maps = np.sqrt(sampled(slopes, self.blur, self.stride))
        out[...] = unit_rows(maps.reshape(len(X), -1), dtype=out.dtype)


def oriented_slopes(images: Array, n_orientations: int, sharpness: float) -> Array:
    """Return the (n, n_orientations, height, width) oriented gradients of images.

    The gradient magnitude is multiplied by a power of the cosine between gradient and orientation,
    or by zero if the cosine is negative. Images (n, height, width) are padded with zeros.
    """
    n, height, width = images.shape
    padded = np.zeros((n, height + 2, width + 2), dtype=images.dtype)
    padded[:, 1:-1, 1:-1] = images
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    right = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    steepness = np.hypot(down, right)
    divisor = np.where(steepness > 0, steepness, 1)
    down /= divisor
    right /= divisor
    out = np.empty((n, n_orientations, height, width), dtype=images.dtype)
    for k, angle in enumerate(2 * np.pi * np.arange(n_orientations) / n_orientations):
        cosines = float(np.cos(angle)) * right + float(np.sin(angle)) * down
        out[:, k] = steepness * np.maximum(cosines, 0) ** sharpness
    return out


def sampled(maps: Array, blur: float, stride: int) -> Array:
    """Return maps (…, height, width), blurred and subsampled by `stride`."""
    down = sampling(maps.shape[-2], blur, stride).astype(maps.dtype)
    right = sampling(maps.shape[-1], blur, stride).astype(maps.dtype)
    return np.asarray(down @ maps @ right.T)


def sampling(length: int, blur: float, stride: int) -> Array:
    """Return the (samples, length) matrix of Gaussian weights that blurs and samples a line.

    Samples are `stride` pixels apart and centred on the line.
    """
    n_samples = n_sampled(length, stride)
    centres = (length - 1) / 2 + stride * (np.arange(n_samples) - (n_samples - 1) / 2)
    weights = np.exp(-((np.arange(length) - centres[:, None]) ** 2) / (2 * blur**2))
    whole = np.sqrt(2 * np.pi) * blur
    return np.asarray(weights / whole)


def n_sampled(length: int, stride: int) -> int:
    """Return the number of samples on a line of `length` pixels."""
    return -(-length // stride)
