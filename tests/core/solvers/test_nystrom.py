from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from kmeans_kernel.core.arrays.execution import SERIAL
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.kernels.kernels import ExponentialPower, Gaussian, Laplacian, Polynomial
from kmeans_kernel.core.solvers.conjugate_gradients import (
    conjugate_gradients,
    solve_by_conjugate_gradients,
)
from kmeans_kernel.core.solvers.leave_one_out import RidgePath
from kmeans_kernel.core.solvers.nystrom import (
    FeatureBlocks,
    NormalEquations,
    NystromBasis,
    factor_with_ridge,
    float32_kernel_blocks,
    held_whitened_blocks,
    kernel_blocks,
    left_out_scores,
    nugget,
    rounding_noise,
    sample_size,
    sampling_pays,
    whitened_blocks,
)
from kmeans_kernel.core.solvers.preconditioner import estimate_covariance, sample_equations
from kmeans_kernel.core.training.fit import prefers_conjugate_gradients
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.reference import nystrom as twin

SUMS = ("weight", "z", "y", "zz", "zy")

EXECUTORS = pytest.mark.parametrize(
    "executor", [SERIAL, ThreadExecutor(2)], ids=["serial", "threads"]
)


@pytest.fixture(
    params=[
        Gaussian(1.0),
        Gaussian(8.0),
        Laplacian(1.0),
        ExponentialPower(1.0, 1.5),
        Polynomial(4),
    ],
    ids=str,
)
def problem(request, rng):
    U = unit_rows(rng.normal(size=(60, 5)), 1.0, np.float64)
    directions = unit_rows(rng.normal(size=(12, 5)), 1.0, np.float64)
    Y = np.eye(3)[rng.integers(0, 3, 60)]
    weights = rng.integers(1, 4, 60).astype(float)
    K, omega = U @ directions.T, directions @ directions.T
    request.param.apply(K)
    request.param.apply(omega)
    return NystromBasis.of(directions, request.param), U, Y, weights, K, omega


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("kmeans_kernel.core.arrays.rows._BLOCK_ROWS", 7)


def labelled(U, Y, weights):
    return LabelledRows(U, Y.argmax(axis=1), np.arange(Y.shape[1]), weights)


def same(columns):
    return columns


def equations_of(Z, Y, weights):
    """The normal equations of given features: the rows themselves."""
    rows = labelled(Z, Y, weights)
    return NormalEquations.of(FeatureBlocks(rows, lambda block: block.X, same, same))


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0])
def test_solution_equals_the_twin(problem, regularization):
    basis, U, Y, weights, K, omega = problem
    equations = equations_of(basis.features(U), Y, weights)
    path = RidgePath.of(equations)
    a, b = twin.solve(K, omega, Y, weights, regularization, nugget(12))
    along = path.along_axes(basis.features(U))
    np.testing.assert_allclose(path.scores(along, regularization), K @ a + b, atol=1e-8)
    one, triangle = equations.solve(regularization)
    found = K @ basis.dual(one.coefficients) + one.intercept
    np.testing.assert_allclose(found, K @ a + b, atol=1e-8)
    assert one.relative_residual < 1e-10
    assert one.left_out_scores is None
    ridged = equations.covariance() + regularization * np.eye(12)
    np.testing.assert_allclose(np.tril(triangle) @ np.tril(triangle).T, ridged, atol=1e-12)


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0])
def test_left_out_scores_equal_fitting_again(problem, regularization):
    basis, U, Y, weights, K, omega = problem
    Z = basis.features(U)
    path = RidgePath.of(equations_of(Z, Y, weights))
    found = path.left_out_scores(path.along_axes(Z), Y, weights, regularization)
    expected = twin.left_out_scores(K, omega, Y, weights, regularization, nugget(12))
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("whole", [True, False], ids=["copies", "weights that are no copies"])
def test_left_out_scores_of_a_solution_equal_fitting_again(problem, regularization, whole, rng):
    """A weight that may be that of equal rows loses one of them, any other is left out whole."""
    basis, U, Y, weights, K, omega = problem
    if not whole:
        weights = rng.uniform(1.0, 3.0, 60)
    rows = labelled(U, Y, weights)
    left_out = np.ones(60) if whole else weights
    np.testing.assert_array_equal(rows.copy_weights, left_out)
    equations = NormalEquations.of(whitened_blocks(basis, rows))
    one, triangle = equations.solve(regularization)
    expected = twin.left_out_scores(K, omega, Y, weights, regularization, nugget(12), left_out)
    found = left_out_scores(basis, one, equations.mean_z, triangle, equations.weight, rows)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    path = RidgePath.of(equations)
    along = path.along_axes(basis.features(U))
    found = path.left_out_scores(along, Y, rows.copy_weights, regularization)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@EXECUTORS
