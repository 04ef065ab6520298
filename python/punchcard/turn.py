"""One turn of a model that has tools: from a prompt to prose and calls.

With a grammar the turn is prose until the model begins a call; from there the frame of the calls is given, and each
call is written under the schema of the tools. Without one, the model writes as it likes, and what it wrote is parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from punchcard._core import GrammarMatcher
from punchcard.formats import Call, ToolFormat
from punchcard.generation import Decoder
from punchcard.grammars import compile_calls
from punchcard.tools import Tool

# More calls than this in one answer are a loop, not a plan.
MAX_CALLS = 8


@dataclass
class Turn:
    """What a model answered: its ``text`` (prose, without the calls), its ``calls``, and whether it came to an end
    (``finished``) before its tokens ran out."""

    text: str = ""
    calls: list[Call] = field(default_factory=list)
    finished: bool = True


def free_turn(decoder: Decoder, tool_format: ToolFormat) -> Turn:
    """The model answers as it likes, and its answer is parsed."""
    stretch = decoder.free()
    text, calls = tool_format.parse(stretch.text)
    return Turn(text, calls, finished=stretch.ended != "length")


def grammar_turn(
    decoder: Decoder, tool_format: ToolFormat, tools: Sequence[Tool], candidates: Sequence[Tool] | None = None
) -> Turn:
    """The model answers in prose, or begins calls and has them written under the grammar.

    ``candidates``: where given, there is no prose; the answer is a section whose first call is of one of these tools,
    an empty section if there are none. Raises `SchemaError` if a tool's arguments cannot be compiled.
    """
    turn = Turn()
    if candidates is None:
        turn, candidates = _prose(decoder, tool_format, tools)
    elif not candidates and tool_format.empty is not None:
        decoder.give(tool_format.empty, special=True)
    if candidates:
        _write_calls(decoder, tool_format, candidates, tools, turn)
    return turn


def _prose(decoder: Decoder, tool_format: ToolFormat, tools: Sequence[Tool]) -> tuple[Turn, list[Tool]]:
    """Writes until the answer ends or a call begins. In that case the beginning is taken back, and the tools that the
    call may be of are returned."""
    trigger = decoder.model.tokenize(tool_format.trigger, parse_special=True)
    names = {tool.name: tool for tool in tools}
    drift = re.compile(tool_format.drift_pattern(names)) if names else None
    begun: list[Tool] = []

    def call_begins(tokens: Sequence[int]) -> bool:
        # Where the trigger is one token, the same characters spelled by others are prose.
        tail = decoder.spell(tokens[-len(trigger) - 8 :])
        if tokens[-1] == trigger[0] if len(trigger) == 1 else tool_format.trigger in tail:
            begun.extend(tools)
        elif drift is not None and (match := drift.match(decoder.spell(tokens))):
            begun.append(names[match["name"]])
        return bool(begun)

    stretch = decoder.free(until=call_begins if tools else None)
    if not begun:
        return Turn(stretch.text.strip(), finished=stretch.ended != "length"), []
    prose = stretch.text.rpartition(tool_format.trigger)[0] if len(begun) == len(tools) else ""
    kept = 0
    while kept < len(stretch.tokens) and len(decoder.spell(stretch.tokens[: kept + 1])) <= len(prose):
        kept += 1
    decoder.retract(len(stretch.tokens) - kept)
    return Turn(prose.strip()), begun


def _write_calls(
    decoder: Decoder, tool_format: ToolFormat, first: Sequence[Tool], tools: Sequence[Tool], turn: Turn
) -> None:
    """Writes the section of calls into ``turn``."""
    decoder.give(tool_format.opener, special=True)
    closing = decoder.model.tokenize(tool_format.section_end, parse_special=True)[:1] or decoder.model.eos_token_ids
    another = decoder.model.tokenize(tool_format.separator, parse_special=True)[:1]
    candidates = first
    while True:
        stretch = decoder.constrained(GrammarMatcher(compile_calls(decoder.model, tool_format, candidates)))
        if stretch.ended == "length":
            turn.finished = False
            return
        written = json.loads(stretch.text)
        call = Call(written["name"], written["arguments"])
        if call in turn.calls:
            return  # the model repeats itself: nothing new will come
        turn.calls.append(call)
        if len(turn.calls) == MAX_CALLS or decoder.remaining <= 0:
            return
        decoder.give(tool_format.end, special=True)
        if decoder.choose([another, closing]) == 1:
            return
        decoder.give(tool_format.separator + tool_format.begin, special=True)
        candidates = tools
