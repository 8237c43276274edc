"""The fit of the coefficients of the representatives, and temperature scaling."""

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
from kmeans_kernel.core.model.temperature import fit_temperature, label_smoothing
from kmeans_kernel.core.solvers.conjugate_gradients import (
    ACCEPTABLE,
    solve_by_conjugate_gradients,
)
from kmeans_kernel.core.solvers.dual import solve_on_representatives
from kmeans_kernel.core.solvers.logistic import LogisticProblem, fit_logistic
from kmeans_kernel.core.solvers.nystrom import (
    STORED_UP_TO,
    NormalEquations,
    NystromBasis,
    Solution,
    left_out_scores,
    rounding_noise,
    sample_size,
    sampling_pays,
    whitened_blocks,
)
from kmeans_kernel.core.training.config import MOST_FEATURES_OF_A_TABLE, FitOn, Loss

# Number of samples whose leave-one-out scores set the temperature.
_ROWS_OF_TEMPERATURE = 1000

# The most operations (n m²) of a fit in float64: about a tenth of a second.
_FLOAT64_PRODUCTS = 1e9

# Cost of a conjugate gradient step per kernel value, in operations of the normal equations, and the
# expected number of steps. Measured on MNIST; a step is bound by memory bandwidth.
_COST_OF_A_STEP = 25
_EXPECTED_STEPS = 40

# Steps where the preconditioner and the start come from a sample, with the pass for the first
# residual; and the cost of computing a kernel value anew. Measured on a million rows of 30
# features, where the exponential takes half of the time.
_STEPS_FROM_A_SAMPLE = 4
_COST_OF_A_VALUE = 200

# Largest tolerated rounding error of ridge scores, which are about 0 or 1.
_TOLERABLE_NOISE = 2e-3


def fit_coefficients(
    rows: TrainingRows,
    basis: Representatives,
    kernel: Kernel,
    regularization: float | Array,
    fit_on: FitOn,
    loss: Loss,
    run: Run,
) -> tuple[FittedModel, Solution]:
    """Fit the coefficients of the representatives; arguments are trusted.

    The logistic loss needs `fit_on="samples"`. With `fit_on="representatives"` the regularization
    may be an array of ε, one for each representative. Returns the model, at a temperature of one,
    and the solution in the coordinates of the solver.
    """
    basis = replace(basis, directions=unit_rows_for(kernel, basis.directions))
    if run.on_event is not None:
        run.on_event(SolveStarted(len(basis.directions)))
    if fit_on == "representatives":
        solution = _fit_to_representatives(rows, basis, kernel, regularization, run)
        dual_coef = solution.coefficients
    else:
        with run.stage("kernel"):
            narrow = rows.n_features <= MOST_FEATURES_OF_A_TABLE
            is_table = narrow or rows.sphere_map.feature_transform is not None
            dtype = feature_type(len(rows), len(basis.directions), is_table=is_table)
            nystrom = NystromBasis.of(basis.directions, kernel, run.executor, dtype)
        with run.stage("solve"):
            fit = _fit_logistic if loss == "logistic" else _fit_ridge
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


def feature_type(n: int, m: int, *, is_table: bool) -> npt.DTypeLike:
    """Return the type of the whitened features of n samples: float32 for large tables.

    Float32 takes less than half of the time, and changes scores by less than 1e-2. Small problems
    are the badly conditioned ones, and fast in any case. Wide rows have float32 kernel values where
    time matters: see `prefers_conjugate_gradients`.
    """
    large = float(n) * m**2 > _FLOAT64_PRODUCTS
    return np.float32 if large and is_table else np.float64


def _fit_ridge(
    rows: TrainingRows,
    basis: Representatives,
    nystrom: NystromBasis,
    regularization: float,
    executor: Executor,
) -> Solution:
    """Fit Nyström kernel ridge regression by the cheaper solver; out of core, in one pass."""
    n, m, K = len(rows), len(nystrom.directions), len(rows.classes)
    if rows.in_memory and prefers_conjugate_gradients(n, m, K):
        found = solve_by_conjugate_gradients(
            nystrom, rows.load(), basis.counts, regularization, executor
        )
        noise = rounding_noise(nystrom.dual(found.coefficients))
        if found.relative_residual <= ACCEPTABLE and noise <= _TOLERABLE_NOISE:
            return found
        # Float32 rounding kept conjugate gradients from converging, or spoils the scores: solve the
        # normal equations of the whitened features.
    equations = NormalEquations.of(whitened_blocks(nystrom, rows, executor))
    found, triangle = equations.solve(regularization)
    left_out = partial(
        left_out_scores, nystrom, found, equations.mean_z, triangle, equations.weight
    )
    return replace(found, left_out_scores=left_out)


def prefers_conjugate_gradients(n: int, m: int, K: int) -> bool:
    """Return whether conjugate gradients cost less than the normal equations.

    Both factor the kernel matrix. For every sample the normal equations need a triangular solve and
    a symmetric rank-one update, about m² operations; conjugate gradients need a preconditioner,
    about m³ or a share of the normal equations, and then passes over the kernel values, held or
    recomputed.
    """
    normal, values = float(n) * m**2, float(n) * m
    sampled = sampling_pays(n, m)
    prepare = float(sample_size(n, m)) * m**2 if sampled else m**3 / 2
    steps = _STEPS_FROM_A_SAMPLE if sampled else _EXPECTED_STEPS
    step = _COST_OF_A_STEP + K + (_COST_OF_A_VALUE if 4.0 * values > STORED_UP_TO else 0)
    return prepare + steps * step * values < normal


def _fit_logistic(
    rows: TrainingRows,
    basis: Representatives,
    nystrom: NystromBasis,
    regularization: float,
    executor: Executor,
) -> Solution:
    """Fit Nyström kernel logistic regression to all samples, in memory or out of core."""
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
    """Fit the paper's LS-SVM to the representatives; the coefficients are dual coefficients."""
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


def calibrate(solution: Solution, rows: TrainingRows, run: Run) -> float:
    """Return the temperature with the least log-loss of leave-one-out scores of some samples.

    It is one where there are no leave-one-out scores: for the paper's LS-SVM, and for the logistic
    loss, whose minimisation already sets the scale of the scores.
    """
    if solution.left_out_scores is None:
        return 1.0
    some = stratified_sample(rows, _ROWS_OF_TEMPERATURE, run.rng)
    shares = np.array_split(np.arange(len(some)), run.executor.count)
    parts = [some.at(share) for share in shares if len(share)]
    scores = np.concatenate(run.executor.map(solution.left_out_scores, parts))
    return fit_temperature(scores, some.codes, some.row_weights, label_smoothing(some.n_copies))
