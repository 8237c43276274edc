"""Online spherical K-means: centroids of a class, updated by batches of rows in one pass.

The first distinct rows of a class become its centroids. Each further row is added to its nearest
centroid, which moves to the direction of the sum of its rows; earlier rows are not assigned again.
Memory holds the sums and counts of the centroids, for any number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kmeans_kernel.core.arrays.matrices import Array, IntArray, Matrix, dense, n_rows
from kmeans_kernel.core.clustering.assignment import nearest_sums
from kmeans_kernel.core.clustering.spherical_kmeans import move_centroids

# Rows with a cosine above this are duplicates, of which one becomes a centroid.
_DUPLICATE = 1 - 1e-6

# Rows compared with each other at a time: bounds the matrix of their cosines.
_ROWS_AT_A_TIME = 256


@dataclass(frozen=True, eq=False)
class OnlineCentroids:
    """The centroids of a class after the batches so far.

    Attributes
    ----------
    centroids : (Q, d) unit rows
    sums : (Q, d) float64 weighted sums of the rows of each centroid
    counts : (Q,) total weights of these rows
    """

    centroids: Array
    sums: Array
    counts: Array

    @classmethod
    def empty(cls, d: int) -> OnlineCentroids:
        """Return the state before the first row, without centroids."""
        return cls(np.empty((0, d), dtype=np.float32), np.empty((0, d)), np.empty(0))

    def update(self, U: Matrix, weights: Array, most: int) -> OnlineCentroids:
        """Return the centroids, at most `most`, after a batch of unit rows."""
        taken = self._new(U, max(0, most - len(self.counts)))
        grown = self._with(dense(U[taken]), weights[taken])
        others = np.setdiff1d(np.arange(n_rows(U)), taken)
        if not len(others):
            return grown
        rest = nearest_sums(U[others], grown.centroids, weights[others])
        sums = grown.sums + rest.sums
        moved = move_centroids(grown.centroids, sums)
        return OnlineCentroids(moved, sums, grown.counts + rest.counts)

    def _new(self, U: Matrix, room: int) -> IntArray:
        """Return the first rows, at most `room`, that duplicate no centroid and no earlier row."""
        taken: list[int] = []
        seen = self.centroids
        for start in range(0, n_rows(U) if room else 0, _ROWS_AT_A_TIME):
            rows = dense(U[start : start + _ROWS_AT_A_TIME])
            like = (rows @ seen.T).max(axis=1, initial=-1.0) > _DUPLICATE
            among = np.triu(rows @ rows.T > _DUPLICATE, 1)
            for k in range(len(rows)):
                if len(taken) < room and not like[k]:
                    taken.append(start + k)
                    like |= among[k]
            if len(taken) == room:
                break
            seen = np.concatenate([self.centroids, dense(U[taken])])
        return np.array(taken, dtype=np.intp)

    def _with(self, rows: Array, weights: Array) -> OnlineCentroids:
        """Return the centroids with rows appended as new centroids."""
        return OnlineCentroids(
            np.concatenate([self.centroids, rows.astype(np.float32, copy=False)]),
            np.concatenate([self.sums, rows * weights[:, None]]),
            np.concatenate([self.counts, weights]),
        )
