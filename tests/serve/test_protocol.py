"""The Open Inference Protocol, tested with Triton's client."""

import gzip
import json
import re
import shlex
import subprocess
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import serving
from kmeans_kernel import KMeansKernelClassifier, paper, save_model
from kmeans_kernel.data import load_digits
from tests.serve.processes import (
    SERVE,
    connect,
    curl,
    curl_json,
    post,
    read_response,
    running,
    wait_for,
)  # fmt: skip

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings of gevent, a dependency of the client
    import tritonclient.http as triton
    from tritonclient.utils import np_to_triton_dtype

NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


def named(rows):
    return pl.DataFrame(rows, schema=NAMES)


@pytest.fixture(scope="module")
def iris():
    data = load_iris()
    model = make_pipeline(StandardScaler(), KMeansKernelClassifier(5, random_state=0))
    return model.set_output(transform="default").fit(
        named(data.data), data.target_names[data.target]
    ), data.data


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    model = paper.raw(10, random_state=0).set_params(kmeanskernelclassifier__regularization=1e-3)
    return model.fit(data.X_train, data.y_train), data.X_test


@pytest.fixture(scope="module")
def server(iris, digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    save_model(iris[0], folder / "iris.model")
    save_model(digits[0], folder / "some.file")
    truth = KMeansKernelClassifier(2).fit(
        [[0.0, 1], [0, 2], [1, 0], [2, 0]], [True, True, False, False]
    )
    save_model(truth, folder / "truth.model")
    halves = KMeansKernelClassifier(2).fit([[0.0, 1], [0, 2], [1, 0], [2, 0]], [1.0, 1.0, 2.0, 2.0])
    save_model(halves, folder / "halves.model")
    files = [folder / f"{name}.model" for name in ("iris", "truth", "halves")]
    command = [*SERVE, *files, f"digits={folder / 'some.file'}", "--port", "0", "--max-rows", "500"]
    with running(command, folder / "log") as server:
        yield server


@pytest.fixture
def client(server):
    with triton.InferenceServerClient(server.host, concurrency=8) as client:
        yield client


def tensor(values, name="X", binary=True):
    values = np.asarray(values)
    one = triton.InferInput(name, list(values.shape), np_to_triton_dtype(values.dtype))
    return one.set_data_from_numpy(values, binary_data=binary)


def by_name(rows, names=NAMES, shape=(-1,)):
    return [tensor(rows[:, k].reshape(shape), name) for k, name in enumerate(names)]


def refused(client, inputs, *words, model="iris", status="400", **options):
    with pytest.raises(triton.InferenceServerException) as caught:
        client.infer(model, inputs, **options)
    assert caught.value.status() == status
    for word in words:
        assert word in caught.value.message()
    assert "Traceback" not in caught.value.message()


def test_server_and_model_metadata(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("iris")
    assert client.is_model_ready("iris", "1")
    assert not client.is_model_ready("iris", "2")
    assert not client.is_model_ready("other")
    assert client.get_server_metadata()["name"] == "kmeans-kernel"
    known = client.get_model_metadata("iris")
    assert known["inputs"] == [{"name": "X", "datatype": "FP64", "shape": [-1, 4]}]
    assert known["outputs"][0] == {"name": "label", "datatype": "BYTES", "shape": [-1]}
    assert known["parameters"]["feature_names"] == NAMES
    assert client.get_model_metadata("digits", "1")["parameters"]["image_shape"] == [8, 8]
    assert client.get_model_config("iris")["input"][0]["data_type"] == "TYPE_FP64"
    assert {one["name"] for one in client.get_model_repository_index()} == {
        "iris", "digits", "truth", "halves"
    }  # fmt: skip


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.uint8, np.uint16, np.uint32, np.uint64,
              np.int8, np.int16, np.int32, np.int64, bool]
)  # fmt: skip
def test_every_datatype_gives_what_predict_gives(client, digits, dtype, binary):
    model, images = digits
    rows = images[:20].reshape(20, -1).astype(dtype)
    outputs = [
        triton.InferRequestedOutput("probabilities", binary_data=binary),
        triton.InferRequestedOutput("label", binary_data=not binary),
    ]
    found = client.infer("digits", [tensor(rows, binary=binary)], outputs=outputs, request_id="17")
    assert found.get_response()["id"] == "17"
    assert [one["name"] for one in found.get_response()["outputs"]] == ["probabilities", "label"]
    np.testing.assert_array_equal(found.as_numpy("label"), model.predict(rows))
    assert found.as_numpy("label").dtype == np.int64
    expected = model.predict_proba(rows)
    np.testing.assert_allclose(found.as_numpy("probabilities"), expected, atol=1e-6)


