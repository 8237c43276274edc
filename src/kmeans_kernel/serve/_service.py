"""What all requests of one server share: its models, limits, counters and whether it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any

from kmeans_kernel.serve._batches import Batches, Sizes, measure_sizes
from kmeans_kernel.serve._limits import Held, Limits, Waits, busy
from kmeans_kernel.serve._logs import Log
from kmeans_kernel.serve._metrics import Metrics
from kmeans_kernel.serve._models import VERSION, ServedModel, serve_model
from kmeans_kernel.serve._refusals import Refusal, shown
from kmeans_kernel.serve._threads import Pool

# How long a stop waits for bodies that are on their way.
_SECONDS_FOR_BODIES = 1.0

# Refused connections are told in the log once in this time.
_SECONDS_BETWEEN_LINES = 10.0


@dataclass(eq=False)
class Asked:
    """The requests for predictions of one model so far, and the time they took."""

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
    """The state of a server."""

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
            raise ValueError("there must be at least one model to serve, got none.")
        if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
            raise ValueError("the token must be one line of ASCII text, and is not.")
        self.models = {name: serve_model(name, model) for name, model in models.items()}
        self.limits = limits
        self.metrics = Metrics()
        self.log = Log(wanted=log)
        self.held = Held(limits)
        self.bodies, self.answers = Waits(), Waits()
        self.pool = Pool()
        self.asked = {name: Asked() for name in self.models}
        self.most_connections = limits.connections
        self.batches: dict[str, Batches] = {}
        self.needs_token = token is not None
        self.stopping = False
        self.open = 0  # requests that a stop waits for
        self._at_work = 0
        self._stopped_at: float | None = None
        self._connections_untold, self._tell_connections_at = 0, 0.0
        self._token = b"" if token is None else b"bearer " + token.encode()
        self._join = join

    def start(self) -> None:
        """Measure the models and begin to predict; to be called within the event loop."""
        self.log.start()
        self.pool.start()
        for name, model in self.models.items():
            sizes = measure_sizes(model.predict, model.n_features)
            if not self._join:
                sizes = Sizes(1, sizes.piece)
            self.batches[name] = Batches(model.predict, sizes, self._counter(name))
            self.log.write(level="info", message="ready", model=name, joined_rows=sizes.joined)

    def hurry(self) -> bool:
        """Shorten what a stop waits for; say whether all of it has ended, or had its time."""
        now = asyncio.get_running_loop().time()
        if self._stopped_at is None:
            self._stopped_at = now
        last = self._stopped_at + self.limits.stop_seconds
        self.bodies.end_by(min(self._stopped_at + _SECONDS_FOR_BODIES, last))
        self.answers.end_by(last)
        return not self.open or now > last + _SECONDS_FOR_BODIES

    def stop(self) -> None:
        """Let the threads end."""
        self.pool.stop()
        for batches in self.batches.values():
            batches.stop()
        self.log.stop()

    def model(self, name: str | None, version: str | None = None) -> ServedModel:
        """Return the model of this name, the only one if there is none; or say which there are."""
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        found = self.models.get(name or "")
        known = ", ".join(map(repr, list(self.models)[:10]))
        if found is None:
            what = "A model must be named" if name is None else f"There is no model {shown(name)}"
            raise Refusal(404, f"{what}; the server has {known}: name one of them in the path.")
        if version not in (None, VERSION):
            raise Refusal(
                404, f"The model {name!r} has the version '{VERSION}' only, got {shown(version)}."
            )
        return found

    def may_enter(self, authorization: bytes) -> bool:
        """Say whether a request brings the token, if there must be one."""
        kind, _, token = authorization.strip().partition(b" ")
        given = kind.lower() + b" " + token.strip()
        return not self.needs_token or compare_digest(given, self._token)

    def check_room(self) -> None:
        """Refuse a request when as many are worked on as may be."""
        if self._at_work >= self.limits.in_flight:
            raise busy(
                f"The server works on at most {self.limits.in_flight:,} requests at once, and has "
                "as many; send this one again soon."
            )

    def refuse_connection(self, now: float) -> None:
        """Count a connection that is one too many; one line in a while tells of them."""
        self.metrics.connections_refused.inc()
        self._connections_untold += 1
        if now >= self._tell_connections_at:
            self.log.write(
                level="warning",
                message=f"refused connections beyond the {self.most_connections:,} that may be "
                "open at once",
                connections=self._connections_untold,
            )
            self._connections_untold = 0
            self._tell_connections_at = now + _SECONDS_BETWEEN_LINES

    @contextmanager
    def room(self) -> Iterator[None]:
        """Count a request among those that are worked on."""
        self.check_room()
        self._at_work += 1
        self.metrics.in_flight.set(self._at_work)
        try:
            yield
        finally:
            self._at_work -= 1
            self.metrics.in_flight.set(self._at_work)

    def _counter(self, name: str) -> Any:
        return lambda rows: self.metrics.batch(name, rows)
