"""Online training, row by row."""

import numpy as np

from tests.reference.spherical_kmeans import assign, dot, move_centroids


def update_centroids(batches, most):
    """Return centroids and counts of one class after batches of unit rows."""
    centroids, sums, counts = [], [], []
    for batch in batches:
        rest = []
        for row in batch:
            known = any(dot(row, centroid) > 1 - 1e-6 for centroid in centroids)
            if len(centroids) < most and not known:
                centroids.append(list(row))
                sums.append([float(v) for v in row])
                counts.append(1)
            else:
                rest.append(row)
        labels, _ = assign(rest, centroids)  # all of a batch by the centroids before it
        for row, label in zip(rest, labels, strict=True):
            sums[label] = [s + float(v) for s, v in zip(sums[label], row, strict=True)]
            counts[label] += 1
        if len(rest):
            centroids = move_centroids(centroids, sums)
    return centroids, counts


def weighted_lssvm(omega, targets, epsilons):
    """Solve the bordered system with one ε for each representative, whole."""
    m = len(omega)
    A = np.zeros((m + 1, m + 1))
    A[:m, :m] = omega + np.diag(epsilons)
    A[:m, m] = A[m, :m] = 1.0
    solution = np.linalg.solve(A, np.vstack([targets, np.zeros((1, targets.shape[1]))]))
    return solution[:m], solution[m]
