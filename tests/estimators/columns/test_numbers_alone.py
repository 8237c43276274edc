"""Tables of numbers alone are treated as tables with other columns are."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel import KMeansKernelClassifier, TableEncoder, load_model, save_model
from kmeans_kernel.serve import create_app

FAST = {
    "n_representatives": 8, "random_state": 0, "gamma": 0.5, "regularization": 1e-3,
    "loss": "squared", "kernel": "rbf", "feature_scales": None, "feature_transform": "standard",
}  # fmt: skip


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = np.where(x[:, 0] * x[:, 1] + 0.5 * rng.normal(size=300) > 0, "a", "b")
    return pd.DataFrame(x, columns=["a", "b"]), y


@pytest.mark.parametrize("options", [FAST, {**FAST, "feature_transform": "both"}])
def test_another_value_of_a_constant_column_changes_nothing(numbers, options):
    X, y = numbers
    model = KMeansKernelClassifier(**options).fit(X.assign(year=2024.0), y)
    first = model.predict_proba(X.assign(year=2024.0))
    np.testing.assert_allclose(model.predict_proba(X.assign(year=2034.0)), first, atol=1e-12)


def test_a_column_without_values_has_no_indicator(numbers):
    X, _ = numbers
    encoder = TableEncoder(numbers="standard").fit(X.assign(gone=np.nan))
    found = encoder.transform(X.assign(gone=5.0))
    assert found.shape[1] == 3
    assert np.abs(found[:, 2]).max() < 1e-290


def test_whole_weights_are_repetitions_whatever_the_columns_are():
    rng = np.random.default_rng(0)
    town = np.array(["A", "B"] * 200, dtype=object)
    town[:2], town[2:4] = "C", "D"
    X = pd.DataFrame({"n": rng.normal(size=400), "t": town})
    y = np.where(X["n"] > 0, "a", "b")
    y[:4] = "a"
    for first in (10, 0):
        weights = np.where(np.arange(400) < 4, first, 1)
        rows = np.repeat(np.arange(400), weights)
        weighted = KMeansKernelClassifier(**FAST).fit(X, y, weights)
        repeated = KMeansKernelClassifier(**FAST).fit(X.iloc[rows].reset_index(drop=True), y[rows])
        assert weighted.columns_ == repeated.columns_
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-10)


def test_dates_of_polars_are_no_numbers(numbers):
    X, y = numbers
    model = KMeansKernelClassifier(**FAST).fit(pl.from_pandas(X), y)
    with pytest.raises(ValueError, match=r"'a' \(numbers in training, now the date 1970-01-02"):
        model.predict(pl.DataFrame({"a": [datetime.date(1970, 1, 2)], "b": [0.5]}))


def test_column_types_are_obeyed_or_refused(numbers):
    X, y = numbers
    types = {"a": "drop"}
    plain = {**FAST, "feature_transform": None, "column_types": types}
    with pytest.raises(ValueError, match="'column_types' parameter .* needs a dense table"):
        KMeansKernelClassifier(**plain).fit(X, y)
    with pytest.raises(ValueError, match="needs a table in memory, not rows in blocks"):
        KMeansKernelClassifier(**FAST, column_types=types).fit([(X, y)])
    with pytest.raises(ValueError, match="needs fit, not partial_fit"):
        KMeansKernelClassifier(**FAST, column_types=types).partial_fit(X, y)


def test_dropped_columns_may_hold_anything(numbers):
    X, y = numbers
    lists = X.assign(more=[[1]] * 300)
    model = KMeansKernelClassifier(**FAST, column_types={"more": "drop"}).fit(lists, y)
    assert model.predict(X.assign(more=[{2}] * 300)).shape == (300,)


def test_all_columns_that_cannot_be_read_are_named(numbers):
    X, y = numbers
    with pytest.raises(TypeError, match=r"'a' holds a value of type list.*'b' holds .* type set"):
        KMeansKernelClassifier(**FAST).fit(X.assign(a=[[1]] * 300, b=[{1}] * 300), y)


def test_columns_know_where_values_were_missing(numbers):
    X, y = numbers
    holes = X.assign(a=X["a"].where(X["a"] < 1))
    assert [one.missing for one in KMeansKernelClassifier(**FAST).fit(holes, y).columns_] == [
        True, False,
    ]  # fmt: skip


def test_rows_without_any_value_and_repeated_names_are_refused(numbers):
    X, y = numbers
    with pytest.raises(ValueError, match="X has no column to learn from: every value is missing"):
        KMeansKernelClassifier().fit(np.full((300, 2), np.nan), y)
    with pytest.raises(ValueError, match="different names .* got several of 'a'"):
        KMeansKernelClassifier().fit(X.set_axis(["a", "a"], axis=1), y)


@pytest.mark.parametrize("absent", [None, np.nan, pd.NA])
def test_missing_labels_are_named_by_row(numbers, absent):
    X, y = numbers
    labels = y.astype(object)
    labels[3] = absent
    with pytest.raises(ValueError, match="a missing one in row 3"):
        KMeansKernelClassifier(**FAST).fit(X, labels)


def test_masked_values_are_missing(numbers):
    X, y = numbers
    masked = np.ma.masked_greater(X.to_numpy(), 1.0)
    found = KMeansKernelClassifier(**FAST).fit(masked, y).predict_proba(X.to_numpy())
    expected = KMeansKernelClassifier(**FAST).fit(X.where(X <= 1).to_numpy(), y)
    np.testing.assert_array_equal(found, expected.predict_proba(X.to_numpy()))


def test_nested_pipelines_are_saved(numbers, tmp_path):
    X, y = numbers
    X = X.assign(c=["x", "y"] * 150)
    model = make_pipeline(make_pipeline(TableEncoder()), KMeansKernelClassifier(**FAST)).fit(X, y)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_loaded_pipelines_do_not_warn_of_names(numbers, tmp_path):
    X, y = numbers
    last = KMeansKernelClassifier(**{**FAST, "feature_transform": None})
    model = make_pipeline(TableEncoder(), StandardScaler(), last).set_output(transform="pandas")
    save_model(model.fit(X, y), tmp_path / "m")
    load_model(tmp_path / "m").predict(X)  # a warning would be an error


def test_a_search_cannot_be_served(numbers):
    X, y = numbers
    search = KMeansKernelClassifier(**FAST).fit(X, y)
    search.best_estimator_ = None
    with pytest.raises(TypeError, match="pass best_estimator_ of a search"):
        create_app({"m": search})


def test_masked_labels_and_nat_are_missing(numbers):
    X, y = numbers
    masked = np.ma.array((y == "a").astype(int), mask=np.arange(300) == 7)
    with pytest.raises(ValueError, match="a missing one in row 7"):
        KMeansKernelClassifier(**FAST).fit(X, masked)
    days = pd.Series(pd.to_datetime(np.where(y == "a", "2020-01-01", "2020-01-02")))
    days[5] = pd.NaT
    with pytest.raises(ValueError, match="a missing one in row 5"):
        KMeansKernelClassifier(**FAST).fit(X, days)


def test_words_are_booleans_as_in_files(numbers):
    X, y = numbers
    X = X.assign(vip=X["a"] > 0)
    model = KMeansKernelClassifier(**FAST).fit(X, y)
    words = X.assign(vip=np.where(X["vip"], "Yes", "no"))
    np.testing.assert_array_equal(model.predict_proba(words), model.predict_proba(X))


def test_all_columns_of_a_wrong_given_type_are_named(numbers):
    X, y = numbers
    X = X.assign(c="q", d="r")
    with pytest.raises(ValueError, match="'c' cannot be read as numbers.*'d' cannot be read as nu"):
        KMeansKernelClassifier(**FAST, column_types={"c": "number", "d": "number"}).fit(X, y)


def test_a_baseline_may_be_a_series_or_a_list(numbers):
    X, y = numbers
    model = KMeansKernelClassifier(**FAST).fit(X, y)
    expected = model.explain(X[:3], baseline=X[5:6]).attributions
    found = model.explain(X[:3], baseline=X.iloc[5])
    np.testing.assert_allclose(found.attributions, expected, atol=1e-12)
    rows = X.to_numpy()
    plain = KMeansKernelClassifier(**FAST).fit(rows, y).explain(rows[:3], baseline=[*rows[5]])
    np.testing.assert_allclose(plain.attributions, expected, atol=1e-12)
    assert found.largest_effects(-1)[0].effect == expected[2][np.abs(expected[2]).argmax()]


def test_a_pipeline_that_needs_frames_cannot_be_served(numbers):
    X, y = numbers
    steps = ColumnTransformer([("n", StandardScaler(), ["a", "b"])])
    model = make_pipeline(steps, KMeansKernelClassifier(**FAST)).fit(X, y)
    with pytest.raises(TypeError, match="'m' cannot be served, as it takes no rows of numbers"):
        create_app({"m": model})
