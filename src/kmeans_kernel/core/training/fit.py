"""The coefficients: representatives in, a fitted model out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.events import SolveStarted
from kmeans_kernel.core.arrays.execution import Executor, Run
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.arrays.rows import TrainingRows, stratified_sample
from kmeans_kernel.core.clustering.representatives import Representatives
from kmeans_kernel.core.kernels.gram import ExactGram, gram_matrix
from kmeans_kernel.core.kernels.kernels import Kernel, unit_rows_for
from kmeans_kernel.core.kernels.two_triangles import TwoTriangles
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.model.temperature import fit_temperature
from kmeans_kernel.core.solvers.conjugate_gradients import (
    ACCEPTABLE,
    solve_by_conjugate_gradients,
)
from kmeans_kernel.core.solvers.dual import solve_on_representatives
from kmeans_kernel.core.solvers.logistic import LogisticProblem, fit_logistic
from kmeans_kernel.core.solvers.nystrom import (
    NormalEquations,
    NystromBasis,
    Solution,
    left_out_scores,
    whitened_blocks,
)
from kmeans_kernel.core.training.config import FitOn, Loss

# Samples whose leave-one-out scores set the temperature.
_ROWS_OF_TEMPERATURE = 2000

# The cost of a conjugate gradient step for each kernel value, in products of the normal equations,
# and the expected number of steps. Measured on MNIST: a step waits for the memory that holds the
# kernel.
_COST_OF_A_STEP = 25
_EXPECTED_STEPS = 40


def fit_coefficients(
    rows: TrainingRows,
    basis: Representatives,
    kernel: Kernel,
    regularization: float | Array,
    fit_on: FitOn,
    loss: Loss,
    run: Run,
) -> tuple[FittedModel, Solution]:
    """Fit the coefficients of the representatives; the logistic loss is for samples alone.

    The regularization may be an array, one for each representative, if these are fitted to.
    Returns the model, at a temperature of one, and the solution with the coefficients of its basis
    functions.
    """
    basis = replace(basis, directions=unit_rows_for(kernel, basis.directions))
    if run.on_event is not None:
        run.on_event(SolveStarted(len(basis.directions)))
    if fit_on == "representatives":
        solution = _fit_to_representatives(rows, basis, kernel, regularization, run)
        dual_coef = solution.coefficients
    else:
        with run.stage("kernel"):
            nystrom = NystromBasis.of(basis.directions, kernel, run.executor)
        with run.stage("solve"):
            fit = _fit_logistic if loss == "logistic" else _fit_squares
            solution = fit(rows, basis, nystrom, float(regularization), run.executor)
            dual_coef = nystrom.dual(solution.coefficients)
    model = FittedModel(
        directions=basis.directions,
        representative_classes=basis.codes,
        representative_counts=basis.counts,
        dual_coef=dual_coef,
        intercept=solution.intercept,
        kernel=kernel,
        sphere_map=rows.sphere_map,
        classes=rows.classes,
    )
    return model, solution


def _fit_squares(
    rows: TrainingRows,
    basis: Representatives,
    nystrom: NystromBasis,
    regularization: float,
    executor: Executor,
) -> Solution:
    """Fit squares to all samples, in the way that costs less; out of core, in one pass."""
    n, m, K = len(rows), len(nystrom.directions), len(rows.classes)
    if rows.in_memory and prefers_conjugate_gradients(n, m, K):
        found = solve_by_conjugate_gradients(
            nystrom, rows.load(), basis.counts, regularization, executor
        )
        if found.relative_residual <= ACCEPTABLE:
            return found
        # Rounding of float32 spoilt the steps: the exact way.
    equations = NormalEquations.of(whitened_blocks(nystrom, rows, executor))
    found, triangle = equations.solve(regularization)
    left_out = partial(
        left_out_scores, nystrom, found, equations.mean_z, triangle, equations.weight
    )
    return replace(found, left_out_scores=left_out)


def prefers_conjugate_gradients(n: int, m: int, K: int) -> bool:
    """Say whether conjugate gradients cost less than the normal equations.

    Both factor the kernel matrix. The normal equations solve a triangle and make a symmetric
    product for every sample, m² each; conjugate gradients make one product of m³ and then steps.
    """
    normal = float(n) * m**2
    steps = _EXPECTED_STEPS * (_COST_OF_A_STEP + K) * float(n) * m
    return m**3 / 2 + steps < normal


def _fit_logistic(
    rows: TrainingRows,
    basis: Representatives,
    nystrom: NystromBasis,
    regularization: float,
    executor: Executor,
) -> Solution:
    """Fit the logistic loss to all samples."""
    if rows.in_memory:
        return fit_logistic(nystrom, rows.load(), basis.counts, regularization, executor)
    return LogisticProblem.out_of_core(nystrom, rows, executor).solve(regularization)


def _fit_to_representatives(
    rows: TrainingRows,
    basis: Representatives,
    kernel: Kernel,
    regularization: float | Array,
    run: Run,
) -> Solution:
    """Fit squares to the representatives, as the paper does; coefficients are the dual ones."""
    directions, executor = basis.directions, run.executor

    def gram(dtype: npt.DTypeLike) -> TwoTriangles:
        with run.stage("kernel"):
            return gram_matrix(directions, kernel, dtype, executor)

    with run.stage("solve"):
        found = solve_on_representatives(
            gram,
            ExactGram(directions, kernel, executor),
            np.eye(len(rows.classes))[basis.codes],
            regularization,
            executor=executor,
        )
    return Solution(found.dual_coef, found.intercept, found.relative_residual)


def calibrate(solution: Solution, rows: TrainingRows, rng: np.random.Generator) -> float:
    """Return the temperature with the least log-loss of leave-one-out scores of some samples.

    It is one where these are not known: for the paper's fit, and for the logistic loss, whose
    scores have their scale from the samples.
    """
    if solution.left_out_scores is None:
        return 1.0
    some = stratified_sample(rows, _ROWS_OF_TEMPERATURE, rng)
    return fit_temperature(solution.left_out_scores(some), some.codes, some.row_weights)
