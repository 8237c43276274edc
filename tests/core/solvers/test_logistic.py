import numpy as np
import pytest
from scipy.special import softmax

from kmeans_kernel.core.arrays.executor import ALONE
from kmeans_kernel.core.arrays.samples import Labelled, Placement, Samples
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian, Polynomial
from kmeans_kernel.core.solvers import logistic as _logistic
from kmeans_kernel.core.solvers import passes as _passes
from kmeans_kernel.core.solvers.logistic import LogisticProblem, fit_logistic, whitening_pays
from kmeans_kernel.core.solvers.nystrom import WhiteBasis, nugget
from kmeans_kernel.utils.threads import Threads
from tests.reference import logistic as twin

M, N_CLASSES = 12, 3


@pytest.fixture(params=[Gaussian(1.0), Laplacian(1.0), Polynomial(4)], ids=str)
def problem(request, rng):
    codes = rng.integers(0, N_CLASSES, 60)
    U = unit_rows(np.eye(5)[codes] + rng.normal(size=(60, 5)), 1.0, np.float64)
    directions = unit_rows(rng.normal(size=(M, 5)), 1.0, np.float64)
    weights = rng.integers(1, 4, 60).astype(float)
    K, omega = U @ directions.T, directions @ directions.T
    request.param.apply(K)
    request.param.apply(omega)
    samples = Samples(Labelled(U, codes, np.arange(N_CLASSES), weights), Placement(0.0))
    return WhiteBasis.of(directions, request.param), samples, K, omega


def scores_of(fit, basis, K):
    return K @ basis.dual(fit.coefficients) + fit.intercept


@pytest.mark.parametrize("workers", [ALONE, Threads(2)], ids=["alone", "threads"])
@pytest.mark.parametrize("regularization", [1e-3, 1e-1])
def test_the_solution_equals_the_twin(problem, regularization, workers, monkeypatch):
    basis, samples, K, omega = problem
    monkeypatch.setattr("kmeans_kernel.core.arrays.samples._BLOCK_ROWS", 7)
    a, b = twin.solve(
        K, omega, samples.codes, samples.weights, N_CLASSES, regularization, nugget(M)
    )
    expected = softmax(K @ a + b, axis=1)
    counts = np.full(M, samples.weights.sum() / M)
    of_kernel = LogisticProblem.on_kernel_values
    for logistic, atol in (
        (LogisticProblem.on_white_features(basis, samples, workers), 1e-4),
        (of_kernel(basis, samples, counts, workers), 1e-2),
        (of_kernel(basis, samples, counts, workers, stored_up_to=0), 1e-2),
    ):
        fit = logistic.solve(regularization, tolerance=1e-12)
        found = softmax(scores_of(fit, basis, K), axis=1)
        np.testing.assert_allclose(found, expected, atol=atol)
        assert fit.relative_residual < 1e-2
        least, reached = (
            twin.objective(
                a, b, K, omega, samples.codes, samples.weights, regularization, nugget(M)
            )
            for a, b in ((a, b), (basis.dual(fit.coefficients), fit.intercept))
        )
        assert reached == pytest.approx(least, rel=1e-5)


def test_a_fit_can_start_from_another(problem):
    basis, samples, K, _ = problem
    fits = LogisticProblem.on_white_features(basis, samples)
    cold = fits.solve(1e-2, tolerance=1e-12)
    again = fits.solve(1e-2, start=cold, most_steps=1)
    np.testing.assert_allclose(scores_of(again, basis, K), scores_of(cold, basis, K), atol=1e-4)


def test_a_weight_equals_repeating_the_row(problem):
    basis, samples, K, _ = problem
    often = np.repeat(np.arange(60), samples.weights.astype(int))
    data = samples.data
    repeated = Samples(Labelled(data.X[often], data.codes[often], data.classes), samples.placement)
    first, second = (
        scores_of(
            LogisticProblem.on_white_features(basis, some).solve(1e-2, tolerance=1e-12), basis, K
        )
        for some in (samples, repeated)
    )
    np.testing.assert_allclose(first, second, atol=1e-4)


def test_classes_behind_one_another_are_told_apart(rng):
    """The fault of squares that the logistic loss has not."""
    from kmeans_kernel import KMeansKernelClassifier

    X = rng.normal(size=(900, 4))
    y = np.digitize((X**2).sum(axis=1), [2.0, 3.4, 5.4])
    errors = {
        loss: 1
        - KMeansKernelClassifier(50, loss=loss, random_state=0)
        .fit(X[:600], y[:600])
        .score(X[600:], y[600:])
        for loss in ("squared", "logistic", "auto")
    }
    assert errors["logistic"] < 0.6 * errors["squared"]
    assert errors["auto"] == errors["logistic"]


def test_kernel_values_are_passed_over_where_features_cost_too_much(problem, monkeypatch):
    basis, samples, K, _ = problem
    counts, made = np.full(M, 5.0), []
    for name in ("over_white_features", "over_kernel_values"):
        over = getattr(_passes, name)
        monkeypatch.setattr(
            _logistic, name, lambda *args, f=over, name=name: (made.append(name), f(*args))[1]
        )
    few = fit_logistic(basis, samples, counts, 1e-2)
    monkeypatch.setattr("kmeans_kernel.core.solvers.logistic._MOST_PRODUCTS", 1.0)
    many = fit_logistic(basis, samples, counts, 1e-2)
    assert made == ["over_white_features", "over_kernel_values"]
    np.testing.assert_allclose(scores_of(few, basis, K), scores_of(many, basis, K), atol=0.05)
    monkeypatch.setattr("kmeans_kernel.core.solvers.logistic._TOLERABLE_NOISE", 0.0)
    again = fit_logistic(basis, samples, counts, 1e-2)
    assert made[2:] == ["over_kernel_values", "over_white_features"]
    np.testing.assert_array_equal(again.coefficients, few.coefficients)


def test_white_features_are_for_few_representatives():
    assert whitening_pays(60_000, 2_000)
    assert not whitening_pays(60_000, 10_000)
