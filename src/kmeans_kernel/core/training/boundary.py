"""Representatives at the border: rows that a model finds hard, each standing for itself.

Centroids are where the rows are; what decides between classes is how the scores run where these
meet. So a part of the representatives may be rows there, which a model on fewer centroids finds:
those whose own class is the least ahead of the others, or the furthest behind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.blocking import Array, IntArray, row_blocks
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Data, Labelled, Placement
from kmeans_kernel.core.arrays.sparse import dense, row_width
from kmeans_kernel.core.clustering.assignment import assign, own_similarities
from kmeans_kernel.core.clustering.representatives import KMeans, Representation
from kmeans_kernel.core.model.fitted_model import FittedModel, whole_if_so
from kmeans_kernel.core.solvers.dual import DOUBLE_UP_TO

# A row is a representative already if its cosine with one of its class is as near to one.
_SAME = 1e-6


def split(data: Data, kmeans: KMeans, border: float) -> tuple[KMeans, int]:
    """Return how to cluster so that a share of the representatives is left, and how many that is.

    None is left where every row is a representative.
    """
    m = data.basis_size(kmeans.n_representatives)
    if border == 0 or m == len(data):
        return kmeans, 0
    fewer = max(1, round((1 - border) * kmeans.n_representatives))
    return replace(kmeans, n_representatives=fewer), m - data.basis_size(fewer)


def add_border(
    basis: Representation,
    model: FittedModel,
    data: Labelled,
    placement: Placement,
    n_rows: int,
    workers: Workers = ALONE,
) -> Representation:
    """Return representatives and, with them, the rows that a model on them finds hardest.

    Classes stay together, and each row counts for the nearest representative of its class.
    """
    hardest = np.argsort(margins(model, data, workers), kind="stable")
    hard: IntArray = np.empty(0, dtype=np.intp)
    while len(hard) < n_rows and len(hardest):
        some, hardest = np.split(hardest, [n_rows - len(hard)])
        hard = np.concatenate([hard, some[~represented(basis, data, placement, some)]])
    added = dense(placement.put(data.X[hard], basis.directions.dtype))
    directions = np.concatenate([basis.directions, added])
    directions = directions.astype(np.float64 if len(directions) <= DOUBLE_UP_TO else np.float32)
    owners = np.concatenate([basis.owners, data.codes[hard]])
    order = np.argsort(owners, kind="stable")
    joined = replace(basis, directions=directions[order], owners=owners[order])
    return replace(joined, counts=nearest_counts(joined, data, placement, workers))


def margins(model: FittedModel, data: Labelled, workers: Workers = ALONE) -> Array:
    """Return how far the score of its class is above the best of the others, for each row (n,)."""
    out = np.empty(len(data))
    for rows in row_blocks(len(data), row_width(data.X) + len(data.classes)):
        scores = model.scores(data.X[rows], workers)
        own = np.arange(len(scores)), data.codes[rows]
        mine = scores[own]
        scores[own] = -np.inf
        out[rows] = mine - scores.max(axis=1)
        workers.checkpoint()
    return out


def represented(
    basis: Representation, data: Labelled, placement: Placement, rows: IntArray
) -> npt.NDArray[np.bool_]:
    """Say which of some rows are representatives of their class already."""
    out = np.zeros(len(rows), dtype=bool)
    for k in np.unique(data.codes[rows]):
        ours = np.flatnonzero(data.codes[rows] == k)
        centroids = _of_class(basis, k)
        unit = placement.put(data.X[rows[ours]], np.float32)
        nearest = assign(unit, centroids).labels
        out[ours] = own_similarities(unit, centroids, nearest) > 1 - _SAME
    return out


def nearest_counts(
    basis: Representation, data: Labelled, placement: Placement, workers: Workers = ALONE
) -> npt.NDArray[Any]:
    """Return the weight of the rows that are nearest to each representative of their class (m,)."""

    def of_class(k: int) -> npt.NDArray[Any]:
        rows, centroids = np.flatnonzero(data.codes == k), _of_class(basis, k)
        nearest = assign(placement.put(data.X[rows], np.float32), centroids).labels
        workers.checkpoint()
        return np.bincount(nearest, data.weight_of_each[rows], minlength=len(centroids))

    present: list[int] = np.unique(basis.owners).tolist()
    return whole_if_so(np.concatenate(workers.map(of_class, present)))


def _of_class(basis: Representation, k: int) -> Array:
    return np.asarray(basis.directions[basis.owners == k], dtype=np.float32)
