"""Turns that a chat template shows.

Templates are particular. Some print a system turn only where it comes first, and drop any later one without a word;
some refuse it; some want the user and the assistant to alternate. So the shape of a conversation is tried out, with a
text of its own in each turn. Where the template refuses it, or a text does not show, turns are merged, a little at a
time, until it takes them and shows all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from punchcard.chat import Message
from punchcard.errors import ModelError
from punchcard.formats.template import render_template

#: What a turn is to a template: its role, whether it has words, the calls it makes (or the id of the call it answers).
_Shape = tuple[tuple[str, bool, tuple[str, ...]], ...]
_Definitions = Sequence[dict[str, Any]] | None


def with_known_roles(turns: list[Message]) -> list[Message]:
    """The turns with those of a developer as the system's, which is what older models know, and with one system turn at
    the beginning in place of several."""
    turns = [{**turn, "role": "system"} if turn["role"] == "developer" else turn for turn in turns]
    count = next((at for at, turn in enumerate(turns) if turn["role"] != "system"), len(turns))
    if count < 2:
        return turns
    return [{**turns[0], "content": _joined(*(turn["content"] for turn in turns[:count]))}, *turns[count:]]


def fitted(
    template: str | None, turns: list[Message], definitions: _Definitions, *, written_arguments: bool = False
) -> list[Message]:
    """The turns as the template can show them, merged no more than is needed. ``written_arguments``: it wants the
    arguments of calls as JSON text.

    Raises `ModelError` if it drops a system turn however they are merged. What it refuses however they are merged is
    returned as it is: rendering it says why.
    """
    if template is None:
        return turns
    kind = 0 if definitions is None else 1 + bool(definitions)
    way = _way(template, _shape(turns), kind, written_arguments)
    if way is None:
        later = next((at for at, turn in enumerate(turns) if at and turn["role"] == "system"), 0)
        raise ModelError(
            f"The model's chat template does not show the system turn at place {later} of the conversation",
            hint="Put its words into the first system turn, or into a turn of the user",
        )
    return _WAYS[way](turns)


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _as_they_are(turns: list[Message]) -> list[Message]:
    return turns


def _alternating(turns: list[Message]) -> list[Message]:
    """Turns of one role in a row become one, if they are nothing but words."""
    merged: list[Message] = []
    for turn in turns:
        last = merged[-1] if merged else None
        words = turn["role"] != "tool" and not turn.get("tool_calls")
        if last is not None and words and last["role"] == turn["role"] and not last.get("tool_calls"):
            merged[-1] = {**last, "content": _joined(last["content"], turn["content"])}
        else:
            merged.append(turn)
    return merged


def _told_by_user(turns: list[Message]) -> list[Message]:
    """Later system turns become words of the user, where they stand; turns of one role in a row become one."""
    told = [{**turn, "role": "user"} if at and turn["role"] == "system" else turn for at, turn in enumerate(turns)]
    return _alternating(told)


def _told_first(turns: list[Message]) -> list[Message]:
    """The words of later system turns go to the first one; turns of one role in a row become one."""
    said = [turn["content"] for turn in turns if turn["role"] == "system"]
    others = [turn for turn in turns if turn["role"] != "system"]
    return _alternating([{"role": "system", "content": _joined(*said)}, *others] if said else others)


def _begun_by_user(turns: list[Message]) -> list[Message]:
    """As `_told_by_user`, and behind the system's turn comes one of the user, if only an empty one."""
    told = _told_by_user(turns)
    at = 1 if told and told[0]["role"] == "system" else 0
    return (
        told if told[at:] and told[at]["role"] == "user" else [*told[:at], {"role": "user", "content": ""}, *told[at:]]
    )


#: Ways to merge turns, the gentlest first.
_WAYS: tuple[Callable[[list[Message]], list[Message]], ...] = (
    _as_they_are,
    _alternating,
    _told_by_user,
    _told_first,
    _begun_by_user,
)


@lru_cache(maxsize=256)
def _way(template: str, shape: _Shape, kind: int, written_arguments: bool) -> int | None:
    """The first way in which a template shows all turns of a conversation of this shape; else the first in which it
    shows those of the system. `None` if it drops these in any way, 0 if it refuses all ways."""
    definitions = (None, [], [_TOOL])[kind]
    probes = _probes(shape, "{}" if written_arguments else {})
    refused = True
    second: int | None = None
    for way, merge in enumerate(_WAYS):
        try:
            text = render_template(template, merge(probes), definitions)
        except ModelError:
            continue
        refused = False
        hidden = {role for at, (role, words, _) in enumerate(shape) if words and _word(at) not in text}
        if not hidden:
            return way
        if "system" not in hidden and second is None:
            second = way
    return 0 if refused else second


def _shape(turns: Sequence[Message]) -> _Shape:
    return tuple(
        (
            turn["role"],
            bool(str(turn["content"]).strip()) and not turn.get("tool_calls"),
            tuple(str(call.get("id")) for call in turn.get("tool_calls", ())) or _answered(turn),
        )
        for turn in turns
    )


def _answered(turn: Message) -> tuple[str, ...]:
    return (str(turn["tool_call_id"]),) if "tool_call_id" in turn else ()


def _word(at: int) -> str:
    return f"probe-{at}-word"


def _probes(shape: _Shape, arguments: str | dict[str, Any]) -> list[Message]:
    turns: list[Message] = []
    for at, (role, words, calls) in enumerate(shape):
        turn: Message = {"role": role, "content": _word(at) if words else ""}
        if role == "assistant" and calls:
            function = {"name": "probe_tool", "arguments": arguments}
            turn["tool_calls"] = [{"type": "function", "id": call, "function": function} for call in calls]
        elif role == "tool":
            turn |= {"name": "probe_tool", **({"tool_call_id": calls[0]} if calls else {})}
        turns.append(turn)
    return turns


_TOOL = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "probe-description",
        "parameters": {"type": "object", "properties": {}},
    },
}
