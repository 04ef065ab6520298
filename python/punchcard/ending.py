"""How an answer under a grammar ends, and what is the truth about it.

A text that a grammar accepts need not be at its end: 1000 is an integer, and so is 10000. An answer is *complete* if
the model chose the end, or if nothing else could follow. Where its tokens ran out before, it was cut off, whatever the
grammar says of the text so far.

`Budgeted` keeps an answer within a number of tokens, and says whether that changed it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from punchcard._core import CancelToken, CompiledGrammar, GrammarMatcher
from punchcard.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from punchcard.errors import BudgetError, MatcherError
from punchcard.sampling import Sampler

# No vocabulary has more ends.
_MOST_ENDS = 64


def is_complete(matcher: GrammarMatcher, vocab_size: int) -> bool:
    """Whether a matcher's text is at its end: an end token was taken, or nothing else may follow.

    For decoding loops that stop because their tokens ran out. `GrammarMatcher.is_accepting` says less: that the text
    may end here, though it may also go on, so that an answer that was cut off can pass for a complete one.

    ``vocab_size``: tokens of the vocabulary, as `CompiledGrammar.vocab_size` has it.
    """
    if matcher.is_terminated():
        return True
    if not matcher.is_accepting():
        return False
    bitmask = allocate_token_bitmask(1, vocab_size)
    if not matcher.fill_next_token_bitmask(bitmask):
        return False
    bits = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")[:vocab_size]
    allowed = np.flatnonzero(bits).tolist()
    return len(allowed) <= _MOST_ENDS and all(_ends(matcher, token) for token in allowed)


def _ends(matcher: GrammarMatcher, token: int) -> bool:
    fork = matcher.fork()
    return fork.accept_token(token) and fork.is_terminated()


class Budgeted:
    """A matcher that keeps an answer within a number of tokens, and knows what that changed.

    Its masks are those of the grammar alone, so a sampler says first what the model would write if it had room; `pick`
    has it choose again where the budget leaves no room for that. While there is room, the answer is the same as without
    a budget.

    Attributes:
        intervened: the model chose a token that the budget had no room for.

    Args:
        tokens: most tokens of the answer, the end not counted; `None` for no budget.
        cancel: ends the mask that is being made.

    Raises `BudgetError` if no complete answer is so short. Where none is known at all, none can be promised, and there
    is no budget.
    """

    def __init__(self, grammar: CompiledGrammar, tokens: int | None, *, cancel: CancelToken | None = None) -> None:
        self._grammar = GrammarMatcher(grammar, max_rollback_tokens=0, cancel=cancel)
        self._within = None if tokens is None else _within(grammar, tokens, cancel)
        self._words = 0  # of a row of the bitmask
        self.intervened = False

    @property
    def budget_left(self) -> int | None:
        """Tokens that may still be taken under the budget; `None` without one."""
        return None if self._within is None else self._within.budget_left

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
        """The mask of the grammar; see `GrammarMatcher.fill_next_token_bitmask`."""
        self._words = bitmask.shape[1]
        return self._grammar.fill_next_token_bitmask(bitmask, index)

    def pick(self, sampler: Sampler, logits: NDArray[np.float32]) -> int:
        """The next token. ``logits``: float32 ``[vocab_size]``, under the mask that was filled last.

        With nothing left of the budget, it is what the model would go on with.
        """
        token = sampler.sample(logits)
        # Nearly always there is room, so one token is asked about; the mask of the budget costs more.
        if self._within is None or not self.budget_left or self._within.validate_tokens([token]):
            return token
        self.intervened = True
        room = allocate_token_bitmask(1, 32 * self._words)
        self._within.fill_next_token_bitmask(room)
        apply_token_bitmask_inplace(logits, room[0])
        return sampler.sample(logits)

    def accept_token(self, token_id: int) -> bool:
        """Take a token. False if it cannot come next, or the budget has no room for it; then nothing has changed."""
        if self._within is None:
            return self._grammar.accept_token(token_id)
        if not self._within.accept_token(token_id):
            return False
        if not self._grammar.accept_token(token_id):
            raise MatcherError(f"The grammar refuses token {token_id}, which is allowed under a budget")
        return True

    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        return self._grammar.is_accepting()

    def find_jump_forward_string(self) -> str:
        """The text that every text must go on with, whatever the budget."""
        return self._grammar.find_jump_forward_string()


def _within(grammar: CompiledGrammar, tokens: int, cancel: CancelToken | None) -> GrammarMatcher | None:
    try:
        return GrammarMatcher(grammar, max_rollback_tokens=0, token_budget=tokens, cancel=cancel)
    except BudgetError as error:
        minimum = error.fields.get("minimum")
        if minimum is None:
            return None
        raise BudgetError(
            f"The shortest answer that is known takes {minimum} tokens; there is room for {tokens}",
            hint="Raise max_new_tokens (max_tokens), or shorten the prompt where it fills the context",
            minimum=minimum,
        ) from error
