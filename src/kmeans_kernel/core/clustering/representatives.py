"""Representatives: the spherical K-means centroids of each class, in memory or out of core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.events import CentroidsMoved, ClassClustered, KMeansIteration
from kmeans_kernel.core.arrays.execution import SERIAL, Run
from kmeans_kernel.core.arrays.matrices import (
    FLOAT64_UP_TO,
    Array,
    IntArray,
    Matrix,
    as_counts,
    dense,
)
from kmeans_kernel.core.arrays.rows import LabelledRows, TrainingRows, draw
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering.assignment import ClusterSums, assign, nearest_sums
from kmeans_kernel.core.clustering.spherical_kmeans import (
    Clustering,
    Init,
    cluster,
    draw_centroids,
    warm_started,
)

# Initial centroids of some classes; the keys are positions among the classes.
Start: TypeAlias = Mapping[int, Array]

# A class after K-means: the clustering, the weight of the rows of each centroid, and the seconds
# spent on the map to the sphere and on K-means.
_Clustered: TypeAlias = tuple[Clustering, npt.NDArray[Any], float, float]

# Out of core, k-means++ draws its centroids from a sample of this many rows per centroid.
_CANDIDATES = 20

# K-means in memory runs on at most so many rows per centroid. Tables encoded by steps have hundreds
# of features, so theirs are fewer, unless a class has few rows: on 100,000 rows of five classes 10,
# 20 and 50 rows per centroid gave errors that differed by 0.03 points, and K-means took 0.5, 1.2
# and 4.6 seconds.
_ROWS_PER_CENTROID, _ROWS_PER_CENTROID_OF_TABLES, _CHEAP_ROWS = 50, 10, 4000

# Classes are clustered in parallel if that keeps the workers busy for this share of the time, else
# one after another with threaded BLAS.
_BUSY_ENOUGH = 0.85


class KMeansSettings(Protocol):
    """The parameters of K-means, a part of the training configuration."""

    @property
    def n_representatives(self) -> int:
        """Q, the centroids of each class."""

    @property
    def init(self) -> Init:
        """The initialisation of the centroids."""

    @property
    def tol(self) -> float:
        """τ: K-means stops when the deviation δ is at most this."""

    @property
    def max_iter(self) -> int:
        """The most Lloyd iterations."""

    @property
    def fit_on(self) -> str:
        """Whether the coefficients are fitted to "samples" or to "representatives"."""


@dataclass(frozen=True, eq=False)
class Representatives:
    """The representatives of all classes.

    Attributes
    ----------
    directions : (m, d) unit rows; float64 up to `FLOAT64_UP_TO` of them, else float32
    codes : (m,) the position of the class of each representative
    counts : (m,) total weight of the rows in the cluster of each representative
    n_iter : (K,) K-means iterations of each class; 0 for a class without rows
    deviations : (K,) δ at the end of each class's K-means; 0 for a class without rows
    """

    directions: Array
    codes: IntArray
    counts: npt.NDArray[Any]
    n_iter: IntArray
    deviations: Array


def represent(
    rows: TrainingRows,
    settings: KMeansSettings,
    rngs: Sequence[np.random.Generator],
    run: Run,
    start: Start | None = None,
) -> Representatives:
    """Cluster every class on the unit sphere; arguments are trusted.

    Parameters
    ----------
    rngs : a random generator for each class
    start : initial centroids of some classes, for a warm start
    """
    start = {} if start is None else start
    with run.stage("clustering"):
        if rows.in_memory:
            clusters = _cluster_in_memory(rows.load(), settings, rngs, run, start)
        else:
            clusters = _OutOfCore(rows, settings, rngs, run).cluster(start)
    spent = {
        "sphere": sum(one[2] for one in clusters.values()),
        "kmeans": sum(one[3] for one in clusters.values()),
    }
    run.split_stage("clustering", spent)
    return _join(clusters, len(rows.classes))


def _join(clusters: Mapping[int, _Clustered], n_classes: int) -> Representatives:
    """Concatenate the centroids of the classes; a class without rows has no entry."""
    present = sorted(clusters)
    found = [clusters[k][0] for k in present]
    directions = np.concatenate([one.centroids for one in found])
    if len(directions) <= FLOAT64_UP_TO:
        directions = unit_rows(directions, dtype=np.float64)
    else:
        directions = directions.astype(np.float32, copy=False)
    n_iter, deviations = np.zeros(n_classes, dtype=np.intp), np.zeros(n_classes)
    n_iter[present] = [one.n_iter for one in found]
    deviations[present] = [one.deviation for one in found]
    return Representatives(
        directions=directions,
        codes=np.repeat(present, [len(one.centroids) for one in found]),
        counts=np.concatenate([clusters[k][1] for k in present]),
        n_iter=n_iter,
        deviations=deviations,
    )


def _cluster_in_memory(
    rows: LabelledRows,
    settings: KMeansSettings,
    rngs: Sequence[np.random.Generator],
    run: Run,
    start: Start,
) -> dict[int, _Clustered]:
    """Cluster the classes, the largest first, in parallel if that keeps the workers busy.

    The rows of a class are indexed when it is clustered, perhaps in another thread, so no more
    classes are held at a time than there are workers.
    """

    def cluster_class(k: int) -> _Clustered:
        return _cluster_class(rows, k, settings, rngs[k], run, start.get(k))

    sizes = [size for size in rows.class_sizes if size]
    side_by_side = busy_share(sizes, run.executor.count) >= _BUSY_ENOUGH
    largest_first = np.argsort(rows.class_sizes)[::-1][: len(sizes)].tolist()
    found = (run.executor if side_by_side else SERIAL).map(cluster_class, largest_first)
    return dict(zip(largest_first, found, strict=True))


def busy_share(sizes: Sequence[int], n_workers: int) -> float:
    """Return the utilisation of workers that schedule pieces of these sizes largest first."""
    loads = [0] * n_workers
    for size in sorted(sizes, reverse=True):
        loads[loads.index(min(loads))] += size
    return sum(loads) / (n_workers * max(loads))


def _cluster_class(
    data: LabelledRows,
    k: int,
    settings: KMeansSettings,
    rng: np.random.Generator,
    run: Run,
    start: Array | None,
) -> _Clustered:
    label = data.classes[k]

    def on_iteration(n_iter: int, deviation: float) -> None:
        run.executor.raise_if_cancelled()
        if run.on_event is not None:
            run.on_event(KMeansIteration(label, n_iter, deviation))

    began = perf_counter()
    rows = np.flatnonzero(data.codes == k)
    weights = None if data.weights is None else data.weights[rows]
    # Rows that are their own representatives keep their precision.
    few = len(rows) <= settings.n_representatives
    directions = data.directions(rows, np.float64 if few else np.float32)
    on_sphere = perf_counter()
    if few:
        found = _own_centroids(directions)
    else:
        is_table = data.sphere_map.feature_transform is not None
        some = _rows_to_cluster(len(rows), settings, rng, is_table=is_table)
        found = cluster(
            directions[some],
            settings.n_representatives,
            init=settings.init,
            tol=settings.tol,
            max_iter=settings.max_iter,
            rng=rng,
            weights=None if weights is None else weights[some],
            on_iteration=on_iteration,
            start=start,
        )
        if len(found.labels) < len(rows):
            found = replace(found, labels=assign(directions, found.centroids).labels)
    _report_class(run, label, len(rows), found)
    counts = np.bincount(found.labels, weights, minlength=len(found.centroids))
    return found, as_counts(counts), on_sphere - began, perf_counter() - on_sphere


def _rows_to_cluster(
    n: int, settings: KMeansSettings, rng: np.random.Generator, *, is_table: bool
) -> IntArray | slice:
    """Return the positions of the rows of a class of n rows on which K-means runs.

    A fit to samples needs landmarks that cover the rows. The paper's LS-SVM is fitted to the
    centroids alone, and those are of all rows.
    """
    Q = settings.n_representatives
    most = _ROWS_PER_CENTROID * Q
    if is_table:
        most = max(_ROWS_PER_CENTROID_OF_TABLES * Q, min(most, _CHEAP_ROWS))
    if settings.fit_on == "representatives" or n <= most:
        return slice(None)
    return np.sort(draw(n, most, rng))


def _own_centroids(directions: Matrix) -> Clustering:
    """Return the clustering in which each unit row is its own centroid."""
    rows = dense(directions)
    return Clustering(rows, np.arange(len(rows)), n_iter=1, deviation=0.0)


def _report_class(run: Run, label: object, n_rows: int, found: Clustering) -> None:
    if run.on_event is not None:
        run.on_event(
            ClassClustered(label, n_rows, len(found.centroids), found.n_iter, found.deviation)
        )


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Cluster sums of each class, additive over blocks; the keys of `of` are class positions."""

    of: dict[int, ClusterSums]

    def __add__(self, other: ClassSums) -> ClassSums:
        both = dict(self.of)
        for k, sums in other.of.items():
            both[k] = both[k] + sums if k in both else sums
        return ClassSums(both)


