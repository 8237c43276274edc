"""Server processes on free local ports, and a minimal HTTP client."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

SERVE = [sys.executable, "-m", "kmeans_kernel.cli", "serve"]
SLOW = [sys.executable, str(Path(__file__).with_name("slow_server.py"))]
TIMEOUT_SECONDS = 60  # generous: only a failing test ever waits this long


class Process:
    def __init__(self, command, log, environment=None):
        self.log = log
        with log.open("w") as stream:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stderr=stream,
                env={**os.environ, **(environment or {})},
            )
        self.address = wait_for(self._address)
        self.port = int(self.address.rpartition(":")[2])
        self.host = f"127.0.0.1:{self.port}"

    def _address(self):
        assert self.process.poll() is None, self.log.read_text()
        told = re.search(r"at (http://\S+:\d+)", self.log.read_text())
        return told and told[1]

    def lines(self):
        """Return the JSON lines of the log."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line[:1] == "{"]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(TIMEOUT_SECONDS)


@contextlib.contextmanager
def running(command, log, environment=None):
    server = Process(command, log, environment)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.terminate()
            try:
                server.process.wait(TIMEOUT_SECONDS)
            finally:
                server.process.kill()


def wait_for(condition):
    begin = time.monotonic()
    while time.monotonic() - begin < TIMEOUT_SECONDS:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"the condition was not met within {TIMEOUT_SECONDS} s")


def curl(address, *options):
    """Return the status and the body of a response."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed; on Debian: apt-get install curl")
    done = subprocess.run(
        ["curl", "-s", "-m", str(TIMEOUT_SECONDS), "-w", "\n%{http_code}", *options, address],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    content, _, status = done.stdout.rpartition("\n")
    return int(status), content


def curl_json(address, *options):
    status, content = curl(address, *options)
    return status, json.loads(content)


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def post(path, body, *headers, length=None):
    """Return the bytes of a request."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers]
    lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def read_response(connection):
    """Return the status, the headers and the body of one response."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(1 << 16)
        if not part:
            return 0, {}, received
        received += part
    head, _, content = received.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
    while len(content) < int(headers["content-length"]):
        content += connection.recv(1 << 16)
    return int(first.split()[1]), headers, content


def is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
