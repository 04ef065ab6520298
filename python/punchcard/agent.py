"""An agent: a model that answers requests by calling tools.

    agent = Agent(tools=[set_lights])
    answer = agent.run("Dim the kitchen lights to 10%")
    answer["function_calls"]   # [{"name": "set_lights", "arguments": {"room": "kitchen", "brightness": 10}}]

With ``grammar=True`` (the default) every call is written under the schemas of the tools, so it always names one of
them, with arguments that its function takes.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import to_jsonable_python

from punchcard.answering import StepChat
from punchcard.calibration import Calibration
from punchcard.chat import Call, Message, Reply, Request, Sampling
from punchcard.errors import PunchcardError, ToolError
from punchcard.generation import Interrupted, Model, Statistics
from punchcard.grammar import Grammar
from punchcard.sampling import Sampler
from punchcard.tools import Tool, as_tools

Result = dict[str, Any]

# More calls than this in one answer are a loop, not a plan.
MAX_CALLS = 8


class Agent:
    """A model with tools, and the conversation so far.

    ``tools``: functions (with or without `tool`) or OpenAI-style definitions. ``model``: a name, a path to a GGUF file,
    an object with the interface of `LocalModel`, or `None` for the default model. ``system``: words for the system
    turn. ``grammar=False`` lets the model write as it likes, for comparison. ``tool_format``: the name of a format,
    where the one detected is wrong. ``temperature``, ``top_k``, ``top_p``, ``seed``: see `Sampler`; greedy by default.

    Raises `ToolError` for what is no tool, `ModelError` if the model cannot be loaded.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any] | Mapping[str, Any]] = (),
        model: str | os.PathLike[str] | Model | None = None,
        system: str | None = None,
        grammar: bool = True,
        *,
        tool_format: str | None = None,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.tools = as_tools(tools)
        self._sampler = Sampler(temperature, top_k=top_k, top_p=top_p, seed=seed)
        self.model = load_model(model)
        self.grammar = grammar
        self.system = system
        self._chat = StepChat(self.model, tool_format)
        self.tool_format = self._chat.tool_format
        self._calibration = Calibration(self.model, self.tool_format, self.tools)
        self.messages: list[Message] = []
        """The conversation, as OpenAI's API spells it, without the system turn."""

    def reset(self) -> None:
        """Forgets the conversation."""
        self.messages = []

    def run(self, query: str, max_steps: int = 8, max_new_tokens: int = 256) -> Result:
        """Answers a request: the model picks calls, they are executed, their results go back to the model, until it
        answers without a call or has had ``max_steps`` turns of at most ``max_new_tokens`` tokens each.

        Returns a dict:

        - ``type``: ``"calls"`` if anything was called, else ``"text"``
        - ``success``: no tool failed and the answer is complete; ``error``: if not, why
        - ``function_calls``: ``[{"name", "arguments"}]``, the arguments as plain JSON data
        - ``results``: for each call ``{"name", "arguments", "result"}``, or with ``"error"`` in place of ``"result"``
        - ``text``: the model's last words; ``confidence``: see below; ``steps``: turns taken
        - ``timings``: tokens and seconds of prompts, generation and tools

        A tool that raises ends up in ``results`` and ``error``, and the model is told. Calls of tools without a
        function (definitions) are left to the caller, and end the run. ``confidence`` is the geometric mean of the
        probabilities that the model itself, before any mask, gave to the tokens of its turns with calls (of its text,
        if there were none): ``exp(1/n · Σ log p(tᵢ))``.

        Raises `ContextLengthError` if the conversation is too long for the model, `SchemaError` if a tool's arguments
        cannot be compiled; the conversation is then as it was. Ctrl-C raises `Interrupted`, which holds the text so far
        and such a dict.
        """
        return _Run(self, query, max_new_tokens).to_end(max_steps)

    def complete(self, text: str, max_new_tokens: int = 256) -> Result:
        """Takes one turn of the model, and executes nothing. Returns and raises as `run` does; ``results`` is empty."""
        return _Run(self, text, max_new_tokens).one_turn()


def load_model(model: str | os.PathLike[str] | Model | None) -> Model:
    """A model by name or path, or the default one; an object that is a model already is returned as it is."""
    if model is None or isinstance(model, (str, os.PathLike)):
        from punchcard.models import LocalModel

        return LocalModel.load(model)
    return model


