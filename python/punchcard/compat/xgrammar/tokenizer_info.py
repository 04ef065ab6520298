"""XGrammar's TokenizerInfo over Punchcard's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from ...errors import PunchcardError, TokenizerError
from ...tokenizers import pieces
from ...tokenizers.info import TokenizerInfo as _TokenizerInfo
from .exception import DeserializeFormatError, InvalidJSONError

#: Names under which tokenizers keep the token that ends a text, for vocabularies that do not say which it is.
_END_NAMES = (
    "</s>",
    "<eos>",
    "<|endoftext|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
)


class VocabType(Enum):
    """How a vocabulary spells bytes: as they are, with ``<0x0A>`` and ``▁``, or in the alphabet of byte-level BPE."""

    RAW = 0
    BYTE_FALLBACK = 1
    BYTE_LEVEL = 2


class TokenizerInfo:
    """The vocabulary of a model.

    Args:
        encoded_vocab: the tokens in order of id, in the spelling of ``vocab_type``.
        vocab_type: that spelling.
        vocab_size: the width of the model's logits, where it is not the number of tokens.
        stop_token_ids: ids that end a text; by default those with a usual name.
        add_prefix_space: kept, without effect: bytes are matched as they are.

    Raises:
        TokenizerError: no token ends a text.
    """

    def __init__(
        self,
        encoded_vocab: Sequence[bytes | str],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: int | None = None,
        stop_token_ids: list[int] | int | None = None,
        add_prefix_space: bool = False,
    ) -> None:
        tokens = [_decoded(token, vocab_type) for token in encoded_vocab]
        stops = _stops(stop_token_ids)
        if stops is None:
            names = {name.encode() for name in _END_NAMES}
            stops = [token_id for token_id, token in enumerate(tokens) if token in names]
        self._set(_TokenizerInfo.from_vocab(tokens, eos_token_ids=stops, vocab_size=vocab_size), vocab_type)
        self._add_prefix_space = add_prefix_space

    def _set(self, info: _TokenizerInfo, vocab_type: VocabType) -> None:
        self._info, self._vocab_type, self._add_prefix_space = info, vocab_type, False
        self._with_stops: dict[tuple[int, ...], _TokenizerInfo] = {}

    @classmethod
    def _of(cls, info: _TokenizerInfo, vocab_type: VocabType) -> TokenizerInfo:
        made = cls.__new__(cls)
        made._set(info, vocab_type)
        return made

    @staticmethod
    def from_huggingface(
        tokenizer: Any, *, vocab_size: int | None = None, stop_token_ids: list[int] | int | None = None
    ) -> TokenizerInfo:
        """From a tokenizer of transformers, or a ``tokenizers.Tokenizer``.

        Args:
            vocab_size: the width of the model's logits.
            stop_token_ids: ids that end a text, in place of the tokenizer's own.
        """
        stops = _stops(stop_token_ids)
        if stops == []:
            raise TokenizerError("stop_token_ids is empty", hint="Leave it out to take the tokenizer's own")
        info = _TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocab_size, eos_token_ids=stops or ())
        vocabulary = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
        kind = VocabType.BYTE_FALLBACK if "<0x0A>" in vocabulary else VocabType.BYTE_LEVEL
        return TokenizerInfo._of(info if stops is None else info.replace(eos_token_ids=stops), kind)

    def _ended_by(self, stops: Sequence[int]) -> _TokenizerInfo:
        """The vocabulary with other ends."""
        key = tuple(sorted(set(stops)))
        if key not in self._with_stops:
            self._with_stops[key] = self._info.replace(eos_token_ids=key)
        return self._with_stops[key]

    @property
    def vocab_type(self) -> VocabType:
        """How the vocabulary was spelled."""
        return self._vocab_type

    @property
    def vocab_size(self) -> int:
        """The width of masks."""
        return self._info.vocab_size

    @property
    def add_prefix_space(self) -> bool:
        """As it was given."""
        return self._add_prefix_space

    prepend_space_in_tokenization = add_prefix_space

    @property
    def decoded_vocab(self) -> list[bytes]:
        """The bytes of each id; empty for padding."""
        tokens = self._info.tokens
        return tokens + [b""] * (self.vocab_size - len(tokens))

    @property
    def stop_token_ids(self) -> list[int]:
        """Ids that end a text."""
        return self._info.eos_token_ids

    @property
    def special_token_ids(self) -> list[int]:
        """Ids that are no text: control tokens, and padding."""
        padding = [token_id for token_id, token in enumerate(self.decoded_vocab) if not token]
        return sorted({*self._info.special_token_ids, *padding})

    def dump_metadata(self) -> str:
        """What there is to know besides the tokens, as JSON text."""
        return json.dumps(
            {
                "vocab_type": self.vocab_type.value,
                "vocab_size": self.vocab_size,
                "add_prefix_space": self.add_prefix_space,
                "stop_token_ids": self.stop_token_ids,
            }
        )

    @staticmethod
    def from_vocab_and_metadata(encoded_vocab: Sequence[bytes | str], metadata: str) -> TokenizerInfo:
        """From the tokens and what `dump_metadata` wrote."""
        data = _object(metadata)
        try:
            return TokenizerInfo(
                encoded_vocab,
                VocabType(data["vocab_type"]),
                vocab_size=data["vocab_size"],
                stop_token_ids=data["stop_token_ids"],
                add_prefix_space=data["add_prefix_space"],
            )
        except (KeyError, ValueError) as error:
            raise DeserializeFormatError(f"This is no metadata of a tokenizer: {error!r}") from None

    def serialize_json(self) -> str:
        """Everything, as JSON text."""
        return json.dumps({"metadata": self.dump_metadata(), "tokenizer": self._info.to_json()})

    @staticmethod
    def deserialize_json(json_string: str) -> TokenizerInfo:
        """From what `serialize_json` wrote."""
        data = _object(json_string)
        try:
            metadata = json.loads(data["metadata"])
            made = TokenizerInfo._of(_TokenizerInfo.from_json(data["tokenizer"]), VocabType(metadata["vocab_type"]))
            made._add_prefix_space = metadata["add_prefix_space"]
        except (KeyError, TypeError, ValueError, PunchcardError) as error:
            raise DeserializeFormatError(f"This is no tokenizer information: {error}") from None
        return made


def _stops(stop_token_ids: list[int] | int | None) -> list[int] | None:
    return [stop_token_ids] if isinstance(stop_token_ids, int) else stop_token_ids


def _decoded(token: bytes | str, vocab_type: VocabType) -> bytes:
    if vocab_type is VocabType.RAW:
        return pieces.utf8(token) if isinstance(token, str) else bytes(token)
    piece = token if isinstance(token, str) else bytes(token).decode("utf-8", "replace")
    if vocab_type is VocabType.BYTE_LEVEL:
        return pieces.byte_level(piece)
    byte = pieces.byte_piece(piece)
    return pieces.spaced(piece) if byte is None else byte


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InvalidJSONError(f"The text is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise DeserializeFormatError("The text is no JSON object")
    return data
