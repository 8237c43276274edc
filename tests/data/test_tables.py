import gzip
import io
import sys
from datetime import date

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import dump_svmlight_file

from kmeans_kernel.data.datasets._idx import encode_idx
from kmeans_kernel.data.tables import DataFileError, Reading, read_table
from kmeans_kernel.data.tables._table import is_continuous

FRAME = pl.DataFrame(
    {"height": [1.5, 2.5, 3.5, 4.5], "old": [True, False, True, True], "kind": ["a", "b", "a", "b"]}
)


@pytest.fixture(params=["csv", "parquet", "csv.gz", "no suffix"])
def path(request, tmp_path):
    path = tmp_path / f"data.{request.param}"
    if request.param == "parquet":
        FRAME.write_parquet(path)
    elif request.param == "csv.gz":
        path.write_bytes(gzip.compress(FRAME.write_csv().encode()))
    else:
        FRAME.write_csv(path)
    return path


def test_frames_are_read(path):
    table = read_table(path, target="kind")
    assert table.X.columns == ["height", "old"]
    assert table.X.rows() == [(1.5, True), (2.5, False), (3.5, True), (4.5, True)]
    assert table.y.tolist() == ["a", "b", "a", "b"]
    assert table.rows.tolist() == [0, 1, 2, 3]
    assert not table.are_images


def test_columns_are_chosen_in_order(path):
    assert read_table(path, drop=["kind", "old"]).X.columns == ["height"]
    table = read_table(path, features=["old", "height"])
    assert table.X.columns == ["old", "height"]
    assert table.y is None


def write(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_numbers_as_labels_stay_numbers(tmp_path):
    path = write(tmp_path, "x,y\n1,3\n2,4\n")
    assert read_table(path, target="y").y.tolist() == [3, 4]


def test_missing_values_are_kept_or_dropped(tmp_path):
    path = write(tmp_path, "a,b,y\n1,2,u\n3,,v\nNaN,5,u\n6,7,\n8,9,v\n")
    table = read_table(path, target="y")
    assert table.rows.tolist() == [0, 1, 2, 4]
    assert table.y.tolist() == ["u", "v", "u", "v"]
    assert table.X.rows() == [(1, 2), (3, None), (None, 5), (8, 9)]
    assert table.notes == (f"1 row was left out of {path}, without a label in the column 'y'.",)
    table = read_table(path, target="y", drop_missing=True)
    assert table.rows.tolist() == [0, 4]
    assert table.y.tolist() == ["u", "v"]
    assert table.X.rows() == [(1, 2), (8, 9)]
    assert table.n_dropped == 2
    assert read_table(path, target="y", labels=False).rows.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(DataFileError, match="every row of .* has a missing value; leave out --dro"):
        read_table(write(tmp_path, "a,b,y\n,1,u\n2,,v\n"), target="y", drop_missing=True)
    with pytest.raises(DataFileError, match="no row of .* has a label in the column 'y'"):
        read_table(write(tmp_path, "a,y\n1,\n2,NA\n"), target="y")


def test_empty_columns_are_left_out_unless_a_model_needs_them(tmp_path):
    path = write(tmp_path, "a,b,y\n1,,u\n2, ,v\n")
    table = read_table(path, target="y")
    assert table.X.columns == ["a"]
    assert table.notes == (f"columns of {path} without any value were left out: 'b'.",)
    table = read_table(path, features=["b", "a"], types={"a": "number", "b": "number"})
    assert table.X.rows() == [(None, 1), (None, 2)]
    with pytest.raises(DataFileError, match="no column of features beside 'y'"):
        read_table(write(tmp_path, "a,y\n,u\n"), target="y")


def test_identifiers_are_carried_along(path, tmp_path):
    table = read_table(path, target="kind", id_column="height")
    assert table.X.columns == ["old"]
    assert [float(one) for one in table.ids] == [1.5, 2.5, 3.5, 4.5]
    path = write(tmp_path, "id,a,y\n007,1,u\n008,2,\n009,3,v\n")
    assert read_table(path, target="y", id_column="id").ids.to_list() == ["007", "009"]
    with pytest.raises(DataFileError, match="no column 'key'"):
        read_table(path, id_column="key")
    np.savez(tmp_path / "x.npz", X=np.eye(2))
    with pytest.raises(DataFileError, match="no names to leave out or to identify rows by"):
        read_table(tmp_path / "x.npz", id_column="id")
    with pytest.raises(DataFileError, match="is npz, which has no text; leave out --missing, --d"):
        read_table(tmp_path / "x.npz", reading=Reading(decimal="comma"))
    assert read_table(tmp_path / "x.npz", reading=Reading()).ids is None


def test_labels_are_also_numbers_where_they_are(tmp_path):
    path = write(tmp_path, 'x,y,z\na,"1,5",u\nb,2,v\nc,,u\n')
    table = read_table(path, target="y")
    assert table.y.tolist() == ["1,5", "2"]
    assert table.y_numbers.tolist() == [1.5, 2]
    assert read_table(path, target="z").y_numbers is None
    assert read_table(path, target="y", types={"y": "category"}).y_numbers is None
    np.savez(tmp_path / "x.npz", X=np.eye(3), y=np.array([0.5, np.nan, 2]))
    table = read_table(tmp_path / "x.npz")
    assert table.y_numbers.tolist() == [0.5, 2]
    assert table.notes == (f"1 row was left out of {tmp_path / 'x.npz'}, without a label.",)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 1, 2] * 50, False),
        ([1.0, 1.5, 2.0, 2.5] * 20, False),
        (np.arange(100) / 7, True),
        ([0.5, 1.5], False),
        (np.arange(50), True),
        (np.repeat(np.arange(200), 20), False),
        (np.repeat(np.arange(200), 5), True),
    ],
)
def test_quantities_are_told_from_classes(labels, expected):
    assert is_continuous(np.array(labels)) == expected
    assert is_continuous(np.unique(labels), len(labels)) == expected


