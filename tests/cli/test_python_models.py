"""Models of frames in Python, whose files the command line reads: kinds, levels, names."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from kmeans_kernel.estimators import Column, KMeansKernelClassifier, TableEncoder
from kmeans_kernel.export import save_model
from kmeans_kernel.serve.protocol._values import read_cells
from kmeans_kernel.utils.words import MISSING_VALUES
from tests.cli.test_commands import refuse, run, succeed

N_ROWS = 120


def save(estimator, X, y, folder):
    """Fit and save a model, write its rows with labels, return the estimator and both files."""
    estimator.fit(X, y)
    save_model(estimator, folder / "p.model")
    X.assign(y=y).to_csv(folder / "rows.csv", index=False)
    return estimator, folder / "p.model", folder / "rows.csv"


def probabilities(model, rows, *options):
    """Return the probabilities that predict writes, and what it says."""
    done = run("predict", model, rows, "--probabilities", *options)
    assert done.exit_code == 0, done.output
    found = pl.read_csv(io.StringIO(done.stdout), infer_schema_length=None)
    return found.select(name for name in found.columns if name.startswith("p_")).to_numpy(), done


def classifier(n=10):
    return KMeansKernelClassifier(n_representatives=n, random_state=0)


def frame(levels, name="country"):
    """A table of a number and words that tell the class."""
    words = [levels[k % len(levels)] for k in range(N_ROWS)]
    X = pd.DataFrame({"v": np.arange(N_ROWS) % 7 / 7, name: pd.Series(words, dtype=object)})
    return X, np.array([f"c{k % len(levels)}" for k in range(N_ROWS)])


def test_kinds_of_columns_are_those_of_the_first_step(tmp_path):
    X, y = frame([f"shop {k}" for k in range(3)], "shop")
    X["when"] = pd.date_range("2020-01-31", periods=N_ROWS, freq="37D")
    estimator, model, rows = save(make_pipeline(TableEncoder(), classifier()), X, y, tmp_path)
    found, _ = probabilities(model, rows)
    np.testing.assert_allclose(found, estimator.predict_proba(X), atol=1e-5)
    succeed("evaluate", model, rows, "-t", "y")
    succeed("export", model, "--web", tmp_path / "x.html", "--data", rows, "-t", "y")
    rows.write_text("v,shop,when\n1,shop 9,2020-01-31\n")
    assert "Note: 'shop' has values that training never had" in run("predict", model, rows).stderr


@pytest.mark.parametrize(
    "levels",
    [("NA", "DE", "FR"), ("trail ", "trail", " x"), ("#N/A", "#WERT!", "null"), ("", "NaN", "w")],
)
@pytest.mark.parametrize("encoder", [[], [TableEncoder(column_types={"country": "category"})]])
def test_levels_of_the_model_are_no_missing_values(levels, encoder, tmp_path):
    X, y = frame(levels)
    estimator, model, rows = save(make_pipeline(*encoder, classifier()), X, y, tmp_path)
    found, done = probabilities(model, rows)
    np.testing.assert_allclose(found, estimator.predict_proba(X), atol=1e-5)
    assert "training" not in done.stderr
    X.to_parquet(tmp_path / "rows.parquet")
    found, _ = probabilities(model, tmp_path / "rows.parquet")
    np.testing.assert_allclose(found, estimator.predict_proba(X), atol=1e-5)


def test_missing_of_the_user_goes_before_levels(tmp_path):
    X, y = frame(["NA", "DE", "FR"])
    estimator, model, rows = save(classifier(), X, y, tmp_path)
    found, _ = probabilities(model, rows, "--missing", "NA")
    absent = X.assign(country=X["country"].where(X["country"] != "NA", None))
    np.testing.assert_allclose(found, estimator.predict_proba(absent), atol=1e-5)
    assert np.abs(found - estimator.predict_proba(X)).max() > 0.1


def test_classes_of_the_model_are_labels(tmp_path):
    X, y = frame(["a", "b", "c"])
    y = np.array([{"c0": "NA", "c1": "None", "c2": "x "}[label] for label in y])
    _, model, rows = save(classifier(), X, y, tmp_path)
    done = run("evaluate", model, rows, "-t", "y", "--json")
    assert done.exit_code == 0, done.output
    assert '"error_percent": 0.0' in done.stdout
    assert "left out" not in done.stderr


def test_none_is_a_class_and_no_level(tmp_path):
    rows = "".join(f"{k % 7},{['None', 'q'][k % 2]},{['None', 'u'][k % 2]}\n" for k in range(60))
    (tmp_path / "x.csv").write_text("a,b,y\n" + rows)
    for how in ((), ("--blocks", "--drop", "b")):
        told = succeed("fit", tmp_path / "x.csv", "-t", "y", "-q", "5", "-o", tmp_path / "m", *how)
        assert "60 rows, 2 classes" in told


def test_what_pandas_reads_as_missing_is_missing(tmp_path):
    markers = [
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
        "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
    ]  # fmt: skip
    words = [markers[k // 4 % len(markers)] if k % 4 == 0 else "uvw"[k % 3] for k in range(N_ROWS)]
    text = "v,w\n" + "".join(f"{k % 7},{word}\n" for k, word in enumerate(words))
    (tmp_path / "rows.csv").write_text(text)
    X = pd.read_csv(tmp_path / "rows.csv")
    assert X["w"].isna().sum() == N_ROWS // 4
    estimator = classifier().fit(X, np.arange(N_ROWS) % 3)
    save_model(estimator, tmp_path / "p.model")
    found, done = probabilities(tmp_path / "p.model", tmp_path / "rows.csv")
    np.testing.assert_allclose(found, estimator.predict_proba(X), atol=1e-5)
    assert done.stderr == ""


def test_names_may_have_blanks_at_their_ends(tmp_path):
    X, y = frame(["DE", "FR"])
    X = X.rename(columns={"country": " country"})
    estimator, model, rows = save(classifier(), X, y, tmp_path)
    text = rows.read_text()
    assert text.startswith("v, country,y\n")
    want = estimator.predict_proba(X)
    for header in ("v, country,y", "v,country,y", " v,country ,y", "v , country, y"):
        rows.write_text(text.replace("v, country,y", header, 1))
        np.testing.assert_allclose(probabilities(model, rows)[0], want, atol=1e-5)
    X.rename(columns={" country": "country "}).to_parquet(tmp_path / "x.parquet")
    np.testing.assert_allclose(probabilities(model, tmp_path / "x.parquet")[0], want, atol=1e-5)


def test_names_that_blanks_tell_apart_are_matched_exactly(tmp_path):
    X, y = frame(["DE", "FR"], " a")
    X = X.assign(a=np.arange(N_ROWS) % 3)[["a", "v", " a"]]
    estimator, model, rows = save(classifier(), X, y, tmp_path)
    np.testing.assert_allclose(probabilities(model, rows)[0], estimator.predict_proba(X), atol=1e-5)
    text = rows.read_text()
    rows.write_text(text.replace("a,v, a,y", "a,v,a ,y", 1))
    assert "has no column ' a'; its columns are 'a', 'v', 'a_2', 'y'." in refuse(
        "predict", model, rows
    )
    rows.write_text(text.replace("a,v, a,y", "a,v,b,y", 1))
    assert "has no column ' a'" in refuse("predict", model, rows)


def test_the_server_has_the_same_markers():
    cells = [f" {marker} " for marker in MISSING_VALUES]
    assert read_cells(Column("a", "category", ("x",)), cells) == [None] * len(cells)
    assert read_cells(Column("a", "category", ("None",)), ["None"]) == ["None"]
