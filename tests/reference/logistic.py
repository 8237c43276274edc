import numpy as np


def objective(a, b, K, omega, codes, weights, regularization, delta):
    """The penalised mean logistic loss as it is written."""
    total = 0.0
    for k, code, weight in zip(K, codes, weights, strict=True):
        scores = k @ a + b
        total += weight * (
            np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[code]
        )
    penalty = np.trace(a.T @ (omega + delta * np.eye(len(omega))) @ a)
    return total / weights.sum() + 0.5 * regularization * penalty


def loss_sums(inner, intercept, features, codes, weights):
    """Loss, weight and gradients by the intercept and by `inner`, sample by sample."""
    loss, weight = 0.0, 0.0
    by_intercept, by_inner = np.zeros_like(intercept), np.zeros_like(inner)
    for one, code, w in zip(features, codes, weights, strict=True):
        powers = np.exp(one @ inner + intercept)
        probabilities = powers / powers.sum()
        loss -= w * np.log(probabilities[code])
        weight += w
        slope = w * (probabilities - np.eye(len(intercept))[code])
        by_intercept += slope
        by_inner += np.outer(one, slope)
    return loss, weight, by_intercept, by_inner


def solve(K, omega, codes, weights, n_classes, regularization, delta, steps=60):
    """Its minimum by Newton's method, with the whole matrix of second derivatives: (a, b)."""
    n, m = K.shape
    A = np.hstack([K, np.ones((n, 1))])
    ridge = np.zeros((m + 1, m + 1))
    ridge[:m, :m] = regularization * (omega + delta * np.eye(m))
    shares = weights / weights.sum()
    V = np.zeros((m + 1, n_classes))
    for _ in range(steps):
        scores = A @ V
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        gradient = A.T @ (shares[:, None] * (P - np.eye(n_classes)[codes])) + ridge @ V
        blocks = np.zeros((n_classes, m + 1, n_classes, m + 1))
        for i in range(n_classes):
            for j in range(n_classes):
                curve = shares * P[:, i] * ((i == j) - P[:, j])
                blocks[i, :, j, :] = A.T @ (curve[:, None] * A) + (i == j) * ridge
        H = blocks.reshape(n_classes * (m + 1), -1)
        move = np.linalg.lstsq(H, gradient.T.ravel(), rcond=1e-13)[0]
        V -= move.reshape(n_classes, m + 1).T
        if np.abs(move).max() < 1e-12 * np.abs(V).max():
            break
    return V[:m], V[m]
