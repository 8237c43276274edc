"""Representatives of a stream that passes once: mini-batch K-means, kept up with counts.

The first rows of a class are its centroids. Each further row is added to the centroid nearest to
it, which moves to the direction of the sum of all its rows; rows that came before are not looked at
again. What is kept is the sums and the counts, whatever number of rows has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.blocking import Array, IntArray
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Labelled, Placement
from kmeans_kernel.core.arrays.sparse import Matrix, dense, n_rows
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering.assignment import nearest_sums
from kmeans_kernel.core.clustering.representatives import Representation
from kmeans_kernel.core.clustering.spherical_kmeans import move_centroids
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.model.fitted_model import FittedModel, whole_if_so
from kmeans_kernel.core.solvers.dual import DOUBLE_UP_TO
from kmeans_kernel.core.training.fit import Fit, fit

# Rows with a cosine above this are taken for equal.
_EQUAL = 1 - 1e-6

# So many rows are looked at at a time.
_LOOKED_AT = 256


@dataclass(frozen=True, eq=False)
class Running:
    """The centroids of a class, as they are now.

    Attributes
    ----------
    centroids : (Q, d) unit rows
    sums : (Q, d) float64 weighted sums of the rows of each
    counts : (Q,) the weight of these rows
    """

    centroids: Array
    sums: Array
    counts: Array

    @classmethod
    def empty(cls, d: int) -> Running:
        """Start without rows."""
        return cls(np.empty((0, d), dtype=np.float32), np.empty((0, d)), np.empty(0))

    def after(self, U: Matrix, weights: Array, most: int) -> Running:
        """Return the centroids, at most so many, after a batch of unit rows."""
        taken = self._new(U, max(0, most - len(self.counts)))
        grown = self._with(dense(U[taken]), weights[taken])
        others = np.setdiff1d(np.arange(n_rows(U)), taken)
        if not len(others):
            return grown
        rest = nearest_sums(U[others], grown.centroids, weights[others])
        sums = grown.sums + rest.sums
        moved = move_centroids(grown.centroids, sums)
        return Running(moved, sums, grown.counts + rest.counts)

    def _new(self, U: Matrix, room: int) -> IntArray:
        """Return the first rows, for which there is room, that are not like a centroid."""
        taken: list[int] = []
        seen = self.centroids
        for start in range(0, n_rows(U) if room else 0, _LOOKED_AT):
            rows = dense(U[start : start + _LOOKED_AT])
            like = (rows @ seen.T).max(axis=1, initial=-1.0) > _EQUAL
            among = np.triu(rows @ rows.T > _EQUAL, 1)
            for k in range(len(rows)):
                if len(taken) < room and not like[k]:
                    taken.append(start + k)
                    like |= among[k]
            if len(taken) == room:
                break
            seen = np.concatenate([self.centroids, dense(U[taken])])
        return np.array(taken, dtype=np.intp)

    def _with(self, rows: Array, weights: Array) -> Running:
        """Return the centroids and rows that become some."""
        return Running(
            np.concatenate([self.centroids, rows.astype(np.float32, copy=False)]),
            np.concatenate([self.sums, rows * weights[:, None]]),
            np.concatenate([self.counts, weights]),
        )


@dataclass(frozen=True, eq=False)
class Online:
    """What is kept of a stream.

    Attributes
    ----------
    classes : (K,) the labels, those of which no row has come included
    running : the centroids of each
    kernel, regularization, placement : of the model
    """

    classes: npt.NDArray[np.generic]
    running: Sequence[Running]
    kernel: Kernel
    regularization: float
    placement: Placement

    @classmethod
    def empty(
        cls, batch: Labelled, kernel: Kernel, regularization: float, placement: Placement
    ) -> Online:
        """Start for rows like those of a batch."""
        width = batch.width + (placement.lift > 0)
        running = [Running.empty(width) for _ in batch.classes]
        return cls(batch.classes, running, kernel, regularization, placement)

    @classmethod
    def of(cls, model: FittedModel, regularization: float) -> Online:
        """Go on from a fitted model, whose representatives stand for as many rows as they do."""
        running = []
        for k in range(len(model.classes)):
            own = model.representative_classes == k
            counts = model.representative_counts[own].astype(np.float64)
            centroids = model.directions[own].astype(np.float32)
            running.append(Running(centroids, centroids * counts[:, None], counts))
        placement = Placement(model.lift, model.feature_scales)
        return cls(model.classes, running, model.kernel, regularization, placement)

    def after(self, batch: Labelled, most: int, workers: Workers = ALONE) -> Online:
        """Return what is kept after a batch; each class has at most so many centroids."""

        def after(k: int) -> Running:
            rows = np.flatnonzero(batch.codes == k)
            if not len(rows):
                return self.running[k]
            U = self.placement.put(batch.X[rows], np.float32)
            return self.running[k].after(U, batch.weight_of_each[rows], most)

        return replace(self, running=workers.map(after, range(len(self.classes))))

    def fit(self, workers: Workers = ALONE) -> Fit:
        """Fit to the representatives, each as heavy as the rows that it stands for.

        The error of one that stands for twice as many rows as usual may cost twice as much: ε is
        divided by that.
        """
        directions = np.concatenate([one.centroids for one in self.running])
        if len(directions) <= DOUBLE_UP_TO:
            directions = unit_rows(directions, dtype=np.float64)
        counts = np.concatenate([one.counts for one in self.running])
        sizes = [len(one.counts) for one in self.running]
        K = len(self.classes)
        basis = Representation(
            directions=directions,
            owners=np.repeat(np.arange(K), sizes),
            counts=whole_if_so(counts),
            n_iter=np.ones(K, dtype=np.intp),
            converged=np.ones(K, dtype=bool),
            seconds={},
        )
        nothing = Labelled(np.empty((0, 1)), np.empty(0, dtype=np.intp), self.classes)
        # One that stands for nothing has no say: as little as the smallest that does.
        penalties = self.regularization * counts.mean() / np.maximum(counts, _least(counts))
        return fit(
            nothing, self.placement, basis, self.kernel, penalties, "representatives",
            workers=workers,
        )  # fmt: skip


def _least(counts: Array) -> float:
    return float(counts[counts > 0].min(initial=1.0))
