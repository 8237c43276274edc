"""Hostile requests: decompression bombs, oversized bodies and headers, slow clients, shutdown."""

import asyncio
import contextlib
import gc
import gzip
import json
import resource
import socket
import subprocess
import sys
import time
import weakref
import zlib
from pathlib import Path

import numpy as np
import orjson
import pytest

from kmeans_kernel.serve import Limits
from kmeans_kernel.serve._models import to_served_model
from kmeans_kernel.serve.protocol._handlers import _decompress_and_parse
from kmeans_kernel.serve.protocol._requests import read_inference, read_rows
from kmeans_kernel.serve.transport._compression import decompress
from kmeans_kernel.serve.transport._connections import _HEADERS_TOO_LARGE, _TOO_MANY_CONNECTIONS
from kmeans_kernel.serve.transport._errors import RequestError, abbreviate
from kmeans_kernel.serve.transport._limits import MemoryBudget
from kmeans_kernel.serve.transport._server import _tuned_interpreter, bind, connection_limit
from kmeans_kernel.serve.transport._thread_pool import DaemonThreadPool
from tests.serve.processes import SERVE, connect, curl, is_closed, post, read_response, wait_for
from tests.serve.slow_server import FAIL, WAIT, Slow
from tests.serve.test_limits import ask, begun, healthy, refused

GET = "GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n"


@pytest.fixture
def small(tmp_path):
    return to_served_model("small", Slow(tmp_path))


def send(server, path, body, *headers):
    with connect(server.port) as connection:
        connection.sendall(post(path, body, *headers))
        status, _, content = read_response(connection)
    return status, json.loads(content)["error"]


def infer(body, small, length=None, **limits):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_inference(content, length, small, Limits(**limits))


def x(**changes):
    return {"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP64", "data": [1, 2],
                        **changes}]}  # fmt: skip


def test_gzip_of_many_members_takes_linear_time_or_is_refused():
    size = Limits().body
    with pytest.raises(RequestError, match="at most 2,000 members"):
        decompress(gzip.compress(b"") * 3_000_000, "gzip", size, lambda _: None)
    parts = [bytes([k % 256]) * 70_000 for k in range(500)]
    packed = b"".join(gzip.compress(part, 0) for part in parts)  # 35 MB, stored
    begin = time.process_time()
    assert decompress(packed, "gzip", size, lambda _: None) == b"".join(parts)
    assert time.process_time() - begin < 2  # 0.05 s measured; quadratic copying would be 9 GB


def test_decompression_is_aborted_after_a_timeout():
    memory = MemoryBudget(Limits())
    with memory.reserve() as set_used_bytes:
        set_used_bytes(5)
        set_used_bytes(50_000_000)
    for size in (5, 60_000_000):
        with pytest.raises(TimeoutError):
            set_used_bytes(size)
    with memory.reserve() as set_used_bytes:
        set_used_bytes(16 * Limits().body_bytes)  # the whole budget is free again


def test_decompressed_and_parsed_bytes_are_counted(small):
    told, limits = [], Limits()
    body = gzip.compress(json.dumps([[1, 2]] * 1000).encode())

    def read(whole):
        return read_rows(whole, "", small, limits).rows, None

    _decompress_and_parse(body, "gzip", limits.text, read, told.append)
    assert told == [len(body) + 8000, len(body) + 8000 + 16_000]


BUSY = """
import asyncio, time
from kmeans_kernel.serve.transport._thread_pool import DaemonThreadPool

async def main():
    pool = DaemonThreadPool()
    pool.start()
    assert await pool.call(lambda: 3) == 3
    try:
        async with asyncio.timeout(0.1):
            await pool.call(lambda: time.sleep(1000))
    except TimeoutError:
        print("left")

asyncio.run(main())
"""


def test_a_busy_thread_does_not_delay_the_exit():
    done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "left\n")


