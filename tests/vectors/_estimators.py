"""The cases of whole estimators: fitted to a few small images, their arrays rounded."""

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel import (
    AGOPProjection,
    Deskewer,
    EdgePatterns,
    FourierFeatures,
    KMeansKernelClassifier,
    OrientedGradients,
    PatchVotingClassifier,
    PixelNormalizer,
)
from kmeans_kernel.export.model_file._estimators import describe
from kmeans_kernel.export.model_file._file import Place
from tests.reference import estimators as twin

_DECIMALS = 6


def _classifier(**options):
    """A classifier that leaves nothing to choose, so that the fit is the same everywhere."""
    given = {
        "kernel": "poly", "fit_on": "representatives", "regularization": 0.1, "lift": 0.0,
        "feature_scales": None, "feature_transform": None, "random_state": 0,
    }  # fmt: skip
    return KMeansKernelClassifier(2, **{**given, **options})


def _gaussian(**options):
    return _classifier(kernel="rbf", gamma=0.5, lift=1.0, **options)


def _voting(classifier, **options):
    return PatchVotingClassifier(classifier, (4, 5), image_shape=(5, 6), **options)


# Name: estimator, height and width of the images, labels.
_CASES = {
    "pixels": (make_pipeline(PixelNormalizer(), _classifier()), (5, 6), [3, 5]),
    "pixels and roots of magnitudes, even": (
        make_pipeline(FourierFeatures(), _classifier()), (4, 5), [0, 1]),
    "pixels and magnitudes, even": (
        make_pipeline(FourierFeatures(root=False), _classifier()), (4, 4), [0, 1]),
    "pixels and roots of magnitudes, odd": (
        make_pipeline(FourierFeatures(), _gaussian()), (3, 5), [0, 1, 2]),
    "upright": (make_pipeline(Deskewer((5, 6)), _classifier()), (5, 6), ["a", "b"]),
    "edges": (
        make_pipeline(OrientedGradients(4, blur=1.0, image_shape=(5, 6)), _classifier()),
        (5, 6), [0, 1]),
    "edges, finer": (
        make_pipeline(OrientedGradients(3, blur=0.7, stride=3, sharpness=2.5), _gaussian()),
        (6, 6), [0, 1]),
    "upright, patterns of edges": (
        make_pipeline(Deskewer((5, 6)), EdgePatterns(3, random_state=0, image_shape=(5, 6)),
                      _classifier()),
        (5, 6), [0, 1]),
    "metric": (
        make_pipeline(
            AGOPProjection(4, n_representatives=2, gamma=0.5, regularization=0.1, lift=1.0,
                          random_state=0),
            _gaussian()),
        (2, 4), [0, 1, 2]),
    "standard scales": (make_pipeline(StandardScaler(), _gaussian()), (2, 4), ["x", "y"]),
    "scales without mean": (
        make_pipeline(StandardScaler(with_mean=False), _gaussian()), (2, 4), [0, 1]),
    "means without scales": (
        make_pipeline(StandardScaler(with_std=False), _gaussian()), (2, 4), [0, 1]),
    "standard scales, laplacian": (
        make_pipeline(StandardScaler(), _classifier(kernel="laplacian", gamma=0.5, lift=1.0)),
        (2, 4), [True, False]),
    "votes by majority": (
        _voting(make_pipeline(PixelNormalizer(), _classifier())), (5, 6), [1, 4, 7]),
    "votes by sum": (
        _voting(make_pipeline(PixelNormalizer(), _gaussian()), vote="sum"), (5, 6), ["o", "p"]),
    "votes by majority, no pipeline": (_voting(_gaussian()), (5, 6), [0, 1, 2]),
    "standard scales, exponential power": (
        make_pipeline(
            StandardScaler(),
            _classifier(kernel="exponential_power", gamma=0.5, kernel_params={"exponent": 1.5},
                        lift=1.0)),
        (2, 4), ["x", "y"]),
}  # fmt: skip


def make():
    """Return all cases, with what is expected of them."""
    return [_case(k, name, *_CASES[name]) for k, name in enumerate(_CASES)]


def _case(seed, name, estimator, shape, labels):
    rng = np.random.default_rng(20 + seed)
    y = np.arange(12) % len(labels)
    X = _images(rng, y, shape).reshape(12, -1)
    rows = np.vstack([_images(rng, np.arange(3) % len(labels), shape).reshape(3, -1), X[:1] * 0])
    arrays = {}
    tree = describe(estimator.fit(X.astype(float), np.array(labels)[y]), Place("", arrays))
    arrays = {name: rounded(array) for name, array in arrays.items() if is_of_scores(name)}
    return {
        "name": name,
        "image_shape": list(shape),
        "tree": tree,
        "arrays": {name: plain(array) for name, array in arrays.items()},
        **_mixing(arrays),
        "rows": rows.tolist(),
        **expected(tree, arrays, rows.astype(float).tolist()),
    }


def _images(rng, y, shape):
    """Return images (n, height, width), a slanted stroke for each label.

    Pixels are whole, and so is their mean: the first Fourier magnitude is zero, and no rounding of
    it is made large by a root.
    """
    rows, columns = np.indices(shape)
    slants = 0.8 - 0.8 * y + rng.normal(scale=0.1, size=len(y))
    middles = shape[1] / 2 + rng.normal(scale=0.3, size=len(y))
    across = columns - middles[:, None, None] - slants[:, None, None] * (rows - shape[0] / 2)
    images = np.rint(9 * np.exp(-(across**2)) + rng.integers(0, 2, (len(y), *shape))).astype(int)
    for image in images:
        image.flat[: -image.sum() % image.size] += 1
    return images


def is_of_scores(name):
    """Whether scores depend on an array; others tell how sure they are."""
    return not name.endswith(("training_cosines", "held_out_probabilities", "held_out_codes",
                              "held_out_weights"))  # fmt: skip


def rounded(array):
    return array if array.dtype.kind == "i" else array.round(_DECIMALS)


def plain(array):
    """An array as JSON; numbers of float32 as short as they can be."""
    values = np.array([float(str(v)) for v in array.ravel()]).reshape(array.shape)
    values = array if array.dtype.kind == "i" else values
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": values.tolist()}


def _mixing(arrays):
    """What patterns are multiplied by last: not in the file, and no page can find it out."""
    found = [array for name, array in arrays.items() if name.endswith("patterns")]
    return {"mixing": twin.mixing(found[0].astype(float)).tolist()} if found else {}


def expected(tree, arrays, rows):
    probabilities = twin.probabilities(tree, arrays, rows)
    labels = [twin.classes(tree)[row.index(max(row))] for row in probabilities]
    features = twin.features(tree, arrays, rows)
    return {
        **({} if features is rows else {"features": [list(map(float, row)) for row in features]}),
        "labels": labels,
        "probabilities": probabilities,
    }
