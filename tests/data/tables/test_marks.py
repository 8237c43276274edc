"""Decimal marks: what is evidence for other columns, what is asked for, what training decides."""

import pytest

from kmeans_kernel.data.tables import DataFileError, Notation
from tests.data.tables.reading import read, types_of

THOUSANDS = ["865", "50.776", "54.041", "266"]


def rows(columns, separator):
    """Return the text of a table of columns."""
    lines = [columns, *zip(*columns.values(), strict=True)]
    return "\n".join(
        separator.join(f'"{v}"' if separator in v else v for v in line) for line in lines
    )


def of(tmp_path, columns, separator=",", **options):
    """Return the columns of a table as lists."""
    word = ["w"] * len(next(iter(columns.values())))
    if "features" in options:
        options["drop"] = ["word"]
    table = read(tmp_path, rows({**columns, "word": word}, separator) + "\n", **options)
    return {name: table.X[name].to_list() for name in columns}, table


@pytest.mark.parametrize("separator", ["\t", "|", ";"])
def test_whole_numbers_beside_three_decimals_may_be_thousands(separator, tmp_path):
    with pytest.raises(DataFileError) as caught:
        of(tmp_path, {"a": THOUSANDS}, separator)
    assert str(caught.value).endswith(
        "'a' may have decimals or thousands, as in '50.776' in data row 2; add --decimal comma if "
        "'50.776' is 50776, or --decimal point if it is 50.776."
    )
    found, _ = of(tmp_path, {"a": THOUSANDS}, separator, decimal="point")
    assert found["a"] == [865, 50.776, 54.041, 266]


@pytest.mark.parametrize("separator", ["\t", "|", ";"])
def test_dates_with_points_tell_of_decimal_commas(separator, tmp_path):
    dates = ["31.12.2020", "1.1.2021", "1.2.2021", "1.3.2021"]
    found, table = of(tmp_path, {"a": THOUSANDS, "on": dates}, separator)
    assert found["a"] == [865, 50776, 54041, 266]
    assert table.notes == (
        "'a' was read with a decimal comma, as dates have points too: '50.776' is 50776; if not, "
        "add --decimal point.",
    )
    with pytest.raises(DataFileError, match="'a' may have decimals or thousands, as in '50.776'"):
        of(tmp_path, {"a": THOUSANDS, "on": dates}, ",")


@pytest.mark.parametrize(
    ("values", "separator"),
    [
        (["8650", "50.776", "266"], "\t"),  # thousands would have a point in 8650 too
        (["0.250", "50.776", "266"], "\t"),
        (["1.234", "2.500"], "\t"),
        (THOUSANDS, ","),
    ],
)
def test_other_points_between_tabs_and_commas_are_decimal(values, separator, tmp_path):
    found, _ = of(tmp_path, {"a": values}, separator)
    assert found["a"] == [float(value) for value in values]


SENSOR = ["5.971", "8.803", "5.724"]


@pytest.mark.parametrize(
    "code", [["4,8", "5", "2,3"], ["12,25", "7", "7"], ["1.234.567", "5", "6"]]
)
def test_a_quoted_list_between_commas_does_not_decide_on_other_columns(code, tmp_path):
    with pytest.raises(
        DataFileError, match="'sensor' may have decimals or thousands, .* --decimal"
    ):
        of(tmp_path, {"sensor": SENSOR, "code": code})
    found, _ = of(tmp_path, {"sensor": SENSOR, "code": code}, decimal="point")
    assert found["sensor"] == [5.971, 8.803, 5.724]
    found, _ = of(tmp_path, {"sensor": SENSOR, "code": code, "c": ["0.25", "1.5", "7.1"]})
    assert found["sensor"] == [5.971, 8.803, 5.724]


@pytest.mark.parametrize(
    "decimals",
    [["0,5", "1", "2"], ["-1,5", "1", "2"], ["1,5 %", "2 %", "3 %"], ["1.234,5", "1", "2"]],
)
def test_numbers_with_a_sure_decimal_comma_decide_between_commas(decimals, tmp_path):
    found, _ = of(tmp_path, {"sensor": SENSOR, "b": decimals})
    assert found["sensor"] == [5971, 8803, 5724]


