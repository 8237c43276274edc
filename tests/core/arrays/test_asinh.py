import numpy as np
import pytest
from scipy import sparse

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.asinh import Squash, SquashedRows
from tests.reference import squash as twin


def long_tails(rng, n=400):
    """Classes that are easy to tell apart by the logarithms of the features."""
    logarithms = rng.normal(size=(n, 4))
    y = (np.linalg.norm(logarithms[:, :3], axis=1) > 1.5).astype(int)
    return np.exp(2.5 * logarithms), y


def test_the_squash_equals_that_of_one_number_after_another(rng):
    X = np.column_stack(
        [
            rng.normal(size=50),
            rng.standard_cauchy(50),
            rng.poisson(0.3, 50),  # mostly zero
            rng.integers(0, 2, 50),
            np.full(50, 7.0),
        ]
    )
    weights = rng.integers(1, 4, 50)
    found = Squash.of(X, weights.astype(float)).apply(X)
    expected = np.transpose([twin.squash(column, weights) for column in X.T.tolist()])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_it_keeps_order_and_is_undone(rng):
    X = np.sort(rng.standard_cauchy((200, 2)), axis=0)
    squash = Squash.of(X, np.ones(200))
    squashed = squash.apply(X)
    assert (np.diff(squashed, axis=0) > 0).all()
    np.testing.assert_allclose(squash.undo(squashed), X, rtol=1e-9, atol=1e-12)
    assert squash.apply(X.astype(np.float32)).dtype == np.float32
    assert squash.apply(np.ones((1, 2), dtype=np.int32)).dtype == np.float64


@pytest.mark.filterwarnings("error")
def test_whatever_is_finite_stays_so(rng):
    X = rng.normal(size=(20, 2))
    squash = Squash.of(X, np.ones(20))
    far = squash.apply(np.array([[1.7e308, -1.7e308], [0.0, 5e-324]]))
    assert np.isfinite(far).all()
    assert np.isfinite(squash.undo(far)).all()


def test_rows_are_squashed_when_asked_for(rng):
    X = rng.integers(0, 9, (30, 3))
    squash = Squash.of(X, np.ones(30))
    rows = SquashedRows(X, squash)
    assert rows.shape == X.shape
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows[[3, 1]], squash.apply(X[[3, 1]]))


def test_long_tails_are_squashed_where_that_helps(rng):
    X, y = long_tails(rng)
    found = KMeansKernelClassifier(20, random_state=0).fit(X, y)
    plain = KMeansKernelClassifier(20, random_state=0, squash=None).fit(X, y)
    assert found.squashed_
    assert not plain.squashed_
    assert found.held_out_error_ < 0.8 * plain.held_out_error_
    fresh, labels = long_tails(rng)
    assert found.score(fresh, labels) > plain.score(fresh, labels)
    # the representatives are points among the rows
    inside = (found.representatives_ >= 0) & (found.representatives_ <= 1.01 * X.max(axis=0))
    assert inside.mean() > 0.95


def test_what_has_no_long_tails_is_left_alone(rng):
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    assert not KMeansKernelClassifier(10, random_state=0).fit(X, y).squashed_
    assert KMeansKernelClassifier(10, random_state=0, squash="learned").fit(X, y).squashed_


def test_nothing_is_tried_if_all_is_given(rng):
    X, y = long_tails(rng)
    given = {"gamma": 1.0, "regularization": 1e-3, "feature_scales": None}
    found = KMeansKernelClassifier(10, random_state=0, **given).fit(X, y)
    assert not found.squashed_
    assert "choice" not in found.stage_seconds_


def test_contributions_add_up_to_the_score(rng):
    X, y = long_tails(rng)
    found = KMeansKernelClassifier(10, random_state=0, squash="learned").fit(X, y)
    explanation = found.explain(X[:20], np.ones(20, dtype=int))
    sums = explanation.contributions.sum(axis=1) + found.intercept_[1]
    np.testing.assert_allclose(sums, found.model_.scores(X[:20])[:, 1], atol=1e-6)


def test_a_number_of_representatives_is_found_for_squashed_rows(rng):
    X, y = long_tails(rng)
    found, plain = (
        KMeansKernelClassifier("auto", random_state=0, loss="squared", squash=squash).fit(X, y)
        for squash in ("auto", None)
    )
    assert found.squashed_
    assert found.growth_[-1].held_out_loss < 0.9 * plain.growth_[-1].held_out_loss


def test_sparse_rows_are_not_squashed_and_a_squashed_model_takes_them(rng):
    X, y = long_tails(rng)
    asked = {"gamma": 1.0, "regularization": 1e-3, "random_state": 0, "squash": "learned"}
    assert not KMeansKernelClassifier(10, **asked).fit(sparse.csr_array(X), y).squashed_
    found = KMeansKernelClassifier(10, **asked).fit(X, y)
    np.testing.assert_allclose(
        found.decision_function(sparse.csr_array(X)), found.decision_function(X), atol=1e-9
    )
