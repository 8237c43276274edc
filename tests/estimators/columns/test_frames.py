"""Reading of frames: the same columns from pandas, polars, Arrow and arrays of objects."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kmeans_kernel import TableEncoder
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


class Described(pd.DataFrame):
    """A frame of another package, as geopandas has one."""

    @property
    def _constructor(self):
        return Described


Described.__module__ = "elsewhere.frames"


def test_frames_of_derived_classes_are_frames(rng):
    X = pd.DataFrame({"w": ["a", "b"] * 30, "n": rng.normal(size=60)})
    assert is_frame(Described(X))
    assert not is_frame(Described(X)["w"])
    assert holds_numbers_only(Described(X[["n"]]))
    own = TableEncoder().fit(Described(X))
    np.testing.assert_array_equal(own.transform(X), TableEncoder().fit(X).transform(Described(X)))
    assert own.columns_[0].levels == ("a", "b")


def test_every_type_of_arrow_in_pandas():
    frame = of_pandas_extensions().convert_dtypes(dtype_backend="pyarrow")
    frame["day"] = frame["day"].astype(pd.ArrowDtype(pa.date32()))
    frame["span"] = pd.to_timedelta([90, None, 1.5], unit="s").astype(
        pd.ArrowDtype(pa.duration("ns"))
    )
    frame["price"] = pd.Series(["1.5", None, "2"]).astype(pd.ArrowDtype(pa.decimal128(5, 2)))
    frame["kind"] = pd.Series(["x", None, "y"]).astype(
        pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    )
    found = {raw.name: raw for raw in read_columns(frame)}
    for name in ("day", "time"):
        assert found[name].type == "date"
        np.testing.assert_array_equal(found[name].values, SECONDS[name])
    for name, numbers in {"span": [90.0, np.nan, 1.5], "price": [1.5, np.nan, 2.0]}.items():
        assert found[name].type == "number"
        np.testing.assert_array_equal(found[name].values, numbers)
    for name, kind in {"word": "category", "kind": "category", "flag": "boolean"}.items():
        assert found[name].type == kind
        assert found[name].values[1] is None


def test_categories_of_numbers_and_dates_in_arrow():
    numbers = pa.table({"a": pa.array([3, None, 1]).dictionary_encode()})
    (found,) = read_columns(numbers)
    assert (found.type, found.values.tolist()) == ("category", [3, None, 1])
    (empty,) = read_columns(
        pa.table({"a": pa.array([None, None], pa.string()).dictionary_encode()})
    )
    assert empty.type == "missing"


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": pd.to_timedelta([90, None, 1.5], unit="s")}),
        pd.DataFrame({"a": pd.to_timedelta([90, None, 1.5], unit="s").astype(object)}),
        pd.DataFrame({"a": pd.Categorical(pd.to_timedelta([90, None, 1.5], unit="s"))}),
        pl.DataFrame({"a": pl.Series([90_000, None, 1500]).cast(pl.Duration("ms"))}),
        pa.table({"a": pa.array([90_000, None, 1500], pa.duration("ms"))}),
        np.array([[np.timedelta64(90, "s")], [None], [np.timedelta64(1500, "ms")]], dtype=object),
    ],
)
def test_durations_are_seconds(X):
    (found,) = read_columns(X)
    assert found.values.tolist()[::2] == [90.0, 1.5]
    assert found.type == ("category" if found.values[1] is None else "number")


@pytest.mark.parametrize(
    ("value", "other"), [(10**400, 1), (Decimal("sNaN"), 1), (Decimal("sNaN"), "a")]
)
def test_numbers_beyond_float64_are_explained(value, other):
    with pytest.raises(
        ValueError, match="Column 'x0' must hold numbers of float64, got .* missing"
    ):
        read_columns(np.array([[value], [other]], dtype=object))
