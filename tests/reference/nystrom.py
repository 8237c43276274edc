import numpy as np


def solve(K, omega, Y, weights, regularization, delta):
    """The penalised least squares as it is written, by its dense normal equations: (a, b)."""
    n, m = K.shape
    A = np.hstack([K, np.ones((n, 1))])
    penalty = np.zeros((m + 1, m + 1))
    penalty[:m, :m] = regularization * weights.sum() * (omega + delta * np.eye(m))
    w = np.linalg.solve(A.T @ (weights[:, None] * A) + penalty, A.T @ (weights[:, None] * Y))
    return w[:m], w[m]


def left_out_scores(K, omega, Y, weights, regularization, delta, left_out=None):
    """Fit again without each sample, or this weight of it, with the penalty of all of them."""
    left_out = weights if left_out is None else left_out
    found = np.empty_like(Y)
    for i in range(len(K)):
        rest = weights.copy()
        rest[i] -= left_out[i]
        kept = regularization * weights.sum() / rest.sum()
        a, b = solve(K, omega, Y, rest, kept, delta)
        found[i] = K[i] @ a + b
    return found


def whitened_features(K, omega, delta):
    """L⁻¹ k of each sample, with the dense inverse of the factor."""
    inverse = np.linalg.inv(np.linalg.cholesky(omega + delta * np.eye(len(omega))))
    return np.array([inverse @ k for k in K])


def normal_equations(Z, Y, weights):
    """The weighted sums, sample by sample: Σ w, Σ w z, Σ w y, Σ w z zᵀ, Σ w z yᵀ."""
    m, K = Z.shape[1], Y.shape[1]
    weight, z, y, zz, zy = 0.0, np.zeros(m), np.zeros(K), np.zeros((m, m)), np.zeros((m, K))
    for one, target, w in zip(Z, Y, weights, strict=True):
        weight += w
        z += w * one
        y += w * target
        zz += w * np.outer(one, one)
        zy += w * np.outer(one, target)
    return {"weight": weight, "z": z, "y": y, "zz": zz, "zy": zy}


def estimate_covariance(L, counts, Z, cosines, weights):
    """Mean and covariance of the representatives, plus that of some samples about the nearest.

    L (m, m) holds the whitened features of the representatives, Z (n, m) those of the samples,
    `cosines` (n, m) are those of the samples with the representatives.
    """
    m, n = len(L), len(Z)
    mean = sum(count * row for count, row in zip(counts, L, strict=True)) / sum(counts)
    covariance = np.zeros((m, m))
    for count, row in zip(counts, L, strict=True):
        covariance += count / sum(counts) * np.outer(row - mean, row - mean)
    step = int(np.ceil(n / max(1, round(m / 4))))
    total = sum(weights[::step])
    for i in range(0, n, step):
        off = Z[i] - L[max(range(m), key=lambda q: cosines[i, q])]
        covariance += weights[i] / total * np.outer(off, off)
    return mean, covariance


def conjugate_gradients(A, preconditioner, b, steps):
    """Preconditioned conjugate gradients for one column, as in a textbook, so many steps."""
    x, r = np.zeros_like(b), b.copy()
    p = preconditioner @ r
    for _ in range(steps):
        z = preconditioner @ r
        alpha = (r @ z) / (p @ (A @ p))
        x, new = x + alpha * p, r - alpha * (A @ p)
        p = preconditioner @ new + (new @ (preconditioner @ new)) / (r @ z) * p
        r = new
    return x
