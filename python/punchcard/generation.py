"""The decoding loop: a model, its cache, and what may come next.

A `Decoder` writes one text after one prompt, in stretches: free (the model alone) or constrained (a matcher's masks).
Each goes on where the last one ended.

What a grammar leaves no choice about is not generated token by token: the matcher says which text must follow, and it
is appended in one forward pass, together with the token before it. Its last token is left to the model under the mask,
because it may be the beginning of what the model would spell as one token: a quote alone, where a quote and a comma are
one token, is a spelling that the model has hardly seen, and it goes on from there less well.
"""

from __future__ import annotations

import contextlib
import math
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from punchcard.ending import Budgeted
from punchcard.errors import ContextLengthError, MatcherError
from punchcard.models.base import Model as Model
from punchcard.sampling import Sampler, log_probability


class Matcher(Protocol):
    """The part of `punchcard.GrammarMatcher` that decoding needs."""

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool: ...
    def accept_token(self, token_id: int) -> bool: ...
    def is_accepting(self) -> bool: ...
    def find_jump_forward_string(self) -> str: ...


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a model was writing. ``text`` is what it had written, ``result`` what the caller had gathered.

    It is a `KeyboardInterrupt`, so that it ends loops and programs as one does.
    """

    def __init__(self, text: str, result: Any = None) -> None:
        super().__init__(f"interrupted after {text!r}" if text else "interrupted")
        self.text = text
        self.result = result


@dataclass
class Statistics:
    """What an answer took. Seconds are wall time; ``forced_tokens``, part of ``tokens``, needed no choice."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    prompt_seconds: float = 0.0
    tokens: int = 0
    forced_tokens: int = 0
    seconds: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds if self.seconds else 0.0

    def add(self, other: Statistics) -> None:
        """Counts what ``other`` took too."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Cache:
    """Which tokens a model has in its cache. One for each model, shared by all who use the model, so that a prompt that
    begins like the last one is computed only from where it differs."""

    _of_models: ClassVar[weakref.WeakKeyDictionary[Any, Cache]] = weakref.WeakKeyDictionary()

    def __init__(self, model: Model) -> None:
        self._model = weakref.proxy(model)
        self.tokens: list[int] = []

    @classmethod
    def of(cls, model: Model) -> Cache:
        try:
            return cls._of_models[model]
        except KeyError:
            cls._of_models[model] = cache = cls(model)
            return cache

    def load(self, tokens: Sequence[int]) -> tuple[NDArray[np.float32], int]:
        """Makes the cache hold ``tokens`` (at least one). Returns the logits after the last, float32 ``[vocab_size]``,
        and how many tokens were there already."""
        shared = 0
        # The last token is always computed, for its logits.
        limit = min(len(self.tokens), len(tokens) - 1, self._model.position)
        while shared < limit and self.tokens[shared] == tokens[shared]:
            shared += 1
        self.rewind(shared)
        return self.append(tokens[shared:]), shared

    def append(self, tokens: Sequence[int], *, all_positions: bool = False) -> NDArray[np.float32]:
        logits: NDArray[np.float32] = self._model.forward(tokens, all_positions=all_positions)
        self.tokens.extend(tokens)
        return logits

    def rewind(self, position: int) -> None:
        self._model.rewind(position)
        del self.tokens[position:]


@dataclass
class Stretch:
    """Part of an answer.

    Attributes:
        tokens, text: what was written.
        ended: ``"stop"``: it is complete, as the model chose the end or nothing else could follow; ``"eos"``: the model
            ended an answer without a grammar; ``"budget"``: it is complete, because the budget of tokens left room for
            nothing else; ``"length"``: the tokens ran out before.
    """

    tokens: list[int] = field(default_factory=list)
    text: str = ""
    ended: Literal["stop", "eos", "budget", "length"] = "stop"


class Decoder:
    """Writes an answer after ``prompt`` (token ids), at most ``max_new_tokens`` of it.

    ``stop_token_ids``: tokens that end it, where these are not just the model's own.

    Raises `ContextLengthError` if the prompt leaves no room in the model's context for an answer.
    """

    def __init__(
        self,
        model: Model,
        prompt: Sequence[int],
        *,
        sampler: Sampler | None = None,
        max_new_tokens: int = 256,
        stop_token_ids: Collection[int] | None = None,
    ) -> None:
        room = model.context_length - len(prompt)
        if room < 1:
            raise ContextLengthError(
                f"The prompt has {len(prompt)} tokens; {model.name} has room for {model.context_length}",
                hint="Shorten the request, give fewer tools, or reset the conversation",
                tokens=len(prompt),
                context_length=model.context_length,
            )
        self.model = model
        self.sampler = sampler or Sampler()
        self.tokens: list[int] = []
        self.statistics = Statistics(prompt_tokens=len(prompt))
        self._prompt = list(prompt)
        self._budget = min(max_new_tokens, room)
        self._log_probabilities: list[float] = []  # of each written token
        self._ends = frozenset(model.eos_token_ids if stop_token_ids is None else stop_token_ids)
        self._pieces = model.tokenizer_info.tokens
        self._cache = Cache.of(model)
        started = time.perf_counter()
        self._pending: list[int] = []  # written, but not yet computed: they wait for company in a forward pass
        self._logits, self.statistics.cached_tokens = self._cache.load(prompt)
        self.statistics.prompt_seconds = time.perf_counter() - started

    @property
    def text(self) -> str:
        """All that has been written, special tokens by their names; bytes that are no UTF-8 show as U+FFFD."""
        return self.spell(self.tokens)

    @property
    def confidence(self) -> float:
        """``exp(1/n · Σ log p(tᵢ))`` over the n tokens written, forced and given ones included.

        ``p(tᵢ)`` is the probability that the model gave to the i-th token at temperature 1, before any mask. It is the
        geometric mean of these probabilities: 1 where the model would have written just this by itself, near 0 where
        the grammar bent it to words that it did not mean. 1 if nothing was written.
        """
        return math.exp(sum(self._log_probabilities) / len(self.tokens)) if self.tokens else 1.0

    @property
    def remaining(self) -> int:
        """How many more tokens may be written."""
        return self._budget - len(self.tokens)

    def spell(self, tokens: Sequence[int]) -> str:
        return b"".join(self._pieces[token] for token in tokens).decode("utf-8", "replace")

    def free(self, *, until: Callable[[Sequence[int]], bool] | None = None) -> Stretch:
        """The model writes what it likes, until it ends its answer or ``until(tokens of this stretch)`` holds."""
        stretch = Stretch()
        with self._clock():
            while self.remaining > 0:
                token = self.sampler.sample(self._current_logits())
                if token in self._ends:
                    stretch.ended = "eos"
                    return self._finish(stretch)
                self._push(token)
                stretch.tokens.append(token)
                if until is not None and until(stretch.tokens):
                    return self._finish(stretch)
        stretch.ended = "length"
        return self._finish(stretch)

    def constrained(
        self, matcher: Matcher | Budgeted, *, until: Callable[[Sequence[int]], bool] | None = None
    ) -> Stretch:
        """The model writes what ``matcher`` allows, until nothing but the end is allowed, it chooses the end, or
        ``until(tokens of this stretch)`` holds.

        A `Budgeted` matcher completes the answer within its tokens. A text that the grammar accepts is complete only if
        the model ends it there, which it is asked when its tokens have run out.
        """
        from punchcard import allocate_token_bitmask, apply_token_bitmask_inplace

        stretch = Stretch()
        bitmask = allocate_token_bitmask(1, self.model.vocab_size)
        ends = _bits(self._ends, bitmask.shape[1])
        with self._clock():
            while self.remaining > 0 or matcher.is_accepting():
                taken = self._forced_tokens(matcher)
                if not taken:
                    constrains = matcher.fill_next_token_bitmask(bitmask)
                    if constrains and (only := _only_token(bitmask[0] & ~ends, bitmask[0] & ends)) is not None:
                        if only < 0:
                            return self._ended(stretch, matcher)
                        if self.remaining < 1:
                            break
                        self._accept(matcher, only)
                        taken = [only]
                if taken:
                    self._force(taken)
                else:
                    logits = self._current_logits().copy()
                    if constrains:
                        apply_token_bitmask_inplace(logits, bitmask[0])
                    token = _picked(matcher, self.sampler, logits)
                    if token in self._ends:
                        return self._ended(stretch, matcher)
                    if self.remaining < 1:
                        break
                    self._accept(matcher, token)
                    self._push(token)
                    taken = [token]
                stretch.tokens.extend(taken)
                if until is not None and until(stretch.tokens):
                    return self._finish(stretch)
        if isinstance(matcher, Budgeted) and matcher.intervened and matcher.is_accepting():
            return self._ended(stretch, matcher)
        stretch.ended = "length"
        return self._finish(stretch)

    def _ended(self, stretch: Stretch, matcher: Matcher | Budgeted) -> Stretch:
        """Finishes a stretch that is complete."""
        # The masks of a plain matcher tell what is left of its budget, not what the model would have chosen.
        used_up = getattr(matcher, "budget_left", None) == 0
        if matcher.intervened if isinstance(matcher, Budgeted) else used_up:
            stretch.ended = "budget"
        return self._finish(stretch)

    @staticmethod
    def _accept(matcher: Matcher | Budgeted, token: int) -> None:
        if not matcher.accept_token(token):
            raise MatcherError(f"The matcher refuses token {token}, which its own mask allows")

    def score(self, texts: Sequence[str], offsets: Sequence[float] | None = None) -> list[float]:
        """The log of the probability that the model, unmasked, would go on with each text. Writes nothing.

        What several texts begin with is computed once, and the last token of each not at all. ``offsets`` is for who
        wants only the text with the greatest ``score - offset``: texts that cannot be it are then given up early, with
        an upper bound for a score.
        """
        options = [self.model.tokenize(text) for text in texts]
        scores = [0.0] * len(options)
        best = -math.inf

        def visit(members: list[int], depth: int, logits: NDArray[np.float32], total: float) -> None:
            """Scores the members, which agree up to ``depth``, where the cache and the logits stand."""
            nonlocal best
            branches: dict[int, list[int]] = {}
            for member in members:
                scores[member] = total
                if depth < len(options[member]):
                    branches.setdefault(options[member][depth], []).append(member)
                elif offsets is not None:
                    best = max(best, total - offsets[member])
            for token, branch in branches.items():
                for member in branch:
                    scores[member] = total + log_probability(logits, token)
            hopes = {
                token: 0.0 if offsets is None else max(scores[member] - offsets[member] for member in branch)
                for token, branch in branches.items()
            }
            for token in sorted(branches, key=lambda token: -hopes[token]):
                if offsets is not None and hopes[token] <= best:
                    return
                descend(branches[token], depth, scores[branches[token][0]])

        def descend(branch: list[int], depth: int, total: float) -> None:
            run = _common_beginning([options[member][depth:] for member in branch])
            ends = all(len(options[member]) == depth + len(run) for member in branch)
            needed = run[:-1] if ends else run
            rows = list(self._cache.append(needed, all_positions=True)) if needed else []
            total += sum(log_probability(row, after) for row, after in zip(rows, run[1:], strict=False))
            visit(branch, depth + len(run), rows[-1] if rows else self._logits, total)
            self._cache.rewind(len(self._cache.tokens) - len(needed))

        with self._clock():
            visit(list(range(len(options))), 0, self._current_logits(), 0.0)
        return scores

    def _forced_tokens(self, matcher: Matcher | Budgeted) -> list[int]:
        """Takes the matcher over the tokens, but for the last one, of the text that must follow."""
        text = matcher.find_jump_forward_string()
        taken: list[int] = []
        for token in self.model.tokenize(text)[:-1][: self.remaining]:
            # A tokenizer may spell a text with bytes of its own, such as a leading space: leave that to the mask.
            if not matcher.accept_token(token):
                break
            taken.append(token)
        return taken

    def _current_logits(self) -> NDArray[np.float32]:
        if self._pending:
            self._logits = self._cache.append(self._pending)
            self._pending = []
        return self._logits

    def _force(self, tokens: Sequence[int]) -> None:
        new = [*self._pending, *tokens]
        logits = np.concatenate([self._logits[None], self._cache.append(new, all_positions=True)])
        for token, row in zip(tokens, logits[len(self._pending) : -1], strict=True):
            self._log_probabilities.append(log_probability(row, token))
        self._logits = logits[-1]
        self._pending = []
        self.tokens.extend(tokens)
        self.statistics.forced_tokens += len(tokens)

    def _push(self, token: int) -> None:
        self._log_probabilities.append(log_probability(self._logits, token))
        self.tokens.append(token)
        self._pending = [token]

    def _finish(self, stretch: Stretch) -> Stretch:
        stretch.text = self.spell(stretch.tokens)
        return stretch

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted(self.text) from None
        finally:
            self.statistics.seconds += time.perf_counter() - started
            self.statistics.tokens = len(self.tokens)


def _picked(matcher: Matcher | Budgeted, sampler: Sampler, logits: NDArray[np.float32]) -> int:
    return matcher.pick(sampler, logits) if isinstance(matcher, Budgeted) else sampler.sample(logits)


def _bits(tokens: Collection[int], words: int) -> NDArray[np.int32]:
    """A row of a bitmask with the bits of these tokens."""
    bits = np.zeros(words, dtype=np.uint32)
    for token in tokens:
        if token < 32 * words:
            bits[token // 32] |= np.uint32(1 << (token % 32))
    return bits.view(np.int32)


def _only_token(row: NDArray[np.int32], ends: NDArray[np.int32]) -> int | None:
    """The token that a row leaves no choice about; -1 where nothing but the end is left. ``ends``: the allowed ends."""
    words = np.flatnonzero(row)
    if len(words) == 0:
        return -1
    if len(words) > 1 or ends.any():
        return None
    word = int(row[words[0]]) & 0xFFFFFFFF
    return int(words[0]) * 32 + word.bit_length() - 1 if word & (word - 1) == 0 else None


def _common_beginning(sequences: Sequence[Sequence[int]]) -> list[int]:
    shortest = min(sequences, key=len)
    differs = (i for i, token in enumerate(shortest) if any(sequence[i] != token for sequence in sequences))
    return list(shortest[: next(differs, len(shortest))])
