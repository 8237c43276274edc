import numpy as np
import pytest

from kmeans_kernel._kernels import Gaussian, Polynomial
from kmeans_kernel._ridge import Moments, RidgePath, WhiteBasis, nugget
from kmeans_kernel._sphere import unit_rows
from tests.reference import ridge as twin


@pytest.fixture(params=[Gaussian(1.0), Gaussian(8.0), Polynomial(4)], ids=str)
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
    path = RidgePath.of(Moments.of(basis.features(U), Y, weights))
    coefficients, intercept = path.solution(regularization)
    a, b = twin.solve(K, omega, Y, weights, regularization, nugget(12))
    np.testing.assert_allclose(K @ basis.dual(coefficients) + intercept, K @ a + b, atol=1e-8)
    along = path.along_axes(basis.features(U))
    np.testing.assert_allclose(path.scores(along, regularization), K @ a + b, atol=1e-8)


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0])
def test_left_out_scores_equal_fitting_again(problem, regularization):
    basis, U, Y, weights, K, omega = problem
    Z = basis.features(U)
    path = RidgePath.of(Moments.of(Z, Y, weights))
    found = path.left_out_scores(path.along_axes(Z), Y, weights, regularization)
    expected = twin.left_out_scores(K, omega, Y, weights, regularization, nugget(12))
    np.testing.assert_allclose(found, expected, atol=1e-8)


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
    path = RidgePath.of(Moments.of(Z, np.eye(2)[np.arange(50) % 2], np.ones(50)))
    assert np.isfinite(path.solution(1e-6)[0]).all()
