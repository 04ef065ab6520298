"""A model in a few lines, for exact checks: its logits are a function of the tokens so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from punchcard import TokenizerInfo

END = 256
TURN = 257
TAG = 258
MERGED = 259  # "}}, the only piece of more than one byte
SPECIALS = {END: b"<|im_end|>", TURN: b"<|im_start|>", TAG: b"<tool_call>"}
PIECES = [bytes([byte]) for byte in range(256)] + list(SPECIALS.values()) + [b'"}}']

Logits = NDArray[np.float32]


class FakeModel:
    """Speaks bytes. ``logits(tokens so far)`` says what it thinks; ``forwards`` records the size of each pass."""

    def __init__(self, logits: Callable[[list[int]], Logits], context_length: int = 4096, name: str = "fake") -> None:
        self.name = name
        self.vocab_size = len(PIECES)
        self.context_length = context_length
        self.chat_template: str | None = None
        self.bos_token_id: int | None = None
        self.eos_token_ids = [END]
        self.tokenizer_info = TokenizerInfo.from_vocab(
            PIECES, eos_token_ids=[END], special_token_ids=list(SPECIALS), vocab_size=len(PIECES)
        )
        self.tokens: list[int] = []
        self.forwards: list[int] = []
        self._logits = logits

    @property
    def position(self) -> int:
        return len(self.tokens)

    def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]:
        data, tokens = text.encode(), []
        while data:
            found = [id for id, name in SPECIALS.items() if parse_special and data.startswith(name)]
            tokens.append(found[0] if found else data[0])
            data = data[len(PIECES[tokens[-1]]) :]
        return tokens

    def detokenize(self, ids: Sequence[int]) -> str:
        return b"".join(PIECES[id] for id in ids).decode("utf-8", "replace")

    def forward(self, ids: Sequence[int], *, all_positions: bool = False) -> Logits:
        assert len(ids) > 0
        self.forwards.append(len(ids))
        rows = []
        for id in ids:
            self.tokens.append(id)
            rows.append(self._logits(list(self.tokens)))
        return np.stack(rows) if all_positions else rows[-1]

    def rewind(self, position: int) -> None:
        assert 0 <= position <= len(self.tokens)
        del self.tokens[position:]


def prompt_of(tokens: Sequence[int]) -> int:
    """How many of the tokens are the prompt: up to the line that begins the model's last turn."""
    return max((i for i, token in enumerate(tokens) if token == TURN), default=-1) + len("assistant\n") + 1


def speaker(*answers: str) -> Callable[[list[int]], Logits]:
    """Logits of a model that says ``answers``, one for each of its turns, and ends. Its second choice is the space."""

    def logits(tokens: list[int]) -> Logits:
        turns = sum(
            1 for i, token in enumerate(tokens) if token == TURN and tokens[i + 1 : i + 10] == list(b"assistant")
        )
        said = tokens[prompt_of(tokens) :]
        answer: list[int] = []
        text = answers[min(turns, len(answers)) - 1].encode() if turns else b""
        while text:
            found = [id for id, name in SPECIALS.items() if text.startswith(name)]
            answer.append(found[0] if found else text[0])
            text = text[len(PIECES[answer[-1]]) :]
        row = np.zeros(len(PIECES), dtype=np.float32)
        row[ord(" ")] = 3
        if said == answer[: len(said)]:
            row[answer[len(said)] if len(said) < len(answer) else END] = 9
        return row

    return logits