@pytest.mark.usefixtures("small_blocks")
def test_normal_equations_of_samples_are_sums_over_their_blocks(problem, executor):
    basis, U, Y, weights, K, omega = problem
    rows = labelled(U, Y, weights)
    naive = twin.normal_equations(twin.whitened_features(K, omega, nugget(12)), Y, weights)
    for blocks in (whitened_blocks, held_whitened_blocks):
        found = NormalEquations.of(blocks(basis, rows, executor))
        expected = equations_of(basis.features(U), Y, weights)
        for name in SUMS:
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
            np.testing.assert_allclose(getattr(found, name), naive[name], atol=1e-6)


def test_means_and_covariances_are_weighted(problem):
    basis, U, Y, weights, *_ = problem
    Z = basis.features(U)
    found = equations_of(Z, Y, weights)
    expected = np.cov(np.hstack([Z, Y]).T, bias=True, fweights=weights.astype(int))
    np.testing.assert_allclose(found.mean_z, np.average(Z, axis=0, weights=weights))
    np.testing.assert_allclose(found.mean_y, np.average(Y, axis=0, weights=weights))
    np.testing.assert_allclose(found.covariance(), expected[:12, :12], atol=1e-12)
    np.testing.assert_allclose(found.slopes(), expected[:12, 12:], atol=1e-12)


@EXECUTORS
@pytest.mark.parametrize(
    ("blocks", "dtype", "whitened"),
    [
        (whitened_blocks, np.float64, True),
        (held_whitened_blocks, np.float64, True),
        (kernel_blocks, np.float64, False),
        (float32_kernel_blocks, np.float32, False),
        (partial(float32_kernel_blocks, stored_up_to=0), np.float32, False),
    ],
    ids=["whitened", "held whitened", "kernel", "held float32 kernel", "float32 kernel"],
)
@pytest.mark.usefixtures("small_blocks")
def test_feature_blocks_equal_the_twin(problem, blocks, dtype, whitened, executor, rng):
    """Features, sums over them, and the maps of both to whitened features."""
    basis, U, Y, weights, K, omega = problem
    Z = twin.whitened_features(K, omega, nugget(12))
    found = blocks(basis, labelled(U, Y, weights), executor)
    of_class, V = rng.normal(size=(3, 2)), rng.normal(size=(12, 2))
    atol = 1e-6 if dtype == np.float64 else 1e-4

    def residuals(features, codes, weights):
        assert features.dtype == dtype
        assert len(features) <= 7
        return weights[:, None] * of_class[codes]

    expected = weights[:, None] * of_class[Y.argmax(axis=1)]
    sums = found.sums(residuals)
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums, (Z if whitened else K).T @ expected, atol=atol)
    np.testing.assert_allclose((Z if whitened else K) @ found.to_kernel(V), Z @ V, atol=1e-6)
    exact = (Z if whitened else K).T @ expected
    np.testing.assert_allclose(found.to_whitened(exact), Z.T @ expected, atol=1e-6)
    assert found.total(lambda features, codes, weights: weights.sum()) == weights.sum()


