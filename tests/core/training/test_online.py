import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

from kmeans_kernel import KMeansKernelClassifier, load_model, save_model
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.kernels.kernels import Gaussian
from kmeans_kernel.core.training.online import OnlineModel
from tests.reference import online as twin

GIVEN = {"gamma": 1.0, "regularization": 1e-3, "lift": 1.0, "feature_scales": None}


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(1200, 6, centers=12, random_state=0)
    return X, y % 3


def batches(X, y, size=100):
    return [(X[a : a + size], y[a : a + size]) for a in range(0, len(X), size)]


def run(X, y, size=100, **options):
    found = KMeansKernelClassifier(8, random_state=0, **{**GIVEN, **options})
    for batch in batches(X, y, size):
        found.partial_fit(*batch, classes=[0, 1, 2])
    return found


def test_the_fit_weights_representatives_by_their_counts(rng):
    X, codes = rng.normal(size=(90, 3)), np.arange(90) % 3
    sphere_map, kernel = SphereMap(1.0), Gaussian(0.7)
    batch = LabelledRows(X, codes, np.arange(3))
    online = OnlineModel.empty(batch, kernel, 0.1, sphere_map).update(batch, 5)
    fit = online.fit()
    assert fit.online
    assert (fit.regularization, fit.n_representatives) == (0.1, 5)
    U = fit.model.directions
    counts = fit.model.representative_counts
    assert len(np.unique(counts)) > 1
    a, b = twin.weighted_lssvm(
        np.exp(-2 * 0.7 * (1 - U @ U.T)),
        np.eye(3)[fit.model.representative_classes],
        0.1 * counts.mean() / counts,
    )
    np.testing.assert_allclose(fit.model.dual_coef, a, atol=1e-8)
    np.testing.assert_allclose(fit.model.intercept, b, atol=1e-8)


def test_online_training_is_nearly_as_good_as_a_fit(data):
    X, y = data
    found = run(X, y)
    assert found.online_
    whole = KMeansKernelClassifier(8, random_state=0, fit_on="representatives", **GIVEN).fit(X, y)
    assert found.score(X, y) > whole.score(X, y) - 0.02
    assert found.representative_counts_.sum() == len(X)
    assert found.representatives_.shape == (24, 6)


def test_weights_count_as_rows(data):
    X, y = data
    weights = np.arange(len(X)) % 3
    found = KMeansKernelClassifier(8, **GIVEN).partial_fit(X, y, sample_weight=weights)
    assert found.representative_counts_.sum() == weights.sum()


def test_open_hyperparameters_are_chosen_with_the_first_batch(data):
    X, y = data
    found = KMeansKernelClassifier(8, random_state=0).partial_fit(X[:300], y[:300])
    gamma, regularization = found.gamma_, found.regularization_
    assert found.held_out_error_ < 0.1
    found.partial_fit(X[300:], y[300:])
    assert (found.gamma_, found.regularization_) == (gamma, regularization)
    assert found.score(X, y) > 0.95


def test_the_model_is_fitted_on_demand(data, monkeypatch):
    X, y = data
    calls = []
    fit = OnlineModel.fit
    monkeypatch.setattr(OnlineModel, "fit", lambda *given: calls.append(1) or fit(*given))
    found = run(X, y)
    assert not calls
    found.predict(X[:5])
    found.predict_proba(X[:5])
    assert len(calls) == 1
    found.partial_fit(X[:5], y[:5]).predict(X[:5])
    assert len(calls) == 2


@pytest.mark.parametrize("fit_on", ["samples", "representatives"])
def test_online_training_goes_on_from_a_fit_and_a_fit_starts_anew(data, fit_on, tmp_path):
    X, y = data
    found = run(X, y, fit_on=fit_on).fit(X[:600], y[:600])
    before = found.predict(X)
    save_model(found, tmp_path / "fit.model")
    found = load_model(tmp_path / "fit.model").partial_fit(X[600:605], y[600:605])
    assert found.representative_counts_.sum() == 605
    assert np.mean(found.predict(X) != before) < 0.02
    save_model(found, tmp_path / "online.model")
    found = load_model(tmp_path / "online.model")
    regularization = found.regularization_
    found.partial_fit(X[605:], y[605:])
    assert found.regularization_ == regularization
    assert found.representative_counts_.sum() == len(X)
    assert found.score(X, y) > 0.9
    assert found.fit(X[:50], y[:50]).representative_counts_.sum() == 50


