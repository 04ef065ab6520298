"""From a conversation to the text of a prompt.

A model's own chat template knows best how it was trained. But many templates know nothing of tools, print no calls, or
refuse what others take. So a template is tried out first, with a conversation in which every part has a name of its
own: what of it shows in the text is left to the template, and what does not is put into the words of the turns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from punchcard.chat import Call, Message
from punchcard.errors import ModelError
from punchcard.exact import read_json, write_json
from punchcard.formats.base import ID9, INDEX0, NAME, PLACEHOLDERS, ToolFormat
from punchcard.formats.examples import study, survey
from punchcard.formats.fitting import fitted, with_known_roles
from punchcard.formats.results import in_order
from punchcard.formats.template import render_template
from punchcard.formats.writing import fill, fitting_id, write_calls
from punchcard.tools import Tool

# Arrays and objects within each other, in the arguments of an earlier call.
_DEEPEST = 64

_SYSTEM = (
    "You may call functions to serve the user. These are the functions:\n{tools}\n"
    "For each call write exactly:\n{example}\nAnswer in words where no function serves the request."
)


@dataclass(frozen=True)
class Abilities:
    """What a template prints: definitions of tools, calls, and results of calls. ``written_arguments``: it wants the
    arguments of calls as JSON text. ``system``: it takes a system turn. ``no_tools``: what it takes for no tools."""

    tools: bool
    calls: bool
    results: bool
    written_arguments: bool
    system: bool
    no_tools: tuple[()] | None = None


def render_prompt(
    tool_format: ToolFormat,
    template: str | None,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    *,
    reasoning: bool | None = None,
    focus: Tool | None = None,
    eos_token: str = "",
    **variables: Any,
) -> str:
    """The text before an answer.

    ``template``: the model's own, or `None`. ``reasoning``: as `Request.reasoning`. ``focus``: the tool that will be
    called, where that is known; it adds examples of that tool where the format shows examples. ``variables``: further
    ones for the template.

    Raises `ModelError` if a message is none, or the template cannot be rendered.
    """
    able = _abilities(template, tool_format)
    variables |= {"eos_token": eos_token}
    if reasoning is not None:
        variables |= {"enable_thinking": reasoning, "thinking": reasoning}
    for index, message in enumerate(messages):
        _check_calls(message, index)
    messages = in_order(messages)
    spoken = _one_call_each(messages) if tool_format.one_call else messages
    turns = with_known_roles([_called(tool_format, message, able) for message in spoken])
    if able.tools:
        definitions = [tool.definition() for tool in tools] or able.no_tools
        turns = _with_system(turns, [tool_format.instruction] if tools and tool_format.instruction else [])
    else:
        definitions = None
        turns = _with_system(turns, [_description(tool_format, tools)] if tools else [])
        if tool_format.examples:
            shown = [*survey(tools), *(study(focus) if focus else ())]
            at = 1 if turns and turns[0]["role"] == "system" else 0
            turns[at:at] = [turn for example in shown for turn in _example(tool_format, *example)]
    if not able.results:
        turns = list(_told(tool_format, turns))
    if not able.system:
        turns = _without_system(turns)
    turns = fitted(template, turns, definitions, written_arguments=able.written_arguments)
    return render_template(template, turns, definitions, **variables)


def _description(tool_format: ToolFormat, tools: Sequence[Tool]) -> str:
    """The words that tell a model of its tools."""
    definitions = [tool.definition() for tool in tools]
    shown: list[Any] = definitions if tool_format.shown == "lines" else [d["function"] for d in definitions]
    as_list = tool_format.shown == "list"
    text = json.dumps(shown, ensure_ascii=False) if as_list else "\n".join(map(_json, shown))
    example = write_calls(tool_format, [Call("function_name", {"parameter": "value"})]).strip()
    return (tool_format.system or _SYSTEM).replace("{example}", example).replace("{tools}", text)


def _with_system(turns: list[Message], words: list[str]) -> list[Message]:
    """The turns with further words in the system turn, after the caller's own."""
    if not words:
        return turns
    own = [str(turns[0]["content"])] if turns and turns[0]["role"] == "system" else []
    return [{"role": "system", "content": "\n\n".join([*own, *words])}, *turns[len(own) :]]


def _without_system(turns: list[Message]) -> list[Message]:
    """The turns with the system's words at the beginning of the user's first turn, or as one."""
    if not turns or turns[0]["role"] != "system":
        return turns
    system, rest = turns[0], turns[1:]
    if rest and rest[0]["role"] == "user":
        content = f"{system['content']}\n\n{rest[0]['content']}"
        return [{**rest[0], "content": content}, *rest[1:]]
    return [{"role": "user", "content": system["content"]}, *rest]


def _example(tool_format: ToolFormat, request: str, tool: Tool, arguments: dict[str, Any]) -> list[Message]:
    call = write_calls(tool_format, [Call(tool.name, arguments)])
    return [{"role": "user", "content": request}, {"role": "assistant", "content": call}]


def _called(tool_format: ToolFormat, message: Message, able: Abilities) -> Message:
    """A message whose calls the template can print: with ids of the family's kind, or as text."""
    message = {"content": "", **{key: value for key, value in message.items() if value is not None}}
    message["content"] = _text(message["content"])
    if ID9 in tool_format.call_id and "tool_call_id" in message:
        message["tool_call_id"] = fitting_id(ID9, str(message["tool_call_id"]))
    if not message.get("tool_calls"):
        message.pop("tool_calls", None)
        return message
    calls = [_call(call) for call in message["tool_calls"]]
    if not able.calls:
        text = str(message["content"])
        message["content"] = text + (tool_format.gap if text else "") + write_calls(tool_format, calls)
        del message["tool_calls"]
        return message
    message["tool_calls"] = [
        {
            "type": "function",
            "id": _identity(tool_format, call, number),
            "function": {
                "name": call.name,
                "arguments": _json(call.arguments) if able.written_arguments else call.arguments,
            },
        }
        for number, call in enumerate(calls)
    ]
    return message


