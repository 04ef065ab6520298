"""IBM Granite: one list behind a mark (3), blocks as Qwen writes them (4), and the 20B model for function calling."""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat, Variant
from punchcard.formats.families.qwen import TOOL_CALL_TAGS

FORMATS = (
    ToolFormat(
        name="granite3",
        models=("Granite-3.0 to 3.3",),
        section_begin="<|tool_call|>[",
        begin='{"name": "',
        between='", "arguments": ',
        end="}",
        separator=", ",
        section_end="]",
        call_keys=("name", "arguments"),
        variants=(Variant('<tool_call>[{"name": "', '", "arguments": ', "}]"),),
        reasoning=(Frame("<think>", "</think>"),),
        text=(Frame("<response>", "</response>"),),
        bare=True,
        markers=("<|tool_call|>",),
        stop=("<|end_of_text|>",),
        confidence="medium",
        unsure="the reasoning of 3.2",
        detection=Detection(
            template=(("<|tool_call|>", "<|start_of_role|>"), ("<|start_of_role|>", "available_tools")),
            names=("granite-3",),
        ),
        shown="list",
        result="{content}",
    ),
    ToolFormat(
        name="granite4",
        models=("Granite-4.0", "Granite-4.1"),
        begin='<tool_call>\n{"name": "',
        between='", "arguments": ',
        end="}\n</tool_call>",
        separator="\n",
        call_keys=("name", "arguments"),
        gap="\n",
        markers=TOOL_CALL_TAGS,
        stop=("<|end_of_text|>",),
        detection=Detection(template=(("<tool_call>", "<|start_of_role|>", "<|end_of_role|>"),), names=("granite-4",)),
        shown="lines",
    ),
    ToolFormat(
        name="granite_20b_fc",
        models=("granite-20b-functioncalling",),
        begin='<function_call> {"name": "',
        between='", "arguments": ',
        end="}",
        separator="\n",
        call_keys=("name", "arguments"),
        stop=("<|endoftext|>",),
        confidence="medium",
        unsure="how results go back",
        detection=Detection(template=(("<|function_call_library|>",),), names=("granite-20b-functioncalling",)),
        system="<|function_call_library|>\n{tools}",
        result="{content}",
    ),
)
