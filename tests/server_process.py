"""A real server, in a thread of the test."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from fake_model import PIECES, FakeModel, Logits
from numpy.typing import NDArray

from punchcard.server import create_app
from punchcard.server.options import ServerOptions


class FakeBatchModel(FakeModel):
    """`FakeModel` with sequences. ``batches`` records how many tokens each sequence had in each pass; a pass takes
    ``seconds``."""

    def __init__(self, logits: Callable[[list[int]], Logits], *, seconds: float = 0.0, **options: Any) -> None:
        super().__init__(logits, **options)
        self.batches: list[list[int]] = []
        self.copied = 0
        self.seconds = seconds
        self.failing = False

    def sequence(self) -> FakeSequence:
        return FakeSequence(self)

    def forward_batch(self, parts: Sequence[tuple[Any, Sequence[int]]]) -> NDArray[np.float32]:
        assert len({id(sequence) for sequence, _ in parts}) == len(parts) > 0
        assert all(ids for _, ids in parts)
        self.batches.append([len(ids) for _, ids in parts])
        time.sleep(self.seconds)
        if self.failing:
            raise RuntimeError("out of memory")
        for sequence, ids in parts:
            sequence.tokens.extend(ids)
        return np.stack([self._logits(list(sequence.tokens)) for sequence, _ in parts])


class FakeSequence:
    def __init__(self, model: FakeBatchModel) -> None:
        self.model = model
        self.tokens: list[int] = []

    @property
    def position(self) -> int:
        return len(self.tokens)

    def rewind(self, position: int) -> None:
        assert 0 <= position <= len(self.tokens)
        del self.tokens[position:]

    def copy_from(self, other: FakeSequence, length: int) -> None:
        assert not self.tokens
        assert length <= len(other.tokens)
        self.model.copied += length
        self.tokens = other.tokens[:length]

    def close(self) -> None:
        self.tokens = []


def counting(tokens: list[int]) -> Logits:
    """Logits of a model that never ends by itself: it writes the alphabet again and again."""
    row = np.zeros(len(PIECES), dtype=np.float32)
    row[ord("a") + len(tokens) % 26] = 9
    return row


@contextlib.contextmanager
def serving(model: Any, options: ServerOptions | None = None) -> Iterator[Any]:
    """Serves ``model``; gives the server, with its ``url`` and ``service``."""
    import uvicorn

    from punchcard.server.connections import uvicorn_options

    options = options or ServerOptions()
    app = create_app(model, options)
    settings = {**uvicorn_options(options), "timeout_graceful_shutdown": 5}
    server: Any = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", **settings))
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started:
        assert time.monotonic() < deadline and thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    server.url = f"http://127.0.0.1:{port}"
    server.service = app.state.service
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether the condition comes to hold soon."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
