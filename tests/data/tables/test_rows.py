"""Rows and columns of CSV that are no data, or are lost: blank cells, comments, indices, names."""

import pytest

from kmeans_kernel.data.tables import DataFileError, Format, TableBlocks
from tests.data.tables.reading import notes_of, read


def fixed_width(n_rows, blank=()):
    """Return a table in columns of equal width, with blank cells in some rows."""
    rows = [f"{k:<6}{'' if k in blank else k % 7:<5}{k % 3}.5  w{k % 2}" for k in range(n_rows)]
    return "\n".join(["id    n    x    word", *rows]) + "\n"


@pytest.mark.parametrize(("row", "n_rows"), [(3, 40), (0, 40), (1500, 2000)])
@pytest.mark.parametrize("target", [None, "word"])
def test_blank_cells_between_white_space_are_refused(row, n_rows, target, tmp_path):
    assert len(read(tmp_path, fixed_width(n_rows)).X) == n_rows
    with pytest.raises(DataFileError) as caught:
        read(tmp_path, fixed_width(n_rows, [row]), "data.txt", target=target)
    assert str(caught.value).replace(f"{tmp_path}/", "") == (
        f"data row {row + 1} of data.txt has 3 values between spaces, and the header 4 names: a "
        "cell is blank, or a value has a space in it; save the table as CSV, or write NA into "
        "blank cells and values with spaces between quotation marks."
    )


def test_many_blank_cells_are_told_by_the_names(tmp_path):
    with pytest.raises(DataFileError, match=r"\(30 rows differ\): a cell is blank, or a value has"):
        read(tmp_path, fixed_width(40, range(10, 40)), "data.txt", target="word")


def test_words_between_white_space_are_told_by_the_names(tmp_path):
    rows = "".join(f"{k:<6}red   x    {'u' if k != 1200 else '':<5}w{k % 2}\n" for k in range(1500))
    content = f"id    a     b    c    word\n{rows}"
    with pytest.raises(DataFileError, match="data row 1201 of .* has 4 values between spaces, and"):
        read(tmp_path, content, "data.txt", target="word")
    content = "\n".join(content.splitlines()[:1000]) + "\n"
    assert read(tmp_path, content, "data.txt", target="word").X.columns == ["id", "a", "b", "c"]


def test_spaces_in_values_between_white_space_are_refused(tmp_path):
    content = fixed_width(40) + "40    1    2.5  two words\n"
    with pytest.raises(DataFileError, match="data row 41 of .* has 5 values between spaces, and"):
        read(tmp_path, content, "data.txt")


@pytest.mark.parametrize(
    ("header", "index", "columns", "told"),
    [
        ("Unnamed: 0,a", "{k},", ["a"], "'Unnamed: 0'"),
        (",Unnamed: 0,a", "{k},{k},", ["a"], "'unnamed_1', 'Unnamed: 0'"),
        ("Unnamed: 0.1,Unnamed: 0,a", "{k},{j},", ["a"], "'Unnamed: 0.1', 'Unnamed: 0'"),
        ("Unnamed: 0,a", "{j},", ["a"], "'Unnamed: 0'"),
        ("Unnamed: 0,a", "{m},", ["Unnamed: 0", "a"], None),
        ("a,Unnamed: 0", "{k},", ["a", "Unnamed: 0"], None),
    ],
)
def test_row_indices_that_were_saved_again_are_left_out(header, index, columns, told, tmp_path):
    rows = "".join(index.format(k=k, j=3 * k + 1, m=k * 7 % 5) + f"{k % 4}.5\n" for k in range(9))
    table = read(tmp_path, f"{header}\n{rows}")
    assert table.X.columns == columns
    assert notes_of(table, tmp_path) == (
        [f"columns of data.csv that count the rows were left out: {told}."] if told else []
    )


def test_a_target_must_be_one_column(tmp_path):
    content = "y,a,y\nu,1,u\nv,2,v\n"
    with pytest.raises(DataFileError) as caught:
        read(tmp_path, content, target="y")
    assert str(caught.value).replace(f"{tmp_path}/", "") == (
        "several columns of data.csv are called 'y', so that --target may mean either; rename the "
        "others, or delete them."
    )
    assert read(tmp_path, content, target="y", labels=False).X.columns == ["a", "y_2"]
    with pytest.raises(DataFileError, match="several columns of .* are called 'y'"):
        list(TableBlocks(tmp_path / "data.csv", Format.csv, "y", [], drop_missing=False))


def test_comments_among_the_rows_are_left_out(tmp_path):
    table = read(tmp_path, "a,b,c\n1,x,u\n# by hand\n# 1, 2\n#3,y,v\n2,y,w\n")
    assert table.X["a"].to_list() == ["1", "#3", "2"]
    assert notes_of(table, tmp_path)[0] == (
        "2 lines that begin with # were left out as comments: '# by hand'."
    )
    table = read(tmp_path, "a,b\n1,x\n# by hand\n2,y\n")
    assert table.X.rows() == [(1, "x"), (2, "y")]
    assert notes_of(table, tmp_path) == [
        "1 line that begins with # was left out as comments: '# by hand'."
    ]
    assert len(read(tmp_path, "a\n#1\n#2\n").X) == 2
    assert len(read(tmp_path, "a,b\n#1,x\n#2\n#3,z\n").X) == 3


def test_backslashes_stay_beside_escaped_quotation_marks(tmp_path):
    rows = "".join(f'"say \\"hi\\", ok",C:\\temp\\new,\\\\server,{k}\n' for k in range(3))
    table = read(tmp_path, f"n,path,x,k\n{rows}")
    assert table.X.rows() == [('say "hi", ok', "C:\\temp\\new", "\\server", k) for k in range(3)]


def test_row_names_of_r_between_commas(tmp_path):
    rows = "".join(f'"{k + 1}",{k}.5,"w"\n' for k in range(5))
    table = read(tmp_path, f'"a","b"\n{rows}')
    assert table.X.columns == ["a", "b"]
    assert table.X["a"].to_list() == [0.5, 1.5, 2.5, 3.5, 4.5]
    rows = "".join(f'"r{k}",{k}.5,"w"\n' for k in range(5))
    assert read(tmp_path, f'"a","b"\n{rows}').X.columns == ["unnamed_1", "a", "b"]
    with pytest.raises(DataFileError, match="maybe as a decimal comma"):
        read(tmp_path, "a,b\n1,5,w\n2,5,w\n4,5,w\n")


def test_utf_32_is_read_whatever_the_file_is_called(tmp_path):
    for mark, encoding in ((b"\0\0\xfe\xff", "utf-32-be"), (b"\xff\xfe\0\0", "utf-32-le")):
        content = mark + "a\tb\n1\tß\n".encode(encoding)
        assert read(tmp_path, content, "data.txt").X.rows() == [(1, "ß")]


def test_an_identifier_is_no_target(tmp_path):
    with pytest.raises(
        DataFileError, match="the column 'y' of .* cannot be both --target and --id"
    ):
        read(tmp_path, "a,y\n1,u\n2,v\n", target="y", id_column="y")


def test_a_model_with_names_needs_a_header(tmp_path):
    with pytest.raises(DataFileError) as caught:
        read(tmp_path, "1,x\n2,y\n", header=False, features=["a", "b"])
    assert str(caught.value).replace(f"{tmp_path}/", "") == (
        "data.csv is read without a header, and the model takes its columns by name: write 'a', "
        "'b' in the first line, and leave out --no-header."
    )
