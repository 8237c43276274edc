"""Models of tables: the same probabilities by every way of sending rows by name."""

import csv
import json
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel import KMeansKernelClassifier, TableEncoder, load_model, save_model
from kmeans_kernel.estimators.columns._columns import Column
from kmeans_kernel.estimators.columns._frames import RawColumn
from kmeans_kernel.serve import Limits
from kmeans_kernel.serve._models import to_served_model
from kmeans_kernel.serve._tables import ServedTable
from kmeans_kernel.serve.protocol._requests import read_inference, read_table_rows
from kmeans_kernel.serve.protocol._table_rows import rows_of_csv
from kmeans_kernel.serve.protocol._values import code_column, read_cells
from kmeans_kernel.serve.transport._errors import RequestError
from tests.export.test_model_columns import TYPES, people
from tests.serve.processes import SERVE, connect, curl, curl_json, post, read_response, running
from tests.serve.test_protocol import tensor, triton

USED = ["age", "income", "city", "street", "vip", "since", "plan", "grade"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a model, its file, and rows with unknown levels and missing values in any column."""
    X, y = people()
    model = KMeansKernelClassifier(5, random_state=0, column_types=TYPES).fit(X, y)
    path = tmp_path_factory.mktemp("table") / "people.model"
    save_model(model, path)
    rows = people(1)[0].astype({"plan": object, "since": object, "grade": object})
    for j, name in enumerate(rows):
        rows.loc[j, name] = None
    rows.loc[20, ["city", "street", "plan"]] = ["Bonn", "elsewhere, 3", "c"]
    rows.loc[21, ["grade", "age"]] = [9, 1e9]
    return model, path, rows


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """Return a model of a plain array with missing numbers, and its file."""
    X = people()[0][["age", "income"]].to_numpy()
    model = KMeansKernelClassifier(5, random_state=0).fit(X, people()[1])
    path = tmp_path_factory.mktemp("numbers") / "numbers.model"
    save_model(model, path)
    return model, path, X


@pytest.fixture(scope="module")
def encoded(tmp_path_factory):
    """Return a pipeline that begins with the encoder of tables, and its file."""
    X, y = people()
    steps = TableEncoder(column_types=TYPES), StandardScaler(), KMeansKernelClassifier(5)
    model = make_pipeline(*steps).fit(X, y)
    path = tmp_path_factory.mktemp("encoded") / "encoded.model"
    save_model(model, path)
    return model, path


@pytest.fixture(scope="module")
def server(table, numbers, encoded, tmp_path_factory):
    command = [*SERVE, table[1], numbers[1], encoded[1], "--port", "0"]
    with running(command, tmp_path_factory.mktemp("log") / "log") as server:
        yield server


def as_json(value):
    if value is None or value != value:  # NaN, NaT
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    return value.item() if isinstance(value, np.generic) else value


def records(rows, names=USED):
    return [{name: as_json(row[name]) for name in names} for row in rows.to_dict(orient="records")]


def of(told):
    return np.array([[one["no"], one["yes"]] for one in told["probabilities"]])


def ask(server, body, *options, model="people"):
    """Return the status and the answer; the body may be longer than an argument of a command."""
    content = body if isinstance(body, str) else json.dumps(body)
    with connect(server.port) as connection:
        connection.sendall(post(f"/predict/{model}", content.encode(), *options))
        status, _, content = read_response(connection)
    return status, json.loads(content)


def infer(server, inputs, model="people", **more):
    body = json.dumps({"inputs": inputs, **more}).encode()
    with connect(server.port) as connection:
        connection.sendall(post(f"/v2/models/{model}/infer", body))
        status, _, content = read_response(connection)
    return status, json.loads(content)


CSV = "Content-Type: text/csv"


def test_every_way_gives_the_probabilities_of_python(server, table):
    model, path, rows = table
    expected = model.predict_proba(rows)
    np.testing.assert_array_equal(load_model(path).predict_proba(rows), expected)
    status, told = ask(server, {"rows": records(rows)})
    assert status == 200, told
    np.testing.assert_allclose(of(told), expected, rtol=0, atol=1e-12)
    assert told["labels"] == model.predict(rows).tolist()
    notes = dict(note.split(": ", 1) for note in told["notes"])
    assert notes.pop("rare or unknown levels of 'street'").startswith("'No. ")
    assert notes == {
        "unknown levels of 'city'": "'Bonn'",
        "unknown levels of 'plan'": "'c'",
        "unknown levels of 'grade'": "9",
    }
    lists = [[as_json(value) for value in row] for row in rows.to_numpy(dtype=object).tolist()]
    np.testing.assert_array_equal(of(ask(server, lists)[1]), of(told))
    for frame in (rows, rows[USED[::-1]]):
        status, by_csv = ask(server, frame.to_csv(index=False), CSV)
        assert status == 200, by_csv
        np.testing.assert_array_equal(of(by_csv), of(told))
    status, by_tensor = infer(server, tensors(rows))
    assert status == 200, by_tensor
    found = np.reshape(by_tensor["outputs"][1]["data"], (-1, 2))
    np.testing.assert_array_equal(found, of(told))
    assert by_tensor["parameters"]["notes"] == "; ".join(told["notes"]) + ".0"  # grade: 9.0


def test_a_pipeline_that_begins_with_the_encoder_takes_rows_by_name(server, table, encoded):
    model, path = encoded
    rows = table[2]
    expected = model.predict_proba(rows)
    np.testing.assert_array_equal(load_model(path).predict_proba(rows), expected)
    status, told = ask(server, {"rows": records(rows)}, model="encoded")
    assert status == 200, told
    np.testing.assert_allclose(of(told), expected, rtol=0, atol=1e-12)
    assert any("'Bonn'" in note for note in told["notes"])
    example = to_served_model("encoded", model).table.example
    assert set(example) == set(USED)
    assert ask(server, {"rows": [example]}, model="encoded")[0] == 200


def tensors(rows):
    """Return one tensor of JSON for each column."""
    types = {"age": "FP64", "income": "FP64", "vip": "BOOL", "grade": "INT64"}
    return [
        {"name": name, "shape": [len(rows), 1] if name == "city" else [len(rows)],
         "datatype": types.get(name, "BYTES"), "data": [one[name] for one in records(rows)]}
        for name in USED[::-1]
    ]  # fmt: skip


@pytest.mark.parametrize("binary", [True, False])
def test_triton_sends_one_tensor_for_each_column(server, table, binary):
    model, _, rows = table
    known = rows.iloc[30:60].dropna()
    texts = known[["city", "street", "since", "plan"]].astype(str)
    numbers = known[["age", "income"]].astype(np.float64)
    given = [
        *(tensor(numbers[name].to_numpy(), name, binary) for name in numbers),
        *(tensor(texts[name].to_numpy(dtype=np.object_), name, binary) for name in texts),
        tensor(known["vip"].to_numpy(dtype=bool), "vip", binary),
        tensor(known["grade"].to_numpy(dtype=np.int64), "grade", binary),
    ]  # fmt: skip
    with triton.InferenceServerClient(server.host) as client:
        found = client.infer("people", given).as_numpy("probabilities")
        np.testing.assert_allclose(found, model.predict_proba(known), rtol=0, atol=1e-12)
        inputs = client.get_model_metadata("people")["inputs"]
    assert [one["name"] for one in inputs] == USED
    assert [one["datatype"] for one in inputs] == [
        "FP64", "FP64", "BYTES", "BYTES", "BOOL", "BYTES", "BYTES", "FP64"
    ]  # fmt: skip


def test_missing_values_in_binary_tensors(server, table):
    model, _, rows = table
    one = rows.iloc[[40]].assign(age=np.nan, city=None, vip=None)
    given = [
        tensor(np.array([np.nan]), "age"),
        tensor(np.array([one["income"].iloc[0]]), "income"),
        *(tensor(np.array([as_json(one[name].iloc[0]) or ""], dtype=np.object_), name)
          for name in ("city", "street", "since", "plan", "vip")),
        tensor(np.array([one["grade"].iloc[0]], dtype=np.uint8), "grade"),
    ]  # fmt: skip
    with triton.InferenceServerClient(server.host) as client:
        found = client.infer("people", given).as_numpy("probabilities")
    np.testing.assert_allclose(found, model.predict_proba(one), rtol=0, atol=1e-12)


def test_a_row_alone_is_predicted_as_among_others(server, table):
    """Rows are coded value by value: 7 and "7" in one column change nothing for other rows."""
    rows = records(table[2])[:40]
    together = ask(server, rows)[1]
    with ThreadPoolExecutor(8) as threads:
        alone = list(threads.map(lambda row: ask(server, [row])[1], rows))
    for k, told in enumerate(alone):
        np.testing.assert_allclose(of(told)[0], of(together)[k], rtol=0, atol=1e-12)
    odd = [{**rows[30], "grade": value} for value in (2, "2", 2.0, True, "x", None)]
    mixed = of(ask(server, odd)[1])
    for k, row in enumerate(odd):
        np.testing.assert_allclose(of(ask(server, [row])[1])[0], mixed[k], rtol=0, atol=1e-12)
    np.testing.assert_allclose(mixed[0], mixed[1], rtol=0, atol=1e-12)


def test_quoted_cells_of_csv_keep_their_line_breaks():
    levels = ["two\r\nlines", "two\nlines", "two\rlines", "\r\ncr", "x"]
    X = pd.DataFrame({"t": levels * 20, "v": np.arange(100.0)})
    model = KMeansKernelClassifier(5, random_state=0).fit(X, X["t"].str.len() > 5)
    table = to_served_model("lines", model).table
    for end in ("\n", "\r\n", "\r"):
        text = X.to_csv(index=False, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC)
        coded = rows_of_csv(text.encode(), table, 1000)
        assert coded.notes == ()
        np.testing.assert_array_equal(coded.rows[:5, 0], coded.rows[5:10, 0])
        assert len(set(coded.rows[:5, 0])) == 5


def test_extra_columns_are_ignored_and_told(server, table):
    row = records(table[2])[30]
    told = ask(server, [row])[1]
    assert told["notes"] == []
    extra = ask(server, [row | {"shoe": 43, "id": "u1"}, row | {"hat": [1]}])[1]
    assert extra["notes"] == ["ignored columns: 'shoe', 'hat'"]  # id is a column of the model
    np.testing.assert_allclose(of(extra), of(told).repeat(2, axis=0), rtol=0, atol=1e-12)
    many = ask(server, [row | {f"c{k}": 0 for k in range(100)}])[1]
    assert many["notes"] == ["ignored columns: 'c0', 'c1', 'c2', 'c3', 'c4' and 95 more"]
    lines = pd.DataFrame([row]).assign(shoe=43).to_csv(index=False)
    assert ask(server, lines, CSV)[1]["notes"] == ["ignored columns: 'shoe'"]
    more = [*tensors(table[2].iloc[[30]]), {"name": "shoe", "shape": [1], "datatype": "INT8",
                                            "data": [43]}]  # fmt: skip
    assert infer(server, more)[1]["parameters"] == {"notes": "ignored columns: 'shoe'"}


ABSENT = "'age', 'vip', 'grade' are absent"


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def test_absent_columns_are_named_all_at_once(server, table):
    rows = records(table[2])[30:33]
    some = without(rows[0], "age", "vip", "grade")
    status, told = ask(server, [some])
    assert (status, ABSENT in told["error"], "send null" in told["error"]) == (400, True, True)
    status, told = ask(server, [rows[0], without(rows[1], "vip"), without(rows[2], "age", "grade")])
    assert (status, f"{ABSENT} (first in row 1)" in told["error"]) == (400, True)
    status, told = ask(server, pd.DataFrame([some]).to_csv(index=False), CSV)
    assert (status, ABSENT in told["error"]) == (400, True)
    few = [one for one in tensors(table[2].iloc[[30]]) if one["name"] in some]
    status, told = infer(server, few)
    assert (status, ABSENT in told["error"]) == (400, True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"age": "old", "income": "much", "since": "yesterday"},
         ["'age' takes a number, got 'old' (row 1)", "'income' takes a number, got 'much' (row 1)",
          "'since' takes a date such as '2020-01-31'", "got 'yesterday' (row 1)"]),
        ({"age": "NaN"}, ["'age' takes a number, got 'NaN'"]),
        ({"age": "inf"}, ["'age' takes a number, got 'inf'"]),
        ({"age": "1_000"}, ["got '1_000'"]),
        ({"age": [41]}, ["'age' takes a number, got [41]"]),
        ({"city": ["Rome"], "vip": {}},
         ["'city' takes text, a number, or true or false, got ['Rome']",
          "'vip' takes true or false, got {}"]),
        ({"since": 1e300}, ["'since' takes a date"]),
        ({"since": True}, ["'since' takes a date", "got True"]),
        ({"since": "2020-02-30"}, ["got '2020-02-30'"]),
        ({"since": "now"}, ["got 'now'"]),
        ({"since": ""}, ["got ''"]),
        ({"since": 20200131}, ["'since' takes a date", "got 20200131"]),
        ({"vip": "maybe"}, ["'vip' takes true or false", "got 'maybe'"]),
        ({"vip": 7}, ["got 7"]),
    ],
)  # fmt: skip
def test_values_of_another_type_are_named_by_column(server, table, changes, words):
    row = records(table[2])[30]
    status, told = ask(server, [row, row | changes])
    assert status == 400
    for word in words:
        assert word in told["error"]
    lines = pd.DataFrame([row, row | {name: str(one) for name, one in changes.items()}])
    if all(isinstance(one, str) and one not in ("", "NaN") for one in changes.values()):
        status, told = ask(server, lines.to_csv(index=False), CSV)
        assert (status, "(line 3)" in told["error"]) == (400, True)


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"age": "41"}, {"age": 41}),
        ({"age": True}, {"age": 1}),
        ({"grade": "2"}, {"grade": 2}),
        ({"vip": "true"}, {"vip": True}),
        ({"vip": 0}, {"vip": False}),
        ({"vip": "Ja"}, {"vip": True}),
        ({"since": "2020-01-31"}, {"since": "2020-01-31T00:00:00"}),
        ({"since": "2020-01-31T12:00+02:00"}, {"since": "2020-01-31 10:00:00Z"}),
        ({"since": 1580428800}, {"since": "2020-01-31"}),
        ({"id": None}, {"id": ["whatever"]}),
    ],
)
def test_values_that_mean_the_same(server, table, changes, same):
    row = records(table[2])[30]
    one, other = (ask(server, [row | values])[1] for values in (changes, same))
    assert one["probabilities"] == other["probabilities"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{}", '{"rows": [{"name": value, …}, …]}'),
        ("[]", "list of rows"),
        ("[3]", "objects by column name, such as {'age': "),
        ("[[1, 2]]", "must have 9 values, of 'age', 'income'"),
        ('[{"age": 1}, 3]', "Row 1 must be an object"),
        ("[[1, 2], {}]", "Row 1 must be a list"),
        ("[{}]", "'age', 'income', 'city', 'street', 'vip', 'since', 'plan', 'grade' are absent"),
        ('[{"age": NaN}]', "NaN and infinity are not JSON"),
        ("csv:", "first line of the CSV must name the columns, 'age'"),
        ("csv:1,2\n", "first line of the CSV must name the columns, 'age'"),
        ("csv:HEAD\n", "at least one row of values, got only a header"),
        ("csv:HEAD\n1,2\n", "Line 2 of the CSV must have 8 cells, as the first line has, got 2"),
        ("csv:HEAD,age\n" + "1," * 8 + "1\n", "two columns 'age'"),
        ('csv:HEAD\n"' + "x" * 200_000, "Line 2 of the CSV must contain values"),
    ],
)
def test_malformed_rows_are_refused(server, body, words):
    body = body.replace("HEAD", ",".join(USED))
    options = [CSV] if body.startswith("csv:") else []
    status, told = ask(server, body.removeprefix("csv:"), *options)
    assert status == 400
    assert words in told["error"]


def one(**changes):
    return {"name": "city", "shape": [1], "datatype": "BYTES", "data": ["Rome"], **changes}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (one(data=[3]), "must be text or null, got 3"),
        (one(datatype="BOOL"), "must be true, false or null, got 'Rome'"),
        (one(datatype="FP32"), "must be numbers or null, got 'Rome'"),
        (one(datatype="TEXT"), "must be one of BOOL, UINT8"),
        (one(data="Rome"), "must be a list"),
        (one(data=["Rome", "Rome"]), "must be 1 value, for shape [1], got 2"),
        (one(data=[["Rome"]]), "must be text or null, got ['Rome']"),
        (one(shape=[2], data=["Rome", None]), "same number of rows, got 1 of 'age' and 2"),
        (one(shape=[1, 1, 1]), "must be [n] or [n, 1]"),
        (one(shape=[]), "must be [n] or [n, 1]"),
        (one(datatype="INT8", data=[300]), "fit INT8"),
        (one(datatype="FP16", data=[1e5]), "'city' takes text, a number, or true or false, got"),
        (one(parameters={"binary_data_size": 5}), "must have 5 bytes"),
        (one(parameters={"binary_data_size": -5}), "must be a number of bytes"),
        (one(name="X"), "'city' is absent"),
    ],
)  # fmt: skip
def test_malformed_tensors_are_refused(server, table, changed, words):
    others = [each for each in tensors(table[2].iloc[[30]]) if each["name"] != "city"]
    status, told = infer(server, [*others, changed])
    assert status == 400
    assert words in told["error"]


def test_a_tensor_of_all_features_is_refused_for_a_table(server):
    x = {"name": "X", "shape": [1, 9], "datatype": "FP64", "data": [0] * 9}
    status, told = infer(server, [x])
    assert (status, "takes one input for each column: 'age'" in told["error"]) == (400, True)


def test_numbers_with_missing_values(server, numbers):
    """A model of a plain array takes tensors, lists, objects and CSV; null is missing."""
    model, _, X = numbers
    expected = model.predict_proba(X)
    plain = [[as_json(value) for value in row] for row in X.tolist()]
    ways = [
        ask(server, plain, model="numbers"),
        ask(server, [dict(zip(("x0", "x1"), row, strict=True)) for row in plain], model="numbers"),
        ask(server, pd.DataFrame(X).to_csv(index=False, header=False), CSV, model="numbers"),
        ask(server, pd.DataFrame(X).to_csv(index=False, header=["x0", "x1"]), CSV,
            model="numbers"),
    ]  # fmt: skip
    for status, told in ways:
        assert status == 200, told
        np.testing.assert_allclose(of(told), expected, rtol=0, atol=1e-12)
    x = {"name": "X", "shape": list(X.shape), "datatype": "FP64", "data": plain}
    status, told = infer(server, [x], model="numbers")
    assert status == 200, told
    np.testing.assert_allclose(
        np.reshape(told["outputs"][1]["data"], (-1, 2)), expected, atol=1e-12
    )
    assert infer(server, [{**x, "shape": [100, 4]}], model="numbers")[0] == 400
    with triton.InferenceServerClient(server.host) as client:
        found = client.infer("numbers", [tensor(X)]).as_numpy("probabilities")
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        assert client.get_model_metadata("numbers")["inputs"][0]["shape"] == [-1, 2]
    infinite = X.copy()
    infinite[3, 1] = np.inf
    with (
        triton.InferenceServerClient(server.host) as client,
        pytest.raises(
            triton.InferenceServerException, match=r"'x1' takes a number, got inf \(row 3"
        ),
    ):
        client.infer("numbers", [tensor(infinite)])


def test_the_metadata_describe_the_columns(server, table):
    told = curl_json(f"{server.address}/v2/models/people")[1]
    columns = {one.pop("name"): one for one in told["parameters"]["columns"]}
    model = table[0]
    assert list(columns) == [column.name for column in model.columns_]
    assert columns["age"] == {
        "kind": "number", "datatype": "FP64", "minimum": 18, "maximum": 79, "missing": True
    }  # fmt: skip
    assert columns["vip"]["levels"] == list(model.columns_[4].levels)
    assert columns["since"]["minimum"].startswith("2015-01-")
    assert columns["id"] == {"kind": "dropped", "reason": "as asked for"}
    assert set(columns["city"]["levels"]) == {"Rome", "Paris", "Köln"}
    assert columns["grade"]["datatype"] == "FP64"
    config = curl_json(f"{server.address}/v2/models/people/config")[1]
    assert config["input"][2] == {"name": "city", "data_type": "TYPE_STRING", "dims": [-1]}


def test_the_examples_show_a_row_by_name_and_work(server, table, tmp_path):
    table[2].iloc[:3].to_csv(tmp_path / "rows.csv", index=False)
    home = curl_json(server.address)[1]
    words = shlex.split(home["try"])
    status, told = curl_json(words[-1], *words[1:-1])
    assert (status, told["notes"]) == (200, [])
    row = json.loads(words[2])["rows"][0]
    assert list(row) == USED
    assert None not in row.values()
    document = curl_json(f"{server.address}/openapi.json")[1]
    schema = document["paths"]["/predict/{name}"]["post"]["requestBody"]["content"][
        "application/json"
    ]["schema"]["properties"]["rows"]["items"]
    assert schema["example"] == row
    assert schema["properties"]["age"]["type"] == ["number", "null"]
    assert "Rome" in schema["properties"]["city"]["description"]
    samples = [
        one["source"]
        for path in ("/predict/{name}", "/v2/models/{name}/infer")
        for one in document["paths"][path]["post"]["x-codeSamples"]
    ]
    assert len(samples) == 3
    for line in samples:
        line = line.replace("http://localhost:8000", server.address)
        done = subprocess.run(
            f"{line} -s", shell=True, cwd=tmp_path, capture_output=True, text=True
        )
        assert "error" not in json.loads(done.stdout), line
    page = curl(f"{server.address}/docs")[1]
    assert "<code>city</code>: " in page
    assert "&#x27;{&quot;rows&quot;: [{&quot;age&quot;: " in page
    assert not re.findall(r"(?:src|href)=\"http", page)


def test_a_server_with_a_token_tells_no_column(table, tmp_path):
    with running([*SERVE, table[1], "--port", "0"], tmp_path / "log",
                 {"KMEANS_KERNEL_TOKEN": "secret"}) as server:  # fmt: skip
        for path in ("docs", "openapi.json"):
            told = curl(f"{server.address}/{path}")[1]
            assert "Rome" not in told
            assert "income" not in told


def test_the_log_holds_no_values(server, table):
    row = records(table[2])[30] | {"city": "Timbuktu", "secret column": 1}
    assert "Timbuktu" in ask(server, [row])[1]["notes"][1]
    assert "Timbuktu" not in server.log.read_text()
    assert "secret" not in server.log.read_text()


def test_text_that_would_take_much_memory_is_refused_before_parsing(table):
    served = to_served_model("people", table[0])
    with pytest.raises(RequestError, match="commas") as caught:
        read_table_rows(b"[[" + b"1," * 100_000 + b"1]]", "", served, served.table, Limits(rows=10))
    assert caught.value.status == 413
    texts = b"\2\0\0\0ab" * 1000
    head = {"inputs": [one(shape=[1000], data=0, parameters={"binary_data_size": len(texts)})]}
    body = json.dumps(head).encode()
    length = str(len(body))
    with pytest.raises(RequestError, match="absent"):
        read_inference(body + texts, length, served, Limits())
    with pytest.raises(RequestError, match="at most 5,000 bytes, and the text of binary") as caught:
        read_inference(body + texts, length, served, Limits(text_bytes=5000))
    assert caught.value.status == 413
    for broken in (b"\2\0\0", b"\3\0\0\0ab", b"\2\0\0\0\xff\xff"):
        head["inputs"][0]["parameters"]["binary_data_size"] = len(broken)
        body = json.dumps(head).encode()
        with pytest.raises(RequestError, match="strings in UTF-8, each after its length"):
            read_inference(body + broken, str(len(body)), served, Limits())


def test_spaces_and_markers_in_csv(table):
    """Spaces are dropped, and NA is missing, unless they are a level."""
    column = Column("a", "category", (" x", "NA", "y"))
    cells = [" x", "x", "NA", " y ", "", "?", "null"]
    assert read_cells(column, cells) == [" x", "x", "NA", "y", None, None, None]
    assert read_cells(Column("a", "number"), ["NA", " 7 ", "nan"]) == [None, "7", None]


def test_names_that_look_like_numbers_are_a_header():
    columns = (Column("0", "number"), Column("1", "number"))
    table = ServedTable(columns, {"0": 1, "1": 2})
    assert rows_of_csv(b"1,0\n3,4\n", table, 9).rows.tolist() == [[4, 3]]
    assert rows_of_csv(b"5,0\n3,4\n", table, 9).rows.tolist() == [[5, 0], [3, 4]]


def test_whole_numbers_beyond_float64_are_levels_of_their_own():
    ids = [2**60 + k % 3 for k in range(120)]
    frame = pd.DataFrame({"id": ids, "n": np.arange(120) % 7})
    model = KMeansKernelClassifier(random_state=0, column_types={"id": "category"})
    model.fit(frame, np.arange(120) % 3)
    column = model.columns_[0]
    expected = column.code(RawColumn("id", "category", np.array(list(map(str, ids[:3])), object)))
    for values in (ids[:3], [*ids[:3], "x"], np.array(ids[:3])):
        np.testing.assert_array_equal(code_column(column, values)[:3], expected)
