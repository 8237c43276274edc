"""A kernel classifier with one knob: representatives by K-means, coefficients by least squares.

The classifiers and transformers are here; `kmeans_kernel.paper` holds the paper's three
classifiers, `kmeans_kernel.datasets` the data.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kmeans_kernel import datasets, paper
    from kmeans_kernel.classifier import KMeansKernelClassifier
    from kmeans_kernel.cluster import SphericalKMeans
    from kmeans_kernel.gradients import Deskewer, OrientedGradients
    from kmeans_kernel.images import FourierFeatures, PixelNormalizer
    from kmeans_kernel.metric import LearnedMetric
    from kmeans_kernel.patches import PatchVotingClassifier
    from kmeans_kernel.patterns import EdgePatterns, image_classifier
    from kmeans_kernel.persistence import load_model, save_model

__version__ = "0.1.0"

__all__ = [
    "Deskewer",
    "EdgePatterns",
    "FourierFeatures",
    "KMeansKernelClassifier",
    "LearnedMetric",
    "OrientedGradients",
    "PatchVotingClassifier",
    "PixelNormalizer",
    "SphericalKMeans",
    "datasets",
    "image_classifier",
    "load_model",
    "paper",
    "save_model",
]

# Where each name is. A module is imported when a name of it is first asked for: the command line
# answers --help without waiting for scikit-learn.
_HOMES = {
    "Deskewer": "gradients",
    "EdgePatterns": "patterns",
    "FourierFeatures": "images",
    "KMeansKernelClassifier": "classifier",
    "LearnedMetric": "metric",
    "OrientedGradients": "gradients",
    "PatchVotingClassifier": "patches",
    "PixelNormalizer": "images",
    "SphericalKMeans": "cluster",
    "image_classifier": "patterns",
    "load_model": "persistence",
    "save_model": "persistence",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOMES.get(name, name)}")
    found = getattr(module, name) if name in _HOMES else module
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