@pytest.mark.parametrize(
    ("content", "name", "options", "message"),
    [
        ("", "empty.csv", {}, "is empty"),
        ("a,b\n", "x.csv", {}, "column names and no rows"),
        ("a,b\n1,2\n", "x.csv", {"target": "c"}, "no column 'c'; its columns are 'a', 'b'"),
        ("a,b\n1,2\n", "x.csv", {"features": ["a", "z"]}, "no column 'z'"),
        ("a,b\n1,2\n", "x.csv", {"features": ["y", "z"]}, "no columns 'y', 'z'; its columns are"),
        ("a,b\n1,2\n", "x.csv", {"types": {"c": "category"}}, "no column 'c'"),
        ("a,b\n1,2\n", "x.csv", {"drop": ["d"]}, "no column 'd'"),
        ("y\n1\n", "x.csv", {"target": "y"}, "no column of features beside 'y'"),
        ("a,b\n1,inf\n", "x.csv", {}, "'b' is infinite in data row 1, too .*add --missing b=inf"),
        (b"\x1f\x8b\x08\0 and nothing", "x.csv.gz", {}, "not a whole gzip file"),
        (b"\x1f\x8b", "x", {}, "not a whole gzip file"),
        ("\n\n  \n", "x.csv", {}, "is empty"),
        ("a,b\n1,2\n", "x.csv", {"drop": ["a"], "features": ["a"]}, "the model needs the column"),
        ("1 1:2\n", "x.svm", {"drop": ["a"]}, "no names to leave out"),
        ("1 0:2 1:3\n", "x.svm", {}, "has a feature 0; say --zero-based"),
        ("1 1:2 4:3\n", "x.svm", {"n_features": 3}, "has 4 features, and the model knows 3"),
        ("a,b\n1,2,3\n", "x.csv", {}, "data row 1 of .* has 3 values, '1,2,3', and the header 2"),
        (b"\x89PNG\0\0\0\x0d", "x.png", {}, "binary and of no known format; csv, parquet, npz"),
        (b"ab\0cd\n1\n", "x.csv", {}, "has zero bytes, as no text has"),
        (b"PAR1 and nothing more", "x", {}, "could not be read as parquet"),
        (b"PK\x03\x04 and nothing more", "x.npz", {}, "could not be read as npz"),
        (b"PK\x03\x04 and nothing more", "x", {}, "is a ZIP archive.*unpack it first"),
        (b"PK\x03\x04 [Content_Types].xml", "x.csv", {}, "is a spreadsheet.*save the sheet as CSV"),
        (
            b"PK\x03\x04 [Content_Types].xml",
            "x.xlsx",
            {},
            "is a spreadsheet.*save the sheet as CSV",
        ),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "x.csv", {}, "is a spreadsheet of an old Excel"),
        ("<!DOCTYPE html>\n<html>", "x.csv", {}, "is a web page, which cannot be read; download"),
        ('{"a": [1, 2]}', "x.csv", {}, "is JSON, which cannot be read; convert it to CSV first"),
        ('[\n {"a": 1}]', "x", {}, "is JSON"),
        ("% title\n@RELATION iris\n", "x.csv", {}, "is an ARFF file"),
        (b"BZh91AY&SY", "x.csv", {}, "is compressed with bzip2.*decompress it first"),
        ("1 3:x\n", "x.svm", {}, "could not be read as svmlight"),
        (b"\0\0\x08\x03\0\0", "x.idx", {}, "could not be read as idx"),
    ],
)
def test_unreadable_files_are_refused_in_one_sentence(content, name, options, message, tmp_path):
    with pytest.raises(DataFileError, match=message) as caught:
        read_table(write(tmp_path, content, name), **options)
    assert "\n" not in str(caught.value)


