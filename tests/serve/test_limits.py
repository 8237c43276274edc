"""Limits, slow clients, failures, authentication and graceful shutdown of a running server."""

import gzip
import json
import signal
import socket
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import kmeans_kernel.serve
from kmeans_kernel.cli.verbs.serve import accepts_remote_requests, serve
from tests.serve.processes import (
    SERVE,
    connect,
    curl,
    curl_json,
    is_closed,
    post,
    read_response,
    running,
    wait_for,
)
from tests.serve.slow_server import FAIL, REFUSE, WAIT


def ask(server, rows, *headers):
    with connect(server.port) as connection:
        connection.sendall(post("/predict", json.dumps(rows).encode(), *headers))
        status, headers, content = read_response(connection)
    return status, headers, json.loads(content)


def begun(folder):
    """Return the rows of each batch that waits for the file."""
    return [int(line) for line in (folder / "begun").read_text().split()]


def healthy(server):
    return ask(server, [[1, 2]])[2]["labels"] == ["b"]


def test_bodies_and_rows_beyond_the_limits_are_refused(slow):
    server = slow(body_bytes=1000, rows=10)
    with connect(server.port) as connection:  # refused by its Content-Length
        connection.sendall(post("/predict", b"", length=10**12))
        status, _, content = read_response(connection)
        assert status == 413
        assert "at most 1,000 bytes, and has 1,000,000,000,000" in json.loads(content)["error"]
    with connect(server.port) as connection:  # in chunks, of unknown length
        connection.sendall(
            b"POST /predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(11):
            connection.sendall(b"64\r\n" + b" " * 100 + b"\r\n")
        assert read_response(connection)[0] == 413
    for packed in (gzip.compress(bytes(10**6)), gzip.compress(b" " * 600) * 2):
        with connect(server.port) as connection:
            connection.sendall(post("/predict", packed[:1000], "Content-Encoding: gzip"))
            status, _, content = read_response(connection)
            assert (status, "decompresses to more" in json.loads(content)["error"]) == (413, True)
    with connect(server.port) as connection:
        connection.sendall(
            post("/predict", zlib.compress(bytes(5000)), "Content-Encoding: deflate")
        )
        assert read_response(connection)[0] == 413
    assert curl(f"{server.address}/predict", "--data-binary", " " * 5000)[0] == 413
    assert ask(server, [[1, 2]] * 10)[0] == 200
    status, _, told = ask(server, [[1, 2]] * 11)
    assert (status, "at most 10 rows, got 11" in told["error"]) == (413, True)
    raw, plain = zlib.compressobj(wbits=-15), b"[[1, 2]]"
    for body in (
        zlib.compress(plain),
        raw.compress(plain) + raw.flush(),
    ):
        with connect(server.port) as connection:
            connection.sendall(post("/predict", body, "Content-Encoding: deflate"))
            assert read_response(connection)[0] == 200


def test_slow_clients_are_disconnected_and_do_not_delay_others(slow):
    server = slow(body_seconds=1, header_seconds=1, in_flight=2)
    body = post("/predict", b"[[1", length=100)
    dripping = [connect(server.port) for _ in range(20)]
    half = [connect(server.port) for _ in range(20)]
    silent = [connect(server.port) for _ in range(5)]
    gone = [connect(server.port) for _ in range(20)]
    for connection in dripping:
        connection.sendall(body)
    for connection in half:
        connection.sendall(b"POST /predict HTTP/1.1\r\nHost: lo")
    for connection in gone:  # disconnect during the body
        connection.sendall(body)
        connection.close()
    for _ in range(20):
        assert healthy(server)
    for connection in dripping:
        status, _, content = read_response(connection)
        assert status == 408
        assert "within 1 s, got 3 bytes" in json.loads(content)["error"]
        assert is_closed(connection)
    for connection in (*half, *silent):
        assert is_closed(connection)
    assert healthy(server)
    lines = wait_for(lambda: len(server.lines()) > 60 and server.lines())
    assert sum(line.get("status") == 499 for line in lines) == 20
    for connection in (*dripping, *half, *silent):
        connection.close()


def test_endless_headers_and_invalid_http_are_disconnected(slow):
    server = slow()
    with connect(server.port) as connection:
        line = b"x: " + b"y" * 1000 + b"\r\n"
        with pytest.raises(ConnectionError):
            connection.sendall(b"GET / HTTP/1.1\r\n" + line * 100_000)
    with connect(server.port) as connection:
        connection.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")
    assert healthy(server)


def test_a_client_that_does_not_read_is_disconnected(slow):
    server = slow(body_seconds=1, rows=10**6)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        body = json.dumps([[1, 2]] * 400_000).encode()
        connection.sendall(post("/predict", body))
        wait_for(lambda: connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    assert healthy(server)


def test_connections_beyond_the_limit_get_503(slow):
    server = slow(connections=3)
    kept = [connect(server.port) for _ in range(3)]
    for connection in kept:
        connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_response(connection)[0] == 200
    with connect(server.port) as connection:
        status, headers, content = read_response(connection)
        assert (status, headers["retry-after"]) == (503, "1")
        assert "error" in json.loads(content)
    for connection in kept:
        connection.close()
    wait_for(lambda: curl(f"{server.address}/v2/health/live")[0] == 200)


def test_requests_beyond_the_limit_get_503(slow, tmp_path):
    server = slow(in_flight=2)
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(ask, server, [[WAIT, 0]]) for _ in range(2)]
        wait_for(lambda: "in_flight 2.0" in curl(f"{server.address}/metrics")[1])
        status, headers, told = ask(server, [[1, 2]])
        assert (status, headers["retry-after"]) == (503, "1")
        assert "at most 2 requests at once" in told["error"]
        assert curl(f"{server.address}/v2/health/ready")[0] == 200
        (tmp_path / "go").touch()
        assert [one.result()[0] for one in waiting] == [200, 200]
    assert healthy(server)


def test_a_slow_prediction_gets_504(slow, tmp_path):
    server = slow(answer_seconds=0.5)
    status, _, told = ask(server, [[WAIT, 0]])
    assert (status, "within 0.5 s" in told["error"]) == (504, True)
    status, _, told = ask(server, [[1, 2]])  # the model is still busy
    assert status == 504
    (tmp_path / "go").touch()
    wait_for(lambda: ask(server, [[1, 2]])[0] == 200)
    assert begun(tmp_path) == [1]


def test_queued_requests_share_a_batch_and_fail_separately(slow, tmp_path):
    """Requests queued during a batch form the next one; an invalid one fails alone."""
    server = slow()
    with ThreadPoolExecutor(12) as threads:
        first = threads.submit(ask, server, [[WAIT, 0]])
        wait_for(lambda: begun(tmp_path))
        good = [threads.submit(ask, server, [[k % 2, 0]] * (k + 1)) for k in range(5)]
        bad = threads.submit(ask, server, [[REFUSE, 0]])
        failing = threads.submit(ask, server, [[FAIL, 0]])
        wait_for(lambda: "in_flight 8.0" in curl(f"{server.address}/metrics")[1])
        (tmp_path / "go").touch()
        assert first.result()[2]["labels"] == ["b"]
        for k, one in enumerate(good):
            assert one.result()[2]["labels"] == ["ab"[k % 2]] * (k + 1)
        assert (bad.result()[0], bad.result()[2]["error"]) == (400, "a row must not hold 17.")
        status, headers, told = failing.result()
    assert status == 500
    assert headers["x-request-id"] in told["error"]
    assert "13" not in told["error"].replace(headers["x-request-id"], "")
    line = wait_for(lambda: next((one for one in server.lines() if "error" in one), None))
    assert line["request_id"] == headers["x-request-id"]
    assert "the number was 13" not in server.log.read_text()
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_shutdown_finishes_open_requests(slow, tmp_path, number):
    server = slow()
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(ask, server, [[WAIT, 0]])
        wait_for(lambda: begun(tmp_path))
        idle = connect(server.port)
        server.process.send_signal(number)
        wait_for(lambda: curl(f"{server.address}/v2/health/ready")[0] == 503)
        assert curl(f"{server.address}/v2/health/live")[0] == 200
        status, _, told = ask(server, [[1, 2]])
        assert (status, "stopping" in told["error"]) == (503, True)
        assert server.process.poll() is None
        (tmp_path / "go").touch()
        assert waiting.result()[0] == 200
        assert server.process.wait(60) == 0
        idle.close()
    with pytest.raises(ConnectionRefusedError):
        connect(server.port)


def test_a_second_signal_exits_at_once(slow, tmp_path):
    server = slow()
    with connect(server.port) as connection:
        connection.sendall(post("/predict", json.dumps([[WAIT, 0]]).encode()))
        wait_for(lambda: begun(tmp_path))
        server.process.terminate()
        wait_for(lambda: curl(f"{server.address}/v2/health/ready")[0] == 503)
        server.process.terminate()
        server.process.wait(60)


def test_the_token(model, tmp_path):
    secret = tmp_path / "token"
    secret.write_text("correct-horse\n")
    command = [*SERVE, model, "--port", "0", "--token-file", secret]
    with running(command, tmp_path / "log") as server:
        body = ["-d", "[[0, 1]]", f"{server.address}/predict"]
        for header in ("X: y", "Authorization: Bearer wrong", "Authorization: Basic correct-horse",
                       "Authorization: Bearer", "Authorization: correct-horse"):  # fmt: skip
            status, told = curl_json(body[-1], *body[:-1], "-H", header)
            assert (status, "token" in told["error"]) == (401, True)
        for path in ("/", "/v2", "/metrics", "/v2/models/small", "/no"):
            assert curl(server.address + path)[0] == 401
        for path in ("/v2/health/live", "/v2/health/ready"):
            assert curl(server.address + path)[0] == 200
        for path in ("/docs", "/openapi.json"):  # no token needed, and no model revealed
            status, content = curl(server.address + path)
            assert (status, "/predict/NAME" in content, "small" in content) == (200, True, False)
        with connect(server.port) as connection:
            connection.sendall(post("/predict", b"[[0, 1]]"))
            assert read_response(connection)[1]["www-authenticate"] == "Bearer"
        for header in (
            "Authorization: Bearer correct-horse",
            "authorization: bearer correct-horse",
        ):
            assert curl(body[-1], *body[:-1], "-H", header)[0] == 200
        assert (
            "Bearer $KMEANS_KERNEL_TOKEN"
            in curl(server.address, "-H", "Authorization: Bearer correct-horse")[1]
        )
        assert "correct-horse" not in server.log.read_text()


def test_the_token_of_the_environment_and_quiet(model, tmp_path):
    environment = {"KMEANS_KERNEL_TOKEN": "horse"}
    command = [*SERVE, f"a={model}", "--port", "0", "--no-log"]
    with running(command, tmp_path / "log", environment) as server:
        assert curl(server.address)[0] == 401
        assert curl(server.address, "-H", "Authorization: Bearer horse")[0] == 200
        assert server.stop() == 0
        assert server.lines() == []


def test_a_single_model_needs_no_name(model, tmp_path):
    command = [*SERVE, f"my small={model}", "--port", "0", "--host", "127.0.0.2"]
    with running(command, tmp_path / "log") as server:
        status, told = curl_json(f"{server.address}/predict", "-d", "[[0, 1], [1, 0]]")
        assert (status, told["model"], told["labels"]) == (200, "my small", [0, 1])
        paths = curl_json(server.address)[1]["models"][0]
        assert (paths["infer"], paths["predict"]) == (
            "/v2/models/my%20small/infer", "/predict/my%20small"
        )  # fmt: skip
        assert curl(server.address + paths["predict"], "-d", "[[0, 1]]")[0] == 200
        document = curl_json(f"{server.address}/openapi.json")[1]
        assert len(document["paths"]["/predict"]["post"]["x-codeSamples"]) == 2
        assert set(told["probabilities"][0]) == {"0", "1"}


def refused(*arguments, environment=None):
    """Run `serve`, which must fail with exit code 2 and one error line; return that line."""
    program = typer.Typer(pretty_exceptions_enable=False)
    program.command()(serve)
    done = CliRunner().invoke(program, [str(one) for one in arguments], env=environment)
    assert done.exit_code == 2, done.output
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    assert "Traceback" not in done.output
    return lines[0]


def test_startup_errors_are_one_line(model, tmp_path):
    broken = tmp_path / "broken.model"
    broken.write_bytes(b"not a model")
    empty = tmp_path / "empty"
    empty.write_text(" \n")
    assert "broken.model" in refused(broken)
    assert "none.model" in refused(tmp_path / "none.model")
    assert "two models have the name 'small'" in refused(model, f"small={model}")
    assert "name of a model" in refused(f"a/b={model}")
    assert "must contain a token" in refused(model, "--token-file", empty)
    assert "must contain a token" in refused(model, environment={"KMEANS_KERNEL_TOKEN": ""})
    assert "none: No such file" in refused(model, "--token-file", tmp_path / "none")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} of 127.0.0.1 is in use" in refused(model, "--port", port)
    assert "cannot listen on" in refused(model, "--host", "192.0.2.1")


