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
        headers = Headers(scope=scope)
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            self._check(scope["path"], headers)
            await self._app(scope, self._limited(receive), sending)
        except ApiError as error:
            if started:
                raise
            await refuse(error)(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> None:
        hosts = self._options.hosts
        if hosts is not None and _host(headers) not in hosts:
            raise BadRequest(
                "The header Host names another server",
                hint=f"This one is called {' or '.join(hosts)}",
                code="wrong_host",
            )
        if self._key is not None and path not in _OPEN:
            scheme, _, key = headers.get("authorization", "").partition(" ")
            # As bytes, since text beyond ASCII cannot be compared in constant time.
            if scheme.lower() != "bearer" or not hmac.compare_digest(key.strip().encode("utf-8", "replace"), self._key):
                raise Unauthorized(
                    "The API key is missing or wrong",
                    hint="Send it as `Authorization: Bearer KEY`",
                    code="invalid_api_key",
                )
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._options.max_request_bytes:
            raise self._too_large()

    def _limited(self, receive: Receive) -> Receive:
        read = 0

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._options.max_request_bytes:
                raise self._too_large()
            return message

        return limited

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
