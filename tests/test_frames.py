"""The parts of experiments.frames that need no data packages."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from experiments import frame_tables, frames, tables
from kmeans_kernel.report import _records as records


@pytest.fixture
def people():
    """Return 60 rows with every kind of column, a missing cell in most."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age [years]": rng.integers(20, 80, 60),
            "income": np.where(np.arange(60) % 7 == 0, np.nan, rng.normal(3e4, 1e4, 60)),
            "town": pd.Series(rng.choice(["A", "B", "C"], 60)).where(np.arange(60) % 5 > 0),
            "size": pd.Categorical(rng.choice(["small", "big"], 60)),
            "member": rng.random(60) < 0.5,
            "since": pd.date_range("2020-01-01", periods=60, tz="UTC"),
        }
    )
    return X, (X["age [years]"] > 50).to_numpy().astype(int)


def test_sides_do_not_overlap_and_agree_with_the_other_tables():
    assert set(frames.DEVELOPMENT) | set(frames.HELD_OUT) == set(frames.TABLES)
    assert not set(frames.DEVELOPMENT) & set(frames.HELD_OUT)
    parts = [frame_tables.POOL, frame_tables.FIXED, frame_tables.ADDED]
    names = [name for part in parts for side in part.values() for name in side]
    assert len(frames.TABLES) == len(names)  # no name twice
    assert not set(frames.DEVELOPMENT) & set(tables.HELD_OUT)
    assert not (set(tables.TABLES) - set(tables.HELD_OUT)) & set(frames.HELD_OUT)


def test_of_eight_names_three_are_for_development():
    names = ["h", "B", "a", "C", "d", "E", "f", "G", "i"]
    assert frame_tables.for_development(names) == ["a", "d", "G", "i"]


def test_a_table_is_split_by_class(people, monkeypatch):
    monkeypatch.setitem(frames.TABLES, "people", lambda: people)
    X_train, X_test, y_train, y_test = frames.split("people", 0)
    assert (len(X_train), len(X_test)) == (42, 18)
    assert y_train.mean() == pytest.approx(y_test.mean(), abs=0.05)
    assert not set(X_train.index) & set(X_test.index)
    assert X_train.dtypes.equals(people[0].dtypes)


def test_a_frame_loses_its_target_rare_classes_and_rows_without_one(monkeypatch):
    wine = load_wine(as_frame=True).frame
    wine.loc[:2, "target"] = np.nan
    X, y = frame_tables.frame(wine, "target", drop=["ash"])
    assert "target" not in X
    assert "ash" not in X
    np.testing.assert_array_equal(np.bincount(y), [56, 71, 48])
    _, y = frame_tables.frame(wine, "alcohol", 4)
    assert np.bincount(y).max() - np.bincount(y).min() <= 4
    monkeypatch.setattr(frame_tables, "LEAST_CLASS", 50)
    monkeypatch.setattr(frame_tables, "MOST_ROWS", 100)
    X, y = frame_tables.frame(wine, "target")
    np.testing.assert_array_equal(np.bincount(y), [44, 56])
    assert len(X) == 100


@pytest.mark.parametrize("written", ["31-01-2020", "2020-01-31", "2020-01-31T10:00:00Z"])
def test_dates_are_parsed(written):
    data = pd.DataFrame({"on": [written] * 20, "y": ["a", "b"] * 10})
    X, _ = frame_tables.frame(data, "y", dates="on")
    assert (X["on"].iloc[0].day, X["on"].iloc[0].month) == (31, 1)
    days = frames.dates_to_days(X)["on"]
    assert int(days.iloc[0]) == 18_292


def test_the_header_of_a_keel_file_says_which_columns_are_words(tmp_path, monkeypatch):
    rows = "\n".join(f"{k}, {'?u'[k % 2]}, {k % 3}, {('yes', 'no')[k // 15]}" for k in range(30))
    (tmp_path / "a.dat").write_text(
        "@relation a\n@attribute Age integer[0,29]\n@attribute Kind {u, v}\n"
        f"@attribute Code{{0,1,2}}\n@attribute Class {{yes,no}}\n@data\n{rows}\n"
    )
    monkeypatch.setattr(frame_tables, "DATA", tmp_path)
    X, y = frame_tables.dat("a.dat")()
    assert list(X) == ["Age", "Kind", "Code"]
    assert (frames.number_columns(X), frames.word_columns(X)) == (["Age"], ["Kind", "Code"])
    assert X["Kind"].isna().sum() == 15
    assert y.sum() == 15


def test_an_absent_file_says_what_brings_it(tmp_path, monkeypatch):
    monkeypatch.setattr(frame_tables, "DATA", tmp_path)
    with pytest.raises(FileNotFoundError, match="run `make frames` first"):
        frames.TABLES["german"]()


def test_words_keep_missing_as_a_word_of_its_own(people):
    words = frames.as_words(people[0])
    assert set(words["town"]) == {"A", "B", "C", "missing"}
    assert set(words["member"]) == {"True", "False"}
    assert words["income"].equals(people[0]["income"])


