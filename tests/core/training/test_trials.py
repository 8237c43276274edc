import numpy as np
import pytest

from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian
from kmeans_kernel.core.solvers.nystrom import NystromBasis
from kmeans_kernel.core.training.trials import TrialFold, TrialProblem, kernel_at
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.reference import logistic as logistic_twin
from tests.reference import nystrom as nystrom_twin

KERNELS = [Gaussian(1.0), Laplacian(0.5)]


@pytest.fixture
def fold(rng):
    codes = rng.integers(0, 3, 150)
    X = np.eye(4)[codes] + rng.normal(size=(150, 4))
    weights = rng.integers(1, 4, 150).astype(float)
    rows = LabelledRows(X, codes, np.arange(3), weights, SphereMap(1.5))
    return TrialFold.of(rows.at(np.arange(100)), rows.at(np.arange(100, 150)), 30)


def kernel_of(fold, kernel, X):
    values = X @ fold.landmarks.T.astype(float)
    kernel.apply(values)
    return values


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("regularization", [1e-4, 1e-1])
def test_held_out_scores_of_ridge_regression_equal_the_twin(fold, kernel, regularization):
    whitened = fold.whiten(kernel)
    K = kernel_of(fold, kernel, fold.train.directions())
    omega = kernel_of(fold, kernel, fold.landmarks.astype(float))
    a, b = nystrom_twin.solve(
        K, omega, np.eye(3)[fold.train.codes], fold.train.row_weights, regularization, 1e-7
    )
    expected = kernel_of(fold, kernel, fold.test.directions()) @ a + b
    found = whitened.scores(whitened.ridge(regularization))
    np.testing.assert_allclose(found, expected, atol=1e-2)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_held_out_scores_of_logistic_regression_equal_the_twin(fold, kernel):
    whitened, train = fold.whiten(kernel), fold.train
    K = kernel_of(fold, kernel, train.directions())
    omega = kernel_of(fold, kernel, fold.landmarks.astype(float))
    a, b = logistic_twin.solve(K, omega, train.codes, train.row_weights, 3, 1e-2, 1e-7)
    expected = kernel_of(fold, kernel, fold.test.directions()) @ a + b
    first = whitened._logistic_problem.solve(1e-2, None, 1e-10, 200)
    again = whitened._logistic_problem.solve(1e-2, whitened.logistic(1e-1, None), 1e-10, 200)
    for solution in (first, again):
        found = whitened.scores(solution)
        offset = (found - expected).mean(axis=1, keepdims=True)  # scores may share a constant
        np.testing.assert_allclose(found - offset, expected, atol=1e-2)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_float32_features_are_those_of_float64(fold, kernel):
    """The bound that the module states: scores within 1e-2."""
    exact = NystromBasis.of(fold.landmarks, kernel)
    rounded = NystromBasis.of(fold.landmarks, kernel, dtype=np.float32)
    assert rounded.features(fold.train_unit).dtype == np.float32
    K = rounded.features(fold.train_unit) @ rounded.factor.T.astype(np.float32)
    np.testing.assert_allclose(K, exact.features(fold.train_unit) @ exact.factor.T, atol=1e-3)


def test_no_kernel_is_whitened_twice_and_threads_change_nothing(fold, monkeypatch):
    counted = []
    whiten = TrialFold.whiten
    monkeypatch.setattr(
        TrialFold, "whiten", lambda self, kernel: counted.append(kernel) or whiten(self, kernel)
    )
    serial = TrialProblem([fold, fold])
    first = serial.try_squared(KERNELS, None, -8)
    again = serial.try_squared([*KERNELS, KERNELS[0]], None, -8)
    assert again[:2] == first
    assert again[2] is first[0]
    assert len(counted) == 4
    threads = TrialProblem([fold, fold], ThreadExecutor(2)).try_squared(KERNELS, None, -8)
    for one, other in zip(first, threads, strict=True):
        assert (one.power, one.kernel) == (other.power, other.kernel)
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-5)


def test_the_walk_ends_at_the_best_regularization_of_its_neighbourhood(fold):
    problem = TrialProblem([fold])
    best = problem.try_squared([KERNELS[0]], None, -8)[0]
    for power in (best.power - 1, best.power + 1):
        given = TrialProblem([fold]).try_squared([KERNELS[0]], 10.0 ** (power / 2), power)[0]
        assert given.regularization == 10.0 ** (power / 2)
        assert best.mean_loss <= given.mean_loss
    wrong = best.scores.argmax(axis=1) != fold.test.codes
    assert best.error == pytest.approx(np.average(wrong, weights=fold.test.row_weights))


def test_a_logistic_trial_keeps_a_given_regularization(fold):
    problem = TrialProblem([fold])
    near = problem.try_squared([KERNELS[0]], None, -8)
    given = problem.try_logistic(near, 0.5)[0]
    assert (given.loss, given.regularization) == ("logistic", 0.5)
    walked = problem.walk_logistic(given)
    assert walked.mean_loss <= problem.try_logistic(near, None)[0].mean_loss
    assert problem.with_ridge(walked) is near[0]


def test_scales_are_learned_from_the_training_rows_of_each_fold(fold):
    trial = TrialProblem([fold, fold]).try_squared([KERNELS[0]], None, -8)[0]
    scales = trial.learn_scales()
    assert len(scales) == 2
    assert scales[0].shape == (4,)
    np.testing.assert_allclose((scales[0] ** 2).mean(), 1.0)


def test_widths_are_powers_of_two():
    assert kernel_at(Gaussian(7.0), 3) == Gaussian(4.0)
    assert kernel_at(Laplacian(7.0), -1) == Laplacian(0.25)