def test_addresses_are_text(tmp_path):
    addresses = ["192.168.178.232", "192.168.178.100", "192.168.178.101"]
    found, table = of(tmp_path, {"sensor": SENSOR, "ip": addresses})
    assert (found["sensor"], found["ip"]) == ([5.971, 8.803, 5.724], addresses)
    found, table = of(tmp_path, {"a": ["1.234.567.890", "2.345.678.901"]}, ";")
    assert types_of(table) == "is"


def test_training_decides_where_the_file_does_not(tmp_path):
    kinds = {"a": "number", "b": "number"}
    trained = Notation(decimal={"a": "comma", "b": "comma"})
    told = {"features": ["a", "b"], "types": kinds, "trained": trained}
    found, table = of(tmp_path, {"a": ["4.567"], "b": ["5"]}, "\t", **told)
    assert found["a"] == [4567]
    assert table.notes == (
        "'a' was read with a decimal comma, as in training: '4.567' is 4567; if not, add --decimal "
        "point.",
    )
    found, _ = of(tmp_path, {"a": ["4.567"], "b": ["5"]}, "\t", decimal="point", **told)
    assert found["a"] == [4.567]
    found, table = of(tmp_path, {"a": ["4.567"], "b": ["0,5"]}, "\t", **told)
    assert found["a"] == [4567]
    with pytest.raises(DataFileError, match="'a' may have decimals or thousands, as in '4.567'"):
        of(tmp_path, {"a": ["4.567"], "b": ["0.5"]}, "\t", **told)
    trained = Notation(decimal={"a": "comma", "b": "point"})
    told = {"features": ["a", "b"], "types": kinds, "trained": trained}
    assert of(tmp_path, {"a": ["4.567"], "b": ["0.5"]}, "\t", **told)[0]["a"] == [4567]


def test_a_table_says_how_its_numbers_and_dates_were_written(tmp_path):
    columns = {"a": ["1,5", "2"], "n": ["1", "2"], "t": ["1/31/2020", "2/1/2020"]}
    _, table = of(tmp_path, columns, ";", missing=("-999",))
    assert table.notation == Notation({"a": "comma", "n": "comma"}, {"t": "month-first"}, ("-999",))
    _, table = of(tmp_path, {"a": ["1,5", "2"], "b": ["1.5", "2"], "n": ["1", "2"]}, ";")
    assert table.notation == Notation({"a": "comma", "b": "point"})
    _, table = of(tmp_path, {"a": ["1.234", "2.345"]}, ";", decimal="comma")
    assert table.notation == Notation({"a": "comma"})


def test_training_decides_on_the_order_of_day_and_month(tmp_path):
    told = {"features": ["a"], "types": {"a": "date"}}
    trained = Notation(dates={"a": "month-first"})
    found, table = of(tmp_path, {"a": ["03/01/2020"]}, trained=trained, **told)
    assert str(found["a"][0]) == "2020-03-01"
    assert table.notes == (
        "dates of 'a' such as '03/01/2020' were read with the month first, as in training; if not, "
        "add --dates day-first.",
    )
    found, _ = of(tmp_path, {"a": ["03/01/2020"]}, trained=trained, dates="day-first", **told)
    assert str(found["a"][0]) == "2020-01-03"
    with pytest.raises(DataFileError, match="'a' may have the day or the month first, as in"):
        of(tmp_path, {"a": ["03/01/2020"]}, **told)


def test_markers_of_training_are_missing_values(tmp_path):
    told = {"features": ["a"], "types": {"a": "number"}, "trained": Notation(missing=["-999"])}
    found, table = of(tmp_path, {"a": ["1", " -999"]}, **told)
    assert found["a"] == [1, None]
    assert table.notes == ("'-999' was read as a missing value in 'a', as in training.",)
    assert table.notation.missing == ("-999",)
    _, table = of(tmp_path, {"a": ["1", "7"]}, **told)
    assert table.notes == ()
    _, table = of(tmp_path, {"a": ["1", "-999"]}, missing=["-999"], **told)
    assert table.notes == ()
