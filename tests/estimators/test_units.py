"""Units and offsets of features: predictions on a table do not depend on them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel import KMeansKernelClassifier


@pytest.fixture(scope="module")
def iris():
    """Training rows and test rows: every third."""
    X, y = load_iris(return_X_y=True)
    test = np.arange(len(X)) % 3 == 0
    return X[~test], y[~test], X[test], y[test]


@pytest.fixture(scope="module")
def table():
    """A table without equal rows and without long tails, where nothing is near a tie."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 4)) + 3 * np.eye(4)[np.arange(150) % 3]
    return X, np.arange(150) % 3


def fit(X, y, **options):
    return KMeansKernelClassifier(10, random_state=0, **options).fit(X, y)


def assert_labels_do_not_depend_on_batches(model, X):
    one_by_one = np.concatenate([model.predict(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_array_equal(one_by_one, model.predict(X))


# Shift of all columns, the precision of the rows, and how much of the score rounding may cost: one
# row of 50. Float32 resolves 1/128 at 1e5, and the columns of iris have one decimal.
@pytest.mark.parametrize(
    ("shift", "dtype"),
    [
        (1e5, np.float32),
        (1e6, np.float64),
        (1e8, np.float64),
        (1e9, np.float64),
        (-1e9, np.float64),
    ],
)
def test_shifted_rows_are_classified_as_well(shift, dtype, iris):
    X, y, fresh, labels = iris
    plain = fit(X, y).score(fresh, labels)
    model = fit((X + shift).astype(dtype), y)
    moved = (fresh + shift).astype(dtype)
    assert model.feature_transform_ == "standard"
    assert model.score(moved, labels) >= plain - 0.021
    assert plain > 0.9
    assert_labels_do_not_depend_on_batches(model, moved)


def seconds(X, rng):
    """A column of Unix seconds of one day, which says nothing of the class."""
    return np.column_stack([X, 1.7e9 + rng.integers(0, 86_400, len(X))])


def metres(X, rng):
    """Two columns in metres, of an origin thousands of kilometres away."""
    del rng
    return np.column_stack([5e6 + X[:, 0], 5e6 + X[:, 1], X[:, 2:]])


def large_integers(X, rng):
    """Two columns of integers near a million, tenths of a millimetre as units."""
    del rng
    return np.column_stack([np.rint(1_000_000 + 10 * X[:, 2:]), X[:, :2]])


@pytest.mark.parametrize("given", [seconds, metres, large_integers])
def test_columns_far_from_zero_do_no_harm(given, iris):
    X, y, fresh, labels = iris
    rng = np.random.default_rng(0)
    moved, fresh_moved = given(X, rng), given(fresh, rng)
    model = fit(moved, y)
    # The same columns near zero: a column of noise costs the same there.
    origin = np.rint(moved.mean(axis=0))
    near = fit(moved - origin, y).score(fresh_moved - origin, labels)
    assert model.score(fresh_moved, labels) >= near - 0.021
    assert near > 0.9
    assert_labels_do_not_depend_on_batches(model, fresh_moved)


@pytest.mark.parametrize("options", [{}, {"feature_transform": "standard", "loss": "squared"}])
@pytest.mark.parametrize(("factor", "shift"), [(1000.0, 0.0), (1.0, 1e4), (-1.0, 0.0)])
def test_unit_and_offset_of_a_column_change_no_prediction(factor, shift, options, table):
    X, y = table
    moved = X.copy()
    moved[:, 1] = factor * X[:, 1] + shift
    before, after = fit(X, y, **options), fit(moved, y, **options)
    assert after.gamma_ == before.gamma_
    np.testing.assert_array_equal(after.predict(moved), before.predict(X))
    np.testing.assert_allclose(after.predict_proba(moved), before.predict_proba(X), atol=1e-6)


def test_unit_of_a_column_changes_no_prediction_where_rows_are_equal(iris):
    """Equal rows are merged; their order and so the folds do not depend on the unit."""
    X, y, fresh, _ = iris
    X, y = np.vstack([X, X[::4]]), np.concatenate([y, y[::4]])
    scales = np.array([1000.0, 1.0, 0.5, 1.0])
    before, after = fit(X, y), fit(scales * X, y)
    np.testing.assert_array_equal(after.predict(scales * fresh), before.predict(fresh))
    np.testing.assert_allclose(
        after.predict_proba(scales * fresh), before.predict_proba(fresh), atol=1e-6
    )


@pytest.mark.parametrize("seed", range(12))
def test_columns_of_extremely_long_tails_can_be_fitted(seed):
    """Standardised they are one cluster and a few rows far away: kernels are all but singular."""
    rng = np.random.default_rng(seed)
    X, y = rng.lognormal(sigma=4, size=(200, 2)), rng.integers(0, 3, 200)
    model = KMeansKernelClassifier(20, random_state=0)
    assert np.isfinite(model.fit(X, y).predict_proba(X)).all()
    scaled = make_pipeline(StandardScaler(), KMeansKernelClassifier(20, random_state=0))
    assert np.isfinite(scaled.fit(X, y).predict_proba(X)).all()


def test_logistic_regression_without_regularization_ends():
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 5, axis=0)
    y = np.arange(10) % 2
    model = fit(X, y, loss="logistic", regularization=0.0)
    assert np.isfinite(model.predict_proba(X)).all()
    model = fit(X, y, loss="logistic", regularization=0.0, gamma=1.0, feature_scales=None)
    np.testing.assert_allclose(model.predict_proba(X[[0, 5]]), [[0.6, 0.4], [0.4, 0.6]], atol=0.01)


def test_a_table_of_few_distinct_rows_keeps_all_of_them():
    """Equal rows are merged; the representatives are a share of the rows before that."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(600, 4)).astype(float)
    y = (rng.random(600) < rng.random(16)[(X @ (2 ** np.arange(4))).astype(int)]).astype(int)
    found = KMeansKernelClassifier(random_state=0).fit(X, y)
    assert len(found.dual_coef_) == len(np.unique(np.column_stack([X, y]), axis=0))


@pytest.mark.parametrize("n", [700, 1500])
@pytest.mark.parametrize("seed", range(4))
def test_the_search_chooses_the_same_in_another_unit(n, seed):
    """Trials with wide kernels amplify the last bits of a feature: no candidate wins by them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), np.exp(rng.normal(size=n)).round(2)])
    y = X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n) > 0.3
    plain = KMeansKernelClassifier(random_state=0).fit(X, y)
    for factors in ([1000.0, 1.0, 1.0], [1.0, 1.0, 100.0], [1 / 7, 3.6, 0.9144]):
        other = KMeansKernelClassifier(random_state=0).fit(X * factors, y)
        np.testing.assert_allclose(
            other.predict_proba(X * factors), plain.predict_proba(X), atol=1e-9
        )


def test_wide_rows_with_a_column_of_another_unit_are_a_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 120))
    y = X[:, 0] + X[:, 1] > 0
    plain = KMeansKernelClassifier(random_state=0).fit(X[:400], y[:400]).score(X[400:], y[400:])
    for other in (np.column_stack([X, 1.7e9 + 60.0 * np.arange(600)]), X + 1e6):
        model = KMeansKernelClassifier(random_state=0).fit(other[:400], y[:400])
        assert model.score(other[400:], y[400:]) > plain - 0.05


def test_answers_on_a_scale_are_no_pixels():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.integers(0, 16, (300, 20))).add_prefix("q")
    y = X.q0 + X.q1 + X.q2 - 22 + 4 * rng.normal(size=300) > 0
    one, other = (KMeansKernelClassifier(random_state=0).fit(Z, y) for Z in (X, X + 1))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X + 1), atol=1e-9)
    few = X.to_numpy() % 5  # without names, too few levels for pixels
    one, other = (KMeansKernelClassifier(random_state=0).fit(Z, y) for Z in (few, few + 1))
    np.testing.assert_allclose(one.predict_proba(few), other.predict_proba(few + 1), atol=1e-9)
