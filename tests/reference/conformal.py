"""Conformal thresholds by their definition: try every held-out probability."""

import numpy as np


def threshold(chances, counts, coverage):
    """Return the largest threshold that keeps the coverage, with one more sample below it.

    `counts` has how often each sample is there, a whole number.
    """
    repeated = np.repeat(chances, counts)
    one_more = np.mean(counts)
    for candidate in sorted(set(chances), reverse=True):
        if (repeated >= candidate).sum() >= coverage * (len(repeated) + one_more):
            return candidate
    return 0.0
