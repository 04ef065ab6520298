"""One answer while it is written: the grammar, the sampler, the parser and the ends that belong to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from punchcard._core import CancelToken
from punchcard.chat import Delta, Sampling
from punchcard.ending import Budgeted
from punchcard.errors import MatcherError
from punchcard.sampling import Sampler
from punchcard.server.planning import Plan
from punchcard.stopping import StopTexts

# Text that must follow is taken in pieces, so that a step stays short for those who share it.
_FORCED_CHARACTERS = 256
_FORCED_TOKENS = 32

Finish = Literal["stop", "calls", "budget", "length"]


@dataclass(frozen=True)
class TokenLogprob:
    """A written token and the log of its probability; ``top``: the likeliest tokens with theirs.

    Probabilities are those that the model itself gave, at temperature 1 and before any mask.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass
class Written:
    """What came of an answer since it was last asked for."""

    deltas: list[Delta] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)


class Writer:
    """Turns logits into the tokens of one answer, and these into deltas.

    Args:
        plan: what is to be written.
        sampling: how tokens are picked. ``max_new_tokens`` must fit the model's context after the prompt.
        tokenize: the model's, for text that must follow.
        logprobs: how many alternatives are told for each token; `None` for no log probabilities.
        complete: the answer, if it is under a grammar, is complete within ``max_new_tokens``, if any complete answer is
            known beforehand.
        cancel: ends the mask that is being made, where nobody waits for the answer any more.

    Raises `BudgetError` if a complete answer does not fit ``max_new_tokens``.
    """

    def __init__(
        self,
        plan: Plan,
        sampling: Sampling,
        tokenize: Callable[[str], list[int]],
        *,
        logprobs: int | None = None,
        complete: bool = False,
        cancel: CancelToken | None = None,
    ) -> None:
        self.matcher: Budgeted | None = None
        if plan.grammar is not None:
            self.matcher = Budgeted(plan.grammar, sampling.max_new_tokens if complete else None, cancel=cancel)
        self.cancel = cancel
        self.ends = plan.stop_token_ids
        self.finish: Finish | None = None
        self.tokens = 0
        self.forced_tokens = 0
        self.reasoning_tokens = 0
        self._parser = plan.parser()
        self._sampler = Sampler(sampling.temperature, top_k=sampling.top_k, top_p=sampling.top_p, seed=sampling.seed)
        self._stops = StopTexts(sampling.stop)
        self._limit = sampling.max_new_tokens
        self._tokenize = tokenize
        self._logprobs = logprobs
        self._raw: NDArray[np.float32] | None = None
        self._written = Written()

    def look(self, logits: NDArray[np.float32]) -> None:
        """Notes what the model itself thinks, before a mask is put on ``logits``."""
        if self._logprobs is not None:
            self._raw = logits.copy()

    def choose(self, logits: NDArray[np.float32]) -> list[int]:
        """Picks a token by masked ``logits``, float32 ``[vocab_size]``, and takes those that must follow it.

        Returns what the model has to compute next: nothing if the answer has come to its end.
        """
        token = self._sampler.sample(logits) if self.matcher is None else self.matcher.pick(self._sampler, logits)
        if token in self.ends:
            self.end("stop")
            return []
        if self.tokens >= self._limit:  # the model was asked whether it ends here, and does not
            self.end("stop" if self.matcher is not None and self.matcher.intervened else "length")
            return []
        if self.matcher is not None and not self.matcher.accept_token(token):
            raise MatcherError(f"The matcher refuses token {token}, which its own mask allows")
        if self._raw is not None:
            self._written.logprobs.append(_logprob(self._raw, token, self._logprobs or 0))
        self._write(token)
        return [] if self.finish else [token, *self._forced()]

    def end(self, ended: Literal["stop", "length"]) -> None:
        """Ends the answer: it is complete, or its tokens have run out."""
        self._written.deltas += self._stops.finish(self._parser.finish(ended))
        self.finish = "stop" if self._stops.found else self._parser.reply.finish
        if ended == "stop" and not self._stops.found and self.matcher is not None and self.matcher.intervened:
            self.finish = "budget"

    def written(self) -> Written:
        """What came since the last call."""
        written, self._written = self._written, Written()
        return written

    def _write(self, token: int) -> None:
        self.tokens += 1
        deltas = self._parser.feed(token)
        self.reasoning_tokens += bool(deltas) and all(delta.kind == "reasoning" for delta in deltas)
        self._written.deltas += self._stops.pass_on(deltas)
        if self._stops.found:
            self.end("stop")
        elif self.tokens >= self._limit and (self.matcher is None or not self.matcher.is_accepting()):
            self.end("length")

    def _forced(self) -> list[int]:
        """Takes the tokens, but for the last one, of the text that must follow (`punchcard.generation` says why)."""
        taken: list[int] = []
        # Log probabilities need the logits before each token.
        if self.matcher is None or self._logprobs is not None or self.tokens >= self._limit:
            return taken
        text = self.matcher.find_jump_forward_string()[:_FORCED_CHARACTERS]
        for token in self._tokenize(text)[:-1][:_FORCED_TOKENS] if text else ():
            # A tokenizer may spell a text with bytes of its own, such as a leading space: leave that to the mask.
            if not self.matcher.accept_token(token):
                break
            taken.append(token)
            self.forced_tokens += 1
            self._write(token)
            if self.finish or self.tokens >= self._limit:
                break
        return taken


def _logprob(logits: NDArray[np.float32], token: int, alternatives: int) -> TokenLogprob:
    top = logits.max()
    total = float(top) + float(np.log(np.exp(logits - top).sum(dtype=np.float64)))
    likely: list[int] = []
    if alternatives:
        candidates = np.argpartition(-logits, alternatives)[:alternatives]
        likely = [int(id) for id in candidates[np.argsort(-logits[candidates], kind="stable")]]
    return TokenLogprob(token, float(logits[token]) - total, tuple((id, float(logits[id]) - total) for id in likely))
