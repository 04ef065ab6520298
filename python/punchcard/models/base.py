"""What runtimes have in common: the interface of a model that computes logits, and how a grammar follows a text.

A runtime is a file of this folder. It offers one of two things, or both:

- a `Model`, which computes logits step by step, so that `punchcard.Agent` and `punchcard.extract` can run on it;
- a processor of logits, for a library that has a decoding loop of its own. It is told the tokens of a row and gives
  back the logits without those that the grammar forbids. `Follower` is the part that all of these share.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from punchcard.errors import ContextLengthError, ModelError, PunchcardError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from punchcard._core import CompiledGrammar
    from punchcard.tokenizers.info import TokenizerInfo


class Model(Protocol):
    """What a runtime offers; `punchcard.models.LocalModel` is one.

    ``forward`` appends tokens to the cache and returns float32 logits, ``[vocab_size]`` after the last of them or
    ``[len(ids), vocab_size]``; ``rewind`` goes back to an earlier position.
    """

    name: str
    vocab_size: int
    context_length: int
    chat_template: str | None
    bos_token_id: int | None
    eos_token_ids: list[int]

    @property
    def tokenizer_info(self) -> TokenizerInfo: ...
    @property
    def position(self) -> int: ...
    def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]: ...
    def forward(self, ids: Sequence[int], *, all_positions: bool = False) -> NDArray[np.float32]: ...
    def rewind(self, position: int) -> None: ...


class Follower:
    """A matcher that is taken to wherever a row of tokens stands.

    A decoding loop may reorder its rows, take tokens back, or try several continuations of the same text. So the whole
    answer is handed over each time; what it shares with the last one stays, the rest is rolled back and taken anew,
    which costs a microsecond or two a token.

    Attributes:
        matcher: stands behind ``tokens``.
        tokens: what the matcher has taken, the end token included.
    """

    def __init__(self, compiled_grammar: CompiledGrammar) -> None:
        from punchcard._core import GrammarMatcher

        self.matcher = GrammarMatcher(compiled_grammar)
        self.tokens: list[int] = []

    def follow(self, tokens: Sequence[int]) -> bool:
        """Goes behind ``tokens``, an answer from its first token on. What comes after an end token is padding.

        False if the grammar refuses one of them; the matcher then stands before it.
        """
        shared = len(self.tokens)
        if list(tokens[:shared]) != self.tokens:
            pairs = enumerate(zip(tokens, self.tokens, strict=False))
            shared = next((at for at, (new, old) in pairs if new != old), min(len(tokens), shared))
            self.matcher.rollback(len(self.tokens) - shared)
            del self.tokens[shared:]
        for token in tokens[shared:]:
            if self.matcher.is_terminated():
                break
            if not self.matcher.accept_token(token):
                return False
            self.tokens.append(token)
        return True


def require(module: str, *, install: str) -> Any:
    """An optional library. Raises `PunchcardError`, which says ``pip install`` what, where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise PunchcardError(
            f"{module} cannot be imported: {error}", hint=f"pip install {install}", module=module
        ) from error


def check_forward(model: Model, ids: Sequence[int]) -> list[int]:
    """The ids of a forward pass as plain numbers.

    Raises `ModelError` if there are none or one is out of range, `ContextLengthError` if the context has no room.
    """
    checked = [int(token) for token in ids]
    if not checked:
        raise ModelError("A forward pass needs at least one token")
    wrong = next((token for token in checked if not 0 <= token < model.vocab_size), None)
    if wrong is not None:
        raise ModelError(f"Token {wrong} is out of range: the vocabulary of {model.name} has {model.vocab_size}")
    needed = model.position + len(checked)
    if needed > model.context_length:
        raise ContextLengthError(
            f"{needed} tokens do not fit the context of {model.name}, which has room for {model.context_length}",
            hint="Shorten the text, or rewind the model first",
            tokens=needed,
            context_length=model.context_length,
        )
    return checked


def check_rewind(model: Model, position: int) -> None:
    """Raises `ModelError` if ``position`` is not one that the model has been at."""
    if not 0 <= position <= model.position:
        raise ModelError(f"Cannot rewind to position {position}: the cache holds {model.position} tokens")
