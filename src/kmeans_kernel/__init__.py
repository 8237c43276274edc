"""A kernel classifier with one knob: representatives by K-means, coefficients by least squares.

The estimators are here; `paper` holds the paper's three classifiers, `data` the data sets and the
rows that do not fit into memory, `export` what leaves Python, `report` evaluation and pictures,
`events` the records that a callback of `fit` gets.
"""

from typing import TYPE_CHECKING

from kmeans_kernel.utils.contents import lazy_names

if TYPE_CHECKING:
    from kmeans_kernel import data, events, export, paper, report
    from kmeans_kernel.estimators import (
        AGOPProjection,
        Deskewer,
        EdgePatterns,
        FourierFeatures,
        KMeansKernelClassifier,
        OrientedGradients,
        PatchVotingClassifier,
        PixelNormalizer,
        SphericalKMeans,
        TableEncoder,
        image_classifier,
    )
    from kmeans_kernel.export import load_model, save_model

__version__ = "0.1.0"

__all__ = [
    "AGOPProjection",
    "Deskewer",
    "EdgePatterns",
    "FourierFeatures",
    "KMeansKernelClassifier",
    "OrientedGradients",
    "PatchVotingClassifier",
    "PixelNormalizer",
    "SphericalKMeans",
    "TableEncoder",
    "data",
    "events",
    "export",
    "image_classifier",
    "load_model",
    "paper",
    "report",
    "save_model",
]

_HOMES = dict.fromkeys(__all__, "estimators") | {
    "data": "data",
    "events": "events",
    "export": "export",
    "load_model": "export",
    "paper": "paper",
    "report": "report",
    "save_model": "export",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
