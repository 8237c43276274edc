"""The representatives: each class on the sphere, clustered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from kmeans_kernel._blocks import Array, IntArray
from kmeans_kernel._lssvm import DOUBLE_UP_TO
from kmeans_kernel._rows import Matrix
from kmeans_kernel._samples import Labelled, typical_length
from kmeans_kernel._sphere import unit_rows
from kmeans_kernel._spherical_kmeans import Clustering, Init, cluster
from kmeans_kernel._workers import ALONE, Workers

# Classes are clustered side by side when that keeps the workers busy for this share of the time,
# and one after another with threaded products otherwise.
_BUSY_ENOUGH = 0.85


class ClusterWatcher(Protocol):
    """Someone to tell how the clustering goes."""

    def iteration(self, label: object, n_iter: int, deviation: float) -> None:
        """Hear that K-means of the class `label` moved its centroids for the `n_iter`-th time."""

    def class_done(self, label: object, n_rows: int, found: Clustering) -> None:
        """Hear that K-means of the class `label` ended."""


class Unwatched:
    """A watcher that does nothing."""

    def iteration(self, label: object, n_iter: int, deviation: float) -> None:
        """Do nothing."""

    def class_done(self, label: object, n_rows: int, found: Clustering) -> None:
        """Do nothing."""


@dataclass(frozen=True, eq=False)
class Placement:
    """How rows are put on the sphere.

    Attributes
    ----------
    lift : the constant appended to each row
    scales : (d,) what each feature is multiplied by before, or None for ones
    """

    lift: float
    scales: Array | None = None

    @classmethod
    def of(cls, data: Labelled, lift: float | None, scales: Array | None = None) -> Placement:
        """Take the lift that is given, else the typical length of a row."""
        return cls(typical_length(data, scales) if lift is None else lift, scales)


@dataclass(frozen=True)
class KMeans:
    """How to cluster.

    Attributes
    ----------
    n_representatives : centroids of each class
    init, tol, max_iter : see `cluster`
    """

    n_representatives: int
    init: Init
    tol: float
    max_iter: int


@dataclass(frozen=True, eq=False)
class Representation:
    """The representatives of all classes.

    Attributes
    ----------
    directions : (m, d) unit rows; float64 when they are few
    owners : (m,) the position of the class of each
    counts : (m,) the weight of the rows that each stands for
    n_iter : (K,) K-means iterations of each class; 0 for a class without rows
    converged : (K,) whether K-means of each class reached the tolerance
    seconds : spent on the sphere and in K-means, added up over the classes
    """

    directions: Array
    owners: IntArray
    counts: npt.NDArray[Any]
    n_iter: IntArray
    converged: npt.NDArray[np.bool_]
    seconds: dict[str, float]


def represent(
    data: Labelled,
    kmeans: KMeans,
    placement: Placement,
    rngs: Sequence[np.random.Generator],
    watcher: ClusterWatcher,
    workers: Workers = ALONE,
) -> Representation:
    """Cluster every class, side by side where that keeps the workers busy, the largest first.

    The rows of a class are asked for when it is clustered, perhaps from another thread, and no more
    classes are held at a time than there are workers. There is one rng for each class.
    """

    def cluster_class(k: int) -> _Cluster:
        rows = np.flatnonzero(data.codes == k)
        weights = None if data.weights is None else data.weights[rows]
        return _cluster_class(
            lambda: unit_rows(
                # Rows that will stand for themselves are kept as exactly as they came.
                data.X[rows],
                placement.lift,
                np.float64 if len(rows) <= kmeans.n_representatives else np.float32,
                placement.scales,
            ),
            weights,
            data.classes[k],
            kmeans,
            rngs[k],
            watcher,
            workers,
        )

    present = [k for k, size in enumerate(data.class_sizes) if size]
    sizes = [data.class_sizes[k] for k in present]
    hands = workers if busy_share(sizes, workers.count) >= _BUSY_ENOUGH else ALONE
    largest_first = [present[k] for k in np.argsort(sizes)[::-1]]
    done = dict(zip(largest_first, hands.map(cluster_class, largest_first), strict=True))
    directions = np.concatenate([done[k].found.centroids for k in present])
    if len(directions) <= DOUBLE_UP_TO:
        directions = unit_rows(directions, dtype=np.float64)
    else:
        directions = directions.astype(np.float32, copy=False)
    n_iter = np.zeros(len(data.classes), dtype=np.intp)
    n_iter[present] = [done[k].found.n_iter for k in present]
    converged = np.ones(len(data.classes), dtype=bool)
    converged[present] = [done[k].found.converged for k in present]
    return Representation(
        directions=directions,
        owners=np.repeat(present, [len(done[k].found.centroids) for k in present]),
        counts=np.concatenate([done[k].counts for k in present]),
        n_iter=n_iter,
        converged=converged,
        seconds={
            "sphere": sum(c.sphere_seconds for c in done.values()),
            "kmeans": sum(c.kmeans_seconds for c in done.values()),
        },
    )


def busy_share(sizes: Sequence[int], n_workers: int) -> float:
    """Return the share of their time that workers are busy who each take the next largest piece."""
    loads = [0] * n_workers
    for size in sorted(sizes, reverse=True):
        loads[loads.index(min(loads))] += size
    return sum(loads) / (n_workers * max(loads))


@dataclass(frozen=True, eq=False)
class _Cluster:
    """A class after K-means, and the seconds it took."""

    found: Clustering
    counts: npt.NDArray[Any]
    sphere_seconds: float
    kmeans_seconds: float


def _cluster_class(
    make_rows: Callable[[], Matrix],
    weights: Array | None,
    label: object,
    kmeans: KMeans,
    rng: np.random.Generator,
    watcher: ClusterWatcher,
    workers: Workers,
) -> _Cluster:
    def on_iteration(n_iter: int, deviation: float) -> None:
        workers.checkpoint()
        watcher.iteration(label, n_iter, deviation)

    start = perf_counter()
    directions = make_rows()
    on_sphere = perf_counter()
    found = cluster(
        directions,
        kmeans.n_representatives,
        init=kmeans.init,
        tol=kmeans.tol,
        max_iter=kmeans.max_iter,
        rng=rng,
        weights=weights,
        on_iteration=on_iteration,
    )
    watcher.class_done(label, len(found.labels), found)
    counts: npt.NDArray[Any] = np.bincount(found.labels, weights, minlength=len(found.centroids))
    if weights is not None and (counts == np.rint(counts)).all():
        counts = counts.astype(np.intp)
    return _Cluster(found, counts, on_sphere - start, perf_counter() - on_sphere)
