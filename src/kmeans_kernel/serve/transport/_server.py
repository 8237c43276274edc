"""The server process: listening socket, interpreter settings, graceful shutdown."""

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

from kmeans_kernel.serve._service import Service
from kmeans_kernel.serve.transport._connections import LimitedHttpProtocol
from kmeans_kernel.serve.transport._logs import LogHandler

_CLOSE_SECONDS = 5

# Backlog of the listening socket.
_LISTEN_BACKLOG = 2048

# Switch interval of the GIL. With the default of 5 ms the event loop would wait for a prediction
# thread longer than most predictions take.
_SWITCH_SECONDS = 5e-4

# Threshold of the youngest generation of the garbage collector. Parsing a large JSON body allocates
# many objects at once, and collections at the default threshold would take longer than the parsing.
_GC_THRESHOLD = 50_000

# File descriptors reserved for the log, the event loop, libraries and connections being refused.
_RESERVED_FILES, _MIN_CONNECTIONS = 64, 8


def run(
    app: FastAPI,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    on_start: Callable[[str], None] | None = None,
) -> None:
    """Serve an application until SIGTERM or SIGINT, followed by a graceful shutdown.

    Parameters
    ----------
    app : FastAPI
        Application returned by `create_app`.
    host : str, default="127.0.0.1"
        Address to listen on. The default accepts connections from this machine only; "0.0.0.0"
        accepts them from every network.
    port : int, default=8000
        Port to listen on; 0 for any free port.
    on_start : callable, default=None
        Called with the URL of the server once it accepts requests.
    """
    service: Service = app.state.service
    listening = bind(host, port)
    service.connection_limit = connection_limit(service.limits.connections)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listening.getsockname()[1]}"
    handler = LogHandler(service.log)
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(handler)
    logger.propagate = False
    config = uvicorn.Config(
        app, http=LimitedHttpProtocol, ws="none", lifespan="on", log_config=None,
        access_log=False, server_header=False, proxy_headers=False, loop="auto",
        timeout_keep_alive=max(1, round(service.limits.idle_seconds)),
        timeout_graceful_shutdown=_CLOSE_SECONDS,
    )  # fmt: skip
    try:
        with _tuned_interpreter():
            GracefulServer(config, service, lambda: on_start and on_start(address)).run([listening])
    finally:
        logger.removeHandler(handler)
        listening.close()


@contextmanager
def _tuned_interpreter() -> Iterator[None]:
    """Switch threads more often and collect garbage less often; restore both at the end."""
    seconds, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_GC_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(seconds)


def connection_limit(wanted: int) -> int:
    """Return the connection limit, lowered to the file descriptors of the process."""
    if sys.platform == "win32":
        return wanted
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(files - _RESERVED_FILES, _MIN_CONNECTIONS))


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise OSError with the reason if there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        # Listen here, not later in uvicorn: with SO_REUSEADDR two sockets can bind the same port,
        # and only `listen` fails for the second one.
        found.listen(_LISTEN_BACKLOG)
    except OSError as error:
        found.close()
        raise OSError(_bind_error(host, port, error)) from error
    return found


def _bind_error(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"the port {port} of {host} is in use; choose another with --port, or 0 for any."
    if error.errno == errno.EACCES:
        return f"the port {port} needs privileges; choose one above 1023 with --port."
    return (
        f"the server cannot listen on {host}, port {port}: {error.strerror or error}; choose "
        "another address with --host, or another port with --port."
    )


class GracefulServer(uvicorn.Server):
    """uvicorn's server with a graceful shutdown that waits for open requests and exits with 0."""

    def __init__(
        self, config: uvicorn.Config, service: Service, on_start: Callable[[], object]
    ) -> None:
        super().__init__(config)
        self._service = service
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections, then call `on_start`."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # models and modules live until the end; exclude them from collections
        self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Start a graceful shutdown at the first signal, exit at once at the second."""
        if self._service.shutting_down:
            self.should_exit = self.force_exit = True
        self._service.shutting_down = True

    async def on_tick(self, counter: int) -> bool:
        """Return whether to exit: when open requests are finished, or their time is over."""
        if self._service.shutting_down and self._service.poll_shutdown():
            self.should_exit = True
        return await super().on_tick(counter)