def test_categories_are_those_of_the_training_rows(people):
    X = people[0]
    fitted = frames.Categories(most=2).fit(X[X["town"] != "C"])
    found = fitted.transform(X)
    assert list(found) == [f"x{k}" for k in range(6)]
    assert set(found["x2"].cat.categories) == {"A", "B"}
    assert found["x2"].isna().sum() == (X["town"].isna() | (X["town"] == "C")).sum()


@pytest.fixture
def few_trees(monkeypatch):
    """Let two peers have ten trees: their threads spin where other tests run beside them."""
    few = {
        "LightGBM": {"lgbmclassifier__n_estimators": 10, "lgbmclassifier__n_jobs": 1},
        "gradient boosting": {"histgradientboostingclassifier__max_iter": 10},
    }
    for name, options in few.items():
        make = frames.METHODS[name]
        short = partial(lambda make, options, seed: make(seed).set_params(**options), make, options)
        monkeypatch.setitem(frames.METHODS, name, short)


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("method", [name for name in frames.METHODS if name != "ours"])
def test_every_peer_reads_every_kind_of_column(method, people, monkeypatch):
    package = {"CatBoost": "catboost", "LightGBM": "lightgbm"}.get(method)
    if package and records.version_of(package) is None:
        pytest.skip(f"{package} is not installed")
    monkeypatch.setitem(frames.TABLES, "people", lambda: people)
    row = frames.measure("people", method, 0)
    assert (row["numeric"], row["categorical"], row["dates"], row["classes"]) == (2, 3, 1, 2)
    assert row["error_percent"] < row["majority_error_percent"]
    assert row["auc"] > 0.7
    assert ("log_loss" in row) == (method != "SVC, C = 10")
    assert frames.is_mixed(row)


def test_ours_reads_numbers(monkeypatch):
    wine = load_wine(as_frame=True)
    monkeypatch.setitem(frames.TABLES, "wine", lambda: (wine.data, wine.target.to_numpy()))
    row = frames.measure("wine", "ours", 0)
    assert row["error_percent"] < 10
    assert not frames.is_mixed(row)


def row(table, method, error, seed=0, **more):
    return {
        "table": table, "method": method, "seed": seed, "rows": 1000, "features": 3, "numeric": 3,
        "missing_percent": 0.0, "error_percent": error, "log_loss": error / 10, **more,
    }  # fmt: skip


def test_the_summary_is_over_tables_that_all_methods_have(tmp_path, monkeypatch, capsys):
    rows = [
        row("a", "CatBoost", 10.0), row("a", "LightGBM", 20.0),
        row("b", "CatBoost", 4.0), row("b", "LightGBM", 2.0),
        row("c", "CatBoost", 50.0),
        row("words", "CatBoost", 0.0, numeric=2), row("words", "LightGBM", 1.0, numeric=2),
    ]  # fmt: skip
    monkeypatch.setattr(frames, "RESULTS", tmp_path / "frames.json")
    records.write_rows(frames.RESULTS, rows)
    frames.summary(["a", "b", "c", "words"])
    numbers, catboost, lightgbm, mixed, _, zero = capsys.readouterr().out.splitlines()
    assert numbers == "numbers alone: 2 tables"
    assert catboost.endswith("error   7.00 %  log-loss 0.7000  ratio 1.000")
    assert lightgbm.endswith("error  11.00 %  log-loss 1.1000  ratio 1.000")
    assert mixed == "mixed: 1 tables"
    assert zero.endswith("ratio 6.000")  # a sixth of a percent is half of 300 test rows
    frames.summary(["d"])
    assert capsys.readouterr().out == "no results\n"


def test_a_run_measures_what_is_missing_and_goes_on_after_a_failure(tmp_path, monkeypatch, capsys):
    asked = []

    def measured_afresh(job):
        asked.append((job["table"], job["method"]))
        if job["method"] == "LightGBM":
            raise OSError("the run failed")
        return {"error_percent": 1.0}

    monkeypatch.setattr(frames, "RESULTS", tmp_path / "frames.json")
    monkeypatch.setattr(frames, "measured_afresh", measured_afresh)
    frames.main(["german", "--methods", "CatBoost,LightGBM,SVC, C = 10"])
    frames.main(["german", "--methods", "CatBoost"])
    assert asked == [("german", name) for name in ("CatBoost", "LightGBM", "SVC, C = 10")]
    assert "the run failed" in capsys.readouterr().out
    assert len(json.loads(frames.RESULTS.read_text())["rows"]) == 2
    frames.main(["--held-out"])
    assert "ours" not in {method for _, method in asked}
    assert {table for table, _ in asked} == {"german", *frames.HELD_OUT}


def test_an_unknown_method_is_refused():
    with pytest.raises(SystemExit, match=r"--methods must be among .*'ours'.* got \['SVC'\]"):
        frames.methods_of("CatBoost,SVC")
    assert frames.methods_of(None) is None
