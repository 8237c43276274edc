"""Tables of numbers, words, dates and missing values, written in any dialect, are read back."""

import csv
import io
from datetime import date

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from kmeans_kernel.data.tables import DataFileError
from tests.data.tables.reading import read, types_of

WORDS = [
    "red", "blau", "grün", "naïve café", "x,y", "p; q", "d|e", "a\tb", 'say "hi"', "two\nlines",
    "it's", "#1", "a=b", "12 words", "1/2", "007x", "C:\\new", "é", "none",
]  # fmt: skip

INTEGERS = st.integers(-(10**7), 10**7)
FLOATS = st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: float(f"{x:.9g}"))
DATES = st.dates(date(1800, 1, 1), date(2200, 1, 1))

KINDS = {
    "i": INTEGERS, "f": FLOATS, "b": st.booleans(), "d": DATES,
    "s": st.sampled_from(WORDS) | st.text("abcdefgh ", min_size=1, max_size=8).map(str.strip),
}  # fmt: skip


@st.composite
def tables(draw):
    """Return the types of columns and their values."""
    n_rows = draw(st.integers(2, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
    columns = [
        draw(st.lists(st.none() | KINDS[kind], min_size=n_rows, max_size=n_rows)) for kind in kinds
    ]
    return kinds, columns


@st.composite
def dialects(draw):
    """Return how a table is written."""
    return {
        "separator": draw(st.sampled_from(",;\t|")),
        "decimal": draw(st.sampled_from(".,")),
        "thousands": draw(st.sampled_from(["", "group", " ", "\u00a0", "'"])),
        "quoting": draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        "encoding": draw(
            st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
        ),
        "line_end": draw(st.sampled_from(["\n", "\r\n", "\r"])),
    }


def written(value, dialect):
    """Return a value as a dialect has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | str):
        return str(value)
    whole, _, decimals = repr(value).partition(".")
    if "e" in whole + decimals:
        return repr(value).replace(".", dialect["decimal"])
    group = dialect["thousands"]
    if group == "group":
        group = {".": ",", ",": "."}[dialect["decimal"]]
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    grouped = sign + f"{int(digits):,}".replace(",", group)
    return grouped + dialect["decimal"] + decimals if decimals else grouped


def content_of(kinds, columns, dialect):
    """Return the bytes of a table in a dialect, with a column of words that are never missing."""
    out = io.StringIO(newline="")
    writer = csv.writer(
        out, delimiter=dialect["separator"], quoting=dialect["quoting"],
        lineterminator=dialect["line_end"],
    )  # fmt: skip
    writer.writerow([*(f"column {k}" for k in range(len(kinds))), "last"])
    for row in zip(*columns, strict=True):
        writer.writerow([*(written(value, dialect) for value in row), "word"])
    return out.getvalue().encode(dialect["encoding"])


def is_told_by_its_values(kind, values):
    """Return whether the type of a column is the only one that its values allow."""
    known = [value for value in values if value is not None]
    if not known:
        return False
    if kind == "f":  # -0.0 or 5.0 is written as it is, and a whole number is no float
        return True
    return kind != "s" or (all(known) and "12 words" in known)


@pytest.mark.filterwarnings("default")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=tables(), dialect=dialects())
@example(
    table=(["f", "s"], [[1.234, 2.5], ["12 words", "x,y"]]),
    dialect={"separator": ";", "decimal": ",", "thousands": "group", "quoting": csv.QUOTE_ALL,
             "encoding": "cp1252", "line_end": "\r"},
)  # fmt: skip
def test_a_table_is_read_back_from_any_dialect(tmp_path_factory, table, dialect):
    kinds, columns = table
    assume(all(map(is_told_by_its_values, kinds, columns)))
    has_breaks = any(value == "two\nlines" for column in columns for value in column)
    assume(not (has_breaks and dialect["line_end"] == "\r"))
    content, folder = content_of(kinds, columns, dialect), tmp_path_factory.mktemp("x")
    mark = {".": "point", ",": "comma"}[dialect["decimal"]]
    # Between commas, or without semicolons, a decimal comma is not expected.
    is_unusual = dialect["decimal"] == "," and (
        dialect["separator"] == ","
        or (dialect["separator"] != ";" and dialect["thousands"] == "group")
    )
    try:
        found = read(folder, content, drop=["last"], decimal=mark if is_unusual else None)
    except DataFileError as error:
        if "--decimal comma" not in str(error):
            raise
        found = read(folder, content, drop=["last"], decimal=mark)
    assert found.X.columns == [f"column {k}" for k in range(len(kinds))]
    for kind, type_, column, values in zip(
        kinds, types_of(found), found.X.get_columns(), columns, strict=True
    ):
        assert type_ in ("fi" if kind == "f" else kind)
        assert column.to_list() == values
