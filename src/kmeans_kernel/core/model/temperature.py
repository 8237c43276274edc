"""Temperature scaling: probabilities as the softmax of scores, calibrated on held-out rows.

C. Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from kmeans_kernel.core.arrays.matrices import Array, IntArray

# Bounds of the search for the temperature.
_COLDEST, _HOTTEST = 1e-3, 1e2


def fit_temperature(scores: Array, codes: IntArray, weights: Array) -> float:
    """Return the temperature with the least log-loss of held-out samples.

    Parameters
    ----------
    scores : (n, K) scores of held-out samples
    codes : (n,) positions of their classes
    weights : (n,) sample weights
    """

    def loss(logarithm: float) -> float:
        logs = log_softmax(scores / np.exp(logarithm), axis=1)
        return -float(np.average(logs[np.arange(len(codes)), codes], weights=weights))

    bounds = (np.log(_COLDEST), np.log(_HOTTEST))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def brier_losses(scores: Array, codes: IntArray, weights: Array) -> Array:
    """Return the (n,) Brier scores of held-out samples: squared errors of their probabilities.

    The probabilities come from temperature scaling fitted to the same scores, so that scores of
    different scales can be compared.
    """
    probabilities = softmax(scores / fit_temperature(scores, codes, weights), axis=1)
    probabilities[np.arange(len(codes)), codes] -= 1.0
    return np.asarray((probabilities**2).sum(axis=1))
