"""Llama 3 and 4: a bare JSON object, or a list of Python calls; and others who write calls without any marker."""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat, Variant
from punchcard.tags.styles import PYTHON_WORDS, Items, Style

_KEYWORDS = r"[A-Za-z_][A-Za-z0-9_]*"
#: A Python dictionary.
PYTHON_DICT = Style(
    after=(": ",),
    opening="{",
    between=", ",
    closing="}",
    strings="python",
    words=PYTHON_WORDS,
    items=Items(),
    nested="same",
    keys="python",
    names=r"'[^'\\\n]*'",
)
#: The same with strings in double quotes.
QUOTED_DICT = Style(
    before='"',
    after=('": ',),
    opening="{",
    between=", ",
    closing="}",
    strings="json",
    words=PYTHON_WORDS,
    items=Items(),
    nested="same",
    names=r'[^"\\\n]*',
)
#: Keyword arguments of a Python call.
KEYWORDS = Style(after=("=",), between=", ", strings="json", words=PYTHON_WORDS, nested=QUOTED_DICT, names=_KEYWORDS)
_PLAIN_LIST = (
    "You have access to functions. If you decide to call any, answer with nothing but a list of the calls: {example}\n"
    "These are the functions, as JSON Schema:\n{tools}"
)

FORMATS = (
    ToolFormat(
        name="llama3_json",
        models=("Llama-3.1", "Llama-3.2", "Llama-3.3", "Llama-4 (JSON mode)"),
        begin='{"name": "',
        between='", "parameters": ',
        end="}",
        separator="; ",
        call_keys=("name", "parameters"),
        trigger="start",
        markers=("<|python_tag|>",),
        stop=("<|eot_id|>", "<|eom_id|>"),
        unsure="Llama-4's JSON mode depends on the prompt; several calls were not trained",
        detection=Detection(
            template=(("<|python_tag|>", "ipython", '"parameters": '), ("<|eot_id|>", "ipython", "parameters")),
            names=("llama-3.1", "llama-3.2", "llama-3.3", "llama3.1", "llama3.2", "llama3.3"),
        ),
        one_call=True,
        result="{content}",
    ),
    ToolFormat(
        name="pythonic",
        models=("Llama-3.2-1B and 3B (Meta's prompt)", "Llama-4 Scout, Maverick", "ToolACE-8B", "watt-tool"),
        section_begin="[",
        begin="",
        between="(",
        end=")",
        separator=", ",
        section_end="]",
        arguments=KEYWORDS,
        trigger="start",
        stop=("<|eot|>", "<|eot_id|>"),
        detection=Detection(
            template=(("<|header_start|>", "ipython"),),
            names=(
                "llama-4",
                "llama4",
                "toolace",
                "toolace-2-llama",
                "watt-tool",
                "llama-3.2-1b",
                "llama-3.2-3b",
            ),
        ),
        shown="list",
        system=_PLAIN_LIST,
    ),
    ToolFormat(
        name="gemma3_prompted",
        models=("Gemma-3", "Gemma-2"),
        section_begin="[",
        begin="",
        between="(",
        end=")",
        separator=", ",
        section_end="]",
        arguments=KEYWORDS,
        trigger="start",
        stop=("<end_of_turn>",),
        confidence="medium",
        unsure="there is no official format; it depends on the prompt",
        detection=Detection(
            template=(("<start_of_turn>", "<end_of_turn>"),), names=("gemma-3", "gemma-2", "gemma3", "gemma2")
        ),
        shown="list",
        system=_PLAIN_LIST,
    ),
    ToolFormat(
        name="lfm2",
        models=("LFM2", "LFM2.5"),
        section_begin="<|tool_call_start|>[",
        begin="",
        between="(",
        end=")",
        separator=", ",
        section_end="]<|tool_call_end|>",
        arguments=Style(
            after=("=",), between=", ", strings="python", words=PYTHON_WORDS, nested=PYTHON_DICT, names=_KEYWORDS
        ),
        reasoning=(Frame("<think>\n", "\n</think>\n"),),
        markers=("<|tool_call_start|>", "<|tool_call_end|>", "<think>", "</think>"),
        stop=("<|im_end|>",),
        detection=Detection(
            template=(("<|tool_list_start|>",), ("List of tools: ",)), tokens=("<|tool_call_start|>",), names=("lfm2",)
        ),
        shown="list",
        system="List of tools: {tools}",
        result="<|tool_response_start|>{content}<|tool_response_end|>",
    ),
    ToolFormat(
        name="olmo3",
        models=("Olmo-3 Instruct, Think",),
        section_begin="<function_calls>",
        begin="",
        between="(",
        end=")",
        separator="\n",
        section_end="</function_calls>",
        arguments=Style(after=("=",), between=", ", strings="json", names=_KEYWORDS),
        reasoning=(Frame("<think>", "</think>"),),
        stop=("<|im_end|>",),
        confidence="medium",
        unsure="that the tags are plain text",
        detection=Detection(template=(("<function_calls>", "<functions>"),), names=("olmo-3", "olmo3")),
        shown="list",
        system="You have access to these functions:\n<functions>{tools}</functions>\nCall them like this: {example}",
        result="{content}",
    ),
    ToolFormat(
        name="xlam",
        models=("xLAM-2 fc-r", "Hammer-2.1 (fenced)"),
        section_begin="[",
        begin='{"name": "',
        between='", "arguments": ',
        end="}",
        separator=", ",
        section_end="]",
        call_keys=("name", "arguments"),
        trigger="start",
        stop=("<|eot_id|>", "<|im_end|>"),
        detection=Detection(names=("xlam", "hammer")),
        shown="list",
        system=(
            "You have access to a set of tools. When using tools, answer with nothing but a JSON array: {example}\n"
            "These are the tools:\n{tools}"
        ),
        variants=(Variant('```json\n[{"name": "', '", "arguments": ', "}]\n```"),),
    ),
)
