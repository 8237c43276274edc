"""Attributions by their definitions: all coalitions one by one, and a sum along the path."""

from itertools import combinations
from math import factorial

import numpy as np


def score(model, X, k):
    """Return the scores of one class, in float64."""
    positions = np.full(len(X), k)
    return model.contributions(X, positions).sum(axis=1)


def shapley_values(model, row, baseline, k, columns):
    """Return the Shapley values of one row.

    `columns` has the column of each number of the row.
    """
    n = columns.max() + 1

    def value(coalition):
        mixed = np.where(np.isin(columns, list(coalition)), row, baseline)
        return score(model, mixed[None], k)[0]

    found = np.zeros(n)
    for column in range(n):
        others = [one for one in range(n) if one != column]
        for size in range(n):
            share = factorial(size) * factorial(n - size - 1) / factorial(n)
            for some in combinations(others, size):
                found[column] += share * (value({*some, column}) - value(some))
    return found


def integrated_gradients(model, row, baseline, k, columns, steps=2000):
    """Return the integrated gradients of one row of a model without a feature transform.

    The gradients are differences of scores, and their mean is taken at the middles of many steps.
    """
    change, width = row - baseline, 1e-5
    found = np.zeros(columns.max() + 1)
    points = baseline + (np.arange(steps)[:, None] + 0.5) / steps * change
    for j, column in enumerate(columns):
        unit = np.zeros(len(row))
        unit[j] = width
        slope = (score(model, points + unit, k) - score(model, points - unit, k)) / (2 * width)
        found[column] += change[j] * slope.mean()
    return found
