"""Scores of an evaluation, against scikit-learn's and by hand."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from kmeans_kernel.report._evaluation import evaluate_probabilities


@pytest.fixture
def predictions(rng):
    y = rng.integers(0, 3, 200)
    scores = rng.normal(size=(200, 3)) + 2 * np.eye(3)[y]
    return y, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def test_scores_are_those_of_scikit_learn(predictions):
    y, probabilities = predictions
    found = evaluate_probabilities(probabilities, y, np.arange(3))
    given = probabilities.argmax(axis=1)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, given))
    assert found.auc == pytest.approx(roc_auc_score(y, probabilities, multi_class="ovr"))
    assert found.log_loss == pytest.approx(log_loss(y, probabilities))
    assert found.error_percent == pytest.approx(100 * (given != y).mean())


def test_the_auc_of_two_classes(predictions):
    y, probabilities = predictions
    two = y < 2
    shares = probabilities[two, :2] / probabilities[two, :2].sum(axis=1, keepdims=True)
    found = evaluate_probabilities(shares, y[two], np.arange(2))
    assert found.auc == pytest.approx(roc_auc_score(y[two], shares[:, 1]))


def test_the_calibration_error_by_hand():
    probabilities = np.array([[0.95, 0.05], [0.95, 0.05], [0.6, 0.4], [0.4, 0.6], [1.0, 0.0]])
    y = np.array([0, 1, 0, 0, 0])
    found = evaluate_probabilities(probabilities, y, np.arange(2))
    # 0.95 and 1 share the last of the 15 bins: two of three are right; of two at 0.6, one is.
    expected = (abs(0.95 + 0.95 + 1.0 - 2) + abs(0.6 + 0.6 - 1)) / 5
    assert found.calibration_error == pytest.approx(expected)


def test_labels_that_no_row_or_no_class_has(predictions):
    y, probabilities = predictions
    found = evaluate_probabilities(probabilities[y == 1], y[y == 1], np.arange(3))
    assert np.isnan(found.auc)
    assert found.as_json()["auc"] is None
    assert found.balanced_accuracy == found.recall[1]
    names = np.where(y == 2, "wolf", np.array(["a", "b", "c"])[y])
    found = evaluate_probabilities(probabilities, names, np.array(["a", "b", "c"]))
    assert found.log_loss == float("inf")
    expected = [roc_auc_score(y == k, probabilities[:, k]) for k in (0, 1)]
    assert found.auc == pytest.approx(np.mean(expected))
    assert found.recall[3] == 0
    assert set(found.as_json()) == {
        "rows", "error_percent", "balanced_accuracy", "auc", "log_loss", "calibration_error",
        "classes", "confusion",
    }  # fmt: skip
