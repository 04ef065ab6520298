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
from punchcard.generation import Decoder, Stretch
from punchcard.model_grammars import compile_calls
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
    if candidates is None:
        return _prose_turn(decoder, tool_format, tools)
    turn = Turn()
    if candidates:
        decoder.give(tool_format.opener, special=True)
        _write_calls(decoder, tool_format, candidates, tools, turn)
    elif tool_format.empty is not None:
        decoder.give(tool_format.empty, special=True)
    return turn


def _prose_turn(decoder: Decoder, tool_format: ToolFormat, tools: Sequence[Tool]) -> Turn:
    """The model answers as it likes, until it begins a call."""
    trigger = decoder.model.tokenize(tool_format.trigger, parse_special=True)
    drift = re.compile(tool_format.drift_pattern(tool.name for tool in tools)) if tools else None
    begun = ""

    def call_begins(tokens: Sequence[int]) -> bool:
        nonlocal begun
        # Where the trigger is one token, the same characters spelled by others are prose.
        tail = decoder.spell(tokens[-len(trigger) - 8 :])
        if tokens[-1] == trigger[0] if len(trigger) == 1 else tool_format.trigger in tail:
            begun = "trained"
        elif drift is not None and drift.match(decoder.spell(tokens)):
            begun = "drifted"
        return bool(begun)

    stretch = decoder.free(until=call_begins if tools else None)
    turn = Turn(stretch.text.strip(), finished=stretch.ended != "length")
    if begun == "trained":
        prose = stretch.text.rpartition(tool_format.trigger)[0]
        _keep(decoder, stretch, prose)
        turn.text = prose.strip()
        decoder.give(tool_format.opener, special=True)
        _write_calls(decoder, tool_format, tools, tools, turn)
    elif begun == "drifted" and drift is not None:
        turn.text = ""
        _write_drifted_calls(decoder, tool_format, drift, stretch, tools, turn)
    return turn


def _write_drifted_calls(
    decoder: Decoder,
    tool_format: ToolFormat,
    drift: re.Pattern[str],
    stretch: Stretch,
    tools: Sequence[Tool],
    turn: Turn,
) -> None:
    """Writes calls into ``turn`` where the model frames them in its own way, in which it goes on best. ``stretch``
    ends with the beginning of the first call."""
    names = {tool.name: tool for tool in tools}
    while match := drift.match(stretch.text):
        if match["name"] is None:
            return  # the model asks for a function that there is not: to call another one would be worse than none
        _keep(decoder, stretch, match["frame"])
        written = _write_call(decoder, tool_format, [names[match["name"]]], turn)
        if not written or len(turn.calls) == MAX_CALLS:
            return

        def settled(tokens: Sequence[int]) -> bool:
            # Either another call begins, or what follows is the end of the frame.
            text = decoder.spell(tokens)
            return drift.match(text) is not None or text.strip(" \n,")[:1] not in ("", "{")

        stretch = decoder.free(until=settled)


def _keep(decoder: Decoder, stretch: Stretch, text: str) -> None:
    """Takes back what the stretch wrote after ``text``."""
    kept = len(stretch.tokens)
    while kept and len(decoder.spell(stretch.tokens[:kept])) > len(text):
        kept -= 1
    decoder.retract(len(stretch.tokens) - kept)
    # A token that reaches beyond the text went with the rest; what belonged to the text is written again.
    decoder.give(text[len(decoder.spell(stretch.tokens[:kept])) :])


def _write_calls(
    decoder: Decoder, tool_format: ToolFormat, first: Sequence[Tool], tools: Sequence[Tool], turn: Turn
) -> None:
    """Writes the rest of a section of calls, after its opener, into ``turn``."""
    closing = decoder.model.tokenize(tool_format.section_end, parse_special=True)[:1] or decoder.model.eos_token_ids
    another = decoder.model.tokenize(tool_format.separator, parse_special=True)[:1]
    candidates = first
    while _write_call(decoder, tool_format, candidates, turn):
        if len(turn.calls) == MAX_CALLS or decoder.remaining <= 0:
            return
        decoder.give(tool_format.end, special=True)
        if decoder.choose([another, closing]) == 1:
            return
        decoder.give(tool_format.separator + tool_format.begin, special=True)
        candidates = tools


def _write_call(decoder: Decoder, tool_format: ToolFormat, candidates: Sequence[Tool], turn: Turn) -> bool:
    """Writes one call into ``turn``. False if it was cut off, or is there already."""
    stretch = decoder.constrained(GrammarMatcher(compile_calls(decoder.model, tool_format, candidates)))
    if stretch.ended == "length":
        turn.finished = False
        return False
    written = json.loads(stretch.text)
    call = Call(written["name"], written["arguments"])
    if call in turn.calls:
        return False  # the model repeats itself: nothing new will come
    turn.calls.append(call)
    return True
