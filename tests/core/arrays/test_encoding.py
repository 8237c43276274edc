"""The encoding of columns: against its twin, and what it does with missing and unknown values."""

from dataclasses import fields

import numpy as np
import pytest

from kmeans_kernel.core.arrays.encoding import ColumnEncoding, learn_encoding
from kmeans_kernel.core.arrays.feature_transform import FeatureTransform
from tests.reference import encoding as twin

KINDS = ["standard", "asinh", "piecewise", "both"]

# Two columns of many numbers, one of few, a category of four levels, an indicator of two.
N_LEVELS = (0, 0, 0, 4, 2)


@pytest.fixture
def table(rng):
    n = 300
    X = np.column_stack(
        [
            rng.normal(size=n),
            np.exp(3 * rng.normal(size=n)),
            rng.integers(0, 5, n),
            rng.integers(0, 4, n),
            rng.integers(0, 2, n),
        ]
    ).astype(float)
    for j in (0, 3):
        X[rng.random(n) < 0.2, j] = np.nan
    return X


def as_dict(record):
    found = {field.name: getattr(record, field.name) for field in fields(record)}
    if isinstance(found.get("values"), FeatureTransform):
        found["values"] = as_dict(found["values"])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_features_equal_the_twin(kind, table, rng):
    encoding = learn_encoding(table, rng.integers(1, 4, len(table)).astype(float), N_LEVELS, kind)
    rows = table[:40].copy()
    rows[0] = np.nan
    rows[1, 3:] = -1.0
    rows[2, :3] = 1e300, -1e300, np.nan
    expected = [twin.encode(row, as_dict(encoding)) for row in rows]
    np.testing.assert_allclose(encoding.apply(rows), expected, rtol=1e-12, atol=1e-12)
    assert np.isfinite(encoding.apply(rows)).all()
    assert encoding.apply(rows).shape == (40, encoding.n_features)


@pytest.mark.parametrize("kind", ["piecewise", "both"])
def test_steps_and_levels_equal_the_twin(kind, table, rng):
    weights = rng.integers(1, 4, len(table))
    found = learn_encoding(table, weights.astype(float), N_LEVELS, kind)
    for j in range(3):
        mine = found.step_columns == j
        ends = twin.knots(table[:, j].tolist(), weights.tolist(), 64)
        np.testing.assert_allclose(found.step_starts[mine], ends[:-1], rtol=1e-12)
        np.testing.assert_allclose(found.step_widths[mine], np.diff(ends), rtol=1e-9)
    for j in (3, 4):
        mine = found.level_columns == j
        shares = twin.shares(range(N_LEVELS[j]), table[:, j].tolist(), weights.tolist())
        np.testing.assert_allclose(found.level_shares[mine], shares, rtol=1e-12)
    assert found.missing_columns.tolist() == [0, 3]
    absent = weights @ np.isnan(table[:, [0, 3]]) / weights.sum()
    np.testing.assert_allclose(found.missing_shares, absent, rtol=1e-12)


def test_the_steps_of_a_column_have_unit_variance_together(table):
    found = learn_encoding(table, np.ones(len(table)), N_LEVELS, "both")
    features = found.apply(table[~np.isnan(table).any(axis=1)])
    steps = features[:, len(found.value_columns) :][:, : len(found.step_columns)]
    for j in (1, 2):  # without missing values, so that these rows are a fair sample
        variance = steps[:, found.step_columns == j].var(axis=0).sum()
        assert variance == pytest.approx(1.0, abs=0.15)


def test_a_weight_of_two_counts_as_two_rows(table, rng):
    weights = rng.integers(1, 4, len(table))
    once = learn_encoding(table, weights.astype(float), N_LEVELS, "both")
    again = np.repeat(table, weights, axis=0)
    copies = learn_encoding(again, np.ones(len(again)), N_LEVELS, "both")
    np.testing.assert_allclose(once.apply(table), copies.apply(table), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("factor", "shift"), [(1000.0, 0.0), (1.0, 1e6), (1e-200, 0.0)])
def test_unit_and_offset_of_a_column_change_no_feature(kind, factor, shift, table):
    moved = table.copy()
    moved[:, 1] = factor * table[:, 1] + shift
    features = [learn_encoding(X, np.ones(len(X)), N_LEVELS, kind).apply(X) for X in (table, moved)]
    np.testing.assert_allclose(*features, atol=1e-7)


def test_the_sign_of_a_column_changes_no_distance(table):
    moved = table * np.array([-1.0, -1.0, -1.0, 1.0, 1.0])
    features = [
        learn_encoding(X, np.ones(len(X)), N_LEVELS, "both").apply(X) for X in (table, moved)
    ]
    gram, other = (F @ F.T for F in features)
    np.testing.assert_allclose(gram, other, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_encoding_can_be_inverted(kind, table):
    encoding = learn_encoding(table, np.ones(len(table)), N_LEVELS, kind)
    found = encoding.invert(encoding.apply(table))
    np.testing.assert_allclose(found, table, rtol=1e-6, atol=1e-9)


def test_a_missing_number_and_an_unknown_level_are_the_mean_row(table):
    encoding = learn_encoding(table, np.ones(len(table)), N_LEVELS, "both")
    row = np.array([[0.0, np.nan, np.nan, -1.0, np.nan]])
    features = encoding.apply(row)[0]
    mine = np.isin(encoding.columns, [1, 2, 4])
    np.testing.assert_array_equal(features[mine], 0.0)


def test_features_of_one_kind_of_one_column_share_a_scale(table):
    encoding = learn_encoding(table, np.ones(len(table)), N_LEVELS, "both")
    groups = encoding.groups
    # values and steps of three numbers, levels of two categories, two indicators
    assert groups.index.max() + 1 == 3 + 3 + 2 + 2
    for group in range(groups.index.max() + 1):
        assert len(set(encoding.columns[groups.index == group])) == 1


def test_float32_rows_have_float32_features(table):
    encoding = learn_encoding(table, np.ones(len(table)), N_LEVELS, "both")
    assert encoding.apply(table.astype(np.float32)).dtype == np.float32
    assert encoding.apply(np.ones((1, 5), dtype=np.int32)).dtype == np.float64


def test_the_record_cannot_be_changed(table):
    encoding = learn_encoding(table, np.ones(len(table)), N_LEVELS, "both")
    assert isinstance(encoding, ColumnEncoding)
    with pytest.raises(ValueError, match="read-only"):
        encoding.step_starts[0] = 0.0


def test_many_columns_have_fewer_steps_each(rng):
    X = rng.normal(size=(200, 90))
    found = learn_encoding(X, np.ones(200), (0,) * 90, "both")
    assert len(found.step_columns) <= 512
