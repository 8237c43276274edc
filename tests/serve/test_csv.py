"""CSV: what is a header, and what is said of lines that cannot be read."""

import numpy as np
import pytest

from kmeans_kernel.serve import Limits
from kmeans_kernel.serve._models import serve_model
from kmeans_kernel.serve._refusals import Refusal
from kmeans_kernel.serve._requests import read_inference, read_rows
from tests.serve.slow_server import Slow


def served(folder, names=None):
    estimator = Slow(folder)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return serve_model("small", estimator)


def read(text, model):
    return read_rows(text.encode(), "text/csv", model, Limits()).tolist()


@pytest.mark.parametrize(
    ("names", "text", "rows"),
    [
        (None, "1,2\n3,4\n", [[1, 2], [3, 4]]),
        (None, "a,b\n3,4\n", [[3, 4]]),
        (["a", "b"], "b,a\n3,4\n", [[4, 3]]),
        (["a", "b"], "3,4\n", [[3, 4]]),
        (["0", "1"], "1,0\n3,4\n", [[4, 3]]),
        (["0", "1"], "0,1\n3,4\n", [[3, 4]]),
        (["0", "1"], "1,1\n3,4\n", [[1, 1], [3, 4]]),
        (["a, or b", "c"], 'c,"a, or b"\n3,4', [[4, 3]]),
        (None, "1,2\r3,4\r", [[1, 2], [3, 4]]),
        (None, "1,2\r\n3,4\r\n", [[1, 2], [3, 4]]),
    ],
)
def test_the_first_line_may_name_the_features(tmp_path, names, text, rows):
    assert read(text, served(tmp_path, names)) == rows


@pytest.mark.parametrize(
    ("names", "text", "words"),
    [
        (None, "x,2\n3,4\n", "Line 1 of the CSV must hold numbers, or else names only, got 'x'"),
        (None, "1,\n3,4\n", "Line 1 of the CSV must hold numbers, or else names only, got ''"),
        (None, "1,x\n", "Line 1 of the CSV must hold numbers"),
        (["a", "b"], "1,x\n", "Line 1 of the CSV must hold numbers"),
        (["a", "b"], "a,1\n3,4\n", "columns of the CSV must be 'a', 'b', got 'a', '1'"),
        (["a", "b"], "x,y\n", "columns of the CSV must be 'a', 'b', got 'x', 'y'"),
        (None, "x,y\n", "at least one row of numbers, got a line of names only"),
        (None, "", "at least one row of numbers, got none"),
        (None, "1,2\n1," + "2" * 200_000 + "x\n", "Line 2 .* more than 131,072 characters"),
        (None, "x" * 200_000 + ",1\n1,2\n", "Line 1 .* more than 131,072 characters"),
        (None, "1,2,3\n", "Line 1 of the CSV must have 2 cells"),
        (None, "1," * 20_000 + "\n", "Line 1 of the CSV must have 2 cells"),
        (None, "1,2\r3,x\r", "Line 2 of the CSV must hold numbers, got 'x'"),
    ],
)
def test_lines_that_cannot_be_read_are_named(tmp_path, names, text, words):
    with pytest.raises(Refusal, match=words) as caught:
        read(text, served(tmp_path, names))
    assert caught.value.status == 400


def test_who_sends_no_json_is_told_how_to_send_csv(tmp_path):
    model = served(tmp_path)
    how = 'curl -H "Content-Type: text/csv" --data-binary @rows.csv'
    for body in (b"1,2\n3,4\n", b""):
        with pytest.raises(Refusal) as caught:
            read_rows(body, "application/json", model, Limits())
        assert how in caught.value.sentence
        assert "NaN" not in caught.value.sentence
    with pytest.raises(Refusal, match="NaN and infinity are not JSON"):
        read_rows(b"[[1, -Infinity]]", "", model, Limits())
    with pytest.raises(Refusal) as caught:
        read_inference(b"{", None, model, Limits())
    assert "csv" not in caught.value.sentence
    assert "NaN" not in caught.value.sentence


def test_what_is_missing_is_said_in_grammar(tmp_path):
    model = served(tmp_path, ["a", "b"])
    column = b'{"name": "%s", "shape": [1], "datatype": "FP64", "data": [1]}'
    one, two = column % b"c", column % b"d"
    with pytest.raises(Refusal, match="'a', 'b' are missing"):
        read_inference(b'{"inputs": [' + one + b"," + two + b"]}", None, model, Limits())
    with pytest.raises(Refusal, match="'b' is missing"):
        read_inference(b'{"inputs": [' + column % b"a" + b"," + two + b"]}", None, model, Limits())
