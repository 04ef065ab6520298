"""Answers on the wire: server-sent events, and noticing that the client has gone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from punchcard.server.guard import ClientGone

Result = TypeVar("Result")


#: What is told in a stream.
Event: TypeAlias = dict[str, Any] | str


def event(data: Event) -> bytes:
    """One event on the wire: an object as JSON, named after its ``type`` if it has one; a text as it is."""
    name = data.get("type") if isinstance(data, dict) else None
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")) if isinstance(data, dict) else data
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode("utf-8", "replace")


class EventStream(Response):
    """A stream of events. When the client goes, ``events`` is closed at once, wherever it waits.

    ``release`` is called in the end, also where the stream did not even begin.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], release: Callable[[], None]) -> None:
        self.status_code = 200
        self.background = None
        self._events = events
        self._release = release
        # Proxies that gather a stream before they pass it on are told not to.
        self.init_headers({"cache-control": "no-cache", "x-accel-buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._stream(receive, send)
        finally:
            self._release()

    async def _stream(self, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await _disconnected(receive)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            try:
                async for data in self._events:
                    await send({"type": "http.response.body", "body": data, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            except ClientGone:
                pass  # it does not read: nobody is there to be told
            finally:
                if (close := getattr(self._events, "aclose", None)) is not None:
                    with anyio.CancelScope(shield=True):
                        await close()
            tasks.cancel_scope.cancel()


async def unless_gone(request: Request, work: Callable[[], Awaitable[Result]]) -> Result:
    """What ``work`` returns, unless the client goes before: then it is cancelled, and `ClientGone` is raised."""
    results: list[Result] = []
    failures: list[Exception] = []
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            await _disconnected(request.receive)
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            results.append(await work())
        except Exception as error:  # raised outside of the group, which would wrap it
            failures.append(error)
        tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]
    if not results:
        raise ClientGone
    return results[0]


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
