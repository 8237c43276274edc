"""Prometheus metrics: requests, rows, latency and batch sizes."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
_ROWS = tuple(float(2**k) for k in range(18))


class Metrics:
    """The metrics of one server, in its own registry: a process may have several servers."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        name, registry = "kmeans_kernel", self._registry
        self._requests = Counter(
            f"{name}_requests", "Requests that were answered.", ("model", "endpoint", "status"),
            registry=registry,
        )  # fmt: skip
        self._rows = Counter(f"{name}_rows", "Rows that were classified.", ("model",),
                             registry=registry)  # fmt: skip
        self._seconds = Histogram(
            f"{name}_request_seconds",
            "Seconds from the request headers to the end of the response.",
            ("model", "endpoint"), buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._batch_rows = Histogram(
            f"{name}_batch_rows", "Rows of each predicted batch.", ("model",), buckets=_ROWS,
            registry=registry,
        )  # fmt: skip
        self.in_flight = Gauge(
            f"{name}_requests_in_flight", "Requests that are processed or queued.",
            registry=registry,
        )  # fmt: skip
        self.connections_refused = Counter(
            f"{name}_connections_refused", "Connections refused at the connection limit.",
            registry=registry,
        )  # fmt: skip
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def answered(self, model: str, endpoint: str, status: int, rows: int, seconds: float) -> None:
        """Count one response."""
        key = (model, endpoint, status)
        if key not in self._children:  # `labels` takes longer than `inc`
            self._children[key] = (
                self._requests.labels(model, endpoint, str(status)),
                self._seconds.labels(model, endpoint),
            )
        requests, times = self._children[key]
        requests.inc()
        times.observe(seconds)
        if rows and status == 200:
            self._rows.labels(model).inc(rows)

    def batch(self, model: str, rows: int) -> None:
        """Count one batch."""
        self._batch_rows.labels(model).observe(rows)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)
