"""An agent: a model that answers requests by calling tools.

    agent = Agent(tools=[set_lights])
    answer = agent.run("Dim the kitchen lights to 10%")
    answer["function_calls"]   # [{"name": "set_lights", "arguments": {"room": "kitchen", "brightness": 10}}]

With ``grammar=True`` (the default) every call is written under the schemas of the tools, so it always names one of
them, with arguments that its function takes.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from punchcard.agent.asking import asker
from punchcard.agent.hooks import AfterCall, BeforeCall
from punchcard.agent.run import Blocking, Concurrent, Result, Run, RunLimits, Waiting
from punchcard.agent.transcript import Transcript
from punchcard.answering import load_model
from punchcard.chat import Chat, Delta, Message, Sampling
from punchcard.errors import PunchcardError, ToolError
from punchcard.formats import ToolFormat
from punchcard.generation import Model
from punchcard.tools import Tool, as_tools
from punchcard.waiting import is_coroutine_function, loop_is_running, without_waiting

if TYPE_CHECKING:
    from punchcard.agent.replay import Replay

# Tools that are offered for a request where a catalogue is searched with an index of the caller's.
RETRIEVED = 8


class Index(Protocol):
    """A catalogue that can be searched; `punchcard.ToolIndex` is one."""

    def select(self, query: str, k: int) -> Sequence[Tool]:
        """The ``k`` tools that serve ``query`` best."""
        ...


class Agent:
    """A model with tools, and the conversation so far.

    Args:
        tools: functions (with or without `tool`), coroutine functions too, OpenAI-style definitions, and the tools of
            `MCPTools`.
        model: a name, a path to a GGUF file, an object with the interface of `LocalModel`, a `Chat` (a runtime that
            answers by itself, such as a server), or `None` for the default model.
        system: words for the system turn.
        grammar: calls are written under a grammar; False lets the model write as it likes, for comparison.
        tool_format: a format or its name, where the one that is detected is wrong.
        temperature, top_k, top_p, seed: see `Sampler`; greedy by default.
        tool_choice: ``"auto"``; ``"required"``: the first answer to a request calls a tool; the name of a tool: it
            calls this one; ``"none"``: no tool is called.
        parallel: several calls in one answer are allowed.
        reasoning: the model thinks before it answers, does not, or (`None`) as its template has it.
        skip_tools: a tool whose schema cannot be compiled is left out (``"left_out"`` in the result says why) instead
            of an error.
        retrieve: for large catalogues, how many tools a request is offered: those that serve it best, and those that
            the conversation has called. Or an object with ``select(query, k)``, for 8 of them.
        before_call: asked before each call is executed; it may change or refuse it. See `punchcard.agent.hooks`.
        after_call: told what came of each call that was executed.

    Raises `ToolError` for what is no tool, `ModelError` if the model cannot be loaded.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any] | Mapping[str, Any]] = (),
        model: str | os.PathLike[str] | Model | Chat | None = None,
        system: str | None = None,
        grammar: bool = True,
        *,
        tool_format: ToolFormat | str | None = None,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        tool_choice: str = "auto",
        parallel: bool = True,
        reasoning: bool | None = None,
        skip_tools: bool = False,
        retrieve: int | Index | None = None,
        before_call: BeforeCall | None = None,
        after_call: AfterCall | None = None,
    ) -> None:
        self.tools = as_tools(tools)
        self.model: Model | Chat = load_model(model)
        self.system = system
        self.grammar = grammar
        self.tool_choice = tool_choice
        self.parallel = parallel
        self.reasoning = reasoning
        self.skip_tools = skip_tools
        self.retrieve = retrieve
        self.before_call = before_call
        self.after_call = after_call
        self._sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        self._asker = asker(self.model, tool_format, self._sampling)
        self.tool_format = self._asker.tool_format
        self.messages: list[Message] = []
        """The conversation, as OpenAI's API spells it, without the system turn."""
        self._transcript: Transcript | None = None
        self._own_index: Index | None = None
        self._busy = threading.Lock()
        known = [tool.name for tool in self.tools]
        if tool_choice not in ("auto", "required", "none", *known):
            raise ToolError(
                f"tool_choice is {tool_choice!r}",
                hint=f"It is auto, required, none, or one of the tools: {', '.join(known) or 'there are none'}",
            )
        if isinstance(retrieve, int) and retrieve < 1:
            raise PunchcardError(f"retrieve is {retrieve}; it must be at least 1")

    def reset(self) -> None:
        """Forgets the conversation, and begins a new transcript."""
        self.messages = []
        self._transcript = None

    @property
    def transcript(self) -> Transcript:
        """What happened since the agent was made or `reset`."""
        if self._transcript is None:
            self._transcript = self._new_transcript()
        return self._transcript

    def run(
        self,
        query: str,
        max_steps: int = 8,
        max_new_tokens: int = 256,
        *,
        max_seconds: float | None = None,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Result:
        """Answers a request: the model picks calls, they are executed, their results go back to the model, until it
        answers without a call or has had ``max_steps`` turns of at most ``max_new_tokens`` tokens each.

        ``max_seconds`` ends the run where it stands: between two tokens of the model, or when a tool has returned.
        ``on_delta`` is told of each piece of the model's answers as it comes.

        Returns a dict:

        - ``type``: ``"calls"`` if anything was called, else ``"text"``
        - ``success``: no tool failed, none was refused, and the answer is complete; ``error``: if not, why
        - ``finish``: how the last turn ended, as `Reply.finish` has it: ``"stop"``, ``"calls"``, ``"budget"`` or
          ``"length"``
        - ``function_calls``: ``[{"name", "arguments"}]``, the arguments as plain JSON data, as the model wrote them
        - ``results``: for each executed call ``{"name", "arguments", "result"}``, or with ``"error"`` in place of
          ``"result"``; the name and arguments as `before_call` left them; with ``"repeated": True`` where the model
          asked again for just what had been done. What a tool returned is here as the JSON data that the model was
          told, so `json.dumps` takes the whole dict; `after_call` is given the object itself
        - ``text``: the model's last words; ``reasoning``: its thoughts; ``confidence``: see below; ``steps``: turns
        - ``left_out``: tools that could not be offered, and why
        - ``timings``: tokens and seconds of prompts, generation and tools

        A tool that raises ends up in ``results`` and ``error``, and the model is told. Calls of tools without a
        function (definitions) are left to the caller, and end the run; so are calls of an answer that its budget of
        tokens cut off, since their arguments are valid but may not be what the model meant. ``confidence`` is the
        geometric mean of the probabilities that the model itself, before any mask, gave to the tokens of its turns with
        calls (of its text, if there were none): ``exp(1/n · Σ log p(tᵢ))``; 1 where the runtime tells none.

        Raises `ContextLengthError` if the conversation is too long for the model, `BudgetError` if a call that must
        come does not fit ``max_new_tokens``, `SchemaError` if a tool's arguments
        cannot be compiled, `PunchcardError` if the agent is answering already; the conversation is then as it was.
        Ctrl-C raises `Interrupted`, which holds the text so far and such a dict.
        """
        limits = RunLimits(max_steps, max_new_tokens, max_seconds)
        self._check_no_loop()
        with self._answering(query, limits, Blocking(), on_delta) as run:
            return without_waiting(run.to_end())

    def complete(
        self,
        text: str,
        max_new_tokens: int = 256,
        *,
        max_seconds: float | None = None,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Result:
        """Takes one turn of the model, and executes nothing. Returns and raises as `run` does; ``results`` is empty."""
        limits = RunLimits(1, max_new_tokens, max_seconds)
        with self._answering(text, limits, Blocking(), on_delta) as run:
            return without_waiting(run.one_turn())

    async def arun(
        self,
        query: str,
        max_steps: int = 8,
        max_new_tokens: int = 256,
        *,
        max_seconds: float | None = None,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Result:
        """As `run`, while the event loop goes on. The calls of one answer are executed at the same time: coroutine
        functions as tasks, others in threads; so is the model.

        ``max_seconds`` cancels tools that are still running (a thread cannot be cancelled, and is left behind).
        ``on_delta`` is called in the event loop. Cancelling the task cancels its tools, stops the model after its next
        token, and leaves the conversation as it was.
        """
        limits = RunLimits(max_steps, max_new_tokens, max_seconds)
        with self._answering(query, limits, Concurrent(), on_delta) as run:
            return await run.to_end()

    async def acomplete(
        self,
        text: str,
        max_new_tokens: int = 256,
        *,
        max_seconds: float | None = None,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Result:
        """As `complete`, while the event loop goes on."""
        limits = RunLimits(1, max_new_tokens, max_seconds)
        with self._answering(text, limits, Concurrent(), on_delta) as run:
            return await run.one_turn()

    def replay(self, transcript: Transcript, what: Literal["model", "tools"] = "model") -> Replay:
        """Does again what a transcript tells of, and says what came out differently. See `punchcard.agent.replay`.

        ``"model"``: the model is asked again, and told the recorded results; no tool is executed. ``"tools"``: the
        recorded calls are executed again, and no model is asked. The agent's own conversation stays as it is.
        """
        from punchcard.agent.replay import replay

        return replay(self, transcript, what)

    def offered(self, query: str, messages: Sequence[Message]) -> list[Tool]:
        """The tools that the model is offered for ``query``: all, or those that `retrieve` chooses."""
        index, count = self._index()
        if index is None or len(self.tools) <= count:
            return list(self.tools)
        names = {tool.name for tool in index.select(query, count)}
        names |= {call["function"]["name"] for message in messages for call in message.get("tool_calls", ())}
        names.add(self.tool_choice)
        return [tool for tool in self.tools if tool.name in names]

    def _index(self) -> tuple[Index | None, int]:
        """What chooses the tools, made when it is first needed, and how many it chooses."""
        if not isinstance(self.retrieve, int):
            return self.retrieve, RETRIEVED
        if self._own_index is None and len(self.tools) > self.retrieve:
            import punchcard

            self._own_index = punchcard.ToolIndex(self.tools)
        return self._own_index, self.retrieve

    def renewed(
        self, tools: Iterable[Tool], model: Chat | None = None, *, before_call: BeforeCall | None = None
    ) -> Agent:
        """A new agent like this one, with other tools, another hook and perhaps another model."""
        sampling = self._sampling
        agent = Agent(
            tools,
            self.model if model is None else model,
            self.system,
            self.grammar,
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            seed=sampling.seed,
            tool_choice=self.tool_choice,
            parallel=self.parallel,
            reasoning=self.reasoning,
            skip_tools=self.skip_tools,
            retrieve=self.retrieve,
            before_call=before_call,
        )
        if model is None:
            agent._asker = self._asker.renewed()
            agent.tool_format = self.tool_format
        return agent

    @contextlib.contextmanager
    def _answering(
        self, query: str, limits: RunLimits, waiting: Waiting, on_delta: Callable[[Delta], None] | None
    ) -> Iterator[Run]:
        """A run that is recorded, and the only one at its time."""
        if not self._busy.acquire(blocking=False):
            raise PunchcardError(
                "The agent is answering another request", hint="It holds one conversation: make an agent for each"
            )
        try:
            run = Run(self, self._asker, query, limits, waiting, on_delta)
            if self.messages != self.transcript.conversation():
                run.record.before = list(self.messages)
            self.transcript.runs.append(run.record)
            yield run
        finally:
            self._busy.release()

    def _check_no_loop(self) -> None:
        """Coroutines cannot be run to their end inside a loop that is running."""
        if not loop_is_running():
            return
        coroutines = [tool.name for tool in self.tools if tool.is_coroutine]
        coroutines += [n for n in ("before_call", "after_call") if is_coroutine_function(getattr(self, n))]
        if coroutines:
            raise ToolError(
                f"{', '.join(coroutines)}: coroutine functions, and an event loop is running already",
                hint="Use `await agent.arun(...)`",
            )

    def _new_transcript(self) -> Transcript:
        tool_format = self.tool_format
        settings = {
            name: value for name, value in vars(self._sampling).items() if name not in ("max_new_tokens", "stop")
        }
        settings |= {name: getattr(self, name) for name in _SETTINGS}
        settings["retrieve"] = (
            self.retrieve if self.retrieve is None or isinstance(self.retrieve, int) else type(self.retrieve).__name__
        )
        return Transcript(
            model={"name": self._asker.name, "tool_format": None if tool_format is None else tool_format.name},
            settings=settings,
            tools=[tool.definition() for tool in self.tools],
            described=[tool.name for tool in self.tools if not tool.executes],
        )


_SETTINGS = ("system", "grammar", "tool_choice", "parallel", "reasoning", "skip_tools")
