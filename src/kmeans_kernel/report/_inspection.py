"""What a fitted estimator is: its steps, its classifier, its representatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian, Polynomial
from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier
from kmeans_kernel.estimators.transformers._base import PixelTransformer
from kmeans_kernel.estimators.transformers._fourier import FourierFeatures
from kmeans_kernel.estimators.transformers._pixels import PixelNormalizer

# After these the classifier sees pixels, and maybe more.
_SHOW_PIXELS = (PixelNormalizer, FourierFeatures)


def classifier_of(estimator: Any) -> KMeansKernelClassifier:
    """Return the K-means kernel classifier within an estimator."""
    while not isinstance(estimator, KMeansKernelClassifier):
        if isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        elif isinstance(estimator, PatchVotingClassifier):
            estimator = estimator.classifier_
        else:
            raise TypeError(f"{type(estimator).__name__} holds no KMeansKernelClassifier.")
    return estimator


def sees_images(estimator: Any) -> bool:
    """Say whether an estimator takes images (n, height, width)."""
    if isinstance(estimator, Pipeline):
        return sees_images(estimator[0])
    return isinstance(estimator, PatchVotingClassifier | PixelTransformer)


def input_shape(estimator: Any) -> tuple[int, int] | None:
    """Return height and width of the images that an estimator takes; None for rows of a table.

    Images that came as rows are taken for squares, and are of no known shape if they are none.
    """
    first = estimator[0] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(first, PatchVotingClassifier | PixelTransformer):
        return None
    known: tuple[int, int] | None = first.image_shape_
    if known is not None:
        return int(known[0]), int(known[1])
    side = round(float(first.n_features_in_) ** 0.5)
    return (side, side) if side * side == first.n_features_in_ else None


def describe(estimator: Any) -> dict[str, Any]:
    """Return what there is to know about a fitted estimator, as plain values."""
    classifier = classifier_of(estimator)
    model = classifier.model_
    counts = model.representative_counts
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
        "feature_names": _names(estimator),
        "kernel": _kernel(model.kernel),
        "regularization": classifier.regularization_,
        "lift": model.lift,
        "feature_scales": None if model.feature_scales is None else model.feature_scales.tolist(),
        "squashed": model.squash is not None,
        "held_out_error": classifier.held_out_error_,
        "representatives": len(model.directions),
        "model_bytes": int(sum(array.nbytes for array in arrays)),
        "relative_residual": classifier.relative_residual_,
        "iterations": classifier.n_iter_.tolist(),
        "classes": classes,
    }


def representative_images(estimator: Any, per_class: int) -> npt.NDArray[Any] | None:
    """Return (K, per_class, height, width) images of the largest representatives, if they are some.

    None when the classifier did not see pixels. Missing ones are NaN.
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
    """Return the (m, height, width) representatives; None when the classifier saw no pixels."""
    shape = _image_shape(estimator)
    if shape is None:
        return None
    pixels: Array = classifier_of(estimator).model_.representatives[:, : shape[0] * shape[1]]
    return pixels.reshape(-1, *shape)


def _image_shape(estimator: Any) -> tuple[int, int] | None:
    """Return height and width of what the classifier saw, None if it saw no images."""
    if isinstance(estimator, PatchVotingClassifier):
        shape: tuple[int, int] = estimator.patch_shape_
        return shape
    if not isinstance(estimator, Pipeline):
        return None
    return input_shape(estimator) if isinstance(estimator[0], _SHOW_PIXELS) else None


def _steps(estimator: Any) -> list[str]:
    if isinstance(estimator, Pipeline):
        return [name for _, step in estimator.steps for name in _steps(step)]
    if isinstance(estimator, PatchVotingClassifier):
        height, width = estimator.patch_shape_
        own = f"PatchVotingClassifier({height} × {width}, {estimator.vote})"
        return [own, *_steps(estimator.classifier_)]
    return [type(estimator).__name__]


def _names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _kernel(kernel: Any) -> str:
    if isinstance(kernel, Polynomial):
        return f"polynomial, degree {kernel.degree}"
    if isinstance(kernel, Gaussian | Laplacian):
        return f"{type(kernel).__name__}, gamma {kernel.gamma:g}"
    return repr(kernel)
