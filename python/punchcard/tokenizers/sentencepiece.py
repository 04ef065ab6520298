"""SentencePiece: a ``.model`` file (a protocol buffer), its bytes, or a loaded ``SentencePieceProcessor``.

The file is read here, without the sentencepiece package. Of its messages only these fields matter::

    ModelProto    1: repeated SentencePiece   2: TrainerSpec
    SentencePiece 1: piece (string)           3: type (enum, 1 where absent)
    TrainerSpec   42: eos_id (int32, 2 where absent, -1 for none)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from ..errors import TokenizerError
from .pieces import byte_piece, spaced, utf8
from .specials import looks_special
from .table import TokenTable, read_bytes


class PieceType(IntEnum):
    """What a piece is. GGUF files use the same numbers."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def read(source: Any) -> TokenTable:
    """A table of the model at a path, in bytes, or in a processor."""
    if isinstance(source, bytes):
        model, name = source, "the SentencePiece model"
    elif isinstance(source, (str, os.PathLike)):
        model, name = read_bytes(source), os.fspath(source)
    elif hasattr(source, "serialized_model_proto"):
        model, name = source.serialized_model_proto(), "the SentencePiece model"
    else:
        raise TokenizerError(f"the path of a SentencePiece model is needed, not {type(source).__name__}")
    table, eos_id = TokenTable([]), 2
    try:
        for number, value in _fields(model):
            if number == 1:
                text, kind = _piece(_message(value))
                put(table, len(table.tokens), text, kind)
            elif number == 2:
                eos_id = next((_int32(v) for n, v in _fields(_message(value)) if n == 42), eos_id)
    except (ValueError, IndexError) as error:
        raise TokenizerError(f"{name} is not a SentencePiece model: {error}") from error
    if not table.tokens:
        raise TokenizerError(f"{name} is not a SentencePiece model: it holds no pieces")
    table.add_end(eos_id)
    return table


def put(table: TokenTable, token_id: int, text: str, kind: int) -> None:
    """Add the piece ``text`` of type ``kind``. A piece of an unknown type has unknown bytes."""
    if kind == PieceType.NORMAL:
        table.add(token_id, spaced(text))
    elif kind == PieceType.BYTE:
        table.add(token_id, byte_piece(text) or b"")
    elif kind == PieceType.USER_DEFINED and not looks_special(text):
        table.add(token_id, spaced(text))
    elif kind in (PieceType.CONTROL, PieceType.UNKNOWN, PieceType.USER_DEFINED):
        table.add(token_id, utf8(text), special=True)
    else:
        table.add(token_id, b"")


def _piece(message: bytes) -> tuple[str, int]:
    text, kind = "", int(PieceType.NORMAL)
    for number, value in _fields(message):
        if number == 1:
            # A piece that is no UTF-8 has bytes that we do not know how the decoder prints: a lone surrogate marks it.
            text = _message(value).decode("utf-8", "surrogateescape")
        elif number == 3:
            kind = _int32(value)
    return text, kind


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol buffer message: number, and an integer (varint) or the bytes of the field."""
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        wire_type = tag & 7
        value: int | bytes
        if wire_type == 0:
            value, position = _varint(message, position)
        else:
            if wire_type == 2:
                size, position = _varint(message, position)
            elif wire_type in (1, 5):
                size = 8 if wire_type == 1 else 4
            else:
                raise ValueError(f"unknown wire type at byte {position}")
            value = message[position : position + size]
            position += size
            if len(value) < size:
                raise ValueError("it ends in mid-field")
        yield tag >> 3, value


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError(f"a number of more than ten bytes at byte {position}")


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a message is due")
    return value


def _int32(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("a message where a number is due")
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
