from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.execution import Run
from kmeans_kernel.core.arrays.rows import LabelledRows, with_typical_lift
from kmeans_kernel.core.arrays.sphere import PLAIN_MAP
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian
from kmeans_kernel.core.training.cross_validation import LARGE_CLUSTERS
from kmeans_kernel.core.training.tuning import (
    leaves_open,
    rescale,
    restrict_to_width,
    smaller_problem,
    tune,
)
from tests.core.training.configs import OPEN


def labelled(n, d=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + 1.5 * np.eye(n_classes, d)[codes]
    return LabelledRows(X, codes, np.arange(n_classes))


def run(rows, **options):
    return tune(rows, replace(OPEN, **options), Run(rng=np.random.default_rng(0)))


def test_a_config_that_leaves_nothing_open_is_taken_as_given():
    rows = labelled(40)
    closed = replace(OPEN, kernel=Gaussian(1.0), regularization=0.1, lift=2.0)
    assert not leaves_open(closed)
    events = []
    given = tune(rows, closed, Run(on_event=events.append))
    assert (given.kernel, given.regularization, given.sphere_map.lift) == (Gaussian(1.0), 0.1, 2.0)
    assert (given.sphere_map.scales, given.sphere_map.feature_transform) == (None, None)
    assert given.loss == "squared"
    assert (given.temperature, given.held_out_error, given.squares) == (None, None, None)
    assert events == []
    # a lift that is left open needs no search
    lifted = tune(rows, replace(closed, lift=None, loss=None), Run())
    assert lifted.sphere_map.lift == with_typical_lift(rows, PLAIN_MAP).lift
    assert lifted.loss == "squared"
    # neither does a feature transform
    for name, kind in (("auto", "standard"), ("standard", "standard"), ("asinh", "asinh")):
        transformed = replace(closed, feature_transform=name)
        assert not leaves_open(transformed)
        assert tune(rows, transformed, Run()).sphere_map.feature_transform.kind == kind
    for missing in (
        {"kernel": (Gaussian(1.0),)},
        {"regularization": None},
        {"feature_scales": "auto"},
        {"feature_scales": "learned"},
    ):
        assert leaves_open(replace(closed, **missing))
        assert tune(rows, replace(closed, **missing), Run()).held_out_error is not None


def test_wide_rows_restrict_the_search():
    config = replace(
        OPEN,
        kernel=(Gaussian(1.0), Laplacian(1.0)),
        feature_scales="auto",
        feature_transform="auto",
    )
    assert restrict_to_width(config, 100) == config
    assert restrict_to_width(config, 101) == replace(
        config, kernel=(Gaussian(1.0),), feature_scales=None, feature_transform=None
    )
    asked = replace(
        config, kernel=Laplacian(3.0), feature_scales="learned", feature_transform="asinh"
    )
    assert restrict_to_width(asked, 101) == asked


def test_small_problems_are_tried_whole_and_large_ones_in_part():
    rows = labelled(100)
    assert smaller_problem(rows, OPEN, np.random.default_rng(0)) == (rows, OPEN)
    # many rows to a representative: fewer rows will do
    small, config = smaller_problem(labelled(5000), OPEN, np.random.default_rng(0))
    assert config == OPEN
    assert len(small) == LARGE_CLUSTERS * 20
    assert small.class_sizes == [len(small) // 2] * 2
    # many representatives: fewer of them, and rows in proportion
    many = replace(OPEN, n_representatives=1000)
    small, config = smaller_problem(labelled(8000), many, np.random.default_rng(0))
    assert config == replace(many, n_representatives=500)
    assert len(small) == 4000


@pytest.mark.parametrize("fit_on", ["samples", "representatives"])
@pytest.mark.parametrize("n", [60, 3000])
def test_tuned_hyperparameters_are_near_the_best_possible(fit_on, n):
    """Whether by folds (few rows) or by leave-one-out (many)."""
    rows, test = labelled(n), labelled(2000, seed=1)
    tuned = run(rows, fit_on=fit_on)
    errors = {}
    for gamma in (0.125, 0.5, 2.0, 8.0, 32.0):
        for power in range(-8, 2):
            found = KMeansKernelClassifier(
                10, gamma=gamma, regularization=10.0**power, fit_on=fit_on, feature_scales=None,
                random_state=0,
            ).fit(rows.X, rows.codes)  # fmt: skip
            errors[gamma, power] = 1 - found.score(test.X, test.codes)
    found = KMeansKernelClassifier(
        10, gamma=tuned.kernel.gamma, regularization=tuned.regularization, fit_on=fit_on,
        feature_scales=None, random_state=0,
    ).fit(rows.X, rows.codes)  # fmt: skip
    assert 1 - found.score(test.X, test.codes) <= min(errors.values()) + 0.02
    assert abs(tuned.held_out_error - min(errors.values())) < (0.12 if n == 60 else 0.04)


def test_the_regularization_is_rescaled_to_all_samples():
    """λ falls as the power 1.5 of the weight, from the part that was tried to the whole."""
    tuned = run(labelled(5000, d=101))
    tried = LARGE_CLUSTERS * 20
    expected = tuned.squares.regularization * (tried / 5000) ** 1.5
    assert tuned.regularization == pytest.approx(expected)
    assert rescale(tuned.squares.regularization, tried, 5000) == pytest.approx(expected)
    tuned = run(labelled(5000), fit_on="representatives")
    assert tuned.regularization == tuned.squares.regularization


def test_uninformative_features_are_scaled_down():
    X, y = make_classification(
        600, 20, n_informative=3, n_redundant=0, n_classes=2, shuffle=False, random_state=0
    )
    found = KMeansKernelClassifier(20, random_state=0).fit(X, y)
    assert found.feature_scales_[:3].min() > 3 * found.feature_scales_[3:].max()
    plain = KMeansKernelClassifier(20, random_state=0, feature_scales=None).fit(X, y)
    assert plain.feature_scales_ is None
    assert found.held_out_error_ < plain.held_out_error_


def test_scales_are_kept_only_if_they_lower_the_loss(rng):
    X = rng.normal(size=(300, 2))
    y = (np.linalg.norm(X, axis=1) > 1.2).astype(int)
    assert KMeansKernelClassifier(20, random_state=0).fit(X, y).feature_scales_ is None
    learned = KMeansKernelClassifier(20, random_state=0, feature_scales="learned").fit(X, y)
    assert learned.feature_scales_ is not None


def test_wide_rows_are_scaled_only_on_request(rng):
    X, y = rng.normal(size=(60, 101)), np.arange(60) % 2
    assert KMeansKernelClassifier(5, random_state=0).fit(X, y).feature_scales_ is None


def test_a_table_of_few_distinct_rows_has_an_honest_error(rng):
    """Combinations of two binary columns with a share of one class in each."""
    X = rng.integers(0, 2, (600, 2))
    chance = np.array([[0.9, 0.3], [0.8, 0.1]])[X[:, 0], X[:, 1]]
    y = rng.random(600) < chance
    found = KMeansKernelClassifier(random_state=0).fit(X, y)
    assert found.held_out_error_ == pytest.approx(1 - found.score(X, y), abs=0.02)
    np.testing.assert_allclose(found.predict_proba(X)[:, 1], chance, atol=0.1)


def test_one_distinct_row_of_each_class_is_told_apart():
    y = np.arange(100) % 2
    found = KMeansKernelClassifier(random_state=0).fit(y[:, None] * 1.0, y)
    assert found.held_out_error_ == 0.0
    assert found.predict_proba([[0.0], [1.0]])[[0, 1], [0, 1]].min() > 0.9


def test_copies_of_equal_rows_are_not_held_out_all_at_once(rng):
    """A table of few values: each row comes many times, with the same pattern in every fold."""
    patterns = rng.permutation(16)[:, None] >> np.arange(4) & 1
    which = rng.integers(0, 16, 400)
    y = np.where(rng.random(400) < 0.1, rng.integers(0, 2, 400), which % 2)
    found = KMeansKernelClassifier(random_state=0).fit(patterns[which], y)
    assert found.held_out_error_ < 0.12
    assert found.score(patterns[which], which % 2) == 1.0
