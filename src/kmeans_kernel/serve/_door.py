"""A connection that does not wait for ever: for headers, for a body, for a reader."""

from __future__ import annotations

import asyncio
import socket
import struct
from http import HTTPStatus
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kmeans_kernel.serve._limits import Limits
from kmeans_kernel.serve._service import Service

# Headers of more bytes than this are no request of ours.
_MOST_HEADER_BYTES = 1 << 16

# The application refuses a slow body first, and says why; the connection is cut after this.
_SECONDS_FOR_THE_SENTENCE = 2.0

# A connection that is closed with this forgets what was not read, in the system too.
_FORGET = struct.pack("ii", 1, 0)

# After such headers were refused, so much more is thrown away before the connection is cut; one
# that is cut with bytes unread may lose the answer.
_MOST_THROWN_AWAY = 1 << 20


def _answer(status: int, sentence: str, *headers: str) -> bytes:
    content = orjson.dumps({"error": sentence}) + b"\n"
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(content)}",
        "connection: close",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


_TOO_MANY = _answer(503, "Too many connections; try again in a second.", "retry-after: 1")
_TOO_LONG = _answer(
    431,
    f"The headers must have at most {_MOST_HEADER_BYTES:,} bytes, and have more; send what is long "
    "in the body.",
)


class Door(HttpToolsProtocol):
    """A connection of uvicorn with the limits of the application that it serves."""

    _service: Service
    _limits: Limits
    _timer: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _header_bytes = 0
    _in_body = False
    _too_long = False

    def connection_made(self, transport: Any) -> None:
        """Wait for headers, unless there are too many connections."""
        super().connection_made(transport)
        app: Any = self.config.app
        self._service = app.state.service
        self._limits = self._service.limits
        if len(self.connections) > self._service.most_connections:
            self._service.refuse_connection(self.loop.time())
            transport.write(_TOO_MANY)
            transport.close()
            return
        self._expect(self._limits.header_seconds)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the headers have no end."""
        if not self._in_body:
            self._header_bytes += len(data)
        if self._too_long:
            if self._header_bytes > _MOST_THROWN_AWAY:
                self.transport.abort()
            return
        super().data_received(data)
        if not self._in_body and self._header_bytes > _MOST_HEADER_BYTES:
            self._refuse_headers()

    def on_message_begin(self) -> None:
        """Wait for the rest of the headers."""
        super().on_message_begin()
        self._expect(self._limits.header_seconds)

    def on_headers_complete(self) -> None:
        """Wait for the body."""
        if self._header_bytes > _MOST_HEADER_BYTES and self._headers_size() > _MOST_HEADER_BYTES:
            raise ValueError("the headers are too long")  # ends the parser
        self._in_body, self._header_bytes = True, 0
        super().on_headers_complete()
        self._expect(self._limits.body_seconds + _SECONDS_FOR_THE_SENTENCE)

    def on_message_complete(self) -> None:
        """Wait for nothing: the answer has a time of its own."""
        super().on_message_complete()
        self._in_body = False
        self._expect(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget all timers."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._expect(None)
        self._watch_reader(None)

    def pause_writing(self) -> None:
        """Watch a client that does not read its answer."""
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Watch it no more."""
        super().resume_writing()
        self._watch_reader(None)

    def timeout_keep_alive_handler(self) -> None:
        """Close a silent connection; one with an answer on its way is watched already."""
        if not self.flow.write_paused:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request of HTTP, or has too long headers."""
        if self._header_bytes > _MOST_HEADER_BYTES:
            self._refuse_headers()
        else:
            super().send_400_response(msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: who asks for another protocol is answered in this one."""

    def _headers_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _refuse_headers(self) -> None:
        if self._too_long or self.transport.is_closing():
            return
        self._too_long = True
        self._service.log.write(level="warning", message="refused headers that are too long")
        self.transport.write(_TOO_LONG)
        self.transport.write_eof()
        self._expect(_SECONDS_FOR_THE_SENTENCE)

    def _expect(self, seconds: float | None) -> None:
        """Cut the connection unless this is called again within some time; None for any."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = (
            None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
        )

    def _watch_reader(self, left: int | None) -> None:
        """Cut the connection if nothing is taken of the bytes that are left; None for no longer."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        if left is not None:
            seconds = self._limits.body_seconds
            self._stall = self.loop.call_later(seconds, self._check_reader, left)

    def _check_reader(self, left: int) -> None:
        now = self.transport.get_write_buffer_size()
        if now >= left:
            own = self.transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _FORGET)
            self.transport.abort()
        else:
            self._watch_reader(now)
