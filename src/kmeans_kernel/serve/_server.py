"""The server process: its socket, and a stop that loses nothing."""

from __future__ import annotations

import errno
import gc
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from kmeans_kernel.serve._door import Door
from kmeans_kernel.serve._logs import LogHandler
from kmeans_kernel.serve._service import Service

_SECONDS_TO_CLOSE = 5

# Connections that the system keeps until they are taken.
_WAITING = 2048

# How long one thread of Python may keep the others waiting. With the usual 5 ms requests would wait
# for predictions of others, which take less.
_SWITCH_SECONDS = 5e-4

# A large body of text makes many objects at once; to look for rubbish among them each time that
# some hundred have come would take longer than to read it.
_OBJECTS_BEFORE_COLLECTING = 50_000

# Files beside connections: the log, the loop, libraries, and connections that are being refused.
_OTHER_FILES, _FEWEST_CONNECTIONS = 64, 8


def run(
    app: FastAPI,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    on_start: Callable[[str], None] | None = None,
) -> None:
    """Serve an application of `create_app` until SIGTERM or SIGINT; then finish what came.

    Parameters
    ----------
    app : FastAPI
    host : str, default="127.0.0.1"
        The address to listen at. Others than this machine reach only another one.
    port : int, default=8000
        0 for any that is free.
    on_start : callable, default=None
        Told the address when requests can come.
    """
    service: Service = app.state.service
    listening = bind(host, port)
    service.most_connections = most_connections(service.limits.connections)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listening.getsockname()[1]}"
    handler = LogHandler(service.log)
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(handler)
    logger.propagate = False
    config = uvicorn.Config(
        app, http=Door, ws="none", lifespan="on", log_config=None,
        access_log=False, server_header=False, proxy_headers=False, loop="auto",
        timeout_keep_alive=max(1, round(service.limits.idle_seconds)),
        timeout_graceful_shutdown=_SECONDS_TO_CLOSE,
    )  # fmt: skip
    try:
        with _own_pace():
            Server(config, service, lambda: on_start and on_start(address)).run([listening])
    finally:
        logger.removeHandler(handler)
        listening.close()


@contextmanager
def _own_pace() -> Iterator[None]:
    """Let threads take turns more often, and rubbish be collected less often."""
    seconds, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING, *thresholds[1:])
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(seconds)


def most_connections(wanted: int) -> int:
    """Return how many connections may be open at once, by what the system lets a process open."""
    if sys.platform == "win32":
        return wanted
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(files - _OTHER_FILES, _FEWEST_CONNECTIONS))


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at this address, or say why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(_WAITING)  # only now is the port taken for others that bind it like this
    except OSError as error:
        found.close()
        raise OSError(_why_not(host, port, error)) from error
    return found


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"the port {port} of {host} is in use; name another with --port, or 0 for any."
    if error.errno == errno.EACCES:
        return f"the port {port} is not for every user; name one above 1023 with --port."
    return f"the server cannot listen at {host}, port {port}: {error.strerror or error}."


class Server(uvicorn.Server):
    """A server that ends when nothing is left to do, with exit code 0."""

    def __init__(
        self, config: uvicorn.Config, service: Service, on_start: Callable[[], object]
    ) -> None:
        super().__init__(config)
        self._service = service
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # the models stay: they need not be looked at again
        self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop at the first signal; at the second, at once."""
        if self._service.stopping:
            self.should_exit = self.force_exit = True
        self._service.stopping = True

    async def on_tick(self, counter: int) -> bool:
        """Say whether to end: a stop waits for the requests that were let in, up to a bound."""
        if self._service.stopping and self._service.hurry():
            self.should_exit = True
        return await super().on_tick(counter)
