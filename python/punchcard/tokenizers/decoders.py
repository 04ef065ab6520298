"""The ``decoder`` of a ``tokenizer.json``, as a function from one piece to its bytes.

A decoder is written for a whole text: a list of pieces goes through a chain of steps. The bytes of one piece are
what the steps make of it *within* a text, so the steps that treat the ends of the text (``Strip`` after ``Fuse``,
the first space of ``Metaspace``) do not count here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TokenizerError
from .patterns import linear_pattern
from .pieces import SPACE_SYMBOL, byte_level, byte_piece, utf8

Step = Callable[[str], str]

#: Longer pieces are never allowed in a text; and a few replacements, each by twice as much, could fill the memory.
_MAX_PIECE = 1 << 16
#: The longest text that a replacement may put in: what one step makes of a piece has to fit, too.
_MAX_CONTENT = 1 << 8


class PieceDecoder:
    """``decoder(piece)`` are the bytes of an ordinary piece, ``decoder.added(text)`` those of an added token.

    Built from the parsed file: where it has no decoder, the way its pre-tokenizer spells pieces tells how to read them.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.steps: list[Step] = []
        self.byte_level = False
        self.byte_fallback = False
        self._fused = False
        decoder = data.get("decoder")
        if isinstance(decoder, dict):
            self._take(decoder)
        else:
            self._guess(data)

    def __call__(self, piece: str) -> bytes:
        if self.byte_fallback and (byte := byte_piece(piece)) is not None:
            return byte
        piece = self._stepped(piece)
        return byte_level(piece) if self.byte_level else utf8(piece)

    def added(self, text: str) -> bytes:
        """Added tokens are raw text. Where pieces write a space as ``▁``, so do they; nowhere are they byte-level."""
        return utf8(text if self.byte_level else self._stepped(text))

    def _stepped(self, piece: str) -> str:
        most = max(_MAX_PIECE, len(piece))
        for step in self.steps:
            piece = step(piece)
            if len(piece) > most:
                raise TokenizerError(
                    f"tokenizer.json has a decoder that makes a piece of more than {_MAX_PIECE} characters",
                    hint="Its Replace steps, one after the other, make pieces ever longer",
                )
        return piece

    def all(self, pieces: dict[str, int]) -> dict[int, bytes]:
        """Bytes by id, of a table of ids by piece."""
        # Nearly all big vocabularies are plainly byte-level, where two calls a piece are half of the time.
        plain = self.byte_level and not self.byte_fallback and not self.steps
        decode = byte_level if plain else self
        return {token_id: decode(piece) for piece, token_id in pieces.items()}

    def _take(self, decoder: dict[str, Any]) -> None:
        kind = decoder.get("type")
        if kind == "Sequence":
            for part in decoder.get("decoders") or ():
                self._take(part)
        elif kind == "ByteLevel":
            self.byte_level = True
        elif kind == "ByteFallback":
            self.byte_fallback = True
        elif kind == "Fuse":
            self._fused = True
        elif self._fused:
            # What comes after works on the text as one string; only a replacement says something of each piece.
            if kind == "Replace":
                self.steps.append(_replace(decoder))
        elif kind == "Metaspace":
            symbol = str(decoder.get("replacement") or SPACE_SYMBOL)
            self.steps.append(lambda piece: piece.replace(symbol, " "))
        elif kind == "Replace":
            self.steps.append(_replace(decoder))
        elif kind == "Strip":
            self.steps.append(_strip(decoder))
        elif kind == "WordPiece":
            prefix = str(decoder.get("prefix") or "##")
            self.steps.append(lambda piece: piece[len(prefix) :] if piece.startswith(prefix) else " " + piece)
        elif kind == "BPEDecoder":
            suffix = str(decoder.get("suffix") or "</w>")
            self.steps.append(lambda piece: piece.replace(suffix, " "))
        else:
            raise TokenizerError(f"tokenizer.json has a decoder of the type {kind!r}, which is not supported")

    def _guess(self, data: dict[str, Any]) -> None:
        kinds = set(_types(data.get("pre_tokenizer")))
        if "ByteLevel" in kinds:
            self.byte_level = True
        elif "Metaspace" in kinds:
            self._take({"type": "Metaspace"})
        model = data.get("model")
        self.byte_fallback = isinstance(model, dict) and model.get("byte_fallback") is True


def _types(part: object) -> list[str]:
    if not isinstance(part, dict):
        return []
    inner = part.get("pretokenizers")
    return [str(part.get("type")), *(kind for p in (inner if isinstance(inner, list) else ()) for kind in _types(p))]


def _replace(decoder: dict[str, Any]) -> Step:
    pattern, content = decoder.get("pattern"), str(decoder.get("content", ""))
    if len(content) > _MAX_CONTENT:
        raise TokenizerError(f"tokenizer.json has a Replace decoder that puts in more than {_MAX_CONTENT} characters")
    if isinstance(pattern, dict) and isinstance(literal := pattern.get("String"), str):
        return lambda piece: piece.replace(literal, content)
    if isinstance(pattern, dict) and isinstance(source := pattern.get("Regex"), str):
        compiled = linear_pattern(source)
        return lambda piece: compiled.sub(lambda _: content, piece)
    raise TokenizerError("tokenizer.json has a Replace decoder without a pattern")


def _strip(decoder: dict[str, Any]) -> Step:
    content, start, stop = str(decoder.get("content", " ")), decoder.get("start"), decoder.get("stop")

    def strip(piece: str) -> str:
        # It ends where there is nothing to take away: the counts are the file's.
        begin, end = 0, len(piece)
        for _ in range(start if content and isinstance(start, int) else 0):
            if not piece.startswith(content, begin, end):
                break
            begin += len(content)
        for _ in range(stop if content and isinstance(stop, int) else 0):
            if not piece.endswith(content, begin, end):
                break
            end -= len(content)
        return piece[begin:end]

    return strip
