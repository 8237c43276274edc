"""A value of a category has the same level whatever else is in its column."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kmeans_kernel import KMeansKernelClassifier, TableEncoder, load_model, save_model
from kmeans_kernel.estimators.columns._values import date_text, iso_date_text, level_text

BIG = 2**60


def encoder(values, column_type=None):
    frame = pd.DataFrame({"a": pd.Series(values), "b": np.arange(len(values)) * 1.5})
    return TableEncoder(column_types=column_type and {"a": column_type}).fit(frame)


def codes(fitted, values):
    frame = values if not isinstance(values, pd.Series) else pd.DataFrame({"a": values})
    return fitted._coded(frame.assign(b=1.0))[:, 0].tolist()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("01", "01"), (True, "True"), (7, "7"), (7.0, "7"), (-0.0, "0"),
        (0.1 + 0.2, "0.30000000000000004"), (10**15 + 1, "1000000000000001"),
        (1e15, "1000000000000000"), (BIG + 1, str(BIG + 1)),
        (float("inf"), "inf"), (Decimal("1.10"), "1.1"), (Decimal(BIG + 1), str(BIG + 1)),
        (Fraction(1, 4), "0.25"), (datetime.date(2020, 1, 31), "2020-01-31"),
        (datetime.datetime(2020, 1, 31, 6, 30), "2020-01-31 06:30:00"),
        (pd.Timestamp("2020-01-31", tz="Europe/Paris"), "2020-01-30 23:00:00"),
        (np.datetime64("2020-01-31T00:00:00.5"), "2020-01-31 00:00:00.500000"),
        (pd.Interval(0, 1), "(0, 1]"),
    ],
)  # fmt: skip
def test_the_text_of_a_value(value, text):
    assert level_text(value) == text


def test_dates_as_text():
    assert date_text(-86_400.0) == "1969-12-31"
    assert iso_date_text("2020-01-31T06:30Z") == "2020-01-31 06:30:00"
    for other in ("20200131", "2020-01-31ish", "2020-13-01", "2020-01-01 noon", "x"):
        assert iso_date_text(other) is None


MIXED = [
    [1.0, "a", 2.0],
    [0.1 + 0.2, "a", 1e-7],
    [np.float32(0.1), "a", np.float32(2.5)],
    [10**15 + 1, "a", BIG + 1],
    [Decimal("1.10"), "a", Decimal(3)],
    [True, "a", "b"],
    [True, 1.5, 2],
    [pd.Timestamp("2020-01-01"), "a", pd.Timestamp("2020-01-01 06:30")],
    [datetime.date(2020, 1, 1), "a", 7],
    [np.datetime64("2020-01-01"), "a", "b"],
    [pd.Timedelta("90s"), "a", "b"],
]


@pytest.mark.parametrize("values", MIXED, ids=str)
def test_a_row_alone_has_the_levels_of_the_batch(values):
    column = pd.Series(values * 20, dtype=object)
    fitted = encoder(column)
    expected = codes(fitted, column)
    assert sorted(set(expected)) == [0, 1, 2]
    for k, value in enumerate(values):
        assert codes(fitted, pd.Series([value], dtype=object)) == [expected[k]]
        assert codes(fitted, pd.Series([value])) == [expected[k]]  # with the type of the value


def test_lists_of_booleans_and_text():
    rows = [[[True, "a", "b"][k % 3], float(k % 7)] for k in range(240)]
    y = np.arange(240) % 3 == 0
    model = KMeansKernelClassifier(5, gamma=0.5, regularization=1e-3, random_state=0).fit(rows, y)
    batch = model.predict_proba(rows)
    np.testing.assert_allclose(model.predict_proba(rows[:1]), batch[:1], atol=1e-9)
    np.testing.assert_array_equal(model.predict(rows), y)


def test_digits_of_text_arrays_stay_text_if_the_column_is_text():
    X = np.array([["01", "1"], ["x", "2"], ["1", "4"]] * 20)
    fitted = TableEncoder().fit(X)
    assert fitted.columns_[0].levels == ("01", "x", "1")
    np.testing.assert_array_equal(fitted._coded(X[:1]), [[0, 1]])
    zips = TableEncoder(column_types={0: "category"}).fit(np.array([["01", "1"], ["1", "2"]] * 20))
    assert zips.columns_[0].levels == ("01", "1")


DAYS = pd.Series(
    [pd.Timestamp(2020, 1, 1), pd.Timestamp(2020, 1, 2), pd.Timestamp(2020, 1, 3, 6, 30)] * 20
)


@pytest.mark.parametrize(
    "fitted",
    [
        lambda: encoder(DAYS.astype("category")),
        lambda: encoder(DAYS, "category"),
        lambda: encoder(DAYS.astype(object), "category"),
        lambda: encoder(DAYS.dt.tz_localize("UTC"), "category"),
    ],
)
def test_dates_as_categories_may_come_in_any_form(fitted):
    fitted = fitted()
    assert fitted.columns_[0].levels == ("2020-01-01", "2020-01-02", "2020-01-03 06:30:00")
    iso = DAYS.map(pd.Timestamp.isoformat)
    for form in (DAYS, DAYS.astype("category"), DAYS.astype(object), DAYS.astype(str), iso):
        assert codes(fitted, form[:3]) == [0, 1, 2]
        assert codes(fitted, form[2:3]) == [2]
    assert codes(fitted, pd.Series([pd.Timestamp("2021-01-01")])) == [-1]


IDS = [BIG, BIG + 1, BIG + 2]


def big_columns():
    return [
        pd.DataFrame({"a": IDS}),
        pd.DataFrame({"a": pd.Series(IDS, dtype="Int64")}),
        pd.DataFrame({"a": pd.Series(IDS, dtype="uint64")}),
        pd.DataFrame({"a": pd.Series(IDS, dtype=pd.ArrowDtype(pa.int64()))}),
        pd.DataFrame({"a": pd.Series(IDS, dtype=object)}),
        pd.DataFrame({"a": pd.Series([Decimal(k) for k in IDS])}),
        pd.DataFrame({"a": pd.Categorical(IDS)}),
        pd.DataFrame({"a": list(map(str, IDS))}),
        pl.DataFrame({"a": IDS}),
        pa.table({"a": IDS}),
        pa.table({"a": pa.array(IDS).dictionary_encode()}),
    ]


@pytest.mark.parametrize("frame", big_columns(), ids=lambda X: type(X).__name__)
def test_whole_numbers_beyond_float64_stay_apart_as_categories(frame):
    fitted = TableEncoder(column_types={"a": "category"}).fit(frame)
    assert fitted.columns_[0].levels == tuple(map(str, IDS))
    for other in big_columns():
        np.testing.assert_array_equal(fitted._coded(other)[:, 0], [0, 1, 2])


def test_whole_numbers_beyond_float64_are_unknown_among_small_ones():
    small = TableEncoder(column_types={"a": "category"}).fit(
        pd.DataFrame({"a": pd.Categorical([1, 2**53] * 9)})
    )
    assert small.columns_[0].levels == (1, 2**53)
    for strange in ([2**53 + 1, 1], [str(2**53 + 1), "1"]):
        np.testing.assert_array_equal(small._coded(pd.DataFrame({"a": strange})), [[-1], [0]])


def test_big_numbers_of_lists_and_arrays_stay_apart():
    rows = [[k, 0.5 * j] for j, k in enumerate(IDS * 9)]
    for X in (rows, np.array(rows, dtype=object), np.array(rows, dtype=object).astype(str)):
        fitted = TableEncoder(column_types={"x0": "category"}).fit(X)
        np.testing.assert_array_equal(fitted._coded(X[:3])[:, 0], [0, 1, 2])
        np.testing.assert_array_equal(fitted._coded(rows[:3])[:, 0], [0, 1, 2])


def test_infinity_as_a_level_can_be_saved(tmp_path):
    X = pd.DataFrame({"a": pd.Categorical([np.inf, 1.5] * 30), "b": np.arange(60.0)})
    y = np.arange(60) % 2
    model = KMeansKernelClassifier(5, gamma=0.5, regularization=1e-3, random_state=0).fit(X, y)
    save_model(model, tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    plain = X.astype({"a": float})
    np.testing.assert_array_equal(loaded.predict_proba(plain), model.predict_proba(X))
