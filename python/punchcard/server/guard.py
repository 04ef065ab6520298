"""What every request has to pass before anything of it is read: its size, its key, the host that it names."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from punchcard.server.errors import ApiError, BadRequest, TooLarge, Unauthorized
from punchcard.server.options import ServerOptions

# Whoever looks whether the server lives, such as a load balancer, has no key.
_OPEN = frozenset({"/health"})


class Guard:
    """Refuses requests with 401, 400 or 413 before they reach the application."""

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        self._app = app
        self._options = options
        self._key = None if options.api_key is None else options.api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope["path"], Headers(scope=scope))
            replay = await self._read(receive)
        except ApiError as error:
            await refuse(error)(scope, receive, send)
        else:
            await self._app(scope, replay, send)

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
        if length.isdigit() and int(length) > self._options.max_request_bytes:
            raise self._too_large()

    async def _read(self, receive: Receive) -> Receive:
        """Reads the body as a whole, as all endpoints do, and gives what the application receives it from."""
        body = bytearray()
        message: Message = {"more_body": True}
        while message.get("more_body", False):
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self._options.max_request_bytes:
                raise self._too_large()
        messages = [message if message["type"] == "http.disconnect" else {"type": "http.request", "body": bytes(body)}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        return replay

    def _too_large(self) -> TooLarge:
        return TooLarge(f"The request is larger than {self._options.max_request_bytes} bytes", code="request_too_large")


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
