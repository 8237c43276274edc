"""The paper's algorithm written as plainly as it reads: float64 throughout, LU, no blocks.

The operations are those of the author's published script (whole product matrices, a sparse matrix
of memberships, a dense solve of the bordered system), written afresh and with whole arrays where
the script goes row by row. It is the yardstick for what the library gains over that.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from kmeans_kernel.data import load_mnist


def unit(X: np.ndarray) -> np.ndarray:
    """Centre each row and divide it by its length."""
    X = X - X.mean(axis=1, keepdims=True)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def pixels_and_fourier(images: np.ndarray) -> np.ndarray:
    """Join centred pixels with the roots of their Fourier magnitudes."""
    X = images.reshape(len(images), -1).astype(np.float64)
    X -= X.mean(axis=1, keepdims=True)
    magnitudes = np.sqrt(np.abs(np.fft.fft(X, axis=1)[:, : X.shape[1] // 2]))
    return np.hstack([unit(X), unit(magnitudes)]) / np.sqrt(2)


def centroids_of(X: np.ndarray, q: int, rng: np.random.Generator) -> np.ndarray:
    """Cluster by cosine, with the whole product matrix at each step."""
    centroids = X[rng.choice(len(X), q, replace=False)]
    deviation = 1.0
    while deviation > 1e-6:
        labels = (X @ centroids.T).argmax(axis=1)
        members = csr_matrix((np.ones(len(X)), (labels, np.arange(len(X)))), shape=(q, len(X)))
        sums = members @ X
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), centroids)
        deviation = 1 - np.mean(np.sum(moved * centroids, axis=1))
        centroids = moved
    return centroids


def raw_fft_error(q: int, seed: int = 0, n_train: int = 60_000) -> float:
    """Return the test error in per cent, from reading the files on."""
    mnist = load_mnist()
    y = mnist.y_train[:n_train]
    X, X_test = pixels_and_fourier(mnist.X_train[:n_train]), pixels_and_fourier(mnist.X_test)
    rng = np.random.default_rng(seed)
    representatives = np.vstack([centroids_of(X[y == k], q, rng) for k in range(10)])
    m = len(representatives)
    system = np.ones((m + 1, m + 1))
    system[0, 0] = 0.0
    system[1:, 1:] = (representatives @ representatives.T) ** 4 + 1e-6 * np.eye(m)
    right_side = np.vstack([np.zeros(10), np.repeat(np.eye(10), q, axis=0)])
    solution = np.linalg.solve(system, right_side)
    scores = (X_test @ representatives.T) ** 4 @ solution[1:] + solution[0]
    return 100 * float(np.mean(scores.argmax(axis=1) != mnist.y_test))