@pytest.mark.parametrize(
    ("host", "is_it"),
    [("127.0.0.1", False), ("127.0.0.2", False), ("::1", False), ("localhost", False),
     ("0.0.0.0", True), ("::", True), ("192.0.2.1", True), ("example", True)],
)  # fmt: skip
def test_only_loopback_addresses_are_local(host, is_it):
    assert accepts_remote_requests(host) == is_it


def test_remote_access_without_a_token_is_warned_about(model, monkeypatch):
    def stay(app, *, host, port, on_start):
        on_start(f"http://{host}:{port}")

    monkeypatch.setattr(kmeans_kernel.serve, "run", stay)
    program = typer.Typer()
    program.command()(serve)
    told = CliRunner().invoke(program, [str(model), "--host", "0.0.0.0"]).stderr
    assert "Warning: 0.0.0.0 accepts requests of other machines without a token" in told
    assert "Serving small at http://0.0.0.0:8000" in told
    token = {"KMEANS_KERNEL_TOKEN": "x"}
    told = CliRunner().invoke(program, [str(model), "--host", "0.0.0.0"], env=token).stderr
    assert "Warning" not in told


def test_long_requests_are_split_into_chunks(slow):
    """The chunks of a large request are predicted one by one and concatenated."""
    server = slow(rows=10**6)
    rows = np.zeros((300_000, 2), dtype=np.float32)
    rows[::3, 0] = 1
    text = json.dumps({
        "inputs": [{"name": "X", "shape": list(rows.shape), "datatype": "FP32",
                    "parameters": {"binary_data_size": rows.nbytes}}],
        "outputs": [{"name": "probabilities", "parameters": {"binary_data": True}}],
    }).encode()  # fmt: skip
    with connect(server.port) as connection:
        head = f"Inference-Header-Content-Length: {len(text)}"
        connection.sendall(post("/v2/models/slow/infer", text + rows.tobytes(), head))
        status, headers, content = read_response(connection)
    assert status == 200
    found = np.frombuffer(content[int(headers["inference-header-content-length"]) :])
    np.testing.assert_array_equal(found.reshape(-1, 2)[:, 1], np.where(rows[:, 0] > 0, 0.75, 0.25))
