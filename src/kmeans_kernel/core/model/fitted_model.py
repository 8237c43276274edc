"""The fitted model: an immutable record, and the one definition of its scores."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from kmeans_kernel.core.arrays.asinh import Squash
from kmeans_kernel.core.arrays.blocking import Array, IntArray, blocks_of
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.sparse import Matrix, dense, multiply_into, n_rows
from kmeans_kernel.core.arrays.sphere import unit_rows, unlift
from kmeans_kernel.core.kernels.kernels import Kernel

# Rows and representatives of a block: large enough for the products to run at full speed, small
# enough for the kernel and the second product to find it in cache.
_BLOCK_ROWS, _BLOCK_COLUMNS = 1024, 512

# Products of some hundred float32 terms of one sign are off by about this much.
_FLOAT32_COSINE_ERROR = 1e-6

# About so many representatives show how large kernel values are.
_SOME = 64

# Scores off by this much of the usual margin may change a label only where it is as thin.
_TOLERABLE_NOISE = 1e-3


def whole_if_so(counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return weights of rows as whole numbers if that is what they are."""
    return counts.astype(np.intp) if (counts == np.rint(counts)).all() else counts


def margins(scores: Array) -> Array:
    """Return the (n,) differences of the two best scores of each row."""
    best = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(best[:, 1] - best[:, 0])


@dataclass(frozen=True, eq=False)
class FittedModel:
    """All that is needed to score a row; its arrays cannot be written to.

    Attributes
    ----------
    directions : (m, d) unit rows, the representatives on the sphere; (m, d + 1) with a lift
    representative_classes : (m,) the position in `classes` of each representative's class
    representative_counts : (m,) the weight of the training rows each representative stands for
    dual_coef : (m, K) float64
    intercept : (K,) float64
    kernel : an elementwise function of the cosines
    lift : the constant appended to a row before it is normalised; 0 for none
    classes : (K,) the labels
    temperature : what the scores are divided by before the softmax
    feature_scales : (d,) what each feature is multiplied by before that; None for ones
    squash : what is done to long tails before all else; None for nothing
    """

    directions: Array
    representative_classes: IntArray
    representative_counts: npt.NDArray[Any]
    dual_coef: Array
    intercept: Array
    kernel: Kernel
    lift: float
    classes: npt.NDArray[Any]
    temperature: float = 1.0
    feature_scales: Array | None = None
    squash: Squash | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                frozen = np.ascontiguousarray(value).view()  # results do not depend on the order
                frozen.flags.writeable = False
                object.__setattr__(self, field.name, frozen)

    @property
    def representatives(self) -> Array:
        """The representatives as rows of the input: (m, n_features)."""
        points = unlift(self.directions, self.lift)
        if self.feature_scales is not None:
            points = (points / self.feature_scales).astype(points.dtype)
        return points if self.squash is None else self.squash.undo(points)

    def on_sphere(self, X: Matrix, dtype: npt.DTypeLike) -> Matrix:
        """Return rows where the representatives are."""
        if self.squash is not None:
            X = self.squash.apply(dense(X))
        return unit_rows(X, self.lift, dtype, self.feature_scales)

    @cached_property
    def noise(self) -> float:
        """About how much float32 products put the scores off.

        Large coefficients that cancel, from a narrow margin or a small regularisation, make the
        rounding of the cosines loud, and that of the sums where kernel values are large.
        """
        loudest = float(np.linalg.norm(self.dual_coef, axis=0).max())
        n_terms = min(len(self.directions), _BLOCK_COLUMNS)
        size = np.sqrt(n_terms * np.mean(self._some_values**2))
        rounding = float(np.finfo(np.float32).eps * size)
        return (_FLOAT32_COSINE_ERROR * self.kernel.steepness + rounding) * loudest

    @cached_property
    def needs_float64(self) -> bool:
        """Whether float32 products would put the scores off by more than is tolerable.

        What is tolerable depends on how far apart scores are: about one for squares, more for
        logarithms.
        """
        margin = float(np.median(margins(self._some_values @ self.dual_coef + self.intercept)))
        return self.noise > _TOLERABLE_NOISE * max(1.0, margin)

    @cached_property
    def _some_values(self) -> Array:
        """The kernel values of some representatives with all."""
        some = self.directions[:: max(1, len(self.directions) // _SOME)].astype(np.float64)
        values = np.asarray(some @ self.directions.T.astype(np.float64))
        self.kernel.apply(values)
        return values

    def scores(self, X: Matrix, workers: Workers = ALONE) -> Array:
        """Return the (n, K) scores Σ_q Ω(x, ξ_q) a_q + b of finite rows with the right width.

        In float64 when both the rows and the representatives are, or when float32 would show;
        in float32 otherwise, but where the two best are as near as rounding: there float64 decides,
        so that a label does not depend on the order of sums.
        """
        if {X.dtype, self.directions.dtype} == {np.dtype(np.float64)} or self.needs_float64:
            return self._scores(X, np.float64, workers)
        scores = self._scores(X, np.float32, workers)
        near = np.flatnonzero(margins(scores) < self.noise)
        if len(near):
            scores[near] = self._scores(X[near], np.float64, workers)
        return scores

    def _scores(self, X: Matrix, dtype: npt.DTypeLike, workers: Workers) -> Array:
        directions = self.directions.astype(dtype, copy=False)
        dual_coef = self.dual_coef.astype(dtype, copy=False)
        scores = np.tile(self.intercept.astype(dtype), (n_rows(X), 1))
        columns = list(blocks_of(len(directions), _BLOCK_COLUMNS))

        def add_scores(rows: slice) -> None:
            block = self.on_sphere(X[rows], dtype)
            buffer = np.empty((n_rows(block), min(_BLOCK_COLUMNS, len(directions))), dtype=dtype)
            for some in columns:
                values = buffer[:, : some.stop - some.start]
                multiply_into(values, block, directions[some])
                self.kernel.apply(values)
                scores[rows] += values @ dual_coef[some]

        workers.map(add_scores, blocks_of(n_rows(X), _BLOCK_ROWS))
        return scores

    def contributions(self, X: Matrix, columns: IntArray) -> Array:
        """Return the (n, m) terms Ω(x, ξ_q) a_q of each row's score in one column, in float64.

        `columns` (n,) are positions in `classes`. With the intercept they add up to the score.
        """
        directions = self.directions.astype(np.float64, copy=False)
        out = np.empty((n_rows(X), len(directions)))
        for rows in blocks_of(n_rows(X), _BLOCK_ROWS):
            block = self.on_sphere(X[rows], np.float64)
            multiply_into(out[rows], block, directions)
            self.kernel.apply(out[rows])
            out[rows] *= self.dual_coef[:, columns[rows]].T
        return out

    def probabilities(self, scores: Array) -> Array:
        """Return the softmax of each row of scores, in float64."""
        proba: Array = softmax(scores.astype(np.float64) / self.temperature, axis=1)
        return proba