def test_errors_of_threads_keep_no_references():
    """A reference cycle would keep the request body until the next garbage collection."""

    class Large:
        pass

    async def fail(pool, error):
        large = Large()
        seen = weakref.ref(large)

        def work(large=large):
            kept = large
            raise error(400, f"no {type(kept).__name__}")

        del large
        with pytest.raises(error):
            await pool.call(work)
        del work
        return seen

    async def main():
        pool = DaemonThreadPool()
        pool.start()
        seen = await fail(pool, RequestError)
        pool.stop()
        return seen

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(main())() is None
    finally:
        gc.enable()


def test_shutdown_limits_the_time_of_responses(slow, tmp_path):
    server = slow(rows=10**6, stop_seconds=1, answer_seconds=100)
    with connect(server.port) as connection:
        packed = gzip.compress(json.dumps([[WAIT, 0]]).encode())
        connection.sendall(post("/predict", packed, "Content-Encoding: gzip"))
        wait_for(lambda: begun(tmp_path))
        begin = time.monotonic()
        server.process.terminate()
        status, _, content = read_response(connection)
        assert (status, b"stopping" in content) == (503, True)
        assert server.process.wait(60) == 0
        assert time.monotonic() - begin < 10


def test_shutdown_does_not_wait_for_slow_bodies(slow):
    server = slow(body_seconds=100)
    with connect(server.port) as connection:
        connection.sendall(post("/predict", b"[[1", length=100))
        wait_for(lambda: server.process.poll() is None)
        time.sleep(0.2)  # until the server has read the headers
        begin = time.monotonic()
        server.process.terminate()
        status, headers, content = read_response(connection)
        assert (status, headers["retry-after"], b"stopping" in content) == (503, "1", True)
        assert server.process.wait(60) == 0
        assert time.monotonic() - begin < 10