def test_directories_and_absent_files_are_refused(tmp_path):
    with pytest.raises(DataFileError, match="is a directory"):
        read_table(tmp_path)
    with pytest.raises(DataFileError, match="there is no file"):
        read_table(tmp_path / "absent.csv")


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,y\n1,u\n2,v\n")))
    table = read_table("-", target="y")
    assert table.y.tolist() == ["u", "v"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataFileError, match="standard input is empty"):
        read_table("-")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["1", "2"], [1, 2]),
        (["007", "010"], ["007", "010"]),
        (["true", "false"], ["true", "false"]),
        (["1.50", "2"], ["1.50", "2"]),
        (["1.0", "2"], [1, 2]),
        (["-3", "0"], [-3, 0]),
        (["9007199254740993", "1"], [9007199254740993, 1]),
        (["92233720368547758080", "1"], ["92233720368547758080", "1"]),
    ],
)
def test_labels_are_kept_as_they_are_written(written, expected, tmp_path):
    lines = "".join(f"{k},{label}\n" for k, label in enumerate(written))
    path = write(tmp_path, f"x,y\n{lines}5,\n")
    assert read_table(path, target="y", drop_missing=True).y.tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.0, None], [1, 2]),
        ([float("nan"), 1.0, 2.0], [1, 2]),
        ([True, False, None], [True, False]),
        ([1, 2, None], [1, 2]),
        (["u", None, "v"], ["u", "v"]),
        (pl.Series(["u", None, "v"], dtype=pl.Categorical), ["u", "v"]),
        ([date(2020, 1, 2), None, date(2021, 1, 2)], ["2020-01-02", "2021-01-02"]),
    ],
)
def test_labels_of_parquet(values, expected, tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"x": [1, 2, 3], "y": values}).write_parquet(path)
    found = read_table(path, target="y", drop_missing=True).y
    assert found.tolist() == expected
    assert found.dtype.kind in "ibU"


@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}], [b"x", b"y"]])
def test_columns_that_are_no_labels_are_refused(values, tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"x": [1, 2], "y": values}).write_parquet(path)
    with pytest.raises(DataFileError, match="which is no label"):
        read_table(path, target="y")


def test_npz(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.eye(3), y=np.array(["a", "b", "c"]))
    table = read_table(path)
    assert table.X.shape == (3, 3)
    assert table.y.tolist() == ["a", "b", "c"]
    np.savez(path, images=np.zeros((3, 4, 5)), kinds=np.arange(3))
    table = read_table(path, target="kinds")
    assert table.are_images
    assert table.y.tolist() == [0, 1, 2]
    with pytest.raises(DataFileError, match="no array 'label'; it has 'images', 'kinds'"):
        read_table(path, target="label")
    with pytest.raises(DataFileError, match="should hold an array 'X'"):
        read_table(path)
    np.savez(path, X=np.array([[1.0, np.nan], [2.0, 3.0]]), y=np.arange(2))
    assert read_table(path, drop_missing=True).y.tolist() == [1]
    np.savez(path, X=np.eye(2), y=np.array([b"a", b"b"]))
    with pytest.raises(DataFileError, match="they should be numbers or text"):
        read_table(path)
    np.savez(path, X=np.eye(3), y=np.arange(2))
    with pytest.raises(DataFileError, match="3 rows, and labels of shape"):
        read_table(path)
    np.savez(path, X=np.array(["a"]))
    with pytest.raises(DataFileError, match="should be numbers of shape"):
        read_table(path)


def test_nothing_in_an_npz_is_unpickled(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataFileError, match="could not be read as npz"):
        read_table(path)


