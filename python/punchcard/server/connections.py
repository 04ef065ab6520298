"""Connections of ``punchcard serve``: how many there may be, and how long the head of a request may take.

uvicorn itself waits for a head without end. What comes after the head is the business of `punchcard.server.guard`.
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from punchcard.errors import PunchcardError
from punchcard.server.errors import Unavailable
from punchcard.server.options import ServerOptions

# Bytes of a request's head.
_HEAD_BYTES = 64 << 10
_KEEP_ALIVE_SECONDS = 5
_SHUTDOWN_SECONDS = 10
# Seconds that an answer which the client does not take may stay in the buffers of a connection that is closed.
_CLOSING_SECONDS = 10.0


class Connection(H11Protocol):
    """A connection with a clock: it is closed if no whole head comes in time."""

    most = 512
    head_seconds = 30.0
    _clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(_TOO_MANY)
            transport.close()
            return
        self._wind()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._clock is None and not self.transport.is_closing():
            self._wind()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _wind(self) -> None:
        self._clock = self.loop.call_later(self.head_seconds, self._expire)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _expire(self) -> None:
        self._clock = None
        self.transport.close()
        self.loop.call_later(_CLOSING_SECONDS, self.transport.abort)


def _response(error: Unavailable) -> bytes:
    body = json.dumps(error.body()).encode()
    head = (
        f"HTTP/1.1 {error.status} Service Unavailable\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nretry-after: {error.retry_after}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


_TOO_MANY = _response(Unavailable("Too many connections are open", hint="Try again later", retry_after=5))


def reserve(host: str, port: int) -> tuple[int, list[socket.socket]]:
    """Makes sure that the address can be listened on, before a model is loaded for it.

    Returns the port, which is a free one where ``port`` is 0, and what keeps it until it is closed.
    Raises `PunchcardError` if the address cannot be had.
    """
    held: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            made = socket.socket(family, kind, protocol)
            held.append(made)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind((address[0], port, *address[2:]))
            port = made.getsockname()[1]
    except OSError as error:
        for made in held:
            made.close()
        raise PunchcardError(
            f"The server cannot listen on {host}, port {port}: {error.strerror or error}",
            hint="Stop what uses the port, or take another with --port; 0 is for any that is free",
        ) from error
    return port, held


def uvicorn_options(options: ServerOptions) -> dict[str, Any]:
    """What uvicorn has to be run with, so that connections keep the limits."""

    class Limited(Connection):
        most = options.connections
        head_seconds = options.read_seconds

    return {
        "http": Limited,
        "h11_max_incomplete_event_size": _HEAD_BYTES,
        "timeout_keep_alive": _KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": _SHUTDOWN_SECONDS,
    }
