import numpy as np
import pytest

from kmeans_kernel import EdgePatterns, image_classifier, paper
from kmeans_kernel.data import load_digits
from kmeans_kernel.estimators.transformers._edge_patterns import PATTERN_SIZE
from tests.reference import images as twin


@pytest.mark.parametrize("shape", [(8, 8), (5, 9)])
def test_features_equal_the_twin(shape, rng):
    images = rng.random((4, *shape))
    images[2] = 0.0
    found = EdgePatterns(5, random_state=0).fit(images)
    patterns = found.patterns_.astype(float).tolist()
    expected = [twin.edge_patterns(image.tolist(), patterns) for image in images]
    np.testing.assert_allclose(found.transform(images), expected, atol=1e-6)


def test_patterns_are_unit_rows_that_a_seed_decides(rng):
    images = rng.random((20, 12, 12))
    first, second, other = (EdgePatterns(9, random_state=k).fit(images) for k in (0, 0, 1))
    np.testing.assert_array_equal(first.patterns_, second.patterns_)
    assert (first.patterns_ != other.patterns_).any()
    assert first.patterns_.shape == (9, PATTERN_SIZE)
    np.testing.assert_allclose(np.linalg.norm(first.patterns_, axis=1), 1.0, rtol=1e-6)


def test_there_are_no_more_patterns_than_neighbourhoods(rng):
    images = rng.random((1, 4, 4))
    found = EdgePatterns(100).fit(images)
    assert 1 <= len(found.patterns_) <= 4
    assert found.transform(images).shape == (1, len(found.get_feature_names_out()))


def test_images_without_edges_have_no_patterns():
    blank = np.zeros((3, 6, 6))
    found = EdgePatterns().fit(blank)
    assert len(found.patterns_) == 0
    np.testing.assert_array_equal(found.transform(blank), np.zeros((3, 72)))


def test_brightness_does_not_matter(rng):
    images = rng.random((10, 8, 8))
    dim = EdgePatterns(5, random_state=0).fit_transform(images)
    bright = EdgePatterns(5, random_state=0).fit_transform(1000 * images)
    np.testing.assert_allclose(dim, bright, atol=1e-5)


def test_bad_parameters_are_named(rng):
    with pytest.raises(ValueError, match="'n_patterns' parameter of EdgePatterns must be"):
        EdgePatterns(0).fit(rng.random((2, 5, 5)))
    with pytest.raises(ValueError, match="no square image.*image_shape"):
        image_classifier().fit(rng.random((4, 20)), [0, 0, 1, 1])


def test_images_and_rows_give_the_same():
    digits = load_digits()
    images, rows = digits.X_train, digits.X_train.reshape(-1, 64)
    from_images = image_classifier(5, random_state=0).fit(images, digits.y_train)
    from_rows = image_classifier(5, image_shape=(8, 8), random_state=0).fit(rows, digits.y_train)
    np.testing.assert_array_equal(
        from_images.decision_function(digits.X_test),
        from_rows.decision_function(digits.X_test.reshape(-1, 64)),
    )


def test_it_beats_pixels_on_digits():
    digits = load_digits()

    def error(model):
        return 1 - model.fit(digits.X_train, digits.y_train).score(digits.X_test, digits.y_test)

    assert error(image_classifier(20, random_state=0)) < error(paper.raw(20, random_state=0))
