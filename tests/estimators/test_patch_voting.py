import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.utils import get_tags

from kmeans_kernel import KMeansKernelClassifier, PatchVotingClassifier, paper
from kmeans_kernel.data import load_digits
from kmeans_kernel.estimators._patch_voting import extract_patches
from tests.reference import images as twin


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def voting(**options):
    return PatchVotingClassifier(KMeansKernelClassifier(10, random_state=0), (6, 6), **options)


@pytest.fixture(scope="module")
def fitted(digits):
    return voting().fit(digits.X_train, digits.y_train)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 5)])
def test_patches_equal_the_twin(shape, rng):
    images = rng.integers(0, 255, size=(3, 4, 5)).astype(np.uint8)
    found = extract_patches(images, shape)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, twin.patches(images.tolist(), *shape))


@pytest.mark.parametrize("vote", ["majority", "sum"])
def test_the_vote_is_counted(digits, fitted, vote):
    images = digits.X_test[:50]
    scores = fitted.classifier_.decision_function(extract_patches(images, (6, 6)))
    scores = scores.reshape(50, 9, 10)
    expected = []
    for image in scores:
        counts = [0] * 10
        for patch in image:
            counts[patch.argmax()] += 1
        total = image.sum(axis=0)
        key = (lambda k: (counts[k], total[k])) if vote == "majority" else (lambda k: total[k])  # noqa: B023
        expected.append(max(range(10), key=key))
    fitted = pickle.loads(pickle.dumps(fitted)).set_params(vote=vote)
    np.testing.assert_array_equal(fitted.predict(images), expected)
    proba = fitted.predict_proba(images)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(proba.argmax(axis=1), expected)


