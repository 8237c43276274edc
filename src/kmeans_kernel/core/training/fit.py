"""The coefficients: representatives in, a fitted model out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.arrays.executor import ALONE, Workers
from kmeans_kernel.core.arrays.samples import Data, Labelled, Placement, Samples, some_of
from kmeans_kernel.core.arrays.stream import LossesOfStream, Stream, SumOfMoments
from kmeans_kernel.core.arrays.triangles import TwoTriangles
from kmeans_kernel.core.clustering.representatives import Representation
from kmeans_kernel.core.kernels.kernels import ExactGram, Kernel, gram_matrix, sharpened
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.model.temperature import fit_temperature
from kmeans_kernel.core.solvers.conjugate_gradients import (
    ACCEPTABLE,
    prefers_conjugate_gradients,
    solve_by_conjugate_gradients,
)
from kmeans_kernel.core.solvers.dual import solve_on_representatives
from kmeans_kernel.core.solvers.logistic import LogisticProblem, fit_logistic
from kmeans_kernel.core.solvers.nystrom import NormalEquations, RidgeFit, WhiteBasis
from kmeans_kernel.core.training.timing import Clock

FitOn: TypeAlias = Literal["samples", "representatives"]
Loss: TypeAlias = Literal["squared", "logistic"]

# Samples whose left-out scores set the temperature.
_ROWS_OF_TEMPERATURE = 2000


@dataclass(frozen=True, eq=False)
class Fit:
    """A model without its temperature.

    Attributes
    ----------
    model : the model
    relative_residual : of the system that was solved
    """

    model: FittedModel
    relative_residual: float

    def temperature(self, data: Data, rng: np.random.Generator) -> float:  # noqa: ARG002
        """Return one: nothing was left out.

        It is the paper's, and the logistic loss has the scale of its scores from the samples.
        """
        return 1.0


@dataclass(frozen=True, eq=False)
class SamplesFit(Fit):
    """A fit to all samples, which knows what it would be without some of them."""

    white: WhiteBasis
    ridge: RidgeFit

    def temperature(self, data: Data, rng: np.random.Generator) -> float:
        """Return the temperature that suits left-out scores of some samples best."""
        placement = Placement(self.model.lift, self.model.feature_scales)
        samples = Samples(some_of(data, _ROWS_OF_TEMPERATURE, rng), placement)
        features = self.white.features(samples.directions())
        scores = self.ridge.left_out_scores(features, samples.targets(), samples.weight_of_a_copy)
        return fit_temperature(scores, samples.codes, samples.weights)


def fit(
    data: Labelled | Stream,
    placement: Placement,
    basis: Representation,
    kernel: Kernel,
    regularization: float | Array,
    fit_on: FitOn,
    loss: Loss = "squared",
    workers: Workers = ALONE,
    clock: Clock | None = None,
) -> Fit:
    """Fit the coefficients of the representatives; the logistic loss is for samples.

    The regularisation may be one for each representative where these are fitted to.
    """
    basis = replace(basis, directions=sharpened(basis.directions, kernel))
    clock = Clock() if clock is None else clock
    solver = _Solver(data, placement, basis, kernel, workers, clock)
    if fit_on == "representatives":
        return solver.on_representatives(regularization)
    of_samples = solver.logistic if loss == "logistic" else solver.squares
    return of_samples(float(regularization))


@dataclass(frozen=True, eq=False)
class _Solver:
    """What is fitted, and the ways to it; each takes its regularisation."""

    data: Labelled | Stream
    placement: Placement
    basis: Representation
    kernel: Kernel
    workers: Workers
    clock: Clock

    def squares(self, regularization: float) -> Fit:
        """Fit squares to all samples."""
        white = self._white()
        with self.clock.stage("solve"):
            found = self._ridge(white, regularization)
            model = self._model(white.dual(found.coefficients), found.intercept)
        return SamplesFit(model, found.relative_residual, white, found)

    def _ridge(self, white: WhiteBasis, regularization: float) -> RidgeFit:
        """Solve in the way that costs less; of a stream, in the one that visits it once."""
        if isinstance(self.data, Stream):
            return self._equations_of(self.data, white).solve(regularization)
        samples, m = Samples(self.data, self.placement), len(white.directions)
        if prefers_conjugate_gradients(len(samples), m, samples.n_classes):
            found = solve_by_conjugate_gradients(
                white, samples, self.basis.counts, regularization, self.workers
            )
            if found.relative_residual <= ACCEPTABLE:
                return found
            # Float32 spoilt the steps: the exact way.
        return NormalEquations.on(white, samples, self.workers).solve(regularization)

    def logistic(self, regularization: float) -> Fit:
        """Fit the logistic loss to all samples."""
        white = self._white()
        with self.clock.stage("solve"):
            if isinstance(self.data, Stream):
                found = self._problem_of(self.data, white).solve(regularization)
            else:
                samples = Samples(self.data, self.placement)
                found = fit_logistic(
                    white, samples, self.basis.counts, regularization, self.workers
                )
            model = self._model(white.dual(found.coefficients), found.intercept)
        return Fit(model, found.relative_residual)

    def _problem_of(self, data: Stream, white: WhiteBasis) -> LogisticProblem:
        """Visit all rows once for the covariance; every step is another visit."""
        equations = self._equations_of(data, white)
        losses = LossesOfStream(data, white, self.placement)
        return LogisticProblem(losses, equations.mean_z, equations.covariance)

    def _equations_of(self, data: Stream, white: WhiteBasis) -> NormalEquations:
        return NormalEquations.of(data.sum(SumOfMoments(white, self.placement)))

    def on_representatives(self, regularization: float | Array) -> Fit:
        """Fit squares to the representatives, as the paper does."""
        directions = self.basis.directions

        def gram(dtype: npt.DTypeLike) -> TwoTriangles:
            with self.clock.stage("kernel"):
                return gram_matrix(directions, self.kernel, dtype, self.workers)

        with self.clock.stage("solve"):
            found = solve_on_representatives(
                gram,
                ExactGram(directions, self.kernel, self.workers),
                np.eye(len(self.data.classes))[self.basis.owners],
                regularization,
                workers=self.workers,
            )
        return Fit(self._model(found.dual_coef, found.intercept), found.relative_residual)

    def _white(self) -> WhiteBasis:
        with self.clock.stage("kernel"):
            return WhiteBasis.of(self.basis.directions, self.kernel, self.workers)

    def _model(self, dual_coef: Array, intercept: Array) -> FittedModel:
        return FittedModel(
            directions=self.basis.directions,
            representative_classes=self.basis.owners,
            representative_counts=self.basis.counts,
            dual_coef=dual_coef,
            intercept=intercept,
            kernel=self.kernel,
            lift=self.placement.lift,
            classes=self.data.classes,
            feature_scales=self.placement.scales,
        )
