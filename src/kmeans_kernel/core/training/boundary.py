"""Boundary rows: training rows near the decision boundary as additional representatives.

Centroids follow the density of the rows, but labels are decided at the boundary between classes. So
a share of the representatives may be training rows near it: the rows with the smallest margins, own
score minus best other score, of a model that is fitted on centroids alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import (
    FLOAT64_UP_TO,
    Array,
    IntArray,
    as_counts,
    dense,
    row_blocks,
    row_width,
)
from kmeans_kernel.core.arrays.rows import LabelledRows, TrainingRows, basis_size
from kmeans_kernel.core.clustering.assignment import assign, own_similarities
from kmeans_kernel.core.clustering.representatives import Representatives
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.training.config import TrainingConfig

# A row whose cosine with a representative of its class is within this of one adds nothing.
_DUPLICATE = 1e-6


def share_with_boundary(rows: TrainingRows, config: TrainingConfig) -> tuple[TrainingConfig, int]:
    """Return the configuration with fewer centroids, and the number of boundary rows to add.

    Their sum is the given number of representatives. If every row is a representative, the number
    of boundary rows is zero.
    """
    q, m = config.n_representatives, basis_size(rows, config.n_representatives)
    if config.boundary_fraction == 0 or m == len(rows):
        return config, 0
    fewer = max(1, round((1 - config.boundary_fraction) * q))
    return replace(config, n_representatives=fewer), m - basis_size(rows, fewer)


def add_boundary_rows(
    basis: Representatives,
    model: FittedModel,
    rows: LabelledRows,
    n_rows: int,
    executor: Executor = SERIAL,
) -> Representatives:
    """Return the representatives with the `n_rows` rows of smallest margin added.

    `model` is fitted on `basis` alone. The result is ordered by class, with the counts of rows
    assigned anew to the nearest representative of their class.
    """
    nearest_first = np.argsort(own_margins(model, rows, executor), kind="stable")
    taken: IntArray = np.empty(0, dtype=np.intp)
    while len(taken) < n_rows and len(nearest_first):
        some, nearest_first = np.split(nearest_first, [n_rows - len(taken)])
        taken = np.concatenate([taken, some[~is_represented(basis, rows, some)]])
    added = dense(rows.directions(taken, basis.directions.dtype))
    directions = np.concatenate([basis.directions, added])
    directions = directions.astype(np.float64 if len(directions) <= FLOAT64_UP_TO else np.float32)
    codes = np.concatenate([basis.codes, rows.codes[taken]])
    order = np.argsort(codes, kind="stable")
    joined = replace(basis, directions=directions[order], codes=codes[order])
    return replace(joined, counts=nearest_counts(joined, rows, executor))


def own_margins(model: FittedModel, rows: LabelledRows, executor: Executor = SERIAL) -> Array:
    """Return the (n,) margins: the score of the own class minus the best score of the others."""
    out = np.empty(len(rows))
    for block in row_blocks(len(rows), row_width(rows.X) + len(rows.classes)):
        scores = model.scores(rows.X[block], executor)
        own = np.arange(len(scores)), rows.codes[block]
        own_scores = scores[own]
        scores[own] = -np.inf
        out[block] = own_scores - scores.max(axis=1)
        executor.raise_if_cancelled()
    return out


def is_represented(
    basis: Representatives, rows: LabelledRows, some: IntArray
) -> npt.NDArray[np.bool_]:
    """Return whether each of some rows duplicates a representative of its class."""
    out = np.zeros(len(some), dtype=bool)
    for k in np.unique(rows.codes[some]):
        ours = np.flatnonzero(rows.codes[some] == k)
        centroids = _of_class(basis, k)
        unit = rows.directions(some[ours], np.float32)
        nearest = assign(unit, centroids).labels
        out[ours] = own_similarities(unit, centroids, nearest) > 1 - _DUPLICATE
    return out


def nearest_counts(
    basis: Representatives, rows: LabelledRows, executor: Executor = SERIAL
) -> npt.NDArray[Any]:
    """Return the (m,) total weight of the rows nearest to each representative of their class."""

    def of_class(k: int) -> npt.NDArray[Any]:
        mine, centroids = np.flatnonzero(rows.codes == k), _of_class(basis, k)
        nearest = assign(rows.directions(mine, np.float32), centroids).labels
        executor.raise_if_cancelled()
        return np.bincount(nearest, rows.row_weights[mine], minlength=len(centroids))

    present: list[int] = np.unique(basis.codes).tolist()
    return as_counts(np.concatenate(executor.map(of_class, present)))


def _of_class(basis: Representatives, k: int) -> Array:
    return np.asarray(basis.directions[basis.codes == k], dtype=np.float32)
