"""Transformers of images, and the AGOP projection of rows."""

from kmeans_kernel.estimators.transformers._agop_projection import AGOPProjection
from kmeans_kernel.estimators.transformers._deskewer import Deskewer
from kmeans_kernel.estimators.transformers._edge_patterns import EdgePatterns
from kmeans_kernel.estimators.transformers._fourier import FourierFeatures
from kmeans_kernel.estimators.transformers._hog import OrientedGradients
from kmeans_kernel.estimators.transformers._pixels import PixelNormalizer

__all__ = [
    "AGOPProjection",
    "Deskewer",
    "EdgePatterns",
    "FourierFeatures",
    "OrientedGradients",
    "PixelNormalizer",
]
