import numpy as np
import pytest
from sklearn.datasets import make_classification

from kmeans_kernel import KMeansKernelClassifier

OPTIONS = [
    {},
    {"fit_on": "representatives"},
    {"init": "k-means++", "feature_scales": "learned"},
    {"class_weight": "balanced"},
    {"feature_transform": "asinh", "loss": "squared"},
    {"n_representatives": "auto", "kernel": "rbf", "loss": "squared", "feature_scales": None},
]


@pytest.fixture(scope="module")
def table():
    return make_classification(400, 6, n_informative=4, n_classes=3, random_state=1)


def fit(X, y, weights=None, **options):
    options = {"n_representatives": 8, "random_state": 0, **options}
    return KMeansKernelClassifier(**options).fit(X, y, weights)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("order", ["repeated", "shuffled"])
def test_a_whole_weight_equals_repeating_the_row(table, options, order, rng):
    X, y = table
    weights = rng.integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    if order == "shuffled":
        rows = rng.permutation(rows)
    weighted, repeated = fit(X, y, weights, **options), fit(X[rows], y[rows], **options)
    np.testing.assert_array_equal(weighted.dual_coef_, repeated.dual_coef_)
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert weighted.representative_counts_.sum() == weights.sum() or "class_weight" in options


def test_the_scale_of_the_weights_does_not_matter(table):
    X, y = table
    weights = np.random.default_rng(0).random(len(X))
    one, two = fit(X, y, weights), fit(X, y, 1024 * weights)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-6)


def test_a_class_without_weight_is_not_there(table):
    X, y = table
    found = fit(X, y, (y != 1).astype(float))
    assert found.classes_.tolist() == [0, 2]
    with pytest.raises(ValueError, match="at least two classes"):
        fit(X, y, (y == 1).astype(float))


def test_balance_helps_the_rare_class(rng):
    X = np.concatenate([rng.normal(0, 1, (1000, 2)), rng.normal(1.5, 1, (30, 2))])
    y = np.repeat(["many", "few"], [1000, 30])
    plain, balanced = fit(X, y), fit(X, y, class_weight="balanced")
    few = y == "few"
    assert (balanced.predict(X[few]) == "few").mean() > (
        plain.predict(X[few]) == "few"
    ).mean() + 0.2
    by_hand = fit(X, y, np.where(few, 1030 / 60, 1030 / 2000))
    np.testing.assert_allclose(by_hand.dual_coef_, balanced.dual_coef_)
    named = fit(X, y, class_weight={"few": 1030 / 60, "many": 1030 / 2000})
    np.testing.assert_allclose(named.dual_coef_, balanced.dual_coef_)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(400), "Negative values"),
        (np.zeros(400), "zero"),
        (np.ones(7), "sample_weight.shape"),
        (np.full(400, np.nan), "NaN"),
    ],
)
def test_bad_sample_weights_are_refused(table, weights, message):
    with pytest.raises(ValueError, match=message):
        fit(*table, weights)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({7: 1.0}, "class_weight has a weight for 7, which is no class"),
        ({0: -1.0}, "finite numbers of at least 0"),
        ({0: np.inf}, "finite numbers of at least 0"),
        ([1, 2], "'class_weight' parameter .* must be a dict"),
    ],
)
def test_bad_class_weights_are_refused(table, weight, message):
    with pytest.raises(ValueError, match=message):
        fit(*table, class_weight=weight)
