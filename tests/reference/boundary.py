"""Rows near the decision boundary, one by one."""

import numpy as np


def own_margin(scores, code):
    """Return the score of a class minus the best of the others."""
    return scores[code] - max(score for k, score in enumerate(scores) if k != code)


def is_represented(u, code, directions, codes):
    """Say whether a unit row is a representative of its class but for rounding."""
    cosines = [u @ c for c, k in zip(directions, codes, strict=True) if k == code]
    return max(cosines) > 1 - 1e-6


def boundary_rows(margins, codes, U, directions, codes_of_directions, n_rows):
    """Return the rows of smallest margin that are no representative of their class."""
    found = []
    for i in sorted(range(len(U)), key=lambda i: margins[i]):
        known = is_represented(U[i], codes[i], directions, codes_of_directions)
        if len(found) < n_rows and not known:
            found.append(i)
    return found


def nearest_counts(U, codes, weights, directions, codes_of_directions):
    """Return the weight of the rows nearest to each representative of their class."""
    total = np.zeros(len(directions))
    for u, code, weight in zip(U, codes, weights, strict=True):
        own = np.flatnonzero(codes_of_directions == code)
        total[own[np.argmax(directions[own] @ u)]] += weight
    return total
