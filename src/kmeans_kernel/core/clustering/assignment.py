"""Assignment of rows to their nearest centroids, with exact triangle-inequality pruning.

The pruning is that of Hamerly ("Making k-means even faster", SDM 2010), after Elkan (ICML 2003),
with angles in place of Euclidean distances. Angles between unit vectors obey the triangle
inequality: when a centroid turns by φ, its angle to any row changes by at most φ. Each row keeps an
upper bound `near` on the angle to its own centroid and a lower bound `far` on the angle to every
other centroid; while near < far, its label cannot have changed and no product is computed.
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

# Overheads in units of one row-centroid product: of a pass over all rows, per row, and of gathering
# a row for comparison with all centroids. Measured on 98,000 patches of 625 pixels; twice or half
# of either changes the time by a few per cent.
_COST_OF_A_PASS = 20
_COST_OF_GATHERING = 90

# Above this share of the products of the dense algorithm, pruning gains nothing.
_WORTH_SKIPPING = 0.9

_HIDDEN = -2.0  # below every cosine

# Cosines in float64 that differ by no more than this are ties.
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Assignment:
    """The nearest centroid of each row, with Hamerly's bounds.

    Attributes
    ----------
    labels : (n,) the nearest centroid
    near : (n,) upper bound on the angle to that centroid
    far : (n,) lower bound on the angle to every other centroid
    """

    labels: IntArray
    near: Array
    far: Array


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sufficient statistics of a Lloyd iteration, additive over blocks of rows.

    Attributes
    ----------
    sums : (Q, d) weighted sums of the rows nearest to each centroid
    counts : (Q,) total weights of these rows
    """

    sums: Array
    counts: Array

    def __add__(self, other: ClusterSums) -> ClusterSums:
        return ClusterSums(self.sums + other.sums, self.counts + other.counts)


def nearest_sums(X: Matrix, centroids: Array, weights: Array) -> ClusterSums:
    """Assign a block of unit rows to centroids, and return the sums of each cluster."""
    labels = assign(X, centroids).labels
    sums = cluster_sums(X, labels, len(centroids), weights)
    counts: Array = np.bincount(labels, weights, len(centroids)).astype(np.float64, copy=False)
    return ClusterSums(sums, counts)


def assign(X: Matrix, centroids: Array) -> Assignment:
    """Assign every unit row by comparison with every centroid; ties go to the first centroid.

    Near-ties within the rounding of the products are decided in float64, so that labels do not
    depend on how rows are divided into blocks.
    """
    n = n_rows(X)
    labels = np.empty(n, dtype=np.intp)
    best, second = np.empty((2, n), dtype=X.dtype)
    for rows, products in product_blocks(X, centroids):
        labels[rows], best[rows], second[rows] = _two_best(products)
    _decide_near_ties(X, np.arange(n), centroids, labels, best, second)
    return Assignment(labels, *_bounds(best, second, X.shape[1]))


def reassign(X: Matrix, centroids: Array, before: Assignment, turns: Array) -> Assignment:
    """Update an assignment after each centroid has turned by an angle of at most `turns` (Q,).

    Returns the labels that `assign` would, up to ties within the rounding of the products. The
    centroids that turned most are compared with all rows, so that one fast centroid does not loosen
    every bound. The others turned by at most `slack`, which proves most labels unchanged; only the
    remaining rows are compared with every centroid.
    """
    near = before.near + turns[before.labels]
    order = np.argsort(-turns)
    n_fast, slack, cost = _cheapest_split(np.sort(before.far - near), turns[order], len(turns))
    if cost > _WORTH_SKIPPING * n_rows(X) * len(turns):
        return assign(X, centroids)
    far = before.far - slack
    if n_fast:
        _compare_with_fast(X, centroids, order[:n_fast], before.labels, near, far)
    labels = before.labels.copy()
    open_rows = _rows_in_doubt(X, centroids, labels, near, far)
    for rows, products in gathered_product_blocks(X, open_rows, centroids):
        found, best, second = _two_best(products)
        _decide_near_ties(X, rows, centroids, found, best, second)
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
    """Return the (Q, d) float64 weighted sums of the rows of each cluster: R̂ᵀX, step 5."""
    sums = np.zeros((n_clusters, X.shape[1]))
    for rows in row_blocks(n_rows(X), row_width(X)):
        sums += _scatter(X[rows], labels[rows], n_clusters, weights[rows])
    return sums


def update_sums(
    out: Array, X: Matrix, before: IntArray, after: IntArray, weights: Array
) -> IntArray:
    """Update the cluster sums in `out` by the rows that changed cluster.

    Returns the clusters that gained or lost a row.
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
    """Return the argmax, the largest and the second largest entry of each row.

    Overwrites `products`.
    """
    rows = np.arange(len(products))
    labels = products.argmax(axis=1)
    best = products[rows, labels]
    products[rows, labels] = _HIDDEN
    return labels, best, products.max(axis=1)


def _decide_near_ties(
    X: Matrix, rows: IntArray, centroids: Array, labels: IntArray, best: Array, second: Array
) -> None:
    """Decide in float64 the rows whose two largest cosines are equal within rounding.

    Corrects `labels` in place; where a label changes, the old best cosine becomes the second.
    """
    close = np.flatnonzero(best - second <= 2 * _rounding(best, X.shape[1]))
    for block in row_blocks(len(close), len(centroids) + X.shape[1]):
        some = close[block]
        exact = dense(X[rows[some]]).astype(np.float64) @ centroids.T.astype(np.float64)
        found = (exact >= exact.max(axis=1, keepdims=True) - _TIE).argmax(axis=1)
        other = found != labels[some]
        second[some[other]] = best[some[other]]
        labels[some] = found


def _bounds(best: Array, others: Array, n_features: int) -> tuple[Array, Array]:
    """Return upper bounds on the angles of cosines `best`, lower bounds on those of `others`."""
    rounding = _rounding(best, n_features)
    return _angle(best, -rounding), _angle(others, rounding)


def _angle(cosines: Array, shift: float) -> Array:
    return np.asarray(np.arccos(np.clip(cosines.astype(np.float64) + shift, -1.0, 1.0)))


def _rounding(products: Array, n_features: int) -> float:
    """Return a bound on the rounding error of an inner product of `n_features` terms."""
    return 2.0 * float(np.finfo(products.dtype).eps) * float(np.sqrt(n_features))


def _cheapest_split(gaps: Array, turns: Array, n_centroids: int) -> tuple[int, float, float]:
    """Choose the number of fastest centroids to compare with all rows, by the least cost.

    Parameters
    ----------
    gaps : (n,) ascending: far − near, the angle by which other centroids may turn before the label
        of the row is in doubt
    turns : (Q,) descending: the angles by which the centroids turned
    n_centroids : Q

    Returns
    -------
    the number of fast centroids, the largest turn of the others, and the cost in products
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


def _compare_with_fast(
    X: Matrix, centroids: Array, fast: IntArray, labels: IntArray, near: Array, far: Array
) -> None:
    """Compare every row with the `fast` centroids, and update `near` and `far` in place."""
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


def _rows_in_doubt(
    X: Matrix, centroids: Array, labels: IntArray, near: Array, far: Array
) -> IntArray:
    """Return the rows whose label is in doubt even with the exact angle to their own centroid.

    Tightens `near` of the rows in doubt in place, as Hamerly's algorithm does.
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
