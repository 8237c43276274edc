import numpy as np
import pytest
from scipy import sparse

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import SphereMap, learn_asinh
from tests.reference import asinh as twin
from tests.reference.sphere import unit_rows


def long_tails(rng, n=400):
    """Classes that are easy to tell apart by the logarithms of the features."""
    logarithms = rng.normal(size=(n, 4))
    y = (np.linalg.norm(logarithms[:, :3], axis=1) > 1.5).astype(int)
    return np.exp(2.5 * logarithms), y


@pytest.fixture
def columns(rng):
    return np.column_stack(
        [
            rng.normal(size=50),
            rng.standard_cauchy(50),
            rng.poisson(0.3, 50),  # mostly zero
            rng.integers(0, 2, 50),
            np.full(50, 7.0),
        ]
    )


def test_the_transform_equals_the_twin(columns, rng):
    weights = rng.integers(1, 4, 50)
    asinh = learn_asinh(columns, weights.astype(float), long_tails_only=False)
    found = asinh.apply(columns)
    expected = np.transpose([twin.learn_and_apply(column, weights) for column in columns.T])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    again = [twin.apply(row, asinh.centers, asinh.widths, asinh.gains) for row in columns]
    np.testing.assert_allclose(found, again, rtol=1e-12, atol=1e-12)


def test_long_tails_are_those_of_the_twin(columns, rng):
    weights = rng.integers(1, 4, 50)
    for column in columns.T:
        found = learn_asinh(column[:, None], weights.astype(float), long_tails_only=True)
        assert (found is not None) == twin.has_long_tail(column, weights)
    assert twin.has_long_tail(columns[:, 1], weights)
    assert not twin.has_long_tail(columns[:, 0], weights)


def test_the_transform_keeps_order_and_can_be_inverted(rng):
    X = np.sort(rng.standard_cauchy((200, 2)), axis=0)
    asinh = learn_asinh(X, np.ones(200), long_tails_only=False)
    transformed = asinh.apply(X)
    assert (np.diff(transformed, axis=0) > 0).all()
    np.testing.assert_allclose(asinh.invert(transformed), X, rtol=1e-9, atol=1e-12)
    assert asinh.apply(X.astype(np.float32)).dtype == np.float32
    assert asinh.apply(np.ones((1, 2), dtype=np.int32)).dtype == np.float64


@pytest.mark.filterwarnings("error")
def test_finite_values_stay_finite(rng):
    X = rng.normal(size=(20, 2))
    asinh = learn_asinh(X, np.ones(20), long_tails_only=False)
    far = asinh.apply(np.array([[1.7e308, -1.7e308], [0.0, 5e-324]]))
    assert np.isfinite(far).all()
    assert np.isfinite(asinh.invert(far)).all()


def test_labelled_rows_are_transformed_on_the_way_to_the_sphere(rng):
    X = rng.integers(0, 9, (30, 3))
    asinh = learn_asinh(X, np.ones(30), long_tails_only=False)
    sphere_map = SphereMap(0.5, asinh=asinh)
    rows = LabelledRows(X, np.zeros(30, dtype=int), np.arange(1), None, sphere_map)
    assert rows.X is X  # nothing is transformed before it is asked for
    transformed = rows.sphere_map.transform(rows.X[[3, 1]])
    assert transformed.shape == (2, 3)
    assert transformed.dtype == np.float64
    np.testing.assert_array_equal(transformed, asinh.apply(X[[3, 1]]))
    expected = unit_rows(asinh.apply(X[[3, 1]]), 0.5)
    np.testing.assert_allclose(rows.directions([3, 1]), expected, rtol=1e-12)
    np.testing.assert_allclose(sphere_map.invert(rows.directions()), X, atol=1e-9)


def test_long_tails_are_transformed_if_that_lowers_the_error(rng):
    X, y = long_tails(rng)
    found = KMeansKernelClassifier(20, random_state=0).fit(X, y)
    plain = KMeansKernelClassifier(20, random_state=0, feature_transform=None).fit(X, y)
    assert found.feature_transform_ == "asinh"
    assert plain.feature_transform_ is None
    assert found.held_out_error_ < 0.8 * plain.held_out_error_
    fresh, labels = long_tails(rng)
    assert found.score(fresh, labels) > plain.score(fresh, labels)
    # the representatives are points among the rows
    inside = (found.representatives_ >= 0) & (found.representatives_ <= 1.01 * X.max(axis=0))
    assert inside.mean() > 0.95


def test_features_without_long_tails_are_transformed_only_on_request(rng):
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    found = KMeansKernelClassifier(10, random_state=0).fit(X, y)
    assert found.feature_transform_ is None
    found = KMeansKernelClassifier(10, random_state=0, feature_transform="asinh").fit(X, y)
    assert found.feature_transform_ == "asinh"


def test_the_transform_is_not_tried_if_nothing_else_is_searched(rng):
    X, y = long_tails(rng)
    given = {"gamma": 1.0, "regularization": 1e-3, "feature_scales": None}
    found = KMeansKernelClassifier(10, random_state=0, **given).fit(X, y)
    assert found.feature_transform_ is None
    assert "search" not in found.stage_seconds_


def test_contributions_add_up_to_the_score(rng):
    X, y = long_tails(rng)
    found = KMeansKernelClassifier(10, random_state=0, feature_transform="asinh").fit(X, y)
    explanation = found.explain(X[:20], np.ones(20, dtype=int))
    sums = explanation.contributions.sum(axis=1) + found.intercept_[1]
    np.testing.assert_allclose(sums, found.model_.scores(X[:20])[:, 1], atol=1e-6)


def test_the_size_search_works_on_transformed_rows(rng):
    X, y = long_tails(rng)
    found, plain = (
        KMeansKernelClassifier(
            "auto", random_state=0, loss="squared", feature_transform=transform
        ).fit(X, y)
        for transform in ("auto", None)
    )
    assert found.feature_transform_ == "asinh"
    loss, plain_loss = (one.validation_curve_[-1].held_out_loss for one in (found, plain))
    assert loss < 0.9 * plain_loss


def test_sparse_rows_are_not_transformed_but_can_be_predicted(rng):
    X, y = long_tails(rng)
    options = {"gamma": 1.0, "regularization": 1e-3, "random_state": 0}
    options["feature_transform"] = "asinh"
    on_sparse = KMeansKernelClassifier(10, **options).fit(sparse.csr_array(X), y)
    assert on_sparse.feature_transform_ is None
    found = KMeansKernelClassifier(10, **options).fit(X, y)
    np.testing.assert_allclose(
        found.decision_function(sparse.csr_array(X)), found.decision_function(X), atol=1e-9
    )
