"""From a request to a prompt, a grammar, and a parser of what is written."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from punchcard._core import CompiledGrammar
from punchcard.chat import Call, Delta, Reply, Request
from punchcard.errors import PunchcardError, ToolError
from punchcard.formats import ToolFormat, detect_format
from punchcard.grammar import Grammar
from punchcard.model_grammars import compiler_of
from punchcard.prompts import encode_prompt


@dataclass
class Plan:
    model: Any
    tool_format: ToolFormat
    calls: bool
    prompt: list[int]
    grammar: CompiledGrammar | None
    stop_token_ids: frozenset[int]
    left_out: dict[str, PunchcardError] = field(default_factory=dict)

    def parser(self) -> TurnParser:
        return TurnParser(self)


def plan(model: Any, request: Request, tool_format: ToolFormat | None = None) -> Plan:
    tool_format = tool_format or detect_format(model.chat_template, model.name)
    tools = list(request.tools)
    names = {tool.name for tool in tools}
    for name in request.allowed or ():
        if name not in names:
            raise ToolError(f"There is no tool {name}", hint=f"Known are {', '.join(sorted(names))}", tool=name)
    allowed = [tool for tool in tools if request.allowed is None or tool.name in request.allowed]
    calls = bool(allowed) and request.tool_choice != "none" and request.constrained
    grammar = request.answer
    if calls:
        grammar = _calls_grammar(tool_format, allowed, request)
    return Plan(
        model=model,
        tool_format=tool_format,
        calls=calls,
        prompt=encode_prompt(model, tool_format, request.messages, tools if request.tool_choice != "none" else ()),
        grammar=None if grammar is None else compiler_of(model).compile(grammar),
        stop_token_ids=frozenset(model.eos_token_ids),
    )


def _calls_grammar(tool_format: ToolFormat, tools: list[Any], request: Request) -> Grammar:
    call: dict[str, Any] = {
        "type": "json_schema",
        "json_schema": tool_format.schema(tools),
        "options": {"whitespace": tool_format.whitespace},
    }
    first: list[Any] = [_text(tool_format.begin), call, _text(tool_format.end)]
    more: list[Any] = []
    if request.parallel and request.max_calls > 1:
        inner = _sequence([_text(tool_format.separator), *first])
        more = [{"type": "repeat", "content": inner, "min": 0, "max": request.max_calls - 1}]
    section = _sequence([_text(tool_format.section_begin), *first, *more, _text(tool_format.section_end)])
    if request.tool_choice == "required":
        return Grammar.from_structural_tag({"type": "structural_tag", "format": section})
    if request.answer is not None:
        return Grammar.union(request.answer, Grammar.from_structural_tag({"type": "structural_tag", "format": section}))
    trigger = tool_format.trigger
    rest = tool_format.opener[tool_format.opener.find(trigger) + len(trigger) :]
    content = _sequence(
        [_text(rest), call, _text(tool_format.end), *more, _text(tool_format.section_end)],
    )
    tag = {"type": "tag", "begin": trigger, "content": content, "end": ""}
    return Grammar.from_structural_tag(
        {
            "type": "structural_tag",
            "format": {"type": "triggered_tags", "triggers": [trigger], "tags": [tag], "stop_after_first": True},
        }
    )


def _text(value: str) -> Any:
    return {"type": "const_string", "value": value} if value else None


def _sequence(elements: list[Any]) -> dict[str, Any]:
    return {"type": "sequence", "elements": [element for element in elements if element is not None]}


_HEAD = re.compile(r'\{\s*"name"\s*:\s*"([^"]*)"\s*,\s*"arguments"\s*:\s*')


class TurnParser:
    def __init__(self, plan: Plan) -> None:
        self._pieces = plan.model.tokenizer_info.tokens
        self._trigger = plan.tool_format.trigger if plan.calls else None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._buffer = ""
        self._state: Literal["text", "between", "arguments"] = "text"
        self._depth = 0
        self._in_string = self._escaped = False
        self._arguments: list[str] = []
        self.reply = Reply()
        self.repeated = False

    def feed(self, token_id: int) -> list[Delta]:
        return self._read(self._decoder.decode(self._pieces[token_id]))

    def finish(self, ended: Literal["stop", "length"]) -> list[Delta]:
        deltas = self._read(self._decoder.decode(b"", final=True))
        if self._state == "text" and self._buffer:
            deltas.append(self._say(self._buffer))
        self.reply.finish = "calls" if ended == "stop" and self._arguments else ended
        return deltas

    def _say(self, text: str) -> Delta:
        self.reply.text += text
        return Delta("text", text)

    def _read(self, text: str) -> list[Delta]:
        self._buffer += text
        deltas: list[Delta] = []
        while True:
            if self._state == "text":
                if self._trigger is None:
                    if self._buffer:
                        deltas.append(self._say(self._buffer))
                    self._buffer = ""
                    return deltas
                found = self._buffer.find(self._trigger)
                if found >= 0:
                    if found:
                        deltas.append(self._say(self._buffer[:found]))
                    self._buffer = self._buffer[found + len(self._trigger) :]
                    self._state = "between"
                    continue
                held = next(
                    (
                        n
                        for n in range(min(len(self._buffer), len(self._trigger)), 0, -1)
                        if self._trigger.startswith(self._buffer[-n:])
                    ),
                    0,
                )
                told = len(self._buffer) - held
                if told:
                    deltas.append(self._say(self._buffer[:told]))
                self._buffer = self._buffer[told:]
                return deltas
            if self._state == "between":
                head = _HEAD.search(self._buffer)
                if head is None:
                    return deltas
                self._buffer = self._buffer[head.end() :]
                deltas.append(Delta("call", head[1], len(self._arguments)))
                self._arguments.append("")
                self.reply.calls.append(Call(head[1]))
                self._state, self._depth = "arguments", 0
                continue
            end = self._end_of_arguments()
            piece = self._buffer if end is None else self._buffer[:end]
            if piece:
                deltas.append(Delta("arguments", piece, len(self._arguments) - 1))
                self._arguments[-1] += piece
            self._buffer = self._buffer[len(piece) :]
            if end is None:
                return deltas
            call = Call(self.reply.calls[-1].name, json.loads(self._arguments[-1]))
            self.repeated = call in self.reply.calls[:-1]
            self.reply.calls[-1] = call
            self._state = "between"

    def _end_of_arguments(self) -> int | None:
        for place, character in enumerate(self._buffer):
            if self._escaped:
                self._escaped = False
            elif self._in_string:
                self._escaped = character == "\\"
                self._in_string = character != '"'
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth == 0:
                    return place + 1
        return None
