"""Image transformers that know where pixels are: slant taken out, edges by their direction."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin

from kmeans_kernel._blocks import Array
from kmeans_kernel._sphere import unit_rows
from kmeans_kernel._validation import check_count, check_number, check_shape
from kmeans_kernel.images import PixelTransformer, shape_of_rows

# No image is sheared further than this: 45 degrees.
STEEPEST = 1.0


class ImageTransformer(PixelTransformer, metaclass=ABCMeta):
    """What the transformers share: they need to know height and width."""

    image_shape: tuple[int, int] | None
    image_shape_: tuple[int, int]

    def _shape_for(self, seen: tuple[int, int] | None) -> tuple[int, int]:
        asked = None if self.image_shape is None else check_shape(self, "image_shape")
        return shape_of_rows(self.n_features_in_, seen or asked)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def _images(self, X: Array) -> Array:
        return X.reshape(len(X), *self.image_shape_)


class Deskewer(OneToOneFeatureMixin, ImageTransformer):
    """Shear each image so that it stands upright.

    The slant is that of the line that fits the bright pixels best, x against y; rows of the image
    are shifted along it, about its centre of mass.

    Parameters
    ----------
    image_shape : (height, width) or None, default=None
        For rows of pixels that are no squares.

    Attributes
    ----------
    n_features_in_ : int
        Number of pixels seen in `fit`.
    image_shape_ : (height, width)

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


class OrientedGradients(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    """How strong the edges of each direction are, in each part of the image.

    For each of some directions, evenly spread over the circle: how steeply the image rises about
    that way; blurred, and sampled every few pixels. The root makes weak edges count, and each image
    has length one.

    Parameters
    ----------
    n_orientations : int, default=8
        Directions.
    blur : float, default=1.5
        Standard deviation of the blur, in pixels.
    stride : int, default=2
        Pixels between samples.
    sharpness : float, default=8
        An edge counts for a direction by this power of the cosine between them: high powers tell
        directions apart.
    image_shape : (height, width) or None, default=None
        For rows of pixels that are no squares.

    Attributes
    ----------
    n_features_in_ : int
        Number of pixels seen in `fit`.
    image_shape_ : (height, width)

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


def deskewed(images: Array) -> Array:
    """Shear images (n, height, width) along their rows so that x and y are uncorrelated.

    Pixels weigh as much as they are bright; negative ones do not count. An image without bright
    pixels, or with all on one row, stays as it is.
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


def oriented_slopes(images: Array, n_orientations: int, sharpness: float) -> Array:
    """Return (n, n_orientations, height, width) slopes of images (n, height, width).

    A slope counts for a direction by a power of the cosine between them, and not at all if they
    are more than a right angle apart. Beyond its border an image is zero.
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
    """Return maps (…, height, width), blurred and sampled every `stride` pixels."""
    down = sampling(maps.shape[-2], blur, stride).astype(maps.dtype)
    right = sampling(maps.shape[-1], blur, stride).astype(maps.dtype)
    return np.asarray(down @ maps @ right.T)


def sampling(length: int, blur: float, stride: int) -> Array:
    """Return the (samples, length) matrix that blurs and samples a line of pixels.

    Samples are `stride` apart, as many as fit, in the middle.
    """
    n_samples = n_sampled(length, stride)
    centres = (length - 1) / 2 + stride * (np.arange(n_samples) - (n_samples - 1) / 2)
    weights = np.exp(-((np.arange(length) - centres[:, None]) ** 2) / (2 * blur**2))
    whole = np.sqrt(2 * np.pi) * blur
    return np.asarray(weights / whole)


def n_sampled(length: int, stride: int) -> int:
    """Return how many samples there are on a line of pixels."""
    return -(-length // stride)