class _Run:
    """One request on its way."""

    def __init__(self, agent: Agent, query: str, max_new_tokens: int) -> None:
        if max_new_tokens < 1:
            raise PunchcardError(f"max_new_tokens is {max_new_tokens}; it must be at least 1")
        self._agent = agent
        self._max_new_tokens = max_new_tokens
        self._messages: list[Message] = [*agent.messages, {"role": "user", "content": query}]
        self._tools = {tool.name: tool for tool in agent.tools}
        self._calls: list[Call] = []
        self._results: list[dict[str, Any]] = []
        self._text = ""
        self._error: str | None = None
        self._confidences: list[tuple[float, int]] = []  # of turns with calls, else of the text
        self._statistics = Statistics()
        self._tool_seconds = 0.0
        self._steps = 0

    def one_turn(self) -> Result:
        try:
            self._turn()
        except Interrupted as interruption:
            raise self._interrupted(interruption) from None
        return self._finish()

    def to_end(self, max_steps: int) -> Result:
        if max_steps < 1:
            raise PunchcardError(f"max_steps is {max_steps}; it must be at least 1")
        try:
            last: list[Call] = []
            while self._steps < max_steps:
                turn = self._turn()
                # A model that asks for the same again would do so forever; what it asked for has been done.
                if not turn.calls or turn.calls == last or not self._can_execute(turn.calls):
                    break
                last = turn.calls
                for call in turn.calls:
                    self._execute(call)
                if self._agent.tool_format.calls_once:
                    break
        except Interrupted as interruption:
            raise self._interrupted(interruption) from None
        return self._finish()

    def _turn(self) -> Reply:
        agent = self._agent
        messages = list(self._messages)
        if agent.system is not None:
            messages.insert(0, {"role": "system", "content": agent.system})
        request = Request(messages, agent.tools, max_calls=MAX_CALLS, constrained=agent.grammar)
        focus = None
        if agent.grammar and agent.tools and self._steps == 0 and agent.tool_format.calibrate:
            focus, statistics = agent._calibration.choose(messages)
            self._statistics.add(statistics)
            if focus is not None:
                request = replace(request, tool_choice="required", allowed=[focus.name])
            else:
                nothing = Grammar.from_text(agent.tool_format.empty or "")
                request = replace(request, tool_choice="none", answer=nothing)
        reply = agent._chat.respond(
            request,
            Sampling(self._max_new_tokens),
            sampler=agent._sampler,
            focus=focus,
            statistics=self._statistics,
        )
        self._steps += 1
        self._record(reply)
        return reply

    def _record(self, reply: Reply) -> None:
        tokens = reply.statistics.tokens if reply.statistics else 0
        if reply.calls and not self._calls:
            self._confidences = []  # the words before the first call say nothing about it
        if (reply.calls or not self._calls) and reply.confidence is not None:
            self._confidences.append((reply.confidence, tokens))
        self._calls += reply.calls
        self._text = reply.text
        if reply.finish == "length":
            self._fail(f"the answer was cut off after {tokens} tokens")
        message: Message = {"role": "assistant", "content": reply.text}
        if reply.calls:
            message["tool_calls"] = [{"type": "function", "function": call.to_dict()} for call in reply.calls]
        self._messages.append(message)

    def _can_execute(self, calls: Sequence[Call]) -> bool:
        known = [self._tools[call.name] for call in calls if call.name in self._tools]
        return all(tool.function is not None for tool in known)

    def _execute(self, call: Call) -> None:
        started = time.perf_counter()
        entry = call.to_dict()
        try:
            entry["result"] = self._tool(call.name).call(call.arguments)
            content = _spoken(entry["result"])
        except Exception as error:  # whatever a tool raises is the model's business, and the caller's
            message = str(error) if isinstance(error, ToolError) else f"{type(error).__name__}: {error}"
            entry["error"] = message
            content = f"error: {message}"
            self._fail(f"{call.name} failed: {message}")
        finally:
            self._tool_seconds += time.perf_counter() - started
        self._results.append(entry)
        self._messages.append({"role": "tool", "name": call.name, "content": content})

    def _tool(self, name: str) -> Tool:
        try:
            return self._tools[name]
        except KeyError:
            raise ToolError(f"there is no tool {name}", tool=name) from None

    def _fail(self, error: str) -> None:
        self._error = self._error or error

    def _interrupted(self, interruption: Interrupted) -> Interrupted:
        self._fail("interrupted")
        return Interrupted(interruption.text, {**self._result(), "text": interruption.text})

    def _finish(self) -> Result:
        self._agent.messages = self._messages
        return self._result()

    def _result(self) -> Result:
        written = sum(count for _, count in self._confidences)
        logs = sum(count * math.log(max(confidence, 1e-300)) for confidence, count in self._confidences)
        statistics = self._statistics
        return {
            "type": "calls" if self._calls else "text",
            "success": self._error is None,
            "error": self._error,
            "function_calls": [call.to_dict() for call in self._calls],
            "results": self._results,
            "text": self._text,
            "confidence": math.exp(logs / written) if written else 1.0,
            "steps": self._steps,
            "timings": {
                "prompt_tokens": statistics.prompt_tokens,
                "cached_tokens": statistics.cached_tokens,
                "prompt_seconds": statistics.prompt_seconds,
                "generated_tokens": statistics.tokens,
                "forced_tokens": statistics.forced_tokens,
                "generation_seconds": statistics.seconds,
                "tokens_per_second": statistics.tokens_per_second,
                "tool_seconds": self._tool_seconds,
            },
        }


def _spoken(result: Any) -> str:
    """What the model is told of a result: text as it is, everything else as JSON."""
    if isinstance(result, str):
        return result
    return json.dumps(to_jsonable_python(result, fallback=str), ensure_ascii=False)
