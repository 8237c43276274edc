"""Classification of images by a vote of their patches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    clone,
    is_classifier,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from kmeans_kernel.core.arrays.lazy import LazyRows, takes_lazy_rows
from kmeans_kernel.core.arrays.matrices import Array, IntArray, row_blocks
from kmeans_kernel.estimators.transformers._base import as_images
from kmeans_kernel.utils.validation import check_option, check_pixels, check_shape, codes_of

# Training patches on which a score method is compared with `predict`.
_PATCHES_TO_COMPARE = 500


class PatchVotingClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Classify images by a vote of all their overlapping patches.

    A classifier is trained on all patches, each with the label of its image.

    Parameters
    ----------
    classifier : estimator
        Any scikit-learn classifier; each patch is a row of pixels.
    patch_shape : tuple of two ints, default=(25, 25)
        Height and width of a patch.
    vote : {"majority", "sum"}, default="majority"
        "majority", as in the paper: the class predicted for most patches wins, and summed scores
        decide ties. "sum": the class with the highest summed score wins.
    image_shape : tuple of two ints or None, default=None
        Height and width of an image, for rows of pixels of images that are not square.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    classifier_ : estimator
        The fitted classifier of patches.
    image_shape_ : tuple of two ints
        Height and width of the images seen in `fit`.
    patch_shape_ : tuple of two ints
        Height and width of the patches that the classifier was trained on.
    score_method_ : str
        The method of the classifier that scores patches: "decision_function" or "predict_proba", or
        "predict" if the argmax of neither agrees with its predictions.
    n_features_in_ : int
        Number of pixels of an image.

    Examples
    --------
    >>> from kmeans_kernel import PatchVotingClassifier, paper
    >>> from kmeans_kernel.data import load_digits
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
        codes_of(y)
        check_classification_targets(y)
        patch_shape = self._checked_patch_shape(images)
        if not (hasattr(self.classifier, "fit") and is_classifier(self.classifier)):
            raise ValueError(
                f"The 'classifier' parameter of {type(self).__name__} must be a scikit-learn "
                f"classifier, got {self.classifier!r}."
            )
        make = lazy_patches if takes_lazy_rows(self.classifier) else extract_patches
        patches = make(images, patch_shape)
        self.classifier_ = clone(self.classifier)
        self.classifier_.fit(patches, np.repeat(y, len(patches) // len(images)))
        self.classes_ = self.classifier_.classes_
        self.image_shape_ = images.shape[1:]
        self.patch_shape_ = patch_shape
        self.score_method_ = self._trusted_score_method(patches[:_PATCHES_TO_COMPARE])
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
        """Return the share of the vote of each class.

        With vote="majority", the share of the patches, after one extra vote that is divided by the
        softmax of the mean score and decides ties. With vote="sum", the softmax of the mean score.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width), or rows of pixels

        Returns
        -------
        ndarray of shape (n_samples, n_classes); rows sum to one
        """
        check_is_fitted(self)
        by_majority = check_option(self, "vote", "majority", "sum") == "majority"
        shares = [vote_shares(scores, by_majority=by_majority) for scores in self.patch_scores(X)]
        return np.concatenate(shares)  # at least one block: no images were refused

    def patch_scores(self, X: Any) -> Iterator[Array]:
        """Yield the scores of all patches, for blocks of images that bound the memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width), or rows of pixels

        Yields
        ------
        ndarray of shape (n_images, n_patches, n_classes)
        """
        check_is_fitted(self)
        for patches, n_images in self._patch_blocks(self._images(X, reset=False)):
            scores = self._patch_scores(patches, self.score_method_)
            yield scores.reshape(n_images, -1, len(self.classes_))

    def _images(self, X: Any, *, reset: bool) -> npt.NDArray[Any]:
        """Return X as finite images; after `fit` (not `reset`), of the shape seen in `fit`."""
        if reset:
            shape = None if self.image_shape is None else check_shape(self, "image_shape")
        else:
            shape = self.image_shape_
        images = as_images(X, shape)
        rows = check_pixels(self, images, reset=reset)
        return rows.reshape(images.shape)

    def _checked_patch_shape(self, images: npt.NDArray[Any]) -> tuple[int, int]:
        height, width = check_shape(self, "patch_shape")
        if height > images.shape[1] or width > images.shape[2]:
            raise ValueError(
                f"The 'patch_shape' parameter of {type(self).__name__} must fit within the images "
                f"of {images.shape[1]} × {images.shape[2]} pixels, got {self.patch_shape!r}."
            )
        return height, width

    def _patch_blocks(self, images: npt.NDArray[Any]) -> Iterator[tuple[npt.NDArray[Any], int]]:
        """Yield the patches of blocks of images, about sixteen row blocks of pixels at a time."""
        height, width = self.patch_shape_
        n_patches = (images.shape[1] - height + 1) * (images.shape[2] - width + 1)
        for block in row_blocks(len(images), height * width * n_patches // 16):
            yield extract_patches(images[block], self.patch_shape_), block.stop - block.start

    def _trusted_score_method(self, patches: npt.NDArray[Any]) -> str:
        """Return the score method whose argmax agrees with `predict` on some patches.

        Not every `decision_function` has a column per class: one-versus-one has one per pair.
        """
        predicted = self.classifier_.predict(patches)
        for name in ("decision_function", "predict_proba"):
            if hasattr(self.classifier_, name):
                scores = self._patch_scores(patches, name)
                if scores.shape[1] != len(self.classes_):
                    continue
                if (self.classes_[scores.argmax(axis=1)] == predicted).mean() > 0.99:
                    return name
        return "predict"

    def _patch_scores(self, patches: npt.NDArray[Any], method: str) -> Array:
        """Return the (n_patches, K) scores of the fitted classifier by the given method."""
        result = getattr(self.classifier_, method)(patches)
        if method == "predict":
            return np.asarray(result[:, np.newaxis] == self.classes_, dtype=np.float64)
        scores: Array = result
        if scores.ndim == 1:  # two classes: ± half the decision value
            return np.stack([-scores / 2, scores / 2], axis=1)
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def vote_shares(scores: Array, *, by_majority: bool) -> Array:
    """Return the (n, K) shares of the vote from the scores (n, P, K) of the patches."""
    share: Array = softmax(scores.mean(axis=1, dtype=np.float64), axis=1)
    if by_majority:
        winners = scores.argmax(axis=2)[..., np.newaxis] == np.arange(scores.shape[2])
        share = (winners.sum(axis=1) + share) / (scores.shape[1] + 1)
    return share


def extract_patches(images: npt.NDArray[Any], shape: tuple[int, int]) -> npt.NDArray[Any]:
    """Return all overlapping patches, image by image and row by row, as rows of pixels."""
    windows = np.lib.stride_tricks.sliding_window_view(images, shape, axis=(1, 2))
    return windows.reshape(-1, shape[0] * shape[1])


def lazy_patches(images: npt.NDArray[Any], shape: tuple[int, int]) -> LazyRows:
    """Return the rows of `extract_patches` as lazy rows.

    The patches of an image take many times the memory of the image.
    """
    windows = np.lib.stride_tricks.sliding_window_view(images, shape, axis=(1, 2))
    grid = windows.shape[:3]
    n_pixels = shape[0] * shape[1]

    def make(rows: IntArray) -> npt.NDArray[Any]:
        return windows[np.unravel_index(rows, grid)].reshape(len(rows), n_pixels)

    return LazyRows(make, (int(np.prod(grid)), n_pixels), images.dtype)
