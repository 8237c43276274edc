"""A kernel classifier with one knob: representatives by K-means, coefficients by least squares.

The classifiers and transformers are here; `kmeans_kernel.paper` holds the paper's three
classifiers, `kmeans_kernel.datasets` the data.
"""

from kmeans_kernel import datasets, paper
from kmeans_kernel.classifier import KMeansKernelClassifier
from kmeans_kernel.cluster import SphericalKMeans
from kmeans_kernel.images import FourierFeatures, PixelNormalizer
from kmeans_kernel.patches import PatchVotingClassifier

__version__ = "0.1.0"

__all__ = [
    "FourierFeatures",
    "KMeansKernelClassifier",
    "PatchVotingClassifier",
    "PixelNormalizer",
    "SphericalKMeans",
    "datasets",
    "paper",
]
