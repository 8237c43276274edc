import numpy as np
import pytest
from scipy.special import softmax

from kmeans_kernel.core.arrays.execution import SERIAL
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import SphereMap, unit_rows
from kmeans_kernel.core.clustering.representatives import Representatives
from kmeans_kernel.core.kernels.kernels import Gaussian, kernel_values
from kmeans_kernel.core.solvers.nystrom import nugget
from kmeans_kernel.core.training.cross_validation import (
    CrossValidation,
    Fold,
    LeaveOneOut,
    dual_path,
    logistic_path,
    ridge_path,
)
from kmeans_kernel.core.training.search import deal_folds, hold_out
from kmeans_kernel.utils.threads import ThreadExecutor
from tests.reference import dual as naive_dual
from tests.reference import logistic as naive_logistic
from tests.reference import nystrom as naive_nystrom

KERNEL = Gaussian(1.5)


def samples(rng, n, n_classes=3):
    codes = rng.integers(0, n_classes, n)
    X = np.eye(4)[codes] + 0.5 * rng.normal(size=(n, 4))
    return LabelledRows(X, codes, np.arange(n_classes), 0.5 + rng.random(n), SphereMap(1.0))


def representatives(rng, m=10, n_classes=3):
    codes = np.sort(rng.integers(0, n_classes, m))
    directions = unit_rows(np.eye(4)[codes] + 0.5 * rng.normal(size=(m, 4)), 1.0, np.float64)
    n_iter = np.ones(n_classes, dtype=int)
    return Representatives(directions, codes, np.ones(m), n_iter, np.zeros(n_classes))


@pytest.mark.parametrize("regularization", [1e-4, 1e-2])
def test_the_paths_of_squares_equal_the_twins(regularization, rng):
    train, test, basis = samples(rng, 40), samples(rng, 15), representatives(rng)
    K = kernel_values(test.directions(), basis.directions, KERNEL)
    omega = kernel_values(basis.directions, basis.directions, KERNEL)

    a, b = naive_nystrom.solve(
        kernel_values(train.directions(), basis.directions, KERNEL),
        omega, train.targets(), train.row_weights, regularization, nugget(10),
    )  # fmt: skip
    found = ridge_path(Fold(train, basis, test), KERNEL)(regularization)
    np.testing.assert_allclose(found, K @ a + b, atol=1e-7)

    a, b = naive_dual.solve(omega, np.eye(3)[basis.codes], regularization)
    found = dual_path(Fold(train, basis, test), KERNEL)(regularization)
    np.testing.assert_allclose(found, K @ a + b, atol=1e-7)


def test_the_logistic_path_equals_the_twin(rng):
    train, test, basis = samples(rng, 40), samples(rng, 15), representatives(rng)
    K = kernel_values(test.directions(), basis.directions, KERNEL)
    omega = kernel_values(basis.directions, basis.directions, KERNEL)
    a, b = naive_logistic.solve(
        kernel_values(train.directions(), basis.directions, KERNEL),
        omega, train.codes, train.row_weights, 3, 1e-2, nugget(10),
    )  # fmt: skip
    scores = logistic_path(Fold(train, basis, test), KERNEL)
    scores(1e-1)  # the next starts from here
    found = softmax(scores(1e-2), axis=1)
    np.testing.assert_allclose(found, softmax(K @ a + b, axis=1), atol=0.02)


def test_leave_one_out_equals_fitting_again(rng):
    rows, basis = samples(rng, 40), representatives(rng)
    left_out = np.array([3, 17, 30])
    held_out = LeaveOneOut(rows, basis, left_out)
    expected = naive_nystrom.left_out_scores(
        kernel_values(rows.directions(), basis.directions, KERNEL),
        kernel_values(basis.directions, basis.directions, KERNEL),
        rows.targets(), rows.row_weights, 1e-3, nugget(10),
    )  # fmt: skip
    np.testing.assert_allclose(held_out.scores(KERNEL)(1e-3), expected[left_out], atol=1e-8)
    np.testing.assert_array_equal(held_out.codes, rows.codes[left_out])
    np.testing.assert_array_equal(held_out.weights, rows.weights[left_out])


@pytest.mark.parametrize("path", [ridge_path, logistic_path, dual_path])
@pytest.mark.parametrize("executor", [SERIAL, ThreadExecutor(2)], ids=["serial", "threads"])
def test_each_fold_is_predicted_by_a_fit_to_its_training_samples(path, executor, rng):
    folds = [Fold(samples(rng, 30), representatives(rng), samples(rng, n)) for n in (9, 7)]
    held_out = CrossValidation(folds, path, executor)
    expected = np.concatenate([path(fold, KERNEL)(0.01) for fold in folds])
    np.testing.assert_allclose(held_out.scores(KERNEL)(0.01), expected)
    assert held_out.codes.shape == held_out.weights.shape == (16,)
    mean_weight = np.mean([fold.train.weights.sum() for fold in folds])
    assert held_out.fitted_weight == pytest.approx(mean_weight)
    for enough, n_folds in ((1, 1), (9, 1), (10, 2), (100, 2)):
        assert held_out.holding_out(enough).folds == folds[:n_folds]


def test_folds_are_stratified(rng):
    codes = rng.permutation(np.repeat([0, 1, 2, 3], [30, 7, 1, 2]))
    folds = list(deal_folds(codes, 3, rng))
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(40))
    for code in range(4):
        counts = [int((codes[fold] == code).sum()) for fold in folds]
        assert max(counts) - min(counts) <= 1
    assert [len(fold) for fold in deal_folds(np.array([0, 1]), 3, rng)] == [1, 1]


@pytest.mark.parametrize("weights", [None, "whole", "any"])
def test_every_copy_is_held_out_once(weights, rng):
    codes = np.repeat([0, 1], [12, 9])
    if weights is not None:
        weights = rng.integers(1, 5, 21) * 0.5 if weights == "whole" else rng.random(21) + 0.5
        weights[[0, 12]] = 0.5
    rows = LabelledRows(np.arange(21.0)[:, None], codes, np.arange(2), weights)
    total = np.zeros(21)
    for rest, held in hold_out(rows, 3, rng):
        both = np.zeros(21)
        for part in (rest, held):
            indices = part.X[:, 0].astype(int)
            assert (part.row_weights > 0).all()
            np.testing.assert_array_equal(part.codes, codes[indices])
            both[indices] += part.row_weights
            if part is held:
                total[indices] += part.row_weights
        np.testing.assert_allclose(both, rows.row_weights)
    np.testing.assert_allclose(total, rows.row_weights)
