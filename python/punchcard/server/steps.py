"""What an answer under a grammar does between two passes of the model, in threads, with an account of what it took.

Picking a token, taking it and the text that must follow, and making the next mask take microseconds under most
grammars. Under some they take seconds, which must be nobody else's: an answer that has used up a small allowance goes
on in a lane that it shares with its like, and one whose masks take more than a request may ends with an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from punchcard import allocate_token_bitmask, apply_token_bitmask_inplace
from punchcard.server.errors import Overdue
from punchcard.server.lanes import be_nice, settle
from punchcard.server.writer import Writer

#: A row of a bitmask; `None` where everything is allowed.
Mask: TypeAlias = "NDArray[np.int32] | None"
#: What the model has to compute next, and the mask of the token after that.
Step: TypeAlias = "tuple[list[int], Mask]"

# Seconds of computing that an answer may take before it is slow: to begin with, and more with each token.
_ALLOWANCE = 0.25
_ALLOWANCE_OF_A_STEP = 0.002


@dataclass
class Account:
    """What the steps of an answer have taken: seconds of computing, and how many steps."""

    seconds: float = 0.0
    steps: int = 0

    @property
    def slow(self) -> bool:
        return self.seconds > _ALLOWANCE + _ALLOWANCE_OF_A_STEP * self.steps


class Steps:
    """Threads for the steps of answers: one for each slot, and one for all answers that are slow.

    ``mask_seconds``: seconds of computing that an answer may take for its steps altogether.
    """

    def __init__(self, slots: int, vocab_size: int, mask_seconds: float) -> None:
        self._vocab_size = vocab_size
        self._most = mask_seconds
        self._quick = ThreadPoolExecutor(slots, thread_name_prefix="punchcard-mask")
        # Those who wait here take turns, as each has one step at a time in the queue.
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="punchcard-slow-mask", initializer=be_nice)

    def begin(self, writer: Writer, account: Account) -> Future[Step]:
        """Makes the first mask of an answer."""
        return self._submit(account, lambda: ([], self._mask(writer)))

    def go_on(self, writer: Writer, account: Account, logits: NDArray[np.float32], mask: Mask) -> Future[Step]:
        """Picks a token by ``logits`` and ``mask``, takes it and what must follow, and makes the next mask, unless the
        answer has come to its end."""
        return self._submit(account, lambda: self._next(writer, logits, mask))

    def close(self) -> None:
        self._quick.shutdown(wait=False, cancel_futures=True)
        self._slow.shutdown(wait=False, cancel_futures=True)

    def _submit(self, account: Account, work: Callable[[], Step]) -> Future[Step]:
        future: Future[Step] = Future()
        (self._slow if account.slow else self._quick).submit(self._run, future, account, work)
        return future

    def _run(self, future: Future[Step], account: Account, work: Callable[[], Step]) -> None:
        if future.set_running_or_notify_cancel():
            settle(future, lambda: self._counted(account, work))

    def _counted(self, account: Account, work: Callable[[], Step]) -> Step:
        started = time.thread_time()
        try:
            step = work()
        finally:
            account.seconds += time.thread_time() - started
            account.steps += 1
        if account.seconds > self._most:
            raise Overdue(
                f"The masks of the grammar took more than the {self._most:g} seconds that an answer may use for them",
                hint="Make the schema or grammar simpler",
                code="mask_timeout",
            )
        return step

    def _next(self, writer: Writer, logits: NDArray[np.float32], mask: Mask) -> Step:
        if mask is not None:
            apply_token_bitmask_inplace(logits, mask)
        pending = writer.choose(logits)
        return pending, None if writer.finish else self._mask(writer)

    def _mask(self, writer: Writer) -> Mask:
        """The mask of the next token. An answer that can only end is ended."""
        if writer.matcher is None:
            return None
        bitmask = allocate_token_bitmask(1, self._vocab_size)
        if not writer.matcher.fill_next_token_bitmask(bitmask):
            return None
        if _only_ends(bitmask[0], writer.ends):
            writer.end("stop")
        mask: Mask = bitmask[0]
        return mask


def _only_ends(mask: NDArray[np.int32], ends: frozenset[int]) -> bool:
    """Whether a row of a bitmask allows no token but ends."""
    words = np.flatnonzero(mask)
    if len(words) > len(ends):
        return False
    return all(int(word) * 32 + bit in ends for word in words for bit in range(32) if int(mask[word]) >> bit & 1)
