"""What an agent did, as data: requests, answers, calls, what came of them, times, the model and its settings.

A `Transcript` can be saved, read again, and replayed (`Agent.replay`). It holds plain JSON data only: what a tool
returned is recorded as the JSON that it becomes.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from punchcard.chat import Call, Message
from punchcard.errors import PunchcardError
from punchcard.exact import read_json, write_json


@dataclass
class CallRecord:
    """A call of the model.

    Attributes:
        name, arguments, id: as the model wrote it.
        executed: what `before_call` had executed in its place, ``{"name", "arguments"}``; `None` if just this.
        status: ``"done"``; ``"failed"``: the tool raised, or there is none; ``"refused"``: by `before_call`;
            ``"stopped"``: the run ended before it was done; ``"left"``: to the caller, also where the answer was cut
            short, or it repeats what was done.
        result: what the tool returned; ``error``: why it did not.
        seconds: wall time of the tool.
    """

    name: str
    arguments: dict[str, Any]
    id: str | None = None
    executed: dict[str, Any] | None = None
    status: Literal["done", "failed", "refused", "stopped", "left"] = "left"
    result: Any = None
    error: str | None = None
    seconds: float = 0.0

    @property
    def told(self) -> str:
        """What the model was told of the result."""
        return spoken(self.result) if self.error is None else f"error: {self.error}"

    def call(self) -> Call:
        return Call(self.name, self.arguments, self.id)


@dataclass
class Turn:
    """An answer of the model. ``finish``: as in `Reply`; ``tools``: the names of those that it was offered; ``tokens``
    that it wrote, if known."""

    text: str = ""
    reasoning: str = ""
    finish: str = "stop"
    calls: list[CallRecord] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    confidence: float | None = None
    tokens: int | None = None
    seconds: float = 0.0


@dataclass
class RunRecord:
    """One request, and all that followed from it.

    Attributes:
        query: the request.
        kind: ``"run"``; ``"complete"``: one turn, nothing is executed.
        limits: ``max_steps``, ``max_new_tokens``, ``max_seconds``.
        before: the conversation before it, where that is not what the runs before it left; else `None`.
        messages: what it added to the conversation.
        started: ISO 8601, UTC; ``seconds``: wall time.
        error: as in the result; what ended the run, where it ended with an exception.
        kept: it became a part of the conversation.
    """

    query: str
    kind: Literal["run", "complete"] = "run"
    limits: dict[str, Any] = field(default_factory=dict)
    before: list[Message] | None = None
    messages: list[Message] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    started: str = ""
    seconds: float = 0.0
    error: str | None = None
    kept: bool = False

    @property
    def calls(self) -> list[CallRecord]:
        return [call for turn in self.turns for call in turn.calls]


@dataclass
class Transcript:
    """Everything that an agent did since it was made or `Agent.reset`.

    Attributes:
        format: of the file, and its version.
        model: ``name``, and ``tool_format`` where it is known.
        settings: sampling, and what else an `Agent` is given.
        tools: their definitions; ``described``: names of those that have no function.
        runs: one after the other.
    """

    format: Literal["punchcard-transcript/1"] = "punchcard-transcript/1"
    model: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    tools: list[dict[str, Any]] = field(default_factory=list)
    described: list[str] = field(default_factory=list)
    runs: list[RunRecord] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The transcript as JSON data."""
        return asdict(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a JSON file."""
        text = write_json(self.to_dict(), indent=1) + "\n"
        # A lone surrogate, which UTF-8 cannot spell, becomes JSON's escape.
        Path(path).write_bytes(text.encode("utf-8", "backslashreplace"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Transcript:
        """Reads what `save` wrote. Raises `PunchcardError` if the file cannot be read or is no transcript."""
        try:
            content = read_json(Path(path).read_text(encoding="utf-8"), words=True)
            return TypeAdapter(cls).validate_python(content)
        except OSError as error:
            raise PunchcardError(f"{path} cannot be read: {error.strerror}") from error
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = "/".join(map(str, first["loc"]))
            raise PunchcardError(
                f"{path} is no transcript: {place}: {first['msg']}", hint="`Transcript.save` writes them"
            ) from error
        except ValueError as error:
            raise PunchcardError(f"{path} is no transcript: it is not JSON: {error}") from error

    def conversation(self, before: int | None = None) -> list[Message]:
        """The messages that the first ``before`` runs left; of all, if it is `None`."""
        messages: list[Message] = []
        for run in self.runs[:before]:
            if run.kept:
                messages = [*(messages if run.before is None else run.before), *run.messages]
        following = self.runs[before] if before is not None and before < len(self.runs) else None
        return list(following.before) if following is not None and following.before is not None else messages


def plain(value: Any) -> Any:
    """A value as JSON data; what has no such form, by its `str`. Raises `ValueError` for what refers to itself."""
    return to_jsonable_python(value, fallback=str)


def spoken(result: Any) -> str:
    """What a model is told of a result: text as it is, everything else as JSON."""
    text = result if isinstance(result, str) else write_json(plain(result))
    return text.encode("utf-8", "replace").decode("utf-8")  # without the surrogates that no tokenizer takes
