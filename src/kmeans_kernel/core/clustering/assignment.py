"""Which centroid is nearest to each row, without looking at what cannot have changed.

Rows and centroids are unit vectors, and the angle between unit vectors obeys the triangle
inequality: when a centroid turns by φ, its angle to any row changes by at most φ. So for each row
it is enough to know that its own centroid is at most `near` away and every other at least `far`:
as long as near < far, its label stands and no product need be computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from kmeans_kernel.core.arrays.matrices import (
    Array,
    IntArray,
    Matrix,
    dense,
    gathered_product_blocks,
    is_sparse,
    n_rows,
    paired_products,
    product_blocks,
    row_blocks,
    row_width,
)

# Beside its products, a pass over all rows costs about as much as this many more per row, and
# gathering a row to look at it afresh as much as this many. Measured on 98,000 patches of 625
# pixels; twice or half of either changes the time by a few per cent.
_COST_OF_A_PASS = 20
_COST_OF_GATHERING = 90

# Above this share of the dense work, skipping gains nothing over doing all of it.
_WORTH_SKIPPING = 0.9

_HIDDEN = -2.0  # below every cosine

# Cosines in float64 that differ by no more are equal.
_EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class Assignment:
    """The nearest centroid of each row, and how safely so.

    Attributes
    ----------
    labels : (n,) the nearest centroid
    near : (n,) the angle to that centroid is at most this
    far : (n,) the angle to every other centroid is at least this
    """

    labels: IntArray
    near: Array
    far: Array


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """What K-means needs of rows; that of all rows is the sum of that of the blocks.

    Attributes
    ----------
    sums : (Q, d) weighted sums of the rows nearest to each centroid
    counts : (Q,) the sums of their weights
    """

    sums: Array
    counts: Array

    def __add__(self, other: ClusterSums) -> ClusterSums:
        return ClusterSums(self.sums + other.sums, self.counts + other.counts)


def nearest_sums(X: Matrix, centroids: Array, weights: Array) -> ClusterSums:
    """Return what K-means needs of a block of unit rows."""
    labels = assign(X, centroids).labels
    sums = cluster_sums(X, labels, len(centroids), weights)
    counts: Array = np.bincount(labels, weights, len(centroids)).astype(np.float64, copy=False)
    return ClusterSums(sums, counts)


def assign(X: Matrix, centroids: Array) -> Assignment:
    """Compare every unit row with every centroid; ties go to the first.

    Where rounding could decide, float64 does: so labels do not depend on how rows come in blocks.
    """
    n = n_rows(X)
    labels = np.empty(n, dtype=np.intp)
    best, second = np.empty((2, n), dtype=X.dtype)
    for rows, products in product_blocks(X, centroids):
        labels[rows], best[rows], second[rows] = _two_best(products)
    _settle(X, np.arange(n), centroids, labels, best, second)
    return Assignment(labels, *_bounds(best, second, X.shape[1]))


def reassign(X: Matrix, centroids: Array, before: Assignment, turns: Array) -> Assignment:
    """Compare again after each centroid has turned by an angle of at most `turns` (Q,).

    Gives the labels that `assign` would, up to ties within the rounding of the products. The
    centroids that turned most are compared with all rows; that the others turned at most `slack`
    then settles most labels, and only the rest of the rows are compared with every centroid.
    """
    near = before.near + turns[before.labels]
    order = np.argsort(-turns)
    n_fast, slack, cost = _cheapest_split(np.sort(before.far - near), turns[order], len(turns))
    if cost > _WORTH_SKIPPING * n_rows(X) * len(turns):
        return assign(X, centroids)
    far = before.far - slack
    if n_fast:
        _compare_with(X, centroids, order[:n_fast], before.labels, near, far)
    labels = before.labels.copy()
    open_rows = _tighten(X, centroids, labels, near, far)
    for rows, products in gathered_product_blocks(X, open_rows, centroids):
        found, best, second = _two_best(products)
        _settle(X, rows, centroids, found, best, second)
        labels[rows] = found
        near[rows], far[rows] = _bounds(best, second, X.shape[1])
    return Assignment(labels, near, far)


def own_similarities(X: Matrix, centroids: Array, labels: IntArray) -> Array:
    """Return the cosine of each row with the centroid of its label."""
    similarities = np.empty(n_rows(X), dtype=X.dtype)
    for rows in row_blocks(n_rows(X), row_width(X)):
        similarities[rows] = paired_products(X[rows], centroids, labels[rows])
    return similarities


def cluster_sums(X: Matrix, labels: IntArray, n_clusters: int, weights: Array) -> Array:
    """Return the (Q, d) float64 weighted sums of the rows of each cluster: R̂ᵀX, R̂ sparse."""
    sums = np.zeros((n_clusters, X.shape[1]))
    for rows in row_blocks(n_rows(X), row_width(X)):
        sums += _scatter(X[rows], labels[rows], n_clusters, weights[rows])
    return sums


def update_sums(
    out: Array, X: Matrix, before: IntArray, after: IntArray, weights: Array
) -> IntArray:
    """Bring the sums in `out` up to date after some rows went from one cluster to another.

    Returns the clusters that a row came to or left.
    """
    changed = np.flatnonzero(before != after)
    touched, places = np.unique(
        np.concatenate([after[changed], before[changed]]), return_inverse=True
    )
    came, left = places[: len(changed)], places[len(changed) :]
    for block in row_blocks(len(changed), row_width(X)):
        rows, heavy = X[changed[block]], weights[changed[block]]
        out[touched] += _scatter(rows, came[block], len(touched), heavy)
        out[touched] -= _scatter(rows, left[block], len(touched), heavy)
    return touched


def _two_best(products: Array) -> tuple[IntArray, Array, Array]:
    """Return the column of the largest entry of each row, that entry, and the next largest.

    Overwrites `products`.
    """
    rows = np.arange(len(products))
    labels = products.argmax(axis=1)
    best = products[rows, labels]
    products[rows, labels] = _HIDDEN
    return labels, best, products.max(axis=1)


def _settle(
    X: Matrix, rows: IntArray, centroids: Array, labels: IntArray, best: Array, second: Array
) -> None:
    """Decide in float64 where the two best cosines of some rows are equal but for rounding.

    Corrects `labels`, and `second` where what was the best is so no more.
    """
    close = np.flatnonzero(best - second <= 2 * _rounding(best, X.shape[1]))
    for block in row_blocks(len(close), len(centroids) + X.shape[1]):
        some = close[block]
        exact = dense(X[rows[some]]).astype(np.float64) @ centroids.T.astype(np.float64)
        found = (exact >= exact.max(axis=1, keepdims=True) - _EQUAL).argmax(axis=1)
        other = found != labels[some]
        second[some[other]] = best[some[other]]
        labels[some] = found


def _bounds(best: Array, others: Array, n_features: int) -> tuple[Array, Array]:
    """Return angles safely above those of the cosines `best` and below those of `others`."""
    rounding = _rounding(best, n_features)
    return _angle(best, -rounding), _angle(others, rounding)


def _angle(cosines: Array, shift: float) -> Array:
    return np.asarray(np.arccos(np.clip(cosines.astype(np.float64) + shift, -1.0, 1.0)))


def _rounding(products: Array, n_features: int) -> float:
    """Return how far a product of `n_features` terms may be off."""
    return 2.0 * float(np.finfo(products.dtype).eps) * float(np.sqrt(n_features))


def _cheapest_split(gaps: Array, turns: Array, n_centroids: int) -> tuple[int, float, float]:
    """Choose how many of the fastest centroids to compare with all rows.

    Parameters
    ----------
    gaps : (n,) ascending: how much the other centroids may turn before the row must be looked at
    turns : (Q,) descending
    n_centroids : Q

    Returns
    -------
    the number of fast centroids, the most that the others turned, and the products that it takes
    """
    n_moved = int(np.count_nonzero(turns))
    steps = np.geomspace(1, n_centroids, 20).astype(np.intp)
    n_fast = np.unique(np.concatenate([[0, n_moved], steps]))
    slack = np.append(turns, 0.0)[n_fast]
    n_open = np.searchsorted(gaps, slack, side="right")
    cost_of_pass = (n_fast + _COST_OF_A_PASS * (n_fast > 0)) * len(gaps)
    cost = cost_of_pass + n_open * (n_centroids + _COST_OF_GATHERING)
    cheapest = int(cost.argmin())
    return int(n_fast[cheapest]), float(slack[cheapest]), float(cost[cheapest])


def _compare_with(
    X: Matrix, centroids: Array, fast: IntArray, labels: IntArray, near: Array, far: Array
) -> None:
    """Compare every row with the `fast` centroids; lowers `near` and `far` to what was seen."""
    place = np.full(len(centroids), -1)
    place[fast] = np.arange(len(fast))
    for rows, products in product_blocks(X, centroids[fast]):
        own = place[labels[rows]]
        among = np.flatnonzero(own >= 0)  # rows whose own centroid is one of the fast
        best = products[among, own[among]]
        products[among, own[among]] = _HIDDEN
        seen_near, seen_far = _bounds(best, products.max(axis=1), X.shape[1])
        near[rows][among] = seen_near
        np.minimum(far[rows], seen_far, out=far[rows])


def _tighten(X: Matrix, centroids: Array, labels: IntArray, near: Array, far: Array) -> IntArray:
    """Return the rows whose label is in doubt, after a look at their own centroid alone.

    Lowers `near` of the rows that were looked at.
    """
    doubtful = np.flatnonzero(near >= far)
    for block in row_blocks(len(doubtful), row_width(X)):
        rows = doubtful[block]
        own = own_similarities(X[rows], centroids, labels[rows])
        near[rows] = _angle(own, -_rounding(own, X.shape[1]))
    return doubtful[near[doubtful] >= far[doubtful]]


def _scatter(rows: Matrix, labels: IntArray, n_clusters: int, weights: Array) -> Array:
    """Return the (Q, d) float64 weighted sums of a block of rows by their labels."""
    n = len(labels)
    members = csr_array((weights, labels, np.arange(n + 1)), shape=(n, n_clusters))
    sums = members.T @ rows.astype(np.float64, copy=False)
    return dense(csr_array(sums)) if is_sparse(rows) else np.asarray(sums)
