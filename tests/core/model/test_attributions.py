import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from kmeans_kernel import KMeansKernelClassifier, paper
from kmeans_kernel.core.model.attributions import integrated_gradients, shapley_values
from tests.reference import attributions as naive

KERNELS = ["rbf", "laplacian", "poly", "exponential_power"]


def fitted(kernel, d, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, d)) + 0.3
    y = (X[:, 0] * X[:, 1] + X[:, -1] > 0.5).astype(int) + (X[:, 0] > 1)
    model = KMeansKernelClassifier(
        6, kernel=kernel, random_state=0, regularization=1e-3, feature_scales=None,
        kernel_params={"exponent": 1.5} if kernel == "exponential_power" else None, **options,
    )  # fmt: skip
    return X, model.fit(X, y)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("transform", [None, "standard", "both"])
def test_shapley_values_are_those_of_all_coalitions(kernel, transform):
    X, classifier = fitted(kernel, 4, feature_transform=transform, lift=1.0)
    model, baseline = classifier.model_, X[:1]
    columns = np.array([0, 1, 1, 2])  # the second and the third number are one column
    features = columns[getattr(model.sphere_map.feature_transform, "columns", np.arange(4))]
    found = shapley_values(model, X[5:8], baseline, np.array([0, 1, 2]), features)
    expected = [naive.shapley_values(model, X[5 + k], baseline[0], k, columns) for k in range(3)]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("lift", [0.0, 1.0])
def test_integrated_gradients_are_mean_slopes_along_the_path(kernel, lift):
    X, classifier = fitted(kernel, 3, feature_transform=None, lift=lift)
    columns, classes = np.array([0, 1, 1]), np.array([2, 0])
    found = integrated_gradients(classifier.model_, X[5:7], X[:1], classes, columns)
    expected = [
        naive.integrated_gradients(classifier.model_, X[5 + k], X[0], classes[k], columns)
        for k in range(2)
    ]
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
@pytest.mark.parametrize("options", [{}, {"kernel": "laplacian"}, {"loss": "logistic"}])
def test_effects_add_up_to_the_difference_from_the_baseline(load, options):
    X, y = load(return_X_y=True)
    explanation = KMeansKernelClassifier(random_state=0, **options).fit(X, y).explain(X[::5])
    difference = explanation.scores - explanation.baseline_scores
    np.testing.assert_allclose(explanation.attributions.sum(axis=1), difference, atol=1e-9)


def test_effects_on_rows_of_pixels_add_up():
    X, y = load_digits(return_X_y=True)
    for model in (paper.raw(q=5, random_state=0), KMeansKernelClassifier(5, random_state=0)):
        classifier = getattr(model.fit(X, y), "steps", [("", model)])[-1][1]
        rows = X[:10] / np.linalg.norm(X[:10], axis=1, keepdims=True)
        found = classifier.explain(rows)
        difference = found.scores - found.baseline_scores
        np.testing.assert_allclose(found.attributions.sum(axis=1), difference, atol=1e-8)


def test_effects_are_by_column_of_the_table():
    rng = np.random.default_rng(1)
    n = 400
    X = pd.DataFrame({
        "age": rng.integers(18, 80, n), "town": rng.choice(["Rome", "Oslo", "Bonn"], n),
        "since": pd.date_range("2020-01-01", periods=n), "noise": rng.normal(size=n), "same": 1,
        "vip": rng.random(n) < 0.5,
    })  # fmt: skip
    X.loc[::9, "age"] = np.nan
    y = np.where((X["town"] == "Rome") | (X["age"] > 60), "yes", "no")
    classifier = KMeansKernelClassifier(random_state=0).fit(X, y)
    found = classifier.explain(X[:20], "yes")
    assert found.columns == tuple(X)
    assert (found.attributions[:, 4] == 0).all()  # a constant column is not used
    np.testing.assert_allclose(
        found.attributions.sum(axis=1), found.scores - found.baseline_scores, atol=1e-9
    )
    roman = int((X["town"][:20] == "Rome").argmax())
    first = found.largest_effects(roman, 2)[0]
    assert (first.column, first.value, first.effect > 0) == ("town", "Rome", True)
    assert first.baseline in ("Oslo", "Bonn")
    assert found.baseline[1] in ("Rome", "Oslo", "Bonn")
    shares = classifier.feature_importances_
    assert shares.sum() == pytest.approx(1.0)
    assert set(np.argsort(shares)[-2:]) == {0, 1}
    own = classifier.explain(X[:3], "yes", baseline=X[1:2])
    assert own.attributions[1] == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="baseline must be one row, got 2"):
        classifier.explain(X[:3], baseline=X[:2])
