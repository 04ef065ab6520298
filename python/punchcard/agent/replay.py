"""Doing again what a transcript tells of, and finding what came out differently.

An agent stands between a model and tools. A replay holds one of them fast, as it was recorded, and runs the other:

- the model is asked again, and `ReplayTools` give it the recorded results: does another model, another prompt, another
  description of a tool lead to the same calls?
- the recorded calls are executed again, and `ReplayModel` writes them: do the tools still return the same?

Each run is replayed in the conversation that was recorded before it, so that one difference does not make the next run
different too. At temperature 0 the same model gives the same calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import from_json

from punchcard.agent.hooks import Refusal
from punchcard.agent.transcript import CallRecord, RunRecord, Transcript, Turn
from punchcard.chat import Call, Delta, Reply, Request, Sampling
from punchcard.errors import PunchcardError, ToolError
from punchcard.exact import write_json
from punchcard.tools import Tool

if TYPE_CHECKING:
    from punchcard.agent import Agent


_GREEDY = Sampling()


@dataclass(frozen=True)
class Difference:
    """Where a replay departs from its transcript.

    ``place``: a path into the transcript, as ``"runs/0/turns/1/calls/0/arguments"``. What is missing on one side is
    `None`.
    """

    place: str
    recorded: Any
    replayed: Any

    def __str__(self) -> str:
        recorded, replayed = (write_json(value) for value in (self.recorded, self.replayed))
        return f"{self.place}: {recorded} became {replayed}"


@dataclass
class Replay:
    """What a replay did, as a transcript of its own, and how it differs from the one that was replayed.

    ``differences`` in ``runs/`` are of what happened; the others are of the model, the settings and the tools, and may
    explain them. ``same``: the same happened.
    """

    transcript: Transcript
    differences: list[Difference] = field(default_factory=list)

    @property
    def same(self) -> bool:
        return not any(difference.place.startswith("runs/") for difference in self.differences)


class ReplayTool(Tool):
    """A tool whose results were recorded: each record serves one call with the same arguments, in their order."""

    def __init__(self, tool: Tool, records: Sequence[CallRecord], *, executes: bool) -> None:
        super().__init__(name=tool.name, description=tool.description, parameters=tool.parameters)
        self._records = [record for record in records if record.name == tool.name and record.status != "left"]
        self._executes = executes

    @property
    def executes(self) -> bool:
        return self._executes

    def call(self, arguments: Mapping[str, Any] | str, *, timeout: float | None = None) -> Any:
        """What was recorded. Raises `ToolError` for what the tool raised, and for a call that was not recorded."""
        plain = from_json(arguments) if isinstance(arguments, str) else dict(arguments)
        for index, record in enumerate(self._records):
            if record.arguments == plain:
                del self._records[index]
                if record.error is not None:
                    raise ToolError(record.error, tool=self.name)
                return record.result
        raise ToolError(f"no such call of {self.name} was recorded", tool=self.name)

    async def acall(self, arguments: Mapping[str, Any] | str) -> Any:
        return self.call(arguments)


class ReplayTools:
    """Stand-ins for the tools of a transcript, which return what was recorded: ``Agent(ReplayTools(transcript))``.

    ``tools``: the tools to stand in for, where names, descriptions and schemas are not to be those of the transcript.
    ``runs``: the runs whose records are used; all of them by default.
    """

    def __init__(
        self,
        transcript: Transcript,
        tools: Sequence[Tool] | None = None,
        *,
        runs: Sequence[RunRecord] | None = None,
    ) -> None:
        if tools is None:
            tools = [Tool.from_definition(definition) for definition in transcript.tools]
        records = [call for run in (transcript.runs if runs is None else runs) for call in run.calls]
        self._tools = [ReplayTool(tool, records, executes=tool.name not in transcript.described) for tool in tools]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


class ReplayModel:
    """A `Chat` that answers what was recorded, turn by turn, whatever it is asked.

    Raises `PunchcardError` when it is asked for more turns than there are.
    """

    def __init__(self, name: str, turns: Sequence[Turn]) -> None:
        self.name = name
        self._turns = iter(turns)

    def respond(
        self, request: Request, sampling: Sampling = _GREEDY, *, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        turn = next(self._turns, None)
        if turn is None:
            raise PunchcardError("The transcript holds no further answer of the model")
        finish: Any = turn.finish
        calls = [record.call() for record in turn.calls]
        return Reply(turn.text, turn.reasoning, calls, finish=finish, confidence=turn.confidence)


def replay(agent: Agent, transcript: Transcript, what: Literal["model", "tools"] = "model") -> Replay:
    """See `Agent.replay`."""
    if what not in ("model", "tools"):
        raise PunchcardError(f"{what!r} cannot be replayed", hint="It is 'model' or 'tools'")
    again = agent.renewed(agent.tools).transcript
    if what == "tools":
        again.model, again.settings = dict(transcript.model), dict(transcript.settings)
    for index, run in enumerate(transcript.runs):
        actor = _asked_again(agent, transcript, run) if what == "model" else _executed_again(agent, transcript, run)
        actor.messages = transcript.conversation(index)
        again.runs.append(_run_again(actor, run, what))
    return Replay(again, list(_differences(transcript, again, what)))


def _asked_again(agent: Agent, transcript: Transcript, run: RunRecord) -> Agent:
    """An agent whose model is the same, and whose tools are those that were recorded."""
    return agent.renewed(ReplayTools(transcript, agent.tools, runs=[run]))


def _executed_again(agent: Agent, transcript: Transcript, run: RunRecord) -> Agent:
    """An agent whose tools are the same, and whose model is the one that was recorded.

    What was refused is refused again, and what was changed is changed again, before the agent's own hook is asked.
    """
    tools = [
        tool if tool.name not in transcript.described else Tool.from_definition(tool.definition())
        for tool in agent.tools
    ]
    records = iter([record for record in run.calls if record.status != "left"])

    def as_recorded(call: Call) -> Any:
        record = next(records, None)
        if record is not None and record.status == "refused":
            return Refusal(str(record.error).removeprefix("refused: "))
        if record is not None and record.executed is not None:
            call = Call(record.executed["name"], record.executed["arguments"], call.id)
        asked = None if agent.before_call is None else agent.before_call(call)
        return _otherwise(asked, call) if inspect.isawaitable(asked) else asked or call

    return agent.renewed(tools, ReplayModel(transcript.model.get("name", "replay"), run.turns), before_call=as_recorded)


async def _otherwise(asked: Awaitable[Any], call: Call) -> Any:
    return await asked or call


def _run_again(actor: Agent, run: RunRecord, what: Literal["model", "tools"]) -> RunRecord:
    """Does a run again; what ends it with an error is in its record. One without an answer has nothing to do again."""
    if not run.turns:
        return RunRecord(run.query, run.kind, run.limits, error=run.error)
    tokens = run.limits.get("max_new_tokens", 256)
    whole = what == "model" and run.kept and not any(call.status == "stopped" for call in run.calls)
    steps = run.limits.get("max_steps", 8) if whole else len(run.turns)
    try:
        if run.kind == "complete":
            actor.complete(run.query, tokens)
        else:
            actor.run(run.query, steps, tokens)
    except PunchcardError:
        pass  # the record tells of it
    return actor.transcript.runs[0]


def _differences(old: Transcript, new: Transcript, what: Literal["model", "tools"]) -> Iterator[Difference]:
    yield from _compared("model", old.model, new.model)
    yield from _compared("settings", old.settings, new.settings)
    yield from _compared("tools", _by_name(old.tools), _by_name(new.tools))
    for index, (run, again) in enumerate(zip(old.runs, new.runs, strict=True)):
        if what == "model" and run.kept and not again.kept:
            yield Difference(f"runs/{index}/error", run.error, again.error)
        yield from _turns(f"runs/{index}/turns", run.turns, again.turns, what)


def _turns(
    place: str, old: Sequence[Turn], new: Sequence[Turn], what: Literal["model", "tools"]
) -> Iterator[Difference]:
    for index in range(max(len(old), len(new))):
        at = f"{place}/{index}"
        if index >= len(old) or index >= len(new):
            turns = [turns[index] if index < len(turns) else None for turns in (old, new)]
            yield Difference(at, *(turn and _said(turn) for turn in turns))
            continue
        if what == "model":
            yield from _compared(at, _said(old[index]), _said(new[index]))
            continue
        for number, (call, again) in enumerate(zip(old[index].calls, new[index].calls, strict=False)):
            yield from _compared(f"{at}/calls/{number}", _came(call), _came(again))


def _said(turn: Turn) -> dict[str, Any]:
    """What a model says in a turn, without what it took."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in turn.calls]
    return {"text": turn.text, "reasoning": turn.reasoning, "calls": calls}


def _came(call: CallRecord) -> dict[str, Any]:
    """What came of a call, without what it took."""
    return {item.name: getattr(call, item.name) for item in fields(call) if item.name in ("result", "error")}


def _by_name(definitions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {definition["function"]["name"]: definition["function"] for definition in definitions}


def _compared(place: str, old: Any, new: Any) -> Iterator[Difference]:
    """Where two JSON values differ, as deep in them as can be said."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            yield from _compared(f"{place}/{key}", old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _compared(f"{place}/{index}", before, after)
    elif old != new:
        yield Difference(place, old, new)
