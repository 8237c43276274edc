import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from kmeans_kernel.core.arrays.execution import SERIAL
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.kernels.kernels import ExponentialPower, Gaussian, Laplacian, Polynomial
from kmeans_kernel.core.solvers import logistic, nystrom
from kmeans_kernel.core.solvers.logistic import (
    LogisticProblem,
    fit_logistic,
    log_loss_and_residuals,
    loss_sums,
    unpack_loss_sums,
    whitening_pays,
)
from kmeans_kernel.core.solvers.nystrom import (
    NormalEquations,
    NystromBasis,
    nugget,
    whitened_blocks,
)
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.reference import logistic as twin

M, N_CLASSES = 12, 3


@pytest.fixture(
    params=[Gaussian(1.0), Laplacian(1.0), ExponentialPower(1.0, 1.5), Polynomial(4)], ids=str
)
def problem(request, rng):
    codes = rng.integers(0, N_CLASSES, 60)
    U = unit_rows(np.eye(5)[codes] + rng.normal(size=(60, 5)), 1.0, np.float64)
    directions = unit_rows(rng.normal(size=(M, 5)), 1.0, np.float64)
    weights = rng.integers(1, 4, 60).astype(float)
    K, omega = U @ directions.T, directions @ directions.T
    request.param.apply(K)
    request.param.apply(omega)
    rows = LabelledRows(U, codes, np.arange(N_CLASSES), weights)
    return NystromBasis.of(directions, request.param), rows, K, omega


def scores_of(solution, basis, K):
    return K @ basis.dual(solution.coefficients) + solution.intercept


def test_log_loss_and_residuals_equal_the_twin(rng):
    """With one feature for each sample the gradients of the twin are the residuals."""
    scores, codes = 30 * rng.normal(size=(4, 20)), rng.integers(0, 4, 20)
    weights = rng.random(20)
    loss, _, _, by_inner = twin.loss_sums(scores.T, np.zeros(4), np.eye(20), codes, weights)
    found, residuals = log_loss_and_residuals(scores.copy(), codes, weights)
    np.testing.assert_allclose(found, loss)
    np.testing.assert_allclose(residuals.T, by_inner, atol=1e-12)


def test_hopeless_classes_leave_no_subnormal_residuals(rng):
    """Scores that differ by hundreds: the loss is exact, and float32 products stay fast."""
    scores, codes = 300 * rng.normal(size=(4, 50)), rng.integers(0, 4, 50)
    found, residuals = log_loss_and_residuals(scores.copy(), codes, np.ones(50))
    np.testing.assert_allclose(found, -log_softmax(scores, axis=0)[codes, np.arange(50)].sum())
    np.testing.assert_allclose(residuals, softmax(scores, axis=0) - np.eye(4)[:, codes], atol=1e-12)
    rounded = np.abs(residuals.astype(np.float32))
    assert (rounded[rounded > 0] >= np.finfo(np.float32).tiny).all()


