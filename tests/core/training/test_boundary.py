from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons

from kmeans_kernel import KMeansKernelClassifier, PixelNormalizer
from kmeans_kernel.core.arrays.execution import SERIAL, Run
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.clustering.representatives import represent
from kmeans_kernel.core.kernels.kernels import Gaussian
from kmeans_kernel.core.training.boundary import (
    add_boundary_rows,
    is_represented,
    nearest_counts,
    own_margins,
    share_with_boundary,
)
from kmeans_kernel.core.training.fit import fit_coefficients
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.core.training.configs import OPEN
from tests.reference import boundary as twin

CONFIG = replace(OPEN, n_representatives=6)
GIVEN = {"gamma": 2.0, "regularization": 1e-4, "feature_scales": None, "random_state": 0}


@pytest.fixture(params=["dense", "sparse"])
def rows(request, rng):
    codes = np.repeat([0, 1, 2], [40, 30, 4])
    X = np.eye(3, 5)[codes] + 0.7 * rng.normal(size=(74, 5))
    X = sp.csr_array(X) if request.param == "sparse" else X
    weights = rng.integers(1, 4, 74).astype(float)
    return LabelledRows(X, codes, np.arange(3), weights, SphereMap(1.0))


@pytest.fixture
def basis(rows):
    rngs = [np.random.default_rng(k) for k in range(3)]
    return represent(rows, CONFIG, rngs, Run())


@pytest.fixture
def model(rows, basis):
    return fit_coefficients(rows, basis, Gaussian(1.0), 1e-3, "samples", "squared", Run())[0]


@pytest.fixture
def unit(rows):
    """The rows on the sphere, dense."""
    return np.asarray(rows.directions() @ np.eye(6))


EXECUTORS = {"serial": SERIAL, "threads": ThreadExecutor(2)}


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS.keys())
def test_the_rows_of_smallest_margin_are_added(rows, basis, model, unit, executor):
    found_margins = own_margins(model, rows, executor)
    expected = [
        twin.own_margin(scores, code)
        for scores, code in zip(model.scores(rows.X), rows.codes, strict=True)
    ]
    np.testing.assert_allclose(found_margins, expected, atol=1e-6)

    taken = twin.boundary_rows(expected, rows.codes, unit, basis.directions, basis.codes, 20)
    found = add_boundary_rows(basis, model, rows, 20, executor)
    wanted = np.concatenate([basis.directions, unit[taken]])
    codes = np.concatenate([basis.codes, rows.codes[taken]])
    order = np.argsort(codes, kind="stable")
    np.testing.assert_allclose(found.directions, wanted[order], atol=1e-6)
    np.testing.assert_array_equal(found.codes, codes[order])
    # the class of four rows is its own representatives already
    assert (found.codes == 2).sum() == 4
    counts = twin.nearest_counts(unit, rows.codes, rows.weights, wanted[order], codes[order])
    np.testing.assert_allclose(found.counts, counts)
    np.testing.assert_allclose(nearest_counts(found, rows, executor), counts)
    assert found.counts.sum() == rows.weights.sum()


def test_represented_rows_are_those_of_the_twin(rows, basis, model, unit):
    some = np.arange(74)[::-3]
    for joined in (basis, add_boundary_rows(basis, model, rows, 20)):
        expected = [
            twin.is_represented(unit[i], rows.codes[i], joined.directions, joined.codes)
            for i in some
        ]
        np.testing.assert_array_equal(is_represented(joined, rows, some), expected)
        assert 0 < sum(expected) < len(some)


def test_no_more_rows_are_added_than_there_are(rows, basis, model):
    found = add_boundary_rows(basis, model, rows, 1000)
    assert len(found.directions) <= 6 + 6 + 74
    assert len(np.unique(found.directions.round(9), axis=0)) == len(found.directions)


def test_centroids_and_boundary_rows_share_the_representatives(rows):
    assert share_with_boundary(rows, CONFIG) == (CONFIG, 0)
    half = replace(CONFIG, boundary_fraction=0.5)
    fewer, n_rows = share_with_boundary(rows, half)
    assert fewer == replace(half, n_representatives=3)
    assert n_rows == (6 - 3) + (6 - 3) + (4 - 3)
    most = replace(CONFIG, boundary_fraction=0.95)
    assert share_with_boundary(rows, most)[0].n_representatives == 1
    everything = replace(half, n_representatives=40)
    assert share_with_boundary(rows, everything) == (everything, 0)


@pytest.mark.mnist
@pytest.mark.parametrize(
    ("options", "share"),
    [({"fit_on": "representatives"}, 0.85), ({"fit_on": "samples", "regularization": 1e-6}, 0.97)],
    ids=["representatives", "samples"],
)
def test_boundary_rows_lower_the_error(options, share, mnist):
    pixels = PixelNormalizer().fit_transform(mnist.X_train[:16_000])
    X, y = pixels[:6000], mnist.y_train[:6000]
    errors = {}
    for fraction in (0.0, 0.3):
        model = KMeansKernelClassifier(
            200, boundary_fraction=fraction, lift=0.0, **{**GIVEN, **options}
        )
        errors[fraction] = 1 - model.fit(X, y).score(pixels[6000:], mnist.y_train[6000:16_000])
        assert len(model.representatives_) == 2000
        assert model.representative_counts_.sum() == 6000
        assert (np.diff(model.representative_classes_.astype(int)) >= 0).all()
        assert ("boundary" in model.stage_seconds_) == (fraction > 0)
    assert errors[0.3] < share * errors[0.0]


@pytest.mark.parametrize("fraction", [-0.1, 1.0, "half", None, True])
def test_a_bad_fraction_is_refused(fraction):
    X, y = make_moons(50, random_state=0)
    with pytest.raises(ValueError, match="boundary_fraction"):
        KMeansKernelClassifier(boundary_fraction=fraction).fit(X, y)


def test_probabilities_stay_calibrated():
    """Rows that are their own representatives would be predicted too well."""
    X, y = make_moons(3000, noise=0.3, random_state=0)
    losses = []
    for fraction in (0.0, 0.7):
        model = KMeansKernelClassifier(200, boundary_fraction=fraction, loss="squared", **GIVEN)
        proba = model.fit(X[:1500], y[:1500]).predict_proba(X[1500:])
        losses.append(-np.log(proba[np.arange(1500), y[1500:]]).mean())
    assert losses[1] < losses[0] + 0.03
