"""HTTP connections with timeouts against slow clients, and limits of their number and headers."""

from __future__ import annotations

import asyncio
import socket
import struct
from http import HTTPStatus
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kmeans_kernel.serve._service import Service
from kmeans_kernel.serve.transport._limits import Limits

# Largest headers of a request in bytes, including the request line.
_MAX_HEADER_BYTES = 1 << 16

# Time to deliver an error response before the connection is aborted: the application itself
# answers a body that is too slow, with 408.
_ERROR_GRACE_SECONDS = 2.0

# SO_LINGER on, with timeout 0: closing sends a reset, and the kernel drops its send buffer, which
# would otherwise stay in memory for a client that does not read.
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

# Bytes to discard after headers that are too large. Closing a socket with unread data sends a
# reset, and the client may then never see the error response.
_MAX_DISCARDED_BYTES = 1 << 20


def _error_response(status: int, message: str, *headers: str) -> bytes:
    content = orjson.dumps({"error": message}) + b"\n"
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(content)}",
        "connection: close",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


_TOO_MANY_CONNECTIONS = _error_response(
    503, "Too many connections; retry in a second.", "retry-after: 1"
)
_HEADERS_TOO_LARGE = _error_response(
    431,
    f"The headers must have at most {_MAX_HEADER_BYTES:,} bytes, and have more; send long values "
    "in the body.",
)


class LimitedHttpProtocol(HttpToolsProtocol):
    """The HTTP protocol of uvicorn with the limits of the served application."""

    _service: Service
    _limits: Limits
    _read_timeout: asyncio.TimerHandle | None = None
    _write_timeout: asyncio.TimerHandle | None = None
    _header_bytes = 0
    _in_body = False
    _headers_too_large = False

    def connection_made(self, transport: Any) -> None:
        """Start the header timeout, or refuse a connection beyond the limit."""
        super().connection_made(transport)
        app: Any = self.config.app
        self._service = app.state.service
        self._limits = self._service.limits
        if len(self.connections) > self._service.connection_limit:
            self._service.refuse_connection(self.loop.time())
            transport.write(_TOO_MANY_CONNECTIONS)
            transport.close()
            return
        self._set_read_timeout(self._limits.header_seconds)

    def data_received(self, data: bytes) -> None:
        """Parse data, unless the headers are too large."""
        if not self._in_body:
            self._header_bytes += len(data)
        if self._headers_too_large:
            if self._header_bytes > _MAX_DISCARDED_BYTES:
                self.transport.abort()
            return
        super().data_received(data)
        if not self._in_body and self._header_bytes > _MAX_HEADER_BYTES:
            self._reject_headers()

    def on_message_begin(self) -> None:
        """Start the header timeout of a further request on this connection."""
        super().on_message_begin()
        self._set_read_timeout(self._limits.header_seconds)

    def on_headers_complete(self) -> None:
        """Start the body timeout."""
        if self._header_bytes > _MAX_HEADER_BYTES and self._headers_size() > _MAX_HEADER_BYTES:
            raise ValueError("the headers are too long")  # aborts the parser
        self._in_body, self._header_bytes = True, 0
        super().on_headers_complete()
        self._set_read_timeout(self._limits.body_seconds + _ERROR_GRACE_SECONDS)

    def on_message_complete(self) -> None:
        """Stop the timeout: the application has its own for the response."""
        super().on_message_complete()
        self._in_body = False
        self._set_read_timeout(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all timeouts, which would keep the connection's memory."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._set_read_timeout(None)
        self._set_write_timeout(None)

    def pause_writing(self) -> None:
        """Start the write timeout: the client does not read its response."""
        super().pause_writing()
        self._set_write_timeout(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop the write timeout."""
        super().resume_writing()
        self._set_write_timeout(None)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless the write timeout of a response is running."""
        if not self.flow.write_paused:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Respond to a request that cannot be parsed, or whose headers are too large."""
        if self._header_bytes > _MAX_HEADER_BYTES:
            self._reject_headers()
        else:
            super().send_400_response(msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Suppress uvicorn's warning: an upgrade request is answered as plain HTTP."""

    def _headers_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _reject_headers(self) -> None:
        if self._headers_too_large or self.transport.is_closing():
            return
        self._headers_too_large = True
        self._service.log.write(level="warning", message="refused headers that are too long")
        self.transport.write(_HEADERS_TOO_LARGE)
        self.transport.write_eof()
        self._set_read_timeout(_ERROR_GRACE_SECONDS)

    def _set_read_timeout(self, seconds: float | None) -> None:
        """Replace the read timeout, which aborts the connection; None for no timeout."""
        if self._read_timeout is not None:
            self._read_timeout.cancel()
        self._read_timeout = (
            None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
        )

    def _set_write_timeout(self, unsent: int | None) -> None:
        """Replace the write timeout; None for no timeout.

        Parameters
        ----------
        unsent : bytes in the write buffer; the connection is aborted if they do not decrease
        """
        if self._write_timeout is not None:
            self._write_timeout.cancel()
            self._write_timeout = None
        if unsent is not None:
            seconds = self._limits.body_seconds
            self._write_timeout = self.loop.call_later(seconds, self._check_write_progress, unsent)

    def _check_write_progress(self, unsent: int) -> None:
        now = self.transport.get_write_buffer_size()
        if now >= unsent:
            own = self.transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self.transport.abort()
        else:
            self._set_write_timeout(now)
