"""What a column is taken for, and what becomes of levels that are rare, unknown or too many."""

import numpy as np
import pandas as pd
import pytest

from kmeans_kernel.estimators.columns import DroppedColumnWarning
from kmeans_kernel.estimators.columns._columns import code_columns, describe_columns
from kmeans_kernel.estimators.columns._frames import read_columns
from kmeans_kernel.estimators.columns._learning import learn_columns


def learn(column_types=None, **values):
    raws = read_columns(pd.DataFrame(values))
    return learn_columns(raws, column_types, "Owner"), raws


def learn_one(values, column_type=None):
    (column, _), _ = learn(
        {"a": column_type} if column_type else None, a=values, b=np.arange(len(values)) * 1.5
    )
    return column


def code(columns, **values):
    return code_columns(columns, read_columns(pd.DataFrame(values)))


def test_kinds_follow_the_types(table):
    X, _ = table
    with pytest.warns(DroppedColumnWarning, match="Column 'id' has nearly as many levels as rows"):
        columns = learn_columns(read_columns(X), None, "Owner")
    kinds = {column.name: column.kind for column in columns}
    assert kinds == {
        "id": "dropped", "age": "number", "income": "number", "city": "category",
        "vip": "boolean", "since": "date", "version": "dropped", "empty": "dropped",
    }  # fmt: skip
    reasons = {column.name: column.reason for column in columns if column.reason}
    assert reasons == {"id": "id", "version": "constant", "empty": "all missing"}
    age, city = columns[1], columns[3]
    assert (age.minimum, age.maximum, age.decimals, age.missing) == (18, 89, 0, True)
    assert (city.levels, city.rare, city.missing) == (("Rome", "Oslo", "Paris"), False, True)
    assert columns[4].levels == (False, True)
    assert columns[5].parts == ("days", "month", "weekday")
    assert describe_columns(columns) == (
        "columns: 2 numbers, 1 boolean, 1 category, 1 date; left out: 'id' (id), 'version' "
        "(constant), 'empty' (all missing)"
    )


def test_the_user_may_say_otherwise():
    zips = [10115, 80331, 10115, 80331, 20095, 20095]
    assert learn_one(zips).kind == "number"
    found = learn_one(zips, "category")
    assert (found.kind, found.levels) == ("category", (10115.0, 80331.0, 20095.0))
    assert learn_one(zips, "drop").kind == "dropped"
    assert learn_one(["1", "2", "2"]).kind == "category"
    assert learn_one(["1", "2.5", None], "number").maximum == 2.5
    assert learn_one(["2024-01-31", "2024-02-01"], "date").parts == ("days", "month", "weekday")
    assert learn_one(["2024-01-31 06:00", "2024-01-31 18:00"], "date").parts == ("days", "hour")
    ids = [f"c{k}" for k in range(50)]
    assert learn_one(ids, "category").kind == "category"


def test_wrong_types_are_named_all_at_once():
    with pytest.raises(ValueError, match=r"'c' is no column of X; 'a' has the type 'text'"):
        learn({"c": "number", "a": "text"}, a=[1, 2], b=["x", "y"])
    with pytest.raises(ValueError, match="must be a dict from names of columns.*got 'number'"):
        learn("number", a=[1, 2])
    with pytest.raises(ValueError, match=r"Column 'b' cannot be read as numbers.*'x'"):
        learn({"b": "number"}, a=[1, 2], b=["x", "y"])
    for words in (["x", "y"], ["now", "today"]):
        with pytest.raises(ValueError, match=r"Column 'b' cannot be read as dates"):
            learn({"b": "date"}, a=[1, 2], b=words)


def test_a_table_without_a_column_to_learn_from_is_refused():
    with pytest.raises(ValueError, match=r"no column to learn from: 'a' \(constant\)"):
        learn(a=["x", "x"])


def test_rare_and_unknown_levels_share_a_place():
    values = ["a"] * 180 + ["b"] * 66 + ["c", "d", "e", None]
    columns, _ = learn(a=values, b=range(250))
    assert (columns[0].levels, columns[0].rare) == (("a", "b"), True)
    found = code(columns, a=["a", "b", "c", "new", None], b=range(5))[:, 0]
    np.testing.assert_array_equal(found, [0, 1, 2, 2, np.nan])
    assert [columns[0].value(np.array([x])) for x in found] == [
        "a",
        "b",
        "(other)",
        "(other)",
        None,
    ]


