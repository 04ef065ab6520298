"""Log probabilities, as chat completions and responses spell them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from punchcard.server.writer import TokenLogprob


class Alternative(BaseModel):
    """A token: its text (bytes that are no UTF-8 show as U+FFFD), its bytes, and the log of its probability."""

    token: str
    bytes: list[int]
    logprob: float


class Logprob(Alternative):
    top_logprobs: list[Alternative]


#: What stands for the log of zero, which is no JSON.
LEAST = -9999.0


def spell(logprob: TokenLogprob, pieces: Sequence[bytes]) -> Logprob:
    """``pieces``: the bytes of each token."""
    top = [Alternative(**_alternative(token, value, pieces)) for token, value in logprob.top]
    return Logprob(**_alternative(logprob.token, logprob.logprob, pieces), top_logprobs=top)


def _alternative(token: int, logprob: float, pieces: Sequence[bytes]) -> dict[str, Any]:
    piece = pieces[token]
    return {"token": piece.decode("utf-8", "replace"), "bytes": list(piece), "logprob": max(logprob, LEAST)}
