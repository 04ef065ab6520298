"""A runtime in a few lines that answers whole requests, as a server does: it says what it is given to say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from punchcard.chat import Call, Delta, Reply, Request, Sampling


class FakeChat:
    """Answers with ``replies``, one after the other, and keeps what it was asked in ``requests``.

    A text is told word by word, ``pause`` seconds apart.
    """

    def __init__(self, *replies: Reply | Call | str, pause: float = 0.0) -> None:
        self.name = "fake-chat"
        self.requests: list[Request] = []
        self.samplings: list[Sampling] = []
        self._replies = [reply if isinstance(reply, Reply) else made(reply) for reply in replies]
        self._pause = pause

    def respond(
        self,
        request: Request,
        sampling: Sampling = Sampling(),  # noqa: B008
        *,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Reply:
        self.requests.append(request)
        self.samplings.append(sampling)
        reply = self._replies[min(len(self.requests), len(self._replies)) - 1]
        for word in reply.text.split():
            time.sleep(self._pause)
            if on_delta is not None:
                on_delta(Delta("text", word + " "))
        return reply


class FakeAsyncChat(FakeChat):
    """The same, which can wait by itself."""

    async def arespond(
        self,
        request: Request,
        sampling: Sampling = Sampling(),  # noqa: B008
        *,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Reply:
        words = self._replies[min(len(self.requests) + 1, len(self._replies)) - 1].text.split()
        await asyncio.sleep(self._pause * len(words))
        pause, self._pause = self._pause, 0.0
        try:
            return self.respond(request, sampling, on_delta=on_delta)
        finally:
            self._pause = pause


def made(reply: Call | str) -> Reply:
    return Reply(reply) if isinstance(reply, str) else Reply(calls=[reply], finish="calls")
