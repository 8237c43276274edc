"""The paper's three classifiers, with its exact settings.

M. Andrecut, "K-Means Kernel Classifier", 2020: an LS-SVM on the centroids with a polynomial kernel
of degree four and regularisation 1e-6; K-means starts from random samples and stops at a deviation
of 1e-6. Each classifier takes images (n, height, width) or rows of pixels.
"""

from __future__ import annotations

from sklearn.pipeline import Pipeline, make_pipeline

from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier
from kmeans_kernel.estimators.transformers._fourier import FourierFeatures
from kmeans_kernel.estimators.transformers._pixels import PixelNormalizer
from kmeans_kernel.utils.validation import RandomState

__all__ = ["classifier", "patches", "raw", "raw_fft"]


def raw(q: int = 100, *, random_state: RandomState = None, verbose: bool = False) -> Pipeline:
    """Return the classifier of raw pixels (the paper's Figure 1) with `q` centroids per class."""
    return make_pipeline(
        PixelNormalizer(), classifier(q, random_state=random_state, verbose=verbose)
    )


def raw_fft(q: int = 100, *, random_state: RandomState = None, verbose: bool = False) -> Pipeline:
    """Return the classifier of pixels and their Fourier magnitudes (Figure 1)."""
    return make_pipeline(
        FourierFeatures(root=True), classifier(q, random_state=random_state, verbose=verbose)
    )


def patches(
    q: int = 100, patch: int = 25, *, random_state: RandomState = None, verbose: bool = False
) -> PatchVotingClassifier:
    """Return the classifier by majority vote of `patch` × `patch` patches (Figure 2)."""
    return PatchVotingClassifier(raw(q, random_state=random_state, verbose=verbose), (patch, patch))


def classifier(
    q: int = 100, *, random_state: RandomState = None, verbose: bool = False
) -> KMeansKernelClassifier:
    """Return the classifier of rows that is the last step of all three."""
    return KMeansKernelClassifier(
        q,
        kernel="poly",
        degree=4,
        fit_on="representatives",
        regularization=1e-6,
        lift=0.0,
        init="random",
        tol=1e-6,
        max_iter=300,
        feature_scales=None,
        feature_transform=None,
        random_state=random_state,
        verbose=verbose,
    )
