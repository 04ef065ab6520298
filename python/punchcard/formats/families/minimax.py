"""MiniMax: JSON lines (M1), elements (M2), elements inside elements (M3)."""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat
from punchcard.tags.styles import Items, Style

_NS = "]<]minimax[>["  # before every tag of M3, and one token

FORMATS = (
    ToolFormat(
        name="minimax_m1",
        models=("MiniMax-M1", "MiniMax-Text-01"),
        section_begin="<tool_calls>\n",
        begin='{"name": "',
        between='", "arguments": ',
        end="}\n",
        section_end="</tool_calls>",
        call_keys=("name", "arguments"),
        reasoning=(Frame("<think>\n", "\n</think>\n\n"),),
        stop=("<end_of_sentence>",),
        unsure="that <tool_calls> is plain text",
        detection=Detection(
            template=(("<beginning_of_sentence>", "<tool_calls>"), ("<beginning_of_sentence>", "tool_setting")),
            names=("minimax-m1", "minimax-text"),
        ),
        system="# Tools\nYou may call one or more tools.\n<tools>\n{tools}\n</tools>\nCall them like this:\n{example}",
        result="tool result: {content}\n\n",
    ),
    ToolFormat(
        name="minimax_m2",
        models=("MiniMax-M2", "M2.1", "M2.5", "M2.7"),
        section_begin="\n<minimax:tool_call>\n",
        begin='<invoke name="',
        between='">\n',
        end="</invoke>\n",
        section_end="</minimax:tool_call>",
        arguments=Style('<parameter name="', ('">',), "</parameter>\n"),
        reasoning=(Frame("<think>\n", "\n</think>\n\n"),),
        markers=("<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>"),
        stop=("[e~[",),
        detection=Detection(
            template=(("<minimax:tool_call>",),),
            tokens=("<minimax:tool_call>",),
            names=("minimax-m2", "m2.1", "m2.5", "m2.7"),
        ),
        result="<response>{content}</response>",
    ),
    ToolFormat(
        name="minimax_m3",
        models=("MiniMax-M3",),
        section_begin=f"{_NS}<tool_call>\n",
        begin=f'{_NS}<invoke name="',
        between='">',
        end=f"{_NS}</invoke>\n",
        section_end=f"{_NS}</tool_call>",
        arguments=Style(
            f"{_NS}<",
            (">",),
            f"{_NS}</{{key}}>",
            # A null is left out.
            words=("true", "false", ""),
            items=Items("", f"{_NS}<item>", f"{_NS}</item>", "", ""),
            nested="same",
            names=r"[A-Za-z_][A-Za-z0-9_.-]*",
        ),
        reasoning=(Frame("<mm:think>", "</mm:think>"),),
        markers=(_NS, "<mm:think>", "</mm:think>"),
        stop=("[e~[",),
        detection=Detection(template=(("<mm:think>",), (_NS,)), tokens=(_NS,), names=("minimax-m3",)),
        result="<response>{content}</response>",
    ),
)
