"""ASGI middleware for every request: authentication, request id, errors, metrics and log."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from itertools import count
from secrets import token_hex
from time import perf_counter
from typing import Any, TypeAlias

import orjson

from kmeans_kernel.serve._service import Service
from kmeans_kernel.serve.transport._errors import ClientDisconnected, RequestError, shutting_down
from kmeans_kernel.serve.transport._logs import stack_locations

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

# Paths without authentication: health probes and browsers send no token. A graceful shutdown
# answers them, too, and does not wait for them.
UNAUTHENTICATED_PATHS = ("/v2/health/live", "/v2/health/ready", "/docs", "/openapi.json")

# Parts of generated request ids; the random prefix separates the runs of a server in one log.
_RUN_ID, _REQUEST_NUMBERS = token_hex(4), count(1)

# Valid client request ids: printable ASCII without spaces, as they go into headers and the log.
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,64}")

# 499 is nginx's status for a client that disconnects; it appears only in log and metrics.
_OK, _CLIENT_CLOSED_REQUEST = 200, 499
_INFERENCE_ENDPOINTS = ("infer", "predict")
_MAX_LOGGED_PATH = 200


@dataclass(eq=False)
class RequestRecord:
    """Facts about a request, for its log line and its metrics."""

    request_id: str
    begin: float = field(default_factory=perf_counter)
    model: str = ""
    endpoint: str = "other"
    rows: int = 0
    status: int = 0


class RequestMiddleware:
    """Middleware that authenticates requests, turns errors into responses, and logs."""

    def __init__(self, app: Application, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        is_valid = _REQUEST_ID.fullmatch(given)
        record = RequestRecord(
            given.decode() if is_valid else f"{_RUN_ID}-{next(_REQUEST_NUMBERS)}"
        )
        scope["record"] = record

        async def recording_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                pair = (b"x-request-id", record.request_id.encode())
                message["headers"] = [*message.get("headers", ()), pair]
            await send(message)

        try:
            # Routes are declared for GET only; uvicorn omits the body of a response to HEAD.
            routed = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            authorization = headers.get(b"authorization", b"")
            await self._authorize_and_run(routed, receive, recording_send, authorization)
        except ClientDisconnected:
            record.status = _CLIENT_CLOSED_REQUEST
        except RequestError as error:
            await _send_error(recording_send, error)
        except Exception as error:
            await self._send_internal_error(record, recording_send, error)
        finally:
            self._log_request(scope, record)

    async def _authorize_and_run(
        self, scope: Scope, receive: Receive, send: Send, authorization: bytes
    ) -> None:
        service = self._service
        if scope["path"] in UNAUTHENTICATED_PATHS:
            await self._app(scope, receive, send)
            return
        if not service.is_authorized(authorization):
            raise RequestError(
                401,
                "The request must have the token of this server, and has none or another; send "
                "the header Authorization: Bearer TOKEN.",
                {"www-authenticate": "Bearer"},
            )
        if service.shutting_down:
            raise shutting_down()
        service.open_requests += 1
        try:
            await self._app(scope, receive, send)
        finally:
            service.open_requests -= 1

    async def _send_internal_error(
        self, record: RequestRecord, send: Send, error: Exception
    ) -> None:
        """Log an unexpected error, and respond with the request id to find it by."""
        self._service.log.write(
            level="error",
            request_id=record.request_id,
            error=type(error).__name__,
            at=stack_locations(error),
        )
        if record.status:  # the response has begun: uvicorn closes the connection
            raise error
        await _send_error(
            send,
            RequestError(
                500,
                f"Internal server error; search the log of the server for the request id "
                f"{record.request_id}, and report the error.",
            ),
        )

    def _log_request(self, scope: Scope, record: RequestRecord) -> None:
        seconds = perf_counter() - record.begin
        service = self._service
        service.metrics.answered(record.model, record.endpoint, record.status, record.rows, seconds)
        if record.endpoint in _INFERENCE_ENDPOINTS and record.model:
            service.request_statistics[record.model].add(seconds, succeeded=record.status == _OK)
        service.log.write(
            request_id=record.request_id,
            method=scope["method"],
            path=scope["path"][:_MAX_LOGGED_PATH],
            model=record.model or None,
            status=record.status,
            rows=record.rows,
            milliseconds=round(1000 * seconds, 3),
        )


async def _send_error(send: Send, error: RequestError) -> None:
    content = orjson.dumps({"error": error.message}) + b"\n"
    headers = {
        "content-type": "application/json",
        "content-length": str(len(content)),
        **error.headers,
    }
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": pairs})
    await send({"type": "http.response.body", "body": content})