@pytest.mark.parametrize("options", [{}, {"feature_transform": "standard"}])
def test_tables_are_standardised_by_the_first_batch(data, options):
    X, y = data
    found, moved = run(X, y, **options), run(1000 * X + 1e7, y, **options)
    assert found.feature_transform_ == "standard"
    transform = found.model_.sphere_map.feature_transform
    np.testing.assert_allclose(transform.centers, X[:100].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(transform.widths, X[:100].std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        moved.predict_proba(1000 * X + 1e7), found.predict_proba(X), atol=1e-6
    )


def test_rows_that_are_no_table_are_not_standardised(data, rng):
    X, y = data
    wide = np.hstack([X, rng.normal(size=(len(X), 95))])
    for rows, options in (
        (wide, {}),
        (sparse.csr_array(X), {"feature_transform": "standard"}),
        (X, {"feature_transform": None}),
    ):
        found = KMeansKernelClassifier(8, random_state=0, **GIVEN, **options)
        assert found.partial_fit(rows, y).feature_transform_ is None


@pytest.mark.parametrize(
    "options", [{"feature_transform": "asinh"}, {"feature_scales": "learned"}], ids=str
)
def test_online_training_goes_on_with_the_features_of_a_fit(data, options):
    X, y = data
    found = KMeansKernelClassifier(8, random_state=0, **{**GIVEN, **options}).fit(X[:600], y[:600])
    before = found.model_.sphere_map
    found.partial_fit(X[600:], y[600:])
    assert found.model_.sphere_map is before
    assert found.score(X, y) > 0.9


def test_a_refused_batch_leaves_the_model_as_it_was(data):
    X, y = data
    found = KMeansKernelClassifier(8, **GIVEN).fit(X, y)
    before = found.predict(X)
    with pytest.raises(ValueError, match="not among the classes"):
        found.partial_fit(X, y + 1)
    np.testing.assert_array_equal(found.predict(X), before)


def test_equal_rows_take_one_representative(data):
    X, y = data
    first = np.concatenate([np.repeat(np.flatnonzero(y == k)[:1], 30) for k in range(3)])
    # three rows are too few to standardise by
    found = KMeansKernelClassifier(8, feature_transform=None, **GIVEN)
    found.partial_fit(X[first], y[first]).partial_fit(X, y)
    assert found.score(X, y) > 0.9
    assert np.sort(found.representative_counts_)[3:].min() > 1


def test_a_class_may_come_late(data, tmp_path):
    X, y = data
    early = y < 2
    found = KMeansKernelClassifier(8, **GIVEN).partial_fit(X[early], y[early], classes=[0, 1, 2])
    assert not (found.predict(X[early]) == 2).any()
    save_model(found, tmp_path / "early.model")
    loaded = load_model(tmp_path / "early.model")
    np.testing.assert_array_equal(loaded.predict(X), found.predict(X))
    found.partial_fit(X[~early], y[~early])
    assert found.score(X, y) > 0.9


def test_memory_does_not_grow(data):
    X, y = data
    found = run(X, y)
    sizes = [one.sums.nbytes for one in found._online.centroids]
    for batch in batches(X, y):
        found.partial_fit(*batch)
    assert [one.sums.nbytes for one in found._online.centroids] == sizes


@pytest.mark.parametrize(
    ("options", "call", "message"),
    [
        ({}, {"classes": [0, 1]}, "label 2, which is not among the classes \\[0, 1\\]"),
        ({"n_representatives": "auto"}, {}, "n_representatives must be a number"),
        ({"class_weight": "balanced"}, {}, "class_weight a dict or None"),
        ({"boundary_fraction": 0.5}, {}, "boundary_fraction 0"),
        ({"loss": "logistic"}, {}, "loss must not be 'logistic'"),
        ({"feature_transform": "asinh"}, {}, "feature_transform not 'asinh'"),
    ],
)
def test_parameters_unfit_for_online_training_are_refused(data, options, call, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        KMeansKernelClassifier(**{"n_representatives": 8, **GIVEN, **options}).partial_fit(
            X, y, **call
        )


def test_batches_unlike_the_first_are_refused(data):
    X, y = data
    found = run(X, y)
    with pytest.raises(ValueError, match="5 features"):
        found.partial_fit(X[:, :5], y)
    with pytest.raises(ValueError, match="not those of the first call"):
        found.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="Name all that will come"):
        found.partial_fit(X, y + 5)
    with pytest.raises(ValueError, match="first batch has one"):
        KMeansKernelClassifier(8, **GIVEN).partial_fit(X[:5], np.zeros(5))
    with pytest.raises(ValueError, match="rows of several classes"):
        KMeansKernelClassifier(8).partial_fit(X[y == 0], y[y == 0], classes=[0, 1, 2])
    assert found.score(X, y) > 0.95  # nothing was lost
