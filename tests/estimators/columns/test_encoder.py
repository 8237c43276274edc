"""TableEncoder: names, transform and inverse, in pipelines of scikit-learn."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from kmeans_kernel import TableEncoder

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