@pytest.mark.parametrize("name", ["data.svm", "data.txt"])
def test_svmlight(name, tmp_path, rng):
    X = rng.random((4, 5)) * (rng.random((4, 5)) > 0.5)
    X[0, 0] = 1.0
    path = tmp_path / name
    dump_svmlight_file(X, np.array([1, -1, 1, -1]), str(path), zero_based=True)
    np.testing.assert_allclose(read_table(path, zero_based=True).X, X, rtol=1e-6)
    dump_svmlight_file(X, np.array([1, -1, 1, -1]), str(path), zero_based=False)
    wide = read_table(path, n_features=9).X
    np.testing.assert_allclose(wide[:, :5], X, rtol=1e-6)
    assert wide.shape == (4, 9)
    table = read_table(path)
    np.testing.assert_allclose(table.X, X, rtol=1e-6)
    assert table.y.tolist() == [1, -1, 1, -1]
    assert table.y.dtype == np.int64


def test_a_sparse_file_too_large_to_be_dense_is_told(tmp_path):
    with pytest.raises(DataFileError, match="too many to be held dense"):
        read_table(write(tmp_path, "1 2000000000:1\n", "x.svm"))


def test_idx_images_with_the_labels_beside_them(tmp_path):
    images, labels = np.arange(24).reshape(2, 3, 4).astype(np.uint8), np.array([7, 9], np.uint8)
    path = write(tmp_path, encode_idx(images), "train-images-idx3-ubyte")
    assert read_table(path).y is None
    beside = write(tmp_path, encode_idx(labels), "train-labels-idx1-ubyte")
    table = read_table(path)
    assert table.are_images
    np.testing.assert_array_equal(table.X, images)
    assert table.y.tolist() == [7, 9]
    other = write(tmp_path, encode_idx(labels[:1]), "other")
    with pytest.raises(DataFileError, match=r"2 images, and .*other labels of \(1,\)"):
        read_table(path, target=str(other))
    assert read_table(path, target=str(beside)).y.tolist() == [7, 9]


def test_labels_may_be_needed_or_ignored(tmp_path):
    path = write(tmp_path, "a,y\n1,\n")
    with pytest.raises(DataFileError, match="which column of .* its columns are 'a', 'y'"):
        read_table(path, labels=True)
    assert read_table(path, labels=False, target="y").X.columns == ["a"]
    np.savez(tmp_path / "x.npz", X=np.eye(2))
    with pytest.raises(DataFileError, match="no labels; name the array"):
        read_table(tmp_path / "x.npz", labels=True)
    images = write(tmp_path, encode_idx(np.zeros((2, 3, 3), np.uint8)), "x-images")
    with pytest.raises(DataFileError, match="no labels; name the file"):
        read_table(images, labels=True)
    write(tmp_path, b"nonsense", "x-labels")
    assert read_table(images, labels=False).y is None


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1, 2], [2, 3]], [np.nan, np.nan], "no row of .* has a label"),
        ([[1, np.inf], [2, 3]], [0, 1], "feature 2 is infinite in data row 1"),
        ([[1, np.inf], [1e200, 3]], [0, 1], "feature 1 is 1e.200, .*, feature 2 is infinite"),
        ([[[1, np.nan]], [[2, 3]]], [0, 1], "1 row has .* data row 1, feature 2.*--drop-missing"),
        ([[1, 2], [2, 3]], [0, np.inf], "a label of .* is inf"),
    ],
)
def test_arrays_are_checked_as_tables_are(X, y, message, tmp_path):
    np.savez(tmp_path / "x.npz", X=np.array(X), y=np.array(y))
    with pytest.raises(DataFileError, match=message):
        read_table(tmp_path / "x.npz")


def test_missing_numbers_of_arrays_are_kept_or_dropped(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.array([[1, np.nan], [2, 3]]), y=np.array([0, 1]))
    np.testing.assert_array_equal(read_table(tmp_path / "x.npz").X, [[1, np.nan], [2, 3]])
    table = read_table(tmp_path / "x.npz", drop_missing=True)
    assert table.rows.tolist() == [1]
    assert table.n_dropped == 1


def test_numbers_that_are_not_whole_are_labels_as_text(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.eye(2), y=np.array([0.5, 1e30]))
    assert read_table(tmp_path / "x.npz").y.tolist() == ["0.5", "1e+30"]
    assert read_table(write(tmp_path, "0.5 1:1\n1.5 1:2\n", "x.svm")).y.tolist() == ["0.5", "1.5"]


def test_reading_tells_how_far_it_is(tmp_path, monkeypatch):
    path = write(tmp_path, "a,y\n1,u\n2,v\n")
    heard = []
    read_table(path, target="y", on_bytes=lambda *told: heard.append(told))
    assert heard == [(12, 12)]
    monkeypatch.setattr("kmeans_kernel.data.tables._content._CHUNK_BYTES", 5)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    heard.clear()
    read_table("-", target="y", on_bytes=lambda *told: heard.append(told))
    assert heard == [(5, None), (10, None), (12, None)]
