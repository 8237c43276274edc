"""Values of columns whose kind a model knows, written in other ways than in training."""

import pytest

from kmeans_kernel.data.tables import DataFileError
from tests.data.tables.reading import read


def of(tmp_path, values, kind):
    """Return the values of a column of a kind, and the notes."""
    content = "a;word\n" + "".join(f"{value};w\n" for value in values)
    table = read(tmp_path, content, features=["a", "word"], types={"a": kind, "word": "category"})
    return table.X["a"].to_list(), table.notes


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["(500.50)"], [-500.5]),
        (["300.50-"], [-300.5]),
        (["(500.50)", "(1.25)"], [-500.5, -1.25]),
        (["(500)", "-5.25", "7"], [-500, -5.25, 7]),
        (["($500.50)"], [-500.5]),
        (["(5,5 €)"], [-5.5]),
    ],
)
def test_negative_numbers_of_accounting_are_numbers_of_a_model(values, expected, tmp_path):
    assert of(tmp_path, values, "number")[0] == expected


@pytest.mark.parametrize("values", [["(1.50)", "(2.25)"], ["1.50-", "2.25-"]])
def test_columns_may_be_all_negative(values, tmp_path):
    table = read(tmp_path, "a;b\n" + "".join(f"{value};w\n" for value in values))
    assert table.X["a"].to_list() == [-1.5, -2.25]
    assert table.notes == (
        f"all numbers of 'a' were read as negative, {values[0]!r} as -1.5; if they are none, add "
        "--column-type a=category.",
    )


@pytest.mark.parametrize("written", ["(1,234)", "500-", "$(5.00)"])
def test_negative_numbers_are_never_to_be_read_as_missing(written, tmp_path):
    rows = "".join(f"-{k}.5;w\n" for k in range(30))
    with pytest.raises(DataFileError) as caught:
        read(tmp_path, f"a;b\n{rows}{written};w\n")
    assert str(caught.value).endswith(
        f"'a' has {written!r} in data row 31, where other rows have numbers; correct the values of "
        "'a'."
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["1", "0"], "'1', '0' in 'a' were read as true or false."),
        (["yes", "No"], "'yes', 'No' in 'a' were read as true or false."),
        (["t", "F"], "'t', 'F' in 'a' were read as true or false."),
        (["Y", "n"], "'Y', 'n' in 'a' were read as true or false."),
        (["1.0", "false"], "'1.0' in 'a' was read as true or false."),
        (["WAHR", "FALSCH"], "'WAHR', 'FALSCH' in 'a' were read as true or false."),
    ],
)
def test_booleans_of_a_model_may_be_written_in_other_ways(words, told, tmp_path):
    assert of(tmp_path, [*words, "", words[1]], "boolean") == ([True, False, None, False], (told,))


def test_other_words_are_no_booleans(tmp_path):
    assert of(tmp_path, ["TRUE", "false"], "boolean") == ([True, False], ())
    with pytest.raises(
        DataFileError, match="'a' has 'maybe' in data row 2, .* add --missing a=maybe"
    ):
        of(tmp_path, ["yes", "maybe"], "boolean")
    with pytest.raises(DataFileError) as caught:
        of(tmp_path, ["2", "3"], "boolean")
    assert str(caught.value).endswith(
        "'a' has '2' in data row 1, which is no boolean; correct the values of 'a'."
    )
