import numpy as np
import pytest

from kmeans_kernel.core.model.temperature import fit_temperature


def log_loss(scores, codes, weights, temperature):
    total = 0.0
    for row, code, weight in zip(scores / temperature, codes, weights, strict=True):
        total -= weight * (row[code] - np.log(sum(np.exp(row))))
    return total / weights.sum()


def test_no_temperature_on_a_grid_has_a_smaller_log_loss(rng):
    codes, weights = rng.integers(0, 3, 200), rng.random(200)
    scores = 0.4 * np.eye(3)[codes] + 0.2 * rng.normal(size=(200, 3))
    found = fit_temperature(scores, codes, weights)
    best = min(log_loss(scores, codes, weights, t) for t in np.geomspace(0.01, 10, 200))
    assert log_loss(scores, codes, weights, found) <= best + 1e-6


def test_scores_that_are_logits_need_no_temperature(rng):
    logits = 2 * rng.normal(size=(20000, 4))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (chances.cumsum(axis=1) > rng.random((20000, 1))).argmax(axis=1)
    assert fit_temperature(logits, codes, np.ones(20000)) == pytest.approx(1.0, abs=0.05)


def test_perfect_scores_stay_finite():
    assert fit_temperature(np.eye(2), np.arange(2), np.ones(2)) > 0
