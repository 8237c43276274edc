"""Spherical K-means (Dhillon and Modha 2001): the paper's nine steps, in blocked matrix products.

Step 1, the matrix of the samples, is the caller's: X (n, d), unit rows. The products are computed
in its type (float32 in the library, float64 in tests); sums, norms and the deviation are always
float64.

I. S. Dhillon and D. S. Modha, "Concept decompositions for large sparse text data using clustering",
Machine Learning 42, 2001.
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

# Cluster sums are updated by the rows that change cluster. Rounding accumulates, so the sums are
# recomputed from all rows after this many iterations.
_ITERATIONS_BETWEEN_FULL_SUMS = 50


@dataclass(frozen=True, eq=False)
class Clustering:
    """The state of K-means: Q centroids and, after the last iteration, the labels of the n rows.

    Attributes
    ----------
    centroids : (Q, d) unit rows
    labels : (n,) the nearest centroid of each row; empty before the last iteration
    n_iter : number of Lloyd iterations
    deviation : δ of the last iteration
    """

    centroids: Array
    labels: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_iter: int = 0
    deviation: float = np.inf

    def goes_on(self, tol: float, max_iter: int) -> bool:
        """Return whether to iterate again: the stopping rule, step 9."""
        return self.deviation > tol and self.n_iter < max_iter

    def step(self, sums: Array, touched: IntArray) -> tuple[Clustering, Array]:
        """Move the `touched` centroids to the directions of their sums (Q, d): steps 6 to 8.

        Returns the new state and the (Q,) chords, the distances between old and new centroids.
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
    """Cluster rows, trusted to be unit rows, by cosine.

    If there are no more rows than clusters, each row is its own centroid. A row of weight 2 counts
    as two rows. `start` (q, d) are initial centroids for a warm start: the first `n_clusters` of
    them are used, and missing ones are drawn from the rows.
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
    """Return the drawn initial centroids, the first of them replaced by the rows of `start`."""
    if start is None:
        return drawn
    start = start[: len(drawn)].astype(drawn.dtype, copy=False)
    return np.concatenate([start, drawn[len(start) :]])


def move_centroids(centroids: Array, sums: Array) -> Array:
    """Return the directions of the sums; a centroid whose sum is zero stays where it is.

    The sum of an empty cluster is zero. Rows have length one, so a sum of length `_SHORTEST_SUM` or
    less is zero up to rounding.
    """
    moved: Array = unit_rows(sums, dtype=centroids.dtype)
    still = np.linalg.norm(sums, axis=1) <= _SHORTEST_SUM
    moved[still] = centroids[still]
    return moved


def distances(moved: Array, centroids: Array) -> Array:
    """Return the (Q,) distances between new and old centroids, in float64."""
    return np.asarray(np.linalg.norm(np.subtract(moved, centroids, dtype=np.float64), axis=1))


def mean_deviation(chords: Array) -> float:
    """Return δ, one minus the mean cosine between new and old centroids, from their distances.

    For unit vectors 1 − ⟨a, b⟩ = ‖a − b‖² / 2. The right side is exactly 0 if no centroid moved;
    the left side leaves rounding, or 1 for a centroid that is the zero vector.
    """
    return float(chords @ chords) / (2 * len(chords))


def turned_angles(chords: Array) -> Array:
    """Return upper bounds on the angles between unit vectors at these distances."""
    return np.asarray(2.0 * np.arcsin(np.minimum(chords / 2.0, 1.0)) * (1 + 1e-6))


def draw_centroids(
    X: Matrix,
    n_clusters: int,
    init: Init,
    rng: np.random.Generator,
    weights: Array | None = None,
) -> IntArray:
    """Draw the indices of distinct rows as initial centroids, in proportion to the weights."""
    if init == "k-means++":
        return _draw_kmeans_plus_plus(X, n_clusters, rng, weights)
    shares = None if weights is None else weights / weights.sum()
    return rng.choice(n_rows(X), n_clusters, replace=False, p=shares)


def _draw_kmeans_plus_plus(
    X: Matrix, n_clusters: int, rng: np.random.Generator, weights: Array | None
) -> IntArray:
    """Draw rows by k-means++: each in proportion to 1 − its largest cosine with the rows drawn.

    On the sphere 1 − cosine is half the squared distance (Arthur and Vassilvitskii, SODA 2007).
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
        else:  # all other rows are duplicates of chosen rows
            chosen[q] = rng.choice(np.setdiff1d(np.arange(n), chosen[:q]))
    return chosen