def test_held_features_are_made_once(problem):
    basis, U, Y, weights, *_ = problem
    made = []

    def make(block):
        made.append(len(block))
        return basis.features(block.directions())

    blocks = FeatureBlocks(labelled(U, Y, weights), make, same, same)
    for _ in range(3):
        NormalEquations.of(blocks)
    assert made == [60] * 3
    held = blocks.hold()
    for _ in range(3):
        NormalEquations.of(held)
    assert made == [60] * 4


def test_many_whitened_features_are_held_in_float32(problem, monkeypatch):
    basis, U, Y, weights, *_ = problem
    rows = labelled(U, Y, weights)
    exact = held_whitened_blocks(basis, rows).held[0][0]
    monkeypatch.setattr("kmeans_kernel.core.solvers.nystrom._EXACT_UP_TO", 8 * 60 * 12 - 1)
    rounded = held_whitened_blocks(basis, rows).held[0][0]
    assert (exact.dtype, rounded.dtype) == (np.float64, np.float32)
    np.testing.assert_array_equal(rounded, exact.astype(np.float32))


@pytest.mark.parametrize("stored_up_to", [0, 1e9])
@EXECUTORS
@pytest.mark.usefixtures("small_blocks")
def test_conjugate_gradients_agree_with_the_twin(problem, executor, stored_up_to):
    basis, U, Y, weights, K, omega = problem
    counts, rows = np.full(12, weights.sum() / 12), labelled(U, Y, weights)
    found = solve_by_conjugate_gradients(
        basis, rows, counts, 1e-3, executor, stored_up_to=stored_up_to, tolerance=1e-5
    )
    assert found.relative_residual <= 1e-4
    a, b = twin.solve(K, omega, Y, weights, 1e-3, nugget(12))
    np.testing.assert_allclose(
        K @ basis.dual(found.coefficients) + found.intercept, K @ a + b, atol=1e-3
    )
    mean, covariance = estimate_covariance(basis, rows, counts)
    triangle = factor_with_ridge(covariance, 1e-3)
    expected = left_out_scores(basis, found, mean, triangle, weights.sum(), rows)
    np.testing.assert_array_equal(found.left_out_scores(rows), expected)


def test_covariance_estimate_equals_the_twin(problem):
    basis, U, Y, weights, K, omega = problem
    counts = np.arange(1.0, 13.0)
    mean, covariance = estimate_covariance(basis, labelled(U, Y, weights), counts)
    Z = twin.whitened_features(K, omega, nugget(12))
    args = (np.linalg.cholesky(omega + nugget(12) * np.eye(12)), counts, Z, U @ basis.directions.T)
    expected_mean, expected = twin.estimate_covariance(*args, weights)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-7)
    np.testing.assert_allclose(covariance, expected, atol=1e-4)


def test_covariance_estimate_is_exact_where_samples_are_representatives(problem):
    basis, *_ = problem
    rows = labelled(basis.directions, np.eye(3)[np.arange(12) % 3], np.arange(1.0, 13.0))
    mean, covariance = estimate_covariance(basis, rows, np.arange(1.0, 13.0))
    exact = NormalEquations.of(whitened_blocks(basis, rows))
    np.testing.assert_allclose(mean, exact.mean_z, atol=1e-5)
    np.testing.assert_allclose(covariance, exact.covariance(), atol=1e-4)


def test_conjugate_gradients_solve_a_positive_definite_system(rng):
    A = rng.normal(size=(30, 30))
    A = A @ A.T + np.eye(30)
    B = rng.normal(size=(30, 4))
    B[:, 2] = 0.0
    found, reached = conjugate_gradients(lambda V: A @ V, lambda V: V, B, 1e-10)
    assert reached <= 1e-10
    np.testing.assert_allclose(found, np.linalg.solve(A, B), atol=1e-8)


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_steps_of_conjugate_gradients_equal_the_twin(steps, rng):
    A = rng.normal(size=(30, 30))
    A, P = A @ A.T + 30 * np.eye(30), np.diag(rng.uniform(0.5, 2.0, 30))
    B = rng.normal(size=(30, 4))
    found, reached = conjugate_gradients(lambda V: A @ V, lambda V: P @ V, B, 0.0, steps)
    expected = [twin.conjugate_gradients(A, P, column, steps) for column in B.T]
    np.testing.assert_allclose(found.T, expected, atol=1e-12)
    residuals = np.linalg.norm(B - A @ found, axis=0) / np.linalg.norm(B, axis=0)
    assert reached == pytest.approx(residuals.max())


