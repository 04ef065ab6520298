"""Slots: the sequences of a model that requests are served in, and what they remember.

A slot keeps its tokens when its request is done. A new request begins with what the slots hold of its prompt, so a
conversation that goes on, or a system turn that many requests share, is computed once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from punchcard.server.batching import BatchModel, BatchSequence


@dataclass(eq=False)
class Slot:
    """One sequence of the model. ``tokens``: what it holds; ``used``: when it was taken last, as a running number."""

    sequence: BatchSequence
    tokens: list[int] = field(default_factory=list)
    busy: bool = False
    used: int = 0

    def cut(self, length: int) -> None:
        """Forgets all but the first ``length`` tokens."""
        self.sequence.rewind(length)
        del self.tokens[length:]


class Slots:
    """``count`` sequences of a model."""

    def __init__(self, model: BatchModel, count: int) -> None:
        self._slots = [Slot(model.sequence()) for _ in range(count)]
        self._clock = itertools.count(1)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def any_idle(self) -> bool:
        return any(not slot.busy for slot in self._slots)

    def known(self, prompt: Sequence[int]) -> int:
        """How many of the prompt's first tokens some slot holds. The last one is never counted: it is always computed,
        for its logits."""
        return max(self._shared(slot, prompt) for slot in self._slots)

    def take(self, prompt: Sequence[int]) -> Slot:
        """An idle slot, of which there must be one, that holds as many of the prompt's first tokens as any slot does,
        and nothing else.

        What another slot holds is copied, into the slot that was used longest ago. An idle slot is taken over as it is
        where the prompt goes on from all that it holds; if the prompt shared but a part of it, the rest would be lost
        to the conversation that it belongs to.
        """
        source = max(self._slots, key=lambda slot: self._shared(slot, prompt))
        shared = self._shared(source, prompt)
        oldest = min((slot for slot in self._slots if not slot.busy), key=lambda slot: slot.used)
        # A last token that must be computed again is no loss.
        target = source if not source.busy and shared >= len(source.tokens) - 1 else oldest
        if target is source:
            target.cut(shared)
        else:
            target.cut(0)
            if shared:
                target.sequence.copy_from(source.sequence, shared)
                target.tokens[:] = prompt[:shared]
        target.busy = True
        target.used = next(self._clock)
        return target

    def close(self) -> None:
        for slot in self._slots:
            slot.sequence.close()

    @staticmethod
    def _shared(slot: Slot, prompt: Sequence[int]) -> int:
        return min(common_beginning(slot.tokens, prompt), len(prompt) - 1)


def common_beginning(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two sequences begin with in common."""
    low, high = 0, min(len(first), len(second))
    # Slices are compared at the speed of C, which a loop over tokens is not.
    if first[:high] == second[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low
