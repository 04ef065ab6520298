"""What a tool format is: how a model family was trained to read tools and to write calls.

All families share one layout,

    [text] SECTION_BEGIN  CALL (SEPARATOR CALL)*  SECTION_END        CALL = BEGIN json END

in which any part may be empty. A `ToolFormat` is an entry that fills it in; the functions here follow from the entry:
the prompt, the schema of a call, and the parser. Two shapes of a section are known: one object per block (Qwen), and
one list for all calls (SmolLM2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from punchcard.formats.examples import study, survey
from punchcard.formats.schema import call_schema
from punchcard.formats.template import render_template
from punchcard.schemas import JsonSchema
from punchcard.tools import Tool

Message = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call that a model wrote: the tool's name and plain JSON arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "arguments": self.arguments}


@dataclass(frozen=True)
class ToolFormat:
    """One family's way with tools.

    ``name``: of the entry; ``markers``: substrings of a chat template or of a model's name that tell the family.
    ``section_begin`` ... ``section_end``: the layout. ``empty``: a whole section without calls, or ``None`` where the
    family answers in prose then. ``drift``: a pattern for what models of the family write before a call's JSON, at the
    start of an answer, in place of ``section_begin + begin``.

    ``system``: the text for the system turn, with ``{tools}`` for their JSON lines, where the chat template does not
    show tools itself; ``instruction``: the one where it does.
    ``result``: how a result goes back, with ``{content}``, where the template has no turn for tools.

    ``always_calls``: the first answer to a request is a section (perhaps an empty one), never prose.
    ``calls_once``: a run ends when its first calls have been executed; models of the family cannot go on from results.
    ``examples``: the prompt shows invented requests and their calls, made from the tools' schemas.
    ``compact``: JSON without spaces.
    ``calibrate``: the tool is chosen by how much more likely the request makes it than other words would.
    """

    name: str
    markers: tuple[str, ...]
    section_begin: str
    begin: str
    end: str
    separator: str
    section_end: str
    empty: str | None
    system: str
    result: str
    instruction: str = ""
    drift: str = ""
    always_calls: bool = False
    calls_once: bool = False
    compact: bool = False
    examples: bool = False
    calibrate: bool = False

    @property
    def whitespace(self) -> Literal["none", "bounded"]:
        """How much white space the grammar of a call admits."""
        return "none" if self.compact else "bounded"

    @property
    def opener(self) -> str:
        """What begins the first call."""
        return self.section_begin + self.begin

    @property
    def trigger(self) -> str:
        """What tells in free text that calls follow: the opener without the white space around it."""
        return self.opener.strip()

    def drift_pattern(self, names: Iterable[str]) -> str:
        """What an answer begins with where the model starts a call in another way than it was trained to. The group
        ``frame`` is what goes before the call's JSON, ``name`` the tool, if it is one of ``names``. A JSON object that
        names no tool and has no arguments is no call: it may have been asked for."""
        known = "|".join(re.escape(name) for name in names)
        object_begins = r'\{\s*"(?:type"\s*:\s*"function"\s*,\s*")?name"\s*:\s*'
        named = rf'"(?:(?P<name>{known})"|[^"]*"\s*,\s*"(?:arguments|parameters)")'
        return rf"(?P<frame>[\s,]*{self.drift}){object_begins}{named}"

    def schema(self, tools: Sequence[Tool]) -> JsonSchema:
        """The JSON Schema of one call of one of ``tools``."""
        return call_schema(tools)

    @property
    def call_head(self) -> str:
        """What goes before the name of the first tool."""
        return self.opener + self._json({"name": ""})[:-2]

    def write(self, calls: Sequence[Call]) -> str:
        """The section that holds ``calls``, as the model would write it."""
        if not calls:
            return self.empty or ""
        written = [self.begin + self._json(call.to_dict()) + self.end for call in calls]
        return self.section_begin + self.separator.join(written) + self.section_end

    def _json(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":") if self.compact else None)

    def prompt(
        self, template: str | None, messages: Sequence[Message], tools: Sequence[Tool], focus: Tool | None = None
    ) -> str:
        """The text before an answer. ``template``: the model's own chat template, if it has one. ``focus``: the tool
        that will be called, where that is known; it adds examples of that tool where the format shows examples.

        ``messages`` are as OpenAI's API has them: roles system, user, assistant (with ``tool_calls``) and tool. Where
        the template knows nothing of tools, they are put into the words of the other turns.

        Raises `ModelError` if the template cannot be rendered.
        """
        if template is not None and _shows_tools(template):
            definitions = [tool.definition() for tool in tools] or None
            return render_template(template, self._instructed(messages) if tools else list(messages), definitions)
        return render_template(template, list(self._plain(messages, tools, focus)), None)

    def _instructed(self, messages: Sequence[Message]) -> list[Message]:
        """The messages with the instruction in the system turn, after the caller's own words."""
        rest = list(messages)
        words = [str(rest.pop(0)["content"])] if rest and rest[0]["role"] == "system" else []
        words += [self.instruction] if self.instruction else []
        return [{"role": "system", "content": "\n\n".join(words)}, *rest] if words else rest

    def _plain(self, messages: Sequence[Message], tools: Sequence[Tool], focus: Tool | None) -> Iterator[Message]:
        """The messages without roles or fields for tools."""
        rest = list(messages)
        system = [str(rest.pop(0)["content"])] if rest and rest[0]["role"] == "system" else []
        if tools:
            lines = "\n".join(json.dumps(tool.definition()["function"], ensure_ascii=False) for tool in tools)
            system.append(self.system.replace("{tools}", lines))
        if system:
            yield {"role": "system", "content": "\n\n".join(system)}
        if self.examples:
            for request, tool, arguments in [*survey(tools), *(study(focus) if focus else ())]:
                yield {"role": "user", "content": request}
                yield {"role": "assistant", "content": self.write([Call(tool.name, arguments)])}
        results: list[str] = []
        for message in [*rest, None]:
            if message is not None and message["role"] == "tool":
                results.append(self.result.replace("{content}", str(message["content"])))
                continue
            if results:  # consecutive results share one turn
                yield {"role": "user", "content": "\n".join(results)}
                results = []
            if message is not None:
                calls = [
                    Call(call["function"]["name"], call["function"]["arguments"])
                    for call in message.get("tool_calls") or ()
                ]
                content = (message.get("content") or "") + (self.write(calls) if calls else "")
                yield {"role": message["role"], "content": content}

    def parse(self, text: str) -> tuple[str, list[Call]]:
        """The prose and the calls of an answer that was written without a grammar.

        Takes more than the grammar would let through: fences instead of tags, missing line breaks, ``parameters`` for
        ``arguments``, lists and single objects alike. What is no call stays in the prose.
        """
        calls: list[Call] = []
        prose: list[str] = []
        position = 0
        while (start := _JSON_START.search(text, position)) is not None:
            try:
                value, end = _DECODER.raw_decode(text, start.start())
            except (ValueError, RecursionError):
                value, end = None, start.end()
            found = list(_calls(value))
            prose.append(text[position : start.start() if found else end])
            calls.extend(found)
            position = end
        prose.append(text[position:])
        remains = "".join(prose)
        if calls or (self.empty is not None and remains.strip() == self.empty):
            for frame in (self.section_begin, self.begin, self.end, self.section_end, "```json", "```"):
                marker = frame.strip(" \n[],")
                if marker:
                    remains = remains.replace(marker, "")
            remains = remains.strip(" \n[],")
        return remains.strip(), calls


_DECODER = json.JSONDecoder(strict=False)
_JSON_START = re.compile(r"[{\[]")


def _calls(value: Any) -> Iterator[Call]:
    if isinstance(value, list):
        for item in value:
            yield from _calls(item)
    elif isinstance(value, Mapping):
        value = value.get("function", value) if value.get("type") == "function" else value
        arguments = value.get("arguments", value.get("parameters")) if isinstance(value, Mapping) else None
        if isinstance(arguments, str):  # some write the arguments as JSON within JSON
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return
        if isinstance(arguments, dict) and isinstance(value.get("name"), str):
            yield Call(value["name"], arguments)


def _shows_tools(template: str) -> bool:
    return re.search(r"\btools\b", template) is not None
