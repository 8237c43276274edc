import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from kmeans_kernel import Deskewer, KMeansKernelClassifier, OrientedGradients
from kmeans_kernel.data import load_digits
from tests.reference import images as twin


@pytest.mark.parametrize("shape", [(5, 5), (4, 7), (1, 6), (6, 1)])
def test_deskewing_equals_the_twin(shape, rng):
    images = rng.normal(size=(6, *shape))
    images[2] = 0.0
    images[3] = -1.0
    images[4] = np.eye(*shape)
    found = Deskewer().fit_transform(images)
    expected = [np.ravel(twin.deskewed(image.tolist())) for image in images]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("shape", [(6, 6), (5, 8)])
@pytest.mark.parametrize(
    "options", [{}, {"n_orientations": 3, "blur": 0.7, "stride": 3, "sharpness": 1.5}]
)
def test_oriented_gradients_equal_the_twin(shape, options, rng):
    images = rng.random((4, *shape))
    found = OrientedGradients(**options).fit_transform(images)
    whole = {"n_orientations": 8, "blur": 1.5, "stride": 2, "sharpness": 8.0, **options}
    expected = [twin.oriented_gradients(image.tolist(), **whole) for image in images]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)


def test_a_slanted_stroke_stands_upright():
    image = np.zeros((1, 9, 9))
    for i in range(9):
        image[0, i, 2 + i // 2] = 1.0
    upright = Deskewer().fit_transform(image).reshape(9, 9)
    columns = np.arange(9)
    spread = [(row @ columns) / row.sum() for row in upright]
    assert np.std(spread) < 0.3
    assert upright.sum() == pytest.approx(9.0)


@pytest.mark.parametrize("transformer", [Deskewer(), OrientedGradients()])
@pytest.mark.parametrize(
    ("dtype", "out"), [(np.uint8, np.float32), (np.float32, np.float32), (np.float64, np.float64)]
)
def test_types_and_rows(transformer, dtype, out, rng):
    images = rng.integers(0, 255, size=(6, 5, 5)).astype(dtype)
    found = transformer.fit_transform(images)
    assert found.dtype == out
    np.testing.assert_array_equal(found, transformer.fit_transform(images.reshape(6, 25)))
    assert len(transformer.get_feature_names_out()) == found.shape[1]


def test_rows_that_are_no_squares_need_a_shape(rng):
    rows = rng.random((3, 20))
    with pytest.raises(ValueError, match="no square image.*image_shape"):
        Deskewer().fit(rows)
    assert OrientedGradients(image_shape=(4, 5)).fit_transform(rows).shape == (3, 8 * 2 * 3)
    with pytest.raises(ValueError, match="6 × 5 = 30 pixels"):
        Deskewer(image_shape=(6, 5)).fit(rows)
    with pytest.raises(ValueError, match="'image_shape' parameter of Deskewer must be two whole"):
        Deskewer(image_shape=4).fit(rows)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_orientations", 0), ("blur", 0.0), ("stride", 1.5), ("blur", "wide"), ("sharpness", 0)],
)
def test_bad_parameters_are_named(name, value, rng):
    with pytest.raises(ValueError, match=f"'{name}' parameter of OrientedGradients must be"):
        OrientedGradients(**{name: value}).fit(rng.random((2, 5, 5)))


def test_they_help_on_digits():
    digits = load_digits()

    def error(*steps):
        model = make_pipeline(*steps, KMeansKernelClassifier(10, random_state=0))
        model.fit(digits.X_train.reshape(-1, 64), digits.y_train)
        return 1 - model.score(digits.X_test.reshape(-1, 64), digits.y_test)

    assert error(OrientedGradients(stride=1, blur=1.0)) < error(Deskewer())
