"""Files for a model are read as the file that it was trained on was written."""

import re

import pytest

from kmeans_kernel.export.model_file import load_with_notation
from tests.cli.test_commands import run, succeed


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return a model of amounts of thousands, whose training file has decimal commas."""
    folder = tmp_path_factory.mktemp("notation")
    amounts = [1000 + 41 * (k * 7 % 200) for k in range(200)]
    rows = "".join(
        f"{amount // 1000}.{amount % 1000:03d},00\t{1 + k % 28:02d}/03/2020\t"
        f"{-999 if k % 10 == 0 else k % 7}\t{'high' if amount > 5000 else 'low'}\n"
        for k, amount in enumerate(amounts)
    )
    (folder / "train.tsv").write_text("amount\ton\tn\ty\n" + rows)
    succeed("fit", folder / "train.tsv", "-t", "y", "-q", "20", "--missing=-999",
            "-o", folder / "model")  # fmt: skip
    return folder / "model"


def test_the_notation_is_saved(model):
    assert load_with_notation(model)[1] == {
        "decimal": {"amount": "comma", "n": "comma"},
        "dates": {"on": "day-first"},
        "missing": ["-999"],
        "units": {},
    }


@pytest.mark.parametrize("separator", ["\t", ";", "|"])
def test_a_file_that_does_not_tell_is_read_as_in_training(separator, model, tmp_path):
    path = tmp_path / "new.tsv"
    rows = [["amount", "on", "n"], ["8.000", "03/01/2020", "-999"]]
    path.write_text("\n".join(separator.join(row) for row in rows) + "\n")
    done = run("predict", model, path)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].startswith("1,high,")
    notes = [line for line in done.stderr.splitlines() if line.startswith("Note: ")]
    assert notes == [
        "Note: '-999' was read as a missing value in 'n', as in training.",
        "Note: 'amount' was read with a decimal comma, as in training: '8.000' is 8000; if not, "
        "add --decimal point.",
        "Note: dates of 'on' such as '03/01/2020' were read with the day first, as in training; if "
        "not, add --dates month-first.",
    ]
    assert "Note" not in run("predict", model, path, "--quiet").stderr
    done = run("predict", model, path, "--decimal", "point")
    assert done.stdout.splitlines()[1].startswith("1,low,")
    assert "decimal" not in done.stderr
    path.write_text(
        path.read_text()
        .replace("\n8", f"{separator}y\n8")
        .replace("999\n", f"999{separator}high\n")
    )
    said = succeed("evaluate", model, path, "-t", "y")
    assert re.search(r"error +0\.00 % of 1 rows", said)


def test_files_out_of_core_have_decimal_points(tmp_path):
    rows = "".join(f"{k % 7}.{k:03d},{'uv'[k % 2]}\n" for k in range(60))
    (tmp_path / "x.csv").write_text("a,y\n" + rows)
    succeed("fit", tmp_path / "x.csv", "-t", "y", "-q", "3", "--blocks", "-o", tmp_path / "m")
    assert load_with_notation(tmp_path / "m")[1]["decimal"] == {"a": "point"}
    (tmp_path / "new.csv").write_text("a;b\n1.234;x\n")
    done = run("predict", tmp_path / "m", tmp_path / "new.csv")
    assert "'a' was read with a decimal point, as in training: '1.234' is 1.234" in done.stderr
