"""Training, stage by stage: sphere, K-means per class, kernel, solve, model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from kmeans_kernel._blocks import Array
from kmeans_kernel._kernels import ExactGram, Kernel, gram_matrix
from kmeans_kernel._lssvm import DOUBLE_UP_TO, solve_on_representatives
from kmeans_kernel._model import FittedModel
from kmeans_kernel._sphere import unit_rows
from kmeans_kernel._spherical_kmeans import Clustering, Init, cluster
from kmeans_kernel._triangles import TwoTriangles
from kmeans_kernel._workers import ALONE, Workers

# Classes are clustered side by side when that keeps the workers busy for this share of the time,
# and one after another with threaded products otherwise.
_BUSY_ENOUGH = 0.85


class Watcher(Protocol):
    """Someone to tell how training goes."""

    def iteration(self, label: object, n_iter: int, deviation: float) -> None:
        """Hear that K-means of the class `label` moved its centroids for the `n_iter`-th time."""

    def class_done(self, label: object, n_rows: int, found: Clustering) -> None:
        """Hear that K-means of the class `label` ended."""

    def solving(self, m: int) -> None:
        """Hear that the system of `m` representatives is about to be solved."""


@dataclass(frozen=True)
class Settings:
    """What the user chose, validated."""

    n_representatives: int
    kernel: Kernel
    regularization: float
    lift: float
    init: Init
    tol: float
    max_iter: int


@dataclass(frozen=True, eq=False)
class Training:
    """A fitted model and how it came about.

    Attributes
    ----------
    model : the fitted model
    n_iter : (K,) K-means iterations of each class
    converged : (K,) whether K-means of each class reached the tolerance
    relative_residual : of the bordered system
    seconds : spent in each stage
    """

    model: FittedModel
    n_iter: npt.NDArray[np.intp]
    converged: npt.NDArray[np.bool_]
    relative_residual: float
    seconds: dict[str, float]


def train(
    rows_of: Callable[[int], Array],
    class_sizes: Sequence[int],
    classes: npt.NDArray[Any],
    settings: Settings,
    rngs: Sequence[np.random.Generator],
    watcher: Watcher,
    workers: Workers = ALONE,
) -> Training:
    """Train on the rows of each class; arguments are trusted.

    Parameters
    ----------
    rows_of : makes the (n_k, d) rows of the k-th class. It is called once for each class, perhaps
        from another thread, and no more classes are held at a time than there are workers
    class_sizes : n_k for each class
    classes : (K,) the labels
    rngs : one for each class
    """
    clock = _Clock()
    found = _cluster_classes(rows_of, class_sizes, classes, settings, rngs, watcher, workers, clock)
    sizes = [len(c.centroids) for c in found]
    watcher.solving(sum(sizes))
    directions = np.concatenate([c.centroids for c in found])
    if len(directions) <= DOUBLE_UP_TO:
        directions = unit_rows(directions, dtype=np.float64)
    else:
        directions = directions.astype(np.float32, copy=False)
    owners = np.repeat(np.arange(len(classes)), sizes)

    def gram(dtype: npt.DTypeLike) -> TwoTriangles:
        with clock.stage("kernel"):
            return gram_matrix(directions, settings.kernel, dtype, workers)

    with clock.stage("solve"):
        solution = solve_on_representatives(
            gram,
            ExactGram(directions, settings.kernel, workers),
            np.eye(len(classes))[owners],
            settings.regularization,
            workers=workers,
        )
    model = FittedModel(
        directions=directions,
        representative_classes=owners,
        representative_counts=np.concatenate([_counts(c) for c in found]),
        dual_coef=solution.dual_coef,
        intercept=solution.intercept,
        kernel=settings.kernel,
        lift=settings.lift,
        classes=classes,
    )
    return Training(
        model=model,
        n_iter=np.array([c.n_iter for c in found]),
        converged=np.array([c.converged for c in found]),
        relative_residual=solution.relative_residual,
        seconds=clock.seconds,
    )


def _cluster_classes(
    rows_of: Callable[[int], Array],
    class_sizes: Sequence[int],
    classes: npt.NDArray[Any],
    settings: Settings,
    rngs: Sequence[np.random.Generator],
    watcher: Watcher,
    workers: Workers,
    clock: _Clock,
) -> list[Clustering]:
    """Cluster every class, side by side where that keeps the workers busy, the largest first."""

    def cluster_class(k: int) -> _ClusteredClass:
        return _cluster_class(lambda: rows_of(k), classes[k], settings, rngs[k], watcher, workers)

    hands = workers if busy_share(class_sizes, workers.count) >= _BUSY_ENOUGH else ALONE
    with clock.stage("clustering"):
        largest_first = np.argsort(class_sizes)[::-1].tolist()
        done = dict(zip(largest_first, hands.map(cluster_class, largest_first), strict=True))
    clock.split("clustering", {
        "sphere": sum(c.sphere_seconds for c in done.values()),
        "kmeans": sum(c.kmeans_seconds for c in done.values()),
    })  # fmt: skip
    return [done[k].found for k in range(len(classes))]


def busy_share(sizes: Sequence[int], n_workers: int) -> float:
    """Return the share of their time that workers are busy who each take the next largest piece."""
    loads = [0] * n_workers
    for size in sorted(sizes, reverse=True):
        loads[loads.index(min(loads))] += size
    return sum(loads) / (n_workers * max(loads))


@dataclass(frozen=True, eq=False)
class _ClusteredClass:
    """A class after K-means, and the seconds it took."""

    found: Clustering
    sphere_seconds: float
    kmeans_seconds: float


def _cluster_class(
    make_rows: Callable[[], Array],
    label: object,
    settings: Settings,
    rng: np.random.Generator,
    watcher: Watcher,
    workers: Workers,
) -> _ClusteredClass:
    def on_iteration(n_iter: int, deviation: float) -> None:
        workers.checkpoint()
        watcher.iteration(label, n_iter, deviation)

    start = perf_counter()
    rows = make_rows()
    # Rows that will stand for themselves are kept as exactly as they came.
    few = len(rows) <= settings.n_representatives
    directions = unit_rows(rows, settings.lift, np.float64 if few else np.float32)
    del rows  # not held through K-means, which has its own copy
    on_sphere = perf_counter()
    found = cluster(
        directions,
        settings.n_representatives,
        init=settings.init,
        tol=settings.tol,
        max_iter=settings.max_iter,
        rng=rng,
        on_iteration=on_iteration,
    )
    watcher.class_done(label, len(directions), found)
    return _ClusteredClass(found, on_sphere - start, perf_counter() - on_sphere)


def _counts(found: Clustering) -> npt.NDArray[np.intp]:
    return np.bincount(found.labels, minlength=len(found.centroids))


class _Clock:
    """Adds up the seconds of each stage; a stage inside another is not counted twice."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        outer_inner, self._inner = self._inner, 0.0
        start = perf_counter()
        try:
            yield
        finally:
            elapsed = perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + elapsed - self._inner
            self._inner = outer_inner + elapsed

    def split(self, name: str, parts: dict[str, float]) -> None:
        """Replace a stage by parts of it, in proportion."""
        whole = self.seconds.pop(name)
        total = sum(parts.values())
        self.seconds.update({part: whole * value / total for part, value in parts.items()})
