"""The fitted model: an immutable record, and the only definition of a score."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

from kmeans_kernel.core.arrays.encoding import ColumnEncoding
from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import (
    Array,
    IntArray,
    Matrix,
    blocks_of,
    multiply_into,
    n_rows,
)
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.kernels.kernels import Kernel

# Rows and representatives of a block: large enough for matrix products to run at full speed, small
# enough to stay in cache for the kernel and the second product.
_BLOCK_ROWS, _BLOCK_COLUMNS = 1024, 512

# Error of a float32 inner product of some hundred terms of one sign.
_FLOAT32_COSINE_ERROR = 1e-6

# Number of representatives from which the magnitude of kernel values is estimated.
_SAMPLED_REPRESENTATIVES = 64

# Largest tolerated error of float32 scores, as a share of the median margin.
_TOLERABLE_NOISE = 1e-3


def margins(scores: Array) -> Array:
    """Return the (n,) margins: the highest score of each row minus the second highest."""
    best = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(best[:, 1] - best[:, 0])


@dataclass(frozen=True, eq=False)
class FittedModel:
    """All parameters needed to score a row; the arrays are read-only.

    Attributes
    ----------
    directions : (m, d) unit rows, the representatives on the sphere; (m, d + 1) with a lift
    representative_classes : (m,) the position in `classes` of each representative's class
    representative_counts : (m,) total weight of the training rows of each representative
    dual_coef : (m, K) float64 kernel coefficients
    intercept : (K,) float64
    kernel : an elementwise function of the cosines
    sphere_map : the map of rows to the unit sphere
    classes : (K,) the labels
    temperature : divisor of the scores before the softmax (temperature scaling)
    """

    directions: Array
    representative_classes: IntArray
    representative_counts: npt.NDArray[Any]
    dual_coef: Array
    intercept: Array
    kernel: Kernel
    sphere_map: SphereMap
    classes: npt.NDArray[Any]
    temperature: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                # One memory layout: BLAS may sum in another order for another layout.
                frozen = np.ascontiguousarray(value).view()
                frozen.flags.writeable = False
                object.__setattr__(self, field.name, frozen)

    @property
    def n_columns(self) -> int:
        """Number of numbers in a row that is scored."""
        transform = self.sphere_map.feature_transform
        if isinstance(transform, ColumnEncoding):
            return transform.n_columns
        return int(self.directions.shape[1]) - (self.sphere_map.lift > 0)

    def for_columns(self, order: IntArray) -> FittedModel:
        """Return the model of rows X with the scores of this one for X[:, order]."""
        sphere_map = self.sphere_map
        transform, places = sphere_map.feature_transform, np.argsort(order)
        if isinstance(transform, ColumnEncoding):  # its features keep their order
            return replace(
                self, sphere_map=replace(sphere_map, feature_transform=transform.for_columns(order))
            )
        moved = replace(
            sphere_map,
            scales=None if sphere_map.scales is None else sphere_map.scales[places],
            feature_transform=None if transform is None else transform.for_columns(order),
        )
        lift = np.arange(len(order), self.directions.shape[1])
        directions = self.directions[:, np.append(places, lift)]
        return replace(self, directions=directions, sphere_map=moved)

    @property
    def representatives(self) -> Array:
        """The (m, n_features) representatives as points in the feature space of the input."""
        return self.sphere_map.invert(self.directions)

    @cached_property
    def noise(self) -> float:
        """Estimated error of float32 scores.

        Large coefficients that cancel, from a narrow margin or a small regularization, magnify the
        rounding of the cosines and, where kernel values are large, the rounding of the sums.
        """
        largest = float(np.linalg.norm(self.dual_coef, axis=0).max())
        n_terms = min(len(self.directions), _BLOCK_COLUMNS)
        size = np.sqrt(n_terms * np.mean(self._some_values**2))
        rounding = float(np.finfo(np.float32).eps * size)
        return (_FLOAT32_COSINE_ERROR * self.kernel.steepness + rounding) * largest

    @cached_property
    def needs_float64(self) -> bool:
        """Whether the error of float32 scores would be too large beside the median margin.

        Margins are about one for the squared loss, and larger for the logistic loss.
        """
        margin = float(np.median(margins(self._some_values @ self.dual_coef + self.intercept)))
        return self.noise > _TOLERABLE_NOISE * max(1.0, margin)

    @cached_property
    def _some_values(self) -> Array:
        """Kernel values of a sample of the representatives with all representatives."""
        some = self.directions[:: max(1, len(self.directions) // _SAMPLED_REPRESENTATIVES)].astype(
            np.float64
        )
        values = np.asarray(some @ self.directions.T.astype(np.float64))
        self.kernel.apply(values)
        return values

    def scores(self, X: Matrix, executor: Executor = SERIAL) -> Array:
        """Return the (n, K) scores Σ_q Ω(x, ξ_q) a_q + b; X is trusted: finite, of d features.

        Scores are float64 if rows and representatives are, or if the error of float32 would be too
        large; else float32, except for rows with a margin below that error. These are scored again
        in float64, so that a label does not depend on the order of summation.
        """
        if {X.dtype, self.directions.dtype} == {np.dtype(np.float64)} or self.needs_float64:
            return self._scores(X, np.float64, executor)
        scores = self._scores(X, np.float32, executor)
        near = np.flatnonzero(margins(scores) < self.noise)
        if len(near):
            scores[near] = self._scores(X[near], np.float64, executor)
        return scores

    def _scores(self, X: Matrix, dtype: npt.DTypeLike, executor: Executor) -> Array:
        directions = self.directions.astype(dtype, copy=False)
        dual_coef = self.dual_coef.astype(dtype, copy=False)
        scores = np.tile(self.intercept.astype(dtype), (n_rows(X), 1))
        columns = list(blocks_of(len(directions), _BLOCK_COLUMNS))

        def add_scores(rows: slice) -> None:
            block = self.sphere_map.apply(X[rows], dtype)
            buffer = np.empty((n_rows(block), min(_BLOCK_COLUMNS, len(directions))), dtype=dtype)
            for some in columns:
                values = buffer[:, : some.stop - some.start]
                multiply_into(values, block, directions[some])
                self.kernel.apply(values)
                scores[rows] += values @ dual_coef[some]

        executor.map(add_scores, blocks_of(n_rows(X), _BLOCK_ROWS))
        return scores

    def contributions(self, X: Matrix, columns: IntArray) -> Array:
        """Return the (n, m) terms Ω(x, ξ_q) a_q of the score of one class per row, in float64.

        `columns` (n,) are the positions of these classes. The terms of a row and the intercept add
        up to the score.
        """
        directions = self.directions.astype(np.float64, copy=False)
        out = np.empty((n_rows(X), len(directions)))
        for rows in blocks_of(n_rows(X), _BLOCK_ROWS):
            block = self.sphere_map.apply(X[rows], np.float64)
            multiply_into(out[rows], block, directions)
            self.kernel.apply(out[rows])
            out[rows] *= self.dual_coef[:, columns[rows]].T
        return out

    def nearest_cosines(self, X: Matrix) -> Array:
        """Return the (n,) cosines of rows with their nearest representatives, in float64."""
        directions = self.directions.astype(np.float64, copy=False)
        out = np.empty(n_rows(X))
        for rows in blocks_of(n_rows(X), _BLOCK_ROWS):
            block = self.sphere_map.apply(X[rows], np.float64)
            values = np.empty((n_rows(block), len(directions)))
            multiply_into(values, block, directions)
            out[rows] = values.max(axis=1)
        return np.minimum(out, 1.0, out=out)

    def left_out_cosines(self, rows: Matrix, codes: IntArray, weights: Array) -> Array:
        """Return the (n,) nearest cosines of training rows as if they had not been trained on.

        A row is taken out of the centroid of its cluster, the nearest of its class: of w rows with
        the mean cosine R their sum is about w R ξ. A representative that is the row itself does not
        count.

        Parameters
        ----------
        rows : (n, D) rows on the sphere
        codes, weights : (n,) positions of their classes, and their weights
        """
        directions = self.directions.astype(np.float64, copy=False)
        cosines = np.empty((n_rows(rows), len(directions)))
        multiply_into(cosines, rows, directions)
        own = np.zeros(len(codes), dtype=np.intp)
        for k in range(len(self.classes)):
            mine, of_class = np.flatnonzero(codes == k), self.representative_classes == k
            if len(mine):
                near_own = cosines[np.ix_(mine, of_class)].argmax(axis=1)
                own[mine] = np.flatnonzero(of_class)[near_own]
        places = np.arange(len(own)), own
        near = np.minimum(cosines[places], 1.0)
        sums = self.representative_counts[own] * max(float(near.mean()), 0.0)
        lengths = np.sqrt(np.maximum(sums**2 - 2.0 * sums * weights * near + weights**2, 0.0))
        rest = (sums * near - weights) / np.where(lengths > 0, lengths, 1.0)
        alone = self.representative_counts[own] <= weights * (1.0 + 1e-9)
        cosines[places] = np.where(alone | (lengths == 0), -1.0, rest)
        return np.asarray(np.clip(cosines.max(axis=1), -1.0, 1.0))

    def log_probabilities(self, scores: Array) -> Array:
        """Return the logarithms of the probabilities, finite where these underflow."""
        found: Array = log_softmax(scores.astype(np.float64) / self.temperature, axis=1)
        return found

    def probabilities(self, scores: Array) -> Array:
        """Return the softmax of scores divided by the temperature, in float64."""
        proba: Array = softmax(scores.astype(np.float64) / self.temperature, axis=1)
        return proba
