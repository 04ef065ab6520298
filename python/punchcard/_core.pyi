"""Stubs of the Rust extension."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import Event
from .tokenizers.info import TokenizerInfo

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
    def cache_bytes_per_token(self) -> int: ...
    def tokenize(self, text: str, parse_special: bool) -> list[int]: ...
    def detokenize(self, ids: list[int], special: bool) -> bytes: ...
    def sequence(self) -> LocalSequence: ...
    def forward(self, sequence: LocalSequence, ids: list[int], all_positions: bool) -> NDArray[np.float32]: ...
    def forward_batch(self, batch: list[tuple[LocalSequence, list[int]]]) -> NDArray[np.float32]: ...

class LocalSequence:
    """A text that a :class:`LocalRuntime` reads and writes; see :class:`punchcard.models.LocalSequence`."""

    @property
    def position(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def rewind(self, position: int) -> None: ...
    def copy_from(self, other: LocalSequence, length: int) -> None: ...
    def close(self) -> None: ...

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
    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token, also of a special one. Raises TokenizerError if there is no such id."""

class CompiledGrammar:
    """A grammar compiled for a vocabulary. Immutable, and shared by any number of matchers and threads."""

    @property
    def memory_size_bytes(self) -> int:
        """An estimate of the bytes that the grammar and its caches hold. It grows as texts visit new states.

        Never waits for a thread that computes a mask.
        """
    @property
    def vocab_size(self) -> int:
        """Tokens of the vocabulary, which is the width of the logits."""
    def serialize(self) -> bytes:
        """The grammar as bytes, for `deserialize`. They do not depend on what it was used for."""
    @staticmethod
    def deserialize(data: bytes, tokenizer_info: TokenizerInfo) -> CompiledGrammar:
        """A compiled grammar from what `serialize` made, for the same vocabulary.

        Raises:
            GrammarError: the data is damaged, of another version, or belongs to another vocabulary.
        """
    def expr_json(self) -> str:
        """The grammar expression, in its JSON form."""

class CancelToken:
    """Ends compilations, and what matchers do, on other threads: each raises `punchcard.CancelledError` soon after.

    Example:
        >>> token = CancelToken()
        >>> threading.Timer(2.0, token.cancel).start()
        >>> compiler.compile(grammar, cancel=token)
    """

    def __new__(cls) -> CancelToken: ...
    def cancel(self) -> None:
        """End everything that has the token, now or later. It cannot be taken back."""
    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""

