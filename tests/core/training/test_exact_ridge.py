"""All rows as representatives: where single rows know more than centroids."""

from dataclasses import replace

import numpy as np
import pytest

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian
from kmeans_kernel.core.training.exact_ridge import ExactFold, fit_exact, search_exact
from tests.core.training.test_halving import labelled, search
from tests.reference import dual as twin


def visits(persons=800, each=3, seed=0):
    """Visits of the same persons, whose labels follow nothing but the person."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(persons), each)
    X = rng.normal(size=(persons, 5))[who] + 0.03 * rng.normal(size=(len(who), 5))
    mixed = rng.permutation(len(who))
    return X[mixed], rng.integers(2, size=persons)[who][mixed]


def rows_of(X, y):
    return LabelledRows(X, y.astype(np.intp), np.arange(2))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(1.0)])
def test_scores_are_those_of_the_bordered_system(kernel, weighted):
    rows = labelled(200, noise=0.5)
    if weighted:
        rows = replace(rows, weights=np.random.default_rng(0).uniform(0.5, 2.0, 200))
    fold = search(rows).trial.problem.folds[0]
    exact, ridge = ExactFold.of(fold), 0.1
    scores = exact.scores(*exact.values(kernel), ridge)
    unit, n = fold.unit.astype(np.float64), len(fold.train)
    gram, tested = unit[:n] @ unit[:n].T, unit[n:] @ unit[:n].T
    kernel.apply(gram)
    kernel.apply(tested)
    dual, intercept = twin.solve(gram, np.eye(2)[fold.train.codes], ridge / fold.train.row_weights)
    np.testing.assert_allclose(scores, tested @ dual + intercept, atol=5e-3)


def test_a_matrix_that_rounding_makes_indefinite_predicts_the_class_shares():
    fold = search(labelled(200)).trial.problem.folds[0]
    exact = ExactFold.of(fold)
    mutual, tested = exact.values(Gaussian(1.0))
    scores = exact.scores(mutual, tested, -10.0)
    np.testing.assert_allclose(scores, np.full_like(scores, 0.5), atol=0.01)


def test_the_search_moves_to_narrow_kernels_where_neighbours_decide():
    X, y = visits()
    best = search(rows_of(X[:1800], y[:1800]), may_shrink=False).trial
    families, executor = (Gaussian(1.0), Laplacian(1.0)), best.problem.executor
    found = search_exact(best, families, 10_000, executor)
    assert best.gain_of_neighbours() > 4
    assert found.mean_brier < 0.5 * best.mean_brier
    ridge = found.regularization * best.problem.fitted_weight
    assert ridge == pytest.approx(10.0 ** (found.power / 2))
    fewer = search_exact(best, families, 300, executor)
    whole = fit_exact(replace(fewer, kernel=found.kernel, power=found.power), 10_000, executor)
    np.testing.assert_array_equal(whole.scores, found.scores)
    assert found.mean_brier < fewer.mean_brier


def test_all_rows_become_representatives_where_they_predict_better():
    X, y = visits()
    model = KMeansKernelClassifier(random_state=0).fit(X[:1800], y[:1800])
    assert len(model.representatives_) == 1800
    assert model.loss_ == "squared"
    few = KMeansKernelClassifier(100, random_state=0).fit(X[:1800], y[:1800])
    assert len(few.representatives_) == 200
    assert 1 - model.score(X[1800:], y[1800:]) < 0.5 * (1 - few.score(X[1800:], y[1800:]))
    assert model.predict_proba(X[1800:])[np.arange(600), y[1800:]].mean() > 0.85


def test_a_smooth_table_keeps_centroids():
    found = search(labelled(900))
    assert not found.exact
    assert found.trial.gain_of_neighbours() < 4


def test_neighbours_with_random_labels_gain_nothing():
    rng = np.random.default_rng(0)
    found = search(rows_of(rng.normal(size=(600, 4)), rng.integers(2, size=600)))
    assert abs(found.trial.gain_of_neighbours()) < 4
