"""Types of columns: numbers in every notation, dates, words; what stays text, what is refused."""

from datetime import date, datetime, time, timedelta

import polars as pl
import pytest

from kmeans_kernel.data.tables import DataFileError, Notation, read_table
from tests.data.tables.reading import notes_of, read, types_of


def column(tmp_path, values, separator=",", more=None, **options):
    """Write a column "a", and `more` columns, quoted where they need it; return their table."""
    columns = {"a": values, **(more or {}), "word": ["w"] * len(values)}
    rows = [columns, *zip(*columns.values(), strict=True)]
    lines = [separator.join(f'"{v}"' if separator in v else v for v in row) for row in rows]
    options["drop"] = [*options.get("drop", ()), "word"]
    return read(tmp_path, "\n".join(lines) + "\n", **options)


@pytest.mark.parametrize(
    ("written", "type_", "expected"),
    [
        (["1", "-2", "+3"], "i", [1, -2, 3]),
        (["1", "2.5", ".5", "5.", "1e3", "-1.5E-2"], "f", [1, 2.5, 0.5, 5, 1000, -0.015]),
        (["1,5", "0,25", "-2"], "f", [1.5, 0.25, -2]),
        (["1,5E+03", "2"], "f", [1500, 2]),
        (["1,234,567.8", "1"], "f", [1234567.8, 1]),
        (["1.234.567,8", "1"], "f", [1234567.8, 1]),
        (["1,234,567", "950"], "i", [1234567, 950]),
        (["1 234 567,8", "1"], "f", [1234567.8, 1]),
        (["1\u00a0234\u00a0567,8", "1\u202f000", "1\u2009000,5"], "f", [1234567.8, 1000, 1000.5]),
        (["1'234.5", "1’000’000.25", "7"], "f", [1234.5, 1000000.25, 7]),
        (["12,34,567", "5"], "i", [1234567, 5]),
        (["−5", "6"], "i", [-5, 6]),
        (["5 %", "7.5%"], "f", [5, 7.5]),
        (["$1,234.50", "-$5.00", "$ 7"], "f", [1234.5, -5, 7]),
        (["1.234,50 €", "5 €", "-3,5 €"], "f", [1234.5, 5, -3.5]),
        (["CHF 1'234.50", "CHF 7"], "f", [1234.5, 7]),
        (["R$ 5,50", "R$ 6"], "f", [5.5, 6]),
        (["(1,234.00)", "5.00"], "f", [-1234, 5]),
        (["($5.50)", "$6"], "f", [-5.5, 6]),
        (["5-", "6", "7.5-"], "f", [-5, 6, -7.5]),
        (["9007199254740992", "1"], "i", [2**53, 1]),
        (["123456789012345678901234567890.5", "1"], "f", [123456789012345678901234567890.5, 1]),
        (["TRUE", "false", "True"], "b", [True, False, True]),
        (["true", "", "true"], "b", [True, None, True]),
        (["1", "NA", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#NULL!", "null"],
         "i", [1, *[None] * 9]),
        (["1.5", "#WERT!", "#¡VALOR!", "#####", "1.#QNAN", "<NA>", "?"], "f",
         [1.5, *[None] * 6]),
        (["1", "-", "--", ".", "…", "2"], "i", [1, None, None, None, None, 2]),
        # What stays text.
        (["007", "010"], "s", ["007", "010"]),
        (["00123", "4711", "NA"], "s", ["00123", "4711", None]),
        (["9007199254740993", "1"], "s", ["9007199254740993", "1"]),
        (["123456789012345678901234567890", "1"], "s", ["123456789012345678901234567890", "1"]),
        (["yes", "no"], "s", ["yes", "no"]),
        (["t", "f"], "s", ["t", "f"]),
        (["12 kg", "5 kg"], "i", [12, 5]),
        (["$5", "€6"], "s", ["$5", "€6"]),
        (["$5", "x"], "s", ["$5", "x"]),
        (["0x1F", "1_000"], "s", ["0x1F", "1_000"]),
        (["+49 123 456", "+49 555 123"], "s", ["+49 123 456", "+49 555 123"]),
        (["192.168.0.1", "10.0.0.1"], "s", ["192.168.0.1", "10.0.0.1"]),
        (["12:30", "13:45"], "s", ["12:30", "13:45"]),
        (["1-2", "3-4"], "s", ["1-2", "3-4"]),
        (["None", "-NaN", "none", "x"], "s", [None, None, "none", "x"]),
        (["-", "x"], "s", ["-", "x"]),
        (["-", "-"], "s", ["-", "-"]),
    ],
)  # fmt: skip
def test_columns_have_the_type_of_their_values(written, type_, expected, tmp_path):
    table = column(tmp_path, written, "|")
    assert types_of(table) == type_
    assert table.X["a"].to_list() == expected


D = date(2020, 1, 31), date(2021, 2, 3)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["2020-01-31", "2021-2-3"], D),
        (["2020/01/31", "2021/02/03"], D),
        (["2020.01.31", "2021.02.03"], D),
        (["31.01.2020", "3.2.2021"], D),
        (["3.2.2021", "4.2.2021"], (date(2021, 2, 3), date(2021, 2, 4))),
        (["31/1/2020", "3/2/2021"], D),
        (["1/31/2020", "2/3/2021"], D),
        (["31-01-2020", "03-02-2021"], D),
        (["31.1.20", "3.2.21"], D),
        (["1/31/20", "2/3/21"], D),
        (["31-Jan-2020", "3-FEB-2021"], D),
        (["31-Jan-20", "3-Feb-21"], D),
        (["31 January 2020", "3. Feb 2021"], D),
        (["January 31, 2020", "Feb. 3, 2021"], D),
        (["2020-01-31", "", "0000-00-00", "unknown", *["2021-02-03"] * 20],
         (D[0], None, None, None, *[D[1]] * 20)),
        (["5/5/2020", "6/6/2020"], (date(2020, 5, 5), date(2020, 6, 6))),
        (["2020-01-31T10:30:05Z", "2020-01-31 12:30:05.25+02:00", "2020-01-31"],
         (datetime(2020, 1, 31, 10, 30, 5), datetime(2020, 1, 31, 10, 30, 5, 250000),
          datetime(2020, 1, 31))),
        (["1/31/2020 1:05 PM", "2/3/2021 12:05 AM"],
         (datetime(2020, 1, 31, 13, 5), datetime(2021, 2, 3, 0, 5))),
        (["31.1.2020 13:05", "3.2.2021 0:05:30"],
         (datetime(2020, 1, 31, 13, 5), datetime(2021, 2, 3, 0, 5, 30))),
    ],
)  # fmt: skip
def test_dates_are_read(written, expected, tmp_path):
    table = column(tmp_path, written, ";")
    assert types_of(table) == ("t" if isinstance(expected[0], datetime) else "d")
    assert tuple(table.X["a"]) == expected


