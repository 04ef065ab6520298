"""GigaChat: one call behind a mark (3), elements like DeepSeek's (3.5)."""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat, Variant
from punchcard.tags.styles import STRING_OR_NOT, Style

FORMATS = (
    ToolFormat(
        name="gigachat3",
        models=("GigaChat3", "GigaChat3.1"),
        begin='<|function_call|>{"name": "',
        between='", "arguments": ',
        end="}",
        call_keys=("name", "arguments"),
        variants=(Variant('function call<|role_sep|>\n{"name": "', '", "arguments": ', "}"),),
        markers=("<|function_call|>", "<|role_sep|>"),
        stop=("<|message_sep|>", "</s>"),
        one_call=True,
        detection=Detection(
            template=(("<|function_call|>", "<|role_sep|>"), ("function call", "<|role_sep|>")), names=("gigachat3",)
        ),
    ),
    ToolFormat(
        name="gigachat3_5",
        models=("GigaChat3.5",),
        section_begin="<｜GCML｜tool_calls>\n",
        begin='<｜GCML｜invoke name="',
        between='">\n',
        end="</｜GCML｜invoke>\n",
        section_end="</｜GCML｜tool_calls>",
        arguments=Style(
            '<｜GCML｜parameter name="', ('" string="{type}">',), "</｜GCML｜parameter>\n", types=STRING_OR_NOT
        ),
        reasoning=(Frame("<think>", "</think>"),),
        markers=("｜GCML｜", "<think>", "</think>"),
        stop=("<|message_sep|>", "</s>"),
        confidence="low",
        unsure="line breaks, markers, prompt and result",
        detection=Detection(template=(("｜GCML｜",),), names=("gigachat3.5",)),
    ),
)
