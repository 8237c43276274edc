from dataclasses import fields

import numpy as np
import pytest
from scipy import sparse

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.feature_transform import (
    FeatureMoments,
    has_one_unit,
    has_several_units,
    learn_asinh,
    learn_standard,
)
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import SphereMap
from tests.reference import feature_transforms as twin
from tests.reference.sphere import unit_rows


def long_tails(rng, n=400):
    """Classes that are easy to tell apart by the logarithms of the features."""
    logarithms = rng.normal(size=(n, 4))
    y = (np.linalg.norm(logarithms[:, :3], axis=1) > 1.5).astype(int)
    return np.exp(2.5 * logarithms), y


@pytest.fixture
def columns(rng):
    return np.column_stack(
        [
            rng.normal(size=50),
            rng.standard_cauchy(50),
            rng.poisson(0.3, 50),  # mostly zero
            rng.integers(0, 2, 50),
            np.full(50, 7.0),
        ]
    )


def learn(kind, X):
    """The transform of a kind, learned from rows of equal weight."""
    if kind == "asinh":
        return learn_asinh(X, np.ones(len(X)))
    return learn_standard(X, np.ones(len(X)))


def as_dict(transform):
    return {field.name: getattr(transform, field.name) for field in fields(transform)}


def test_asinh_equals_the_twin(columns, rng):
    weights = rng.integers(1, 4, 50)
    asinh = learn_asinh(columns, weights.astype(float))
    found = asinh.apply(columns)
    expected = np.transpose([twin.asinh(column, weights) for column in columns.T])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    again = [twin.apply(row, **as_dict(asinh)) for row in columns]
    np.testing.assert_allclose(found, again, rtol=1e-12, atol=1e-12)


