"""TableEncoder: names, transform and inverse, in pipelines of scikit-learn."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from kmeans_kernel import KMeansKernelClassifier, TableEncoder

pytestmark = pytest.mark.filterwarnings("ignore::kmeans_kernel.estimators.DroppedColumnWarning")


def test_names_say_what_the_features_are(table):
    X, _ = table
    names = TableEncoder("both").fit(X).get_feature_names_out()
    assert len(set(names)) == len(names)
    assert {"age", "income", "since", "since, month", "city = Rome", "vip = True"} <= set(names)
    assert {"age missing", "city missing"} <= set(names)
    assert not any(name.startswith(("id", "version", "empty")) for name in names)
    assert sum(name.startswith("age > ") for name in names) > 20


def test_set_output_gives_a_frame(table):
    X, _ = table
    found = TableEncoder("standard").set_output(transform="pandas").fit_transform(X)
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == TableEncoder("standard").fit(X).get_feature_names_out().tolist()
    rome = found["city = Rome"][X["city"] == "Rome"]
    assert rome.nunique() == 1
    assert rome.iloc[0] > found["city = Rome"][X["city"] == "Oslo"].iloc[0]


@pytest.mark.parametrize("numbers", ["standard", "asinh", "piecewise", "both"])
def test_the_inverse_gives_the_rows_back(numbers, table):
    X, _ = table
    encoder = TableEncoder(numbers).fit(X)
    back = pd.DataFrame(encoder.inverse_transform(encoder.transform(X)), columns=X.columns)
    for name in ("city", "vip"):
        assert back[name].tolist() == X[name].where(X[name].notna(), None).tolist()
    np.testing.assert_allclose(back["age"].astype(float), X["age"], atol=1e-6)
    assert back["since"].tolist() == [day.date().isoformat() for day in X["since"]]


def test_numbers_alone_need_no_frame(rng):
    X = rng.normal(size=(60, 3))
    X[3, 1] = np.nan
    encoder = TableEncoder("standard").fit(X)
    assert [column.kind for column in encoder.columns_] == ["number"] * 3
    expected = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    expected[3, 1] = 0.0
    np.testing.assert_allclose(encoder.transform(X)[:, :3], expected, atol=1e-12)
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x1 missing"]


def test_other_estimators_learn_from_a_frame_as_it_comes(table):
    X, _ = table
    y = (X["age"] > 50) | (X["city"] == "Rome")
    model = make_pipeline(TableEncoder(), LogisticRegression(max_iter=1000)).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.9
    same = model.predict_proba(pl.from_pandas(X[300:]))
    np.testing.assert_allclose(same, model.predict_proba(X[300:]), atol=1e-12)


def test_weights_equal_repeats(table, rng):
    X = table[0].drop(columns="id")  # repeated, it is no id
    weights = rng.integers(1, 4, len(X))
    once = TableEncoder().fit(X, sample_weight=weights).transform(X)
    again = TableEncoder().fit(X.loc[np.repeat(X.index, weights)]).transform(X)
    np.testing.assert_allclose(once, again, atol=1e-9)


def test_bad_input_is_explained(table):
    X, _ = table
    with pytest.raises(ValueError, match="'numbers' parameter of TableEncoder must be one of"):
        TableEncoder("ranks").fit(X)
    encoder = TableEncoder().fit(X)
    with pytest.raises(ValueError, match="feature names should match"):
        encoder.transform(X.rename(columns={"age": "years"}))
    changed = X.copy()
    changed.loc[2, "income"] = np.inf
    with pytest.raises(ValueError, match=r"infinity \(row 2, column 'income'\)"):
        encoder.transform(changed)


def test_names_of_features_differ_whatever_columns_and_levels_are_called():
    X = pd.DataFrame({
        "income": [None, 1.0, 2.0, 3.0] * 60,
        "income missing": np.arange(240.0),
        "income > 2": np.arange(240.0) % 7,
        "w": ["(other)", "u", "u", "v"] * 57 + list("abcdefghijkl"),
        "w = u": ["x", "y"] * 120,
    })  # fmt: skip
    for numbers in ("standard", "both"):
        names = TableEncoder(numbers).fit(X).get_feature_names_out().tolist()
        assert len(set(names)) == len(names)
        assert {"income missing", "income missing (2)", "w = (other)", "w = (other) (2)"} <= {
            *names
        }
    found = TableEncoder("standard").set_output(transform="polars").fit_transform(X)
    assert found.width == len(TableEncoder("standard").fit(X).get_feature_names_out())


def test_the_inverse_takes_features_of_transform(table):
    encoder = TableEncoder().fit(table[0])
    width = len(encoder.get_feature_names_out())
    for wrong in (np.ones((2, width + 1)), np.ones(width)):
        with pytest.raises(ValueError, match=rf"X must have the {width} features.*Give rows of tr"):
            encoder.inverse_transform(wrong)


def test_columns_are_known_after_fit(table):
    for estimator in (TableEncoder(), KMeansKernelClassifier()):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            _ = estimator.columns_
        assert not hasattr(estimator, "columns_")


def test_names_of_columns_may_be_integers(rng):
    X = rng.integers(0, 3, (60, 2)).astype(float)
    for table in (X, pd.DataFrame(X), X.tolist()):
        encoder = TableEncoder(column_types={0: "category"}).fit(table)
        assert [column.kind for column in encoder.columns_] == ["category", "number"]
    days = TableEncoder(column_types={0: "date"}).fit(X * 86_400.0 * 9)
    assert np.isfinite(days.transform(X)).all()
    with pytest.raises(ValueError, match="'x7' is no column of X"):
        TableEncoder(column_types={7: "category"}).fit(X)


def test_frames_without_rows_in_memory_or_columns_are_explained(table):
    X, _ = table
    fitted = TableEncoder().fit(X)
    for call in (TableEncoder().fit, fitted.transform, TableEncoder().fit(X[["age"]]).transform):
        with pytest.raises(TypeError, match=r"rows are in memory, got a LazyFrame.*collect\(\)"):
            call(pl.from_pandas(X).lazy())
    for empty in (X[[]], pl.DataFrame({"a": [1]}).select([])):
        with pytest.raises(
            ValueError, match=r"0 (feature|sample)\(s\) .* is required by TableEncoder"
        ):
            TableEncoder().fit(empty)
    with pytest.raises(ValueError, match=r"0 feature\(s\) .* is required by TableEncoder"):
        TableEncoder().fit(np.ones((3, 1))).transform(X[[]])


def test_arrays_of_dates_are_dates():
    days = np.array([["2020-01-01"], ["2020-02-01"]], dtype="datetime64[ns]")
    encoder = TableEncoder().fit(days)
    assert encoder.columns_[0].kind == "date"
    np.testing.assert_array_equal(
        encoder.transform(days), encoder.transform(pd.DataFrame(days).to_numpy(dtype=object))
    )
