"""Reading of frames: the same columns from pandas, polars, Arrow and arrays of objects."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kmeans_kernel.estimators.columns._frames import holds_numbers_only, is_frame, read_columns

DAYS = [datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 31)]
TIMES = [datetime.datetime(2024, 2, 29, 12), None, datetime.datetime(1969, 12, 31, 23, 59, 59)]
SECONDS = {"day": [1709164800.0, np.nan, -86400.0], "time": [1709208000.0, np.nan, -1.0]}

VALUES = {
    "number": [1.5, None, -3.0],
    "whole": [1, None, 3],
    "word": ["a", None, "b"],
    "flag": [True, None, False],
    "day": DAYS,
    "time": TIMES,
    "empty": [None, None, None],
}


def of_pandas():
    return pd.DataFrame(VALUES)


def of_pandas_extensions():
    return pd.DataFrame(VALUES).convert_dtypes().astype({"time": "datetime64[ns]"})


def of_polars():
    return pl.DataFrame(VALUES)


def of_arrow():
    return pa.table(VALUES)


def of_objects():
    return np.array(list(zip(*VALUES.values(), strict=True)), dtype=object)


@pytest.mark.parametrize("make", [of_pandas, of_pandas_extensions, of_polars, of_arrow, of_objects])
def test_every_container_gives_the_same_columns(make):
    found = dict(zip(VALUES, read_columns(make()), strict=True))
    for name in ("number", "whole"):
        assert found[name].type == "number"
        expected = [np.nan if x is None else x for x in VALUES[name]]
        np.testing.assert_array_equal(found[name].values, expected)
    assert (found["word"].type, found["word"].values.tolist()) == ("category", ["a", None, "b"])
    assert (found["flag"].type, found["flag"].values.tolist()) == ("boolean", [True, None, False])
    for name, seconds in SECONDS.items():
        assert found[name].type == "date"
        np.testing.assert_array_equal(found[name].values, seconds)
    assert found["empty"].type in ("missing", "number")
    assert all(value is None or value != value for value in found["empty"].values.tolist())


def test_frames_are_told_from_other_rows():
    assert is_frame(of_pandas())
    assert is_frame(of_polars())
    assert is_frame(of_arrow())
    assert not is_frame(of_objects())
    assert not is_frame(of_pandas()["word"])
    assert not is_frame([[1, 2]])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_numbers_need_no_reading(make):
    assert holds_numbers_only(make({"a": [1, 2], "b": [0.5, None]}))
    assert not holds_numbers_only(make({"a": [1, 2], "b": ["x", "y"]}))
    assert not holds_numbers_only(make({"a": [1, 2], "b": [True, False]}))


def test_categories_of_pandas_and_polars_stay_categories():
    for frame in (
        pd.DataFrame({"a": pd.Categorical(["x", None, "y"], categories=["y", "x", "z"])}),
        pl.DataFrame({"a": pl.Series(["x", None, "y"], dtype=pl.Categorical)}),
        pa.table({"a": pa.array(["x", None, "y"]).dictionary_encode()}),
    ):
        (found,) = read_columns(frame)
        assert (found.type, found.values.tolist()) == ("category", ["x", None, "y"])
    (numbers,) = read_columns(pd.DataFrame({"a": pd.Categorical([3, 1, 3])}))
    assert (numbers.type, numbers.values.tolist()) == ("category", [3, 1, 3])


def test_missing_values_of_all_sorts_are_missing():
    column = ["a", None, np.nan, pd.NA, pd.NaT, "nan"]
    (found,) = read_columns(pd.DataFrame({"a": pd.Series(column, dtype=object)}))
    assert found.values.tolist() == ["a", None, None, None, None, "nan"]


def test_zones_and_durations():
    moment = pd.Timestamp("2024-01-01 12:00", tz="Europe/Paris")
    zoned = [
        pd.DataFrame({"a": [moment]}),
        pl.DataFrame({"a": pl.Series([moment.to_pydatetime()])}),
        pa.table({"a": pa.array([moment.to_pydatetime()])}),
    ]
    for frame in zoned:
        assert read_columns(frame)[0].values.tolist() == [moment.timestamp()]
    for frame in (
        pd.DataFrame({"a": [pd.Timedelta("90s")]}),
        pl.DataFrame({"a": [datetime.timedelta(seconds=90)]}),
    ):
        (found,) = read_columns(frame)
        assert (found.type, found.values.tolist()) == ("number", [90.0])


def test_objects_of_mixed_types():
    (numbers,) = read_columns(np.array([[1], [2.5], [Decimal("3")], [np.int8(4)]], dtype=object))
    assert (numbers.type, numbers.values.tolist()) == ("number", [1.0, 2.5, 3.0, 4.0])
    (words,) = read_columns(np.array([[1], ["a"], [True]], dtype=object))
    assert (words.type, words.values.tolist()) == ("category", ["1", "a", "True"])
    with pytest.raises(TypeError, match="Column 'x0' holds a value of type dict.*leave it out"):
        read_columns(np.array([[{}]], dtype=object))
