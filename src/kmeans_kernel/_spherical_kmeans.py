"""Cosine K-means on the unit sphere: the paper's nine steps, in blocked matrix products.

Step 1, the matrix of the samples, is the caller's: X (n, d), unit rows. Its type decides the
arithmetic of the products (float32 in the library, float64 in tests); sums, norms and the
deviation are float64 always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from kmeans_kernel._blocks import Array, IntArray, row_blocks
from kmeans_kernel._sphere import unit_rows

Init: TypeAlias = Literal["random", "k-means++"]
OnIteration: TypeAlias = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class Clustering:
    """What K-means found: Q centroids and, for each of the n rows, where it belongs.

    Attributes
    ----------
    centroids : (Q, d) unit rows
    labels : (n,) the centroid nearest to each row
    similarities : (n,) the cosine of each row with that centroid
    n_iter : how often the centroids were moved
    deviation : δ at the last move
    converged : whether δ fell to the tolerance
    """

    centroids: Array
    labels: IntArray
    similarities: Array
    n_iter: int
    deviation: float
    converged: bool


def cluster(
    X: Array,
    n_clusters: int,
    *,
    init: Init,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    on_iteration: OnIteration | None = None,
) -> Clustering:
    """Cluster unit rows, trusted to be so, around `n_clusters` centroids by cosine.

    With as many clusters as rows, or more, each row is its own centroid.
    """
    n = len(X)
    if n_clusters >= n:
        return Clustering(X.copy(), np.arange(n), np.ones(n, X.dtype), 1, 0.0, True)
    centroids = X[draw_centroids(X, n_clusters, init, rng)]  # step 2
    deviation, n_iter = np.inf, 0
    while deviation > tol and n_iter < max_iter:  # step 9
        labels, _ = assign(X, centroids)  # steps 3 and 4
        moved = move_centroids(centroids, cluster_sums(X, labels, n_clusters))  # steps 5 and 6
        deviation = mean_deviation(moved, centroids)  # step 7
        centroids, n_iter = moved, n_iter + 1  # step 8
        if on_iteration is not None:
            on_iteration(n_iter, deviation)
    labels, similarities = assign(X, centroids)
    return Clustering(centroids, labels, similarities, n_iter, deviation, deviation <= tol)


def assign(X: Array, centroids: Array) -> tuple[IntArray, Array]:
    """Return the most similar centroid of each row and that similarity; ties go to the first."""
    labels = np.empty(len(X), dtype=np.intp)
    similarities = np.empty(len(X), dtype=X.dtype)
    for rows in row_blocks(len(X), len(centroids)):
        products = X[rows] @ centroids.T
        best = products.argmax(axis=1)
        labels[rows] = best
        similarities[rows] = np.take_along_axis(products, best[:, np.newaxis], axis=1)[:, 0]
    return labels, similarities


def cluster_sums(X: Array, labels: IntArray, n_clusters: int) -> Array:
    """Return the (Q, d) float64 sums of the rows of each cluster: R̂ᵀX, R̂ sparse."""
    sums = np.zeros((n_clusters, X.shape[1]))
    for rows in row_blocks(*X.shape):
        block = X[rows].astype(np.float64, copy=False)
        members = csr_array(
            (np.ones(len(block)), labels[rows], np.arange(len(block) + 1)),
            shape=(len(block), n_clusters),
        )
        sums += members.T @ block
    return sums


def move_centroids(centroids: Array, sums: Array) -> Array:
    """Return the directions of the sums; where a sum is zero the centroid keeps its place.

    An empty cluster has a zero sum, so it too keeps its centroid.
    """
    moved = unit_rows(sums, dtype=centroids.dtype)
    still = ~sums.any(axis=1)
    moved[still] = centroids[still]
    return moved


def mean_deviation(moved: Array, centroids: Array) -> float:
    """Return δ, one minus the mean cosine between the new centroids and the old.

    For unit vectors 1 − ⟨a, b⟩ = ‖a − b‖² / 2. This form is exactly 0 when nothing moved, where
    the other is left with rounding, or with 1 for a centroid that has no direction.
    """
    change = np.subtract(moved, centroids, dtype=np.float64)
    return float(np.vdot(change, change)) / (2 * len(centroids))


def draw_centroids(X: Array, n_clusters: int, init: Init, rng: np.random.Generator) -> IntArray:
    """Return the indices of the distinct rows that K-means starts from."""
    if init == "k-means++":
        return _draw_spread(X, n_clusters, rng)
    return rng.choice(len(X), n_clusters, replace=False)


def _draw_spread(X: Array, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """Draw rows one by one, each with probability in proportion to 1 − its best cosine so far.

    That is k-means++: on the sphere 1 − cosine is half the squared distance.
    """
    chosen = np.empty(n_clusters, dtype=np.intp)
    chosen[0] = rng.integers(len(X))
    distances = np.full(len(X), np.inf)
    for q in range(1, n_clusters):
        cosines = X @ X[chosen[q - 1]]
        np.minimum(distances, np.maximum(1.0 - cosines, 0.0), out=distances)
        distances[chosen[:q]] = 0.0
        cumulative = np.cumsum(distances)
        if cumulative[-1] > 0:
            chosen[q] = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
        else:  # only duplicates of chosen rows are left
            chosen[q] = rng.choice(np.setdiff1d(np.arange(len(X)), chosen[:q]))
    return chosen
