"""What predict says of columns and levels that the model does not know, and fit of its labels."""

import re

import polars as pl
import pytest

from kmeans_kernel.cli._levels import unknown_levels
from kmeans_kernel.estimators import Column
from tests.cli.test_commands import refuse, run, succeed


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unknown")
    rows = "".join(f"{k % 5},{['Rome', 'Oslo'][k % 2]},{'uv'[k % 2]}\n" for k in range(60))
    (folder / "x.csv").write_text("a,town,y\n" + rows)
    succeed("fit", folder / "x.csv", "-t", "y", "-q", "5", "-o", folder / "model")
    return folder / "model"


def test_unknown_levels_and_ignored_columns_are_noted(model, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(
        "a,town,more,y,id\n1,Ulm,x,u,1\n2,Bonn,x,u,2\n3,Ulm,x,u,3\n4,,x,u,4\n5,Oslo,x,u,5\n"
    )
    done = run("predict", model, path, "-t", "y", "--id", "id")
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 6
    assert done.stderr.replace(f"{tmp_path}/", "").splitlines() == [
        "Note: a column of new.csv that the model does not have was ignored: 'more'.",
        "Note: 'town' has values that training never had: 'Ulm' (2 rows), 'Bonn' (1 row).",
    ]
    assert run("predict", model, path, "--quiet").stderr == ""
    done = run("evaluate", model, path, "-t", "y", "--id", "id", "--drop", "more")
    assert [line[:24] for line in done.stderr.splitlines()] == ["Note: 'town' has values "]
    path.write_text("a,town,x,y\n1,Oslo,2,v\n")
    assert "2 columns of" in run("predict", model, path).stderr


def test_many_unknown_levels_are_told_in_short():
    columns = [Column(f"c{k}", "category", levels=("a",), rare=True) for k in range(14)]
    X = pl.DataFrame({f"c{k}": [*"abcdefgh", None] for k in range(14)})
    notes = unknown_levels(columns, X)
    assert notes[0] == (
        "'c0' has values that training rarely or never had: 'b' (1 row), 'c' (1 row), 'd' (1 row), "
        "'e' (1 row), 'f' (1 row) and 2 more."
    )
    assert notes[12:] == ["2 more columns have such values."]
    assert unknown_levels(columns, X.to_numpy()) == []


def labelled(tmp_path, labels):
    (tmp_path / "x.csv").write_text(
        "a,y\n" + "".join(f"{k % 7},{label}\n" for k, label in enumerate(labels))
    )
    return ["fit", tmp_path / "x.csv", "-t", "y", "-q", "1", "-o", tmp_path / "m"]


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([f"name {k}" for k in range(60)], "have 60 values in 60 rows, such as 'name 0'"),
        ([f"2020-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(100)], "such as '2020-01-01'"),
        ([f"w{k}" if k < 30 else f"v{k % 9}" for k in range(200)], "have 39 values in 200 rows"),
    ],
)
def test_labels_of_single_rows_are_no_classes(labels, told, tmp_path):
    given = labelled(tmp_path, labels)
    said = refuse(*given)
    assert told in said
    assert said.endswith(
        "which look like names or dates and not like classes; name a column of classes, or add "
        "--column-type y=category if each is a class."
    )
    assert f"{len(set(labels))} classes" in succeed(*given, "--column-type", "y=category")


def test_a_quantity_with_a_few_words_is_no_label(tmp_path):
    given = labelled(tmp_path, ["unknown" if k % 3 == 0 else f"{k}.{k:03d}" for k in range(90)])
    said = refuse(*given)
    assert re.search(
        r"the labels 'y' of \S+x.csv are 60 different numbers and 'unknown', which look like a "
        r"quantity and not like classes; add --missing y=unknown --cut-target 3 to leave those "
        r"rows out and cut the numbers into classes, or add --column-type y=category if each is a "
        r"class\.$",
        said,
    )
    assert "3 classes" in succeed(*given, "--missing", "unknown", "--cut-target", "3")


def test_few_rows_may_have_a_class_each(tmp_path):
    given = labelled(tmp_path, [f"c{k}" for k in range(10)])
    assert "10 classes" in succeed(*given)
