"""scikit-learn estimators: a thin shell over the core."""

from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators._explanation import ColumnEffect, Contribution, Explanation
from kmeans_kernel.estimators._image_classifier import image_classifier
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier
from kmeans_kernel.estimators._spherical_kmeans import SphericalKMeans
from kmeans_kernel.estimators.columns import Column, DroppedColumnWarning, TableEncoder
from kmeans_kernel.estimators.transformers import (
    AGOPProjection,
    Deskewer,
    EdgePatterns,
    FourierFeatures,
    OrientedGradients,
    PixelNormalizer,
)

__all__ = [
    "AGOPProjection",
    "Column",
    "ColumnEffect",
    "Contribution",
    "Deskewer",
    "DroppedColumnWarning",
    "EdgePatterns",
    "Explanation",
    "FourierFeatures",
    "KMeansKernelClassifier",
    "OrientedGradients",
    "PatchVotingClassifier",
    "PixelNormalizer",
    "SphericalKMeans",
    "TableEncoder",
    "image_classifier",
]
