"""One request to an agent on its way: turns of the model, calls of tools, limits, and what is recorded of them.

There is one run, and two ways to wait for what it needs: `Blocking` does one thing after another, `Concurrent` lets an
event loop go on meanwhile and executes the calls of an answer at the same time.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import math
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Protocol

from punchcard.agent.asking import Asker, Listener, Question, Stopped
from punchcard.agent.hooks import Outcome, Refusal
from punchcard.agent.transcript import CallRecord, RunRecord, Turn, plain
from punchcard.chat import Call, Delta, Message, Reply, Request
from punchcard.errors import InputTypeError, PunchcardError, ToolError
from punchcard.generation import Interrupted, Statistics
from punchcard.tools import Tool
from punchcard.waiting import Deadline, awaited, in_thread, is_coroutine_function, to_end, within

if TYPE_CHECKING:
    from punchcard.agent import Agent

Result = dict[str, Any]

# More calls than this in one answer are a loop, not a plan.
MAX_CALLS = 8


class Waiting(Protocol):
    """How a run waits for what others do."""

    async def answer(self, asker: Asker, question: Question) -> Reply: ...
    async def execute(self, tool: Tool, arguments: dict[str, Any], timeout: float | None) -> Any: ...
    async def hook(self, function: Callable[..., Any], *arguments: Any) -> Any: ...
    async def all(self, works: Sequence[Coroutine[Any, Any, None]]) -> None: ...
    def listening(self, on_delta: Callable[[Delta], None]) -> Callable[[Delta], None]: ...


class Blocking:
    """One thing after another, in the caller's thread. None of its coroutines ever waits."""

    async def answer(self, asker: Asker, question: Question) -> Reply:
        return asker.answer(question)

    async def execute(self, tool: Tool, arguments: dict[str, Any], timeout: float | None) -> Any:
        return tool.call(arguments, timeout=timeout)

    async def hook(self, function: Callable[..., Any], *arguments: Any) -> Any:
        answer = function(*arguments)
        return to_end(answer) if inspect.isawaitable(answer) else answer

    async def all(self, works: Sequence[Coroutine[Any, Any, None]]) -> None:
        for work in works:
            await work

    def listening(self, on_delta: Callable[[Delta], None]) -> Callable[[Delta], None]:
        return on_delta