def test_a_tie_goes_to_the_summed_scores():
    class Fixed(KMeansKernelClassifier):
        def decision_function(self, X):
            """Two patches vote for each class; the last votes are louder."""
            scores = np.array([[1, 0, 0], [1, 0, 0], [0, 0, 9], [0, 0, 9]])
            return np.tile(scores, (len(X) // 4, 1)).astype(float)

        def predict(self, X):
            return self.decision_function(X).argmax(axis=1)

    images = np.random.default_rng(0).random((9, 3, 3))
    found = PatchVotingClassifier(Fixed(2, random_state=0), (2, 2)).fit(images, np.arange(9) % 3)
    np.testing.assert_array_equal(found.predict(images), 2)


def test_rows_lists_and_images_are_the_same(digits, fitted):
    expected = fitted.predict_proba(digits.X_test[:20])
    rows = digits.X_test[:20].reshape(20, 64)
    np.testing.assert_array_equal(fitted.predict_proba(rows), expected)
    np.testing.assert_array_equal(fitted.predict_proba(digits.X_test[:20].tolist()), expected)
    from_rows = voting().fit(digits.X_train.reshape(-1, 64), digits.y_train)
    np.testing.assert_array_equal(from_rows.predict_proba(rows), expected)


def test_blocks_do_not_show(digits, fitted, monkeypatch):
    whole = fitted.predict_proba(digits.X_test[:40])
    monkeypatch.setattr("kmeans_kernel.core.arrays.matrices.BLOCK_ENTRIES", 200)
    np.testing.assert_allclose(fitted.predict_proba(digits.X_test[:40]), whole, atol=1e-9)


def test_images_that_are_not_square(rng):
    y = np.arange(40) % 2
    images = rng.random((40, 4, 6)) + y[:, None, None] * np.linspace(0, 3, 6)
    model = PatchVotingClassifier(KMeansKernelClassifier(5, random_state=0), (3, 5))
    expected = model.fit(images, y).predict(images)
    assert (expected == y).mean() > 0.9
    rows = clone(model).set_params(image_shape=(4, 6)).fit(images.reshape(40, 24), y)
    np.testing.assert_array_equal(rows.predict(images.reshape(40, 24)), expected)


def test_any_classifier_and_string_labels(digits):
    names = np.array([f"digit {k}" for k in range(10)])
    forest = RandomForestClassifier(10, random_state=0)
    for vote in ("majority", "sum"):
        model = PatchVotingClassifier(forest, (7, 7), vote).fit(
            digits.X_train, names[digits.y_train]
        )
        np.testing.assert_array_equal(model.classes_, names)
        assert model.score(digits.X_test, names[digits.y_test]) > 0.85


def test_two_classes(digits):
    model = paper.patches(100, patch=6, random_state=0)
    model.fit(digits.X_train, digits.y_train > 4)
    assert model.score(digits.X_test, digits.y_test > 4) > 0.9


def test_the_paper_classifier_on_digits(digits):
    model = paper.patches(50, patch=7, random_state=0).fit(digits.X_train, digits.y_train)
    assert model.score(digits.X_test, digits.y_test) > 0.95


def test_clone_display_tags(fitted):
    assert not hasattr(clone(fitted), "classifier_")
    assert "PatchVotingClassifier" in fitted._repr_html_()
    tags = get_tags(fitted).input_tags
    assert tags.three_d_array
    assert not tags.two_d_array
    with pytest.raises(NotFittedError):
        clone(fitted).predict(np.zeros((1, 8, 8)))


@pytest.mark.parametrize("patch_shape", [(9, 9), (9, 2)])
def test_a_patch_that_does_not_fit_is_explained(digits, patch_shape):
    model = PatchVotingClassifier(KMeansKernelClassifier(), patch_shape)
    with pytest.raises(ValueError, match="'patch_shape' parameter.*within the images of 8 × 8"):
        model.fit(digits.X_train, digits.y_train)


@pytest.mark.parametrize("name", ["patch_shape", "image_shape"])
@pytest.mark.parametrize("shape", [(0, 3), 6, "66", (1, 2, 3), (2.7, 3), (True, True), (-8, -8)])
def test_what_is_no_shape_is_explained(digits, name, shape):
    model = voting().set_params(**{name: shape})
    with pytest.raises(ValueError, match=f"'{name}' parameter.*must be two whole numbers.*height"):
        model.fit(digits.X_train, digits.y_train)


@pytest.mark.parametrize(
    ("classifier", "method"),
    [
        (SVC(decision_function_shape="ovo"), "predict"),
        (RidgeClassifier(), "decision_function"),
        (VotingClassifier([("nb", GaussianNB())]), "predict"),
        (GaussianNB(), "predict_proba"),
    ],
    ids=lambda x: str(x)[:24],
)
@pytest.mark.parametrize("n_classes", [3, 10])
def test_scores_are_trusted_only_if_they_agree_with_predict(digits, classifier, method, n_classes):
    X, y = digits.X_train[:300], digits.y_train[:300] % n_classes
    model = PatchVotingClassifier(classifier, (6, 6)).fit(X, y)
    assert model.score_method_ == method
    patches = model.classifier_.predict(extract_patches(X, (6, 6))).reshape(300, 9)
    counts = (patches[..., np.newaxis] == np.arange(n_classes)).sum(axis=1)
    clear = np.sort(counts, axis=1)[:, -1] > np.sort(counts, axis=1)[:, -2]
    np.testing.assert_array_equal(model.predict(X)[clear], counts.argmax(axis=1)[clear])


def test_changing_the_parameter_after_fit_changes_nothing(digits, fitted):
    expected = fitted.predict(digits.X_test[:10])
    changed = pickle.loads(pickle.dumps(fitted)).set_params(patch_shape=(2, 2))
    np.testing.assert_array_equal(changed.predict(digits.X_test[:10]), expected)


def test_frames(digits, fitted):
    rows = digits.X_test[:20].reshape(20, 64)
    expected = fitted.predict(rows)
    np.testing.assert_array_equal(fitted.predict(pd.DataFrame(rows)), expected)
    np.testing.assert_array_equal(fitted.predict(pl.DataFrame(rows)), expected)


def test_other_bad_input_is_explained(digits, fitted):
    X, y = digits.X_train, digits.y_train
    with pytest.raises(ValueError, match="'vote' parameter.*one of 'majority', 'sum', got 'loud'"):
        voting(vote="loud").fit(X, y)
    with pytest.raises(ValueError, match="rows of 60 pixels, which is no square image"):
        voting().fit(X.reshape(len(X), 64)[:, :60], y)
    with pytest.raises(ValueError, match="contains NaN"):
        voting().fit(np.where(X > 15, np.nan, X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        voting().fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        voting().fit(X, None)
    with pytest.raises(TypeError, match="got a sparse matrix"):
        voting().fit(sp.csr_array(X.reshape(-1, 64)), y)
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        fitted.predict(X[:0])
    with pytest.raises(ValueError, match="'classifier' parameter.*must be a scikit-learn classif"):
        PatchVotingClassifier("svc", (6, 6)).fit(X, y)
    with pytest.raises(ValueError, match="images of 8 × 8 pixels, as .* in fit say, got 7 × 8"):
        fitted.predict(X[:, 1:])
    with pytest.raises(ValueError, match="at least two classes"):
        voting().fit(X, np.zeros(len(X), dtype=int))
