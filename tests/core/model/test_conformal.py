import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_classification

from kmeans_kernel import KMeansKernelClassifier, load_model, save_model
from kmeans_kernel.core.model.conformal import thresholds
from kmeans_kernel.core.model.temperature import HeldOutProbabilities
from tests.reference import conformal as naive


@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("largest", [1, 4])
def test_thresholds_are_those_of_the_twin(rng, coverage, largest):
    chances = rng.random(60).round(1)  # with ties
    counts, codes = rng.integers(1, largest + 1, 60), rng.integers(0, 3, 60)
    held_out = HeldOutProbabilities(chances, codes, counts.astype(float))
    together = thresholds(held_out, 4, coverage, by_class=False)
    assert together == pytest.approx([naive.threshold(chances, counts, coverage)] * 4)
    each = thresholds(held_out, 4, coverage, by_class=True)
    expected = [
        naive.threshold(chances[codes == k], counts[codes == k], coverage) for k in range(3)
    ]
    assert each == pytest.approx([*expected, 0.0])  # a class without samples is in every set


def test_sets_have_the_coverage_asked_for():
    X, y = make_classification(
        4000, 8, n_informative=5, n_classes=3, n_clusters_per_class=3, flip_y=0.1, random_state=0
    )
    train, test = slice(0, 1500), slice(1500, None)
    model = KMeansKernelClassifier(random_state=0).fit(X[train], y[train])
    sizes = []
    for coverage in (0.8, 0.9, 0.95):
        found = model.predict_set(X[test], coverage)
        covered = found[np.arange(2500), y[test]]
        assert covered.mean() == pytest.approx(coverage, abs=0.03)
        sizes.append(found.sum(axis=1).mean())
    assert sizes == sorted(sizes)
    by_class = model.predict_set(X[test], 0.9, by_class=True)
    covered = by_class[np.arange(2500), y[test]]
    for k in range(3):
        assert covered[y[test] == k].mean() == pytest.approx(0.9, abs=0.04)


def test_loaded_models_have_the_same_sets(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    model = KMeansKernelClassifier(random_state=0).fit(X, y)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_set(X, 0.95), model.predict_set(X, 0.95))


@pytest.mark.parametrize("coverage", [0, 1, -0.1, "0.9", None, True])
def test_coverage_is_a_share(coverage):
    X, y = load_breast_cancer(return_X_y=True)
    model = KMeansKernelClassifier(5, random_state=0).fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="coverage must be a number above 0 and below 1, got"):
        model.predict_set(X, coverage)


def test_sets_need_held_out_samples():
    X, y = load_breast_cancer(return_X_y=True)
    given = {"gamma": 1.0, "regularization": 1e-3, "feature_scales": None, "kernel": "rbf"}
    model = KMeansKernelClassifier(5, random_state=0, **given).fit(X, y)
    with pytest.raises(ValueError, match="predict_set needs held-out samples"):
        model.predict_set(X)
