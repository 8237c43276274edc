import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import roc_auc_score

from kmeans_kernel import KMeansKernelClassifier, load_model, paper, save_model
from kmeans_kernel.core.arrays.sphere import unit_rows


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def fitted(digits):
    X, y = digits
    return KMeansKernelClassifier(random_state=0).fit(X[::2], y[::2])


def test_nearest_cosines_are_those_of_all_representatives(fitted, digits):
    model, X = fitted.model_, digits[0][:20]
    unit = model.sphere_map.apply(X, np.float64)
    expected = [max(float(row @ other) for other in model.directions) for row in unit]
    np.testing.assert_allclose(model.nearest_cosines(X), np.minimum(expected, 1), atol=1e-12)


def test_a_row_is_taken_out_of_its_cluster():
    rng = np.random.default_rng(0)
    X, y = make_blobs(90, 3, centers=2, random_state=0)
    model = KMeansKernelClassifier(
        3, random_state=0, kernel="rbf", gamma=1.0, regularization=1e-3, feature_scales=None,
        feature_transform=None,
    ).fit(X, y).model_  # fmt: skip
    unit = unit_rows(X, model.sphere_map.lift)
    codes = np.searchsorted(model.classes, y)
    found = model.left_out_cosines(unit, codes, np.ones(90))
    own = [np.flatnonzero(model.representative_classes == k) for k in codes]
    nearest = [mine[(unit[i] @ model.directions[mine].T).argmax()] for i, mine in enumerate(own)]
    for i in rng.choice(90, 20, replace=False):
        cluster = [j for j in range(90) if nearest[j] == nearest[i] and j != i]
        total = unit[cluster].sum(axis=0)
        others = np.delete(model.directions, nearest[i], axis=0) @ unit[i]
        expected = max(others.max(), unit[i] @ total / np.linalg.norm(total))
        assert found[i] == pytest.approx(expected, abs=0.02)


def test_ranks_of_new_rows_are_evenly_spread(fitted, digits):
    found = fitted.familiarity(digits[0][1::2])
    assert found.mean() == pytest.approx(0.5, abs=0.06)
    assert (found < 0.1).mean() == pytest.approx(0.1, abs=0.04)


def test_other_rows_are_unlike_those_of_training(fitted, digits):
    rows, rng = digits[0][1::2], np.random.default_rng(0)
    shuffled = np.column_stack([rng.permutation(column) for column in rows.T])
    found = np.concatenate([fitted.familiarity(rows), fitted.familiarity(shuffled)])
    is_real = np.repeat([1, 0], len(rows))
    assert roc_auc_score(is_real, found) > 0.97
    assert np.median(fitted.familiarity(shuffled)) == 0.0


@pytest.mark.parametrize("n_representatives", [None, 10_000])
def test_training_rows_do_not_count_themselves(n_representatives):
    options = {} if n_representatives is None else {"n_representatives": n_representatives}
    found = []
    for seed in range(4):
        X, y = make_blobs(600, 5, centers=3, cluster_std=4.0, random_state=seed)
        model = KMeansKernelClassifier(random_state=0, **options).fit(X[::2], y[::2])
        found.append(model.familiarity(X[1::2]).mean())
    assert np.mean(found) == pytest.approx(0.5, abs=0.08)


def test_saved_models_and_the_paper_know_familiar_rows(digits, tmp_path):
    X, y = digits
    model = paper.raw(q=5, random_state=0).fit(X, y)
    rows = model[:-1].transform(X[:50])
    first = model[-1].familiarity(rows)
    save_model(model, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m")[-1].familiarity(rows), first)
    online = KMeansKernelClassifier(5, random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="familiarity needs the cosines of training rows"):
        online.familiarity(X)
