"""The gate that every request passes: the token, the request's number, its line in the log."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from itertools import count
from secrets import token_hex
from time import perf_counter
from typing import Any, TypeAlias

import orjson

from kmeans_kernel.serve._logs import where
from kmeans_kernel.serve._refusals import ClientGone, Refusal, stopping
from kmeans_kernel.serve._service import Service

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

# Whoever looks whether the server lives, or reads how to ask it in a browser, has no token, and is
# not waited for.
OPEN_PATHS = ("/v2/health/live", "/v2/health/ready", "/docs", "/openapi.json")

# Numbers of requests that are unlikely to be those of another run.
_RUN, _NUMBERS = token_hex(4), count(1)

_IDENTITY = re.compile(rb"[\x21-\x7e]{1,64}")
_FOUND, _CLIENT_GONE = 200, 499
_PREDICTING = ("infer", "predict")
_LONGEST_PATH = 200


@dataclass(eq=False)
class Note:
    """What is noted of a request on its way."""

    identity: str
    begin: float = field(default_factory=perf_counter)
    model: str = ""
    endpoint: str = "other"
    rows: int = 0
    status: int = 0


class Gate:
    """Lets requests through to the application, and tells what became of them."""

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
        own = given.decode() if _IDENTITY.fullmatch(given) else f"{_RUN}-{next(_NUMBERS)}"
        note = Note(own)
        scope["note"] = note

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                note.status = message["status"]
                pair = (b"x-request-id", note.identity.encode())
                message["headers"] = [*message.get("headers", ()), pair]
            await send(message)

        try:
            # The server leaves out the body of an answer to HEAD.
            asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            await self._pass(asked, receive, noting, headers.get(b"authorization", b""))
        except ClientGone:
            note.status = _CLIENT_GONE
        except Refusal as refusal:
            await _refuse(noting, refusal)
        except Exception as error:
            await self._fail(note, noting, error)
        finally:
            self._tell(scope, note)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, authorization: bytes) -> None:
        service = self._service
        if scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        if not service.may_enter(authorization):
            raise Refusal(
                401,
                "This server asks for a token, and the request has none or another; send the "
                "header Authorization: Bearer TOKEN.",
                {"www-authenticate": "Bearer"},
            )
        if service.stopping:
            raise stopping()
        service.open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            service.open -= 1

    async def _fail(self, note: Note, send: Send, error: Exception) -> None:
        """Answer an error of ours with a number to find it by."""
        self._service.log.write(
            level="error", request_id=note.identity, error=type(error).__name__, at=where(error)
        )
        if note.status:  # the answer has begun: all that is left is to break it off
            raise error
        await _refuse(
            send,
            Refusal(
                500,
                f"The server failed at this request, which should not happen; its log has more "
                f"about request {note.identity}.",
            ),
        )

    def _tell(self, scope: Scope, note: Note) -> None:
        seconds = perf_counter() - note.begin
        service = self._service
        service.metrics.answered(note.model, note.endpoint, note.status, note.rows, seconds)
        if note.endpoint in _PREDICTING and note.model:
            service.asked[note.model].add(seconds, succeeded=note.status == _FOUND)
        service.log.write(
            request_id=note.identity,
            method=scope["method"],
            path=scope["path"][:_LONGEST_PATH],
            model=note.model or None,
            status=note.status,
            rows=note.rows,
            milliseconds=round(1000 * seconds, 3),
        )


async def _refuse(send: Send, refusal: Refusal) -> None:
    content = orjson.dumps({"error": refusal.sentence}) + b"\n"
    headers = {
        "content-type": "application/json",
        "content-length": str(len(content)),
        **refusal.headers,
    }
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": pairs})
    await send({"type": "http.response.body", "body": content})
