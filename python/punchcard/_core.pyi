"""Stubs of the Rust extension."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

class LocalRuntime:
    """A GGUF model on the CPU; see :class:`punchcard.models.LocalModel`, which checks what is handed in here."""

    def __new__(cls, path: str | os.PathLike[str]) -> LocalRuntime: ...
    @property
    def architecture(self) -> str: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def context_length(self) -> int: ...
    @property
    def chat_template(self) -> str | None: ...
    @property
    def bos_token_id(self) -> int | None: ...
    @property
    def eos_token_ids(self) -> list[int]: ...
    @property
    def position(self) -> int: ...
    def rewind(self, position: int) -> None: ...
    def tokenize(self, text: str, parse_special: bool) -> list[int]: ...
    def detokenize(self, ids: list[int], special: bool) -> bytes: ...
    def forward(self, ids: list[int], all_positions: bool) -> NDArray[np.float32]: ...

class Vocabulary:
    """The tokens of a model; see :class:`punchcard.TokenizerInfo`."""

    def __new__(
        cls,
        tokens: list[bytes],
        *,
        eos_token_ids: list[int],
        special_token_ids: list[int] = ...,
        vocab_size: int | None = None,
    ) -> Vocabulary: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def eos_token_ids(self) -> list[int]: ...
    @property
    def special_token_ids(self) -> list[int]: ...
    def token_bytes(self, token_id: int) -> bytes: ...

class CompiledGrammar:
    """A grammar compiled for a vocabulary. Immutable, and shared by any number of matchers and threads."""

    @property
    def memory_size_bytes(self) -> int:
        """An estimate of the bytes that the grammar and its caches hold."""
    @property
    def vocab_size(self) -> int: ...

class GrammarMatcher:
    """Follows one sequence of tokens through a grammar."""

    def __new__(cls, compiled_grammar: CompiledGrammar) -> GrammarMatcher: ...
    def fill_next_token_bitmask(self, bitmask: object, index: int = 0) -> bool:
        """Write which tokens may come next into row ``index`` of ``bitmask``, int32 [batch, ceil(vocab_size / 32)].

        Bit ``id % 32`` of word ``id // 32`` stands for token ``id``. Returns False if every token is allowed, so that
        the mask need not be applied. After an end token was taken, only end tokens are set.
        """
    def accept_token(self, token_id: int) -> bool:
        """Take a token. False if it cannot come next; then nothing has changed."""
    def accept_string(self, text: str | bytes) -> bool:
        """Take text as one step. False if it cannot come next; then nothing has changed."""
    @property
    def num_readings(self) -> int:
        """In how many ways the text so far can be read. Masks cost in proportion to it."""
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
    def is_terminated(self) -> bool:
        """Whether an end token was taken."""
    def rollback(self, num_tokens: int) -> None:
        """Take back the last steps. Raises MatcherError if there were fewer."""
    def fork(self) -> GrammarMatcher:
        """An independent matcher at the same place."""
    def reset(self) -> None:
        """Back to the beginning."""
    def find_completion(self) -> bytes:
        """Bytes that complete the text: a short way, if not the shortest; empty if it may end here.

        Raises MatcherError if no example of what is missing was found.
        """
    def find_jump_forward_bytes(self) -> bytes:
        """The bytes that every text must go on with; they may end inside a character."""
    def find_jump_forward_string(self) -> str:
        """The text that every text must go on with, in whole characters."""

def compile_json_schema(vocabulary: Vocabulary, schema: str, options: dict[str, Any]) -> CompiledGrammar: ...
def compile_regex(vocabulary: Vocabulary, pattern: str, options: dict[str, Any]) -> CompiledGrammar: ...
def report_json_schema(schema: str, options: dict[str, Any]) -> dict[str, Any]: ...
