"""The pipeline for grey images: deskewing, edge patterns, kernel classifier."""

from __future__ import annotations

from typing import Literal

from sklearn.pipeline import Pipeline, make_pipeline

from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators.transformers._deskewer import Deskewer
from kmeans_kernel.estimators.transformers._edge_patterns import EdgePatterns
from kmeans_kernel.utils.validation import RandomState


def image_classifier(
    n_representatives: int | Literal["auto"] = 1000,
    *,
    image_shape: tuple[int, int] | None = None,
    random_state: RandomState = None,
    verbose: bool = False,
) -> Pipeline:
    """Return a pipeline for grey images: `Deskewer`, `EdgePatterns`, `KMeansKernelClassifier`.

    It takes images (n, height, width) or rows of pixels; the scale of the brightness is arbitrary.

    Parameters
    ----------
    n_representatives : int or "auto", default=1000
        Representatives of each class, as in `KMeansKernelClassifier`; fewer are faster.
    image_shape : (height, width) or None, default=None
        Shape of the images, for rows of pixels of images that are not square.
    random_state : int, RandomState instance or None, default=None
        Seed or generator; an int makes the fit reproducible.
    verbose : bool, default=False
        Whether to write progress to standard error.

    Examples
    --------
    >>> from kmeans_kernel import image_classifier
    >>> from kmeans_kernel.data.datasets import load_digits
    >>> digits = load_digits()
    >>> model = image_classifier(20, random_state=0).fit(digits.X_train, digits.y_train)
    >>> bool(model.score(digits.X_test, digits.y_test) > 0.95)
    True
    """
    return make_pipeline(
        Deskewer(image_shape),
        EdgePatterns(image_shape=image_shape, random_state=random_state),
        KMeansKernelClassifier(
            n_representatives,
            boundary_fraction=0.7,
            loss="squared",
            lift=0.0,
            random_state=random_state,
            verbose=verbose,
        ),
    )