def test_images_are_rows_of_pixels(client, digits):
    model, images = digits
    images = images[:5].astype(np.uint8)
    found = client.infer("digits", [tensor(images)])
    np.testing.assert_array_equal(found.as_numpy("label"), model.predict(images))
    refused(client, [tensor(images.reshape(5, 4, 16))], "[n, 64] or [n, 8, 8]", model="digits")
    refused(client, [tensor(images[0])], "[n, 64]", "[8, 8]", model="digits")


@pytest.mark.parametrize("packed", ["gzip", "deflate"])
def test_requests_and_answers_may_be_compressed(client, iris, packed):
    model, rows = iris
    found = client.infer("iris", [tensor(rows)], request_compression_algorithm=packed,
                         response_compression_algorithm=packed)  # fmt: skip
    assert found.as_numpy("label").astype(str).tolist() == model.predict(named(rows)).tolist()
    outputs = [triton.InferRequestedOutput("label", binary_data=False)]
    found = client.infer("iris", [tensor(rows, binary=False)], outputs=outputs,
                         request_compression_algorithm=packed,
                         response_compression_algorithm=packed)  # fmt: skip
    assert found.as_numpy("label").astype(str).tolist() == model.predict(named(rows)).tolist()


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_tensor_per_feature_in_any_order(client, iris, shape):
    model, rows = iris
    found = client.infer("iris", by_name(rows, shape=shape)[::-1])
    assert found.as_numpy("label").astype(str).tolist() == model.predict(named(rows)).tolist()
    np.testing.assert_allclose(found.as_numpy("probabilities"), model.predict_proba(named(rows)))
    mixed = by_name(rows)
    mixed[2] = tensor(rows[:, 2].astype(np.float32), NAMES[2], binary=False)
    assert len(client.infer("iris", mixed).as_numpy("label")) == 150


def test_labels_keep_their_type(client):
    rows = tensor(np.array([[0.0, 3], [3, 0]]))
    for binary in (True, False):
        outputs = [triton.InferRequestedOutput("label", binary_data=binary)]
        truth = client.infer("truth", [rows], outputs=outputs).as_numpy("label")
        assert (truth.dtype, truth.tolist()) == (bool, [True, False])
        halves = client.infer("halves", [rows], outputs=outputs).as_numpy("label")
        assert (halves.dtype, halves.tolist()) == (np.float64, [1.0, 2.0])


def test_errors_name_the_problem(client, iris):
    rows = iris[1]
    refused(client, [tensor(rows)], "No model 'other'", "'iris'", model="other", status="404")
    refused(client, [tensor(rows)], "version", model_version="3", status="404")
    refused(client, [tensor(rows[:, :3])], "[n, 4]", "[150, 3]")
    refused(client, [tensor(rows[:0])], "at least one row")
    refused(client, [tensor(rows, "Z")], "'X'", "'sepal length'", "'Z'")
    refused(client, by_name(rows)[:3], "'petal width' is missing")
    refused(client, [*by_name(rows), tensor(rows, "more")], "'more'")
    refused(client, [*by_name(rows)[:3], tensor(rows[:9, 3], NAMES[3])], "9 of 'petal width'")
    refused(client, [tensor(np.array([[b"a"] * 4], dtype=object))], "FP64", "'BYTES'")
    broken = rows.copy()
    broken[3, 2] = np.nan
    refused(client, [tensor(broken)], "NaN (row 3, column 'petal length')")
    broken[3, 2] = np.inf
    refused(client, [tensor(broken)], "infinity (row 3")
    refused(client, [tensor(np.tile(rows, (4, 1)))], "at most 500 rows", "600", status="413")
    wanted = [triton.InferRequestedOutput("score")]
    refused(client, [tensor(rows)], "'label' and 'probabilities'", "'score'", outputs=wanted)


def infer(server, content, *headers):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    with connect(server.port) as connection:
        connection.sendall(post("/v2/models/iris/infer", body, *headers))
        status, _, content = read_response(connection)
    return status, json.loads(content)


