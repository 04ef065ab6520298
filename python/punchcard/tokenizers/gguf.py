"""GGUF: the vocabulary that llama.cpp's model files carry in their metadata.

``tokenizer.ggml.model`` names the family: ``gpt2`` spells pieces in the byte-level alphabet; ``llama`` and ``t5``
are SentencePiece; ``bert`` writes a word's beginning with ``▁`` too. ``tokenizer.ggml.token_type`` tells for each
piece what it is, in SentencePiece's numbers. Control and user-defined tokens are raw text in every family.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

from ..errors import TokenizerError
from . import sentencepiece
from .gguf_metadata import read_metadata
from .pieces import byte_level, byte_piece, utf8
from .sentencepiece import PieceType
from .specials import looks_special
from .table import MAX_VOCAB_SIZE, PathLike, TokenTable, ids_in

T = TypeVar("T")

_PREFIX = "tokenizer.ggml."
_KEYS = ("model", "tokens", "token_type", "eos_token_id", "eot_token_id", "eom_token_id")
_SPECIAL_KEYS = (
    "bos_token_id",
    "unknown_token_id",
    "seperator_token_id",
    "padding_token_id",
    "mask_token_id",
    "cls_token_id",
)


def read(path: PathLike) -> TokenTable:
    """A table of the vocabulary in the GGUF file at ``path``."""
    name = os.fspath(path)
    wanted = {_PREFIX + key for key in (*_KEYS, *_SPECIAL_KEYS)}
    metadata = read_metadata(path, wanted.__contains__)
    return read_pairs({key.removeprefix(_PREFIX): value for key, value in metadata.items()}, name)


def read_pairs(metadata: dict[str, Any], name: str) -> TokenTable:
    """A table of the metadata under ``tokenizer.ggml.``; ``name`` is what errors call the file."""
    family = metadata.get("model")
    tokens, types = _list_of(str, metadata.get("tokens")), _list_of(int, metadata.get("token_type"))
    if not 0 < len(tokens) <= MAX_VOCAB_SIZE:
        raise TokenizerError(f"{name} holds no vocabulary", hint="A model file needs tokenizer.ggml.tokens")
    if "token_type" in metadata and len(types) != len(tokens):
        raise TokenizerError(f"{name} holds {len(tokens)} tokens, but not a type for each")
    table = TokenTable([])
    if family == "gpt2":
        _read_byte_level(table, tokens, types or [PieceType.NORMAL] * len(tokens))
    elif family in ("llama", "t5", "bert"):
        for i, text in enumerate(tokens):
            # Files of the first days have no types; their byte pieces are known by their look.
            kind = types[i] if types else PieceType.BYTE if byte_piece(text) else PieceType.NORMAL
            sentencepiece.put(table, i, text, kind)
    else:
        raise TokenizerError(f"{name} has a vocabulary of the kind {family!r}, which is not supported")
    if not types:
        # With types these keys add nothing but risk: some files name an ordinary piece as the padding token.
        for key in _SPECIAL_KEYS:
            table.special_token_ids.update(i for i in ids_in(metadata.get(key)) if 0 <= i < len(tokens))
    for key in ("eos_token_id", "eot_token_id", "eom_token_id"):
        table.add_end(*ids_in(metadata.get(key)))
    return table


def _read_byte_level(table: TokenTable, tokens: list[str], types: list[int]) -> None:
    normal = PieceType.NORMAL.value
    table.tokens = [byte_level(text) if kind == normal else b"" for text, kind in zip(tokens, types, strict=True)]
    for i, kind in enumerate(types):
        if kind == normal:
            continue
        text = tokens[i]
        if kind == PieceType.BYTE:
            table.add(i, byte_piece(text) or byte_level(text))
        elif kind in (PieceType.CONTROL, PieceType.UNKNOWN, PieceType.USER_DEFINED):
            table.add(i, utf8(text), special=kind != PieceType.USER_DEFINED or looks_special(text))


def _list_of(kind: type[T], value: object) -> list[T]:
    """``value`` where it is a list of nothing but ``kind``, else an empty one."""
    return value if isinstance(value, list) and set(map(type, value)) <= {kind} else []
