"""Trials of hyperparameters on held-out samples, in float32.

A trial fits a kernel machine with few landmarks to the training samples of each fold and predicts
the held-out samples. Cosines, kernel values, whitened features and their products are float32: the
held-out scores differ from those of float64 by less than 1e-2, far less than the sampling error of
a few hundred held-out samples. Matrices of order m, which are factored, stay float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array
from scipy.special import softmax

from kmeans_kernel.core.arrays.encoding import FeatureGroups, FeatureMap
from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import Array, IntArray, dense
from kmeans_kernel.core.arrays.rows import LabelledRows, water_fill
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.model.agop import learn_scales
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.model.temperature import brier_losses, fit_temperature
from kmeans_kernel.core.solvers.blas import divide_from_left, factor_tile
from kmeans_kernel.core.solvers.logistic import SmallLogisticProblem
from kmeans_kernel.core.solvers.nystrom import (
    NormalEquations,
    NystromBasis,
    Solution,
    block_equations,
    divide_by,
    factor_landmarks,
)
from kmeans_kernel.core.training.config import Loss
from kmeans_kernel.core.training.search import downhill, squared_losses

# Iterations of the K-means of a trial.
_ITERATIONS = 5

# The regularization is 10^(k/2), with k in this range; the first k that is tried.
POWERS, FIRST_POWER = (-14, 2), -8

# The most L-BFGS steps of a trial, and its tolerance.
_TRIAL_STEPS, _TRIAL_TOLERANCE = 25, 3e-4

# Number of rows over which the gradients of a trial are averaged.
_ROWS_OF_GRADIENTS = 500

# Features are rounded to multiples of one over this: beyond the precision of float32 trials.
_FEATURE_GRID = 2.0**20

# Feature scales are rounded to so many steps for each factor of two.
_SCALES_PER_OCTAVE = 64


@dataclass(frozen=True, eq=False)
class Parts:
    """Training rows and held-out rows of each fold, without a map to the sphere.

    Attributes
    ----------
    folds : pairs of training rows and held-out rows, in float64, dense
    n_landmarks : number of landmarks of each fit
    transform : the feature transform that was applied to the rows; None for none
    """

    folds: Sequence[tuple[LabelledRows, LabelledRows]]
    n_landmarks: int
    transform: FeatureMap | None = None

    def transformed(self, transform: FeatureMap | None) -> Parts:
        """Return the same folds with transformed features."""
        if transform is None:
            return self
        folds = [
            (_transformed(train, transform), _transformed(test, transform))
            for train, test in self.folds
        ]
        return replace(self, folds=folds, transform=transform)


def _transformed(rows: LabelledRows, transform: FeatureMap) -> LabelledRows:
    """Return rows with features on a grid, so that the unit of a column does not show.

    A column in another unit differs in its last bits after standardising. A trial with a wide
    kernel and a small λ amplifies them, until another candidate wins.
    """
    features = transform.apply(dense(rows.X[:]))
    return replace(rows, X=np.round(features * _FEATURE_GRID) / _FEATURE_GRID)


@dataclass(frozen=True, eq=False)
class TrialFold:
    """Training and held-out samples of a fold on the unit sphere, and the landmarks.

    Attributes
    ----------
    train, test : the samples, after the feature transform; their map to the sphere has scales and
        lift alone
    unit : (n, d) float32 unit rows of both, the training samples first
    landmarks : (m, d) float64 unit rows
    clusters : (n,) the landmark of each training sample
    groups : features that share a scale; None if each has its own
    """

    train: LabelledRows
    test: LabelledRows
    unit: Array
    landmarks: Array
    clusters: IntArray
    groups: FeatureGroups | None = None

    @classmethod
    def of(
        cls,
        train: LabelledRows,
        test: LabelledRows,
        n_landmarks: int,
        near: IntArray | None = None,
        groups: FeatureGroups | None = None,
    ) -> TrialFold:
        """Map the samples to the sphere, and cluster the training samples of each class.

        `near` has the clusters of the same samples under another map, from which K-means starts.
        """
        unit = np.concatenate([train.directions(), test.directions()])
        landmarks, clusters = cluster_classes(unit[: len(train)], train, n_landmarks, near)
        return cls(train, test, unit.astype(np.float32), landmarks, clusters, groups)

    @cached_property
    def _cosines(self) -> Array:
        """Cosines of all samples with the landmarks."""
        cosines = self.unit @ self.landmarks.astype(np.float32).T
        # Rounding may leave a cosine above one.
        return np.asarray(np.minimum(cosines, np.float32(1.0), out=cosines))

    @cached_property
    def _mutual(self) -> Array:
        """Cosines of the landmarks with each other, in float64."""
        return np.asarray(self.landmarks @ self.landmarks.T)

    def nearest_codes(self) -> IntArray:
        """Return the class of the training sample nearest to each held-out sample."""
        n = len(self.train)
        nearest = (self.unit[n:] @ self.unit[:n].T).argmax(axis=1)
        return np.asarray(self.train.codes[nearest])

    def whiten(self, kernel: Kernel) -> WhitenedFold:
        """Compute the whitened features of all samples for one kernel."""
        omega = self._mutual.copy()
        kernel.apply(omega)
        basis = NystromBasis(self.landmarks, kernel, factor_landmarks(omega), np.float32)
        features = self._cosines.copy()
        kernel.apply(features)
        divide_from_left(np.asfortranarray(basis.factor, np.float32), features.T, transposed=False)
        n = len(self.train)
        equations = block_equations(
            len(self.train.classes), features[:n], self.train.codes, self.train.row_weights
        )
        return WhitenedFold(self, basis, features[:n], features[n:], equations)


def cluster_classes(
    unit: Array, rows: LabelledRows, n_landmarks: int, near: IntArray | None = None
) -> tuple[Array, IntArray]:
    """Cluster the unit rows of each class by a few iterations of K-means.

    Landmarks near the end of K-means rank hyperparameters as well as landmarks at its end. The seed
    is fixed: trials differ by their setting alone. A class of no more rows than landmarks keeps its
    rows. Returns the (m, d) centroids, and the (n,) position of each row's centroid among them.
    """
    q, first = water_fill(rows.class_sizes, n_landmarks), 0
    centroids, clusters = list[Array](), np.empty(len(unit), dtype=np.intp)
    for k in range(len(rows.classes)):
        mine = np.flatnonzero(rows.codes == k)
        U, weights = unit[mine], rows.row_weights[mine]
        if len(mine) <= q:
            found, labels = U, np.arange(len(mine))
        elif near is None:
            start = U[np.random.default_rng(k).permutation(len(mine))[:q]]
            found, labels = lloyd(U, weights, start, _ITERATIONS)
        else:
            labels = near[mine] - first
            start = _means(U, weights, labels, U[:q])
            found, labels = lloyd(U, weights, start, 1)
        centroids.append(found)
        clusters[mine] = labels + first
        first += len(found)
    return np.concatenate(centroids), clusters


def lloyd(U: Array, weights: Array, start: Array, iterations: int) -> tuple[Array, IntArray]:
    """Return centroids and labels of unit rows after some iterations of spherical K-means."""
    centroids = start
    for _ in range(iterations):
        labels = (U @ centroids.T).argmax(axis=1)
        centroids = _means(U, weights, labels, centroids)
    return centroids, labels


def _means(U: Array, weights: Array, labels: IntArray, empty: Array) -> Array:
    """Return the (q, d) unit means of clusters; an empty cluster gets its row of `empty`."""
    # The rows of each cluster, in CSR form: converting from coordinates would take longer.
    order = np.argsort(labels, kind="stable")
    ends = np.append(0, np.cumsum(np.bincount(labels, minlength=len(empty))))
    sums = csr_array((weights[order], order, ends), shape=(len(empty), len(U))) @ U
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1.0), empty)


@dataclass(frozen=True, eq=False)
class WhitenedFold:
    """A fold with the whitened features of one kernel: fits at any λ, with either loss.

    Attributes
    ----------
    fold : the samples
    basis : landmarks and the factor of their kernel matrix
    train, test : (n, m) whitened features of the training and the held-out samples
    equations : the normal equations of the training samples
    """

    fold: TrialFold
    basis: NystromBasis
    train: Array
    test: Array
    equations: NormalEquations

    def ridge(self, regularization: float) -> Solution:
        """Fit ridge regression."""
        triangle = self._covariance.copy(order="F")
        triangle[np.diag_indices_from(triangle)] += regularization
        if not factor_tile(triangle):  # rounding has made the sum indefinite
            return self.equations.solve(regularization)[0]
        coefficients = divide_by(triangle, self._slopes)
        intercept = self.equations.mean_y - self.equations.mean_z @ coefficients
        return Solution(coefficients, intercept, 0.0)

    def logistic(self, regularization: float, start: Solution | None) -> Solution:
        """Fit logistic regression, from the solution of another λ if there is one."""
        return self._logistic_problem.solve(
            regularization, start, tolerance=_TRIAL_TOLERANCE, most_steps=_TRIAL_STEPS
        )

    @cached_property
    def _logistic_problem(self) -> SmallLogisticProblem:
        train, equations = self.fold.train, self.equations
        return SmallLogisticProblem(
            self.train, train.codes, train.row_weights, len(train.classes),
            equations.mean_z, self._covariance,
        )  # fmt: skip

    @cached_property
    def _covariance(self) -> Array:
        return self.equations.covariance()

    @cached_property
    def _slopes(self) -> Array:
        return self.equations.slopes()

    def scores(self, solution: Solution) -> Array:
        """Return the (n, K) scores of the held-out samples, in float64."""
        products = self.test @ solution.coefficients.astype(self.test.dtype)
        return np.asarray(products.astype(np.float64) + solution.intercept)

    def learn_scales(self, regularization: float) -> Array:
        """Return feature scales (AGOP) of the ridge regression at one λ."""
        solution, train = self.ridge(regularization), self.fold.train
        model = FittedModel(
            directions=self.basis.directions,
            representative_classes=np.zeros(len(self.basis.directions), dtype=np.intp),
            representative_counts=np.ones(len(self.basis.directions), dtype=np.intp),
            dual_coef=self.basis.dual(solution.coefficients),
            intercept=solution.intercept,
            kernel=self.basis.kernel,
            sphere_map=train.sphere_map,
            classes=train.classes,
        )
        some = np.arange(0, len(train), -(-len(train) // _ROWS_OF_GRADIENTS))
        return on_grid(
            learn_scales(model, train.X[some], train.row_weights[some], self.fold.groups)
        )


def on_grid(scales: Array) -> Array:
    """Return feature scales rounded to powers of 2^(1/64), with a mean square of one.

    They are learned from float32 features, whose rounding errors depend on the order of the rows
    and on the processor. On the grid these errors vanish, but for a scale halfway between points.
    """
    rounded = 2.0 ** (np.round(np.log2(scales) * _SCALES_PER_OCTAVE) / _SCALES_PER_OCTAVE)
    return np.asarray(rounded * np.sqrt(len(rounded) / (rounded @ rounded)))


@dataclass(frozen=True, eq=False)
class Trial:
    """Hyperparameters with the predictions of the held-out samples.

    Attributes
    ----------
    problem : the folds
    kernel, power, loss : the kernel; k of the regularization 10^(k/2); the loss
    regularization : 10^(k/2), or the value that was given
    whitened : the folds with the whitened features of the kernel
    scores : (n, K) scores of the held-out samples, fold after fold
    losses : (n,) squared errors against one-hot targets for the squared loss, else Brier scores
    solutions : the fit of each fold; none for the squared loss, where it costs less than its memory
    """

    problem: TrialProblem
    kernel: Kernel
    power: int
    regularization: float
    loss: Loss
    whitened: Sequence[WhitenedFold]
    scores: Array
    losses: Array
    solutions: Sequence[Solution] = ()

    @property
    def mean_loss(self) -> float:
        """The weighted mean of the losses."""
        return float(np.average(self.losses, weights=self.problem.weights))

    @cached_property
    def brier(self) -> Array:
        """The (n,) Brier scores after temperature scaling: comparable between the losses."""
        if self.loss == "logistic":
            return self.losses
        return brier_losses(self.scores, self.problem.codes, self.problem.weights)

    @property
    def mean_brier(self) -> float:
        """The weighted mean of the Brier scores."""
        return float(np.average(self.brier, weights=self.problem.weights))

    @property
    def error(self) -> float:
        """The weighted misclassification rate of the held-out samples."""
        wrong = self.scores.argmax(axis=1) != self.problem.codes
        return float(np.average(wrong, weights=self.problem.weights))

    @property
    def width(self) -> int | None:
        """The k of 2γ = 2ᵏ, rounded; None for a kernel without γ."""
        gamma = getattr(self.kernel, "gamma", None)
        return None if gamma is None else round(float(np.log2(2.0 * gamma)))

    def gain_of_neighbours(self) -> float:
        """Return by how many standard errors nearest neighbours improve the probabilities.

        The probabilities P of the held-out samples are moved towards the label N of the nearest
        training sample: P + α(N − P), with the α of least squares. For a model that has learned all
        there is, α is zero; else single rows know more than the representatives.
        """
        problem = self.problem
        labels = np.eye(self.scores.shape[1])
        chances = softmax(
            self.scores / fit_temperature(self.scores, problem.codes, problem.weights), axis=1
        )
        nearest = np.concatenate([fold.nearest_codes() for fold in problem.folds])
        moves = labels[nearest] - chances
        gains = problem.weights * ((labels[problem.codes] - chances) * moves).sum(axis=1)
        spread = float(np.sqrt(len(gains)) * gains.std())
        return float(gains.sum()) / spread if spread > 0 else 0.0

    def learn_scales(self) -> list[Array]:
        """Return the feature scales of each fold, learned from its training samples."""
        regularization = self.regularization
        return self.problem.executor.map(
            lambda fold: fold.learn_scales(regularization), self.whitened
        )


@dataclass(frozen=True, eq=False)
class TrialProblem:
    """Folds of a small problem; the held-out samples are counted fold after fold.

    Attributes
    ----------
    folds : the folds, on the sphere
    parts : the rows of the folds before the map to the sphere
    executor : runs trials and folds
    tried : trials of the squared loss so far, by kernel: no candidate is fitted twice
    """

    folds: Sequence[TrialFold]
    parts: Parts
    executor: Executor = SERIAL
    tried: dict[Kernel, Trial] = field(default_factory=dict)

    @cached_property
    def codes(self) -> IntArray:
        """Positions of the classes of the held-out samples."""
        return np.concatenate([fold.test.codes for fold in self.folds])

    @cached_property
    def weights(self) -> Array:
        """Weights of the held-out samples."""
        return np.concatenate([fold.test.row_weights for fold in self.folds])

    @property
    def n_copies(self) -> int:
        """Number of held-out rows before equal ones were merged."""
        return sum(fold.test.n_copies for fold in self.folds)

    @cached_property
    def scales(self) -> list[Array | None]:
        """The feature scales of each fold."""
        return [fold.train.sphere_map.scales for fold in self.folds]

    @property
    def fitted_weight(self) -> float:
        """Total weight of the training samples, averaged over the folds."""
        return float(np.mean([fold.train.total_weight for fold in self.folds]))

    def whiten(self, kernels: Sequence[Kernel]) -> list[list[WhitenedFold]]:
        """Whiten all folds for each kernel, in parallel."""
        pairs = [(fold, kernel) for kernel in kernels for fold in self.folds]
        whitened = iter(self.executor.map(lambda pair: pair[0].whiten(pair[1]), pairs))
        return [[next(whitened) for _ in self.folds] for _ in kernels]

    def try_squared(
        self, kernels: Sequence[Kernel], regularization: float | None, power: int
    ) -> list[Trial]:
        """Try kernels with the squared loss; walk over λ from 10^(power/2) if it is open."""
        new = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self.tried]
        pairs = list(zip(new, self.whiten(new), strict=True))
        found = self.executor.map(lambda one: self._squared(*one, regularization, power), pairs)
        self.tried.update(zip(new, found, strict=True))
        return [self.tried[kernel] for kernel in kernels]

    def _squared(
        self,
        kernel: Kernel,
        folds: Sequence[WhitenedFold],
        regularization: float | None,
        power: int,
    ) -> Trial:
        found: list[Trial] = []
        for k, value, losses in _walk(regularization, power, 1):
            scores = np.concatenate([fold.scores(fold.ridge(value)) for fold in folds])
            errors = squared_losses(scores, self.codes, self.weights)
            found.append(Trial(self, kernel, k, value, "squared", folds, scores, errors))
            losses.append(found[-1].mean_loss)
        return min(found, key=lambda trial: trial.mean_loss)

    def try_logistic(self, near: Sequence[Trial], regularization: float | None) -> list[Trial]:
        """Try the logistic loss with the kernels of other trials, at their λ if it is not given."""
        return self.executor.map(partial(self._fit_logistic, given=regularization), near)

    def with_ridge(self, trial: Trial) -> Trial:
        """Return the trial of the squared loss with the same kernel, its λ searched."""
        if trial.loss == "squared":
            return trial
        if trial.kernel not in self.tried:
            found = self._squared(trial.kernel, trial.whitened, None, FIRST_POWER)
            self.tried[trial.kernel] = found
        return self.tried[trial.kernel]

    def walk_logistic(self, near: Trial) -> Trial:
        """Search λ of the logistic loss in steps of a power of ten, from that of another trial.

        Each fit starts from the last solution.
        """
        found: list[Trial] = []
        for k, value, losses in _walk(None, near.power, 2):
            last = found[-1] if found else near
            fitted = last.loss == "logistic" and last.regularization == value
            found.append(last if fitted else self._fit_logistic(replace(last, power=k), value))
            losses.append(found[-1].mean_loss)
        return min(found, key=lambda trial: trial.mean_loss)

    def _fit_logistic(self, near: Trial, given: float | None) -> Trial:
        """Fit all folds with the logistic loss, from the solutions of another trial.

        λ is `given`, or that of the other trial.
        """
        regularization = near.regularization if given is None else given
        starts: Sequence[Solution | None] = near.solutions or [None] * len(near.whitened)
        solutions = self.executor.map(
            lambda pair: pair[0].logistic(regularization, pair[1]),
            list(zip(near.whitened, starts, strict=True)),
        )
        scores = np.concatenate(
            [fold.scores(solution) for fold, solution in zip(near.whitened, solutions, strict=True)]
        )
        return replace(
            near,
            regularization=regularization,
            loss="logistic",
            scores=scores,
            losses=brier_losses(scores, self.codes, self.weights),
            solutions=solutions,
        )


def _walk(
    regularization: float | None, power: int, stride: int
) -> Iterator[tuple[int, float, list[float]]]:
    """Yield k, the regularization, and a list to which the caller appends the loss."""
    losses: list[float] = []
    if regularization is not None:
        yield power, regularization, losses
        return
    walk = downhill(min(max(power, POWERS[0]), POWERS[1]), *POWERS, stride)
    k = next(walk)
    while k is not None:
        yield k, 10.0 ** (k / 2), losses
        k = walk.send(losses[-1])


def kernel_at(family: Kernel, width: int) -> Kernel:
    """Return the kernel of a family with 2γ = 2^width."""
    tried: Any = replace(cast(Any, family), gamma=2.0 ** (width - 1))
    return cast(Kernel, tried)