def test_an_unknown_level_has_no_place_if_none_is_rare():
    columns, _ = learn(a=["a", "b"] * 10, b=range(20))
    np.testing.assert_array_equal(code(columns, a=["new", "b"], b=[0, 0])[:, 0], [-1, 1])


def test_the_names_of_levels_do_not_matter():
    values = ["x"] * 109 + ["y"] * 70 + ["z"] * 70 + ["rare"]
    renamed = [{"x": "3", "y": "zz", "z": "aa", "rare": "0"}[one] for one in values]
    one, first = learn(a=values, b=range(250))
    other, second = learn(a=renamed, b=range(250))
    np.testing.assert_array_equal(code_columns(one, first), code_columns(other, second))


def test_a_thousand_levels():
    rng = np.random.default_rng(0)
    values = [f"v{k}" for k in rng.zipf(1.3, 5000) % 1000]
    column = learn_one(values)
    assert column.kind == "category"
    assert 50 < len(column.levels) <= 400
    assert column.rare
    even = learn_one([f"v{k % 1000}" for k in range(10_000)])
    assert (len(even.levels), even.rare) == (400, True)


def test_values_that_are_missing_only_at_prediction():
    columns, _ = learn(a=["a", "b"] * 10, b=range(20), c=pd.date_range("2024-01-01", periods=20))
    found = code(columns, a=[None], b=[None], c=[pd.NaT])
    assert np.isnan(found).all()
    assert found.shape == (1, 2 + len(columns[2].parts))


def test_columns_of_another_type_are_named_all_at_once():
    columns, _ = learn(a=[1, 2], b=[0.5, 0.7], c=["x", "y"])
    with pytest.raises(ValueError, match=r"'a' \(numbers in training, now 'one'\), 'b'"):
        code(columns, a=["one"], b=["half"], c=["x"])
    # text of numbers is numbers, and numbers of a column of words are words
    np.testing.assert_array_equal(code(columns, a=["1"], b=["0.5"], c=[7]), [[1.0, 0.5, -1.0]])


def test_booleans_may_come_as_zeros_and_ones_or_as_words():
    columns, _ = learn(a=[True, False, False], b=range(3))
    assert code(columns, a=[1, 0], b=[0, 0])[:, 0].tolist() == [1, 0]
    assert code(columns, a=["true", "False"], b=[0, 0])[:, 0].tolist() == [1, 0]
    assert code(columns, a=[True, None], b=[0, 0])[0, 0] == 1


def test_dates_are_days_months_weekdays_and_hours():
    days = pd.to_datetime(["2024-02-29 06:30", "1969-12-29 00:00", "2024-03-03 18:00", None])
    columns, _ = learn(a=days, b=range(4))
    found = code(columns, a=days, b=range(4))[:, :4]
    expected = [
        [19782 + 6.5 / 24, 2, 3, 6.5],  # a Thursday
        [-3, 12, 0, 0],  # a Monday
        [19785.75, 3, 6, 18],  # a Sunday
        [np.nan] * 4,
    ]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_numbers_are_shown_with_the_decimals_of_the_data():
    assert learn_one([1.25, 2.5, 3.0]).decimals == 2
    assert learn_one([0.1 + 0.2, 0.5]).decimals == 1
    assert learn_one(np.random.default_rng(0).normal(size=5)).decimals == 6
    column = learn_one([1.0, 2.0, 7.0])
    assert column.value(np.array([4.4])) == 4
    assert isinstance(column.value(np.array([4.4])), int)


def test_numbers_are_no_dates_and_dates_no_numbers():
    days = pd.date_range("2024-01-01", periods=3)
    columns, _ = learn(a=days, b=[0.5, 0.7, 0.9])
    wrong = (
        r"'a' \(dates in training, now 5.0\), 'b' \(numbers in training, now the date 2024-01-01\)"
    )
    with pytest.raises(ValueError, match=wrong):
        code(columns, a=[5.0, None, 7.0], b=days)
    assert np.isnan(code(columns, a=[None, np.nan], b=[pd.NaT, pd.NaT])).all()
    for kind, values in {"date": [0, 86_400 * 40, 86_400 * 99], "number": days}.items():
        given, raws = learn({"a": kind}, a=values, b=[1, 2, 3])
        assert given[0].kind == kind
        assert np.isfinite(code_columns(given, raws, {"a"})).all()


def test_the_first_value_of_another_type_is_told():
    columns, _ = learn(a=[1, 2], b=[0.5, 0.7])
    with pytest.raises(ValueError, match="'a' .numbers in training, now 'x'."):
        code(columns, a=["1", "x"], b=[0, 0])
