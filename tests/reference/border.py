"""Rows at the border, one by one."""

import numpy as np


def margin(scores, code):
    """Return how far the score of a class is above the best of the others."""
    return scores[code] - max(score for k, score in enumerate(scores) if k != code)


def hardest(margins, codes, U, centroids, owners, n_rows):
    """Return the rows of the least margins that are no centroid of their class."""
    found = []
    for i in sorted(range(len(U)), key=lambda i: margins[i]):
        cosines = [U[i] @ c for c, k in zip(centroids, owners, strict=True) if k == codes[i]]
        if len(found) < n_rows and max(cosines) <= 1 - 1e-6:
            found.append(i)
    return found


def counts(U, codes, weights, directions, owners):
    """Return the weight of the rows nearest to each representative of their class."""
    total = np.zeros(len(directions))
    for u, code, weight in zip(U, codes, weights, strict=True):
        own = np.flatnonzero(owners == code)
        total[own[np.argmax(directions[own] @ u)]] += weight
    return total
