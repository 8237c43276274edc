import numpy as np


def solve(K, omega, Y, weights, regularization, delta):
    """The penalised least squares as it is written, by its dense normal equations: (a, b)."""
    n, m = K.shape
    A = np.hstack([K, np.ones((n, 1))])
    penalty = np.zeros((m + 1, m + 1))
    penalty[:m, :m] = regularization * weights.sum() * (omega + delta * np.eye(m))
    w = np.linalg.solve(A.T @ (weights[:, None] * A) + penalty, A.T @ (weights[:, None] * Y))
    return w[:m], w[m]


def left_out_scores(K, omega, Y, weights, regularization, delta):
    """Fit again without each sample, with the penalty of all of them."""
    n = len(K)
    found = np.empty_like(Y)
    for i in range(n):
        rest = np.arange(n) != i
        kept = regularization * weights.sum() / weights[rest].sum()
        a, b = solve(K[rest], omega, Y[rest], weights[rest], kept, delta)
        found[i] = K[i] @ a + b
    return found
