import numpy as np
import pytest

from kmeans_kernel.core.arrays.executor import ALONE
from kmeans_kernel.core.arrays.samples import Labelled, Placement, Samples
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian, Polynomial
from kmeans_kernel.core.solvers.conjugate_gradients import conjugate_gradients, solve_by_conjugate_gradients
from kmeans_kernel.core.training.fit import prefers_conjugate_gradients
from kmeans_kernel.core.solvers.nystrom import Moments, NormalEquations, WhiteBasis, nugget, sum_moments
from kmeans_kernel.core.solvers.leave_one_out import RidgePath
from kmeans_kernel.utils.threads import Threads
from tests.reference import ridge as twin


@pytest.fixture(params=[Gaussian(1.0), Gaussian(8.0), Laplacian(1.0), Polynomial(4)], ids=str)
def problem(request, rng):
    U = unit_rows(rng.normal(size=(60, 5)), 1.0, np.float64)
    directions = unit_rows(rng.normal(size=(12, 5)), 1.0, np.float64)
    Y = np.eye(3)[rng.integers(0, 3, 60)]
    weights = rng.integers(1, 4, 60).astype(float)
    K, omega = U @ directions.T, directions @ directions.T
    request.param.apply(K)
    request.param.apply(omega)
    return WhiteBasis.of(directions, request.param), U, Y, weights, K, omega


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0])
def test_the_solution_equals_the_twin(problem, regularization):
    basis, U, Y, weights, K, omega = problem
    path = RidgePath.of(NormalEquations.of(Moments.of(basis.features(U), Y, weights)))
    a, b = twin.solve(K, omega, Y, weights, regularization, nugget(12))
    along = path.along_axes(basis.features(U))
    np.testing.assert_allclose(path.scores(along, regularization), K @ a + b, atol=1e-8)
    one = NormalEquations.of(Moments.of(basis.features(U), Y, weights)).solve(regularization)
    found = K @ basis.dual(one.coefficients) + one.intercept
    np.testing.assert_allclose(found, K @ a + b, atol=1e-8)
    assert one.relative_residual < 1e-10


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0])
def test_left_out_scores_equal_fitting_again(problem, regularization):
    basis, U, Y, weights, K, omega = problem
    Z = basis.features(U)
    path = RidgePath.of(NormalEquations.of(Moments.of(Z, Y, weights)))
    found = path.left_out_scores(path.along_axes(Z), Y, weights, regularization)
    expected = twin.left_out_scores(K, omega, Y, weights, regularization, nugget(12))
    np.testing.assert_allclose(found, expected, atol=1e-8)
    one = NormalEquations.of(Moments.of(Z, Y, weights)).solve(regularization)
    np.testing.assert_allclose(one.left_out_scores(Z, Y, weights), expected, atol=1e-8)


def samples_of(U, Y, weights):
    data = Labelled(U, Y.argmax(axis=1), np.arange(Y.shape[1]), weights)
    return Samples(data, Placement(0.0))


@pytest.mark.parametrize("workers", [ALONE, Threads(2)], ids=["alone", "threads"])
def test_moments_of_samples_are_those_of_their_blocks(problem, workers, monkeypatch):
    basis, U, Y, weights, *_ = problem
    monkeypatch.setattr("kmeans_kernel.core.arrays.samples._BLOCK_ROWS", 7)
    Z = basis.features(U)
    found = sum_moments(lambda rows: Z[rows], samples_of(U, Y, weights), workers)
    expected = Moments.of(Z, Y, weights)
    for name in ("weight", "z", "y", "zz", "zy"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)


@pytest.mark.parametrize("stored_up_to", [0, 1e9])
@pytest.mark.parametrize("workers", [ALONE, Threads(2)], ids=["alone", "threads"])
def test_conjugate_gradients_agree_with_the_twin(problem, workers, stored_up_to, monkeypatch):
    basis, U, Y, weights, K, omega = problem
    monkeypatch.setattr("kmeans_kernel.core.arrays.samples._BLOCK_ROWS", 7)
    counts = np.full(12, weights.sum() / 12)
    found = solve_by_conjugate_gradients(
        basis,
        samples_of(U, Y, weights),
        counts,
        1e-3,
        workers,
        stored_up_to=stored_up_to,
        tolerance=1e-5,
    )
    assert found.relative_residual <= 1e-4
    a, b = twin.solve(K, omega, Y, weights, 1e-3, nugget(12))
    np.testing.assert_allclose(
        K @ basis.dual(found.coefficients) + found.intercept, K @ a + b, atol=1e-3
    )


def test_conjugate_gradients_solve_what_is_positive_definite(rng):
    A = rng.normal(size=(30, 30))
    A = A @ A.T + np.eye(30)
    B = rng.normal(size=(30, 4))
    B[:, 2] = 0.0
    found, reached = conjugate_gradients(lambda V: A @ V, lambda V: V, B, 1e-10)
    assert reached <= 1e-10
    np.testing.assert_allclose(found, np.linalg.solve(A, B), atol=1e-8)


def test_conjugate_gradients_that_go_astray_keep_the_best(rng):
    A = np.diag(np.append(np.ones(29), -3.0)) + 0.1 * rng.normal(size=(30, 30))
    found, reached = conjugate_gradients(lambda V: A @ V, lambda V: V, rng.normal(size=(30, 2)))
    assert np.isfinite(found).all()
    assert reached <= 1.0


def test_many_representatives_prefer_conjugate_gradients():
    assert not prefers_conjugate_gradients(60_000, 1_000, 10)
    assert prefers_conjugate_gradients(60_000, 10_000, 10)
    assert not prefers_conjugate_gradients(1_000, 1_000, 2)


def test_a_system_without_a_solution_says_what_to_do():
    Z = np.ones((5, 3))
    equations = NormalEquations.of(Moments.of(Z, np.eye(2)[[0, 1, 0, 1, 0]], np.ones(5)))
    with pytest.raises(np.linalg.LinAlgError, match="3 representatives.*raise regularization"):
        equations.solve(0.0)


def test_moments_add_up_and_weights_are_repetitions(problem):
    basis, U, Y, weights, *_ = problem
    Z = basis.features(U)
    whole = Moments.of(Z, Y, weights)
    repeated = np.repeat(np.arange(60), weights.astype(int))
    others = [
        Moments.of(Z[:25], Y[:25], weights[:25]) + Moments.of(Z[25:], Y[25:], weights[25:]),
        Moments.of(Z[repeated], Y[repeated], np.ones(len(repeated))),
    ]
    for other in others:
        for name in ("weight", "z", "y", "zz", "zy"):
            np.testing.assert_allclose(getattr(other, name), getattr(whole, name), rtol=1e-12)


def test_a_singular_kernel_matrix_is_no_obstacle(rng):
    """Representatives that are all but equal, and a kernel that hardly tells rows apart."""
    directions = unit_rows(1e-6 * rng.normal(size=(200, 3)), 1.0, np.float64)
    basis = WhiteBasis.of(directions, Gaussian(0.25))
    U = unit_rows(rng.normal(size=(50, 3)), 1.0, np.float64)
    Z = basis.features(U)
    assert np.isfinite(Z).all()
    path = RidgePath.of(
        NormalEquations.of(Moments.of(Z, np.eye(2)[np.arange(50) % 2], np.ones(50)))
    )
    assert np.isfinite(path.scores(path.along_axes(Z), 1e-6)).all()
