"""tiktoken: an ``Encoding``, or a file of ranks (a line each: the piece in base 64, its id).

Such files are what GPT models, Llama 3 and 4 and the first Qwen ship (``tokenizer.model``, ``qwen.tiktoken``).
Pieces are bytes already. A file knows no special tokens; they are handed over by name.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Any

from ..errors import TokenizerError
from .pieces import utf8
from .table import PathLike, TokenTable, place, read_bytes

_END_OF_TEXT = "<|endoftext|>"


def read(source: Any, special_tokens: Mapping[str, int] | None = None) -> TokenTable:
    """A table of an ``Encoding`` or of the ranks file at a path. tiktoken's own end token is ``<|endoftext|>``."""
    if isinstance(source, (str, os.PathLike)):
        table = TokenTable(place(_ranks(source)))
        names = dict(special_tokens or {})
    elif hasattr(source, "decode_single_token_bytes") and hasattr(source, "special_tokens_set"):
        table = TokenTable([_piece(source, i) for i in range(source.n_vocab)])
        names = {name: source.encode_single_token(name) for name in source.special_tokens_set} | dict(
            special_tokens or {}
        )
    else:
        raise TokenizerError(
            f"a tiktoken Encoding or the path of a ranks file is needed, not {type(source).__name__}",
            hint="tiktoken.get_encoding(name) gives an Encoding",
        )
    for name, token_id in names.items():
        table.add(token_id, utf8(name), special=True)
    table.add_end(names.get(_END_OF_TEXT))
    return table


def _piece(encoding: Any, token_id: int) -> bytes:
    try:
        piece: bytes = encoding.decode_single_token_bytes(token_id)
    except KeyError:  # Ids between the pieces and the special tokens are often unused.
        return b""
    return piece


def _ranks(path: PathLike) -> dict[int, bytes]:
    pieces: dict[int, bytes] = {}
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            token, rank = line.split()
            pieces[int(rank)] = base64.b64decode(token, validate=True)
        except ValueError as error:
            raise TokenizerError(
                f"{os.fspath(path)}, line {number}, is not a piece in base 64 and its id",
                hint="A SentencePiece tokenizer.model is read by from_sentencepiece",
                path=os.fspath(path),
                line=number,
            ) from error
    if not pieces:
        raise TokenizerError(f"{os.fspath(path)} holds no tokens", path=os.fspath(path))
    return pieces
