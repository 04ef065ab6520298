"""What runtimes have in common: the interface of a model that computes logits, and how a grammar follows a text.

A runtime is a file of this folder. It offers one of two things, or both:

- a `Model`, which computes logits step by step, so that `punchcard.Agent` and `punchcard.extract` can run on it;
- a processor of logits, for a library that has a decoding loop of its own. It is told the tokens of a row and gives
  back the logits without those that the grammar forbids.

`CachedModel` is what the models share, `Follower` and `Row` what the processors share.
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from punchcard.errors import ContextLengthError, MatcherError, ModelError, PunchcardError, extra_hint

if TYPE_CHECKING:
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


class Row(Follower):
    """A `Follower` that is handed prompts, too: what the first call of a generation brings is the prompt, what comes
    behind it the answer.

    A text that goes on from the last one by one token belongs to the same generation, any other begins a new one.

    Args:
        compiled_grammar: the grammar of the answer.
        drafts: the text may also go back, and on in another way, behind the same prompt.
    """

    def __init__(self, compiled_grammar: CompiledGrammar, *, drafts: bool = False) -> None:
        super().__init__(compiled_grammar)
        self._drafts = drafts
        self.reset()

    def reset(self) -> None:
        """The next call begins a new generation."""
        self._prompt: list[int] = []
        self._text: list[int] | None = None  # the last call's tokens
        self._left: set[int] = set()  # hashes of texts that others came after

    def follow(self, tokens: Sequence[int]) -> bool:
        """Goes behind ``tokens``, prompt and answer. False if the grammar refuses one of them.

        Raises `MatcherError` where it cannot be told whether a new generation begins.
        """
        text = list(tokens)
        if not self._goes_on(text):
            if hash(tuple(text[:-1])) in self._left:
                raise MatcherError(
                    "Several texts are written in turn with one processor",
                    hint="Give each of them its own, or call reset() to go on with a text",
                )
            if self._text is not None:
                self._left.add(hash(tuple(self._text)))
            self._prompt = text
        self._text = text
        return super().follow(text[len(self._prompt) :])

    def _goes_on(self, text: list[int]) -> bool:
        last, prompt = self._text, self._prompt
        if last is None:
            return False
        if len(text) == len(last) + 1 and text[:-1] == last:
            return True
        if not len(prompt) < len(text) <= len(last) + 1 or text[: len(prompt)] != prompt:
            return False
        if not self._drafts:
            raise ambiguous_text()
        return True


def ambiguous_text() -> MatcherError:
    """For a text that has the last prompt, and goes on from it in another way than the last text."""
    return MatcherError(
        "It cannot be told whether the text goes on from the last prompt or is a prompt itself",
        hint="Call reset() before the prompt of a new generation that begins with the last one; pass drafts=True where "
        "an assistant or draft model is used",
    )


class CachedModel(ABC):
    """The text that a model has seen, and how much of it is in the model's cache.

    Where a cache cannot go back (sliding windows that have been passed, states of a recurrence), `rewind` keeps the
    tokens, and the next forward pass computes them again. A class that has this as its base says how its library adds
    tokens to the cache and drops them.
    """

    name: str
    vocab_size: int
    context_length: int
    chat_template: str | None
    bos_token_id: int | None
    eos_token_ids: list[int]
    tokenizer_info: TokenizerInfo

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._cached = 0  # tokens in the cache, at most all of them

    @abstractmethod
    def _compute(self, ids: list[int], all_positions: bool) -> NDArray[np.float32]:
        """Adds ``ids`` to the cache. Returns the logits, float32 [positions, vocab_size], after the last at least,
        after each if ``all_positions``."""

    @abstractmethod
    def _drop(self, count: int) -> bool:
        """Takes the last ``count`` tokens out of the cache. False if that cannot be done; the cache is then spoilt."""

    @abstractmethod
    def _clear(self) -> None:
        """Empties the cache."""

    @abstractmethod
    def _encode(self, text: str, parse_special: bool) -> list[int]:
        """The ids of ``text``, as the tokenizer gives them."""

    @property
    def position(self) -> int:
        """Tokens of the text."""
        return len(self._tokens)

    def rewind(self, position: int) -> None:
        """Forget the tokens from ``position`` on. Raises `ModelError` if there are not so many."""
        if not 0 <= position <= self.position:
            raise ModelError(f"Cannot rewind to position {position}: the text has {self.position} tokens")
        del self._tokens[position:]
        if position < self._cached and (position == 0 or not self._drop(self._cached - position)):
            self._clear()
            self._cached = 0
        self._cached = min(self._cached, position)

    def forward(self, ids: Sequence[int], *, all_positions: bool = False) -> NDArray[np.float32]:
        """Append ``ids`` to the text in one pass; see `Model`.

        Raises `ModelError` for ids that there are not, `ContextLengthError` where they do not fit; the text is then as
        it was.
        """
        checked = self._checked(ids)
        try:
            rows = self._compute(self._tokens[self._cached :] + checked, all_positions)
        except BaseException:
            self._clear()
            self._cached = 0
            raise
        self._tokens += checked
        self._cached = len(self._tokens)
        return rows[-len(checked) :] if all_positions else rows[-1]

    def _checked(self, ids: Sequence[int]) -> list[int]:
        checked = [int(token) for token in ids]
        if not checked:
            raise ModelError("A forward pass needs at least one token")
        wrong = next((token for token in checked if not 0 <= token < self.vocab_size), None)
        if wrong is not None:
            raise ModelError(f"Token {wrong} is out of range: the vocabulary of {self.name} has {self.vocab_size}")
        needed = self.position + len(checked)
        if needed > self.context_length:
            raise ContextLengthError(
                f"{needed} tokens do not fit the context of {self.name}, which has room for {self.context_length}",
                hint="Shorten the text, or rewind the model first",
                tokens=needed,
                context_length=self.context_length,
            )
        return checked

    def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]:
        """The ids of ``text``; special tokens are recognised only where ``parse_special``."""
        if not text:
            return []
        text = text.encode("utf-8", "replace").decode()
        ids = self._encode(text, parse_special)
        if self.tokenizer_info.decode(ids[:1])[:1] == b" " != text[:1].encode():
            # Tokenizers of SentencePiece put a space before a text, but not behind a line break.
            line_break = self._encode("\n", parse_special)
            both = self._encode("\n" + text, parse_special)
            if both[: len(line_break)] == line_break:
                return both[len(line_break) :]
        return ids

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of ``ids`` without special tokens; bytes that are no UTF-8 become ``�``."""
        return self.tokenizer_info.decode(ids).decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, position={self.position})"


def _install_hint(install: str) -> str:
    found = re.fullmatch(r"'punchcard\[([\w-]+)\]'", install)
    return extra_hint(found[1]) if found else f"pip install {install}"


def require(module: str, *, install: str) -> Any:
    """An optional library. Raises `PunchcardError`, which says ``pip install`` what, where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise PunchcardError(
            f"{module} cannot be imported: {error}", hint=_install_hint(install), module=module
        ) from error
