"""CSV in the dialects of the wild: each is read right, or refused with a sentence that helps."""

from datetime import date, datetime

import numpy as np
import pytest

from kmeans_kernel.data.tables import DataFileError
from tests.data.tables.reading import notes_of, read, types_of

# Dialect: content, columns, their types (i: Int64, f: Float64, b: Boolean, s: String, d: Date,
# t: Datetime), rows, and the notes.
READ = {
    "commas": ("a,b,c\n1,2.5,x\n3,4.5,y\n", "a b c", "ifs", [(1, 2.5, "x"), (3, 4.5, "y")], []),
    "semicolons and decimal commas": (
        "a;b;c\n1,5;-2,25;x\n3;4,5;y\n", "a b c", "ffs", [(1.5, -2.25, "x"), (3, 4.5, "y")], []),
    "tabs": ("a\tb\n1\tx, y\n2\tz\n", "a b", "is", [(1, "x, y"), (2, "z")], []),
    "bars": ("a|b\n1|x;y\n2|z\n", "a b", "is", [(1, "x;y"), (2, "z")], []),
    "white space, aligned": (
        "  a   bc d\n  1  2.5 x\n 10 -3.0 y\n", "a bc d", "ifs", [(1, 2.5, "x"), (10, -3, "y")],
        []),
    "colons": ("a:b\n1:2\n3:4\n", "a b", "ii", [(1, 2), (3, 4)], []),
    "the separator declared for Excel": (
        "sep=;\na;b\n1,5;2,5\n", "a b", "ff", [(1.5, 2.5)], []),
    "spaces after commas": (
        'a, b, c\n1, "x, y", 2\n3, z , 4\n', "a b c", "isi", [(1, "x, y", 2), (3, "z", 4)], []),
    "all quoted": ('"a","b"\n"1","x"\n"2","y"\n', "a b", "is", [(1, "x"), (2, "y")], []),
    "single quotes": (
        "'a','b'\n'x, y','1'\n'it','2'\n", "a b", "si", [("x, y", 1), ("it", 2)], []),
    "apostrophes that are letters": (
        "a,b\nit's,1\nlet's,2\n", "a b", "si", [("it's", 1), ("let's", 2)], []),
    "quoted line breaks and doubled quotes": (
        'a,b\n"two\nlines\n\nmore",1\n"x ""q"", y",2\n', "a b", "si",
        [("two\nlines\n\nmore", 1), ('x "q", y', 2)], []),
    "quotes escaped by backslashes": (
        'a,b\n"say \\"hi\\", you",1\n"x",2\n', "a b", "si", [('say "hi", you', 1), ("x", 2)], []),
    "separators escaped by backslashes": (
        "a,b\nx\\, y,1\nz,2\n", "a b", "si", [("x, y", 1), ("z", 2)], []),
    "inches": ('a,b\n5" rod,1\n"6, pipe",2\n', "a b", "si", [('5" rod', 1), ("6, pipe", 2)], []),
    "quotation marks that are letters": (
        'a\tb\n"x\t1\n"y\t2\n', "a b", "si", [('"x', 1), ('"y', 2)], []),
    "line ends of Windows": ("a,b\r\n1,x\r\n2,y\r\n", "a b", "is", [(1, "x"), (2, "y")], []),
    "line ends of the old Mac": ("a,b\r1,x\r2,y\r", "a b", "is", [(1, "x"), (2, "y")], []),
    "line ends of the old Mac with breaks in values": (
        'a,b\r1,"x\nz"\r2,y\r', "a b", "is", [(1, "x\nz"), (2, "y")], []),
    "line ends doubled by Windows": ("a,b\r\r\n1,x\r\r\n2,y\r\r\n", "a b", "is",
                                     [(1, "x"), (2, "y")], []),
    "no line end at the end": ("a,b\n1,x\n2,y", "a b", "is", [(1, "x"), (2, "y")], []),
    "blank lines": ("\n\na,b\n\n1,x\n  \n2,y\n\n\n", "a b", "is", [(1, "x"), (2, "y")], []),
    "the end mark of DOS": ("a,b\r\n1,x\r\n\x1a", "a b", "is", [(1, "x")], []),
    "UTF-8 with a byte order mark": (
        "größe,b\n1,ä\n".encode("utf-8-sig"), "größe b", "is", [(1, "ä")], []),
    "a byte order mark before quotes": (
        b'\xef\xbb\xbf"a","b"\n1,x\n', "a b", "is", [(1, "x")], []),
    "two byte order marks": (b"\xef\xbb\xbf\xef\xbb\xbfa,b\n1,x\n", "a b", "is", [(1, "x")], []),
    "UTF-16 of Excel": (
        "größe\tb\r\n1\tä\r\n".encode("utf-16"), "größe b", "is", [(1, "ä")], []),
    "UTF-16, big end first": (
        b"\xfe\xff" + "a,ä\n1,ö\n".encode("utf-16-be"), "a ä", "is", [(1, "ö")], []),
    "UTF-16 without mark": ("größe,b\n1,ä\n".encode("utf-16-le"), "größe b", "is", [(1, "ä")], []),
    "UTF-16 without mark, big end first": (
        "größe,b\n1,ä\n".encode("utf-16-be"), "größe b", "is", [(1, "ä")], []),
    "UTF-32": ("größe,b\n1,ä\n".encode("utf-32"), "größe b", "is", [(1, "ä")], []),
    "Latin-1": (
        "Größe;Preis\nänderbar;1,5\n".encode("latin-1"), "Größe Preis", "sf", [("änderbar", 1.5)],
        ["data.csv is not UTF-8 and was read as Windows-1252 (Latin-1), for example 'Größe'; if "
         "words are wrong, name the encoding with --encoding."]),
    "Windows-1252": (
        "a;b\n€ 5;“x”\n€ 7,50;é\n".encode("cp1252"), "a b", "fs", [(5, "“x”"), (7.5, "é")],
        ["data.csv is not UTF-8 and was read as Windows-1252 (Latin-1), for example '€'; if words "
         "are wrong, name the encoding with --encoding."]),
    "Mac Roman": (
        "Größe\tb\rä\t1\r".encode("mac_roman"), "Größe b", "si", [("ä", 1)],
        ["data.csv is not UTF-8 and was read as Mac Roman, for example 'Größe'; if words are "
         "wrong, name the encoding with --encoding."]),
    "damaged UTF-8": (
        "a,b\nä,ö\nü,".encode() + b"\xe9\n", "a b", "ss", [("ä", "ö"), ("ü", "é")],
        ["1 byte of data.csv is not UTF-8, as its other letters are, and was read as Windows-1252; "
         "if words are wrong, name the encoding with --encoding."]),
    "comments": ("# from the lab\n# 2020, second run\na,b\n1,x\n2,y\n", "a b", "is",
                 [(1, "x"), (2, "y")], []),
    "a header that is a comment": ("# title\n# a b\n1.5 2\n3.5 4\n", "a b", "fi",
                                   [(1.5, 2), (3.5, 4)], []),
    "titles before the header": (
        "Sales of 2020\nall shops\n\na;b;c\n1,5;x;2\n2;y;3\n", "a b c", "fsi",
        [(1.5, "x", 2), (2, "y", 3)],
        ["the lines before the header of data.csv were left out, the first is 'Sales of 2020'."]),
    "titles filled up with separators": (
        "Sales of 2020,,\n,,\na,b,c\n1,x,2\n2,y,3\n", "a b c", "isi", [(1, "x", 2), (2, "y", 3)],
        ["the lines before the header of data.csv were left out, the first is 'Sales of 2020'."]),
    "the World Bank": (
        '"Data Source","WDI",\n\n"Updated","2020-07-01",\n\n"Country","Code","1960","1961",\n'
        '"A","X","1.5","2",\n"B","Y","","3",\n',
        "Country Code 1960 1961", "ssfi", [("A", "X", 1.5, 2), ("B", "Y", None, 3)],
        ["the lines before the header of data.csv were left out, the first is 'Data Source'.",
         "columns of data.csv without any value were left out: 'unnamed_5'."]),
    "lines below the rows": (
        "a,b,c\n1,x,2\n2,y,3\n\nSource: the office\nUpdated in May\n", "a b c", "isi",
        [(1, "x", 2), (2, "y", 3)],
        ["2 lines below the rows were left out: 'Source: the office'."]),
    "row names of R": (
        '"a" "b"\n"1" 1.5 "x"\n"2" 2.5 "y"\n', "a b", "fs", [(1.5, "x"), (2.5, "y")],
        ["the first column of data.csv, which counts the rows, was left out."]),
    "row numbers of pandas": (
        ",a,b\n0,5,x\n1,6,y\n", "a b", "is", [(5, "x"), (6, "y")],
        ["the first column of data.csv, which counts the rows, was left out."]),
    "columns without a name": (
        "a,,c\n5,7,x\n6,8,y\n", "a unnamed_2 c", "iis", [(5, 7, "x"), (6, 8, "y")],
        ["columns of data.csv without a name are features called 'unnamed_2'; leave them out with "
         "--drop if they are none."]),
    "a first column without a name that does not count": (
        ",a\n7,x\n5,y\n", "unnamed_1 a", "is", [(7, "x"), (5, "y")],
        ["columns of data.csv without a name are features called 'unnamed_1'; leave them out with "
         "--drop if they are none."]),
    "separators at the ends of all lines": (
        "a,b,\n1,x,\n2,y,\n", "a b", "is", [(1, "x"), (2, "y")],
        ["columns of data.csv without any value were left out: 'unnamed_3'."]),
    "separators at the ends of the rows": (
        "a;b\n1;x;\n2;y;\n", "a b", "is", [(1, "x"), (2, "y")],
        ["columns of data.csv without any value were left out: 'unnamed_3'."]),
    "separators at the ends of some rows": (
        "a,b\n1,x\n2,y,\n3,z\n", "a b", "is", [(1, "x"), (2, "y"), (3, "z")], []),
    "values that lack at the end": (
        "a,b,c\n1,2,3\n4,5\n6,7,8\n", "a b c", "iii", [(1, 2, 3), (4, 5, None), (6, 7, 8)],
        ["1 row has fewer values than the header of data.csv has names, the first is data row 2; "
         "the values that lack at the end are missing."]),
    "columns of the same name": (
        "a,b,a\n1,x,2\n", "a b a_2", "isi", [(1, "x", 2)],
        ["columns of the same name got a number, as in name_2: 'a'."]),
    "a repeated header": (
        "a,b\n1,x\na,b\n2,y\n", "a b", "is", [(1, "x"), (2, "y")],
        ["1 row that repeats the header was left out."]),
    "a table of a database": (
        " a | b \n---+---\n 1 | x \n 2 | y \n", "a b", "is", [(1, "x"), (2, "y")], []),
    "a table of Markdown": (
        "| a | b |\n|---|:-:|\n| 1 | x |\n| 2 | y |\n", "a b", "is", [(1, "x"), (2, "y")],
        ["columns of data.csv without any value were left out: 'unnamed_1', 'unnamed_4'."]),
    "text as formulas": (
        'a,b\n="007",="x"\n="010","=""y"""\n', "a b", "ss", [("007", "x"), ("010", "y")], []),
    "headers with spaces and breaks": (
        '"a" , " b c ","d\nlong"\n1,x,2\n', "a|b c|d\nlong", "isi", [(1, "x", 2)], []),
    "years as names below a title": (
        "Title\n\nRegion;here\n;1985;1993;2000\nA;1;2;3\nB;2;3;4\n", "unnamed_1|1985|1993|2000",
        "siii", [("A", 1, 2, 3), ("B", 2, 3, 4)],
        ["the lines before the header of data.csv were left out, the first is 'Title'.",
         "columns of data.csv without a name are features called 'unnamed_1'; leave them out with "
         "--drop if they are none."]),
    "names that are values of other columns": (
        "a,b,c\n1,b,c\n2,b,c\n", "a b c", "iss", [(1, "b", "c"), (2, "b", "c")], []),
    "years as names": ("country,2019,2020\nA,1,2\nB,2,3\n", "country 2019 2020", "sii",
                       [("A", 1, 2), ("B", 2, 3)], []),
    "one column": ("a\n1\n\n3\n\n", "a", "i", [(1,), (None,), (3,)], []),
    "names with separators": (
        "Weight, kg;Height, cm;c\n1,5;2;u\n", "Weight, kg|Height, cm|c", "fis", [(1.5, 2, "u")],
        []),
    "names with other separators, quoted": (
        '"a;b;c;d",e\n1,x\n', "a;b;c;d|e", "is", [(1, "x")], []),
    "a database dump": ("id\tv\n\\N\tx\n2\t\\N\n", "id v", "is", [(None, "x"), (2, None)], []),
    "dates and times of Excel": (
        "on;at\n31.12.2020;1/13/2020 5:30 PM\n1.2.2021;12/1/2020 12:00 AM\n", "on at", "dt",
        [(date(2020, 12, 31), datetime(2020, 1, 13, 17, 30)),
         (date(2021, 2, 1), datetime(2020, 12, 1))], []),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_dialects_are_read(name, tmp_path):
    content, columns, types, rows, notes = READ[name]
    table = read(tmp_path, content)
    assert table.X.columns == (columns.split("|") if "|" in columns else columns.split())
    assert types_of(table) == types
    assert table.X.rows() == rows
    assert notes_of(table, tmp_path) == notes


REFUSED = {
    "no header": (
        "1,2,3\n4,5,6\n", {},
        "the first line of data.csv looks like values, '1', '2', '3', and not like the names of "
        "the columns; say --no-header if it has none, else --header."),
    "no header of words": (
        "p,x,s,n\ne,x,s,y\np,b,s,w\n", {}, "say --no-header if it has none, else --header."),
    "no header of one of each": (
        "1,a,True,2015-11-04,4:15\n2,b,False,2015-11-05,6:18\n", {}, "say --no-header if it has "),
    "no header of words and numbers": (
        "39, State-gov, 77516, Bachelors\n50, State-gov, 83311, Bachelors\n38, Private, 215646, "
        "HS\n", {}, "say --no-header if it has none, else --header."),
    "too many values": (
        "a,b\n1,x\n2,y,z\n3,u,v\n", {},
        "data row 2 of data.csv has 3 values, '2,y,z', and the header 2 names (2 rows are too "
        "long); put values that contain the separator ',', maybe as a decimal comma, between "
        "quotation marks."),
    "decimal commas between commas": (
        "a,b\n1,5,2,5\n2,5,3,5\n", {}, "data row 1 of data.csv has 4 values, '1,5,2,5', and the "),
    "a line break without quotes": (
        "a,b,c\n1,2,3\n4,some\ntext,5\n", {},
        "data rows 2 and 3 of data.csv look like one row with a line break, '4,some'; put values "
        "that contain line breaks between quotation marks."),
    "cut off": (
        "a,b,c\n1,2,3\n4,5", {},
        "data.csv ends in the middle of data row 2, after 2 of 3 values; copy the file again, or "
        "delete that row."),
    "a header with a separator too many": (
        "a,b,x,y\n1,2,3\n4,5,6\n", {},
        "all rows of data.csv have 3 values, and the header 4 names; put names that contain the "
        "separator between quotation marks."),
    "a quotation mark without its partner": (
        'a,b\n1,"x, y"\n2,"z\n3,u\n', {},
        "data row 2 of data.csv has a quotation mark without its partner; correct it, or double it "
        "if it is a letter like any other."),
    "a quotation mark without its partner in the header": (
        '"a,b\n1,x\n', {},
        "the first line of data.csv has a quotation mark without its partner; correct it."),
    "Cyrillic": (
        "город,b\nМосква,1\nСанкт-Петербург,2\n".encode("cp1251"), {},
        "data.csv is not text in UTF-8, and does not look Western European; name its encoding, for "
        "example --encoding shift_jis, gb18030, cp1251 or cp850, or save it in UTF-8."),
    "Japanese": ("都市,b\n東京,1\nデータ,2\n".encode("shift_jis"), {}, "does not look Western"),
    "an unknown encoding": (
        "a\n1\n", {"encoding": "utf-99"},
        "there is no encoding 'utf-99'; use for example --encoding utf-8, cp1252, utf-16, "
        "shift_jis or gb18030."),
    "the wrong encoding": (
        "größe\n1\n".encode("cp1252"), {"encoding": "utf-8"},
        "data.csv is not text in utf-8; save it in UTF-8, or name its encoding with --encoding."),
    "thousands or decimals": (
        "a;b\n1.234;x\n2.500;y\n", {},
        "a column of data.csv cannot be read as it is: 'a' may have decimals or thousands, as in "
        "'1.234' in data row 1; add --decimal comma if '1.234' is 1234, or --decimal point if it "
        "is 1.234."),
    "words among numbers": (
        "a,b,c\n" + "".join(f"{k},{k}.5,{k}\n" for k in range(20)) + "red,<1,\n7,blue sky,3\n", {},
        "2 columns of data.csv cannot be read as they are: 'a' has 'red' in data row 21, where "
        "other rows have numbers, 'b' has '<1' in data row 21, where other rows have numbers; add "
        "--missing a=red and correct the values of 'b'."),
    "only comments": ("# a\n# b\n", {}, "data.csv has comments and no rows."),
    "only a header": ("a,b\n", {}, "data.csv has column names and no rows."),
    "nothing": ("", {}, "data.csv is empty; it should hold rows to train on or to classify."),
    "nothing in UTF-16": ("\n".encode("utf-16"), {}, "data.csv is empty; it should hold rows to "),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_dialects_are_refused_in_one_sentence(name, tmp_path):
    content, options, sentence = REFUSED[name]
    with pytest.raises(DataFileError) as caught:
        read(tmp_path, content, **options)
    told = str(caught.value).replace(f"{tmp_path}/", "")
    assert sentence in told
    assert told.endswith(".")
    assert "\n" not in told


@pytest.mark.parametrize(
    ("content", "options", "columns", "rows"),
    [
        ("1,2\n3,4\n", {"header": False}, ["column_1", "column_2"], [(1, 2), (3, 4)]),
        ("1,2\n3,4\n", {"header": True}, ["1", "2"], [(3, 4)]),
        ("1,2\n3,4\n", {"features": ["2", "1"]}, ["2", "1"], [(4, 3)]),
        ("# by hand\nx y\n1 2\n", {"header": False}, ["column_1", "column_2"],
         [("x", "y"), ("1", "2")]),
        ("a;b\n1.234;x\n", {"decimal": "comma"}, ["a", "b"], [(1234, "x")]),
        ("a;b\n1.234;x\n", {"decimal": "point"}, ["a", "b"], [(1.234, "x")]),
        ("город,b\nМосква,1\n".encode("cp1251"), {"encoding": "cp1251"}, ["город", "b"],
         [("Москва", 1)]),
        ("都市,b\n東京,1\n".encode("shift_jis"), {"encoding": "shift_jis"}, ["都市", "b"],
         [("東京", 1)]),
        ("a,b\nred,x\n1,x\n", {"missing": ["red"]}, ["a", "b"], [(None, "x"), (1, "x")]),
        ("a,b\n1,x\n", {"drop": ["b"]}, ["a"], [(1,)]),
        ("a,b\n1,x\n", {"types": {"b": "drop"}}, ["a"], [(1,)]),
    ],
)  # fmt: skip
def test_options_settle_what_a_file_does_not_tell(content, options, columns, rows, tmp_path):
    table = read(tmp_path, content, **options)
    assert table.X.columns == columns
    assert table.X.rows() == rows


def test_the_dialect_is_told_by_the_names_that_a_model_needs(tmp_path):
    """In one column of numbers with decimal commas the comma looks like a separator."""
    table = read(tmp_path, "x\n1,5\n2,5\n", features=["x"], types={"x": "number"})
    assert table.X.rows() == [(1.5,), (2.5,)]
    assert table.X.columns == ["x"]


def test_text_of_unknown_suffix_is_told_by_its_content(tmp_path):
    assert read(tmp_path, "a\tb\n1\tx\n", "data.tsv").X.rows() == [(1, "x")]
    assert read(tmp_path, "a;b\n1,5;x\n".encode("utf-16"), "data").X.rows() == [(1.5, "x")]
    assert read(tmp_path, "a;b\n1,5;x\n".encode("utf-16-le"), "data.txt").X.rows() == [(1.5, "x")]


def test_a_large_file_is_cut_as_a_small_one(tmp_path, monkeypatch):
    """Quotation marks, line breaks and separators on the borders of chunks."""
    rng = np.random.default_rng(0)
    words = ["x", "a,b", 'say "hi"', "two\nlines", "", "é"]
    rows = [tuple(rng.choice(words, 3)) for _ in range(200)]
    quoted = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in rows]
    content = "a,b,c\n" + "".join(",".join(row) + "\n" for row in quoted)
    for size in (1, 2, 7, 64, 1 << 20):
        monkeypatch.setattr("kmeans_kernel.data.tables._csv._records._CHUNK_BYTES", size)
        table = read(tmp_path, content, types=dict.fromkeys("abc", "category"))
        assert table.X.rows() == [tuple(cell or None for cell in row) for row in rows]
