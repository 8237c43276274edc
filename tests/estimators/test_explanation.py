import numpy as np
import pytest

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.data import load_digits
from kmeans_kernel.report import plot_attributions, plot_explanation
from tests.reference import kernels as naive_kernels
from tests.reference import model as naive_model


@pytest.fixture(scope="module")
def digits():
    found = load_digits()
    return found.X_train.reshape(-1, 64).astype(float), found.y_train


@pytest.fixture(scope="module")
def classifier(digits):
    X, y = digits
    return KMeansKernelClassifier(5, random_state=0, feature_scales="learned").fit(X, y)


def test_contributions_add_up_to_the_score(classifier, digits):
    X = digits[0][:50]
    found = classifier.explain(X)
    scores = classifier.decision_function(X)
    total = found.contributions.sum(axis=1) + found.intercepts
    np.testing.assert_allclose(total, scores.max(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.scores, scores.max(axis=1), atol=1e-6)
    np.testing.assert_array_equal(found.labels, classifier.predict(X))
    other = classifier.explain(X, 3)
    np.testing.assert_allclose(other.scores, scores[:, 3], atol=1e-6)
    each = classifier.explain(X, digits[1][:50])
    np.testing.assert_allclose(each.scores, scores[np.arange(50), digits[1][:50]], atol=1e-6)


def test_contributions_equal_the_twin(rng):
    X, y = rng.normal(size=(60, 3)), np.array(["no", "yes"])[rng.integers(0, 2, 60)]
    found = KMeansKernelClassifier(
        4, kernel="rbf", random_state=0, feature_scales=None, feature_transform=None
    ).fit(X, y)
    model = found.model_
    expected = naive_model.contributions(
        X[:7], model.directions, model.dual_coef, [1] * 7,
        lambda cosine: naive_kernels.gaussian(cosine, found.gamma_), found.lift_,
    )  # fmt: skip
    np.testing.assert_allclose(found.explain(X[:7], "yes").contributions, expected, atol=1e-9)


def test_the_largest_contributions_come_first(classifier, digits):
    found = classifier.explain(digits[0][:5])
    positive, negative = found.largest(2, 3)
    own = found.contributions[2]
    assert positive[0].value == own.max()
    assert negative[0].value == own.min()
    assert [one.value for one in positive] == sorted(own)[::-1][:3]
    first = positive[0]
    assert first.label == classifier.representative_classes_[first.representative]
    assert first.count == classifier.representative_counts_[first.representative]
    assert len(found) == 5


def test_labels_that_are_none_are_refused(classifier, digits):
    with pytest.raises(ValueError, match="holds 77, which is no class"):
        classifier.explain(digits[0][:2], 77)
    with pytest.raises(ValueError, match="one for each of the 2 rows"):
        classifier.explain(digits[0][:2], [1, 2, 3])


def test_images_are_drawn_as_images_and_rows_as_bars(classifier, digits):
    found = classifier.explain(digits[0][:2])
    drawn = plot_explanation(found, 1, n=3, image_shape=(8, 8))
    assert sum(len(axes.images) for axes in drawn.axes) == 7
    bars = plot_explanation(found, n=3).axes[0].patches
    assert len(bars) == 7
    widths = sum(bar.get_width() for bar in bars)
    assert widths == pytest.approx(found.contributions[0].sum())
    with pytest.raises(IndexError, match="one of the 2 explained rows, got 5"):
        plot_explanation(found, 5)
    with pytest.raises(ValueError, match="100 pixels, and a row only 64"):
        plot_explanation(found, image_shape=(10, 10))


def test_effects_are_drawn_from_the_baseline_to_the_row(classifier, digits):
    found = classifier.explain(digits[0][:2])
    axes = plot_attributions(found, 1, n=6).axes[0]
    bars = axes.patches
    assert len(bars) == 7
    assert bars[0].get_x() + min(0, bars[0].get_width()) <= found.baseline_scores[1]
    total = sum(bar.get_width() for bar in bars)
    assert total == pytest.approx(found.scores[1] - found.baseline_scores[1])
    with pytest.raises(IndexError, match="one of the 2 explained rows, got 5"):
        plot_attributions(found, 5)