def one(**changes):
    return {
        "inputs": [
            {"name": "X", "shape": [1, 4], "datatype": "FP64", "data": [1, 2, 3, 4], **changes}
        ]
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is invalid at line 1"),
        (b"", "is empty"),
        (b"[1]", "JSON object"),
        (b'{"inputs": [NaN]}', "NaN and infinity are not JSON"),
        (b"[" * 5000, "must be JSON"),
        ({}, 'list "inputs"'),
        ({"inputs": 3}, 'list "inputs"'),
        ({"inputs": [3]}, '"name"'),
        ({"inputs": 2 * one()["inputs"]}, "was sent twice"),
        (one(data=[1, 2, 3]), "must be 4 numbers"),
        (one(data=[1, 2, 3, None]), "fill missing values"),
        (one(data=[1, 2, 3, "4"]), "must be numbers, got '4'"),
        (one(data=[[1, 2], [3]]), "of equal length"),
        (one(data=[1, 2, 3, 1e400]), "infinity"),
        (one(data=[1, 2, 3, 10**18 + 0.5], datatype="FP16"), "infinity"),
        (one(data=[1, 2, 3, 400], datatype="UINT8"), "fit UINT8"),
        (one(data=[1, 2, 3, 0.5], datatype="INT8"), "fit INT8"),
        (one(data={"a": 1}), "must be a list"),
        (one(datatype="COMPLEX"), "'COMPLEX'"),
        (one(datatype=None), "datatype"),
        (one(datatype=["FP32"]), "datatype"),
        (one(shape=[1, -4]), "shape"),
        (one(shape="1"), "shape"),
        (one(shape=[True, 4]), "shape"),
        (one(shape=[1 << 50, 1 << 50]), "shape"),
        (one(parameters={"binary_data_size": 32}), "must have 32 bytes"),
        (one(parameters={"binary_data_size": 31}), "must be 32"),
        (one(parameters={"binary_data_size": "x"}), "must be 32"),
        ({**one(), "id": 5}, '"id"'),
        ({**one(), "outputs": {"name": "label"}}, "must be a list"),
        ({**one(), "outputs": ["label"]}, "outputs"),
        ({"inputs": [{"name": "X", "shape": [1, 4], "datatype": "FP64"}]}, "shared memory"),
    ],
)  # fmt: skip
def test_malformed_requests_are_refused(server, content, words):
    status, told = infer(server, content)
    assert status == 400
    assert words in told["error"]


def test_malformed_framing_is_refused(server):
    length = "Inference-Header-Content-Length: "
    assert infer(server, one(), length + "9999")[0] == 400
    assert infer(server, one(), length + "-1")[0] == 400
    text = json.dumps(one()).encode()
    status, told = infer(server, text + b"12345", f"{length}{len(text)}")
    assert (status, "5 bytes" in told["error"]) == (400, True)
    assert infer(server, one(), "Content-Encoding: br")[0] == 415
    assert infer(server, one(), "Content-Encoding: gzip")[0] == 400
    packed = gzip.compress(text)
    assert infer(server, packed, "Content-Encoding: gzip")[0] == 200
    assert infer(server, packed[:-9], "Content-Encoding: gzip")[0] == 400


def test_unknown_parameters_are_ignored_and_nested_data_is_accepted(server):
    status, told = infer(server, {
        **one(data=[[1, 2, 3, 4]], parameters={"x": 1}), "parameters": {"y": 2}, "z": 3, "id": "é",
    })  # fmt: skip
    assert status == 200
    assert told["id"] == "é"
    assert [output["name"] for output in told["outputs"]] == ["label", "probabilities"]
    assert len(told["outputs"][1]["data"]) == 3


def test_concurrent_clients_get_the_predictions_of_the_model(client, digits, server):
    """Concurrent requests share batches, and each gets its own predictions."""
    model, images = digits
    rows = images.reshape(len(images), -1).astype(np.float32)
    expected = model.predict_proba(rows)
    before = client.get_inference_statistics("digits")["model_stats"][0]

    def ask(k):
        n = 1 + k % 7
        with triton.InferenceServerClient(server.host) as own:
            mine = own.infer("digits", [tensor(rows[k : k + n])])
        np.testing.assert_allclose(mine.as_numpy("probabilities"), expected[k : k + n], atol=1e-5)
        np.testing.assert_array_equal(
            mine.as_numpy("label"), model.classes_[expected[k : k + n].argmax(axis=1)]
        )
        return n

    with ThreadPoolExecutor(8) as threads:
        n_rows = sum(threads.map(ask, range(100)))
    after = client.get_inference_statistics()["model_stats"]
    after = next(one for one in after if one["name"] == "digits")
    assert after["inference_count"] - before["inference_count"] == n_rows
    assert 1 <= after["execution_count"] - before["execution_count"] <= 100


