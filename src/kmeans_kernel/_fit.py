"""The coefficients: representatives in, a fitted model out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel._blocks import Array
from kmeans_kernel._calibration import fit_temperature
from kmeans_kernel._conjugate import (
    ACCEPTABLE,
    prefers_conjugate_gradients,
    solve_by_conjugate_gradients,
)
from kmeans_kernel._kernels import ExactGram, Kernel, gram_matrix, sharpened
from kmeans_kernel._logistic import fit_logistic
from kmeans_kernel._lssvm import solve_on_representatives
from kmeans_kernel._model import FittedModel
from kmeans_kernel._representation import Representation
from kmeans_kernel._ridge import NormalEquations, RidgeFit, WhiteBasis, sum_moments
from kmeans_kernel._samples import Labelled, Placement, Samples
from kmeans_kernel._selection import Loss
from kmeans_kernel._stages import Clock
from kmeans_kernel._triangles import TwoTriangles
from kmeans_kernel._workers import ALONE, Workers

FitOn: TypeAlias = Literal["samples", "representatives"]

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

    def temperature(self, data: Labelled, rng: np.random.Generator) -> float:  # noqa: ARG002
        """Return one: nothing was left out.

        It is the paper's, and the logistic loss has the scale of its scores from the samples.
        """
        return 1.0


@dataclass(frozen=True, eq=False)
class SamplesFit(Fit):
    """A fit to all samples, which knows what it would be without some of them."""

    white: WhiteBasis
    ridge: RidgeFit

    def temperature(self, data: Labelled, rng: np.random.Generator) -> float:
        """Return the temperature that suits left-out scores of some samples best."""
        placement = Placement(self.model.lift, self.model.feature_scales)
        samples = Samples(data.at(data.some_rows(_ROWS_OF_TEMPERATURE, rng)), placement)
        features = self.white.features(samples.directions())
        scores = self.ridge.left_out_scores(features, samples.targets(), samples.weight_of_a_copy)
        return fit_temperature(scores, samples.codes, samples.weights)


def _solve(
    white: WhiteBasis,
    samples: Samples,
    counts: npt.NDArray[Any],
    regularization: float,
    workers: Workers,
) -> RidgeFit:
    """Solve in the way that costs less; where float32 spoils the steps, in the exact one."""
    if prefers_conjugate_gradients(len(samples), len(white.directions), samples.n_classes):
        found = solve_by_conjugate_gradients(white, samples, counts, regularization, workers)
        if found.relative_residual <= ACCEPTABLE:
            return found
    return NormalEquations.of(sum_moments(white, samples, workers)).solve(regularization)


def fit(
    data: Labelled,
    placement: Placement,
    basis: Representation,
    kernel: Kernel,
    regularization: float,
    fit_on: FitOn,
    loss: Loss = "squared",
    workers: Workers = ALONE,
    clock: Clock | None = None,
) -> Fit:
    """Fit the coefficients of the representatives; the logistic loss is for samples."""
    clock = Clock() if clock is None else clock
    basis = replace(basis, directions=sharpened(basis.directions, kernel))

    def model(dual_coef: Array, intercept: Array) -> FittedModel:
        return FittedModel(
            directions=basis.directions,
            representative_classes=basis.owners,
            representative_counts=basis.counts,
            dual_coef=dual_coef,
            intercept=intercept,
            kernel=kernel,
            lift=placement.lift,
            classes=data.classes,
            feature_scales=placement.scales,
        )

    if fit_on == "samples":
        samples = Samples(data, placement)
        with clock.stage("kernel"):
            white = WhiteBasis.of(basis.directions, kernel, workers)
        if loss == "logistic":
            with clock.stage("solve"):
                logistic = fit_logistic(white, samples, basis.counts, regularization, workers)
                dual_coef = white.dual(logistic.coefficients)
            return Fit(model(dual_coef, logistic.intercept), logistic.relative_residual)
        with clock.stage("solve"):
            found = _solve(white, samples, basis.counts, regularization, workers)
            dual_coef = white.dual(found.coefficients)
        return SamplesFit(model(dual_coef, found.intercept), found.relative_residual, white, found)

    def gram(dtype: npt.DTypeLike) -> TwoTriangles:
        with clock.stage("kernel"):
            return gram_matrix(basis.directions, kernel, dtype, workers)

    with clock.stage("solve"):
        solution = solve_on_representatives(
            gram,
            ExactGram(basis.directions, kernel, workers),
            np.eye(len(data.classes))[basis.owners],
            regularization,
            workers=workers,
        )
    return Fit(model(solution.dual_coef, solution.intercept), solution.relative_residual)
