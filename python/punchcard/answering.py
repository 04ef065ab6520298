"""Answers to requests from a model that computes logits: planning, decoding and reading put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeGuard, cast

from punchcard.chat import Chat, Delta, Reply, Request, Sampling
from punchcard.ending import Budgeted
from punchcard.formats import ToolFormat
from punchcard.generation import Decoder, Model, Statistics
from punchcard.sampling import Sampler
from punchcard.stopping import StopTexts
from punchcard.tools import Tool
from punchcard.turn import Plan, Speaker, plan

_GREEDY = Sampling()


def as_chat(model: str | os.PathLike[str] | Model | Chat | None, tool_format: str | None = None) -> Chat:
    """A chat over a model by name or path, over the default one, or over a `Model`; a `Chat` is returned as it is.

    Raises `ModelError` if the model cannot be loaded.
    """
    loaded = load_model(model)
    return loaded if answers_itself(loaded) else StepChat(cast(Model, loaded), tool_format)


def load_model(model: str | os.PathLike[str] | Model | Chat | None) -> Model | Chat:
    """A model by name or path, or the default one; a `Model` or a `Chat` is returned as it is.

    Raises `ModelError` if it cannot be loaded.
    """
    if model is None or isinstance(model, (str, os.PathLike)):
        from punchcard.models import LocalModel

        return LocalModel.load(model)
    return model


def answers_itself(model: Any) -> TypeGuard[Chat]:
    """Whether a model is a `Chat`."""
    return hasattr(model, "respond")


class StepChat:
    """A `Chat` over a `Model`. ``tool_format``: a format or its name, where the one that is detected is wrong."""

    def __init__(self, model: Model, tool_format: ToolFormat | str | None = None) -> None:
        self.model = model
        self.name = model.name
        self.tool_format = Speaker.of(model, tool_format).tool_format

    def respond(
        self,
        request: Request,
        sampling: Sampling = _GREEDY,
        *,
        on_delta: Callable[[Delta], None] | None = None,
        sampler: Sampler | None = None,
        focus: Tool | None = None,
        statistics: Statistics | None = None,
        **variables: Any,
    ) -> Reply:
        """The answer to ``request``; ``on_delta`` is told of each piece of it.

        ``sampler``: one to go on with, instead of a new one made from ``sampling``; ``focus``: see `render_prompt`;
        ``statistics``: is added to, also where the answer is interrupted; ``variables``: for the chat template.

        What is written under a grammar is completed within ``sampling.max_new_tokens``, and `Reply.finish` says so.

        Raises what `plan` raises, `ContextLengthError` if the prompt leaves no room, and `BudgetError` if no complete
        answer is short enough. Ctrl-C raises `Interrupted`.
        """
        planned = plan(self.model, request, self.tool_format, focus=focus, **variables)
        decoder = Decoder(
            self.model,
            planned.prompt,
            sampler=sampler or sampling_sampler(sampling),
            max_new_tokens=sampling.max_new_tokens,
            stop_token_ids=planned.stop_token_ids,
        )
        reader = _Reader(planned, sampling.stop, on_delta)
        try:
            if planned.grammar is None:
                stretch = decoder.free(until=reader.take)
            else:
                stretch = decoder.constrained(Budgeted(planned.grammar, decoder.remaining), until=reader.take)
        finally:
            if statistics is not None:
                statistics.add(decoder.statistics)
        reply = reader.finish(stretch.ended)
        reply.confidence = decoder.confidence
        reply.statistics = decoder.statistics
        return reply


class _Reader:
    """Takes the tokens of an answer to its parser, and the deltas to whoever listens."""

    def __init__(self, planned: Plan, stop: Sequence[str], on_delta: Callable[[Delta], None] | None) -> None:
        self._parser = planned.parser()
        self._stop = StopTexts(stop)
        self._on_delta = on_delta
        self._read = 0

    def take(self, tokens: Sequence[int]) -> bool:
        """Reads what is new of ``tokens``. Whether the answer ends here."""
        for token in tokens[self._read :]:
            self._tell(self._stop.pass_on(self._parser.feed(token)))
        self._read = len(tokens)
        return self._stop.found

    def finish(self, ended: Literal["stop", "eos", "budget", "length"]) -> Reply:
        self._tell(self._stop.finish(self._parser.finish("length" if ended == "length" else "stop")))
        reply = self._parser.reply
        if ended == "budget":
            reply.finish = "budget"
        self._stop.cut(reply)
        return reply

    def _tell(self, deltas: list[Delta]) -> None:
        if self._on_delta is not None:
            for delta in deltas:
                self._on_delta(delta)


def sampling_sampler(sampling: Sampling) -> Sampler:
    """The sampler that ``sampling`` describes."""
    return Sampler(sampling.temperature, top_k=sampling.top_k, top_p=sampling.top_p, seed=sampling.seed)