@dataclass(frozen=True, eq=False)
class NearestSums:
    """Function of a block of rows: the cluster sums of each class.

    Attributes
    ----------
    centroids : (Q, d) centroids of each class whose K-means has not ended
    """

    centroids: Mapping[int, Array]

    def __call__(self, rows: LabelledRows) -> ClassSums:
        """Return the cluster sums of a block, class by class."""
        found = {}
        for k, centroids in self.centroids.items():
            mine = np.flatnonzero(rows.codes == k)
            if len(mine):
                U = rows.directions(mine, centroids.dtype)
                found[k] = nearest_sums(U, centroids, rows.row_weights[mine])
        return ClassSums(found)


@dataclass(frozen=True, eq=False)
class _OutOfCore:
    """Out-of-core K-means of all classes at once: one pass is one Lloyd iteration of each."""

    rows: TrainingRows
    settings: KMeansSettings
    rngs: Sequence[np.random.Generator]
    run: Run

    def cluster(self, start: Start) -> dict[int, _Clustered]:
        """Return each class after K-means, from `start` where a class has initial centroids."""
        began = perf_counter()
        clusters, first = self._first_centroids()
        states = {k: Clustering(warm_started(c, start.get(k))) for k, c in first.items()}
        on_sphere = perf_counter() - began
        ended = self._iterate(states)
        in_kmeans = perf_counter() - began - on_sphere
        for k, (found, counts) in ended.items():
            clusters[k] = (found, counts, 0.0, 0.0)
        # Passes serve all classes together; their time is booked on the first class.
        one = min(clusters)
        clusters[one] = (*clusters[one][:2], on_sphere, in_kmeans)
        return clusters

    def _iterate(
        self, states: dict[int, Clustering]
    ) -> dict[int, tuple[Clustering, npt.NDArray[Any]]]:
        """Run Lloyd iterations until every class ends; return clusterings and counts."""
        tol, max_iter = self.settings.tol, self.settings.max_iter
        sums = self._nearest_sums(states) if states else {}
        ended, at_work = {}, dict(states)
        while at_work:
            for k, state in at_work.items():
                states[k], _ = state.step(sums[k].sums, np.arange(len(state.centroids)))
                self._report_iteration(k, states[k])
            if self.run.on_event is not None:
                self.run.on_event(CentroidsMoved(_centroids(states)))
            moved = {k: states[k] for k in at_work}
            sums |= self._nearest_sums(moved)
            at_work = {k: state for k, state in moved.items() if state.goes_on(tol, max_iter)}
            for k in moved.keys() - at_work.keys():
                label, n_rows = self.rows.classes[k], self.rows.class_sizes[k]
                _report_class(self.run, label, n_rows, states[k])
                ended[k] = states[k], as_counts(sums[k].counts)
        return ended

    def _nearest_sums(self, states: dict[int, Clustering]) -> dict[int, ClusterSums]:
        return self.rows.sum_blocks(NearestSums(_centroids(states))).of

    def _report_iteration(self, k: int, state: Clustering) -> None:
        if self.run.on_event is not None:
            label = self.rows.classes[k]
            self.run.on_event(KMeansIteration(label, state.n_iter, state.deviation))

    def _first_centroids(self) -> tuple[dict[int, _Clustered], dict[int, Array]]:
        """Return the classes of at most Q rows, clustered, and initial centroids of the others."""
        q, sizes = self.settings.n_representatives, self.rows.class_sizes
        wanted = [
            np.arange(size) if size <= q else self._candidates(size, rng)
            for size, rng in zip(sizes, self.rngs, strict=True)
        ]
        picked = self.rows.pick(wanted)
        clusters: dict[int, _Clustered] = {}
        first: dict[int, Array] = {}
        for k, (size, rng) in enumerate(zip(sizes, self.rngs, strict=True)):
            mine = picked.at(np.flatnonzero(picked.codes == k))
            if size <= q:
                found = _own_centroids(mine.directions())
                clusters[k] = (found, as_counts(mine.row_weights), 0.0, 0.0)
                continue
            directions = mine.directions(dtype=np.float32)
            if self.settings.init == "k-means++":
                chosen = draw_centroids(directions, q, "k-means++", rng, mine.weights)
            else:
                # `pick` returns rows in original order; restore the order of the draw.
                chosen = np.argsort(np.argsort(wanted[k]))
            first[k] = dense(directions[chosen])
        return clusters, first

    def _candidates(self, size: int, rng: np.random.Generator) -> IntArray:
        """Return the positions of the initial centroids, or of the candidates for k-means++."""
        q = self.settings.n_representatives
        if self.settings.init == "k-means++":
            return draw(size, min(size, _CANDIDATES * q), rng)
        return rng.choice(size, q, replace=False)


def _centroids(states: Mapping[int, Clustering]) -> dict[int, Array]:
    return {k: state.centroids for k, state in states.items()}