@pytest.mark.parametrize(
    "written",
    [["2020-13-01", "2020-01-01"], ["2020-01-01 25:00", "2020-01-02"], ["1.2.3", "4.5.6"]],
)
def test_what_is_no_date_stays_text(written, tmp_path):
    assert types_of(column(tmp_path, written)) == "s"


def test_the_order_of_day_and_month_follows_from_other_columns_or_is_asked_for(tmp_path):
    unclear, clear = ["01/02/2020", "03/04/2020"], ["1/31/2020", "2/1/2020"]
    table = column(tmp_path, unclear, more={"b": clear})
    assert table.X["a"].to_list() == [date(2020, 1, 2), date(2020, 3, 4)]
    table = column(tmp_path, unclear)
    assert table.X["a"].to_list() == unclear
    assert table.notes == (
        "the dates in 'a' may have the day or the month first, as in '01/02/2020' in data row 1, "
        "and were read as text; settle it with --dates day-first or --dates month-first.",
    )
    table = column(tmp_path, unclear, dates="day-first")
    assert table.X["a"].to_list() == [date(2020, 2, 1), date(2020, 4, 3)]
    table = column(tmp_path, unclear, more={"b": clear}, dates="day-first")
    assert table.X["a"].to_list() == [date(2020, 2, 1), date(2020, 4, 3)]
    assert table.X["b"].to_list() == [date(2020, 1, 31), date(2020, 2, 1)]
    with pytest.raises(DataFileError, match="'a' may have the day or .* add --dates day-first or"):
        column(tmp_path, unclear, types={"a": "date"})


