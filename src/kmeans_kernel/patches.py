"""Classifying an image by a vote of its patches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from kmeans_kernel._blocks import Array, row_blocks
from kmeans_kernel._validation import check_option, check_pixels
from kmeans_kernel.images import as_images


class PatchVotingClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Train a classifier on all overlapping patches of the images, and let the patches vote.

    Parameters
    ----------
    classifier : estimator
        Any scikit-learn classifier of rows; it sees each patch as a row of pixels.
    patch_shape : tuple of two ints, default=(25, 25)
        Height and width of a patch.
    vote : {"majority", "sum"}, default="majority"
        Whether the class of most patches wins, as in the paper, or that of the highest summed
        score. A tied majority is decided by the summed scores.
    image_shape : tuple of two ints or None, default=None
        Height and width of an image, for images that come as rows and are not square.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    classifier_ : estimator
        The classifier of patches, fitted.
    image_shape_ : tuple of two ints
        Height and width of the images seen in `fit`.
    n_features_in_ : int
        Number of pixels of an image.

    Examples
    --------
    >>> from kmeans_kernel import PatchVotingClassifier, paper
    >>> from kmeans_kernel.datasets import load_digits
    >>> digits = load_digits()
    >>> voting = paper.patches(20, patch=6, random_state=0)
    >>> voting.fit(digits.X_train, digits.y_train).score(digits.X_test, digits.y_test) > 0.9
    True
    """

    def __init__(
        self,
        classifier: Any,
        patch_shape: tuple[int, int] = (25, 25),
        vote: Literal["majority", "sum"] = "majority",
        image_shape: tuple[int, int] | None = None,
    ) -> None:
        self.classifier = classifier
        self.patch_shape = patch_shape
        self.vote = vote
        self.image_shape = image_shape

    def fit(self, X: Any, y: Any) -> Self:
        """Train the classifier on the patches of the images.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width), or rows of pixels
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        check_option(self, "vote", "majority", "sum")
        images = self._images(X, reset=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but y is None.")
        y = column_or_1d(y, warn=True)
        check_consistent_length(images, y)
        check_classification_targets(y)
        patches = extract_patches(images, self._checked_patch_shape(images))
        self.classifier_ = clone(self.classifier)
        self.classifier_.fit(patches, np.repeat(y, len(patches) // len(images)))
        self.classes_ = self.classifier_.classes_
        self.image_shape_ = images.shape[1:]
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label that wins the vote of each image's patches.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width), or rows of pixels

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        shares = self.predict_proba(X)
        labels: npt.NDArray[Any] = self.classes_[shares.argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return for each class its share of the vote.

        By majority: the share of the patches, with one more vote that the summed scores split
        and that decides ties. By sum: the softmax of the mean score.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width), or rows of pixels

        Returns
        -------
        ndarray of shape (n_samples, n_classes); rows sum to one
        """
        check_is_fitted(self)
        by_majority = check_option(self, "vote", "majority", "sum") == "majority"
        shares = []
        for patches, n_images in self._patch_blocks(self._images(X, reset=False)):
            scores = self._patch_scores(patches).reshape(n_images, -1, len(self.classes_))
            share = softmax(scores.mean(axis=1, dtype=np.float64), axis=1)
            if by_majority:
                winners = scores.argmax(axis=2)[..., np.newaxis] == np.arange(scores.shape[2])
                share = (winners.sum(axis=1) + share) / (scores.shape[1] + 1)
            shares.append(share)
        return np.concatenate(shares)

    def _images(self, X: Any, *, reset: bool) -> npt.NDArray[Any]:
        """Return X as finite images, of the shape seen in `fit` unless this is it."""
        shape = self.image_shape if reset else self.image_shape_
        images = as_images(X if hasattr(X, "ndim") else np.asarray(X), shape)
        rows = check_pixels(self, images, reset=reset)
        return rows.reshape(images.shape)

    def _checked_patch_shape(self, images: npt.NDArray[Any]) -> tuple[int, int]:
        height, width = images.shape[1:]
        try:
            rows, columns = map(int, self.patch_shape)
        except (TypeError, ValueError):
            rows = columns = 0
        if not (1 <= rows <= height and 1 <= columns <= width):
            raise ValueError(
                f"The 'patch_shape' parameter of {type(self).__name__} must be (height, width) of "
                f"a patch within the images of {height} × {width} pixels, got {self.patch_shape!r}."
            )
        return rows, columns

    def _patch_blocks(self, images: npt.NDArray[Any]) -> Iterator[tuple[npt.NDArray[Any], int]]:
        shape = self._checked_patch_shape(images)
        pixels = (
            np.prod(shape) * (images.shape[1] - shape[0] + 1) * (images.shape[2] - shape[1] + 1)
        )
        for block in row_blocks(len(images), int(pixels) // 16):
            yield extract_patches(images[block], shape), block.stop - block.start

    def _patch_scores(self, patches: npt.NDArray[Any]) -> Array:
        """Return the (n_patches, K) scores of the fitted classifier, by the best name it has."""
        if hasattr(self.classifier_, "decision_function"):
            scores: Array = self.classifier_.decision_function(patches)
            if scores.ndim == 1:  # two classes: half the difference each
                scores = np.stack([-scores / 2, scores / 2], axis=1)
            return scores
        proba: Array = self.classifier_.predict_proba(patches)
        return proba

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def extract_patches(images: npt.NDArray[Any], shape: tuple[int, int]) -> npt.NDArray[Any]:
    """Return all overlapping patches, image by image and row by row, as rows of pixels."""
    windows = np.lib.stride_tricks.sliding_window_view(images, shape, axis=(1, 2))
    return windows.reshape(-1, shape[0] * shape[1])