def test_standardisation_equals_the_twin(columns, rng):
    weights = rng.integers(1, 4, 50)
    standard = learn_standard(columns, weights.astype(float))
    found = standard.apply(columns)
    expected = np.transpose([twin.standardise(column, weights) for column in columns.T])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    again = [twin.apply(row, **as_dict(standard)) for row in columns]
    np.testing.assert_allclose(found, again, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("factor", [1e-300, 1e-3, 1.0, 1e300])
@pytest.mark.parametrize("shift", [0.0, -3.0, 1e6])
def test_standardised_rows_do_not_depend_on_shift_and_unit(shift, factor, rng):
    X = rng.normal(size=(40, 3))
    moved = factor * (X + shift)
    found = learn("standard", moved).apply(moved)
    np.testing.assert_allclose(
        found, learn("standard", X).apply(X), atol=1e-15 * abs(shift) + 1e-14
    )


def test_a_feature_that_is_constant_up_to_rounding_is_not_magnified():
    X = np.array([[0.1 + 0.2, 7.0, 0.0], [0.3, 7.0, 0.0], [0.3, 7.0, 0.0]])
    found = learn("standard", X)
    np.testing.assert_array_equal(found.widths, 1e300)
    assert np.abs(found.apply(X + 1e6)).max() < 1e-290  # whatever comes later, it is zero
    assert np.abs(found.apply(X)).max() < 1e-15


@pytest.mark.parametrize("kind", ["standard", "asinh"])
def test_the_transform_keeps_order_and_can_be_inverted(kind, rng):
    X = np.sort(rng.standard_cauchy((200, 2)), axis=0)
    transform = learn(kind, X)
    transformed = transform.apply(X)
    assert (np.diff(transformed, axis=0) > 0).all()
    np.testing.assert_allclose(transform.invert(transformed), X, rtol=1e-9, atol=1e-12)
    assert transform.apply(X.astype(np.float32)).dtype == np.float32
    assert transform.apply(np.ones((1, 2), dtype=np.int32)).dtype == np.float64


def test_rows_far_from_zero_are_inverted_in_float64(rng):
    X = 1.7e9 + rng.normal(size=(50, 2))
    transform = learn("standard", X)
    found = transform.invert(transform.apply(X).astype(np.float32))
    np.testing.assert_allclose(found, X, rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["standard", "asinh"])
def test_finite_values_stay_finite(kind, rng):
    X = rng.normal(size=(20, 2))
    transform = learn(kind, X)
    far = transform.apply(np.array([[1.7e308, -1.7e308], [0.0, 5e-324]]))
    assert np.isfinite(far).all()
    assert np.isfinite(transform.invert(far)).all()
    assert np.isfinite(learn(kind, 1e10 * X).invert(far)).all()
    narrow = learn(kind, 1e-20 * X).apply(np.array([[3e38, -3e38]], dtype=np.float32))
    assert narrow.dtype == np.float32
    assert np.isfinite(narrow).all()


@pytest.mark.filterwarnings("error")
def test_very_large_numbers_can_be_standardised():
    X = np.array([[-8e307, 5e-324], [8e307, 0.0], [8e307, 5e-324]])
    transform = learn("standard", X)
    assert np.isfinite(transform.centers).all()
    np.testing.assert_allclose(transform.apply(X)[:, 0], [-np.sqrt(2), np.sqrt(0.5), np.sqrt(0.5)])


def test_labelled_rows_are_transformed_on_the_way_to_the_sphere(rng):
    X = rng.integers(0, 9, (30, 3))
    asinh = learn_asinh(X, np.ones(30))
    sphere_map = SphereMap(0.5, feature_transform=asinh)
    rows = LabelledRows(X, np.zeros(30, dtype=int), np.arange(1), None, sphere_map)
    assert rows.X is X  # nothing is transformed before it is asked for
    transformed = rows.sphere_map.transform(rows.X[[3, 1]])
    assert transformed.shape == (2, 3)
    assert transformed.dtype == np.float64
    np.testing.assert_array_equal(transformed, asinh.apply(X[[3, 1]]))
    expected = unit_rows(asinh.apply(X[[3, 1]]), 0.5)
    np.testing.assert_allclose(rows.directions([3, 1]), expected, rtol=1e-12)
    np.testing.assert_allclose(sphere_map.invert(rows.directions()), X, atol=1e-9)


def test_long_tails_do_not_spoil_the_default_fit(rng):
    X, y = long_tails(rng)
    found = KMeansKernelClassifier(20, random_state=0).fit(X, y)
    plain = KMeansKernelClassifier(20, random_state=0, feature_transform=None).fit(X, y)
    assert found.feature_transform_ == "both"
    assert plain.feature_transform_ is None
    assert found.held_out_error_ < 0.8 * plain.held_out_error_
    fresh, labels = long_tails(rng)
    assert found.score(fresh, labels) > plain.score(fresh, labels)
    # the representatives are points among the rows
    inside = (found.representatives_ >= 0) & (found.representatives_ <= 1.01 * X.max(axis=0))
    assert inside.mean() > 0.95


def test_features_without_long_tails_are_transformed_by_asinh_only_on_request(rng):
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    found = KMeansKernelClassifier(10, random_state=0).fit(X, y)
    assert found.feature_transform_ in ("standard", "both")
    found = KMeansKernelClassifier(10, random_state=0, feature_transform="asinh").fit(X, y)
    assert found.feature_transform_ == "asinh"


def test_asinh_is_not_tried_if_nothing_else_is_searched(rng):
    X, y = long_tails(rng)
    given = {"gamma": 1.0, "regularization": 1e-3, "feature_scales": None}
    found = KMeansKernelClassifier(10, random_state=0, **given).fit(X, y)
    assert found.feature_transform_ == "standard"
    assert "search" not in found.stage_seconds_


@pytest.mark.parametrize("given", [{}, {"gamma": 1.0, "regularization": 1e-3}])
def test_only_the_rows_of_a_table_are_standardised_by_default(given, rng):
    X = rng.normal(size=(60, 101))
    y = (X[:, 0] > 0).astype(int)
    options = {"random_state": 0, "feature_scales": None, **given}
    table = KMeansKernelClassifier(5, **options).fit(X[:, :100], y)
    assert table.feature_transform_ in (("standard",) if given else ("standard", "both"))
    wide = KMeansKernelClassifier(5, **options).fit(X, y)
    assert wide.feature_transform_ is None
    asked = KMeansKernelClassifier(5, feature_transform="standard", **options).fit(X, y)
    assert asked.feature_transform_ == "standard"


def test_contributions_add_up_to_the_score(rng):
    X, y = long_tails(rng)
    found = KMeansKernelClassifier(10, random_state=0, feature_transform="asinh").fit(X, y)
    explanation = found.explain(X[:20], np.ones(20, dtype=int))
    sums = explanation.contributions.sum(axis=1) + found.intercept_[1]
    np.testing.assert_allclose(sums, found.model_.scores(X[:20])[:, 1], atol=1e-6)


def test_the_size_search_works_on_transformed_rows(rng):
    X, y = long_tails(rng)
    found, plain = (
        KMeansKernelClassifier(
            "auto", random_state=0, loss="squared", feature_transform=transform
        ).fit(X, y)
        for transform in ("auto", None)
    )
    assert found.feature_transform_ == "both"
    loss, plain_loss = (one.validation_curve_[-1].held_out_loss for one in (found, plain))
    assert loss < 0.9 * plain_loss


@pytest.mark.parametrize("transform", ["standard", "asinh"])
def test_sparse_rows_are_not_transformed_but_can_be_predicted(transform, rng):
    X, y = long_tails(rng)
    options = {"gamma": 1.0, "regularization": 1e-3, "random_state": 0}
    options["feature_transform"] = transform
    on_sparse = KMeansKernelClassifier(10, **options).fit(sparse.csr_array(X), y)
    assert on_sparse.feature_transform_ is None
    found = KMeansKernelClassifier(10, **options).fit(X, y)
    np.testing.assert_allclose(
        found.decision_function(sparse.csr_array(X)), found.decision_function(X), atol=1e-9
    )


@pytest.mark.parametrize("cut", [1, 13, 30])
def test_moments_of_blocks_add_up_to_those_of_all_rows(cut, rng):
    X = rng.normal(size=(40, 3)) * [1.0, 1e3, 1e-5] + [1e9, 5.0, 0.0]
    X = np.column_stack([X, np.full(40, 7.0), 1e200 * rng.normal(size=40)])
    weights = rng.random(40)
    whole = FeatureMoments.of(X, weights)
    parts = FeatureMoments.of(X[:cut], weights[:cut]) + FeatureMoments.of(X[cut:], weights[cut:])
    assert parts.weight == pytest.approx(whole.weight)
    np.testing.assert_allclose(parts.means, whole.means, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(parts.deviations, whole.deviations, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(parts.largest, whole.largest)
    assert whole.standard_transform().widths[3] == 1e300


def test_pixels_have_one_unit_and_tables_do_not(rng):
    pixels = rng.integers(0, 17, size=(200, 20)).astype(float)
    pixels[:, :5] = 0.0
    assert has_one_unit(pixels)
    assert not has_one_unit(pixels[:, :12])  # few columns
    assert not has_one_unit(pixels - 1.0)
    assert not has_one_unit(0.5 * pixels)
    assert not has_one_unit(np.hstack([pixels, 1000 * pixels[:, 5:6]]))
    assert not has_one_unit(np.minimum(pixels, 4.0))  # answers on a scale from 0 to 4


def test_columns_of_several_units_are_told_from_pixels_and_embeddings():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (500, 120)).astype(float)
    pixels[:, ::3] //= 40  # edges of the images
    embeddings = rng.normal(size=(500, 120)) * rng.uniform(0.5, 3.0, 120)
    table = embeddings.copy()
    table[:, :30] *= 1e3
    table[::5, ::7] = np.nan
    assert has_several_units(table)
    assert not has_several_units(pixels)
    assert not has_several_units(embeddings)
    assert not has_several_units(np.ones((10, 120)))
    seconds = 1.7e9 + 60.0 * np.arange(len(embeddings))
    assert has_several_units(np.column_stack([embeddings, seconds]))
    assert has_several_units(embeddings + 1e6)
    assert has_several_units(np.column_stack([embeddings, np.full(len(embeddings), 1e9)]))