@pytest.mark.parametrize(
    ("written", "separator", "more", "expected"),
    [
        # Commas separate the values: 1,234 is quoted, and has thousands.
        (["1,234", "2,500"], ",", {}, [1234, 2500]),
        # Another column has decimal commas, or points.
        (["1,234", "2,500"], ",", {"b": ["0,5", "1"]}, [1.234, 2.5]),
        (["1.234", "2.500"], ";", {"b": ["0,5", "1"]}, [1234, 2500]),
        (["1.234", "2.500"], ";", {"b": ["0.5", "1"]}, [1.234, 2.5]),
        (["1,234", "2,500"], ";", {"b": ["0.5", "1"]}, [1234, 2500]),
        (["1,234", "2,500"], ";", {"b": ["1,5 %", "2 %"]}, [1.234, 2.5]),
        # The column itself tells.
        (["1,234", "2,5"], ";", {}, [1.234, 2.5]),
        (["1.234", "2.5"], ";", {}, [1.234, 2.5]),
        (["1,234", "1,234,567"], ";", {}, [1234, 1234567]),
        (["0,123", "2,500"], ";", {}, [0.123, 2.5]),
        # Points between tabs or commas are decimal points.
        (["1.234", "2.500"], ",", {}, [1.234, 2.5]),
        (["1.234", "2.500"], "\t", {}, [1.234, 2.5]),
        # Columns with either mark do not mind each other.
        (["1.5", "2.5"], ";", {"b": ["1,5", "2"]}, [1.5, 2.5]),
        # Dates are no evidence.
        (["1,234", "2,500"], ",", {"b": ["31.12.2020", "1.1.2021"]}, [1234, 2500]),
    ],
)
def test_the_decimal_mark_follows_from_the_file(written, separator, more, expected, tmp_path):
    assert column(tmp_path, written, separator, more).X["a"].to_list() == expected


def test_columns_that_are_left_out_tell_the_decimal_mark_too(tmp_path):
    more = {"b": ["0,5", "1"]}
    assert column(tmp_path, ["1.234", "2.500"], ";", more, drop=["b"]).X["a"].to_list() == [
        1234, 2500,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "more"),
    [
        (["1,234", "950"], {}),
        (["1.234", "950"], {}),
        (["1.234", "950"], {"b": ["0,5", "1"], "c": ["0.5", "1"]}),
        (["1.234", "1,234"], {}),
    ],
)
def test_an_undecided_decimal_mark_is_asked_for(written, more, tmp_path):
    with pytest.raises(DataFileError) as caught:
        column(tmp_path, written, ";", more)
    value = written[0]
    small, large = (1.234, 1234) if "," in value else (1234, 1.234)
    assert str(caught.value).endswith(
        f"'a' may have decimals or thousands, as in {value!r} in data row 1; add --decimal comma "
        f"if {value!r} is {small}, or --decimal point if it is {large}."
    )
    for mark, number in (("comma", small), ("point", large)):
        if "," in written[1]:
            continue
        table = column(tmp_path, written, ";", more, decimal=mark)
        assert table.X["a"].to_list()[0] == number


