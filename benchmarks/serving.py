"""The server against calling `predict` in process, on the same batches of MNIST.

    python -m benchmarks.serving           minutes
    python -m benchmarks.serving --quick   shorter

Eight clients of a process of their own keep their connections, send requests that were encoded
before, in binary, and send the next when the answer is there. Time is noisy, so the server, the
server without joining and `predict` take turns, and what counts are the medians of the ratios of
one turn. Clients, server and `predict` share the cores.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier, Thread
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.contest import run_benchmark
from kmeans_kernel import paper, save_model
from kmeans_kernel.data import load_mnist
from kmeans_kernel.report._records import answer, in_fresh_process

CLIENTS = 8
SEED = 0
Q = 100
GOAL = 0.6
PACKAGES = ("fastapi", "starlette", "uvicorn", "uvloop", "httptools", "orjson")
TYPES = {"FP32": np.float32, "UINT8": np.uint8}

SERVER = [sys.executable, "-m", "kmeans_kernel.cli", "serve"]


def jobs(quick: bool) -> list[dict[str, Any]]:
    """Return one job for each type and number of rows."""
    turns, seconds = (2, 0.5) if quick else (5, 1.5)
    return [
        {"datatype": datatype, "rows": rows, "q": Q, "turns": turns, "seconds": seconds}
        for datatype in TYPES
        for rows in (1, 16, 256)
    ]


def measure(**job: Any) -> dict[str, Any]:
    """Measure one job; or be the clients of it, in a process of their own."""
    return be_clients(**job) if "port" in job else take_turns(**job)


def take_turns(datatype: str, rows: int, q: int, turns: int, seconds: float) -> dict[str, Any]:
    """Let the server, the server without joining and `predict` classify in turn."""
    data = load_mnist()
    model = paper.raw(q, random_state=SEED).fit(data.X_train, data.y_train)
    batches = batches_of(data.X_test, datatype, rows)
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mnist.model"
        save_model(model, path)
        with running(path) as joined, running(path, "--no-join") as alone:
            for _ in range(turns):
                job = {"datatype": datatype, "rows": rows, "seconds": seconds}
                found.append({
                    "in_process": call_predict(model.predict, batches, seconds),
                    "joined": in_fresh_process("benchmarks.serving", {**job, "port": joined}),
                    "alone": in_fresh_process("benchmarks.serving", {**job, "port": alone}),
                })  # fmt: skip
    ratios = {
        name: statistics.median(
            turn[name]["rows_per_second"] / turn["in_process"]["rows_per_second"] for turn in found
        )
        for name in ("joined", "alone")
    }
    return {
        "clients": CLIENTS,
        "seed": SEED,
        "ratio": round(ratios["joined"], 3),
        "ratio_without_joining": round(ratios["alone"], 3),
        "goal": GOAL,
        "met": ratios["joined"] >= GOAL,
        **{name: medians([turn[name] for turn in found]) for name in found[0]},
    }


def batches_of(images: np.ndarray, datatype: str, rows: int) -> list[np.ndarray]:
    """Return some different batches of rows of pixels."""
    pixels = images.reshape(len(images), -1).astype(TYPES[datatype])
    return [pixels[k * rows : (k + 1) * rows] for k in range(min(32, len(pixels) // rows))]


def call_predict(
    predict: Callable[[np.ndarray], object], batches: list[np.ndarray], seconds: float
) -> dict[str, float]:
    """Call a method on one batch after the other."""
    predict(batches[0])
    n, begin = 0, perf_counter()
    while perf_counter() - begin < seconds:
        predict(batches[n % len(batches)])
        n += 1
    elapsed = perf_counter() - begin
    return {"requests_per_second": n / elapsed, "rows_per_second": n * len(batches[0]) / elapsed}


@contextlib.contextmanager
def running(model: Path, *options: str) -> Iterator[int]:
    """Start the server on a free port of this machine, give the port, and stop it."""
    log = model.with_name(f"log{len(options)}")
    with log.open("w") as stream:
        command = [*SERVER, str(model), "--port", "0", *options]
        server = subprocess.Popen(command, stderr=stream)  # noqa: S603
    try:
        begin = perf_counter()
        while not (told := re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())):
            if server.poll() is not None or perf_counter() - begin > 60:
                raise OSError(f"the server did not start: {log.read_text()}")
        yield int(told[1])
    finally:
        server.terminate()
        server.wait(30)


def be_clients(port: int, datatype: str, rows: int, seconds: float) -> dict[str, float]:
    """Send requests over connections that are kept, each as soon as the last is answered."""
    requests = [
        encode(batch, datatype) for batch in batches_of(load_mnist().X_test, datatype, rows)
    ]
    times: list[list[float]] = [[] for _ in range(CLIENTS)]
    start = Barrier(CLIENTS + 1)

    def client(k: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask(connection, requests[k % len(requests)])
            start.wait()
            begin = now = perf_counter()
            n = k
            while now - begin < seconds:
                ask(connection, requests[n % len(requests)])
                n += 1
                last, now = now, perf_counter()
                times[k].append(now - last)

    threads = [Thread(target=client, args=(k,)) for k in range(CLIENTS)]
    for thread in threads:
        thread.start()
    start.wait()
    begin = perf_counter()
    for thread in threads:
        thread.join()
    elapsed = perf_counter() - begin
    every = np.concatenate([np.array(own) for own in times])
    p50, p95, p99 = 1000 * np.percentile(every, [50, 95, 99])
    return {
        "requests_per_second": len(every) / elapsed,
        "rows_per_second": rows * len(every) / elapsed,
        "p50_ms": p50,
        "p95_ms": p95,
        "p99_ms": p99,
    }


def encode(batch: np.ndarray, datatype: str, model: str = "mnist") -> bytes:
    """Return a request of the protocol, in binary."""
    binary = batch.tobytes()
    tensor = {
        "name": "X",
        "shape": list(batch.shape),
        "datatype": datatype,
        "parameters": {"binary_data_size": len(binary)},
    }
    content = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
    text = json.dumps(content).encode()
    head = (
        f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Length: {len(text) + len(binary)}\r\n"
        f"Inference-Header-Content-Length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text + binary


def ask(connection: socket.socket, request: bytes) -> bytes:
    """Send a request and read its answer."""
    connection.sendall(request)
    received = connection.recv(1 << 16)
    while (end := received.find(b"\r\n\r\n")) < 0:
        received += connection.recv(1 << 16)
    head = received[:end].lower()
    if not head.startswith(b"http/1.1 200"):
        raise OSError(f"the server answered {received!r}")
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(received) < end + 4 + length:
        received += connection.recv(1 << 16)
    return received


def medians(turns: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure over the turns."""
    return {key: round(statistics.median(turn[key] for turn in turns), 3) for key in turns[0]}


if __name__ == "__main__":
    answer(measure) or run_benchmark("serving", __doc__, jobs, PACKAGES)