class Concurrent:
    """What blocks goes into threads; the works of one answer run at the same time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._failures: list[Exception] = []  # of `on_delta`

    async def answer(self, asker: Asker, question: Question) -> Reply:
        reply = await asker.aanswer(question)
        if self._failures:
            raise self._failures[0]
        return reply

    async def execute(self, tool: Tool, arguments: dict[str, Any], timeout: float | None) -> Any:
        return await within(tool.acall(arguments), timeout)

    async def hook(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if is_coroutine_function(function):
            return await function(*arguments)
        return await awaited(await in_thread(function, *arguments))

    async def all(self, works: Sequence[Coroutine[Any, Any, None]]) -> None:
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            await asyncio.gather(*tasks)
        finally:  # none goes on where one has failed, or the run is cancelled
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def listening(self, on_delta: Callable[[Delta], None]) -> Callable[[Delta], None]:
        def heard(delta: Delta) -> None:
            try:
                on_delta(delta)
            except Exception as error:  # the event loop would only log it
                self._failures.append(error)

        def tell(delta: Delta) -> None:
            if self._failures:
                raise self._failures[0]
            if threading.get_ident() == self._thread:
                on_delta(delta)
            else:
                self._loop.call_soon_threadsafe(heard, delta)

        return tell


@dataclass(frozen=True)
class RunLimits:
    """What ends a run: turns of the model, tokens of a turn, seconds in all."""

    max_steps: int = 8
    max_new_tokens: int = 256
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_steps", "max_new_tokens"):
            if getattr(self, name) < 1:
                raise PunchcardError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise PunchcardError(f"max_seconds is {self.max_seconds}; it must be above 0")


class Run:
    """One request on its way."""

    def __init__(
        self,
        agent: Agent,
        asker: Asker,
        query: str,
        limits: RunLimits,
        waiting: Waiting,
        on_delta: Callable[[Delta], None] | None,
    ) -> None:
        if not isinstance(query, str):
            raise InputTypeError(
                f"A request is a text, and this is of the type {type(query).__name__}",
                hint="Give a str; earlier turns of a conversation are in agent.messages",
            )
        self._agent = agent
        self._asker = asker
        self._limits = limits
        self._waiting = waiting
        self._on_delta = None if on_delta is None else waiting.listening(on_delta)
        self._deadline = Deadline(limits.max_seconds)
        self._messages: list[Message] = [*agent.messages, {"role": "user", "content": query}]
        self._tools = {tool.name: tool for tool in agent.tools}
        self._turns: list[Turn] = []
        self._results: list[dict[str, Any]] = []
        self._error: str | None = None
        self._confidences: list[tuple[float, int]] = []  # of turns with calls, else of the text
        self._statistics = Statistics()
        self._tool_seconds = 0.0
        self._started = time.perf_counter()
        self._left_out: dict[str, str] = {}
        self._offered: list[Tool] = []
        self._begun = len(agent.messages)
        self.record = RunRecord(query, limits={**vars(limits)}, turns=self._turns)
        self.record.started = datetime.now(timezone.utc).isoformat(timespec="milliseconds")

    async def one_turn(self) -> Result:
        """Asks once, and executes nothing."""
        self.record.kind = "complete"
        return await self._recorded(self._ask())

    async def to_end(self) -> Result:
        """Asks and executes, until the model answers without a call."""
        return await self._recorded(self._loop())

    async def _recorded(self, work: Coroutine[Any, Any, object]) -> Result:
        """Does the work, and keeps the record whatever happens."""
        try:
            await work
        except KeyboardInterrupt as interruption:
            self._fail("interrupted")
            text = getattr(interruption, "text", "")
            raise Interrupted(text, {**self._result(), "text": text}) from None
        except asyncio.CancelledError:
            self._fail("cancelled")
            raise
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")
            raise
        else:
            self.record.kept = True
            self._agent.messages = self._messages
            return self._result()
        finally:
            self.record.error = self._error
            self.record.messages = plain(self._messages[self._begun :])
            self.record.seconds = time.perf_counter() - self._started

    async def _loop(self) -> None:
        last: list[dict[str, Any]] = []
        while len(self._turns) < self._limits.max_steps:
            turn = await self._ask()
            calls = [record.call().to_dict() for record in turn.calls]
            if not calls or not self._can_execute(turn):
                return
            # A model that asks for the same again would do so forever; what it asked for has been done.
            if calls == last:
                self._report_again(turn.calls)
                return
            last = calls
            await self._execute(turn.calls)
            if self._deadline.passed:
                self._stop()
                return
            if self._asker.calls_once:
                return

    # The model.

    async def _ask(self) -> Turn:
        started = time.perf_counter()
        listener = Listener(self._on_delta, self._deadline)
        if not self._turns:
            await self._waiting.hook(self._offer)
        request = self._request()
        question = Question(request, self._limits.max_new_tokens, not self._turns, listener, self._statistics)
        try:
            reply = await self._waiting.answer(self._asker, question)
        except Stopped:
            reply = listener.reply()
            self._stop()
        turn = Turn(
            reply.text,
            reply.reasoning,
            reply.finish,
            [CallRecord(call.name, call.arguments, call.id) for call in self._named(reply.calls)],
            [tool.name for tool in request.tools],
            reply.confidence,
            reply.statistics.tokens if reply.statistics else None,
            time.perf_counter() - started,
        )
        self._take(turn)
        return turn

    def _offer(self) -> None:
        """Settles which tools the model is offered in this run."""
        self._offered = self._agent.offered(self.record.query, self._messages)
        if self._agent.skip_tools:
            self._left_out = self._asker.left_out(self._request())
            self._offered = [tool for tool in self._offered if tool.name not in self._left_out]

    def _request(self) -> Request:
        agent = self._agent
        messages = list(self._messages)
        if agent.system is not None:
            messages.insert(0, {"role": "system", "content": agent.system})
        request = Request(
            messages,
            self._offered,
            max_calls=MAX_CALLS,
            parallel=agent.parallel,
            reasoning=agent.reasoning,
            constrained=agent.grammar,
            skip_tools=agent.skip_tools,
        )
        if agent.tool_choice == "none":
            return replace(request, tool_choice="none")
        # What was required has been called after the first turn; required for ever, calls would never end.
        if agent.tool_choice == "auto" or self._turns:
            return request
        allowed = None if agent.tool_choice == "required" else [agent.tool_choice]
        return replace(request, tool_choice="required", allowed=allowed)

    def _named(self, calls: Sequence[Call]) -> list[Call]:
        """The calls with ids, where a runtime that keeps its own templates wrote none: servers want them."""
        if self._asker.tool_format is not None:
            return list(calls)
        before = sum(len(message.get("tool_calls", ())) for message in self._messages)
        return [call if call.id else replace(call, id=f"call_{before + index}") for index, call in enumerate(calls)]

    def _take(self, turn: Turn) -> None:
        called = any(earlier.calls for earlier in self._turns)
        if turn.calls and not called:
            self._confidences = []  # the words before the first call say nothing about it
        if (turn.calls or not called) and turn.confidence is not None:
            self._confidences.append((turn.confidence, turn.tokens or 1))
        self._turns.append(turn)
        if turn.finish == "length":
            self._fail("the answer was cut off" + ("" if turn.tokens is None else f" after {turn.tokens} tokens"))
        elif turn.finish == "budget":
            left = "; its calls are left to the caller" if turn.calls else ""
            self._fail(f"the answer was cut off by its budget of {self._limits.max_new_tokens} tokens{left}")
        message: Message = {"role": "assistant", "content": turn.text}
        if turn.reasoning:
            message["reasoning_content"] = turn.reasoning
        if turn.calls:
            message["tool_calls"] = [_written(call) for call in turn.calls]
        self._messages.append(message)

    # The tools.

    def _can_execute(self, turn: Turn) -> bool:
        if self._agent.tool_choice == "none":
            return False  # a runtime that calls all the same is not obeyed
        if turn.finish == "budget":
            return False  # arguments that were cut short are valid, and not what the model meant
        return all(self._tools[call.name].executes for call in turn.calls if call.name in self._tools)

    async def _execute(self, records: Sequence[CallRecord]) -> None:
        started = time.perf_counter()
        outcomes: list[Outcome | None] = [None] * len(records)
        works = []
        try:
            for index, record in enumerate(records):
                # One after the other, and before any is executed: a person can be asked.
                if self._deadline.passed:
                    continue
                call = await self._permitted(record)
                if call is not None:
                    works.append(self._work(index, record, call, outcomes))
            await self._waiting.all(works)
        finally:
            for work in works:
                work.close()  # none was left waiting, unless something failed on the way
            self._tool_seconds += time.perf_counter() - started
            for record, outcome in zip(records, outcomes, strict=True):
                self._report(record, outcome)

    async def _permitted(self, record: CallRecord) -> Call | None:
        """The call to execute; `None` if it was refused."""
        call = copy.deepcopy(record.call())  # a hook may write into it; the record is of what the model wrote
        hook = self._agent.before_call
        answer = None if hook is None else await self._waiting.hook(hook, call)
        if answer is None:
            answer = call
        if isinstance(answer, Refusal):
            record.status, record.error = "refused", f"refused: {answer.reason}"
            return None
        if not isinstance(answer, Call):
            raise PunchcardError(
                f"before_call returned {answer!r} for {call.name}", hint="It returns a Call, a Refusal or None"
            )
        if answer.to_dict() != record.call().to_dict():
            record.executed = plain(answer.to_dict())
        return answer

    async def _work(self, index: int, record: CallRecord, call: Call, outcomes: list[Outcome | None]) -> None:
        started = time.perf_counter()
        result, error = None, None
        if self._deadline.passed:
            return
        try:
            tool = self._tools.get(call.name)
            if tool is None:
                raise ToolError(f"there is no tool {call.name}", tool=call.name)
            result = await self._waiting.execute(tool, call.arguments, self._deadline.remaining)
            record.result = plain(result)
        except Exception as raised:  # whatever a tool raises is the model's business, and the caller's
            if isinstance(raised, TimeoutError) and self._deadline.passed:
                return
            error = str(raised) if isinstance(raised, ToolError) else f"{type(raised).__name__}: {raised}"
            result = record.result = None
        record.status = "done" if error is None else "failed"
        record.error = error
        record.seconds = time.perf_counter() - started
        outcomes[index] = outcome = Outcome(result, error, record.seconds)
        if self._agent.after_call is not None:
            await self._waiting.hook(self._agent.after_call, call, outcome)

    def _report(self, record: CallRecord, outcome: Outcome | None) -> None:
        """Tells the model and the caller what came of a call."""
        if outcome is None and record.status != "refused":
            record.status, record.error = "stopped", "stopped" + (": the time is up" if self._deadline.passed else "")
        entry: dict[str, Any] = dict(record.executed or record.call().to_dict())
        if record.error is None:
            entry["result"] = record.result
        else:
            entry["error"] = record.error
            if record.status == "refused":
                self._fail(f"{record.name} was {record.error}")
            elif record.status == "failed":
                self._fail(f"{record.name} failed: {record.error}")
        self._results.append(entry)
        self._messages.append(_told(record, record.told))

    def _report_again(self, records: Sequence[CallRecord]) -> None:
        """Tells what came of the calls of the turn before, which these repeat."""
        earlier = self._turns[-2].calls
        for record, done, entry in zip(records, earlier, self._results[-len(records) :], strict=True):
            self._results.append({**entry, "repeated": True})
            self._messages.append(_told(record, done.told))

    # The result.

    def _stop(self) -> None:
        self._fail(f"stopped after {self._limits.max_seconds:g} seconds (max_seconds)")

    def _fail(self, error: str) -> None:
        self._error = self._error or error

    def _result(self) -> Result:
        written = sum(count for _, count in self._confidences)
        logs = sum(count * math.log(max(confidence, 1e-300)) for confidence, count in self._confidences)
        statistics = self._statistics
        calls = self.record.calls
        return {
            "type": "calls" if calls else "text",
            "success": self._error is None,
            "error": self._error,
            "finish": self._turns[-1].finish if self._turns else "length",
            "function_calls": [call.call().to_dict() for call in calls],
            "results": self._results,
            "text": self._turns[-1].text if self._turns else "",
            "reasoning": "\n\n".join(turn.reasoning for turn in self._turns if turn.reasoning),
            "confidence": math.exp(logs / written) if written else 1.0,
            "steps": len(self._turns),
            "left_out": self._left_out,
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


def _told(call: CallRecord, content: str) -> Message:
    """What the model is told of a call, as a message."""
    message: Message = {"role": "tool", "name": call.name, "content": content}
    return message if call.id is None else {**message, "tool_call_id": call.id}


def _written(call: CallRecord) -> dict[str, Any]:
    """A call in a message."""
    written: dict[str, Any] = {"type": "function", "function": call.call().to_dict()}
    return written if call.id is None else {"id": call.id, **written}