def _one_call_each(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages with one call in each, and its result behind it, for families that write no more."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        calls = list(message.get("tool_calls") or ())
        if len(calls) < 2:
            yield message
            continue
        results = []
        while at < len(messages) and messages[at]["role"] == "tool":
            results.append(messages[at])
            at += 1
        for number, call in enumerate(calls):
            yield {**message, "content": message.get("content") if number == 0 else "", "tool_calls": [call]}
            own = [result for result in results if call.get("id") and result.get("tool_call_id") == call["id"]]
            own = own or results[: len(results) - len(calls) + number + 1][:1]
            yield from own
            results = [result for result in results if not any(result is one for one in own)]


def _text(content: Any) -> str:
    """The text of a message's content, which may come in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text", part.get("refusal")) if isinstance(part, Mapping) else part for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise ModelError("A message holds something that is no text", hint="Only text can be read")
    return "".join(texts)


def _check_calls(message: Message, index: int) -> None:
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, (list, tuple)):
        raise ModelError(f"messages[{index}].tool_calls is no list", hint="Give the calls of the turn, or leave it out")
    for at, call in enumerate(calls):
        if not isinstance(call, Mapping) or not isinstance(call.get("function", call), Mapping):
            raise ModelError(
                f"messages[{index}].tool_calls[{at}] is no call",
                hint='A call is {"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}',
            )


def with_read_arguments(message: Message) -> Message:
    """A message in which the arguments of calls are data, where they came as JSON text. Text that is no JSON object, as
    of a call that was cut off, stays text."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    return {**message, "tool_calls": [_with_read_arguments(call) for call in calls]}


def _with_read_arguments(call: Message) -> Message:
    function = call.get("function", call)
    read = {**function, "arguments": _read_arguments(function.get("arguments"))}
    return {**call, "function": read} if "function" in call else read


def _read_arguments(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        read = read_json(arguments or "{}", strict=False)
    except (ValueError, RecursionError):
        return arguments
    return read if isinstance(read, dict) and _is_shallow(read) else arguments


def _is_shallow(value: Any) -> bool:
    """Whether values lie within each other no deeper than templates, and what walks them, can go."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return True
    return False


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def _call(call: Message) -> Call:
    function = call.get("function", call)
    arguments = _read_arguments(function.get("arguments") or {})
    if not isinstance(arguments, dict):
        # Templates print an object. What the model wrote instead is shown to it as text.
        arguments = {"arguments": arguments if isinstance(arguments, str) else _json(arguments)}
    return Call(str(function.get("name", "")), arguments, call.get("id"))


def _told(tool_format: ToolFormat, turns: Sequence[Message]) -> Iterator[Message]:
    """The turns with results of tools as words of the user; those that follow each other share a turn."""
    results: list[str] = []
    for turn in [*turns, None]:
        if turn is not None and turn["role"] in ("tool", "function"):
            words = tool_format.result.replace("{name}", str(turn.get("name", "")))
            words = words.replace("{id}", str(turn.get("tool_call_id", "")))
            results.append(words.replace("{content}", str(turn["content"])))
            continue
        if results:
            yield {"role": "user", "content": "\n".join(results)}
            results = []
        if turn is not None:
            yield turn


@lru_cache(maxsize=64)
def _abilities(template: str | None, tool_format: ToolFormat) -> Abilities:
    """What a template can do, tried out."""
    if template is None:
        return Abilities(tools=False, calls=False, results=False, written_arguments=False, system=True)
    user = {"role": "user", "content": "probe-user"}
    tool = Tool(name="probe_tool", description="probe-description", parameters={"type": "object", "properties": {}})
    no_tools = None if _tried(template, [user], None) else ()
    system = "probe-system" in _tried(template, [{"role": "system", "content": "probe-system"}, user], no_tools)
    definitions = [tool.definition()]
    tools = "probe_tool" in _tried(template, [user], definitions)
    identity = _identity(tool_format, Call("probe_call"), 0)
    result = {"role": "tool", "name": "probe_call", "tool_call_id": identity, "content": "probe-result"}
    printed, written = "", False
    for written in (False, True):
        arguments: Any = {"probe_key": "probe-value"}
        call = {"name": "probe_call", "arguments": _json(arguments) if written else arguments}
        answer = {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "id": identity, "function": call}],
        }
        printed = _tried(template, [user, answer, result], definitions if tools else no_tools)
        if calls := "probe_call" in printed and "probe-value" in printed:
            break
    if not calls:
        answer = {"role": "assistant", "content": "probe-words"}
        printed = _tried(template, [user, answer, result], definitions if tools else no_tools)
    return Abilities(tools, calls, "probe-result" in printed, written and calls, system, no_tools)


def _identity(tool_format: ToolFormat, call: Call, index: int) -> str:
    """The id of a call in a conversation: its own where the family takes it, else one of the family's kind."""
    kind = tool_format.call_id
    if not kind or kind == INDEX0:
        return call.id or (fill(kind, call, index) if kind else f"call_{index}")
    pattern = "".join(PLACEHOLDERS.get(c, ".+" if c == NAME else re.escape(c)) for c in kind)
    return call.id if call.id and re.fullmatch(pattern, call.id) else fill(kind, call, index)


def _tried(template: str, messages: list[Message], definitions: Sequence[dict[str, Any]] | None) -> str:
    try:
        return render_template(template, messages, definitions)
    except ModelError:
        return ""


_json = write_json