def test_decompression_bombs_are_refused_early(slow):
    server = slow()
    bomb = gzip.compress(b"[" + b"[]," * 20_000_000 + b"[]]")
    status, told = send(server, "/predict", bomb, "Content-Encoding: gzip")
    assert (status, "send binary tensors" in told, "--max-text" in told) == (413, True, True)
    status, told = send(server, "/predict", b" " * (16 * 2**20 + 1))
    assert (status, "16,777,216 bytes, and has 16,777,217" in told) == (413, True)
    told = Path(f"/proc/{server.process.pid}/status").read_text()
    peak = next(line for line in told.splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 700_000  # kB; without the limits the peak is 2 GB
    assert healthy(server)


@pytest.mark.parametrize(
    ("body", "words"),
    [(b"[" + b"[]," * 30_000 + b"[]]", "12,000 lists"), (b"[[" + b"1," * 30_000 + b"1]]", "commas"),
     (b"[" + b"{}," * 30_000 + b"[]]", "got 30,002")],
)  # fmt: skip
def test_text_with_too_many_lists_or_commas_is_not_parsed(small, body, words):
    limits = Limits(rows=1000)
    for read in (
        lambda: read_rows(body, "", small, limits),
        lambda: read_inference(body, None, small, limits),
    ):
        with pytest.raises(RequestError, match=words) as caught:
            read()
        assert caught.value.status == 413
    assert len(read_rows(json.dumps([[1, 2]] * 1000).encode(), "", small, limits).rows) == 1000


def test_the_text_limit_applies_to_the_json_before_binary_tensors(small):
    text = json.dumps({**x(parameters={"binary_data_size": 16}), "id": "a" * 5000}).encode()
    body = text + np.zeros(2).tobytes()
    length = str(len(text))
    assert read_inference(body, length, small, Limits()).rows.shape == (1, 2)
    with pytest.raises(RequestError, match="at most 1,000 bytes") as caught:
        read_inference(body, length, small, Limits(text_bytes=1000))
    assert caught.value.status == 413


def test_too_many_csv_rows_are_refused_before_parsing(small):
    with pytest.raises(RequestError, match="at most 10 rows, got 20,000"):
        read_rows(b"x\n" * 20_000, "text/csv", small, Limits(rows=10))


def test_garbage_is_collected_less_often_while_serving():
    usual = gc.get_threshold()
    with _tuned_interpreter():
        assert gc.get_threshold()[0] > 10_000
    assert gc.get_threshold() == usual
    assert gc.get_freeze_count() == 0


def test_an_output_can_be_requested_once(small):
    twice = [{"name": "probabilities"}, {"name": "label"}, {"name": "probabilities"}]
    with pytest.raises(RequestError, match="'probabilities' was requested twice") as caught:
        infer({**x(), "outputs": twice}, small)
    assert caught.value.status == 400


def test_a_bound_port_is_in_use_at_once():
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 is in use"):
            bind("127.0.0.1", port)


DEEP = b"[" * 1000 + b"]" * 1000


@pytest.mark.parametrize(
    ("content", "length", "words"),
    [
        (DEEP, None, "must be a JSON object"),
        (b'{"inputs": ' + DEEP + b"}", None, '"name"'),
        (b'{"inputs": 3, "id": ' + DEEP + b"}", None, '"id"'),
        (json.dumps(x(data=["DEEP"])).encode().replace(b'"DEEP"', DEEP), None, "of equal length"),
        (x(shape=[1] * 100), None, "at most 8 non-negative integers"),
        (x(shape=[1 << 40] * 400), None, "at most 8 non-negative integers"),
        (x(shape=[1 << 40] * 8), None, "shape"),
        (x(shape=[0, 1 << 40, 1 << 40], data=[]), None, "product"),
        (x(), "²", "Inference-Header-Content-Length"),
        (x(), "1" * 5000, "Inference-Header-Content-Length"),
        (x(data=[0, 1 << 64], datatype="UINT64"), None, "fit UINT64"),
        (x(data=[0, float(1 << 64)], datatype="UINT64"), None, "fit UINT64"),
        (x(data=[0, 1 << 63], datatype="INT64"), None, "fit INT64"),
        (x(data=[0, float(1 << 63)], datatype="INT64"), None, "fit INT64"),
        (x(data=[0, -(2.0**63) * 1.01], datatype="INT64"), None, "fit INT64"),
    ],
)  # fmt: skip
def test_inputs_that_once_caused_internal_errors_are_refused(small, content, length, words):
    with pytest.raises(RequestError, match=words) as caught:
        infer(content, small, length)
    assert caught.value.status == 400
    assert len(caught.value.message) < 600


@pytest.mark.parametrize("edge", [2**64 - 1, 0])
def test_the_largest_integers_are_accepted(small, edge):
    assert infer(x(data=[edge, edge], datatype="UINT64"), small).rows.tolist() == [[edge, edge]]


def test_values_in_errors_are_abbreviated():
    assert abbreviate([1, "a", {"b": None}]) == "[1, 'a', {'b': None}]"
    assert len(abbreviate(list(range(10**6)))) == 60
    assert len(abbreviate("a" * 10**6)) == 60
    assert len(abbreviate(orjson.loads(DEEP))) <= 60


def test_headers_that_are_too_large_get_a_response(slow):
    server = slow()
    for n_bytes in (70_000, 200_000):
        with connect(server.port) as connection:
            connection.sendall(GET.format("/v2", f"x: {'y' * n_bytes}\r\n").encode())
            status, _, content = read_response(connection)
            assert (status, "65,536 bytes" in json.loads(content)["error"]) == (431, True)
            assert is_closed(connection)
    with connect(server.port) as connection:
        connection.sendall(GET.format("/v2", f"x: {'y' * 30_000}\r\n").encode())
        assert read_response(connection)[0] == 200
    told = "refused headers that are too long"
    wait_for(lambda: sum(line.get("message") == told for line in server.lines()) == 2)


def test_refused_connections_are_counted_and_logged_rarely(slow):
    server = slow(connections=2)
    kept = [connect(server.port) for _ in range(2)]
    for connection in kept:
        connection.sendall(GET.format("/v2", "").encode())
        assert read_response(connection)[0] == 200
    for _ in range(20):
        with connect(server.port) as connection:
            assert read_response(connection)[0] == 503
    kept[0].sendall(GET.format("/metrics", "").encode())
    assert b"connections_refused_total 20.0" in read_response(kept[0])[2]
    lines = wait_for(lambda: [one for one in server.lines() if "connections" in one])
    assert [line["connections"] for line in lines] == [1]
    for connection in kept:
        connection.close()


@pytest.mark.parametrize("answer", [_TOO_MANY_CONNECTIONS, _HEADERS_TOO_LARGE])
def test_error_responses_of_the_connection_are_well_formed(answer):
    head, _, content = answer.partition(b"\r\n\r\n")
    assert f"content-length: {len(content)}\r\n" in head.decode() + "\r\n"
    assert json.loads(content)["error"]


def test_the_connection_limit_reserves_file_descriptors():
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, usual[1]))
        assert connection_limit(1024) == 136
        assert connection_limit(10) == 10
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)


