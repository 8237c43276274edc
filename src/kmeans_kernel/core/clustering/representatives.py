"""The representatives: each class on the sphere, clustered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.blocking import Array, IntArray
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Labelled, Placement, draw
from kmeans_kernel.core.arrays.sparse import dense
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.arrays.stream import NearestSums, Stream
from kmeans_kernel.core.clustering.spherical_kmeans import (
    Clustering,
    Descent,
    Init,
    cluster,
    draw_centroids,
    started,
)
from kmeans_kernel.core.model.fitted_model import whole_if_so
from kmeans_kernel.core.solvers.dual import DOUBLE_UP_TO

# Centroids to start from, by the position of the class.
Start: TypeAlias = Mapping[int, Array]

# Where rows come in blocks, k-means++ draws its centroids from some: so many times as many.
_CANDIDATES = 20

# Classes are clustered side by side when that keeps the workers busy for this share of the time,
# and one after another with threaded products otherwise.
_BUSY_ENOUGH = 0.85


class ClusterWatcher(Protocol):
    """Someone to tell how the clustering goes."""

    def iteration(self, label: object, n_iter: int, deviation: float) -> None:
        """Hear that K-means of the class `label` moved its centroids for the `n_iter`-th time."""

    def class_done(self, label: object, n_rows: int, found: Clustering) -> None:
        """Hear that K-means of the class `label` ended."""

    def visited(self, done: int, n_rows: int) -> None:
        """Hear how many rows of a visit were seen, where rows come in blocks."""

    def moved(self, centroids: dict[int, Array]) -> None:
        """Hear where the centroids of the classes are, where rows come in blocks."""


class Unwatched:
    """A watcher that does nothing."""

    def iteration(self, label: object, n_iter: int, deviation: float) -> None:
        """Do nothing."""

    def class_done(self, label: object, n_rows: int, found: Clustering) -> None:
        """Do nothing."""

    def visited(self, done: int, n_rows: int) -> None:
        """Do nothing."""

    def moved(self, centroids: dict[int, Array]) -> None:
        """Do nothing."""

    def solving(self, m: int) -> None:
        """Do nothing."""


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

    @classmethod
    def of(cls, clusters: dict[int, _Cluster], n_classes: int) -> Representation:
        """Join the classes, by their positions; one without rows is not among them."""
        present = sorted(clusters)
        found = [clusters[k].found for k in present]
        directions = np.concatenate([one.centroids for one in found])
        if len(directions) <= DOUBLE_UP_TO:
            directions = unit_rows(directions, dtype=np.float64)
        else:
            directions = directions.astype(np.float32, copy=False)
        n_iter, converged = np.zeros(n_classes, dtype=np.intp), np.ones(n_classes, dtype=bool)
        n_iter[present] = [one.n_iter for one in found]
        converged[present] = [one.converged for one in found]
        return cls(
            directions=directions,
            owners=np.repeat(present, [len(one.centroids) for one in found]),
            counts=np.concatenate([clusters[k].counts for k in present]),
            n_iter=n_iter,
            converged=converged,
            seconds={
                "sphere": sum(one.sphere_seconds for one in clusters.values()),
                "kmeans": sum(one.kmeans_seconds for one in clusters.values()),
            },
        )


def represent(
    data: Labelled | Stream,
    kmeans: KMeans,
    placement: Placement,
    rngs: Sequence[np.random.Generator],
    watcher: ClusterWatcher,
    workers: Workers = ALONE,
    start: Start | None = None,
) -> Representation:
    """Cluster every class, side by side where that keeps the workers busy, the largest first.

    The rows of a class are asked for when it is clustered, perhaps from another thread, and no more
    classes are held at a time than there are workers. There is one rng for each class. Classes
    that are in `start` start from these centroids.
    """
    start = {} if start is None else start
    if isinstance(data, Stream):
        return _represent_stream(data, kmeans, placement, rngs, watcher, start)

    def cluster_class(k: int) -> _Cluster:
        return _cluster_class(data, k, kmeans, placement, rngs[k], watcher, workers, start.get(k))

    sizes = [size for size in data.class_sizes if size]
    hands = workers if busy_share(sizes, workers.count) >= _BUSY_ENOUGH else ALONE
    largest_first = np.argsort(data.class_sizes)[::-1][: len(sizes)].tolist()
    clusters = hands.map(cluster_class, largest_first)
    return Representation.of(dict(zip(largest_first, clusters, strict=True)), len(data.classes))


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
    data: Labelled,
    k: int,
    kmeans: KMeans,
    placement: Placement,
    rng: np.random.Generator,
    watcher: ClusterWatcher,
    workers: Workers,
    start: Array | None,
) -> _Cluster:
    def on_iteration(n_iter: int, deviation: float) -> None:
        workers.checkpoint()
        watcher.iteration(data.classes[k], n_iter, deviation)

    began = perf_counter()
    rows = np.flatnonzero(data.codes == k)
    weights = None if data.weights is None else data.weights[rows]
    # Rows that will stand for themselves are kept as exactly as they came.
    few = len(rows) <= kmeans.n_representatives
    directions = placement.put(data.X[rows], np.float64 if few else np.float32)
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
        start=start,
    )
    watcher.class_done(data.classes[k], len(rows), found)
    counts = np.bincount(found.labels, weights, minlength=len(found.centroids))
    return _Cluster(found, whole_if_so(counts), on_sphere - began, perf_counter() - on_sphere)


def _represent_stream(
    data: Stream,
    kmeans: KMeans,
    placement: Placement,
    rngs: Sequence[np.random.Generator],
    watcher: ClusterWatcher,
    start: Start,
) -> Representation:
    """Cluster the classes of rows that come in blocks, all at once: a visit moves all centroids."""
    began = perf_counter()
    clusters, descents = _first_centroids(data, kmeans, placement, rngs)
    descents = {k: Descent(started(one.centroids, start.get(k))) for k, one in descents.items()}
    on_sphere = perf_counter() - began
    sums = data.sum(NearestSums(_centroids(descents), placement)).of if descents else {}
    at_work = dict(descents)
    while at_work:
        for k, descent in at_work.items():
            everywhere = np.arange(len(descent.centroids))
            descents[k], _ = descent.step(sums[k].sums, everywhere)
            watcher.iteration(data.classes[k], descents[k].n_iter, descents[k].deviation)
        watcher.moved(_centroids(descents))
        moved = {k: descents[k] for k in at_work}
        sums |= data.sum(NearestSums(_centroids(moved), placement)).of
        at_work = {k: d for k, d in moved.items() if d.goes_on(kmeans.tol, kmeans.max_iter)}
        for k in moved.keys() - at_work.keys():
            found = descents[k].ended(kmeans.tol)
            watcher.class_done(data.classes[k], data.class_sizes[k], found)
            clusters[k] = _Cluster(found, whole_if_so(sums[k].counts), 0.0, 0.0)
    return replace(
        Representation.of(clusters, len(data.classes)),
        seconds={"sphere": on_sphere, "kmeans": perf_counter() - began - on_sphere},
    )


def _centroids(descents: dict[int, Descent]) -> dict[int, Array]:
    return {k: descent.centroids for k, descent in descents.items()}


def _first_centroids(
    data: Stream, kmeans: KMeans, placement: Placement, rngs: Sequence[np.random.Generator]
) -> tuple[dict[int, _Cluster], dict[int, Descent]]:
    """Return the classes that are clustered already, having few rows, and where others start."""
    q, sizes = kmeans.n_representatives, data.class_sizes
    wanted = [
        np.arange(size) if size <= q else _candidates(size, kmeans, rng)
        for size, rng in zip(sizes, rngs, strict=True)
    ]
    picked = data.pick(wanted)
    clusters: dict[int, _Cluster] = {}
    descents: dict[int, Descent] = {}
    for k, (size, rng) in enumerate(zip(sizes, rngs, strict=True)):
        mine = picked.at(np.flatnonzero(picked.codes == k))
        if size <= q:
            rows = dense(placement.put(mine.X, np.float64))
            found = Clustering(rows, np.arange(size), 1, 0.0, True)
            clusters[k] = _Cluster(found, whole_if_so(mine.weight_of_each), 0.0, 0.0)
            continue
        rows = placement.put(mine.X, np.float32)
        if kmeans.init == "k-means++":
            first = draw_centroids(rows, q, "k-means++", rng, mine.weights)
        else:
            first = np.argsort(np.argsort(wanted[k]))  # they came in their own order
        descents[k] = Descent(dense(rows[first]))
    return clusters, descents


def _candidates(size: int, kmeans: KMeans, rng: np.random.Generator) -> IntArray:
    """Return the positions of rows to start from, or to draw these from."""
    q = kmeans.n_representatives
    if kmeans.init == "k-means++":
        return draw(size, min(size, _CANDIDATES * q), rng)
    return rng.choice(size, q, replace=False)
