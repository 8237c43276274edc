"""From scores to probabilities: the temperature of the softmax."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from kmeans_kernel._blocks import Array, IntArray

_COLDEST, _HOTTEST = 1e-3, 1e2


def fit_temperature(scores: Array, codes: IntArray, weights: Array) -> float:
    """Return the temperature whose softmax of held-out scores has the least log-loss.

    Parameters
    ----------
    scores : (n, K) of samples that were held out
    codes : (n,) the columns of their classes
    weights : (n,)
    """

    def loss(logarithm: float) -> float:
        logs = log_softmax(scores / np.exp(logarithm), axis=1)
        return -float(np.average(logs[np.arange(len(codes)), codes], weights=weights))

    bounds = (np.log(_COLDEST), np.log(_HOTTEST))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