def test_head_is_supported_wherever_get_is(slow):
    server = slow()
    for path in ("/", "/v2", "/v2/health/live", "/docs", "/openapi.json", "/v2/models/slow"):
        with connect(server.port) as connection:
            request = GET.format(path, "Connection: close\r\n").replace("GET", "HEAD")
            connection.sendall(request.encode())
            received = b""
            while part := connection.recv(1 << 16):
                received += part
        assert received.startswith(b"HTTP/1.1 200")
        assert received.endswith(b"\r\n\r\n")
    wait_for(lambda: any(line.get("method") == "HEAD" for line in server.lines()))


def test_successful_and_failed_requests_are_counted_separately(slow):
    server = slow()
    for rows in ([[1, 2]], [[1, 2], [0, 1]], [[FAIL, 0]], [[1]]):
        ask(server, rows)
    told = json.loads(curl(f"{server.address}/v2/models/slow/stats")[1])["model_stats"][0]
    counts = {name: one["count"] for name, one in told["inference_stats"].items()}
    assert counts == {"success": 2, "fail": 2, "compute_infer": 2}
    assert told["inference_count"] == 3


def test_upgrade_requests_are_answered_without_a_warning(slow):
    server = slow()
    with connect(server.port) as connection:
        more = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
        connection.sendall(GET.format("/v2", more).encode())
        assert read_response(connection)[0] == 200
    assert healthy(server)
    wait_for(lambda: any(line.get("path") == "/predict" for line in server.lines()))
    assert "install" not in server.log.read_text()


def test_a_token_must_be_text(model, tmp_path):
    (tmp_path / "token").write_bytes(b"\xff\xfe\x00")
    told = refused(model, "--token-file", tmp_path / "token").replace("\n", "")
    assert "token must contain a token as UTF-8 text" in told


def test_two_servers_of_one_port(model, tmp_path):
    """They start at the same time, and only one reports that it serves."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    pair = [
        subprocess.Popen([*SERVE, str(model), "--port", port], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        wait_for(lambda: any(one.poll() is not None for one in pair))
        ended = next(one for one in pair if one.poll() is not None)
        assert ended.returncode == 2
        told = ended.communicate()[1]
        assert ("is in use" in told, "Serving" in told) == (True, False)
    finally:
        for one in pair:
            with contextlib.suppress(ProcessLookupError):
                one.terminate()
            one.communicate(timeout=60)


def test_raw_deflate_is_decompressed_in_chunks():
    raw, content = zlib.compressobj(0, wbits=-15), bytes(range(256)) * 1000
    packed = raw.compress(content) + raw.flush()
    assert decompress(packed, "deflate", Limits().body, lambda _: None) == content
