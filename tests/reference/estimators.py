"""Fitted estimators as their JSON and arrays say, step by step and number by number."""

import math

import numpy as np
import scipy.linalg

from tests.reference import encoding, images, kernels, model
from tests.reference.spherical_kmeans import dot


def kernel_function(tree):
    values = dict(tree)
    function = _KERNELS[values.pop("name")]
    return lambda cosine: function(cosine, **values)


def features(tree, arrays, X, place=""):
    """What the last step of a pipeline sees; the rows themselves where there are no steps."""
    if tree["kind"] != "Pipeline":
        return X
    for k, (_, step) in enumerate(tree["steps"][:-1]):
        X = _STEPS[step["kind"]](step, arrays, X, f"{place}steps.{k}.")
    return X


def scores(tree, arrays, X, place=""):
    """The scores of a classifier, or of a pipeline that ends in one."""
    if tree["kind"] == "Pipeline":
        last = len(tree["steps"]) - 1
        rows = features(tree, arrays, X, place)
        return scores(tree["steps"][last][1], arrays, rows, f"{place}steps.{last}.")
    return model.scores(
        _numbers(tree, X),
        arrays[f"{place}directions"],
        arrays[f"{place}dual_coef"],
        arrays[f"{place}intercept"],
        kernel_function(tree["kernel"]),
        tree["lift"],
        arrays.get(f"{place}feature_scales"),
        feature_map(tree, arrays, place),
    )


def feature_map(tree, arrays, place=""):
    """The feature transform or the encoding of columns, or None."""
    values = {
        name: arrays[f"{place}transform_{name}"]
        for name in ("centers", "widths", "gains")
        if f"{place}transform_{name}" in arrays
    }
    if tree["encoding"] is None:
        return {"kind": tree["feature_transform"], **values} if values else None
    parts = ("value_", "step_", "level_", "missing_")
    found = {name.removeprefix(place): array for name, array in arrays.items()}
    return {
        **{name: array for name, array in found.items() if name.startswith(parts)},
        "n_columns": tree["encoding"]["n_columns"],
        "values": {"kind": tree["encoding"]["values"], **values} if values else None,
    }


def columns_of(tree):
    """The columns of the table that an estimator takes."""
    return columns_of(tree["steps"][0][1]) if tree["kind"] == "Pipeline" else tree["columns"]


def _numbers(tree, X):
    """The numbers of the rows of a table; other rows are numbers already."""
    if tree["columns"] is None:
        return X
    return [encoding.numbers(tree["columns"], row) for row in X]


def classes(tree):
    if tree["kind"] == "Pipeline":
        return classes(tree["steps"][-1][1])
    if tree["kind"] == "PatchVotingClassifier":
        return classes(tree["classifier"])
    return tree["classes"]["values"]


def probabilities(tree, arrays, X):
    if tree["kind"] == "PatchVotingClassifier":
        return [_vote(tree, arrays, row) for row in X]
    last = tree["steps"][-1][1] if tree["kind"] == "Pipeline" else tree
    return [model.probabilities(row, last["temperature"]) for row in scores(tree, arrays, X)]


def _vote(tree, arrays, row):
    image = _cut(row, tree["image_shape"])
    of_patches = scores(
        tree["classifier"], arrays, images.patches([image], *tree["patch_shape"]), "classifier."
    )
    if len(of_patches[0]) == 2:  # half the difference each
        of_patches = [[(a - b) / 2, (b - a) / 2] for a, b in of_patches]
    n = len(of_patches)
    means = [math.fsum(column) / n for column in zip(*of_patches, strict=True)]
    shares = model.probabilities(means, 1.0)
    if tree["vote"] == "sum":
        return shares
    winners = [scores.index(max(scores)) for scores in of_patches]
    return [(winners.count(k) + share) / (n + 1) for k, share in enumerate(shares)]


def mixing(patterns):
    """The inverse root of how alike patterns are to each other."""
    alike = [[math.exp(-8.0 * (1 - dot(a, b))) for b in patterns] for a in patterns]
    return np.linalg.inv(scipy.linalg.sqrtm(np.array(alike) + 1e-3 * np.eye(len(patterns))))


def _cut(row, shape):
    return [list(row[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0])]


def _pixels(tree, arrays, X, place):
    return images.pixel_rows(X)


def _fourier(tree, arrays, X, place):
    return images.fourier_rows(X, tree["params"]["root"])


def _deskewed(tree, arrays, X, place):
    upright = [images.deskewed(_cut(row, tree["image_shape"])) for row in X]
    return [[pixel for row in image for pixel in row] for image in upright]


def _gradients(tree, arrays, X, place):
    names = ("n_orientations", "blur", "stride", "sharpness")
    options = {name: tree["params"][name] for name in names}
    return [images.oriented_gradients(_cut(row, tree["image_shape"]), **options) for row in X]


def _patterns(tree, arrays, X, place):
    patterns = arrays[f"{place}patterns"].astype(float)
    return [images.edge_patterns(_cut(row, tree["image_shape"]), patterns) for row in X]


def _metric(tree, arrays, X, place):
    columns = arrays[f"{place}components"].T
    return [[dot(row, column) for column in columns] for row in X]


def _scaled(tree, arrays, X, place):
    d = tree["features"]["count"]
    means = arrays.get(f"{place}mean_", [0.0] * d)
    scales = arrays.get(f"{place}scale_", [1.0] * d)
    return [[(x - m) / s for x, m, s in zip(row, means, scales, strict=True)] for row in X]


_KERNELS = {
    "poly": kernels.polynomial,
    "rbf": kernels.gaussian,
    "laplacian": kernels.laplacian,
    "exponential_power": kernels.exponential_power,
}

_STEPS = {
    "PixelNormalizer": _pixels,
    "FourierFeatures": _fourier,
    "Deskewer": _deskewed,
    "OrientedGradients": _gradients,
    "EdgePatterns": _patterns,
    "AGOPProjection": _metric,
    "StandardScaler": _scaled,
}