def test_the_benchmark_client_works(server, digits):
    rows = digits[1][:16].reshape(16, -1).astype(np.float32)
    with connect(server.port) as connection:
        for _ in range(2):  # keep-alive
            answer = serving.ask(connection, serving.encode(rows, "FP32", "digits"))
            assert b'"shape":[16,10]' in answer
    assert {job["rows"] for job in serving.jobs(quick=True)} == {1, 16, 256}


def test_predict_with_curl(server, iris, digits):
    address = f"{server.address}/predict/iris"
    model, rows = iris
    status, told = curl_json(address, "-d", json.dumps({"rows": rows[:3].tolist()}))
    assert (status, told["model"], told["labels"]) == (200, "iris", ["setosa"] * 3)
    assert told["probabilities"][0] == pytest.approx(
        dict(zip(model.classes_.tolist(), model.predict_proba(named(rows[:1]))[0], strict=True))
    )
    assert curl_json(address, "-d", json.dumps(rows[:3].tolist()))[1] == told
    records = [dict(zip(NAMES[::-1], row[::-1], strict=True)) for row in rows[:3].tolist()]
    assert curl_json(address, "-d", json.dumps({"rows": records}))[1] == told
    csv = ["-H", "Content-Type: text/csv; charset=utf-8", "--data-binary"]
    lines = [",".join(map(str, row)) for row in rows[:3]]
    assert curl_json(address, *csv, "\n".join(lines))[1] == told
    assert curl_json(address, *csv, "\n".join([",".join(NAMES), *lines]) + "\n")[1] == told
    turned = [",".join(NAMES[::-1]), *(",".join(map(str, row[::-1])) for row in rows[:3])]
    assert curl_json(address, *csv, "\r\n".join(turned))[1] == told
    images = digits[1][:4]
    status, told = curl_json(
        f"{server.address}/predict/digits", "-d", json.dumps({"rows": images.tolist()})
    )
    assert told["labels"] == digits[0].predict(images).tolist()
    assert set(told["probabilities"][0]) == set("0123456789")


def test_other_columns_than_the_features_are_ignored_and_told(server, iris):
    names, row = iris[0].feature_names_in_.tolist(), iris[1][0].tolist()
    record = dict(zip(names, row, strict=True))
    rows = [record, {"id": "x", **record, "note": None}, {**record, "id": 3}]
    expected = iris[0].predict_proba(named(iris[1][:1]))[0].tolist()
    header, cells = ",".join(["id", *names, "note"]), ",".join(["x", *map(str, row)])
    by_csv = f'{header}\n{cells},"a, b"\n{cells},\n{cells},1\n'
    for body, kind in ((json.dumps(rows), "application/json"), (by_csv, "text/csv")):
        status, told = curl_json(
            f"{server.address}/predict/iris", "-H", f"Content-Type: {kind}", "--data-binary", body
        )
        assert status == 200, told
        assert told["notes"] == ["ignored columns: 'id', 'note'"]
        for one in told["probabilities"]:
            assert list(one.values()) == pytest.approx(expected, abs=1e-12)
    status, told = curl_json(f"{server.address}/predict/iris", "-d", json.dumps([row]))
    assert "notes" not in told
    assert curl_json(f"{server.address}/predict/iris", "-d", json.dumps([[*row, 1]]))[0] == 400


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{}", '{"rows":'),
        ("[]", "list of rows"),
        ("[1, 2, 3, 4]", "write [[…]] for one row"),
        ('[[1, 2, 3, "x"]]', "must be numbers, got 'x'"),
        ("[[1, 2, 3, null]]", "fill missing values"),
        ("[[1, 2, 3, 4], [1]]", "of equal length"),
        ("[[1, 2, 3]]", "[n, 4]"),
        ('[{"sepal length": 1}]', "lacks 'sepal width'"),
        ('[{"sepal length": 1, "sepal width": 1, "petal length": 1, "petal width": 1}, 3]',
         "Row 1 must be an object"),
        ("csv:", "at least one row"),
        ("csv:1,2,3\n", "[n, 4]"),
        ("csv:1,2,3,4\n1,2\n", "Line 2 of the CSV must have 4 cells"),
        ("csv:1,2,3,4\n1,2,x,4\n", "Line 2 of the CSV must contain numbers, got 'x'"),
        ("csv:1,2,3,nan\n", "NaN"),
        ("csv:a,b,c,d\n1,2,3,4\n", "columns of the CSV must be 'sepal length'"),
        ("csv:sepal length,sepal width,petal length,petal width\n", "at least one row"),
    ],
)  # fmt: skip
def test_invalid_rows_are_refused(server, body, words):
    kind = "text/csv" if body.startswith("csv:") else "application/json"
    status, told = curl_json(
        f"{server.address}/predict/iris", "-H", f"Content-Type: {kind}",
        "--data-binary", body.removeprefix("csv:"),
    )  # fmt: skip
    assert status == 400
    assert words in told["error"]