@pytest.mark.parametrize("executor", [SERIAL, ThreadExecutor(2)], ids=["serial", "threads"])
@pytest.mark.parametrize("regularization", [1e-3, 1e-1])
def test_solution_equals_the_twin(problem, regularization, executor, monkeypatch):
    basis, rows, K, omega = problem
    monkeypatch.setattr("kmeans_kernel.core.arrays.rows._BLOCK_ROWS", 7)
    a, b = twin.solve(K, omega, rows.codes, rows.weights, N_CLASSES, regularization, nugget(M))
    expected = softmax(K @ a + b, axis=1)
    counts = np.full(M, rows.weights.sum() / M)
    of_kernel = LogisticProblem.on_kernel_values
    for one, atol in (
        (LogisticProblem.on_whitened_features(basis, rows, executor), 1e-4),
        (LogisticProblem.out_of_core(basis, rows, executor), 1e-4),
        (of_kernel(basis, rows, counts, executor), 1e-2),
        (of_kernel(basis, rows, counts, executor, stored_up_to=0), 1e-2),
    ):
        solution = one.solve(regularization, tolerance=1e-12)
        found = softmax(scores_of(solution, basis, K), axis=1)
        np.testing.assert_allclose(found, expected, atol=atol)
        assert solution.relative_residual < 1e-2
        assert solution.left_out_scores is None
        least, reached = (
            twin.objective(a, b, K, omega, rows.codes, rows.weights, regularization, nugget(M))
            for a, b in ((a, b), (basis.dual(solution.coefficients), solution.intercept))
        )
        assert reached == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_loss_sums_equal_the_twin_and_add_up(problem, dtype, rng):
    _, rows, K, _ = problem
    inner, intercept = rng.normal(size=(M, N_CLASSES)), rng.normal(size=N_CLASSES)
    samples = K.astype(dtype), rows.codes, rows.weights
    found = loss_sums(inner, intercept, *samples)
    assert found.dtype == np.float64
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    expected = twin.loss_sums(inner, intercept, *samples)
    for one, other in zip(unpack_loss_sums(found, N_CLASSES), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    blocks = (slice(0, 25), slice(25, None))
    parts = [loss_sums(inner, intercept, *(array[some] for array in samples)) for some in blocks]
    np.testing.assert_allclose(parts[0] + parts[1], found, rtol=rtol, atol=rtol)


def test_solution_can_start_from_another(problem):
    basis, rows, K, _ = problem
    one = LogisticProblem.on_whitened_features(basis, rows)
    cold = one.solve(1e-2, tolerance=1e-12)
    again = one.solve(1e-2, start=cold, most_steps=1)
    np.testing.assert_allclose(scores_of(again, basis, K), scores_of(cold, basis, K), atol=1e-4)


def test_weight_equals_repeating_the_row(problem):
    basis, rows, K, _ = problem
    often = np.repeat(np.arange(60), rows.weights.astype(int))
    repeated = LabelledRows(rows.X[often], rows.codes[often], rows.classes)
    first, second = (
        scores_of(
            LogisticProblem.on_whitened_features(basis, some).solve(1e-2, tolerance=1e-12),
            basis,
            K,
        )
        for some in (rows, repeated)
    )
    np.testing.assert_allclose(first, second, atol=1e-4)


def test_logistic_loss_tells_apart_classes_behind_one_another(rng):
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


def test_kernel_values_are_used_where_whitened_features_cost_too_much(problem, monkeypatch):
    basis, rows, K, _ = problem
    counts, made = np.full(M, 5.0), []
    for name in ("held_whitened_blocks", "float32_kernel_blocks"):
        blocks = getattr(logistic, name)
        monkeypatch.setattr(
            logistic, name, lambda *args, f=blocks, name=name: (made.append(name), f(*args))[1]
        )
    few = fit_logistic(basis, rows, counts, 1e-2)
    monkeypatch.setattr(logistic, "_MOST_PRODUCTS", 1.0)
    many = fit_logistic(basis, rows, counts, 1e-2)
    assert made == ["held_whitened_blocks", "float32_kernel_blocks"]
    np.testing.assert_allclose(scores_of(few, basis, K), scores_of(many, basis, K), atol=0.05)
    monkeypatch.setattr(logistic, "_TOLERABLE_NOISE", 0.0)
    again = fit_logistic(basis, rows, counts, 1e-2)
    assert made[2:] == ["float32_kernel_blocks", "held_whitened_blocks"]
    np.testing.assert_array_equal(again.coefficients, few.coefficients)


def test_whitening_pays_for_few_representatives():
    assert whitening_pays(60_000, 2_000)
    assert not whitening_pays(60_000, 10_000)


@pytest.fixture
def sampled(monkeypatch):
    """Make the few rows of a test count as many."""
    monkeypatch.setattr(nystrom, "_MOST_EXACT", 0.0)
    monkeypatch.setattr(nystrom, "_SMALL_SHARE", 1.0)
    monkeypatch.setattr(nystrom, "_LEAST_SAMPLE", 3)


def many_rows(rng, n=600):
    codes = rng.integers(0, N_CLASSES, n)
    U = unit_rows(np.eye(5)[codes] + 0.5 * rng.normal(size=(n, 5)), 1.0, np.float64)
    rows = LabelledRows(U, codes, np.arange(N_CLASSES), rng.integers(1, 4, n).astype(float))
    return NystromBasis.of(U[:40], Gaussian(2.0), dtype=np.float32), rows


@pytest.mark.parametrize("stored_up_to", [1e9, 4 * 600 * 40 - 1, 0], ids=["all", "some", "none"])
@pytest.mark.usefixtures("sampled")
def test_a_sample_of_many_rows_changes_the_steps_and_not_the_solution(
    stored_up_to, rng, monkeypatch
):
    """The bound is that of the float64 solution on whitened features of all rows."""
    monkeypatch.setattr(logistic, "_SAMPLE", 5)
    monkeypatch.setattr(logistic, "_LAST_TOLERANCE", 0.0)
    basis, rows = many_rows(rng)
    exact_basis = NystromBasis(basis.directions, basis.kernel, basis.factor)
    exact = LogisticProblem.on_whitened_features(exact_basis, rows).solve(1e-3, tolerance=1e-13)
    problem = LogisticProblem.on_kernel_values(
        basis, rows, np.ones(40), ThreadExecutor(2), stored_up_to
    )
    assert (problem.sample is not None) == (0 < stored_up_to < 1e9)
    found = problem.solve(1e-3, tolerance=1e-10)
    K = rows.X @ basis.directions.T
    basis.kernel.apply(K)
    np.testing.assert_allclose(scores_of(found, basis, K), scores_of(exact, basis, K), atol=2e-2)
    assert found.relative_residual < 1e-2


@pytest.mark.parametrize("rows_per_landmark", [3, 6, 99])
def test_covariance_of_some_rows_leads_to_the_same_solution(rows_per_landmark, rng, monkeypatch):
    monkeypatch.setattr(logistic, "_MOST_ROWS", rows_per_landmark)
    basis, rows = many_rows(rng)
    exact_basis = NystromBasis(basis.directions, basis.kernel, basis.factor)
    exact, found = (
        LogisticProblem.on_whitened_features(one, rows).solve(1e-3, tolerance=1e-10)
        for one in (exact_basis, basis)
    )
    K = rows.X @ basis.directions.T
    basis.kernel.apply(K)
    np.testing.assert_allclose(scores_of(found, basis, K), scores_of(exact, basis, K), atol=2e-2)


@pytest.mark.usefixtures("sampled")
def test_fit_to_many_rows_is_on_kernel_values(rng, monkeypatch):
    basis, rows = many_rows(rng)
    monkeypatch.setattr(logistic, "held_whitened_blocks", None)  # would fail if it were called
    found = fit_logistic(basis, rows, np.ones(40), 1e-3)
    assert np.isfinite(found.coefficients).all()


@pytest.mark.usefixtures("sampled")
def test_newton_step_is_the_ridge_solution_of_the_sample(rng, monkeypatch):
    """With all rows as the sample, against the normal equations at the ridge λ / h, h = 2/9."""
    monkeypatch.setattr(nystrom, "_LEAST_SAMPLE", 15)
    basis, rows = many_rows(rng)
    problem = LogisticProblem.on_kernel_values(basis, rows, np.ones(40))
    equations = NormalEquations.of(whitened_blocks(basis, rows))
    expected = equations.solve(1e-3 / (2 / 9))[0].coefficients / (2 / 9)
    np.testing.assert_allclose(problem.newton_step(1e-3), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.usefixtures("sampled")
def test_rounding_is_foreseen_before_the_steps(rng, monkeypatch):
    basis, rows = many_rows(rng)
    expected = LogisticProblem.on_whitened_features(basis, rows).solve(1e-3)
    solved = []
    solve = LogisticProblem.solve
    monkeypatch.setattr(
        LogisticProblem, "solve", lambda self, *args: (solved.append(self), solve(self, *args))[1]
    )
    monkeypatch.setattr(logistic, "_TOLERABLE_NOISE", 0.0)
    found = fit_logistic(basis, rows, np.ones(40), 1e-3)
    assert len(solved) == 1
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)
