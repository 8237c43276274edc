"""A connection that does not wait for ever: for headers, for a body, for a reader."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kmeans_kernel.serve._limits import Limits

# Headers of more bytes than this are no request of ours.
_MOST_HEADER_BYTES = 1 << 16

# The application refuses a slow body first, and says why; the connection is cut after this.
_SECONDS_FOR_THE_SENTENCE = 2.0

# A connection that is closed with this forgets what was not read, in the system too.
_FORGET = struct.pack("ii", 1, 0)

_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b'content-length: 57\r\nconnection: close\r\n\r\n{"error": "Too many connections; try again'
    b' in a second."}\n'
)


class Door(HttpToolsProtocol):
    """A connection of uvicorn with the limits of the application that it serves."""

    _limits: Limits
    _timer: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _header_bytes = 0
    _in_body = False

    def connection_made(self, transport: Any) -> None:
        """Wait for headers, unless there are too many connections."""
        super().connection_made(transport)
        app: Any = self.config.app
        self._limits = app.state.service.limits
        if len(self.connections) > self._limits.connections:
            transport.write(_TOO_MANY)
            transport.close()
            return
        self._expect(self._limits.header_seconds)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the headers have no end."""
        if not self._in_body:
            if self._header_bytes > _MOST_HEADER_BYTES:
                self.transport.abort()
                return
            self._header_bytes += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Wait for the rest of the headers."""
        super().on_message_begin()
        self._expect(self._limits.header_seconds)

    def on_headers_complete(self) -> None:
        """Wait for the body."""
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
