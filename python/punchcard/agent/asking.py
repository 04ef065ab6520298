"""Asking a model for the turns of an agent, whichever runtime it has, with a time limit and a way to stop it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from punchcard.agent.calibration import Calibration
from punchcard.answering import StepChat, answers_itself, sampling_sampler
from punchcard.chat import Chat, Delta, Reply, Request, Sampling
from punchcard.errors import PunchcardError
from punchcard.formats import ToolFormat
from punchcard.generation import Model, Statistics
from punchcard.grammar import Grammar
from punchcard.tools import Tool
from punchcard.turn import plan
from punchcard.waiting import Deadline, in_thread, within


class Stopped(Exception):
    """The answer is not wanted any more."""


class Listener:
    """Hears the pieces of an answer as they come, and ends it there when the time is up or it is not wanted any more.

    ``text``, ``reasoning``: what it has heard.
    """

    def __init__(self, on_delta: Callable[[Delta], None] | None, deadline: Deadline) -> None:
        self.deadline = deadline
        self.text = ""
        self.reasoning = ""
        self._on_delta = on_delta
        self._unwanted = threading.Event()

    @property
    def needed(self) -> bool:
        """Whether the pieces have to be told at all."""
        return self._on_delta is not None or self.deadline.seconds is not None

    def stop(self) -> None:
        """Ends the answer at its next piece."""
        self._unwanted.set()

    def check(self) -> None:
        """Raises `Stopped` if the answer is to end here."""
        if self._unwanted.is_set() or self.deadline.passed:
            raise Stopped

    def hear(self, delta: Delta) -> None:
        self.check()
        if delta.kind == "text":
            self.text += delta.text
        elif delta.kind == "reasoning":
            self.reasoning += delta.text
        if self._on_delta is not None:
            self._on_delta(delta)

    def reply(self) -> Reply:
        """What was heard of an answer that was stopped."""
        return Reply(self.text, self.reasoning, finish="length")


@dataclass(frozen=True)
class Question:
    """A turn that is asked for.

    ``first``: of its run. ``statistics`` are added to, also where the answer is interrupted.
    """

    request: Request
    max_new_tokens: int
    first: bool
    listener: Listener
    statistics: Statistics


class ChatAsker:
    """Asks a `Chat`. What it answers is what its own runtime makes of the request."""

    tool_format: ToolFormat | None = None
    calls_once = False

    def __init__(self, chat: Chat, sampling: Sampling) -> None:
        self.name = chat.name
        self._chat: Any = chat
        self._sampling = sampling

    def renewed(self) -> ChatAsker:
        """The same, with its random numbers from the start."""
        return type(self)(self._chat, self._sampling)

    def left_out(self, request: Request) -> dict[str, str]:
        """Tools that cannot be offered, and why; a `Chat` keeps that to itself."""
        return {}

    def answer(self, question: Question) -> Reply:
        """The answer. Raises what the runtime raises, and `Stopped` where the listener stops it."""
        listener = question.listener
        listener.check()
        try:
            return self._counted(question, self._chat.respond(*self._arguments(question), **self._options(question)))
        except Exception:
            listener.check()  # a runtime may raise something of its own where its listener raised
            raise

    async def aanswer(self, question: Question) -> Reply:
        """The answer, while others work; a runtime that cannot wait itself is waited for in a thread."""
        listener = question.listener
        listener.check()
        try:
            if hasattr(self._chat, "arespond"):
                answer = self._chat.arespond(*self._arguments(question), **self._options(question))
                return self._counted(question, await within(answer, listener.deadline.remaining))
            return await within(in_thread(self.answer, question), listener.deadline.remaining)
        except Exception:
            listener.check()
            raise
        finally:
            listener.stop()

    def _arguments(self, question: Question) -> tuple[Request, Sampling]:
        return question.request, replace(self._sampling, max_new_tokens=question.max_new_tokens)

    @staticmethod
    def _options(question: Question) -> dict[str, Any]:
        # A server need not stream what nobody listens to.
        return {"on_delta": question.listener.hear} if question.listener.needed else {}

    @staticmethod
    def _counted(question: Question, reply: Reply) -> Reply:
        if reply.statistics is not None:
            question.statistics.add(reply.statistics)
        return reply


class StepAsker:
    """Asks a `Model` through a `StepChat`, and chooses the tool beforehand where its format wants that.

    A model has one cache, so that it answers one question at a time, whoever asks.
    """

    _locks: ClassVar[weakref.WeakKeyDictionary[Any, threading.Lock]] = weakref.WeakKeyDictionary()
    _making = threading.Lock()

    def __init__(self, chat: StepChat, sampling: Sampling) -> None:
        self.name = chat.name
        self.tool_format: ToolFormat | None = chat.tool_format
        self.calls_once = chat.tool_format.calls_once
        self._format = chat.tool_format
        self._chat = chat
        self._sampling = sampling
        self._sampler = sampling_sampler(sampling)
        self._calibration: tuple[list[Tool], Calibration] | None = None
        with self._making:
            self._lock = self._locks.setdefault(chat.model, threading.Lock())

    def renewed(self) -> StepAsker:
        """The same, with its random numbers from the start."""
        return type(self)(self._chat, self._sampling)

    def left_out(self, request: Request) -> dict[str, str]:
        """Tools whose schemas cannot be compiled, and why."""
        with self._lock:
            planned = plan(self._chat.model, replace(request, skip_tools=True, tool_choice="auto"), self._format)
        return {name: str(error) for name, error in planned.left_out.items()}

    def answer(self, question: Question) -> Reply:
        """The answer. Raises what `StepChat.respond` raises, and `Stopped` where the listener stops it."""
        listener = question.listener
        while not self._lock.acquire(timeout=0.05):
            listener.check()
        try:
            listener.check()
            request, focus = self._calibrated(question)
            return self._chat.respond(
                request,
                replace(self._sampling, max_new_tokens=question.max_new_tokens),
                on_delta=listener.hear,
                sampler=self._sampler,
                focus=focus,
                statistics=question.statistics,
            )
        finally:
            self._lock.release()

    async def aanswer(self, question: Question) -> Reply:
        """The answer, in a thread. Where the caller is cancelled, the model stops after its next token."""
        return await in_thread(self.answer, question, stop=question.listener.stop)

    def _calibrated(self, question: Question) -> tuple[Request, Tool | None]:
        """The request with the tool chosen, and this tool, in formats whose models choose badly by themselves."""
        request = question.request
        tools = [tool for tool in request.tools if request.allowed is None or tool.name in request.allowed]
        choosing = self._format.calibrate and question.first and request.constrained
        if not choosing or not tools or request.tool_choice == "none":
            return request, None
        focus: Tool | None = tools[0] if len(tools) == 1 and request.tool_choice == "required" else None
        if focus is None:
            focus, statistics = self._calibration_of(tools).choose(request.messages, check=question.listener.check)
            question.statistics.add(statistics)
        if focus is not None:
            return replace(request, tool_choice="required", allowed=[focus.name]), focus
        if request.tool_choice == "required":
            return request, None
        return replace(request, tool_choice="none", answer=Grammar.from_text(self._format.empty or "")), None

    def _calibration_of(self, tools: Sequence[Tool]) -> Calibration:
        if self._calibration is None or self._calibration[0] != tools:
            self._calibration = (list(tools), Calibration(self._chat.model, self._format, tools))
        return self._calibration[1]


Asker = ChatAsker | StepAsker


def asker(model: Model | Chat, tool_format: ToolFormat | str | None, sampling: Sampling) -> Asker:
    """How to ask ``model``, which computes logits or answers requests by itself."""
    if isinstance(model, StepChat):
        if tool_format is not None:
            model = StepChat(model.model, tool_format)
        return StepAsker(model, sampling)
    if answers_itself(model):
        if tool_format is not None:
            raise PunchcardError(
                f"{model.name} writes calls in a format of its own", hint="Leave out tool_format for such a runtime"
            )
        sampling_sampler(sampling)  # complains of values out of range
        return ChatAsker(model, sampling)
    return StepAsker(StepChat(cast(Model, model), tool_format), sampling)
