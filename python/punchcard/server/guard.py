"""What every request has to pass before anything of it is read: its size, its time, its key, the host that it names."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from punchcard.server.errors import ApiError, BadRequest, TooLarge, TooLate, Unauthorized, Unavailable
from punchcard.server.options import ServerOptions

# Whoever looks whether the server lives, such as a load balancer, has no key.
_OPEN = frozenset({"/health"})
# Bodies beyond this size are read a few at a time, so that unfinished ones cannot fill the memory.
_SMALL_BYTES = 256 << 10
_LARGE_AT_ONCE = 32
_LARGE_PATIENCE = 5.0
# Times the largest body that is read of one that is refused, so that its client gets to read why.
_DRAINED = 16


class Guard:
    """Refuses requests with 400, 401, 408 or 413 before they reach the application."""

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        self._app = app
        self._options = options
        self._key = None if options.api_key is None else options.api_key.encode()
        self._large = anyio.Semaphore(_LARGE_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = _Timely(send, self._options.read_seconds)
        try:
            self._check(scope["path"], Headers(scope=scope))
            replay = await self._read(receive)
        except ApiError as error:
            await self._refuse(error, receive, send)
            return
        if replay is None:  # the client has gone
            return
        try:
            await self._app(scope, replay, client)
        except Exception:
            if not client.gone:
                raise

    def _check(self, path: str, headers: Headers) -> None:
        hosts = self._options.hosts
        if hosts is not None and _host(headers) not in hosts:
            raise BadRequest(
                "The header Host names another server",
                hint=f"This one is called {' or '.join(hosts)}",
                code="wrong_host",
            )
        if self._key is not None and path not in _OPEN:
            # As bytes, which is what came, and which are compared in constant time.
            scheme, _, key = headers.get("authorization", "").encode("latin-1").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(key.strip(), self._key):
                raise Unauthorized(
                    "The API key is missing or wrong",
                    hint="Send it as `Authorization: Bearer KEY`",
                    code="invalid_api_key",
                )
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length[:20]) > self._options.max_request_bytes:
            raise self._too_large()

    async def _read(self, receive: Receive) -> Receive | None:
        """Reads the body as a whole, as all endpoints do, and gives what the application receives it from; `None` if
        the client has gone."""
        seconds = self._options.read_seconds
        try:
            with anyio.fail_after(seconds):
                last = await self._gather(receive)
        except TimeoutError:
            raise TooLate(
                f"The body was not sent within {seconds:g} seconds", hint="Send it faster", code="request_timeout"
            ) from None
        if last["type"] == "http.disconnect":
            return None
        messages = [last]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        return replay

    async def _gather(self, receive: Receive) -> Message:
        """The body in one message, or that the client has gone."""
        body = bytearray()
        large = False
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return message
                body += message.get("body", b"")
                if len(body) > self._options.max_request_bytes:
                    raise self._too_large()
                if not message.get("more_body", False):
                    return {"type": "http.request", "body": bytes(body)}
                if not large and len(body) > _SMALL_BYTES:
                    # What is not received meanwhile is not sent either.
                    with anyio.move_on_after(_LARGE_PATIENCE):
                        await self._large.acquire()
                        large = True
                    if not large:
                        raise Unavailable("Too many large requests are on their way", retry_after=10)
        finally:
            if large:
                self._large.release()

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"The request is larger than {self._options.max_request_bytes} bytes",
            hint="Send less at a time",
            code="request_too_large",
        )

    async def _refuse(self, error: ApiError, receive: Receive, send: Send) -> None:
        """Sends the error at once, and reads what the client is still sending. If the connection were closed before,
        many a client would see it reset, and not the error."""
        answer = refuse(error)
        answer.headers["connection"] = "close"
        await send({"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
        await send({"type": "http.response.body", "body": answer.body, "more_body": True})
        if not isinstance(error, TooLate):
            with anyio.move_on_after(self._options.read_seconds):
                await self._drain(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _drain(self, receive: Receive) -> None:
        left = _DRAINED * self._options.max_request_bytes
        message: Message = {"more_body": True}
        while message.get("more_body", False) and left > 0:
            message = await receive()
            left -= len(message.get("body", b""))


class _Timely:
    """Sends messages to a client that reads them. One that does not is gone."""

    def __init__(self, send: Send, seconds: float) -> None:
        self.gone = False
        self._send = send
        self._seconds = seconds

    async def __call__(self, message: Message) -> None:
        with anyio.move_on_after(self._seconds) as limit:
            await self._send(message)
        if limit.cancelled_caught:
            self.gone = True
            raise ClientGone


class ClientGone(Exception):
    """The client has closed the connection, or does not read what it asked for."""


def refuse(error: ApiError) -> JSONResponse:
    """The answer that an error is."""
    headers = dict(_headers(error))
    return JSONResponse(error.body(), error.status, headers)


def _headers(error: ApiError) -> Iterator[tuple[str, str]]:
    if error.retry_after is not None:
        yield "retry-after", str(error.retry_after)
    if isinstance(error, Unauthorized):
        yield "www-authenticate", "Bearer"


def _host(headers: Headers) -> str:
    try:
        return (urlsplit(f"//{headers.get('host', '')}").hostname or "").lower()
    except ValueError:
        return ""
