import numpy as np
import pytest
from sklearn.datasets import make_classification

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.samples import Labelled
from kmeans_kernel.core.clustering.representatives import KMeans
from kmeans_kernel.core.kernels.kernels import Gaussian
from kmeans_kernel.core.training.cross_validation import LARGE_CLUSTERS
from kmeans_kernel.core.training.search import falls
from kmeans_kernel.core.training.tuning import Open, make_choice, smaller_problem
from kmeans_kernel.estimators._progress import Silent
from kmeans_kernel.report import plot_growth

KMEANS = KMeans(10, "random", 1e-6, 300)
FAMILY = (Gaussian,)
ALL_OPEN = Open(FAMILY, None, None, None)


def labelled(n, d=4, n_classes=2, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + 1.5 * np.eye(n_classes, d)[codes]
    return Labelled(X, codes, np.arange(n_classes), weights)


def run(data, open_=ALL_OPEN, fit_on="samples", kmeans=KMEANS):
    return make_choice(data, kmeans, fit_on, open_, np.random.default_rng(0), Silent())


@pytest.mark.parametrize("scales", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_typical_length_is_the_root_of_the_mean_square(scales, weighted, rng):
    weights = rng.random(30) if weighted else None
    data = labelled(30, weights=weights)
    factors = np.array([1.0, 2.0, 0.0, 0.5]) if scales else np.ones(4)
    each = [sum((x * s) ** 2 for x, s in zip(row, factors, strict=True)) for row in data.X]
    expected = np.sqrt(np.average(each, weights=weights))
    assert data.lengths(factors if scales else None).typical == pytest.approx(expected)


def test_rows_of_no_length_or_too_much_have_a_finite_lift():
    for value, expected in ((0.0, 1.0), (1e300, 1e150)):
        data = Labelled(np.full((4, 2), value), np.array([0, 1, 0, 1]), np.arange(2))
        assert data.lengths(None).typical == expected


def test_what_is_given_needs_no_choice():
    data = labelled(40)
    given = Open(Gaussian(1.0), 0.1, 2.0, None).as_given(data)
    assert (given.kernel, given.regularization, given.placement.lift) == (Gaussian(1.0), 0.1, 2.0)
    assert given.temperature is None
    for missing in (
        Open(FAMILY, 0.1, 2.0, None),
        Open(Gaussian(1.0), None, 2.0, None),
        Open(Gaussian(1.0), 0.1, 2.0, "auto"),
    ):
        assert missing.as_given(data) is None


def test_small_problems_are_tried_whole_and_large_ones_in_part():
    data = labelled(100)
    assert smaller_problem(data, KMEANS, np.random.default_rng(0)) == (data, KMEANS)
    # many rows to a representative: fewer rows will do
    small, kmeans = smaller_problem(labelled(5000), KMEANS, np.random.default_rng(0))
    assert kmeans == KMEANS
    assert len(small) == LARGE_CLUSTERS * 20
    assert small.class_sizes == [len(small) // 2] * 2
    # many representatives: fewer of them, and rows in proportion
    many = KMeans(1000, "random", 1e-6, 300)
    small, kmeans = smaller_problem(labelled(8000), many, np.random.default_rng(0))
    assert kmeans.n_representatives == 500
    assert len(small) == 4000


@pytest.mark.parametrize("fit_on", ["samples", "representatives"])
@pytest.mark.parametrize("n", [60, 3000])
def test_the_choice_is_near_the_best_that_was_possible(fit_on, n):
    """Whether by folds (few rows) or by leaving one out (many)."""
    data, test = labelled(n), labelled(2000, seed=1)
    chosen = run(data, fit_on=fit_on)
    errors = {}
    for gamma in (0.125, 0.5, 2.0, 8.0, 32.0):
        for power in range(-8, 2):
            found = KMeansKernelClassifier(
                10, gamma=gamma, regularization=10.0**power, fit_on=fit_on, feature_scales=None,
                random_state=0,
            ).fit(data.X, data.codes)  # fmt: skip
            errors[gamma, power] = 1 - found.score(test.X, test.codes)
    found = KMeansKernelClassifier(
        10, gamma=chosen.kernel.gamma, regularization=chosen.regularization, fit_on=fit_on,
        feature_scales=None, random_state=0,
    ).fit(data.X, data.codes)  # fmt: skip
    assert 1 - found.score(test.X, test.codes) <= min(errors.values()) + 0.02
    assert abs(chosen.held_out_error - min(errors.values())) < (0.12 if n == 60 else 0.04)


def test_the_penalty_carries_over_to_all_samples():
    """λ falls as the power 1.5 of the weight, from the part that was tried to the whole."""
    chosen = run(labelled(5000))
    tried = LARGE_CLUSTERS * 20
    expected = chosen.squares.regularization * (tried / 5000) ** 1.5
    assert chosen.regularization == pytest.approx(expected)
    chosen = run(labelled(5000), fit_on="representatives")
    assert chosen.regularization == chosen.squares.regularization


def test_features_that_say_nothing_are_scaled_down():
    X, y = make_classification(
        600, 20, n_informative=3, n_redundant=0, n_classes=2, shuffle=False, random_state=0
    )
    found = KMeansKernelClassifier(20, random_state=0).fit(X, y)
    assert found.feature_scales_[:3].min() > 3 * found.feature_scales_[3:].max()
    plain = KMeansKernelClassifier(20, random_state=0, feature_scales=None).fit(X, y)
    assert plain.feature_scales_ is None
    assert found.held_out_error_ < plain.held_out_error_


def test_scales_are_kept_only_where_they_help(rng):
    X = rng.normal(size=(300, 2))
    y = (np.linalg.norm(X, axis=1) > 1.2).astype(int)
    assert KMeansKernelClassifier(20, random_state=0).fit(X, y).feature_scales_ is None
    learned = KMeansKernelClassifier(20, random_state=0, feature_scales="learned").fit(X, y)
    assert learned.feature_scales_ is not None


def test_wide_rows_are_scaled_only_when_asked(rng):
    X, y = rng.normal(size=(60, 101)), np.arange(60) % 2
    assert KMeansKernelClassifier(5, random_state=0).fit(X, y).feature_scales_ is None


def test_losses_fall_beyond_noise_or_not(rng):
    old = rng.random(1000)
    assert falls(old, old - 0.1, np.ones(1000))
    assert not falls(old, old, np.ones(1000))
    assert not falls(old, old + 0.1, np.ones(1000))
    assert not falls(old, rng.permutation(old), np.ones(1000))


def test_representatives_grow_until_it_is_enough():
    X, y = make_classification(
        1500, 2, n_informative=2, n_redundant=0, n_clusters_per_class=1, random_state=3
    )
    found = KMeansKernelClassifier("auto", random_state=0).fit(X, y)
    numbers = [step.n_representatives for step in found.growth_]
    assert numbers == [12 * 2**k for k in range(len(numbers))]
    assert found.n_representatives_ in numbers
    assert len(found.representatives_) == 2 * found.n_representatives_
    assert found.n_representatives_ < 400
    axes = plot_growth(found).axes[0]
    assert axes.lines[0].get_xdata().tolist() == numbers
    with pytest.raises(ValueError, match="n_representatives='auto'"):
        plot_growth(KMeansKernelClassifier(5).fit(X, y))


def test_growth_ends_where_every_row_stands_for_itself_or_memory_ends(monkeypatch):
    X, y = make_classification(40, 5, random_state=0)
    found = KMeansKernelClassifier("auto", random_state=0).fit(X, y)
    assert found.growth_[-1].n_representatives <= 16
    X, y = make_classification(900, 10, n_informative=9, n_redundant=0, random_state=0)
    monkeypatch.setattr("kmeans_kernel.core.training.model_size.MOST_BYTES", 24 * 48**2)
    found = KMeansKernelClassifier("auto", random_state=0).fit(X, y)
    assert [step.n_representatives for step in found.growth_] == [12, 24]
    monkeypatch.setattr("kmeans_kernel.core.training.model_size.MOST_SECONDS", 0.0)
    assert len(KMeansKernelClassifier("auto", random_state=0).fit(X, y).growth_) == 1


def test_equal_rows_are_not_held_out_all_at_once(rng):
    """A table of few values: each row comes many times, and says what it says in every fold."""
    patterns = rng.permutation(16)[:, None] >> np.arange(4) & 1
    which = rng.integers(0, 16, 400)
    y = np.where(rng.random(400) < 0.1, rng.integers(0, 2, 400), which % 2)
    found = KMeansKernelClassifier(random_state=0).fit(patterns[which], y)
    assert found.held_out_error_ < 0.12
    assert found.score(patterns[which], which % 2) == 1.0
