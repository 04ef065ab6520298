"""Results of calls in a conversation: each stands where its call stood, and says which tool it is from.

Some families know results by their order only, some by the name of the tool, and OpenAI's API sends neither: a result
has the id of its call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from punchcard.chat import Message

_ROLES = ("tool", "function")


def in_order(messages: Sequence[Message]) -> list[Message]:
    """The messages with the results behind an answer in the order of its calls, each with the name of its tool."""
    ordered: list[Message] = []
    names: dict[str, str] = {}  # of tools, by the ids of their calls
    at = 0
    while at < len(messages):
        message = messages[at]
        ordered.append(message)
        at += 1
        calls = message.get("tool_calls") if message.get("role") == "assistant" else None
        if isinstance(calls, (list, tuple)):
            names |= {str(call["id"]): _name(call) for call in calls if call.get("id")}
        if message.get("role") in _ROLES:  # without an answer in front of it
            ordered[-1] = _named(message, names.get(str(message.get("tool_call_id"))))
            continue
        results = []
        while at < len(messages) and messages[at].get("role") in _ROLES:
            results.append(messages[at])
            at += 1
        ordered += _matched(list(calls or ()), results, names)
    return ordered


def _matched(calls: list[Any], results: list[Message], names: Mapping[str, str]) -> list[Message]:
    """The results in the order of these calls. Those that tell of no call take the places that are left."""
    places: list[Message | None] = [None] * len(calls)
    left = []
    for result in results:
        place = next((at for at, call in enumerate(calls) if places[at] is None and _belongs(result, call)), None)
        if place is None:
            left.append(result)
        else:
            places[place] = result
    for at, call in enumerate(calls):
        if places[at] is None and left and _may_belong(left[0], call):
            places[at] = left.pop(0)
    placed = [_named(result, _name(calls[at])) for at, result in enumerate(places) if result is not None]
    return placed + [_named(result, names.get(str(result.get("tool_call_id")))) for result in left]


def _belongs(result: Message, call: Any) -> bool:
    """Whether a result says that it is of this call."""
    if result.get("tool_call_id") and call.get("id"):
        return str(result["tool_call_id"]) == str(call["id"])
    return bool(result.get("name")) and result["name"] == _name(call)


def _may_belong(result: Message, call: Any) -> bool:
    """Whether a result may be of this call: nothing says that it is of another."""
    told = result.get("tool_call_id") and call.get("id")
    return not told and result.get("name") in (None, "", _name(call))


def _name(call: Any) -> str:
    return str(call.get("function", call).get("name", ""))


def _named(result: Message, name: str | None) -> Message:
    return {**result, "name": name} if name and not result.get("name") else result