def test_all_columns_with_problems_are_told_at_once(tmp_path):
    n = 20
    numbers = [str(k) for k in range(n)]
    columns = {
        "few": [*numbers[1:], "red"],
        "my words": ["w1", "w2", *numbers[2:]],
        "thousands": ["1.234"] * n,
        "mixed": ["1.5", "2,5"] * (n // 2),
        "large": [*numbers[1:], "1e300"],
        "infinite": ["inf", *numbers[1:]],
        "dates": [*["2020-01-01"] * (n - 1), "soon"],
    }
    columns["many"] = [*(f"w{k}" for k in range(4)), *["7"] * (n - 4)]
    rows = [";".join(row) for row in zip(*columns.values(), strict=True)]
    rows += rows[4:-1] * 3
    content = ";".join(columns) + "\n" + "\n".join(rows) + "\n"
    with pytest.raises(DataFileError) as caught:
        read(tmp_path, content)
    told = str(caught.value).replace(f"{tmp_path}/", "")
    assert told.startswith("8 columns of data.csv cannot be read as they are: ")
    for part in (
        "'few' has 'red' in data row 20, where other rows have numbers",
        "'my words' has 'w1' in data row 1, where other rows have numbers",
        "'thousands' may have decimals or thousands, as in '1.234' in data row 1",
        "'mixed' has decimal points and commas, '1.5' in data row 1 and '2,5' in data row 2",
        "'large' is 1e+300 in data row 20, too large to be used",
        "'infinite' is infinite in data row 1, too large to be used",
        "'dates' has 'soon' in data row 20, where other rows have dates",
    ):
        assert part in told
    options = told.partition("; add ")[2]
    for option in ("--missing few=red", "--missing 'my words=w1' --missing 'my words=w2'",
                   "--drop mixed", "--missing large=1e300", "--missing infinite=inf",
                   "--missing dates=soon", "--missing many=w0 --missing many=w1",
                   " and add --decimal comma if '1.234' is 1234, or --decimal point"):  # fmt: skip
        assert option in options
    table = read(
        tmp_path, content, drop=["mixed"], decimal="comma", types={"many": "category"},
        missing=["few=red", "my words=w1", "w2", "large=1e300", "inf", "soon"],
    )  # fmt: skip
    assert types_of(table) == "iiiiids"


def test_names_and_words_are_quoted_for_the_shell(tmp_path):
    rows = "".join(f"{k};{k}\n" for k in range(120))
    words = "".join(f"x {k};y z\n" for k in range(11))
    with pytest.raises(
        DataFileError, match=r"add --column-type 'my a=category' --missing 'b=y z'\."
    ):
        read(tmp_path, f"my a;b\n{rows}{words}")


def test_words_that_mean_missing_count_where_nearly_all_values_are_numbers(tmp_path):
    values = [*(str(k) for k in range(20)), "unknown", "n.a."]
    table = column(tmp_path, values, more={"b": values})
    assert types_of(table) == "ii"
    assert table.X["a"].null_count() == 2
    assert table.notes == (
        "'unknown' was read as a missing value in 'a', 'b'.",
        "'n.a.' was read as a missing value in 'a', 'b'.",
    )
    table = column(tmp_path, ["1", "2", "unknown"])
    assert types_of(table) == "s"
    assert table.notes == (
        "'a' was read as text: 66 % of its values are numbers, but not 'unknown' in data row 3.",
    )


def test_the_kinds_of_a_model_decide(tmp_path):
    kinds = {"zip": "category", "n": "number", "on": "date", "old": "boolean"}
    content = "on,n,extra,zip,old\n2020-01-31,unknown,?,00123,TRUE\n1.2.2020x,007,?,5,\n"
    with pytest.raises(DataFileError, match="'on' has '1.2.2020x' in data row 2, where other rows "
                       "have dates; correct the values of 'on'"):  # fmt: skip
        read(tmp_path, content, features=list(kinds), types=kinds)
    table = read(tmp_path, content, features=list(kinds), types=kinds, missing=["1.2.2020x"])
    assert table.X.columns == list(kinds)
    assert types_of(table) == "sidb"
    assert table.X.rows() == [("00123", None, date(2020, 1, 31), True), ("5", 7, None, None)]
    assert notes_of(table, tmp_path) == [
        "a column of data.csv that the model does not have was ignored: 'extra'.",
        "'unknown' was read as a missing value in 'n'.",
    ]


def test_words_where_a_model_has_numbers_are_told_at_once(tmp_path):
    kinds = dict.fromkeys("abc", "number")
    words = "".join(f"1,w{k},5\n" for k in range(11))
    with pytest.raises(DataFileError) as caught:
        read(tmp_path, f"a,b,c\nx,1,\n{words}", features=list("abc"), types=kinds)
    assert str(caught.value).endswith(
        "'a' has 'x' in data row 1, where other rows have numbers, 'b' has 'w0' in data row 2, "
        "where other rows have numbers; add --missing a=x and correct the values of 'b'."
    )
    with pytest.raises(DataFileError, match="'a' has 'x' in data row 1, which is no number; add "):
        read(tmp_path, "a\nx\n", features=["a"], types={"a": "number"})
    with pytest.raises(DataFileError, match="'a' has 'x' in data row 1, which is no date; add "):
        read(tmp_path, "a\nx\n", features=["a"], types={"a": "date"})
    with pytest.raises(DataFileError, match="'a' has 'x' in data row 1, which is no boolean; add"):
        read(tmp_path, "a\nx\n", features=["a"], types={"a": "boolean"})
    table = read(tmp_path, "a\n\n1,5\n", features=["a"], types={"a": "number"})
    assert table.X.rows() == [(None,), (1.5,)]


def test_a_kind_may_be_given_to_training_data(tmp_path):
    content = "zip,code\n00123,1\n4711,2\n"
    assert types_of(read(tmp_path, content, types={"zip": "number", "code": "category"})) == "is"
    with pytest.raises(ValueError, match="the kind of column 'zip' must be one of 'number', .*'x'"):
        read(tmp_path, content, types={"zip": "x"})


def test_columns_of_parquet_keep_their_types(tmp_path):
    frame = pl.DataFrame(
        {
            "u8": pl.Series([1, 2], dtype=pl.UInt8), "u64": pl.Series([1, None], dtype=pl.UInt64),
            "f32": pl.Series([0.5, float("nan")], dtype=pl.Float32),
            "dec": pl.Series(["1.5", "2.5"]).cast(pl.Decimal(10, 2)), "flag": [True, None],
            "word": ["a", None], "level": pl.Series(["x", "1"], dtype=pl.Categorical),
            "digits": ["1,5", "2"], "zip": ["00123", "4711"], "day": [date(2020, 1, 31), None],
            "at": pl.Series([datetime(2020, 1, 31, 12), None]).dt.replace_time_zone("Europe/Rome"),
            "span": [timedelta(seconds=90), None], "clock": [time(12, 30), None],
            "none": [None, None],
        }
    )  # fmt: skip
    path = tmp_path / "x.parquet"
    frame.write_parquet(path)
    table = read_table(path)
    assert table.X.columns == frame.columns[:-1]
    assert dict(zip(table.X.columns, types_of(table), strict=True)) == {
        "u8": "i", "u64": "f", "f32": "f", "dec": "f", "flag": "b", "word": "s", "level": "s",
        "digits": "f", "zip": "s", "day": "d", "at": "t", "span": "f", "clock": "s",
    }  # fmt: skip
    assert table.X.row(0) == (
        1, 1, 0.5, 1.5, True, "a", "x", 1.5, "00123", date(2020, 1, 31),
        datetime(2020, 1, 31, 11), 90, "12:30:00",
    )  # fmt: skip
    assert table.X["f32"].null_count() == 1
    kinds = {"u8": "category", "f32": "category", "dec": "category"}
    table = read_table(path, features=list(kinds), types=kinds)
    assert table.X.rows() == [("1", "0.5", "1.50"), ("2", None, "2.50")]
    assert table.X.columns == list(kinds)


def test_columns_of_parquet_that_no_model_can_use_are_told_at_once(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame(
        {"a": [[1], [2]], "b c": [{"x": 1}, {"x": 2}], "d": [float("inf"), 1.0], "e": [1, 2]}
    ).write_parquet(path)
    with pytest.raises(DataFileError) as caught:
        read_table(path)
    assert str(caught.value) == (
        f"3 columns of {path} cannot be read as they are: 'a' holds values of type list, not "
        "numbers, words or dates, 'b c' holds values of type struct, not numbers, words or dates, "
        "'d' is infinite in data row 1, too large to be used; add --drop a --drop 'b c' --drop d."
    )
    assert read_table(path, drop=["a", "b c", "d"]).X.rows() == [(1,), (2,)]


def test_the_index_of_pandas_in_parquet_is_left_out(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": [1, 2], "__index_level_0__": [7, 5]}).write_parquet(path)
    assert read_table(path).X.columns == ["a"]


def test_words_that_mean_missing_are_labels_in_parquet(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": [1, 2, 3], "y": ["NA", "EU", None]}).write_parquet(path)
    assert read_table(path, target="y").y.tolist() == ["NA", "EU"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["10.5%"] * 20 + ["0"], [10.5] * 20 + [0.0]),
        (["10.5 EUR"] * 20 + ["3"], [10.5] * 20 + [3.0]),
        (["$ 12.50"] * 20 + ["$ -"], [12.5] * 20 + [0.0]),
        (["12.5 kg", "3 kg"], [12.5, 3.0]),
        (["1.5k", "2.5k", "3"] * 3, None),
        (["12 Street", "5 Street", "7 Street"], None),
        (["01067 m", "04103 m"], None),
        (["1.5 million"] * 20 + ["300000"], None),
        (["5 kg"] * 18 + ["3 lbs"] * 2, None),
        (["3 lbs"] * 2 + ["5 kg"] * 18, None),
        (["12 A", "13 B", "14 B"], None),
        (["31 years"] * 20 + ["1 year"], [31.0] * 20 + [1.0]),
    ],
)
def test_a_unit_may_be_missing_from_a_few_values(written, expected, tmp_path):
    table = column(tmp_path, written, "|")
    if expected is None:
        assert types_of(table) == "s"
    else:
        assert table.X["a"].to_list() == pytest.approx(expected)


def test_a_bare_number_among_per_cents_may_be_a_share(tmp_path):
    with pytest.raises(DataFileError, match="'a' has '0.5' in data row 21.*correct the values of"):
        column(tmp_path, ["10.5%"] * 20 + ["0.5"], "|")


@pytest.mark.parametrize("place", [0, 3, 39])
def test_formats_of_dates_that_can_be_read_in_one_way_may_be_mixed(place, tmp_path):
    written = ["2020-04-06"] * 40
    written[place] = "31.12.2019"
    table = column(tmp_path, written, "|")
    assert types_of(table) == "d"
    assert table.X["a"][place] == date(2019, 12, 31)


def test_a_marker_may_be_for_one_column(tmp_path):
    content = "a,b\n" + "1,x\n2,no\n" * 20 + "no,x\n"
    with pytest.raises(DataFileError, match="add --missing a=no"):
        read(tmp_path, content)
    table = read(tmp_path, content, missing=["a=no"])
    assert (table.X["a"].null_count(), table.X["b"].null_count()) == (1, 0)


def test_a_row_of_units_is_to_be_deleted(tmp_path):
    content = "a,b,c\nEUR,years,-\n" + "1,2,x\n" * 40
    with pytest.raises(DataFileError, match="; delete data row 1, which looks like units"):
        read(tmp_path, content)


def test_a_rule_below_the_header_is_no_row(tmp_path):
    assert len(read(tmp_path, "id|n|ok\n--|-|--\n1|2|x\n3|4|y\n").X) == 2


def test_a_few_leading_zeros_are_noted(tmp_path):
    table = column(tmp_path, [*map(str, range(1, 60)), "007"], "|")
    assert types_of(table) == "s"
    assert (
        "'007' in data row 60 has leading zeros; if all are numbers, add --column-type"
        in (table.notes[0])
    )


@pytest.mark.parametrize("value", ["<100", "$5.00", "1.5k", "12 EUR", "31 years"])
def test_values_that_say_something_are_never_to_be_read_as_missing(value, tmp_path):
    with pytest.raises(DataFileError, match="; correct the values of 'a'"):
        column(tmp_path, [*map(str, range(40)), value], "|")


@pytest.mark.parametrize(
    ("trained", "now", "words"),
    [
        ("kg", "12340 g", "has '12340 g' in data row 1, and was in 'kg' in training"),
        ("%", "0.5", "has '0.5' in data row 1, and was in '%' in training"),
        ("kg", "12 kg", None),
        ("kg", "12", None),
        ("€", "12 EUR", None),
        ("€", "12 USD", "was in '€'"),
    ],
)
def test_another_unit_than_in_training_is_refused(trained, now, words, tmp_path):
    content = f"a,b\n{now},x\n{now},y\n"
    options = {
        "features": ["a", "b"], "types": {"a": "number", "b": "category"},
        "trained": Notation(units={"a": trained}),
    }  # fmt: skip
    if words is None:
        assert read(tmp_path, content, **options).X["a"][0] == 12
    else:
        with pytest.raises(DataFileError, match=words):
            read(tmp_path, content, **options)


def test_units_are_part_of_the_notation(tmp_path):
    table = read(tmp_path, "a,b,c\n12.5 kg,10%,x\n3 kg,20%,y\n")
    assert table.notation.units == {"a": "kg", "b": "%"}


def test_a_row_of_units_above_one_column_of_numbers_may_be_data(tmp_path):
    with pytest.raises(DataFileError, match="delete data row 1, .*, or add --missing a=kg if it"):
        read(tmp_path, "a,b\nkg,code\n" + "1,x\n" * 40)


def test_a_marker_of_a_column_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataFileError, match="is for a column 'Age', which .* does not have"):
        read(tmp_path, "age,b\n-99,x\n1,y\n", missing=["Age=-99"])
    table = read(tmp_path, "a,b\n1,x=y\n2,z\n", missing=["x=y"])
    assert table.X["b"].null_count() == 1


@pytest.mark.parametrize("value", ["<100", "12 EUR"])
def test_a_first_row_that_says_something_is_not_to_be_deleted(value, tmp_path):
    with pytest.raises(DataFileError, match="where other rows have numbers; correct the values"):
        column(tmp_path, [value, *map(str, range(40))], "|")
