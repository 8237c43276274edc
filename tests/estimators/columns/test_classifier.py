"""The classifier on tables as they come."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.estimators import DroppedColumnWarning
from tests.estimators.columns.conftest import business

pytestmark = pytest.mark.filterwarnings("ignore::kmeans_kernel.estimators.DroppedColumnWarning")

TRAIN, TEST = slice(0, 300), slice(300, 400)


def fit(X, y, **options):
    return KMeansKernelClassifier(random_state=0, **options).fit(X, y)


@pytest.fixture(scope="module")
def model(table):
    X, y = table
    return fit(X[TRAIN], y[TRAIN])


def test_a_business_table_is_learned_as_it_comes(table, model):
    X, y = table
    assert model.score(X[TEST], y[TEST]) > 0.8
    assert model.n_features_in_ == 8
    assert model.feature_names_in_.tolist() == list(X.columns)
    assert [column.name for column in model.columns_] == list(X.columns)


def test_an_id_is_left_out_with_a_warning_that_names_it(table):
    X, y = table
    with pytest.warns(DroppedColumnWarning, match="Column 'id'.*column_types"):
        fit(X[:60], y[:60])


@pytest.mark.parametrize(
    "convert", [pl.from_pandas, pa.Table.from_pandas, lambda X: X.to_numpy(dtype=object)]
)
def test_every_container_gives_the_same_model(convert, table, model):
    X, y = table
    other = fit(convert(X[TRAIN]), y[TRAIN])
    expected = model.predict_proba(X[TEST])
    np.testing.assert_allclose(other.predict_proba(convert(X[TEST])), expected, atol=1e-9)


def test_units_offsets_and_names_of_levels_change_no_prediction(table, model):
    X, y = table
    expected = model.predict_proba(X)
    moved = X.assign(
        income=1000 * X["income"] + 1e6,
        city=X["city"].map({"Rome": "3", "Oslo": "1", "Paris": "2"}),
    )
    found = fit(moved[TRAIN], y[TRAIN]).predict_proba(moved)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    renamed = X.rename(columns={"age": "zz", "income": "aa"})
    found = fit(renamed[TRAIN], y[TRAIN]).predict_proba(renamed)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("repeated", [False, True], ids=["distinct", "repeated"])
def test_the_order_of_columns_changes_nothing(table, repeated):
    X, y = table
    rows = np.append(np.arange(300), np.arange(0, 300, 7)) if repeated else np.arange(300)
    X, y = X.iloc[rows], y[rows]
    turned = X[X.columns[::-1]].rename(columns={"age": "zz"})
    found, expected = fit(turned, y), fit(X, y)
    np.testing.assert_allclose(found.predict_proba(turned), expected.predict_proba(X), atol=1e-12)
    assert [str(row[::-1]) for row in found.representatives_] == [
        str(row) for row in expected.representatives_
    ]


@pytest.mark.parametrize("kind", ["numbers", "pixels"])
def test_the_order_of_columns_of_an_array_changes_nothing(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) if kind == "numbers" else rng.integers(0, 9, (300, 16)) * 1.0
    y = X[:, 0] > X[:, 1]
    order = rng.permutation(X.shape[1])
    found, expected = fit(X[:, order], y), fit(X, y)
    np.testing.assert_allclose(
        found.predict_proba(X[:, order]), expected.predict_proba(X), atol=1e-9
    )
    np.testing.assert_allclose(
        found.representatives_, expected.representatives_[:, order], atol=1e-12
    )
    warm = clone(expected).set_params(warm_start=True).fit(X, y)
    assert warm.fit(X, y).score(X, y) > 0.9


def test_unknown_levels_and_new_missing_values_are_predicted(table, model):
    X, _ = table
    row = X[TEST].head(1)
    for strange in (
        row.assign(city="Lima"),
        row.assign(city=None, age=np.nan),
        row.assign(income=np.nan),  # never missing in training
        row.assign(since=pd.NaT, vip=pd.NA),
        row.assign(id="new", version=2, empty=1.0),
    ):
        chances = model.predict_proba(strange)
        assert np.isfinite(chances).all()
        assert chances.sum() == pytest.approx(1.0)
    all_missing = pd.DataFrame([[None] * 8], columns=X.columns)
    assert np.isfinite(model.predict_proba(all_missing)).all()
    # what is left out says nothing
    same = model.predict_proba(row.assign(id="new", version=2, empty=1.0))
    np.testing.assert_array_equal(same, model.predict_proba(row))


def test_one_row_alone_is_predicted_as_in_a_batch(table, model):
    X, _ = table
    batch = model.predict_proba(X[TEST])
    alone = np.vstack([model.predict_proba(X.iloc[i : i + 1]) for i in range(300, 320)])
    np.testing.assert_allclose(alone, batch[:20], atol=1e-6)


def test_representatives_are_rows_of_the_table(table, model):
    X, _ = table
    found = pd.DataFrame(model.representatives_, columns=X.columns).astype(object)
    found = found.where(found.notna(), None)
    assert len(found) == len(model.dual_coef_)
    assert set(found["city"]) <= {"Rome", "Oslo", "Paris", None}
    assert set(found["vip"]) <= {True, False}
    ages = found["age"].dropna().astype(float)
    assert ages.between(18, 89).all()
    assert (ages == ages.round()).all()
    assert found["id"].isna().all()
    assert model.explain(X[TEST]).contributions.shape == (100, len(found))


def test_feature_scales_are_by_column(model):
    scales = model.feature_scales_
    if scales is not None:
        assert scales.shape == (8,)
        assert scales[0] == scales[6] == scales[7] == 0.0


def test_a_user_may_say_what_a_column_is(table):
    X, y = table
    X = X.assign(zip=np.where(y == "stays", 10115, 80331))
    kinds = {"zip": "category", "id": "drop", "since": "drop"}
    found = fit(X[TRAIN], y[TRAIN], column_types=kinds)
    assert {column.name: column.kind for column in found.columns_}["zip"] == "category"
    assert found.score(X[TEST], y[TEST]) > 0.97
    assert clone(found).column_types == kinds
    with pytest.raises(ValueError, match="'column_types' parameter of KMeansKernelClassifier"):
        fit(X[TRAIN], y[TRAIN], column_types={"zipp": "category"})


def test_arrays_with_nan_are_tables(rng):
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    X[rng.random(X.shape) < 0.05] = np.nan
    found = fit(X[:200], y[:200])
    assert found.score(X[200:], y[200:]) > 0.75
    assert found._columns is None
    whole = rng.normal(size=(100, 4))
    given = fit(whole, (whole[:, 0] > 0).astype(int))
    assert np.isfinite(given.predict_proba(X)).all()  # missing at prediction alone


def test_wide_rows_stay_as_they_come_unless_values_are_missing(rng):
    X = rng.normal(size=(120, 130))
    y = (X[:, 0] > 0).astype(int)
    assert fit(X, y).feature_transform_ is None
    assert fit(X, y, feature_transform="standard").feature_transform_ == "standard"
    X[3, 5] = np.nan
    found = fit(X, y)
    assert found.feature_transform_ in ("standard", "both")
    assert np.isfinite(found.predict_proba(X)).all()
    mixed = pd.DataFrame(X).add_prefix("c").assign(word=np.where(y, "a", "b"))
    assert fit(mixed, y).score(mixed, y) > 0.9


def test_rows_with_equal_values_are_merged_where_values_are_missing(table):
    X, y = table
    X, y = X.drop(columns="id")[:60], y[:60]
    twice = fit(pd.concat([X, X]), np.concatenate([y, y]), feature_scales=None)
    weighted = fit_weighted(X, y, np.full(60, 2.0))
    np.testing.assert_allclose(twice.predict_proba(X), weighted.predict_proba(X), atol=1e-6)


def fit_weighted(X, y, weights):
    return KMeansKernelClassifier(random_state=0, feature_scales=None).fit(X, y, weights)


def test_verbose_says_what_the_columns_are(table, capsys):
    X, y = table
    fit(X[:60], y[:60], verbose=True)
    assert "columns: 2 numbers, 1 boolean, 1 category, 1 date; left out: 'id' (id)" in (
        capsys.readouterr().err
    )


def test_cross_validation_of_scikit_learn_takes_frames():
    X, y = business(200, seed=1)
    assert cross_val_score(KMeansKernelClassifier(random_state=0), X, y, cv=2).mean() > 0.6


def test_bad_tables_are_explained(table, model):
    X, y = table
    with pytest.raises(ValueError, match="'age' .numbers in training, now 'old'.*'income'"):
        model.predict(X.assign(age="old", income="much"))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.drop(columns="age").assign(new=1))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        fit(X, None)
    with pytest.raises(ValueError, match="0 sample"):
        fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="X must hold numbers.*TableEncoder"):
        KMeansKernelClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="X must hold numbers.*feature_transform is None"):
        fit(X, y, feature_transform=None)
    with pytest.raises(ValueError, match="X must hold numbers.*feature_transform is None"):
        fit(X[["city"]].astype("category").dropna(), y[X["city"].notna()], feature_transform=None)
    with pytest.raises(ValueError, match="contains NaN"):
        fit(X[["age", "income"]], y, feature_transform=None)


def test_online_training_goes_on_with_the_columns_of_fit(table):
    X, y = table
    found = fit(X[:200], y[:200])
    online = found.partial_fit(X[200:300], y[200:300])
    assert online.columns_[3].levels == ("Rome", "Oslo", "Paris")
    assert online.score(X[TEST], y[TEST]) > 0.6
    with pytest.raises(ValueError, match="'age' .numbers in training, now 'old'"):
        online.partial_fit(X.assign(age="old"), y)


@pytest.fixture(scope="module")
def plain():
    X = pd.DataFrame({"a": np.arange(60.0), "b": np.arange(60.0) % 7})
    return X, KMeansKernelClassifier(5, gamma=0.5, regularization=1e-3, random_state=0)


def test_a_model_of_numbers_takes_missing_values_of_all_sorts(plain):
    X, model = plain
    model = clone(model).fit(X, X["a"] > 30)
    expected = model.predict_proba(X.mask(X["a"] < 2))
    for missing in (pd.NA, pd.NaT, None):
        objects = X.astype(object).mask(X["a"] < 2, missing)
        np.testing.assert_array_equal(model.predict_proba(objects), expected)
    rows = [[pd.NA, 1.0], [2.0, 3.0]]
    array = clone(model).fit(X.to_numpy(), X["a"] > 30)
    for found in (rows, np.array(rows, dtype=object)):
        np.testing.assert_array_equal(
            array.predict_proba(found), array.predict_proba([[np.nan, 1.0], [2.0, 3.0]])
        )
    whole = clone(model).set_params(feature_transform=None).fit(X, X["a"] > 30)
    with pytest.raises(ValueError, match=r"contains NaN \(row 0, column 'a'\)"):
        whole.predict(X.astype(object).mask(X["a"] < 2, pd.NA))


def test_a_model_of_numbers_takes_no_dates(plain):
    X, model = plain
    model = clone(model).fit(X, X["a"] > 30)
    days = pd.date_range("2020", periods=60)
    spans = X.assign(a=days - days[0], b=days - days[0])
    for wrong in (X.assign(a=days), X.assign(a=[day.date() for day in days])):
        with pytest.raises(ValueError, match=r"'a' \(numbers in training, now the date 2020-01-01"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="'a' .*, 'b' .*now the date 2020-01-01"):
        model.predict(X.assign(a=days, b=days))
    seconds = X.assign(a=np.arange(60) * 86_400.0, b=np.arange(60) * 86_400.0)
    np.testing.assert_array_equal(model.predict_proba(spans), model.predict_proba(seconds))
    with pytest.raises(ValueError, match="'a' must hold numbers of float64"):
        model.predict(X.astype(object).assign(a=10**400))


def test_labels_of_nullable_types_keep_their_type(plain):
    X, model = plain
    whole = pd.Series(np.arange(60) % 2, dtype="Int64")
    for rows in (X, X.assign(w="a")):
        for y in (whole, whole.array, whole.astype(pd.ArrowDtype(pa.int64()))):
            assert clone(model).fit(rows, y).predict(rows).dtype == np.int64
        assert clone(model).fit(rows, whole.astype("boolean")).predict(rows).dtype == bool
        for y in (
            whole.mask(whole.index == 2),
            ["a", "b", pd.NA] * 20,
            pd.Series(["a", "b", None] * 20),
        ):
            with pytest.raises(ValueError, match="y must have a label for every row.* row 2. Drop"):
                clone(model).fit(rows, y)
