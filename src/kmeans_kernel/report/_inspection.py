"""Inspection of a fitted estimator: its steps, input shape, classifier and representatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.kernels.kernels import kernel_to_dict
from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier
from kmeans_kernel.estimators.transformers._base import PixelTransformer, shape_of_rows
from kmeans_kernel.estimators.transformers._fourier import FourierFeatures
from kmeans_kernel.estimators.transformers._pixels import PixelNormalizer

# Transformers whose output starts with the pixels, so that representatives can be shown as images.
_KEEP_PIXELS = (PixelNormalizer, FourierFeatures)

# What each transform of the features is for.
TRANSFORMS_IN_WORDS = {
    "standard": "units and offsets of the features do not matter",
    "asinh": "outliers do not set the distances",
    "piecewise": "abrupt changes are followed, as trees follow them",
    "both": "abrupt changes are followed, as trees follow them, and smooth ones too",
}


def classifier_of(estimator: Any) -> KMeansKernelClassifier:
    """Return the K-means kernel classifier of a pipeline or a patch voting classifier."""
    while not isinstance(estimator, KMeansKernelClassifier):
        if isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        elif isinstance(estimator, PatchVotingClassifier):
            estimator = estimator.classifier_
        else:
            raise TypeError(f"{type(estimator).__name__} holds no KMeansKernelClassifier.")
    return estimator


def sees_images(estimator: Any) -> bool:
    """Return whether an estimator takes images (n, height, width)."""
    if isinstance(estimator, Pipeline):
        return sees_images(estimator[0])
    return isinstance(estimator, PatchVotingClassifier | PixelTransformer)


def input_shape(estimator: Any) -> tuple[int, int] | None:
    """Return height and width of the images that an estimator takes; None for rows of a table.

    An estimator fitted to rows of pixels does not know their shape: they count as square images,
    and the shape is None if the number of pixels is not a square.
    """
    first = estimator[0] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(first, PatchVotingClassifier | PixelTransformer):
        return None
    try:
        height, width = shape_of_rows(int(first.n_features_in_), first.image_shape_)
    except ValueError:  # the number of pixels is not a square
        return None
    return int(height), int(width)


def describe(estimator: Any) -> dict[str, Any]:
    """Return the facts of a fitted estimator as values that JSON can hold.

    Parameters
    ----------
    estimator : KMeansKernelClassifier, PatchVotingClassifier, or a Pipeline that ends in one

    Returns
    -------
    dict of the steps, the features, the chosen parameters, and the representatives of each class
    """
    classifier = classifier_of(estimator)
    model = classifier.model_
    counts, scales = model.representative_counts, classifier.feature_scales_
    classes = []
    for k, label in enumerate(model.classes.tolist()):
        own = counts[model.representative_classes == k]
        classes.append(
            {
                "label": label,
                "representatives": len(own),
                "rows": own.sum().item(),
                "smallest": own.min().item(),
                "median": float(np.median(own)),
                "largest": own.max().item(),
            }
        )
    arrays = (model.directions, model.dual_coef, model.intercept, counts)
    return {
        "steps": _steps(estimator),
        "features": int(estimator.n_features_in_),
        "feature_names": _feature_names(estimator),
        "kernel": _kernel(model.kernel),
        "regularization": classifier.regularization_,
        "lift": classifier.lift_,
        "feature_scales": None if scales is None else scales.tolist(),
        "feature_transform": classifier.feature_transform_,
        "held_out_error": classifier.held_out_error_,
        "representatives": len(model.directions),
        "model_bytes": int(sum(array.nbytes for array in arrays)),
        "relative_residual": classifier.relative_residual_,
        "iterations": classifier.n_iter_.tolist(),
        "classes": classes,
    }


def representative_images(estimator: Any, per_class: int) -> npt.NDArray[Any] | None:
    """Return the representatives of most training rows as images.

    Parameters
    ----------
    estimator : KMeansKernelClassifier, PatchVotingClassifier, or a Pipeline that ends in one
    per_class : images per class; a class with fewer representatives is padded with NaN

    Returns
    -------
    (K, per_class, height, width) array, or None if the classifier's features are not pixels
    """
    pixels = all_representative_images(estimator)
    if pixels is None:
        return None
    model = classifier_of(estimator).model_
    out = np.full((len(model.classes), per_class, *pixels.shape[1:]), np.nan)
    for k in range(len(model.classes)):
        own = np.flatnonzero(model.representative_classes == k)
        largest = own[np.argsort(-model.representative_counts[own], kind="stable")][:per_class]
        out[k, : len(largest)] = pixels[largest]
    return out


def all_representative_images(estimator: Any) -> Array | None:
    """Return all (m, height, width) representatives; None if the features are not pixels."""
    shape = _representative_shape(estimator)
    if shape is None:
        return None
    pixels: Array = classifier_of(estimator).model_.representatives[:, : shape[0] * shape[1]]
    return pixels.reshape(-1, *shape)


def _representative_shape(estimator: Any) -> tuple[int, int] | None:
    """Return height and width of the classifier's rows as images; None if they are not pixels."""
    if isinstance(estimator, PatchVotingClassifier):
        shape: tuple[int, int] = estimator.patch_shape_
        return shape
    if not isinstance(estimator, Pipeline):
        return None
    return input_shape(estimator) if isinstance(estimator[0], _KEEP_PIXELS) else None


def _steps(estimator: Any) -> list[str]:
    if isinstance(estimator, Pipeline):
        return [name for _, step in estimator.steps for name in _steps(step)]
    if isinstance(estimator, PatchVotingClassifier):
        height, width = estimator.patch_shape_
        own = f"PatchVotingClassifier({height} × {width}, {estimator.vote})"
        return [own, *_steps(estimator.classifier_)]
    return [type(estimator).__name__]


def _feature_names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _kernel(kernel: Any) -> str:
    values = kernel_to_dict(kernel)
    name = values.pop("name")
    return ", ".join([name, *(f"{one} {value:g}" for one, value in values.items())])