def test_conjugate_gradients_of_an_indefinite_system_return_the_best_solution(rng):
    A = np.diag(np.append(np.ones(29), -3.0)) + 0.1 * rng.normal(size=(30, 30))
    found, reached = conjugate_gradients(lambda V: A @ V, lambda V: V, rng.normal(size=(30, 2)))
    assert np.isfinite(found).all()
    assert reached <= 1.0


def test_conjugate_gradients_are_preferred_for_many_representatives():
    assert not prefers_conjugate_gradients(60_000, 1_000, 10)
    assert prefers_conjugate_gradients(60_000, 10_000, 10)
    assert not prefers_conjugate_gradients(1_000, 1_000, 2)
    assert prefers_conjugate_gradients(100_000, 2_000, 5)
    assert prefers_conjugate_gradients(1_000_000, 2_000, 2)
    # Kernel values that are recomputed in every pass cost more than few whitened features.
    assert not prefers_conjugate_gradients(2_000_000, 500, 2)


def test_a_sample_pays_for_many_rows():
    assert sampling_pays(100_000, 2_000)
    assert not sampling_pays(10_000, 2_000)
    assert not sampling_pays(100_000, 100)
    assert sample_size(100_000, 2_000) == 12_000
    assert sample_size(1_000_000, 2_000) == 40_000


def test_sample_of_all_rows_has_the_normal_equations_of_the_twin(problem):
    basis, U, Y, weights, K, omega = problem
    found = sample_equations(basis, labelled(U, Y, weights))  # 60 rows, fewer than a sample
    naive = twin.normal_equations(twin.whitened_features(K, omega, nugget(12)), Y, weights)
    for name in SUMS:
        np.testing.assert_allclose(getattr(found, name), naive[name], atol=1e-6)


@pytest.mark.parametrize("stored_up_to", [0, 1e9])
def test_conjugate_gradients_from_a_sample_agree_with_the_twin(problem, stored_up_to, monkeypatch):
    home = "kmeans_kernel.core.solvers.nystrom."
    for name, value in (("_MOST_EXACT", 0.0), ("_SMALL_SHARE", 1.0), ("_LEAST_SAMPLE", 3)):
        monkeypatch.setattr(home + name, value)
    basis, U, Y, weights, K, omega = problem
    found = solve_by_conjugate_gradients(
        basis, labelled(U, Y, weights), np.ones(12), 1e-3, stored_up_to=stored_up_to,
        tolerance=1e-5,
    )  # fmt: skip
    assert found.relative_residual <= 1e-4
    a, b = twin.solve(K, omega, Y, weights, 1e-3, nugget(12))
    scores = K @ basis.dual(found.coefficients) + found.intercept
    np.testing.assert_allclose(scores, K @ a + b, atol=1e-3)


def test_a_step_of_conjugate_gradients_continues_from_the_start(rng):
    A = rng.normal(size=(30, 30))
    A, B = A @ A.T + np.eye(30), rng.normal(size=(30, 2))
    near = np.linalg.solve(A, B) + 1e-3 * rng.normal(size=(30, 2))
    found, reached = conjugate_gradients(
        lambda V: A @ V, lambda V: V, B, 1e-10, start=(near, B - A @ near)
    )
    assert reached <= 1e-10
    np.testing.assert_allclose(found, np.linalg.solve(A, B), atol=1e-8)


def test_rounding_noise_bounds_the_error_of_float32_kernel_values(rng):
    K, dual = rng.random((2000, 300)), 100 * rng.normal(size=(300, 2))
    error = (K.astype(np.float32).astype(np.float64) - K) @ dual
    assert error.std() < rounding_noise(dual) < 100 * error.std()


