"""Training, stage by stage: sphere, K-means per class, kernel, solve, model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from kmeans_kernel._blocks import Array
from kmeans_kernel._kernels import Kernel, gram_matrix, gram_product
from kmeans_kernel._lssvm import DOUBLE_UP_TO, solve_on_representatives
from kmeans_kernel._model import FittedModel
from kmeans_kernel._sphere import unit_rows
from kmeans_kernel._spherical_kmeans import Clustering, Init, cluster


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
    class_rows: Iterable[Array],
    classes: npt.NDArray[Any],
    settings: Settings,
    rngs: Iterable[np.random.Generator],
    watcher: Watcher,
) -> Training:
    """Train on the rows of each class in turn; arguments are trusted.

    `class_rows` gives one (n_k, d) array for each of the `classes`, in their order, and may make
    them as it goes: only one is held at a time.
    """
    clock = _Clock()
    found = [
        _cluster_class(rows, label, settings, rng, watcher, clock)
        for rows, label, rng in zip(class_rows, classes, rngs, strict=True)
    ]
    sizes = [len(c.centroids) for c in found]
    watcher.solving(sum(sizes))
    precision = np.float64 if sum(sizes) <= DOUBLE_UP_TO else np.float32
    directions = unit_rows(np.concatenate([c.centroids for c in found]), dtype=precision)
    owners = np.repeat(np.arange(len(classes)), sizes)

    def gram(dtype: npt.DTypeLike) -> Array:
        with clock.stage("kernel"):
            return gram_matrix(directions, settings.kernel, dtype)

    def multiply(V: Array) -> Array:
        return gram_product(directions, settings.kernel, V)

    with clock.stage("solve"):
        solution = solve_on_representatives(
            gram, multiply, np.eye(len(classes))[owners], settings.regularization
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


def _cluster_class(
    rows: Array,
    label: object,
    settings: Settings,
    rng: np.random.Generator,
    watcher: Watcher,
    clock: _Clock,
) -> Clustering:
    # Rows that will stand for themselves are kept as exactly as they came.
    few = len(rows) <= settings.n_representatives
    with clock.stage("sphere"):
        directions = unit_rows(rows, settings.lift, np.float64 if few else np.float32)
    with clock.stage("kmeans"):
        found = cluster(
            directions,
            settings.n_representatives,
            init=settings.init,
            tol=settings.tol,
            max_iter=settings.max_iter,
            rng=rng,
            on_iteration=lambda n_iter, deviation: watcher.iteration(label, n_iter, deviation),
        )
    watcher.class_done(label, len(rows), found)
    return found


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
