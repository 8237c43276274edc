"""Dates with years of two digits: their century, and what looks like them."""

from datetime import date

import pytest

from kmeans_kernel.data.tables import DataFileError
from tests.data.tables.reading import read, types_of


def column(tmp_path, values, **options):
    """Return the table of one column "a"."""
    return read(tmp_path, "a;word\n" + "".join(f"{value};w\n" for value in values), **options)


def test_two_digits_are_years_from_1930_on(tmp_path):
    table = column(tmp_path, ["15.03.45", "01.12.29", "02.12.30", "", "03.11.99", "04.11.00"])
    years = [None if one is None else one.year for one in table.X["a"]]
    assert years == [1945, 2029, 1930, None, 1999, 2000]
    assert table.notes == (
        "'a' has years of two digits, read as 1930 to 2029, '15.03.45' as 1945-03-15; write four "
        "digits where they are others.",
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1/31/68", date(1968, 1, 31)),
        ("31-Jan-20 5:30 PM", date(2020, 1, 31)),
        ("31.01.69 10:15", date(1969, 1, 31)),
    ],
)
def test_two_digits_of_every_format_are_read_alike(written, expected, tmp_path):
    found = column(tmp_path, [written, written]).X["a"][0]
    assert (found.year, found.month, found.day) == (expected.year, expected.month, expected.day)


@pytest.mark.parametrize(
    "values",
    [
        ["1.7.11", "2.5.25", "3.12.10"],
        ["1.7.11", "13.5.25", "3.12.10", "2.2.20", "1.1.10"],
        ["10-12-20", "11-12-40", "10-10-12"],
        ["10-15-20", "12-30-45"],
        ["1-2-20", "3-14-15"],
        ["01.13.20", "1.7.11"],
    ],
)
def test_versions_and_sizes_are_text(values, tmp_path):
    table = column(tmp_path, values)
    assert types_of(table) == "ss"
    assert table.X["a"].to_list() == values
    assert table.notes == (
        f"'a' was read as text, such as {values[0]!r}; if they are dates, add --column-type "
        "a=date.",
    )


@pytest.mark.parametrize(
    "values",
    [
        ["01.07.11", "02.05.25", "31.12.10"],
        ["31.1.20", "3.2.21"],
        ["1/31/20", "2/3/21"],
        ["01-02-20", "31-12-20"],
    ],
)
def test_dates_with_two_digits_are_told_from_versions(values, tmp_path):
    table = column(tmp_path, values)
    assert types_of(table) == "ds"
    assert "'a' has years of two digits" in table.notes[0]


def test_the_kind_of_a_column_makes_them_dates(tmp_path):
    table = column(tmp_path, ["1.7.11", "2.5.25"], types={"a": "date"})
    assert table.X["a"].to_list() == [date(2011, 7, 1), date(2025, 5, 2)]
    with pytest.raises(DataFileError, match="'a' has 'soon' in data row 2, where other rows have"):
        column(tmp_path, ["1.7.11", "soon"], types={"a": "date"})
