"""Masks for a batch of sequences in one call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ._core import BatchExecutor, GrammarMatcher


class BatchMatcher:
    """Fills the rows of a bitmask for many matchers at once, on threads of its own.

    The matchers may belong to different grammars. Those of one grammar share its caches and are done one after the
    other, different grammars side by side. May itself be used from many threads.

    Args:
        threads: how many threads; by default one for each processor.

    Example:
        >>> bitmask = allocate_token_bitmask(3, info.vocab_size)
        >>> batch = BatchMatcher()
        >>> batch.fill_next_token_bitmask([first, None, third], bitmask)
        [True, False, True]
        >>> apply_token_bitmask_inplace(logits, bitmask)
    """

    def __init__(self, threads: int | None = None) -> None:
        self._executor = BatchExecutor(os.cpu_count() or 1 if threads is None else threads)

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return self._executor.threads

    def fill_next_token_bitmask(
        self, matchers: Sequence[GrammarMatcher | None], bitmask: Any, rows: Sequence[int] | None = None
    ) -> list[bool]:
        """Write which tokens may come next, one row for each matcher.

        Args:
            matchers: one for each sequence; None where anything is allowed, and then the row is all ones. A matcher
                that has taken an end token allows end tokens only.
            bitmask: int32 [batch, ceil(vocab_size / 32)], a numpy array or a torch tensor on the CPU, contiguous; see
                `allocate_token_bitmask`.
            rows: the row of each matcher, in any order and none twice; by default the first row for the first matcher,
                and so on. Other rows stay as they are.

        Returns:
            for each matcher whether it forbids any token, so that its row has to be applied to the logits.

        Raises:
            MatcherError: the bitmask, or a row, does not fit.
            LimitError: a limit against hostile grammars was passed.
        """
        return self._executor.fill(list(matchers), bitmask, list(range(len(matchers)) if rows is None else rows))
