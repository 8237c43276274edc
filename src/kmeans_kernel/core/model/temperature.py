"""From scores to probabilities: the temperature of the softmax."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from kmeans_kernel.core.arrays.blocking import Array, IntArray

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


def chance_losses(scores: Array, codes: IntArray, weights: Array) -> Array:
    """Return the (n,) squared errors of the probabilities of held-out samples.

    They are the softmax of the scores at the temperature that suits them best, so that scores of
    any scale compare.
    """
    chances = softmax(scores / fit_temperature(scores, codes, weights), axis=1)
    chances[np.arange(len(codes)), codes] -= 1.0
    return np.asarray((chances**2).sum(axis=1))
