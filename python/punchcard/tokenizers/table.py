"""The token table: what every source of a vocabulary is read into.

Each module beside this one reads one kind of source and has one function, ``read(source) -> TokenTable``. It knows the
source's spelling and its marks; what is done with a table (further end tokens, padding, checks) is common to all, in
:mod:`punchcard.tokenizers.info`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import TokenizerError

#: No vocabulary in use has a tenth of this many ids. A damaged file must not make us allocate what it claims to hold.
MAX_VOCAB_SIZE = 1 << 24

PathLike = str | os.PathLike[str]


@dataclass(slots=True)
class TokenTable:
    """The pieces of a vocabulary by id, and which of them are special or end a text.

    ``tokens[id]`` holds the exact bytes of a piece; ``b""`` is a hole, padding, or a piece of unknown bytes. For a
    special token it holds the token's name. ``vocab_size`` is the width of the logits where the source tells it.
    """

    tokens: list[bytes]
    special_token_ids: set[int] = field(default_factory=set)
    eos_token_ids: set[int] = field(default_factory=set)
    vocab_size: int | None = None

    def add(self, token_id: int, token: bytes, *, special: bool = False) -> None:
        """Put ``token`` at ``token_id``, whatever was there."""
        if not 0 <= token_id < MAX_VOCAB_SIZE:
            raise TokenizerError(f"token id {token_id} is out of range", token_id=token_id)
        if token_id >= len(self.tokens):
            self.tokens += [b""] * (token_id + 1 - len(self.tokens))
        self.tokens[token_id] = token
        if special:
            self.special_token_ids.add(token_id)

    def add_end(self, *token_ids: int | None) -> None:
        """Note ids that end a text, where known. An id outside of the table is no token of it, and left out."""
        self.eos_token_ids.update(i for i in token_ids if i is not None and 0 <= i < len(self.tokens))


def place(pieces: Mapping[int, bytes]) -> list[bytes]:
    """Pieces by id as a list, with ``b""`` in the holes."""
    for token_id in pieces:
        if type(token_id) is not int or not 0 <= token_id < MAX_VOCAB_SIZE:
            raise TokenizerError(f"token id {token_id!r} is out of range", token_id=token_id)
    tokens = [b""] * (max(pieces, default=-1) + 1)
    for token_id, piece in pieces.items():
        tokens[token_id] = piece
    return tokens


def read_bytes(path: PathLike) -> bytes:
    """The content of a file, or a :class:`TokenizerError` that says why there is none."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise TokenizerError(
            f"cannot read {os.fspath(path)}: {error.strerror or error}", path=os.fspath(path)
        ) from error


def parse_object(text: str | bytes, name: str) -> dict[str, Any]:
    """The JSON object that ``text`` is, or a :class:`TokenizerError` that calls the source ``name``."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{name} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise TokenizerError(f"{name} does not hold a JSON object")
    return value


def ids_in(value: object) -> Iterable[int]:
    """The token ids in a configuration's value: one, several in a list, or none."""
    values = value if isinstance(value, list) else [value]
    return [i for i in values if isinstance(i, int) and not isinstance(i, bool)]
