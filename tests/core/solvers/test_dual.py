import numpy as np
import pytest

from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.kernels.gram import ExactGram, gram_matrix
from kmeans_kernel.core.kernels.kernels import Gaussian, Polynomial
from kmeans_kernel.core.solvers import dual
from kmeans_kernel.core.solvers.dual import solve_on_representatives
from tests.reference import dual as twin

REGULARIZATIONS = [1e-8, 1e-7, 1e-6, 1e-4, 1e-2, 1.0]


def representatives(kind, m=240, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    if kind == "near-duplicates":  # pairs of opposite classes, apart by less than float32 sees
        X[m // 2 :] = X[: m // 2] + 1e-9 * rng.normal(size=(m // 2, d))
    elif kind == "duplicates":
        X[m // 2 :] = X[: m // 2]
    elif kind == "narrow":  # all cosines near one
        X = 1 + 0.01 * X
    elif kind == "low rank":
        X = X[:, :2]
    return unit_rows(X, dtype=np.float64)


def problem(kind, kernel, n_classes=3, seed=0):
    directions = representatives(kind, seed=seed)
    codes = np.random.default_rng(seed + 1).integers(n_classes, size=len(directions))
    gram = dense_gram(directions, kernel)
    return directions, gram, np.eye(n_classes)[codes]


def dense_gram(directions, kernel):
    gram = directions @ directions.T
    kernel.apply(gram)
    return gram


def solve(directions, kernel, targets, regularization, **options):
    return solve_on_representatives(
        lambda dtype: gram_matrix(directions, kernel, dtype),
        ExactGram(directions, kernel),
        targets,
        regularization,
        **options,
    )


@pytest.mark.parametrize("float64_up_to", [0, 1000], ids=["float32 first", "float64"])
@pytest.mark.parametrize("regularization", REGULARIZATIONS)
@pytest.mark.parametrize("kernel", [Polynomial(4), Polynomial(1), Gaussian(2.0)], ids=str)
@pytest.mark.parametrize("kind", ["random", "near-duplicates", "duplicates", "narrow", "low rank"])
def test_bordered_system_holds(kind, kernel, regularization, float64_up_to):
    directions, gram, targets = problem(kind, kernel)
    found = solve(directions, kernel, targets, regularization, float64_up_to=float64_up_to)
    args = (gram, targets, regularization)
    assert twin.relative_residual(*args, found.dual_coef, found.intercept) <= 1e-6
    assert found.relative_residual <= 1e-6
    condition = np.linalg.cond(twin.bordered_matrix(gram, regularization))
    if found.factored_in == "float64" and condition < 1e9:
        a, b = twin.solve(*args)
        np.testing.assert_allclose(found.dual_coef, a, atol=1e-6 * np.abs(a).max())
        np.testing.assert_allclose(found.intercept, b, atol=1e-6 * max(1, np.abs(b).max()))


@pytest.mark.parametrize("regularization", [1e-2, 1.0])
def test_float32_factor_suffices_for_a_well_conditioned_system(regularization):
    directions, gram, targets = problem("random", Polynomial(4))
    found = solve(directions, Polynomial(4), targets, regularization, float64_up_to=0)
    assert found.factored_in == "float32"
    a, b = twin.solve(gram, targets, regularization)
    np.testing.assert_allclose(found.dual_coef, a, atol=1e-6 * np.abs(a).max())
    np.testing.assert_allclose(found.intercept, b, atol=1e-6)


def test_badly_conditioned_system_falls_back_to_float64():
    directions, _, targets = problem("near-duplicates", Polynomial(4))
    found = solve(directions, Polynomial(4), targets, 1e-8, float64_up_to=0)
    assert found.factored_in == "float64"


@pytest.mark.parametrize(
    ("kind", "exact"), [("random", False), ("narrow", True), ("duplicates", True)]
)
def test_exact_products_correct_the_rounding_of_a_matrix_stored_in_float32(kind, exact):
    kernel = Polynomial(4)
    directions, gram, targets = problem(kind, kernel)
    calls = []

    class CountedGram(ExactGram):
        def multiply(self, V):
            calls.append(1)
            return super().multiply(V)

    def stored(dtype):
        return gram_matrix(directions, kernel, dtype)

    found = solve_on_representatives(
        stored, CountedGram(directions, kernel), targets, 1e-3, float64_up_to=0
    )
    assert found.factored_in == "float32"
    assert bool(calls) == exact
    residual = twin.relative_residual(gram, targets, 1e-3, found.dual_coef, found.intercept)
    assert residual <= 1e-6
    assert residual <= 2 * found.relative_residual + 1e-12  # the estimate is not a wish


def test_singular_system_fails_with_a_remedy():
    directions = np.ones((5, 1))
    with pytest.raises(np.linalg.LinAlgError, match="5 representatives.*raise regularization"):
        solve(directions, Polynomial(1), np.eye(5), 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_buffer_holds_the_kernel_matrix_and_the_factor(dtype, rng):
    directions = unit_rows(rng.normal(size=(30, 8)), dtype=np.float64)
    matrix = gram_matrix(directions, Polynomial(4), dtype)
    expected = dense_gram(directions, Polynomial(4)) + 0.1 * np.eye(30)
    factored = dual.FactoredSystem.of(matrix, np.full(len(matrix.diagonal), 0.1))
    assert factored.matrix is matrix
    factor = np.triu(matrix.buffer).astype(np.float64)
    np.testing.assert_allclose(factor.T @ factor, expected, atol=1e-5)
    V = rng.normal(size=(30, 3))
    np.testing.assert_allclose(factored.multiply(V), expected @ V, atol=1e-7)
    np.testing.assert_allclose(factored.divide(V), np.linalg.solve(expected, V), atol=1e-3)


def test_hidden_residual_is_estimated_within_a_factor(rng):
    """Rounding is random: its estimate is near what it really does."""
    directions = representatives("random", m=400)
    exact = dense_gram(directions, Polynomial(4))
    matrix = gram_matrix(directions, Polynomial(4), np.float32)
    factored = dual.FactoredSystem.of(matrix, np.full(len(directions), 0.1))
    body = rng.normal(size=(400, 3))
    real = np.linalg.norm(factored.multiply(body) - exact @ body - 0.1 * body, axis=0)
    assert (factored.hidden_residual(body) > real / 1.5).all()
    assert (factored.hidden_residual(body) < real * 1.5).all()


def test_refine_needs_only_functions_that_multiply(rng):
    A = rng.normal(size=(20, 20))
    H = A @ A.T + np.eye(20)
    rough = np.linalg.inv(H) * (1 + 1e-3 * rng.normal(size=(20, 20)))
    rough = (rough + rough.T) / 2
    targets = rng.normal(size=(20, 4))
    right_side = dual.BorderedVector(targets, np.zeros(4))
    found, norms = dual.refine(lambda V: H @ V, lambda V: rough @ V, right_side, 1e-13)
    a, b = twin.solve(H, targets, 0.0)
    np.testing.assert_allclose(found.body, a, atol=1e-10)
    np.testing.assert_allclose(found.border, b, atol=1e-10)
    assert (norms <= 1e-12).all()


def test_refine_returns_the_best_solution_when_it_cannot_improve(rng):
    H = np.diag(np.arange(1.0, 7.0))
    right_side = dual.BorderedVector(rng.normal(size=(6, 2)), np.zeros(2))
    found, norms = dual.refine(lambda V: H @ V, lambda V: 100 * V, right_side, 1e-12)
    assert np.isfinite(found.body).all()
    assert (norms <= right_side.norms()).all()


def test_class_with_one_representative_among_many_is_solved_as_well():
    directions = representatives("random")
    targets = np.zeros((len(directions), 2))
    targets[0, 0] = targets[1:, 1] = 1.0
    gram = dense_gram(directions, Polynomial(4))
    found = solve(directions, Polynomial(4), targets, 1e-6, float64_up_to=0)
    assert twin.relative_residual(gram, targets, 1e-6, found.dual_coef, found.intercept) <= 1e-6


def test_repeated_rounding_errors_are_detected(monkeypatch):
    """Equal entries are rounded alike; where classes share them, the errors add up."""
    half, tilt, gamma = 1050, 1e-3, 9.554008231614064
    directions = np.zeros((2 * half, half + 2))
    for k in range(2):
        rows = slice(k * half, (k + 1) * half)
        directions[rows, :half] = np.sqrt(1 - tilt) * np.eye(half)
        directions[rows, half + k] = np.sqrt(tilt)
    targets = np.repeat(np.eye(2), half, axis=0)
    gram = dense_gram(directions, Gaussian(gamma))
    found = solve(directions, Gaussian(gamma), targets, 0.01, float64_up_to=0)
    args = (gram, targets, 0.01, found.dual_coef, found.intercept)
    assert twin.relative_residual(*args) <= 1e-6
    monkeypatch.setattr(dual, "_sampled_residual", lambda *_: np.zeros(2))
    blind = solve(directions, Gaussian(gamma), targets, 0.01, float64_up_to=0)
    args = (gram, targets, 0.01, blind.dual_coef, blind.intercept)
    assert twin.relative_residual(*args) > 1e-6
