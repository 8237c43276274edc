import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons

from kmeans_kernel import KMeansKernelClassifier, PixelNormalizer
from kmeans_kernel.core.arrays.executor import ALONE
from kmeans_kernel.core.arrays.samples import Labelled, Placement
from kmeans_kernel.core.clustering.representatives import KMeans, Unwatched, represent
from kmeans_kernel.core.kernels.kernels import Gaussian
from kmeans_kernel.core.training.boundary import add_border, split
from kmeans_kernel.core.model.fitted_model import margins
from kmeans_kernel.cli.verbs.fit import fit
from kmeans_kernel.utils.threads import Threads
from tests.reference import border as twin

KMEANS = KMeans(6, "random", 1e-6, 300)
GIVEN = {"gamma": 2.0, "regularization": 1e-4, "feature_scales": None, "random_state": 0}


@pytest.fixture(params=["dense", "sparse"])
def data(request, rng):
    codes = np.repeat([0, 1, 2], [40, 30, 4])
    X = np.eye(3, 5)[codes] + 0.7 * rng.normal(size=(74, 5))
    X = sp.csr_array(X) if request.param == "sparse" else X
    return Labelled(X, codes, np.arange(3), rng.integers(1, 4, 74).astype(float))


@pytest.mark.parametrize("workers", [ALONE, Threads(2)], ids=["alone", "threads"])
def test_the_hardest_rows_are_added(data, workers):
    placement = Placement(1.0)
    rngs = [np.random.default_rng(k) for k in range(3)]
    basis = represent(data, KMEANS, placement, rngs, Unwatched())
    model = fit(data, placement, basis, Gaussian(1.0), 1e-3, "samples").model
    found_margins = margins(model, data, workers)
    expected = [
        twin.margin(scores, code)
        for scores, code in zip(model.scores(data.X), data.codes, strict=True)
    ]
    np.testing.assert_allclose(found_margins, expected, atol=1e-6)

    U = np.asarray(placement.put(data.X, np.float64) @ np.eye(6))
    rows = twin.hardest(expected, data.codes, U, basis.directions, basis.owners, 20)
    found = add_border(basis, model, data, placement, 20, workers)
    wanted = np.concatenate([basis.directions, U[rows]])
    owners = np.concatenate([basis.owners, data.codes[rows]])
    order = np.argsort(owners, kind="stable")
    np.testing.assert_allclose(found.directions, wanted[order], atol=1e-6)
    np.testing.assert_array_equal(found.owners, owners[order])
    # the class of four rows is its own representatives already
    assert (found.owners == 2).sum() == 4
    np.testing.assert_allclose(
        found.counts, twin.counts(U, data.codes, data.weights, wanted[order], owners[order])
    )
    assert found.counts.sum() == data.weights.sum()


def test_no_more_rows_are_added_than_there_are(data):
    placement = Placement(1.0)
    rngs = [np.random.default_rng(k) for k in range(3)]
    basis = represent(data, KMEANS, placement, rngs, Unwatched())
    model = fit(data, placement, basis, Gaussian(1.0), 1e-3, "samples").model
    found = add_border(basis, model, data, placement, 1000)
    assert len(found.directions) <= 6 + 6 + 74
    assert len(np.unique(found.directions.round(9), axis=0)) == len(found.directions)


def test_representatives_are_shared_between_centroids_and_border(data):
    assert split(data, KMEANS, 0.0) == (KMEANS, 0)
    fewer, rows = split(data, KMEANS, 0.5)
    assert fewer.n_representatives == 3
    assert rows == (6 - 3) + (6 - 3) + (4 - 3)
    assert split(data, KMEANS, 0.95)[0].n_representatives == 1
    everything = KMeans(40, "random", 1e-6, 300)
    assert split(data, everything, 0.5) == (everything, 0)


@pytest.mark.mnist
@pytest.mark.parametrize(
    ("options", "share"),
    [({"fit_on": "representatives"}, 0.85), ({"fit_on": "samples", "regularization": 1e-6}, 0.97)],
    ids=["representatives", "samples"],
)
def test_the_border_lowers_the_error(options, share, mnist):
    pixels = PixelNormalizer().fit_transform(mnist.X_train[:16_000])
    X, y = pixels[:6000], mnist.y_train[:6000]
    errors = {}
    for border in (0.0, 0.3):
        model = KMeansKernelClassifier(200, border=border, lift=0.0, **{**GIVEN, **options})
        errors[border] = 1 - model.fit(X, y).score(pixels[6000:], mnist.y_train[6000:16_000])
        assert len(model.representatives_) == 2000
        assert model.representative_counts_.sum() == 6000
        assert (np.diff(model.representative_classes_.astype(int)) >= 0).all()
        assert ("border" in model.stage_seconds_) == (border > 0)
    assert errors[0.3] < share * errors[0.0]


@pytest.mark.parametrize("border", [-0.1, 1.0, "half", None, True])
def test_a_bad_share_is_told(border):
    X, y = make_moons(50, random_state=0)
    with pytest.raises(ValueError, match="border"):
        KMeansKernelClassifier(border=border).fit(X, y)


def test_probabilities_stay_calibrated():
    """Rows that are their own representatives would say what they are too well."""
    X, y = make_moons(3000, noise=0.3, random_state=0)
    losses = []
    for border in (0.0, 0.7):
        model = KMeansKernelClassifier(200, border=border, loss="squared", **GIVEN)
        proba = model.fit(X[:1500], y[:1500]).predict_proba(X[1500:])
        losses.append(-np.log(proba[np.arange(1500), y[1500:]]).mean())
    assert losses[1] < losses[0] + 0.03
