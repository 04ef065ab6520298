"""Cohere Command: a list between marks (R7B and later), elements (the fifth generation), a fenced list (R and R+)."""

from __future__ import annotations

from punchcard.formats.base import INDEX0, Detection, Frame, Json, ToolFormat
from punchcard.tags.styles import Style

_THINKING = Frame("<|START_THINKING|>", "<|END_THINKING|>")
_RESPONSE = Frame("<|START_RESPONSE|>", "<|END_RESPONSE|>")
_TEXT = Frame("<|START_TEXT|>", "<|END_TEXT|>")
_STOP = ("<|END_OF_TURN_TOKEN|>",)

FORMATS = (
    ToolFormat(
        name="cohere_cmd3_cmd4",
        models=("Command-R7B", "Command-A", "Command-A-Reasoning", "Command-A-Plus, North Code"),
        section_begin="<|START_ACTION|>[\n    ",
        begin=f'{{"tool_call_id": "{INDEX0}", "tool_name": "',
        between='", "parameters": ',
        end="}",
        separator=",\n    ",
        section_end="\n]<|END_ACTION|>",
        call_id=INDEX0,
        call_keys=("tool_name", "parameters"),
        reasoning=(_THINKING,),
        text=(_RESPONSE, _TEXT),
        markers=(
            "<|START_ACTION|>",
            "<|END_ACTION|>",
            _THINKING.begin,
            _THINKING.end,
            _RESPONSE.begin,
            _RESPONSE.end,
            _TEXT.begin,
            _TEXT.end,
        ),
        stop=_STOP,
        detection=Detection(
            template=(("<|START_ACTION|>", "<|START_OF_TURN_TOKEN|>"),),
            tokens=("<|START_ACTION|>",),
            names=("command-r7b", "command-a"),
        ),
    ),
    ToolFormat(
        name="cohere_cofl",
        models=("Cohere Command, fifth generation (cmd5)",),
        section_begin="<cofl:tool_calls>",
        begin=f'<cofl:tool_call id="{INDEX0}" name="',
        between='">',
        end="</cofl:tool_call>",
        section_end="</cofl:tool_calls>",
        call_id=INDEX0,
        arguments=Style(
            '<cofl:value name="',
            ('" type="{type}">',),
            "</cofl:value>",
            types={
                "string": "raw",
                **dict.fromkeys(("number", "boolean", "null"), "json"),
                "object": "dict",
                "array": "list",
            },
        ),
        reasoning=(_THINKING,),
        text=(_TEXT,),
        markers=("<cofl:tool_calls>", "</cofl:tool_calls>", _THINKING.begin, _THINKING.end, _TEXT.begin, _TEXT.end),
        stop=_STOP,
        confidence="low",
        unsure="there are several variants, and which model has which is not known",
        detection=Detection(template=(("<cofl:tool_calls>",),), names=("cmd5",)),
    ),
    ToolFormat(
        name="command_r_plus",
        models=("Command-R", "Command-R+ (2024)"),
        section_begin="Action:\n```json\n[\n    ",
        begin='{\n        "tool_name": "',
        between='",\n        "parameters": ',
        end="\n    }",
        separator=",\n    ",
        section_end="\n]```",
        arguments=Json("indented"),
        call_keys=("tool_name", "parameters"),
        trigger="named",
        gap="\n",
        stop=_STOP,
        detection=Detection(
            template=(("Action:", "directly-answer"), ("<|START_OF_TURN_TOKEN|>", "Action:")), names=("command-r",)
        ),
        system="You can use these tools:\n{tools}\nWrite 'Action:' and a JSON list of calls, such as\n{example}",
        result="<results>\n{content}</results>",
    ),
)