def test_singular_system_fails_with_a_remedy():
    Z = np.ones((5, 3))
    equations = equations_of(Z, np.eye(2)[[0, 1, 0, 1, 0]], np.ones(5))
    with pytest.raises(np.linalg.LinAlgError, match="3 representatives.*raise regularization"):
        equations.solve(0.0)


def test_factor_has_the_ridge_that_was_asked_for_unless_rounding_needs_more(rng):
    A = rng.normal(size=(6, 8))
    covariance = A @ A.T
    found = np.tril(factor_with_ridge(covariance.copy(), 0.1))
    np.testing.assert_allclose(found @ found.T, covariance + 0.1 * np.eye(6), atol=1e-12)
    lost = np.diag([1.0, 0.5, -1e-5])
    found = np.tril(factor_with_ridge(lost.copy(), 1e-9))
    added = np.diag(found @ found.T - lost)
    np.testing.assert_allclose(added, added[0])
    assert 1e-5 < added[0] < 1e-3


def test_factor_of_a_matrix_of_zeros_ends():
    found = factor_with_ridge(np.zeros((3, 3)), 0.0)
    assert 0 < found[0, 0] < 1e-6


def test_kernel_matrix_that_rounding_makes_indefinite_is_factored(monkeypatch):
    """Without the raised nugget LAPACK refuses: "5-th leading minor not positive definite"."""

    def indefinite(directions, kernel, executor):
        del kernel, executor
        values = np.full(len(directions), 1.0)
        values[4] = -3e-7
        return np.diag(values)

    monkeypatch.setattr("kmeans_kernel.core.solvers.nystrom.kernel_matrix", indefinite)
    basis = NystromBasis.of(np.eye(6), Gaussian(1.0))
    assert 0 < basis.factor[4, 4] ** 2 <= 1e-6
    np.testing.assert_allclose(basis.factor[0, 0] ** 2, 1 + 1e-6, rtol=1e-9)


def test_normal_equations_that_rounding_makes_indefinite_are_solved(problem):
    basis, U, Y, weights, *_ = problem
    equations = equations_of(basis.features(U), Y, weights)
    less = replace(equations, zz=equations.zz - 1e-12 * equations.weight * np.eye(12))
    flat = replace(less, zz=np.outer(less.z, less.z) / less.weight - 1e-14 * np.eye(12))
    for one in (less, flat):
        solution, triangle = one.solve(1e-18)
        assert np.isfinite(solution.coefficients).all()
        added = np.diag(np.tril(triangle) @ np.tril(triangle).T) - np.diag(one.covariance())
        assert (added < 1e-12).all()


def test_normal_equations_add_up_and_weights_are_repetitions(problem):
    basis, U, Y, weights, *_ = problem
    Z = basis.features(U)
    whole = equations_of(Z, Y, weights)
    repeated = np.repeat(np.arange(60), weights.astype(int))
    others = [
        equations_of(Z[:25], Y[:25], weights[:25]) + equations_of(Z[25:], Y[25:], weights[25:]),
        equations_of(Z[repeated], Y[repeated], np.ones(len(repeated))),
        equations_of(Z[repeated], Y[repeated], None),
    ]
    for other in others:
        for name in SUMS:
            np.testing.assert_allclose(getattr(other, name), getattr(whole, name), rtol=1e-12)


def test_singular_kernel_matrix_is_no_obstacle(rng):
    """Representatives that are all but equal, and a kernel that hardly tells rows apart."""
    directions = unit_rows(1e-6 * rng.normal(size=(200, 3)), 1.0, np.float64)
    basis = NystromBasis.of(directions, Gaussian(0.25))
    U = unit_rows(rng.normal(size=(50, 3)), 1.0, np.float64)
    Z = basis.features(U)
    assert np.isfinite(Z).all()
    path = RidgePath.of(equations_of(Z, np.eye(2)[np.arange(50) % 2], np.ones(50)))
    assert np.isfinite(path.scores(path.along_axes(Z), 1e-6)).all()
