"""Base classes of the image transformers: checks, image shapes, blocks of rows.

A transformer takes images (n, height, width) or rows of pixels, and returns rows: float64 for
float64 input, float32 for any other.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kmeans_kernel.core.arrays.lazy import LazyRows
from kmeans_kernel.core.arrays.matrices import Array, cached_row_blocks
from kmeans_kernel.utils.threads import threads_for
from kmeans_kernel.utils.validation import check_lazy_rows, check_pixels, check_shape

# Estimated cost of a pixel, in operations of a matrix product.
_OPERATIONS_PER_PIXEL = 200.0


class PixelTransformer(TransformerMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of the transformers of pixels; most learn only the number of pixels."""

    _takes_lazy_rows = True

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn the shape of the images and, in some transformers, features of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width) or (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        shape = _image_shape(X)
        if isinstance(X, LazyRows):
            check_lazy_rows(self, X, reset=True)
        else:
            X = check_pixels(self, X, reset=True)
        self.image_shape_ = self._shape_for(shape)
        self._learn(X)
        return self

    def _check_parameters(self) -> None:
        """Raise ValueError for invalid parameters; by default there are none."""

    def _learn(self, X: npt.NDArray[Any] | LazyRows) -> None:
        """Learn from rows of pixels; by default nothing."""

    def _shape_for(self, seen: tuple[int, int] | None) -> tuple[int, int] | None:
        """Return `image_shape_`, given the image shape in `fit`; None if `fit` saw rows."""
        return seen

    def transform(self, X: Any) -> Any:
        """Return the features of each image as a row.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width) or (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        if isinstance(X, LazyRows):
            check_lazy_rows(self, X, reset=False)
            return X.map(self._features, self._n_features_out, _dtype_for(X))
        rows = check_pixels(self, X, reset=False)
        seen, shape = self.image_shape_, _image_shape(X)
        if seen is not None and shape is not None and shape != seen:
            raise ValueError(
                f"X must hold images of {seen[0]} × {seen[1]} pixels, as those seen in fit, got "
                f"{shape[0]} × {shape[1]}."
            )
        return self._features(rows)

    def _features(self, X: npt.NDArray[Any]) -> Array:
        out = np.empty((len(X), self._n_features_out), dtype=_dtype_for(X))

        def write(rows: slice) -> None:
            self._write_features(X[rows].astype(np.float64), out[rows])

        with threads_for(_OPERATIONS_PER_PIXEL * X.size) as workers:
            workers.map(write, cached_row_blocks(*X.shape))
        return out

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """The number of features of a transformed row."""

    @abstractmethod
    def _write_features(self, X: Array, out: Array) -> None:
        """Write the features of a block of float64 rows of pixels to `out`."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class ImageTransformer(PixelTransformer, metaclass=ABCMeta):
    """Base class of the transformers that need the height and width of the images."""

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


def as_images(X: Any, image_shape: tuple[int, int] | None) -> npt.NDArray[Any]:
    """Return rows of pixels or images as images (n, height, width); ValueError for other shapes.

    Rows are reshaped to `image_shape`, or to squares if that is None.
    """
    if issparse(X):
        raise TypeError(
            "X must be dense images or rows of pixels, got a sparse matrix. Use X.toarray()."
        )
    X = np.asarray(X)
    if X.ndim == 3:
        if image_shape is not None and X.shape[1:] != tuple(image_shape):
            raise ValueError(
                f"X must hold images of {image_shape[0]} × {image_shape[1]} pixels, as image_shape "
                f"or the images seen in fit say, got {X.shape[1]} × {X.shape[2]}."
            )
        return np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"X must be images of shape (n, height, width) or rows of pixels, got an array of "
            f"shape {X.shape}. Colour images must be turned to grey first."
        )
    return np.asarray(X.reshape(len(X), *shape_of_rows(X.shape[1], image_shape)))


def shape_of_rows(n_pixels: int, image_shape: tuple[int, int] | None) -> tuple[int, int]:
    """Return the height and width of rows of pixels: as given, or of a square."""
    if image_shape is None:
        side = round(n_pixels**0.5)
        if side * side != n_pixels:
            raise ValueError(
                f"X has rows of {n_pixels} pixels, which is no square image. Pass images of shape "
                "(n, height, width), or set image_shape=(height, width)."
            )
        image_shape = (side, side)
    if image_shape[0] * image_shape[1] != n_pixels:
        raise ValueError(
            f"X must hold rows of {image_shape[0]} × {image_shape[1]} = "
            f"{image_shape[0] * image_shape[1]} pixels, as image_shape or the images seen in fit "
            f"say, got rows of {n_pixels}."
        )
    return image_shape


def _image_shape(X: Any) -> tuple[int, int] | None:
    """Return the height and width of images; None for rows of pixels."""
    shape: tuple[int, ...] = np.shape(X) if isinstance(X, list | tuple) else getattr(X, "shape", ())
    return (int(shape[1]), int(shape[2])) if len(shape) == 3 else None


def _dtype_for(X: npt.NDArray[Any] | LazyRows) -> npt.DTypeLike:
    return np.float64 if X.dtype == np.float64 else np.float32
