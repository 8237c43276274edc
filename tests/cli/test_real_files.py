"""CSV as people have it, from `fit` to `predict`: columns of all kinds, labels, identifiers."""

import json
import re

import numpy as np
import polars as pl
import pytest

from kmeans_kernel.cli._estimator import parse_class_weight, parse_column_types
from kmeans_kernel.cli._target import cut, cut_like, quantile_edges
from kmeans_kernel.data.tables import DataFileError, Table
from tests.cli.test_commands import refuse, run, succeed

HEADER = "Nr;Größe;Ort;Eintritt;Aktiv;PLZ;Preis;Art"


def lines(n=120, seed=0):
    """Return rows of a German spreadsheet, whose first class is larger."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(n):
        art = "große" if k % 3 else "kleine"
        size = f"{10 * (art == 'große') + rng.normal():.2f}".replace(".", ",")
        size = "#DIV/0!" if k % 11 == 5 else size
        town, zip_code = (
            rng.choice(["Köln", "Bonn", "Ulm"]),
            rng.choice(["01067", "50667", "53111"]),
        )
        date = f"{1 + k % 28}.{1 + k % 12}.20{10 + k % 10}"
        price = f"1.{rng.integers(100, 999)},50 €"
        rows.append(f"{k:04d};{size};{town};{date};{'TRUE' if k % 2 else 'FALSE'};{zip_code};"
                    f"{price};{art if k % 17 else ''}")  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    content = "\r\n".join([HEADER, *lines()])
    (folder / "train.csv").write_bytes(content.encode("cp1252"))
    return folder


@pytest.fixture(scope="module")
def fitted(folder):
    """Return the model, and what its fit wrote."""
    done = run("fit", folder / "train.csv", "-t", "Art", "--id", "Nr", "-q", "10", "-o",
               folder / "model")  # fmt: skip
    assert done.exit_code == 0, done.output
    return folder / "model", done


def test_fit_says_what_it_took_the_columns_for(fitted):
    _, done = fitted
    first, errors, columns = done.stdout.splitlines()
    assert first.startswith("112 rows, 2 classes, ")
    assert re.fullmatch(
        r"held-out error \d+\.\d\d %; always guessing 'große', the most frequent class: 33.04 %",
        errors,
    )
    assert columns == (
        "2 numbers: Größe, Preis; 2 categories: Ort, PLZ; 1 date: Eintritt; 1 boolean: Aktiv"
    )
    notes = [line for line in done.stderr.splitlines() if line.startswith("Note: ")]
    assert len(notes) == 2
    assert "is not UTF-8 and was read as Windows-1252 (Latin-1), for example 'Größe'" in notes[0]
    assert "8 rows were left out of" in notes[1]


def test_identifiers_are_in_front_of_predictions(folder, fitted, tmp_path):
    model, _ = fitted
    said = succeed("predict", model, folder / "train.csv", "--id", "Nr", "--target", "Art")
    header, first, *rest = said.splitlines()
    assert header == "Nr,row,label,probability"
    assert first.startswith("0000,1,")
    assert len(rest) == 119
    for suffix in ("csv", "parquet", "jsonl"):
        output = tmp_path / f"out.{suffix}"
        succeed("evaluate", model, folder / "train.csv", "-t", "Art", "--id", "Nr", "-o", output)
        read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "jsonl": pl.read_ndjson}[suffix]
        frame = read(output, **({"infer_schema_length": 0} if suffix == "csv" else {}))
        assert frame.columns == ["Nr", "row", "true_label", "label", "probability"]
        assert len(frame) == 112
        assert frame["Nr"][0] == "0001"
    assert "no column 'key'" in refuse("predict", model, folder / "train.csv", "--id", "key")
    (tmp_path / "row.csv").write_text("\n".join([HEADER.replace("Nr", "row"), *lines(2)]))
    said = succeed("predict", model, tmp_path / "row.csv", "--id", "row")
    assert said.splitlines()[0] == "id,row,label,probability"


def test_columns_are_read_with_the_types_of_the_model(fitted, tmp_path):
    """Digits alone, one value, an unknown town, a missing one, other columns, another order."""
    model, _ = fitted
    content = (
        "PLZ,Ort,Größe,more,Eintritt,Aktiv,Preis\n"
        "50667,Aachen,9,?,2015-01-31,true,1200.5\n"
        "53111,,,,,,\n"
    )
    (tmp_path / "new.csv").write_text(content)
    rows = [line.split(",") for line in succeed("predict", model, tmp_path / "new.csv").split()]
    assert [row[:2] for row in rows[1:]] == [["1", "große"], ["2", rows[2][1]]]


def test_what_does_not_fit_the_model_is_told_at_once(fitted, tmp_path):
    model, _ = fitted
    (tmp_path / "a.csv").write_text("Ort,Größe,Preis\nUlm,9,1\n")
    told = refuse("predict", model, tmp_path / "a.csv")
    assert "has no columns 'Eintritt', 'Aktiv', 'PLZ'; its columns are 'Ort', 'Größe'" in told
    (tmp_path / "b.csv").write_text(
        "Ort,Größe,Preis,Eintritt,Aktiv,PLZ\nUlm,tall,cheap,soon,maybe,1\n"
    )
    told = refuse("predict", model, tmp_path / "b.csv")
    assert "4 columns of" in told
    fix = ["Größe=tall", "Eintritt=soon", "Aktiv=maybe", "Preis=cheap"]
    options = told.partition("; add ")[2].rstrip(".").split(" --missing ")
    options = [one.removeprefix("--missing ").strip("'") for one in options]
    assert sorted(options) == sorted(fix)
    given = [part for word in options for part in ("--missing", word)]
    assert len(succeed("predict", model, tmp_path / "b.csv", *given).splitlines()) == 2


def test_undecided_columns_are_settled_by_one_command(tmp_path):
    rows = "".join(f"{k};1.{100 + k};{k if k != 5 else 'x y'};{'uv'[k % 2]}\n" for k in range(40))
    (tmp_path / "x.csv").write_text("a;b;c;y\n" + rows)
    given = ["fit", tmp_path / "x.csv", "-t", "y", "-q", "5", "-o", tmp_path / "m"]
    told = refuse(*given)
    assert told.endswith(
        "; add --missing 'c=x y' and add --decimal comma if '1.100' is 1100, or --decimal point if "
        "it is 1.1."
    )
    said = succeed(*given, "--missing", "c=x y", "--decimal", "comma")
    assert "3 numbers: a, b, c" in said
    given += ["--missing", "c=x y", "--decimal", "comma"]
    said = succeed(*given, "--column-type", "a=category", "--column-type", "c=drop")
    assert "1 number: b" in said
    assert "1 category: a" in said
    assert "c" not in said.splitlines()[-1].replace("category", "")


def test_columns_that_name_the_rows_are_left_out_with_a_note(tmp_path):
    rows = "".join(f"n{k},{k % 5},{'uv'[k % 2]}\n" for k in range(40))
    (tmp_path / "x.csv").write_text("name,a,y\n" + rows)
    given = ["fit", tmp_path / "x.csv", "-t", "y", "-q", "5", "-o", tmp_path / "m"]
    done = run(*given)
    assert "1 left out: name; 1 number: a" in done.stdout
    assert "add --drop name to confirm it, or --column-type name=category" in done.stderr
    assert "Warning" not in done.stderr
    done = run(*given, "--column-type", "name=category")
    assert "1 category: name" in done.stdout
    (tmp_path / "new.csv").write_text("a\n3\n")
    succeed(*given)
    assert len(succeed("predict", tmp_path / "m", tmp_path / "new.csv").splitlines()) == 2


def test_no_header_from_fit_to_predict(tmp_path):
    rows = "".join(f"{k % 7}.5,{k % 3},{'uv'[k % 2]}\n" for k in range(60))
    (tmp_path / "x.data").write_text(rows)
    given = [tmp_path / "x.data", "-t", "column_3"]
    assert "say --no-header if it has none" in refuse("fit", *given, "-o", tmp_path / "m")
    succeed("fit", *given, "--no-header", "-q", "5", "-o", tmp_path / "m")
    assert "of 60 rows" in succeed("evaluate", tmp_path / "m", *given, "--no-header")


@pytest.mark.parametrize("weight", [["balanced"], ["u=3"], ["u=3", "v=0.5"]])
def test_class_weights(weight, tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.1, "u", "v")
    pl.DataFrame({"a": rng.normal(size=300) + (y == "u"), "y": y}).write_csv(tmp_path / "x.csv")
    given = [tmp_path / "x.csv", "-t", "y"]
    options = [part for one in weight for part in ("--class-weight", one)]
    shares = []
    for more in ([], options):
        succeed("fit", *given, "-q", "20", "-o", tmp_path / "m", *more)
        frame = pl.read_csv(succeed("predict", tmp_path / "m", *given).encode())
        shares.append((frame["label"] == "u").mean())
    assert shares[1] > shares[0]


def test_class_weights_have_the_type_of_the_labels():
    assert parse_class_weight([]) is None
    assert parse_class_weight(["balanced"], np.array([1, 2])) == "balanced"
    assert parse_class_weight(["1=2", "2=0.5"], np.array([1, 2])) == {1: 2.0, 2: 0.5}
    assert parse_class_weight(["True=2"], np.array([True, False])) == {True: 2.0}
    assert parse_class_weight(["1=2", "2=3"]) == {1: 2.0, 2: 3.0}
    assert parse_class_weight(["a=b=2"], np.array(["a=b"])) == {"a=b": 2.0}
    for given, message in (
        (["3=1"], "--class-weight names '3', which is no class of the data; its classes are 1, 2."),
        (["1=x"], "--class-weight must be balanced, or LABEL=WEIGHT for each class, got 1=x"),
        (["1"], "--class-weight must be balanced, or LABEL=WEIGHT for each class, got '1'"),
    ):
        with pytest.raises(DataFileError, match=message):
            parse_class_weight(given, np.array([1, 2]))


def test_kinds_of_columns_are_checked():
    assert parse_column_types(["a=b=category", "c=drop"]) == {"a=b": "category", "c": "drop"}
    for given in ("a", "a=", "=date", "a=text"):
        with pytest.raises(DataFileError, match="--column-type must be COLUMN=KIND, where KIND is"):
            parse_column_types([given])


def test_a_quantity_is_no_label_but_may_be_cut(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    pl.DataFrame({"x": x, "price": (100 * x).round(2)}).write_csv(tmp_path / "x.csv")
    given = [tmp_path / "x.csv", "-t", "price"]
    told = refuse("fit", *given, "-o", tmp_path / "m")
    assert "which look like a quantity and not like classes" in told
    assert "--cut-target 3, or add --column-type price=category if each number is a class." in told
    said = succeed("fit", *given, "--cut-target", "3", "-q", "20", "-o", tmp_path / "m")
    assert "200 rows, 3 classes" in said
    found = json.loads(succeed("evaluate", tmp_path / "m", *given, "--json"))
    assert [row["label"][0] for row in found["classes"]] == ["("] * 3
    assert found["error_percent"] < 15
    assert min(map(sum, found["confusion"])) >= 60
    words = "".join(f"{k},{'uv'[k % 2]}\n" for k in range(9))
    (tmp_path / "y.csv").write_text("x,y\n" + words)
    told = refuse("fit", tmp_path / "y.csv", "-t", "y", "--cut-target", "3", "-o", tmp_path / "m")
    assert "--cut-target needs labels that are numbers" in told
    np.savez(tmp_path / "x.npz", X=x[:, None], y=100 * x)
    told = refuse("fit", tmp_path / "x.npz", "-o", tmp_path / "m")
    assert "--cut-target 3." in told


def test_each_number_may_be_a_class(tmp_path):
    rows = "".join(f"{k},{k // 2}\n" for k in range(60))
    (tmp_path / "x.csv").write_text("x,y\n" + rows.replace(",1\n", ",1\n") + "61,29\n")
    given = ["fit", tmp_path / "x.csv", "-t", "y", "-q", "1", "-o", tmp_path / "m"]
    told = refuse(*given[:2], "-t", "x", *given[4:])
    assert "61 different numbers" in told
    assert "61 rows, 30 classes" in succeed(*given, "--column-type", "y=category")


def test_numbers_are_cut_into_intervals():
    edges = quantile_edges(np.arange(9.0), 3, "x.csv")
    np.testing.assert_allclose(edges, [2.66667, 5.33333])
    labels = cut(np.array([-1, 2.66667, 2.7, 5.33334]), edges)
    assert labels.tolist() == [
        "(-inf, 2.66667]", "(-inf, 2.66667]", "(2.66667, 5.33333]", "(5.33333, inf)",
    ]  # fmt: skip
    table = Table(None, np.array(["9"]), np.arange(1), y_numbers=np.array([9.0]))
    assert cut_like(table, np.unique(labels)).y.tolist() == ["(5.33333, inf)"]
    assert cut_like(table, np.array(["a", "b"])) is table
    with pytest.raises(DataFileError, match="cannot be cut into 2 classes: most of them are equal"):
        quantile_edges(np.array([1.0, 1, 1, 1]), 2, "x.csv")
    assert len(quantile_edges(np.array([0.0, 0, 0, 5]), 3, "x.csv")) == 1


def test_evaluate_has_all_scores(folder, fitted):
    model, _ = fitted
    said = succeed("evaluate", model, folder / "train.csv", "-t", "Art")
    for name in ("error", "balanced accuracy", "AUC", "log-loss", "calibration error"):
        assert re.search(rf"^{name} +\d", said, re.M)
    found = json.loads(succeed("evaluate", model, folder / "train.csv", "-t", "Art", "--json"))
    assert 0.5 < found["balanced_accuracy"] <= 1
    assert 0.5 < found["auc"] <= 1
    assert 0 <= found["calibration_error"] < 0.5


def test_fit_writes_the_same_as_json(folder, tmp_path):
    given = [
        "fit",
        folder / "train.csv",
        "-t",
        "Art",
        "--id",
        "Nr",
        "-q",
        "5",
        "-o",
        tmp_path / "m",
    ]
    found = json.loads(succeed(*given, "--json"))
    assert found["most_frequent_class"] == "große"
    assert found["most_frequent_error"] == pytest.approx(37 / 112)
    assert found["columns"]["number"] == ["Größe", "Preis"]
    assert succeed(*given, "--quiet") == ""


def test_data_sets_take_no_options_of_files(tmp_path):
    for option in (["--id", "x"], ["--missing", "x"], ["--no-header"], ["--decimal", "comma"]):
        told = refuse("fit", "digits", *option, "-o", tmp_path / "m")
        assert "is a data set with its own labels" in told


def test_options_of_text_need_text(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.eye(4), y=np.arange(4) % 2)
    given = ["fit", tmp_path / "x.npz", "-o", tmp_path / "m"]
    assert "has no names of columns; leave out --column-type" in refuse(
        *given, "--column-type", "x=date"
    )
    assert "which has no text; leave out --missing" in refuse(*given, "--missing", "x")


def test_words_are_no_pixels(folder, tmp_path):
    told = refuse(
        "fit", folder / "train.csv", "-t", "Art", "--features", "raw", "-o", tmp_path / "m"
    )
    assert (
        "--features raw is for pixels, and the column 'Nr' has words; use --features table" in told
    )


def test_effects_of_columns_are_told_by_row_and_add_up(fitted, folder, tmp_path):
    model, _ = fitted
    path = tmp_path / "why.csv"
    succeed("explain", model, folder / "train.csv", "--id", "Nr", "-n", "6", "-o", path)
    found = pl.read_csv(path, schema_overrides={"Nr": pl.String})
    assert found.columns == ["Nr", "row", "label", "score", "typical_score", "column", "value",
                             "typical_value", "effect"]  # fmt: skip
    first = found.filter(pl.col("row") == 1)
    assert first["column"][0] == "Größe"
    assert first["effect"].sum() == pytest.approx(first["score"][0] - first["typical_score"][0],
                                                  abs=1e-5)  # fmt: skip
    assert first["Nr"].unique().to_list() == ["0000"]
    missing = found.filter((pl.col("row") == 6) & (pl.col("column") == "Größe"))
    assert missing["value"].to_list() in ([None], [])
    other = succeed("explain", model, folder / "train.csv", "-n", "1", "--label", "große")
    assert {line.split(",")[1] for line in other.splitlines()[1:]} == {"große"}
    assert "--label must be a class of the model, große, kleine, got 'red'" in refuse(
        "explain", model, folder / "train.csv", "--label", "red"
    )


def test_effects_of_pixels_are_told_and_those_of_patches_are_not(tmp_path):
    succeed("fit", "digits", "-q", "2", "-o", tmp_path / "raw")
    assert "row,label,score," in succeed("explain", tmp_path / "raw", "digits", "-n", "1")
    succeed("fit", "digits", "-q", "2", "--features", "patches", "-o", tmp_path / "m")
    told = refuse("explain", tmp_path / "m", "digits")
    assert "which does not tell of columns; train it with --features table or raw" in told
