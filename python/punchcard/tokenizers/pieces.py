"""From the spelling of a piece in a tokenizer's table to the bytes that the piece stands for.

Tokenizer files are text, pieces are bytes, and each family has its own way to spell the one in the other:

- *byte-level BPE* (GPT-2 and its heirs) writes every byte as one printable character: ``Ġthe`` is ``b" the"``;
- *SentencePiece* writes a space as ``▁`` and a lone byte as ``<0x0A>``.

A spelling that does not say which bytes it stands for gives ``b""``: such a token is never allowed, and building a
vocabulary never fails because of it.
"""

from __future__ import annotations

import codecs
import re

SPACE_SYMBOL = "▁"
REPLACEMENT = "\ufffd"

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _alphabet() -> str:
    """The character for each byte: printable bytes are themselves, the others U+0100 and on, in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(others)) for byte in range(256))


BYTE_ALPHABET = _alphabet()
# The codec machinery maps a whole piece in C, some twenty times faster than a dictionary look-up for each character.
_BYTE_MAP = codecs.charmap_build(BYTE_ALPHABET)


def utf8(text: str) -> bytes:
    """The UTF-8 of ``text``; ``b""`` where it holds a lone surrogate, which no UTF-8 can say."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return b""


def printed(text: str) -> bytes:
    """The bytes of a piece known only by its printed form.

    U+FFFD there stands for bytes that could not be printed, whichever they were, so the bytes are unknown.
    """
    return b"" if REPLACEMENT in text else utf8(text)


def byte_level(piece: str) -> bytes:
    """The bytes of a byte-level piece.

    A piece with a character outside of the alphabet was put into the table as it is, and stands for its own text.
    """
    try:
        return codecs.charmap_encode(piece, "strict", _BYTE_MAP)[0]
    except UnicodeEncodeError:
        return printed(piece)


def byte_piece(piece: str) -> bytes | None:
    """The one byte that ``<0xNN>`` spells, or ``None`` where ``piece`` is anything else."""
    found = _BYTE_PIECE.fullmatch(piece)
    return bytes.fromhex(found[1]) if found else None


def spaced(piece: str) -> bytes:
    """The bytes of a SentencePiece piece: ``▁`` is a space.

    The space is part of the piece. That a decoder drops the first space of a text is a property of the text, not of the
    piece: at the start of an answer ``▁No`` is still a space and two letters.
    """
    return utf8(piece.replace(SPACE_SYMBOL, " "))
