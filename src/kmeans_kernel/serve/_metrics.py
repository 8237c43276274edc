"""What Prometheus may read: requests, rows, times and batches."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
_ROWS = tuple(float(2**k) for k in range(18))


class Metrics:
    """The counters of one server, in a registry of their own."""

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
            f"{name}_request_seconds", "From the headers of a request to the end of its answer.",
            ("model", "endpoint"), buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._batch_rows = Histogram(
            f"{name}_batch_rows", "Rows that were predicted at once.", ("model",), buckets=_ROWS,
            registry=registry,
        )  # fmt: skip
        self.in_flight = Gauge(
            f"{name}_requests_in_flight", "Requests that are worked on or wait for it.",
            registry=registry,
        )  # fmt: skip
        self.connections_refused = Counter(
            f"{name}_connections_refused", "Connections beyond those that may be open at once.",
            registry=registry,
        )  # fmt: skip
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def answered(self, model: str, endpoint: str, status: int, rows: int, seconds: float) -> None:
        """Count one answer."""
        key = (model, endpoint, status)
        if key not in self._children:  # to look them up takes longer than to count
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
        """Return all of them in the format of Prometheus."""
        return generate_latest(self._registry)
