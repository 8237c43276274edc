import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kmeans_kernel import KMeansKernelClassifier, PatchVotingClassifier, PixelNormalizer
from kmeans_kernel.core.arrays.lazy import LazyRows, takes_lazy_rows
from kmeans_kernel.estimators._patch_voting import extract_patches, lazy_patches


@pytest.fixture
def images(rng):
    return rng.integers(256, size=(9, 6, 7)).astype(np.uint8)


def test_lazy_patches_are_the_patches(images):
    whole, lazy = extract_patches(images, (4, 3)), lazy_patches(images, (4, 3))
    assert (lazy.shape, len(lazy), lazy.ndim, lazy.dtype) == (whole.shape, len(whole), 2, np.uint8)
    np.testing.assert_array_equal(np.asarray(lazy), whole)
    some = np.array([3, 100, 7, 7])
    for rows in (slice(5, 20), some, np.arange(len(whole)) % 3 == 0, slice(0, 0)):
        np.testing.assert_array_equal(lazy[rows], whole[rows])
    assert np.asarray(lazy, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="a copy is needed"):
        lazy.__array__(copy=False)


def test_our_estimators_take_lazy_rows():
    assert takes_lazy_rows(KMeansKernelClassifier())
    assert takes_lazy_rows(make_pipeline(PixelNormalizer(), KMeansKernelClassifier()))


def test_our_transformers_pass_lazy_rows_on(images):
    whole, lazy = extract_patches(images, (4, 4)), lazy_patches(images, (4, 4))
    normalizer = PixelNormalizer().fit(lazy)
    assert normalizer.n_features_in_ == 16
    passed_on = normalizer.transform(lazy)
    assert isinstance(passed_on, LazyRows)
    np.testing.assert_array_equal(np.asarray(passed_on), normalizer.transform(whole))
    assert passed_on.dtype == np.float32
    with pytest.raises(ValueError, match="16 features"):
        normalizer.transform(lazy_patches(images, (3, 3)))


def test_each_class_is_made_once(images):
    whole, made = extract_patches(images, (4, 4)), []
    labels = np.repeat([0, 1, 2], len(whole) // 3)

    def make(rows):
        made.append(labels[rows])
        return whole[rows]

    def fit(X, **options):
        classifier = KMeansKernelClassifier(5, random_state=0, **options)
        return classifier.fit(X, labels)

    given = {"fit_on": "representatives", "gamma": 1.0, "regularization": 1e-3, "lift": 1.0}
    given |= {"feature_scales": None, "feature_transform": None}
    lazily = fit(LazyRows(make, whole.shape, whole.dtype), **given)
    assert sorted(rows.tolist() for rows in made) == [[k] * (len(whole) // 3) for k in range(3)]
    np.testing.assert_array_equal(lazily.dual_coef_, fit(whole, **given).dual_coef_)
    lazily = fit(LazyRows(make, whole.shape, whole.dtype))
    np.testing.assert_allclose(
        lazily.decision_function(whole), fit(whole).decision_function(whole), atol=1e-5
    )
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KMeansKernelClassifier().fit(LazyRows(make, whole.shape, whole.dtype), labels[:-1])


@pytest.mark.parametrize(
    "classifier",
    [
        RidgeClassifier(),
        make_pipeline(StandardScaler(), RidgeClassifier()),
        make_pipeline(FunctionTransformer(lambda X: X.astype(float) / 255), RidgeClassifier()),
        make_pipeline(PixelNormalizer(), RidgeClassifier()),
        GridSearchCV(KMeansKernelClassifier(3, random_state=0), {"gamma": [1.0]}, cv=2),
    ],
)
def test_other_classifiers_see_an_array(classifier, images):
    y = np.arange(9) % 2
    voting = PatchVotingClassifier(classifier, patch_shape=(4, 4)).fit(images, y)
    assert not takes_lazy_rows(classifier)
    alone = classifier.fit(extract_patches(images, (4, 4)), np.repeat(y, 12))
    np.testing.assert_array_equal(
        voting.classifier_.decision_function(extract_patches(images, (4, 4))),
        alone.decision_function(extract_patches(images, (4, 4))),
    )