class GrammarMatcher:
    """Follows one sequence of tokens through a grammar.

    Each token or text that is taken is a step, and any number of steps can be rolled back. Masks, and what is accepted,
    always agree, and there is always a way to a complete text. A matcher belongs to one sequence; calls on it from
    several threads are done one after the other. It releases the GIL for work that may be long.

    Args:
        compiled_grammar: the grammar.
        max_rollback_tokens: most steps that one call of `rollback` may take back; by default (-1) all of them.
        token_budget: most tokens of an answer, the end token not counted; whatever is sampled, it is complete by then.
            Only tokens are allowed behind which so much of the budget is left that the text can be completed.
        events: note where named parts of the grammar begin and end; see `events`.
        cancel: ends what the matcher is doing when another thread cancels it. The text so far stays as it is.

    Raises:
        BudgetError: no complete answer fits the budget; its field ``minimum`` is the least that is known to do.

    Example:
        >>> matcher = GrammarMatcher(compiler.compile_regex("[0-9]+"), token_budget=8)
        >>> matcher.accept_string("42")
        True
        >>> matcher.is_accepting()
        True
    """

    def __new__(
        cls,
        compiled_grammar: CompiledGrammar,
        *,
        max_rollback_tokens: int = -1,
        token_budget: int | None = None,
        events: bool = False,
        cancel: CancelToken | None = None,
    ) -> GrammarMatcher: ...
    def fill_next_token_bitmask(self, bitmask: object, index: int = 0) -> bool:
        """Write which tokens may come next into row ``index`` of ``bitmask``.

        Bit ``id % 32`` of word ``id // 32`` stands for token ``id``. After an end token, only end tokens are set.

        Args:
            bitmask: int32 [batch, ceil(vocab_size / 32)], a numpy array or a torch tensor on the CPU, contiguous; see
                `punchcard.allocate_token_bitmask`. For many matchers at once there is `punchcard.BatchMatcher`.
            index: the row; the others stay as they are.

        Returns:
            False if every token is allowed, so that the mask need not be applied.
        """
    def fill_draft_bitmask(
        self, bitmask: object, token_ids: Sequence[int], parents: Sequence[int] | None = None, index: int = 0
    ) -> list[bool]:
        """Write masks for drafted tokens, as speculative decoding verifies them. The matcher itself does not move.

        Row ``index`` gets the mask of the next token, and row ``index + 1 + i`` that behind drafted token ``i``; it is
        all zeros where the token, or one before it, cannot come.

        Args:
            bitmask: int32 [batch, ceil(vocab_size / 32)] with at least ``index + 1 + len(token_ids)`` rows.
            token_ids: the drafted tokens.
            parents: for each token the index of the token before it, an earlier one of the list, or -1 for where the
                matcher is; by default the tokens are a chain.
            index: the first row.

        Returns:
            for each drafted token whether it, and those before it, can come.

        Raises:
            MatcherError: a parent is no earlier token, or the bitmask has too few rows.
        """
    def accept_token(self, token_id: int) -> bool:
        """Take a token. False if it cannot come next, or is out of range; then nothing has changed."""
    def accept_string(self, text: str | bytes) -> bool:
        """Take text as one step. False if it cannot come next; then nothing has changed.

        Under a budget it counts as the fewest tokens that spell it.
        """
    def validate_tokens(self, token_ids: Sequence[int]) -> int:
        """How many of the tokens, from the first on, could be taken one after the other. Nothing changes."""
    @property
    def num_readings(self) -> int:
        """In how many ways the text so far can be read. Masks cost in proportion to it."""
    @property
    def num_steps(self) -> int:
        """How many steps can be rolled back."""
    @property
    def budget_left(self) -> int | None:
        """Tokens that may still be taken under the token budget; None without one."""
    def events(self, first: int = 0) -> list[Event]:
        """The events of the text so far that are certain, from the ``first`` on.

        An event that was told stays. Where the text can still be read in several ways, only what all of them have in
        common is told.

        Raises:
            MatcherError: the matcher was made without ``events=True``.
        """
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
    def is_terminated(self) -> bool:
        """Whether an end token was taken."""
    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last steps: tokens or texts, the end token, too.

        Raises:
            MatcherError: there were fewer, or more than ``max_rollback_tokens`` are asked for.
        """
    def fork(self) -> GrammarMatcher:
        """An independent matcher at the same place, with the same budget left."""
    def reset(self) -> None:
        """Back to the beginning."""
    def find_completion(self) -> bytes:
        """Bytes that complete the text: a short way, if not the shortest; empty if it may end here.

        Under a budget, ``accept_string`` takes them.

        Raises:
            MatcherError: tokens have to come that are no text, or no example of what is missing was found.
        """
    def find_completion_tokens(self) -> list[int]:
        """Tokens that complete the text: a short way, if not the shortest; none if it may end here.

        They are within the budget, if there is one. The end token is not among them.

        Raises:
            MatcherError: no example of what is missing was found.
        """
    def find_jump_forward_bytes(self) -> bytes:
        """The bytes that every text must go on with, 64 KiB at most; they may end inside a character."""
    def find_jump_forward_string(self) -> str:
        """The text that every text must go on with, in whole characters."""
    def find_jump_forward_tokens(self) -> list[int]:
        """Tokens of the text that every text must go on with.

        Only those of which none could be part of a longer token that also fits what may follow, so that no token is
        taken that the model would have to write in another way.
        """

class BatchExecutor:
    """Fills rows for many matchers, on threads of its own; see :class:`punchcard.BatchMatcher`."""

    def __new__(cls, threads: int) -> BatchExecutor: ...
    @property
    def threads(self) -> int: ...
    def fill(self, matchers: list[GrammarMatcher | None], bitmask: object, rows: list[int]) -> list[bool]:
        """Row ``rows[i]`` of ``bitmask`` gets the mask of ``matchers[i]``; for None it gets all ones."""

def compile_grammar(
    vocabulary: Vocabulary, expr: str, limits: str, cancel: CancelToken | None = None
) -> CompiledGrammar:
    """Compile a grammar expression, given in its JSON form; ``limits`` is `punchcard.Limits` as JSON text."""

def compile_json_schema(
    vocabulary: Vocabulary, schema: str, options: str, limits: str, cancel: CancelToken | None = None
) -> CompiledGrammar:
    """`compile_grammar` for the expression of a JSON Schema, of which ``schema`` and ``options`` are JSON text."""

def json_text(data: object, most: int) -> str | None:
    """What `json.dumps` writes, without ASCII escapes; None for data that are not plain: then ask `json`.

    Raises LimitError if it has more than ``most`` bytes.
    """

def json_size(data: object) -> int | None:
    """About how many bytes `json.dumps` would write; None for data that are not JSON, or nest too deeply."""

def check_json_schema(schema: str, options: str) -> None:
    """Raise an error if a JSON Schema or its options, given as JSON text, are malformed."""

def check_grammar(expr: str) -> None:
    """Raise an error if something in a grammar expression, given in its JSON form, is malformed."""

def report_json_schema(schema: str, options: str) -> dict[str, Any]:
    """What a JSON Schema becomes; see `punchcard.report.Report`. ``options`` is JSON text."""

def parse_ebnf(text: str, start: str | None = None) -> str:
    """A grammar in EBNF as an expression in its JSON form."""

def parse_lark(text: str, start: str | None = None, lexer: str = "dynamic") -> str:
    """A grammar of Lark as an expression in its JSON form. ``lexer``: ``"dynamic"`` or ``"dynamic_complete"``."""

def _fail(target: GrammarMatcher | CompiledGrammar | None = None) -> None:
    """Fail inside, while the target is in use: for tests of `punchcard.InternalError`."""

def print_grammar(expr: str) -> str:
    """An expression in its JSON form as EBNF."""
