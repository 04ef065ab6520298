"""Tokens in order of id, as a caller has them: bytes, printed text, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import TokenizerError
from .pieces import printed
from .table import TokenTable


def read(tokens: Sequence[bytes | str | None]) -> TokenTable:
    """A table of ``tokens``; a text that holds U+FFFD, and ``None``, are pieces of unknown bytes."""
    if isinstance(tokens, (str, bytes)) or not isinstance(tokens, Sequence):
        raise TokenizerError(f"tokens must be a list of bytes in order of id, not {type(tokens).__name__}")
    kinds = set(map(type, tokens))
    # The usual case, a vocabulary of some hundred thousand byte strings, is worth a copy at C speed.
    return TokenTable(list(tokens) if kinds <= {bytes} else [_entry(i, token) for i, token in enumerate(tokens)])  # type: ignore[arg-type]


def _entry(token_id: int, token: object) -> bytes:
    if token is None:
        return b""
    if isinstance(token, str):
        return printed(token)
    if isinstance(token, (bytes, bytearray, memoryview)):
        return bytes(token)
    raise TokenizerError(f"token {token_id} is {type(token).__name__}, not bytes", token_id=token_id)
