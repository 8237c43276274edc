"""State that all requests share: models, limits, metrics, admission control, shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any

from kmeans_kernel.serve._batching import BatchSizes, MicroBatcher, measure_batch_sizes
from kmeans_kernel.serve._models import VERSION, ServedModel, to_served_model
from kmeans_kernel.serve.transport._errors import RequestError, abbreviate
from kmeans_kernel.serve.transport._limits import Deadlines, Limits, MemoryBudget, overloaded
from kmeans_kernel.serve.transport._logs import Log
from kmeans_kernel.serve.transport._metrics import Metrics
from kmeans_kernel.serve.transport._thread_pool import DaemonThreadPool

# How long a graceful shutdown waits for bodies that are still arriving.
_BODY_GRACE_SECONDS = 1.0

# Refused connections are logged at most once in this time: a flood must not fill the log.
_LOG_INTERVAL_SECONDS = 10.0


@dataclass(eq=False)
class RequestStatistics:
    """Counters of the inference requests of one model, with their total duration."""

    succeeded: int = 0
    failed: int = 0
    nanoseconds_succeeded: int = 0
    nanoseconds_failed: int = 0

    def add(self, seconds: float, *, succeeded: bool) -> None:
        """Count one request."""
        if succeeded:
            self.succeeded += 1
            self.nanoseconds_succeeded += int(1e9 * seconds)
        else:
            self.failed += 1
            self.nanoseconds_failed += int(1e9 * seconds)


class Service:
    """State of one server."""

    def __init__(
        self,
        models: Mapping[str, Any],
        limits: Limits,
        token: str | None,
        *,
        log: bool,
        join: bool,
    ) -> None:
        if not models:
            raise ValueError("models must contain at least one model, got none; add a model.")
        if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
            raise ValueError(
                "the token must be one line of printable ASCII, and is not; choose another token."
            )
        self.models = {name: to_served_model(name, model) for name, model in models.items()}
        self.limits = limits
        self.metrics = Metrics()
        self.log = Log(enabled=log)
        self.memory = MemoryBudget(limits)
        self.body_deadlines, self.response_deadlines = Deadlines(), Deadlines()
        self.pool = DaemonThreadPool()
        self.request_statistics = {name: RequestStatistics() for name in self.models}
        self.connection_limit = limits.connections
        self.batchers: dict[str, MicroBatcher] = {}
        self.needs_token = token is not None
        self.shutting_down = False
        self.open_requests = 0  # requests that a graceful shutdown waits for
        self._in_flight = 0
        self._shutdown_began: float | None = None
        self._unlogged_connections, self._next_connection_log = 0, 0.0
        self._token = b"" if token is None else b"bearer " + token.encode()
        self._batching = join

    def start(self) -> None:
        """Measure batch sizes and start all threads; must run in the event loop."""
        self.log.start()
        self.pool.start()
        for name, model in self.models.items():
            sizes = measure_batch_sizes(model.predict, model.width)
            if not self._batching:
                sizes = BatchSizes(1, sizes.chunk_rows)
            self.batchers[name] = MicroBatcher(model.predict, sizes, self._batch_counter(name))
            self.log.write(level="info", message="ready", model=name, joined_rows=sizes.batch_rows)

    def poll_shutdown(self) -> bool:
        """Shorten all timeouts for a shutdown; return whether the server can exit now."""
        now = asyncio.get_running_loop().time()
        if self._shutdown_began is None:
            self._shutdown_began = now
        last = self._shutdown_began + self.limits.stop_seconds
        self.body_deadlines.shorten_to(min(self._shutdown_began + _BODY_GRACE_SECONDS, last))
        self.response_deadlines.shorten_to(last)
        return not self.open_requests or now > last + _BODY_GRACE_SECONDS

    def stop(self) -> None:
        """Stop all threads."""
        self.pool.stop()
        for batcher in self.batchers.values():
            batcher.stop()
        self.log.stop()

    def model(self, name: str | None, version: str | None = None) -> ServedModel:
        """Return a model by name; without a name, the only model."""
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        found = self.models.get(name or "")
        known = ", ".join(map(repr, list(self.models)[:10]))
        if found is None:
            what = "The path must name a model" if name is None else f"No model {abbreviate(name)}"
            raise RequestError(
                404, f"{what}; the server has {known}: use one of these in the path."
            )
        if version not in (None, VERSION):
            raise RequestError(
                404,
                f"The model {name!r} has only the version '{VERSION}', got {abbreviate(version)}.",
            )
        return found

    def is_authorized(self, authorization: bytes) -> bool:
        """Whether an Authorization header has the token, or no token is required."""
        kind, _, token = authorization.strip().partition(b" ")
        given = kind.lower() + b" " + token.strip()
        return not self.needs_token or compare_digest(given, self._token)

    def check_capacity(self) -> None:
        """Raise if the limit of requests in flight is reached (backpressure)."""
        if self._in_flight >= self.limits.in_flight:
            raise overloaded(
                f"The server processes at most {self.limits.in_flight:,} requests at once, and "
                "this limit is reached; retry in a second."
            )

    def refuse_connection(self, now: float) -> None:
        """Count a refused connection, and log the count at most every ten seconds."""
        self.metrics.connections_refused.inc()
        self._unlogged_connections += 1
        if now >= self._next_connection_log:
            self.log.write(
                level="warning",
                message=f"refused connections beyond the limit of {self.connection_limit:,}",
                connections=self._unlogged_connections,
            )
            self._unlogged_connections = 0
            self._next_connection_log = now + _LOG_INTERVAL_SECONDS

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Admit a request, and count it as in flight until the end of the block."""
        self.check_capacity()
        self._in_flight += 1
        self.metrics.in_flight.set(self._in_flight)
        try:
            yield
        finally:
            self._in_flight -= 1
            self.metrics.in_flight.set(self._in_flight)

    def _batch_counter(self, name: str) -> Any:
        return lambda rows: self.metrics.batch(name, rows)
