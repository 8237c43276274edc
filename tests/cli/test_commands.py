"""The commands, with arguments as a user types them."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from typer.testing import CliRunner

from kmeans_kernel.cli.app import app
from kmeans_kernel.data import load_digits
from kmeans_kernel.data.datasets._idx import encode_idx

PROGRAM = [sys.executable, "-m", "kmeans_kernel.cli"]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def refuse(*arguments):
    """Run a command that must fail with exit code 2 and one error line; return that line."""
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, done.output
    return lines[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    iris = load_iris()
    columns = {name.split(" (")[0]: iris.data[:, k] for k, name in enumerate(iris.feature_names)}
    frame = pl.DataFrame({**columns, "species": iris.target_names[iris.target]})
    frame.write_csv(folder / "iris.csv")
    frame.write_parquet(folder / "iris.parquet")
    frame.drop("species").write_csv(folder / "new.csv")
    dump_svmlight_file(iris.data, iris.target, str(folder / "iris.svm"), zero_based=False)
    np.savez(folder / "iris.npz", X=iris.data, y=iris.target)
    digits = load_digits()
    (folder / "images-idx3-ubyte").write_bytes(encode_idx(digits.X_train.astype(np.uint8)))
    (folder / "labels-idx1-ubyte").write_bytes(encode_idx(digits.y_train.astype(np.uint8)))
    succeed("fit", folder / "iris.csv", "-t", "species", "-q", "10", "-o", folder / "iris.model")
    return folder


@pytest.mark.parametrize("name", ["iris.csv", "iris.parquet", "iris.svm", "iris.npz"])
def test_fit_and_evaluate_every_format(name, folder, tmp_path):
    target = ["--target", "species"] if name in ("iris.csv", "iris.parquet") else []
    model = tmp_path / "model"
    assert "150 rows, 3 classes" in succeed("fit", folder / name, *target, "-q", "20", "-o", model)
    found = json.loads(succeed("evaluate", model, folder / name, *target, "--json"))
    assert found["rows"] == 150
    assert found["error_percent"] < 6
    assert sum(map(sum, found["confusion"])) == 150
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_evaluate_prints_all_scores(folder, tmp_path):
    picture = tmp_path / "confusion.png"
    said = succeed("evaluate", folder / "iris.model", folder / "iris.csv", "-t", "species",
                   "--picture", picture)  # fmt: skip
    assert re.search(r"error +\d\.\d\d % of 150 rows", said)
    assert "log-loss" in said
    assert "precision" in said
    assert "true \\ given" in said
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("features", ["raw", "raw_fft", "patches"])
def test_images_and_their_representatives(features, folder, tmp_path):
    model, picture = tmp_path / "model", tmp_path / "representatives.png"
    options = ["--features", features, "-q", "5"]
    succeed("fit", folder / "images-idx3-ubyte", *options, "-o", model, "--regularization", "0.001")
    found = json.loads(succeed("evaluate", model, folder / "images-idx3-ubyte", "--json"))
    assert found["error_percent"] < (30 if features == "patches" else 10)
    told = json.loads(succeed("inspect", model, "--picture", picture, "--json"))
    assert told["representatives"] == 50
    assert told["regularization"] == 0.001
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_patterns_of_images(folder, tmp_path):
    model, data = tmp_path / "model", folder / "images-idx3-ubyte"
    succeed("fit", data, "--features", "patterns", "-q", "5", "-o", model, "--gamma", "2")
    assert json.loads(succeed("evaluate", model, data, "--json"))["error_percent"] < 10
    told = succeed("inspect", model)
    assert "Deskewer → EdgePatterns → KMeansKernelClassifier" in told
    assert "rbf, gamma 2" in told
    picture = tmp_path / "no.png"
    assert "are not images" in refuse("inspect", model, "--picture", picture)


def test_inspect(folder):
    said = succeed("inspect", folder / "iris.model")
    assert re.search(r"steps +KMeansKernelClassifier", said)
    assert "transform" in said
    assert "sepal length" in said
    assert "setosa" in said
    assert "are not images" in refuse(
        "inspect", folder / "iris.model", "--picture", folder / "no.png"
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_predictions_are_written(suffix, folder, tmp_path):
    output = tmp_path / f"labels{suffix}"
    succeed("predict", folder / "iris.model", folder / "new.csv", "-o", output, "--probabilities")
    read = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson}[suffix]
    frame = read(output)
    assert frame.columns == [
        "row", "label", "probability", "p_setosa", "p_versicolor", "p_virginica",
    ]  # fmt: skip
    assert len(frame) == 150
    assert frame["label"][0] == "setosa"
    assert frame["p_setosa"][0] == pytest.approx(frame["probability"][0])


def test_predictions_to_an_unknown_format_are_refused(folder, tmp_path):
    told = refuse("predict", folder / "iris.model", folder / "new.csv", "-o", tmp_path / "x.xlsx")
    assert ".csv, .parquet, .jsonl" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("a,b,y\n1,2,u\n2,3,u\n", "at least two classes"),
        ("a;y\n1.234;u\n2.345;v\n", "'a' may have decimals or thousands"),
        ("1,2,3\n4,5,6\n", "looks like values, '1', '2', '3'"),
        ("a,b\n1,u\n2,v\n", "has no column 'y'; its columns are 'a', 'b'"),
        (b"\x7fELF\0\0\0", "binary"),
        (None, "is a directory"),
    ],
)
def test_invalid_files_give_one_error_line(content, message, tmp_path):
    path = tmp_path / "data"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refuse("fit", path, "--target", "y", "-o", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_invalid_usage_gives_one_error_line(folder, tmp_path):
    iris = folder / "iris.csv"
    told = refuse("fit", iris, "-o", tmp_path / "m")
    assert "say which column of" in told
    assert "--target; its columns are 'sepal length'" in told
    assert "is not there" in refuse("fit", iris, "-t", "species", "-o", tmp_path / "no" / "m")
    assert "no columns 'sepal length', 'sepal width', 'petal length'" in refuse(
        "evaluate", folder / "iris.model", write(tmp_path, "a,species\n1,setosa\n"), "-t", "species"
    )
    assert "not a whole model" in refuse("inspect", iris)
    assert "No such file" in refuse("inspect", tmp_path / "absent")
    assert "is a file, not a folder" in refuse("fit", iris, "-t", "species", "-o", iris / "m")
    assert "should end in .png" in refuse(
        "evaluate", folder / "iris.model", iris, "-t", "species", "--picture", tmp_path / "x.xyz"
    )
    assert "as a feature" in refuse("evaluate", folder / "iris.model", iris, "-t", "sepal width")
    assert "no data set 'nist'" in refuse("data", "fetch", "nist")
    assert "'figure3' is not one of" in refuse("reproduce", "figure3")
    assert "no features 'patches'" in refuse("reproduce", "figure1", "--features", "patches")
    for arguments in (
        ["fit"],
        ["fly"],
        ["fit", "x", "-q", "0", "-o", "y"],
        ["fit", "x", "--blue"],
        ["fit", "x", "-o", "y", "--gamma", "-1"],
    ):
        done = run(*arguments)
        assert done.exit_code == 2
        assert "Traceback" not in done.output


def write(tmp_path, content):
    path = tmp_path / "written.csv"
    path.write_text(content)
    return path


def test_data(monkeypatch, tmp_path):
    monkeypatch.setenv("KMEANS_KERNEL_CACHE", str(tmp_path))
    assert "mnist          28 × 28 digits (not fetched yet)" in succeed("data", "list")
    assert json.loads(succeed("data", "list", "--json"))[0]["here"]
    assert succeed("data", "where").strip() == str(tmp_path)
    assert succeed("data", "where", "mnist").strip() == str(tmp_path / "mnist")
    assert "scikit-learn" in succeed("data", "where", "digits")
    assert "digits: 1257 training and 540 test images" in succeed("data", "fetch", "digits")


def test_quiet_and_version():
    assert succeed("--version").startswith("kmeans-kernel ")


def test_quiet_prints_nothing(folder, tmp_path):
    done = run("fit", folder / "iris.csv", "-t", "species", "-o", tmp_path / "m", "--quiet")
    assert (done.exit_code, done.output) == (0, "")


def test_the_format_may_be_named(folder, tmp_path):
    named = ["--format", "csv", "-t", "species"]
    succeed("fit", folder / "iris.csv", *named, "-q", "5", "-o", tmp_path / "m")
    succeed("evaluate", tmp_path / "m", folder / "iris.csv", *named)
    succeed("predict", tmp_path / "m", folder / "iris.csv", *named)


def test_labels_of_other_types_are_matched_or_refused(tmp_path):
    train = "".join(f"{k},{label}\n" for k, label in enumerate(["true", "false", "unknown"] * 5))
    (tmp_path / "train.csv").write_text("x,y\n" + train)
    (tmp_path / "test.csv").write_text("x,y\n1,true\n2,false\n")
    (tmp_path / "other.csv").write_text("x,y\n1,red\n2,blue\n")
    succeed("fit", tmp_path / "train.csv", "-t", "y", "-q", "5", "-o", tmp_path / "m")
    found = json.loads(
        succeed("evaluate", tmp_path / "m", tmp_path / "test.csv", "-t", "y", "--json")
    )
    assert [row["label"] for row in found["classes"]] == ["false", "true", "unknown"]
    assert found["log_loss"] is not None
    told = refuse("evaluate", tmp_path / "m", tmp_path / "other.csv", "-t", "y")
    assert "none of the labels is one that the model knows" in told


def test_brackets_and_dollars_in_names_are_printed(tmp_path):
    rows = "".join(f"{k},{k % 3},{['[/x]', '$1_$'][k % 2]}\n" for k in range(20))
    (tmp_path / "x.csv").write_text("size [cm],w[/kg],y\n" + rows)
    succeed("fit", tmp_path / "x.csv", "-t", "y", "-q", "3", "-o", tmp_path / "m")
    assert "size [cm], w[/kg]" in succeed("inspect", tmp_path / "m")
    said = succeed("evaluate", tmp_path / "m", tmp_path / "x.csv", "-t", "y",
                   "--picture", tmp_path / "x.png")  # fmt: skip
    assert "[/x]" in said
    assert "$1_$" in said


def test_inputs_are_not_overwritten(folder, tmp_path):
    data, model = tmp_path / "data.csv", tmp_path / "model.csv"
    data.write_bytes((folder / "iris.csv").read_bytes())
    model.write_bytes((folder / "iris.model").read_bytes())
    before = data.read_bytes(), model.read_bytes()
    (tmp_path / "model.png").hardlink_to(model)
    for arguments in (
        ["fit", data, "-t", "species", "-o", data],
        ["predict", model, data, "-o", data],
        ["predict", model, data, "-o", model],
        ["evaluate", model, data, "-t", "species", "--picture", tmp_path / "model.png"],
        ["inspect", model, "--picture", tmp_path / "model.png"],
    ):
        assert "is what is read" in refuse(*arguments)
    assert (data.read_bytes(), model.read_bytes()) == before


def test_links_and_permissions_stay(folder, tmp_path):
    fit = ["fit", folder / "iris.csv", "-t", "species", "-q", "3", "-o"]
    (tmp_path / "link").symlink_to(tmp_path / "target.model")
    succeed(*fit, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "target.model").chmod(0o640)
    succeed(*fit, tmp_path / "link")
    assert (tmp_path / "target.model").stat().st_mode & 0o777 == 0o640


def test_the_same_fit_gives_the_same_file(folder, tmp_path):
    fit = ["fit", folder / "iris.csv", "-t", "species", "-q", "3", "-o"]
    succeed(*fit, tmp_path / "a")
    succeed(*fit, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_options_without_effect_are_refused(folder, tmp_path):
    images = folder / "images-idx3-ubyte"
    assert "Gaussian" in refuse("fit", images, "--gamma", "5", "-o", tmp_path / "m")
    assert "no names to leave out" in refuse("fit", images, "--drop", "x", "-o", tmp_path / "m")
    assert "needs the column" in refuse(
        "predict", folder / "iris.model", folder / "iris.csv", "--drop", "sepal length"
    )


def test_a_sparse_file_may_lack_the_last_feature(folder, tmp_path):
    (tmp_path / "train.svm").write_text("0 1:1 2:2 3:1\n1 1:3 2:1\n0 1:1 2:2\n1 1:3 3:2\n")
    (tmp_path / "test.svm").write_text("0 1:1 2:2\n")
    succeed("fit", tmp_path / "train.svm", "-q", "2", "-o", tmp_path / "m")
    assert "1,0," in succeed("predict", tmp_path / "m", tmp_path / "test.svm")


def test_missing_column_names_give_a_warning(folder):
    done = run("predict", folder / "iris.model", folder / "iris.npz")
    assert done.exit_code == 0
    assert "has no column names" in done.stderr


def test_every_row_is_predicted(folder, tmp_path):
    header, first, *_ = (folder / "new.csv").read_text().splitlines()
    path = write(tmp_path, f"{header}\n{first}\nNA,NA,NA,NA\n\n5.1,,#DIV/0!,-\n,,,\n{first}\n")
    done = run("predict", folder / "iris.model", path)
    assert done.exit_code == 0, done.output
    rows = [line.split(",") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == ["row", "1", "2", "3", "4", "5"]
    assert rows[1][1:] == rows[5][1:]
    assert all(1 / 3 <= float(row[2]) <= 1 for row in rows[1:])
    assert "Note: '-' was read as a missing value in 'petal width'." in done.stderr
    assert "No such option" in run("predict", folder / "iris.model", path, "--drop-missing").output


def test_rows_with_missing_values_are_evaluated_or_dropped(folder, tmp_path):
    header, first, *_ = (folder / "iris.csv").read_text().splitlines()
    path = write(tmp_path, f"{header}\n{first}\n5.1,,1.4,0.2,setosa\n{first[: -len('setosa')]}\n")
    done = run("evaluate", folder / "iris.model", path, "-t", "species")
    assert re.search(r"error +\d+\.\d\d % of 2 rows", done.stdout)
    assert "Note: 1 row was left out of" in done.stderr
    done = run("evaluate", folder / "iris.model", path, "-t", "species", "--drop-missing")
    assert re.search(r"error +0.00 % of 1 rows", done.stdout)
    assert "Warning: 1 row was dropped for missing values." in done.stderr


def test_predict_ignores_the_column_of_labels(folder, tmp_path):
    header, first, *_ = (folder / "iris.csv").read_text().splitlines()
    path = write(tmp_path, f"{header}\n{first.rpartition(',')[0]},\n")
    succeed("predict", folder / "iris.model", path, "-t", "species")


def test_an_unknown_label_adds_a_class(tmp_path):
    rows = "".join(f"{k},{k % 2}\n" for k in range(10))
    (tmp_path / "train.csv").write_text("x,y\n" + rows)
    (tmp_path / "test.csv").write_text("x,y\n" + rows + "3,wolf\n")
    succeed("fit", tmp_path / "train.csv", "-t", "y", "-q", "5", "-o", tmp_path / "m")
    found = json.loads(
        succeed("evaluate", tmp_path / "m", tmp_path / "test.csv", "-t", "y", "--json")
    )
    assert [row["label"] for row in found["classes"]] == ["0", "1", "wolf"]
    assert found["log_loss"] is None
    assert sum(found["confusion"][2]) == 1


@pytest.mark.parametrize(
    ("trained", "given"),
    [([1.0, 2.0], ["1.0", "2.0"]), ([True, False], ["true", "False"]), (["1", "2"], ["1", "2.0"])],
)
def test_labels_match_across_formats(trained, given, tmp_path):
    x = list(range(10))
    pl.DataFrame({"x": x, "y": trained * 5}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"x": x, "y": given * 5}).write_csv(tmp_path / "b.csv")
    for a, b in (("a.parquet", "b.csv"), ("b.csv", "a.parquet")):
        succeed("fit", tmp_path / a, "-t", "y", "-q", "5", "-o", tmp_path / "m")
        found = json.loads(succeed("evaluate", tmp_path / "m", tmp_path / b, "-t", "y", "--json"))
        assert len(found["classes"]) == 2
        assert found["error_percent"] < 60


def test_data_of_the_wrong_kind_are_refused(folder, tmp_path):
    assert "contains images, and the model was trained on a table" in refuse(
        "predict", folder / "iris.model", "digits"
    )
    np.savez(tmp_path / "x.npz", X=np.eye(7))
    succeed("fit", "digits", "-q", "2", "-o", tmp_path / "m")
    assert "has 7 features per row, and the model was trained on 64" in refuse(
        "predict", tmp_path / "m", tmp_path / "x.npz"
    )


def test_closed_standard_output_is_an_error(folder):
    line = " ".join(map(shlex.quote, [*PROGRAM, "inspect", str(folder / "iris.model")]))
    done = subprocess.run(f"{line} >&-", shell=True, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "Error: standard output is closed; open it to receive the result.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fit", "x"], 2, "Error: Missing option '--output' / '-o'. See kmeans-kernel fit --help."),
        (["fly"], 2, "Error: No such command 'fly'. See kmeans-kernel --help."),
        (["--version"], 0, ""),
    ],
)  # fmt: skip
def test_usage_errors_are_one_line(arguments, code, said):
    done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (code, said)


@pytest.mark.parametrize("command", ["--version", "data list", "inspect MODEL"])
def test_a_full_disk_is_an_error(command, folder):
    arguments = command.replace("MODEL", shlex.quote(str(folder / "iris.model")))
    line = f"{shlex.join(PROGRAM)} {arguments}"
    done = subprocess.run(f"{line} > /dev/full", shell=True, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    done = subprocess.run(f"{line} | true", shell=True, capture_output=True, text=True)
    assert done.stderr == ""


def test_a_failed_run_gives_one_error_line(tmp_path, monkeypatch):
    (tmp_path / "figure1.json").write_text("{}")
    told = refuse("reproduce", "figure1", "-q", "1", "--runs", "1", "--output", tmp_path)
    assert "not a result file of ours" in told
    assert "is a file" in refuse("reproduce", "figure1", "--output", tmp_path / "figure1.json")


def test_pipes(folder, tmp_path):
    content = (folder / "iris.csv").read_bytes()
    model = str(tmp_path / "model")
    fit = [*PROGRAM, "fit", "-", "-t", "species", "-q", "5", "-o", model]
    subprocess.run(fit, input=content, check=True, stdout=subprocess.PIPE)
    predict = [*PROGRAM, "predict", model, "-", "-t", "species"]
    done = subprocess.run(predict, input=content, check=True, capture_output=True)
    assert len(done.stdout.splitlines()) == 151
    assert done.stderr == b""  # no progress bars without a terminal
    fit = shlex.join([*PROGRAM, "fit", "-", "-t", "species", "-q", "5", "-o", "-"])
    chain = f"{fit} | {shlex.join([*PROGRAM, 'predict', '-', str(folder / 'new.csv')])}"
    chained = subprocess.run(chain, shell=True, input=content, check=True, capture_output=True)
    assert chained.stdout == done.stdout
    through = f"cat {shlex.quote(model)} | {shlex.join([*PROGRAM, 'inspect', '/dev/stdin'])}"
    done = subprocess.run(through, shell=True, check=True, capture_output=True)
    assert b"KMeansKernelClassifier" in done.stdout
    pipe = " ".join(map(shlex.quote, [*PROGRAM, "predict", model, str(folder / "new.csv")]))
    done = subprocess.run(f"{pipe} | head -1", shell=True, capture_output=True, check=True)
    assert done.stdout == b"row,label,probability\n"
    assert done.stderr == b""


def test_an_interrupt_leaves_no_incomplete_file(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", X=rng.normal(size=(60_000, 100)), y=np.arange(60_000) % 2)
    model = tmp_path / "model"
    command = [*PROGRAM, "fit", str(tmp_path / "data.npz"), "-q", "12000", "-o", str(model)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(6)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert b"Traceback" not in said
    assert b"Interrupted" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz"]


def examples():
    """Return the example command lines in the help of every command, by command."""
    from typer.main import get_command

    def walk(path, command):
        yield path, re.findall(r"^kmeans-kernel .*", command.help.partition("Example:")[2], re.M)
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(f"{path} {name}".strip(), inner)

    return dict(walk("", get_command(app)))


def test_every_command_has_an_example():
    found = examples()
    assert set(found) == {
        "", "fit", "predict", "evaluate", "explain", "inspect", "reproduce", "plan", "export",
        "serve", "data", "data list", "data fetch", "data where",
    }  # fmt: skip
    for command, lines in found.items():
        assert lines[-1].startswith(f"kmeans-kernel {command}"), command
        assert all(line in succeed(*command.split(), "--help") for line in lines)


@pytest.mark.parametrize("command", sorted(examples().keys() - {"reproduce", "serve"}))
def test_examples_run_as_written_in_an_empty_folder(command, tmp_path, monkeypatch):
    """The example of reproduce needs MNIST and runs in test_reproduction; serve never ends."""
    monkeypatch.chdir(tmp_path)
    for line in examples()[command]:
        succeed(*shlex.split(line)[1:])


def test_export(folder, tmp_path):
    graph, page = tmp_path / "iris.onnx", tmp_path / "iris.html"
    data = ("--data", folder / "iris.csv", "-t", "species")
    said = succeed("export", folder / "iris.model", "--onnx", graph, "--web", page, *data,
                   "--float16", "--title", "Flowers")  # fmt: skip
    assert "input X, outputs label and probabilities" in said
    assert re.search(r"float16 changes \d of 150 labels", said)
    assert f"Open the page: {page.as_uri()}" in said.replace("\n", "")
    assert "<title>Flowers</title>" in page.read_text()
    assert graph.stat().st_size > 0
    assert succeed("export", folder / "iris.model", "--web", page, "--quiet") == ""
    assert "<title>iris</title>" in page.read_text()


def test_invalid_exports_are_refused(folder, tmp_path):
    model, page = folder / "iris.model", tmp_path / "iris.html"
    assert "--onnx FILE, --web FILE" in refuse("export", model)
    assert "name its file with --web" in refuse("export", model, "--onnx", page, "--float16")
    assert "name another file" in refuse("export", model, "--web", model)
    assert "name two files" in refuse("export", model, "--onnx", page, "--web", page)
    assert "make the folder" in refuse("export", model, "--onnx", tmp_path / "no" / "a.onnx")
    assert "with --target" in refuse("export", model, "--web", page, "--data", folder / "new.csv")
    assert list(tmp_path.iterdir()) == []


def test_serve_errors_are_one_line(folder):
    model = folder / "iris.model"
    assert "two models have the name 'iris'" in refuse("serve", model, model)
    assert "none.model" in refuse("serve", folder / "none.model")
    assert "not a whole model" in refuse("serve", folder / "iris.csv")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"the port {port} of 127.0.0.1 is in use" in refuse("serve", model, "--port", port)


def test_named_data_sets(tmp_path, monkeypatch):
    """`fit` uses the training part, `evaluate` the test part; a file takes precedence."""
    monkeypatch.chdir(tmp_path)
    assert "1257 rows, 10 classes" in succeed("fit", "digits", "-q", "10", "-o", "m")
    assert json.loads(succeed("evaluate", "m", "digits", "--json"))["rows"] == 540
    assert "its own labels" in refuse("fit", "digits", "-t", "y", "-o", "n")
    (tmp_path / "digits").write_text("x,y\n1,a\n2,b\n3,a\n")
    assert "3 rows, 2 classes" in succeed("fit", "digits", "-t", "y", "-q", "1", "-o", "n")


def test_help_needs_no_large_library():
    """Help and shell completion must not wait for the import of scikit-learn."""
    code = (
        "import sys\nimport kmeans_kernel.cli.app\n"
        "sys.exit(' '.join({'sklearn', 'scipy', 'polars', 'matplotlib'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
