import numpy as np
import pytest

from kmeans_kernel.core.arrays.execution import SERIAL
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian
from kmeans_kernel.core.solvers.nystrom import NystromBasis
from kmeans_kernel.core.training.trials import (
    Parts,
    TrialFold,
    TrialProblem,
    WhitenedFold,
    cluster_classes,
    kernel_at,
    lloyd,
    on_grid,
)
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.reference import logistic as logistic_twin
from tests.reference import nystrom as nystrom_twin
from tests.reference import spherical_kmeans as kmeans_twin

KERNELS = [Gaussian(1.0), Laplacian(0.5)]


@pytest.fixture
def fold(rng):
    codes = rng.integers(0, 3, 150)
    X = np.eye(4)[codes] + rng.normal(size=(150, 4))
    weights = rng.integers(1, 4, 150).astype(float)
    rows = LabelledRows(X, codes, np.arange(3), weights, SphereMap(1.5))
    return TrialFold.of(rows.at(np.arange(100)), rows.at(np.arange(100, 150)), 30)


def problem_of(folds, executor=SERIAL):
    parts = Parts([(fold.train, fold.test) for fold in folds], 30)
    return TrialProblem(folds, parts, executor)


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
    exact, whitened = NystromBasis.of(fold.landmarks, kernel), fold.whiten(kernel)
    for rows, features in ((fold.train, whitened.train), (fold.test, whitened.test)):
        assert features.dtype == np.float32
        K = features @ whitened.basis.factor.T.astype(np.float32)
        expected = exact.features(rows.directions()) @ exact.factor.T
        np.testing.assert_allclose(K, expected, atol=1e-3)


def test_landmarks_are_those_of_the_twin_of_kmeans(fold):
    train, q = fold.train, 10
    assert len(fold.landmarks) == 3 * q
    for k in range(3):
        mine = np.flatnonzero(train.codes == k)
        U, weights = train.directions()[mine], train.row_weights[mine]
        start = U[np.random.default_rng(k).permutation(len(mine))[:q]]
        centroids, labels = kmeans_twin.cluster(U, start, -1.0, 5, weights)
        np.testing.assert_allclose(fold.landmarks[k * q : (k + 1) * q], centroids, atol=1e-12)
        np.testing.assert_array_equal(fold.clusters[mine], np.array(labels[-1]) + k * q)
        found, again = lloyd(U, weights, start, 5)
        np.testing.assert_allclose(found, centroids, atol=1e-12)
        np.testing.assert_array_equal(again, labels[-1])


def test_kmeans_under_another_map_starts_from_the_clusters(fold):
    """The centroids are the means of the clusters on the new sphere, after one more iteration."""
    other = SphereMap(0.7, np.array([2.0, 1.0, 0.5, 1.0]))
    train, test = fold.train.on_sphere(other), fold.test.on_sphere(other)
    found = TrialFold.of(train, test, 30, fold.clusters)
    for k in range(3):
        mine = np.flatnonzero(train.codes == k)
        U, weights = train.directions()[mine], train.row_weights[mine]
        sums = kmeans_twin.cluster_sums(U, fold.clusters[mine] - 10 * k, 10, weights)
        start = kmeans_twin.move_centroids(U[:10], sums)
        centroids, _ = kmeans_twin.cluster(U, start, -1.0, 1, weights)
        np.testing.assert_allclose(found.landmarks[10 * k : 10 * k + 10], centroids, atol=1e-12)


def test_a_small_class_keeps_its_rows(rng):
    codes = np.repeat([0, 1], [50, 4])
    rows = LabelledRows(rng.normal(size=(54, 3)), codes, np.arange(2), sphere_map=SphereMap(1.0))
    U = rows.directions()
    landmarks, clusters = cluster_classes(U, rows, 20)
    np.testing.assert_array_equal(landmarks[clusters[50:]], U[50:])


def test_no_kernel_is_whitened_twice_and_threads_change_nothing(fold, monkeypatch):
    counted = []
    whiten = TrialFold.whiten
    monkeypatch.setattr(
        TrialFold, "whiten", lambda self, kernel: counted.append(kernel) or whiten(self, kernel)
    )
    serial = problem_of([fold, fold])
    first = serial.try_squared(KERNELS, None, -8)
    again = serial.try_squared([*KERNELS, KERNELS[0]], None, -8)
    assert again[:2] == first
    assert again[2] is first[0]
    assert len(counted) == 4
    threads = problem_of([fold, fold], ThreadExecutor(2)).try_squared(KERNELS, None, -8)
    for one, other in zip(first, threads, strict=True):
        assert (one.power, one.kernel) == (other.power, other.kernel)
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-5)


def test_the_walk_ends_at_the_best_regularization_of_its_neighbourhood(fold):
    problem = problem_of([fold])
    best = problem.try_squared([KERNELS[0]], None, -8)[0]
    for power in (best.power - 1, best.power + 1):
        given = problem_of([fold]).try_squared([KERNELS[0]], 10.0 ** (power / 2), power)[0]
        assert given.regularization == 10.0 ** (power / 2)
        assert best.mean_loss <= given.mean_loss
    wrong = best.scores.argmax(axis=1) != fold.test.codes
    assert best.error == pytest.approx(np.average(wrong, weights=fold.test.row_weights))


def test_a_logistic_trial_keeps_a_given_regularization(fold):
    problem = problem_of([fold])
    near = problem.try_squared([KERNELS[0]], None, -8)
    given = problem.try_logistic(near, 0.5)[0]
    assert (given.loss, given.regularization) == ("logistic", 0.5)
    walked = problem.walk_logistic(given)
    assert walked.mean_loss <= problem.try_logistic(near, None)[0].mean_loss
    assert problem.with_ridge(walked) is near[0]


def test_no_regularization_of_the_logistic_loss_is_fitted_twice(fold, monkeypatch):
    problem, fitted = problem_of([fold]), []
    near = problem.try_logistic(problem.try_squared([KERNELS[0]], None, -8), None)[0]
    logistic = WhitenedFold.logistic
    monkeypatch.setattr(
        WhitenedFold, "logistic", lambda *args: fitted.append(args[1]) or logistic(*args)
    )
    problem.walk_logistic(near)
    assert fitted
    assert near.regularization not in fitted


def test_scales_are_learned_from_the_training_rows_of_each_fold(fold):
    trial = problem_of([fold, fold]).try_squared([KERNELS[0]], None, -8)[0]
    scales = trial.learn_scales()
    assert len(scales) == 2
    assert scales[0].shape == (4,)
    np.testing.assert_allclose((scales[0] ** 2).mean(), 1.0)


def test_widths_are_powers_of_two():
    assert kernel_at(Gaussian(7.0), 3) == Gaussian(4.0)
    assert kernel_at(Laplacian(7.0), -1) == Laplacian(0.25)


def test_feature_scales_on_a_grid_hide_rounding(rng):
    """Ratios are powers of 2^(1/64), at most half a step from the given ones."""
    scales = np.exp(rng.normal(size=7))
    found = on_grid(scales)
    np.testing.assert_allclose((found**2).mean(), 1.0)
    steps = 64 * np.log2(found / found[0])
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert np.abs(np.diff(64 * np.log2(found / scales))).max() <= 1.0
    np.testing.assert_array_equal(on_grid(found * (1 + 1e-7 * rng.normal(size=7))), on_grid(found))
