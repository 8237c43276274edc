import numpy as np


def bordered_matrix(gram, regularization):
    m = len(gram)
    phi = np.zeros((m + 1, m + 1))
    phi[0, 1:] = phi[1:, 0] = 1.0
    phi[1:, 1:] = gram + regularization * np.eye(m)
    return phi


def solve(gram, targets, regularization):
    """The bordered system as the paper writes it, by LU in float64: (a, b)."""
    right_side = np.vstack([np.zeros(targets.shape[1]), targets])
    w = np.linalg.solve(bordered_matrix(gram, regularization), right_side)
    return w[1:], w[0]


def relative_residual(gram, targets, regularization, a, b):
    """The largest over the columns of ‖Φw − y‖ / ‖y‖, in float64."""
    w = np.vstack([b, a])
    right_side = np.vstack([np.zeros(targets.shape[1]), targets])
    residual = bordered_matrix(gram, regularization) @ w - right_side
    return (np.linalg.norm(residual, axis=0) / np.linalg.norm(targets, axis=0)).max()


def symmetric_from_lower(buffer, diagonal):
    m = len(buffer)
    full = np.zeros((m, m))
    for i in range(m):
        full[i, i] = diagonal[i]
        for j in range(i):
            full[i, j] = full[j, i] = buffer[i, j]
    return full