def test_paths_and_openapi(server):
    status, told = curl_json(server.address)
    assert status == 200
    assert [one["name"] for one in told["models"]] == ["iris", "truth", "halves", "digits"]
    assert "/predict/iris" in told["try"]
    words = shlex.split(told["try"])
    assert curl_json(words[-1], *words[1:-1])[0] == 200
    assert curl_json(f"{server.address}/predict", "-d", "[[1]]")[0] == 404
    status, told = curl_json(f"{server.address}/v2/models/iris/infer")
    assert (status, "use POST" in told["error"]) == (405, True)
    status, told = curl_json(f"{server.address}/nowhere")
    assert (status, "GET / lists" in told["error"]) == (404, True)
    status, document = curl_json(f"{server.address}/openapi.json")
    assert "/v2/models/{name}/infer" in document["paths"]
    assert document["openapi"].startswith("3.")
    assert "x-codeSamples" not in document["paths"]["/predict"]["post"]  # needs a single model


def test_the_examples_of_openapi_work(server, iris, tmp_path):
    (tmp_path / "rows.csv").write_text("\n".join(",".join(map(str, row)) for row in iris[1][:3]))
    paths = curl_json(f"{server.address}/openapi.json")[1]["paths"]
    lines = [
        sample["source"]
        for methods in paths.values()
        for told in methods.values()
        for sample in told.get("x-codeSamples", [])
    ]
    assert sum("text/csv" in line for line in lines) == 1
    for line in lines:
        told = line.replace("http://localhost:8000", server.address)
        done = subprocess.run(
            f"{told} -s -o /dev/null -w '%{{http_code}}'",
            shell=True, cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert (line, done.stdout) == (line, "200")


def test_the_docs_page_loads_nothing(server):
    done = subprocess.run(
        ["curl", "-s", "-i", f"{server.address}/docs"], capture_output=True, text=True
    )
    head, _, page = done.stdout.partition("\n\n")
    assert "content-security-policy: default-src 'none';" in head
    assert not re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", page)
    assert "<script src" not in page
    assert "<link" not in page
    assert page.count('<button type="button">') > 10
    assert f"{server.address}/predict" in page


def test_metrics_and_log(server, iris):
    rows = iris[1][:2] + 0.123456
    curl_json(f"{server.address}/predict/iris", "-H", "X-Request-Id: seen-by-me",
              "-d", json.dumps(rows.tolist()))  # fmt: skip
    text = curl(f"{server.address}/metrics")[1]
    for name in ("requests_total{", "rows_total{", "request_seconds_bucket{", "batch_rows_bucket{",
                 "requests_in_flight "):  # fmt: skip
        assert f"kmeans_kernel_{name}" in text
    assert 'endpoint="predict",model="iris",status="200"' in text
    line = wait_for(
        lambda: next((one for one in server.lines() if one.get("request_id") == "seen-by-me"), None)
    )
    assert line["path"] == "/predict/iris"
    assert (line["method"], line["model"], line["status"]) == ("POST", "iris", 200)
    assert line["rows"] == 2
    assert line["milliseconds"] > 0
    assert str(rows[0, 0]) not in server.log.read_text()
