"""CSV bodies: detection of the header, and errors of invalid lines."""

import numpy as np
import pytest

from kmeans_kernel.serve import Limits
from kmeans_kernel.serve._models import to_served_model
from kmeans_kernel.serve.protocol._requests import read_inference, read_rows
from kmeans_kernel.serve.transport._errors import RequestError
from tests.serve.slow_server import Slow


def served(folder, names=None):
    estimator = Slow(folder)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return to_served_model("small", estimator)


def read(text, model):
    return read_rows(text.encode(), "text/csv", model, Limits()).rows.tolist()


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
        (["a", "b"], "x,b,y, a\n,4,z,3\n\n,6,,5\n", [[3, 4], [5, 6]]),
        (["a", "b"], 'b,x,a\r4,"1\r2",3\r', [[3, 4]]),
        (["0", "1"], "1,0,x\n3,4,z\n", [[4, 3]]),
        (["a\r\nb", "c"], 'c,"a\r\nb"\r\n3,4\r\n', [[4, 3]]),
        ([" a", "c"], "c, a\n3,4\n", [[4, 3]]),
    ],
)
def test_the_header_is_detected(tmp_path, names, text, rows):
    assert read(text, served(tmp_path, names)) == rows


@pytest.mark.parametrize(
    ("names", "text", "words"),
    [
        (None, "x,2\n3,4\n", "Line 1 of the CSV must contain only numbers or only names, got 'x'"),
        (None, "1,\n3,4\n", "Line 1 of the CSV must contain only numbers or only names, got ''"),
        (None, "1,x\n", "Line 1 of the CSV must contain only numbers or only names"),
        (["a", "b"], "1,x\n", "Line 1 of the CSV must contain only numbers or only names"),
        (["a", "b"], "a,1\n3,4\n", "columns of the CSV must be 'a', 'b', got 'a', '1'"),
        (["a", "b"], "x,y\n", "columns of the CSV must be 'a', 'b', got 'x', 'y'"),
        (None, "x,y\n", "at least one row of numbers, got only a header"),
        (None, "", "at least one row of numbers, got none"),
        (None, "1,2\n1," + "2" * 200_000 + "x\n", "Line 2 .* more than 131,072 characters"),
        (None, "x" * 200_000 + ",1\n1,2\n", "Line 1 .* more than 131,072 characters"),
        (None, "1,2,3\n", "Line 1 of the CSV must have 2 cells"),
        (None, "1," * 20_000 + "\n", "Line 1 of the CSV must have 2 cells"),
        (["a", "b"], "a,b,c\n1,2\n", "Line 2 of the CSV must have 3 cells, as the first line has"),
        (["a", "b"], "a,b,c\n1,2,3,4\n", "Line 2 of the CSV must have 3 cells"),
        (
            ["a", "b"],
            "a,b,c\n1,2,3\n1,x,3\n",
            "Line 3 .* numbers for the features, got 'x' for 'b'",
        ),
        (["a", "b"], "a,b,c\n1,1_0,3\n", "got '1_0' for 'b'"),
        (["a", "b"], "a,b,c\n", "at least one row of numbers, got only a header"),
        (["a", "b"], "a,b,a\n1,2,3\n", "must be 'a', 'b', got 'a', 'b', 'a'; name each .* once"),
        (["0", "1"], "0,1,2\n3,4,5\n", "Line 1 of the CSV must have 2 cells"),
        (["a", "b"], "1,2,3\n3,4,5\n", "Line 1 of the CSV must have 2 cells"),
        (["a\nb", "c"], '"a\nb",c\n', "got only a header"),
        (None, "1,2\r3,x\r", "Line 2 of the CSV must contain numbers, got 'x'"),
    ],
)
def test_errors_name_the_invalid_line(tmp_path, names, text, words):
    with pytest.raises(RequestError, match=words) as caught:
        read(text, served(tmp_path, names))
    assert caught.value.status == 400


def test_the_error_for_invalid_json_explains_csv(tmp_path):
    model = served(tmp_path)
    how = 'curl -H "Content-Type: text/csv" --data-binary @rows.csv'
    for body in (b"1,2\n3,4\n", b""):
        with pytest.raises(RequestError) as caught:
            read_rows(body, "application/json", model, Limits())
        assert how in caught.value.message
        assert "NaN" not in caught.value.message
    with pytest.raises(RequestError, match="NaN and infinity are not JSON"):
        read_rows(b"[[1, -Infinity]]", "", model, Limits())
    with pytest.raises(RequestError) as caught:
        read_inference(b"{", None, model, Limits())
    assert "csv" not in caught.value.message
    assert "NaN" not in caught.value.message


def test_missing_features_are_named_in_singular_and_plural(tmp_path):
    model = served(tmp_path, ["a", "b"])
    column = b'{"name": "%s", "shape": [1], "datatype": "FP64", "data": [1]}'
    one, two = column % b"c", column % b"d"
    with pytest.raises(RequestError, match="'a', 'b' are missing"):
        read_inference(b'{"inputs": [' + one + b"," + two + b"]}", None, model, Limits())
    with pytest.raises(RequestError, match="'b' is missing"):
        read_inference(b'{"inputs": [' + column % b"a" + b"," + two + b"]}", None, model, Limits())
