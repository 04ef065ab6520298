"""XGrammar's matchers over Punchcard's, and its functions on bitmasks, which are torch tensors int32 on the CPU."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, Literal

from ... import bitmask as _bitmask
from ..._core import BatchExecutor
from ..._core import GrammarMatcher as _GrammarMatcher
from .compiler import CompiledGrammar
from .exception import NotCoveredError

_BACKENDS = ("auto", "cpu", "cuda", "triton", "torch_compile", "torch_native")


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """``(batch_size, ceil(vocab_size / 32))``."""
    return _bitmask.token_bitmask_shape(batch_size, vocab_size)


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> Any:
    """A torch tensor int32 [batch_size, ceil(vocab_size / 32)] on the CPU in which every token is allowed."""
    import torch

    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=torch.int32)


def reset_token_bitmask(bitmask: Any) -> None:
    """Allow every token again."""
    _bitmask.reset_token_bitmask(bitmask)


def apply_token_bitmask_inplace(
    logits: Any,
    bitmask: Any,
    *,
    vocab_size: int | None = None,
    indices: Sequence[int] | None = None,
    backend: Literal["auto", "cpu", "cuda", "triton", "torch_compile", "torch_native"] = "auto",
) -> None:
    """Set the logits of blocked tokens to minus infinity.

    Args:
        logits: floats [batch, width] or [width].
        bitmask: int32 [batch, words] or [words].
        vocab_size: only ``logits[..., :vocab_size]`` is touched. Without it, logits beyond the bitmask are masked too.
        indices: the rows to mask.
        backend: checked, and otherwise without effect: the device decides.

    Raises:
        MatcherError: the shapes or dtypes do not fit.
    """
    if backend not in _BACKENDS:
        raise ValueError(f"backend={backend!r} is none of {_BACKENDS}")
    if vocab_size is not None:
        logits = logits[..., :vocab_size]
    rows: Any = indices  # engines hand over tensors too
    if hasattr(rows, "tolist"):
        rows = rows.tolist()
    _bitmask.apply_token_bitmask_inplace(logits, bitmask, indices=rows)


class GrammarMatcher:
    """Follows one sequence of tokens through a grammar.

    Args:
        compiled_grammar: the grammar.
        override_stop_tokens: ids that end the text, in place of the tokenizer's.
        terminate_without_stop_token: the matcher has terminated as soon as the text is complete.
        max_rollback_tokens: without effect: any number of tokens can be taken back.
        default_temperature: not covered.
    """

    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: int | list[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: float | None = None,
    ) -> None:
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise ValueError("Compile the grammar first")
        if default_temperature is not None:
            raise NotCoveredError("default_temperature is not covered", hint="Choose it in the sampler")
        stops = [override_stop_tokens] if isinstance(override_stop_tokens, int) else override_stop_tokens
        self._stops = compiled_grammar.tokenizer_info.stop_token_ids if stops is None else sorted(set(stops))
        self._terminates_early = terminate_without_stop_token
        self._matcher = _GrammarMatcher(compiled_grammar._ended_by(self._stops))

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Take a token. False if it cannot come next, or the matcher has terminated; then nothing has changed."""
        return not self.is_terminated() and self._matcher.accept_token(token_id)

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Take text as one step. False if it cannot come next; then nothing has changed."""
        return self._matcher.accept_string(input_str)

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0, *, debug_print: bool = False) -> bool:
        """Write which tokens may come next into row ``index``. False if every token may."""
        return self._matcher.fill_next_token_bitmask(bitmask, index)

    def traverse_draft_tree(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        token_bitmask: Any,
        time_threshold: float = -1.0,
        temperatures: Any | None = None,
    ) -> bool:
        """Fill a row of the bitmask for each node of a tree of drafted tokens.

        Node 0 stands for the tokens that the matcher has taken already. The row of a node says what may follow its
        token; rows of nodes whose token is refused, and of those below them, stay as they are.

        Args:
            retrieve_next_token: int64 [nodes], the first child of each node, or -1.
            retrieve_next_sibling: int64 [nodes], the next child of the same parent, or -1.
            draft_tokens: int64 [nodes], the token of each node.
            token_bitmask: int32 [nodes, words].
            time_threshold: seconds after which to give up, or -1.

        Returns:
            Whether the time sufficed.
        """
        if temperatures is not None:
            raise NotCoveredError("temperatures is not covered", hint="Choose the temperature in the sampler")
        children, siblings = retrieve_next_token.tolist(), retrieve_next_sibling.tolist()
        tokens = draft_tokens.tolist()
        deadline = time.monotonic() + time_threshold if time_threshold > 0 else None
        self._matcher.fill_next_token_bitmask(token_bitmask, 0)
        # The nodes to visit; None for a step back to the parent.
        stack: list[int | None] = [children[0]] if children[0] != -1 else []
        depth = 0
        try:
            while stack:
                if deadline is not None and time.monotonic() > deadline:
                    return False
                node = stack.pop()
                if node is None:
                    self._matcher.rollback(1)
                    depth -= 1
                    continue
                if siblings[node] != -1:
                    stack.append(siblings[node])
                if self._matcher.is_terminated() or not self._matcher.accept_token(tokens[node]):
                    continue
                depth += 1
                stack.append(None)
                if not self._matcher.is_terminated():
                    self._matcher.fill_next_token_bitmask(token_bitmask, node)
                    if children[node] != -1:
                        stack.append(children[node])
            return True
        finally:
            if depth:
                self._matcher.rollback(depth)

    def find_jump_forward_string(self) -> str:
        """The text that every text must go on with, in whole characters."""
        return self._matcher.find_jump_forward_string()

    def find_jump_forward_tokens(self) -> list[int]:
        """The same as tokens that can be appended."""
        return self._matcher.find_jump_forward_tokens()

    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last tokens. Raises `MatcherError` if there were fewer."""
        self._matcher.rollback(num_tokens)

    def get_captures(self, *, deduplicate: bool = True) -> Any:
        """Not covered."""
        raise NotCoveredError("get_captures is not covered", hint="Use the events of punchcard.GrammarMatcher")

    def is_terminated(self) -> bool:
        """Whether a stop token was taken; with ``terminate_without_stop_token``, whether the text is complete."""
        return self._matcher.is_terminated() or (self._terminates_early and self.is_completed())

    def is_completed(self) -> bool:
        """Whether the text so far is one of the grammar's."""
        return self._matcher.is_terminated() or self._matcher.is_accepting()

    def reset(self) -> None:
        """Back to the beginning."""
        self._matcher.reset()

    def fork(self) -> GrammarMatcher:
        """An independent matcher at the same place."""
        made = GrammarMatcher.__new__(GrammarMatcher)
        made._stops, made._terminates_early = self._stops, self._terminates_early
        made._matcher = self._matcher.fork()
        return made

    @property
    def max_rollback_tokens(self) -> int:
        """-1: any number."""
        return -1

    @property
    def temperature(self) -> float | None:
        """`None`: grammars set no temperature."""
        return None

    @property
    def stop_token_ids(self) -> list[int]:
        """Ids that end the text."""
        return list(self._stops)

    def _debug_print_internal_state(self) -> str:
        return repr(self._matcher)


