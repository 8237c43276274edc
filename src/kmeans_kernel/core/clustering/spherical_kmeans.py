"""Cosine K-means on the unit sphere: the paper's nine steps, in blocked matrix products.

Step 1, the matrix of the samples, is the caller's: X (n, d), unit rows. Its type decides the
arithmetic of the products (float32 in the library, float64 in tests); sums, norms and the
deviation are float64 always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.matrices import Array, IntArray, Matrix, dense, n_rows
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering.assignment import (
    assign,
    cluster_sums,
    reassign,
    update_sums,
)

Init: TypeAlias = Literal["random", "k-means++"]
OnIteration: TypeAlias = Callable[[int, float], None]

_SHORTEST_SUM = 1e-12

# Sums are updated by the rows that change cluster; rounding adds up, so they are computed anew now
# and then.
_ITERATIONS_BETWEEN_FULL_SUMS = 50


@dataclass(frozen=True, eq=False)
class Clustering:
    """The state of K-means: Q centroids and, once it has ended, the cluster of each of the n rows.

    Attributes
    ----------
    centroids : (Q, d) unit rows
    labels : (n,) the centroid nearest to each row; empty while K-means is under way
    n_iter : number of moves of the centroids
    deviation : δ at the last move
    """

    centroids: Array
    labels: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_iter: int = 0
    deviation: float = np.inf

    def goes_on(self, tol: float, max_iter: int) -> bool:
        """Say whether there is to be another move: step 9."""
        return self.deviation > tol and self.n_iter < max_iter

    def step(self, sums: Array, touched: IntArray) -> tuple[Clustering, Array]:
        """Move the `touched` centroids to the sums (Q, d) of their rows: steps 6 to 8.

        Returns the (Q,) distances that they moved, too.
        """
        moved = move_centroids(self.centroids[touched], sums[touched])
        chords = np.zeros(len(self.centroids))
        chords[touched] = distances(moved, self.centroids[touched])
        centroids = self.centroids.copy()
        centroids[touched] = moved
        step = Clustering(
            centroids, self.labels, n_iter=self.n_iter + 1, deviation=mean_deviation(chords)
        )
        return step, chords


def cluster(
    X: Matrix,
    n_clusters: int,
    *,
    init: Init,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    weights: Array | None = None,
    on_iteration: OnIteration | None = None,
    start: Array | None = None,
) -> Clustering:
    """Cluster unit rows, trusted to be so, around `n_clusters` centroids by cosine.

    With as many clusters as rows, or more, each row is its own centroid. A row of weight 2 counts
    as two. `start` (q, d) are centroids to start from, the first of them if there are too many;
    what is missing is drawn from the rows.
    """
    n = n_rows(X)
    if n_clusters >= n:
        return Clustering(dense(X).copy(), np.arange(n), n_iter=1, deviation=0.0)
    centroids = dense(X[draw_centroids(X, n_clusters, init, rng, weights)])  # step 2
    centroids = warm_started(centroids, start)
    weights = np.ones(n) if weights is None else weights
    found = assign(X, centroids)  # steps 3 and 4
    sums = cluster_sums(X, found.labels, n_clusters, weights)  # step 5
    touched = np.arange(n_clusters)  # the centroids that may move
    state = Clustering(centroids)
    while state.goes_on(tol, max_iter):
        state, chords = state.step(sums, touched)
        before = found
        found = reassign(X, state.centroids, before, turned_angles(chords))  # 3 and 4 again
        if state.n_iter % _ITERATIONS_BETWEEN_FULL_SUMS == 0:
            sums = cluster_sums(X, found.labels, n_clusters, weights)
            touched = np.arange(n_clusters)
        else:
            touched = update_sums(sums, X, before.labels, found.labels, weights)
        if on_iteration is not None:
            on_iteration(state.n_iter, state.deviation)
    return replace(state, labels=found.labels)


def warm_started(drawn: Array, start: Array | None) -> Array:
    """Return centroids that were drawn, the first of them replaced by those to start from."""
    if start is None:
        return drawn
    start = start[: len(drawn)].astype(drawn.dtype, copy=False)
    return np.concatenate([start, drawn[len(start) :]])


def move_centroids(centroids: Array, sums: Array) -> Array:
    """Return the directions of the sums; where a sum is zero the centroid keeps its place.

    An empty cluster has a zero sum, so it too keeps its centroid. Rows have length one, so a sum
    as short as `_SHORTEST_SUM` is zero but for rounding.
    """
    moved: Array = unit_rows(sums, dtype=centroids.dtype)
    still = np.linalg.norm(sums, axis=1) <= _SHORTEST_SUM
    moved[still] = centroids[still]
    return moved


def distances(moved: Array, centroids: Array) -> Array:
    """Return the (Q,) distances between the new centroids and the old, in float64."""
    return np.asarray(np.linalg.norm(np.subtract(moved, centroids, dtype=np.float64), axis=1))


def mean_deviation(chords: Array) -> float:
    """Return δ, one minus the mean cosine between new centroids and old, from their distances.

    For unit vectors 1 − ⟨a, b⟩ = ‖a − b‖² / 2. This form is exactly 0 when nothing moved, where
    the other is left with rounding, or with 1 for a centroid that has no direction.
    """
    return float(chords @ chords) / (2 * len(chords))


def turned_angles(chords: Array) -> Array:
    """Return angles at least as large as those between unit vectors at these distances."""
    return np.asarray(2.0 * np.arcsin(np.minimum(chords / 2.0, 1.0)) * (1 + 1e-6))


def draw_centroids(
    X: Matrix,
    n_clusters: int,
    init: Init,
    rng: np.random.Generator,
    weights: Array | None = None,
) -> IntArray:
    """Return the indices of the distinct rows that K-means starts from, the heavy ones sooner."""
    if init == "k-means++":
        return _draw_spread(X, n_clusters, rng, weights)
    shares = None if weights is None else weights / weights.sum()
    return rng.choice(n_rows(X), n_clusters, replace=False, p=shares)


def _draw_spread(
    X: Matrix, n_clusters: int, rng: np.random.Generator, weights: Array | None
) -> IntArray:
    """Draw rows one by one, each with probability in proportion to 1 − its best cosine so far.

    That is k-means++: on the sphere 1 − cosine is half the squared distance.
    """
    n = n_rows(X)
    chosen = np.empty(n_clusters, dtype=np.intp)
    if weights is None:
        chosen[0] = rng.integers(n)
        weights = np.ones(n)
    else:
        chosen[0] = rng.choice(n, p=weights / weights.sum())
    distances = np.full(n, np.inf)
    for q in range(1, n_clusters):
        cosines = X @ dense(X[[chosen[q - 1]]])[0]
        np.minimum(distances, np.maximum(1.0 - cosines, 0.0), out=distances)
        distances[chosen[:q]] = 0.0
        cumulative = np.cumsum(weights * distances)
        if cumulative[-1] > 0:
            chosen[q] = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
        else:  # only duplicates of chosen rows are left
            chosen[q] = rng.choice(np.setdiff1d(np.arange(n), chosen[:q]))
    return chosen
