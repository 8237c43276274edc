"""Temperature scaling: probabilities as the softmax of scores, calibrated on held-out rows.

C. Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from kmeans_kernel.core.arrays.matrices import Array, IntArray

# Bounds of the inverse temperature.
_HOTTEST, _COLDEST = 1e-2, 1e3

# Newton's method stops at this relative change of the inverse temperature; where a change would
# lower the log-loss by about this at most, as with perfect scores; or after so many steps.
_TOLERANCE, _LEAST_GAIN, _MOST_STEPS = 1e-5, 1e-8, 100


@dataclass(frozen=True, eq=False)
class HeldOutProbabilities:
    """Probabilities that held-out samples get for their own classes.

    Attributes
    ----------
    probabilities : (n,) probability of the own class
    codes : (n,) positions of the classes
    weights : (n,) sample weights
    """

    probabilities: Array
    codes: IntArray
    weights: Array

    @classmethod
    def of(
        cls, scores: Array, codes: IntArray, weights: Array, temperature: float
    ) -> HeldOutProbabilities:
        """Compute them from (n, K) held-out scores."""
        found = softmax(scores / temperature, axis=1)
        return cls(found[np.arange(len(codes)), codes], codes, weights)


def fit_temperature(
    scores: Array, codes: IntArray, weights: Array, smoothing: float = 0.0
) -> float:
    """Return the temperature with the least log-loss of held-out samples.

    The log-loss is convex in β = 1 / temperature, with first derivative E[s] − s_y and second
    derivative Var[s] of the scores s under the softmax, averaged over the samples. Newton's method
    finds the least; a step that leaves the bracket is replaced by bisection of log β.

    Parameters
    ----------
    scores : (n, K) scores of held-out samples
    codes : (n,) positions of their classes
    weights : (n,) sample weights
    smoothing : label smoothing, the share of each label that is spread evenly over all classes
    """
    shares = weights / weights.sum()
    scores = scores - scores.max(axis=1, keepdims=True)
    own = scores[np.arange(len(codes)), codes]
    own = (1.0 - smoothing) * own + smoothing * scores.mean(axis=1)
    squares = scores**2
    low, high, beta = _HOTTEST, _COLDEST, 1.0
    for _ in range(_MOST_STEPS):
        chances = np.exp(beta * scores)
        sums = chances.sum(axis=1)
        means = np.einsum("ij,ij->i", chances, scores) / sums
        slope = float(shares @ (means - own))
        curvature = float(shares @ (np.einsum("ij,ij->i", chances, squares) / sums - means**2))
        if abs(slope) * beta < _LEAST_GAIN:
            break
        low, high = (beta, high) if slope < 0 else (low, beta)
        step = beta - slope / curvature if curvature > 0 else 0.0
        after = step if low < step < high else float(np.sqrt(low * high))
        change, beta = abs(after - beta), after
        if change <= _TOLERANCE * beta:
            break
    return 1.0 / beta


def label_smoothing(n: int) -> float:
    """Return the label smoothing of n held-out samples: that of one more sample of unknown class.

    If all held-out samples are classified correctly, the temperature with the least log-loss is
    zero and every probability zero or one.
    """
    return 1.0 / (n + 1.0)


def brier_losses(scores: Array, codes: IntArray, weights: Array) -> Array:
    """Return the (n,) Brier scores of held-out samples: squared errors of their probabilities.

    The probabilities come from temperature scaling fitted to the same scores, so that scores of
    different scales can be compared.
    """
    scaled = scores / fit_temperature(scores, codes, weights)
    probabilities = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    probabilities[np.arange(len(codes)), codes] -= 1.0
    return np.asarray((probabilities**2).sum(axis=1))
