import numpy as np
import pytest

from kmeans_kernel.core.model.temperature import brier_losses, fit_temperature, label_smoothing
from tests.reference import temperature as twin


def test_no_temperature_on_a_grid_has_a_smaller_log_loss(rng):
    codes, weights = rng.integers(0, 3, 200), rng.random(200)
    scores = 0.4 * np.eye(3)[codes] + 0.2 * rng.normal(size=(200, 3))
    found = fit_temperature(scores, codes, weights)
    best = min(twin.log_loss(scores, codes, weights, t) for t in np.geomspace(0.01, 10, 200))
    assert twin.log_loss(scores, codes, weights, found) <= best + 1e-6


def test_logits_need_no_temperature(rng):
    logits = 2 * rng.normal(size=(20000, 4))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (probabilities.cumsum(axis=1) > rng.random((20000, 1))).argmax(axis=1)
    assert fit_temperature(logits, codes, np.ones(20000)) == pytest.approx(1.0, abs=0.05)


def test_smoothing_is_the_log_loss_of_labels_spread_over_the_classes(rng):
    codes, weights = rng.integers(0, 3, 100), rng.random(100)
    scores = 0.4 * np.eye(3)[codes] + 0.2 * rng.normal(size=(100, 3))
    spread = [(row, k, w * (0.9 * (k == c) + 0.1 / 3)) for row, c, w in
              zip(scores, codes, weights, strict=True) for k in range(3)]  # fmt: skip
    rows, labels, shares = zip(*spread, strict=True)
    found = fit_temperature(scores, codes, weights, 0.1)
    best = min(twin.log_loss(rows, labels, shares, t) for t in np.geomspace(0.01, 10, 200))
    assert twin.log_loss(rows, labels, shares, found) <= best + 1e-6


def test_perfect_scores_of_few_samples_are_not_certain():
    codes = np.arange(40) % 2
    temperature = fit_temperature(np.eye(2)[codes], codes, np.ones(40), label_smoothing(40))
    sure = 1 / (1 + np.exp(-1 / temperature))
    assert sure == pytest.approx(1 - label_smoothing(40) / 2, abs=1e-6)


def test_temperature_of_perfect_scores_is_finite():
    found = fit_temperature(np.eye(2), np.arange(2), np.ones(2))
    assert 0 < found < np.inf


def test_brier_losses_equal_the_twin_and_do_not_depend_on_the_scale_of_the_scores(rng):
    codes, weights = rng.integers(0, 3, 200), rng.random(200)
    scores = 0.4 * np.eye(3)[codes] + 0.2 * rng.normal(size=(200, 3))
    kept = scores.copy()
    found = brier_losses(scores, codes, weights)
    np.testing.assert_array_equal(scores, kept)
    temperature = fit_temperature(scores, codes, weights)
    np.testing.assert_allclose(found, twin.brier_losses(scores, codes, temperature))
    np.testing.assert_allclose(brier_losses(3 * scores, codes, weights), found, atol=1e-4)
