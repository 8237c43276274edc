"""Out-of-core `fit`, in blocks and on a Dask cluster, and `plan`."""

import json

import numpy as np
import polars as pl
import pytest
from distributed import LocalCluster
from sklearn.datasets import make_classification

from kmeans_kernel import load_model
from kmeans_kernel.cli import _out_of_core
from tests.cli.test_commands import refuse, run, succeed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    X, y = make_classification(600, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    frame = pl.DataFrame(X, schema=list("abcde")).with_columns(
        kind=pl.Series(np.array(["ape", "bear", "cat"])[y]), row=pl.int_range(600)
    )
    frame.write_csv(folder / "rows.csv")
    (folder / "parts").mkdir()
    for k in range(3):
        frame.slice(200 * k, 200).write_parquet(folder / "parts" / f"{k}.parquet")
    fit(folder, "rows.csv", "whole")
    return folder


def fit(folder, data, name, *more):
    return succeed("fit", folder / data, "-t", "kind", "--drop", "row", "-q", "10", "--gamma", "1",
                   "--regularization", "1e-3", "-o", folder / name, *more)  # fmt: skip


def assert_same(folder, name):
    whole, blocks = load_model(folder / "whole"), load_model(folder / name)
    assert blocks.feature_names_in_.tolist() == list("abcde")
    X = pl.read_csv(folder / "rows.csv").select(list("abcde"))
    np.testing.assert_allclose(blocks.decision_function(X), whole.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("data", ["rows.csv", "parts", "parts/0.parquet"])
def test_blocks_give_the_same_model(folder, data):
    said = fit(folder, data, "blocks", "--blocks")
    if data == "parts/0.parquet":
        assert "200 rows, 3 classes" in said
    else:
        assert "600 rows, 3 classes, 30 representatives" in said
        assert_same(folder, "blocks")
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []
    evaluated = succeed("evaluate", folder / "blocks", folder / "rows.csv", "-t", "kind", "--json")
    assert json.loads(evaluated)["error_percent"] < 30


def test_a_file_larger_than_the_memory_is_read_in_blocks(folder, monkeypatch):
    monkeypatch.setattr("kmeans_kernel.cli._out_of_core.available_memory", lambda: 1000.0)
    done = run("fit", folder / "rows.csv", "-t", "kind", "--drop", "row", "-q", "10",
               "--gamma", "1", "--regularization", "1e-3", "-o", folder / "large")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "in blocks" in done.stderr
    assert_same(folder, "large")


def test_a_cluster_reads_the_file(folder):
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        for data in ("parts", "rows.csv"):
            said = fit(folder, data, "dask", "--dask", address)
            assert "600 rows, 3 classes, 30 representatives" in said
            assert_same(folder, "dask")
        said = refuse("fit", folder / "parts", "-t", "nonsense", "-o", folder / "x", "--dask",
                      address)  # fmt: skip
        assert "has no column 'nonsense'" in said


def test_wrong_use_is_refused(folder):
    model = folder / "refused"
    rows = folder / "rows.csv"
    assert "--target" in refuse("fit", folder / "parts", "-o", model)
    assert "cannot be read in blocks" in refuse("fit", "digits", "-o", model, "--blocks")
    said = refuse("fit", rows, "-t", "nonsense", "-o", model, "--blocks")
    assert "no column 'nonsense'" in said
    said = refuse("fit", rows, "-t", "kind", "-o", model, "--blocks", "--features", "patches")
    assert "not patches" in said
    said = refuse("fit", rows, "-t", "kind", "-o", model, "--dask", "tcp://127.0.0.1:1",
                  "--drop-missing")  # fmt: skip
    assert "cannot be used with --dask" in said
    said = refuse("fit", rows, "-t", "kind", "-o", model, "--dask", "tcp://127.0.0.1:1",
                  "--checkpoint", folder / "c")  # fmt: skip
    assert "--checkpoint cannot be used with --dask" in said
    for option in (["--column-type", "a=category"], ["--cut-target", "3"]):
        said = refuse("fit", rows, "-t", "kind", "-o", model, "--blocks", *option)
        assert f"{option[0]}" in said
        assert "needs all rows at once" in said
    said = refuse("fit", rows, "-t", "a", "-o", model, "--blocks", "--drop", "kind")
    assert "600 different numbers, which look like a quantity and not like classes" in said
    assert not model.exists()


def test_columns_that_are_no_numbers_are_told_at_once(tmp_path):
    (tmp_path / "x.csv").write_text("a,my b,c,y\n1,red,3,u\n2,x,,v\n" + "3,y,z,u\n" * 3)
    given = ["fit", tmp_path / "x.csv", "-t", "y", "-o", tmp_path / "m", "--blocks"]
    said = refuse(*given)
    assert (
        "where all features must be numbers with a decimal point: 'my b' has 'red' in data row 1, "
        "'c' has 'z' in data row 3; add --drop 'my b' --drop c, --decimal comma if they have one, "
        "or read the file at once, without --blocks."
    ) in said
    pl.DataFrame({"a": [1, 2], "b": [[1], [2]], "y": ["u", "v"]}).write_parquet(tmp_path / "p.pq")
    said = refuse("fit", tmp_path / "p.pq", "-t", "y", "-o", tmp_path / "m", "--blocks")
    assert "'b' holds list; add --drop b" in said
    (tmp_path / "x.csv").write_bytes("größe,y\n1,u\n2,v\n".encode("cp1252"))
    assert "is read in blocks, and for that must be text in UTF-8" in refuse(*given)


@pytest.mark.parametrize("code", ["01067", "9007199254740993"])
def test_identifiers_are_no_numbers_in_blocks(code, tmp_path):
    rows = "".join(f"{k},{code if k == 7 else 10000 + k},{'uv'[k % 2]}\n" for k in range(20))
    (tmp_path / "x.csv").write_text("a,zip,y\n" + rows)
    given = ["fit", tmp_path / "x.csv", "-t", "y", "-o", tmp_path / "m", "--blocks"]
    said = refuse(*given)
    assert f"'zip' has '{code}' in data row 8, an identifier; add --drop zip, --decimal" in said
    assert "20 rows" in run(*given, "--drop", "zip").stdout


def test_blocks_take_a_decimal_comma_and_leave_out_rows_without_a_label(tmp_path):
    rows = "".join(f"{k % 7},5;{k % 3};{'uv'[k % 2] if k % 10 else ''}\n" for k in range(200))
    (tmp_path / "x.csv").write_text("sep=;\na;b;y\n" + rows)
    given = ["fit", tmp_path / "x.csv", "-t", "y", "-q", "5", "-o", tmp_path / "m", "--blocks"]
    assert "'a' has '0,5' in data row 1" in refuse(*given)
    assert "180 rows, 2 classes" in succeed(*given, "--decimal", "comma")
    weighted = succeed(*given, "--decimal", "comma", "--class-weight", "u=2", "--id", "b", "--json")
    found = json.loads(weighted)
    assert found["rows"] == 180
    assert found["feature_names"] == ["a"]
    assert found["most_frequent_class"] == "u"  # 80 rows of weight 2, 100 of weight 1
    assert found["most_frequent_error"] == pytest.approx(100 / 260)


def test_rows_with_missing_values(folder, tmp_path):
    frame = pl.read_csv(folder / "rows.csv").with_columns(
        a=pl.when(pl.col("row") % 50 == 0).then(None).otherwise(pl.col("a"))
    )
    frame.write_parquet(tmp_path / "holes.parquet")
    given = ["fit", tmp_path / "holes.parquet", "-t", "kind", "--drop", "row", "-q", "5", "-o",
             tmp_path / "m", "--blocks"]  # fmt: skip
    assert "missing value" in refuse(*given)
    assert "588 rows" in succeed(*given, "--drop-missing")


def test_plan():
    sizes = ["--rows", "1e9", "--features", "768", "--classes", "1000", "-q", "200"]
    said = succeed("plan", *sizes, "--workers", "64")
    assert "200,000" in said
    assert "bottleneck: fit" in said
    said = succeed("plan", *sizes, "--workers", "64", "--memory", "32")
    assert "bottleneck: memory" in said
    found = json.loads(succeed("plan", *sizes, "--fit-on", "representatives", "--json"))
    assert found["seconds"]["fit"] == 0
    assert found["operations"]["kmeans_iteration"] == 2 * 1e9 * 200 * 768
    refused = run("plan", "--rows", "0", "--features", "5", "--classes", "3")
    assert refused.exit_code == 2


def test_blocks_of_csv_are_read_as_the_whole_file(tmp_path, monkeypatch):
    """Semicolons, labels like 007, markers of missing values, integers before floats."""
    monkeypatch.setattr("kmeans_kernel.data.tables._blocks._TEXT_AT_A_TIME", 500)
    rng = np.random.default_rng(0)
    lines = ["a;b;name;kind"]
    for k in range(300):
        a = k % 9 if k < 200 else f"{rng.normal():.3f}"
        missing = "NA" if k == 150 else f"{rng.normal() + k % 2:.4f}"
        lines.append(f'{a};{missing};"two\nlines";00{k % 2}')
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(lines) + "\n")
    given = ["fit", file, "-t", "kind", "--drop", "name", "--drop-missing", "-q", "5", "--gamma",
             "1", "--regularization", "1e-3"]  # fmt: skip
    for name, more in (("whole", []), ("blocks", ["--blocks"])):
        said = succeed(*given, "-o", tmp_path / name, *more)
        assert "299 rows, 2 classes" in said
    whole, blocks = load_model(tmp_path / "whole"), load_model(tmp_path / "blocks")
    assert blocks.classes_.tolist() == whole.classes_.tolist() == ["000", "001"]
    X = np.random.default_rng(1).normal(size=(50, 2))
    frame = pl.DataFrame(X, schema=["a", "b"])
    np.testing.assert_allclose(
        blocks.decision_function(frame), whole.decision_function(frame), atol=1e-6
    )


def test_inputs_are_not_overwritten(folder):
    before = (folder / "parts" / "0.parquet").read_bytes()
    said = refuse("fit", folder / "parts", "-t", "kind", "-o", folder / "parts" / "0.parquet")
    assert "is what is read" in said
    assert (folder / "parts" / "0.parquet").read_bytes() == before


def test_a_damaged_file_in_a_directory_is_named(folder, tmp_path):
    (tmp_path / "0.parquet").write_bytes((folder / "parts" / "0.parquet").read_bytes())
    (tmp_path / "1.parquet").write_bytes(b"PAR1 nonsense")
    said = refuse("fit", tmp_path, "-t", "kind", "-o", tmp_path / "m")
    assert "1.parquet could not be read as parquet" in said
    assert "--checkpoint is for" in refuse("fit", "digits", "-o", tmp_path / "m", "--checkpoint",
                                           tmp_path / "c")  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "used", "free"),
    [("1000\n", "400\n", 600), ("max\n", "400\n", float("inf")), (None, None, float("inf"))],
)
def test_the_limit_of_a_container_counts(limit, used, free, tmp_path, monkeypatch):
    files = [tmp_path / "max", tmp_path / "current"]
    for file, text in zip(files, (limit, used), strict=True):
        if text is not None:
            file.write_text(text)
    monkeypatch.setattr(_out_of_core, "_CGROUP_FILES", [tuple(map(str, files))])
    monkeypatch.setattr(_out_of_core, "_available_on_machine", lambda: 1e9)
    assert _out_of_core.available_memory() == min(free, 1e9)