class BatchGrammarMatcher:
    """Fills the masks of many matchers in parallel.

    Args:
        max_threads: threads to use; ``"auto"`` for half of the machine's processors.
    """

    def __init__(self, max_threads: int | Literal["auto"] = "auto") -> None:
        threads = max(1, (os.cpu_count() or 2) // 2) if max_threads == "auto" else max_threads
        self._executor = BatchExecutor(threads)

    def batch_fill_next_token_bitmask(
        self,
        matchers: Sequence[GrammarMatcher],
        bitmask: Any,
        indices: Sequence[int] | None = None,
        debug_print: bool = False,
    ) -> None:
        """Write what may follow into row ``indices[i]``, or ``i``, for each matcher."""
        rows = list(range(len(matchers))) if indices is None else list(indices)
        self._executor.fill([matcher._matcher for matcher in matchers], bitmask, rows)

    @staticmethod
    def batch_fill_temperature(
        matchers: Sequence[GrammarMatcher], temperatures: Any, indices: Sequence[int] | None = None
    ) -> None:
        """Not covered."""
        raise NotCoveredError("batch_fill_temperature is not covered", hint="Choose the temperature in the sampler")

    @staticmethod
    def batch_accept_token(
        matchers: Sequence[GrammarMatcher], tokens: Sequence[int], debug_print: bool = False
    ) -> list[bool]:
        """Take one token in each matcher."""
        return [matcher.accept_token(token) for matcher, token in zip(matchers, tokens, strict=True)]

    @staticmethod
    def batch_accept_string(
        matchers: Sequence[GrammarMatcher], strings: Sequence[str | bytes], debug_print: bool = False
    ) -> list[bool]:
        """Take one text in each matcher."""
        return [matcher.accept_string(string) for matcher, string in zip(matchers, strings, strict=True)]

    @staticmethod
    def batch_rollback(matchers: Sequence[GrammarMatcher], num_tokens: Sequence[int] | int = 1) -> None:
        """Take back tokens in each matcher."""
        counts = [num_tokens] * len(matchers) if isinstance(num_tokens, int) else num_tokens
        for matcher, count in zip(matchers, counts, strict=True):
            matcher.rollback(count)
