import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from kmeans_kernel import FourierFeatures, KMeansKernelClassifier, PixelNormalizer
from kmeans_kernel.data import load_digits
from kmeans_kernel.estimators.transformers._base import as_images
from tests.reference import images as twin

TRANSFORMERS = [
    (PixelNormalizer(), twin.pixel_rows),
    (FourierFeatures(root=True), lambda X: twin.fourier_rows(X, True)),
    (FourierFeatures(root=False), lambda X: twin.fourier_rows(X, False)),
]


@pytest.mark.parametrize(("transformer", "naive"), TRANSFORMERS, ids=lambda x: str(x)[:30])
@pytest.mark.parametrize("n_pixels", [1, 2, 7, 12])
def test_features_equal_the_twin(transformer, naive, n_pixels, rng):
    X = rng.normal(size=(5, n_pixels))
    X[2] = 0.1  # a single shade
    found = transformer.fit_transform(X)
    np.testing.assert_allclose(found, naive(X.tolist()), atol=1e-9)
    np.testing.assert_array_equal(found[2], 0)


@pytest.mark.parametrize("transformer", [PixelNormalizer(), FourierFeatures()])
@pytest.mark.parametrize(
    ("dtype", "out"),
    [(np.uint8, np.float32), (np.float32, np.float32), (np.float64, np.float64)],
)
def test_images_and_rows_are_the_same(transformer, dtype, out, rng):
    images = rng.integers(0, 255, size=(6, 4, 5)).astype(dtype)
    from_images = transformer.fit_transform(images)
    assert from_images.dtype == out
    np.testing.assert_array_equal(from_images, transformer.transform(images.reshape(6, 20)))
    np.testing.assert_allclose(np.linalg.norm(from_images, axis=1), 1, atol=1e-6)


def test_fourier_features_of_mnist_size_are_1176(rng):
    assert FourierFeatures().fit_transform(rng.random((2, 28, 28))).shape == (2, 1176)


def test_blocks_do_not_show(rng, monkeypatch):
    X = rng.random((50, 9))
    whole = FourierFeatures().fit_transform(X)
    monkeypatch.setattr("kmeans_kernel.core.arrays.matrices.BLOCK_ENTRIES", 30)
    np.testing.assert_allclose(FourierFeatures().fit_transform(X), whole, rtol=1e-12)


def test_names_and_set_output(rng):
    frame = pd.DataFrame(rng.random((5, 4)), columns=list("abcd"))
    pixels = PixelNormalizer().set_output(transform="pandas").fit_transform(frame)
    assert list(pixels.columns) == list("abcd")
    fourier = FourierFeatures().set_output(transform="pandas").fit_transform(frame)
    assert list(fourier.columns) == [f"fourierfeatures{i}" for i in range(6)]


def test_in_a_pipeline_with_images():
    digits = load_digits()
    model = make_pipeline(FourierFeatures(), KMeansKernelClassifier(30, random_state=0))
    assert model.fit(digits.X_train, digits.y_train).score(digits.X_test, digits.y_test) > 0.93


@pytest.mark.parametrize(
    ("shape", "image_shape", "expected"),
    [((2, 9), None, (2, 3, 3)), ((2, 6), (2, 3), (2, 2, 3)), ((2, 2, 3), None, (2, 2, 3))],
)
def test_rows_become_images(shape, image_shape, expected):
    assert as_images(np.zeros(shape), image_shape).shape == expected


@pytest.mark.parametrize(
    ("shape", "image_shape", "message"),
    [
        ((2, 10), None, "rows of 10 pixels, which is no square image.*image_shape="),
        ((2, 10), (3, 3), "rows of 3 × 3 = 9 pixels, as image_shape or .* say, got rows of 10"),
        ((2, 4, 4), (3, 3), "images of 3 × 3 pixels, as image_shape or .* say, got 4 × 4"),
        ((2, 4, 4, 3), None, r"got an array of shape \(2, 4, 4, 3\).*grey"),
    ],
)
def test_what_is_no_image_is_explained(shape, image_shape, message):
    with pytest.raises(ValueError, match=message):
        as_images(np.zeros(shape), image_shape)


def test_a_wrong_number_of_pixels_and_nan_are_explained(rng):
    fitted = PixelNormalizer().fit(rng.random((3, 4, 4)))
    with pytest.raises(ValueError, match="X has 9 features, but PixelNormalizer is expecting 16"):
        fitted.transform(rng.random((3, 3, 3)))
    with pytest.raises(ValueError, match="contains NaN"):
        fitted.transform(np.full((1, 16), np.nan))


def test_sparse_input_is_refused():
    with pytest.raises(TypeError, match="dense images or rows of pixels, got a sparse matrix"):
        as_images(sp.csr_array((2, 9)), None)


@pytest.mark.parametrize("transformer", [PixelNormalizer(), FourierFeatures()])
def test_lists_and_huge_pixels(transformer, rng):
    images = rng.random((3, 4, 4))
    expected = transformer.fit_transform(images)
    np.testing.assert_array_equal(transformer.fit_transform(images.tolist()), expected)
    np.testing.assert_allclose(transformer.fit_transform(images * 1e307), expected, atol=1e-12)
    with pytest.raises(ValueError, match="X must hold numbers, got text"):
        transformer.fit(images.reshape(3, 16).astype(str))


@pytest.mark.parametrize("transformer", [PixelNormalizer(), FourierFeatures()])
def test_images_of_another_shape_are_refused(transformer, rng):
    transformer.fit(rng.random((3, 4, 6)))
    assert transformer.image_shape_ == (4, 6)
    transformer.transform(rng.random((2, 24)))
    with pytest.raises(ValueError, match="images of 4 × 6 pixels, as those seen in fit, got 6 × 4"):
        transformer.transform(rng.random((2, 6, 4)))
    transformer.fit(rng.random((3, 24)))
    assert transformer.image_shape_ is None
    transformer.transform(rng.random((2, 6, 4)))
