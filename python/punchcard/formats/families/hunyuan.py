"""Tencent Hunyuan: a JSON list between tags (A13B and the dense ones), pairs of keys and values (Hy3)."""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat
from punchcard.tags.styles import Style

_S = ":opensource"  # a suffix of the checkpoint, which others may have otherwise
_HY3_TAGS = tuple(
    f"<{end}{name}{_S}>" for name in ("tool_calls", "tool_call", "arg_key", "arg_value", "think") for end in ("", "/")
)

FORMATS = (
    ToolFormat(
        name="hunyuan_a13b",
        models=("Hunyuan-A13B", "Hunyuan 0.5B to 7B"),
        section_begin="<tool_calls>[",
        begin='{"name": "',
        between='", "arguments": ',
        end="}",
        separator=", ",
        section_end="]</tool_calls>",
        call_keys=("name", "arguments"),
        reasoning=(Frame("<think>\n", "\n</think>\n"),),
        text=(Frame("<answer>\n", "\n</answer>"),),
        bare=True,
        stop=("<|eos|>",),
        detection=Detection(template=(("<tool_calls>", "<|extra_0|>"), ("<|extra_4|>",)), names=("hunyuan",)),
        shown="list",
        result="<tool_response>{content}</tool_response>",
    ),
    ToolFormat(
        name="hy3",
        models=("Hy3",),
        section_begin=f"<tool_calls{_S}>\n",
        begin=f"<tool_call{_S}>",
        between=f"<tool_sep{_S}>\n",
        end=f"</tool_call{_S}>\n",
        section_end=f"</tool_calls{_S}>",
        arguments=Style(f"<arg_key{_S}>", (f"</arg_key{_S}>\n<arg_value{_S}>",), f"</arg_value{_S}>\n"),
        reasoning=(Frame(f"<think{_S}>", f"</think{_S}>"),),
        markers=(*_HY3_TAGS, f"<tool_sep{_S}>"),
        stop=("<｜hy_eos:opensource｜>",),
        unsure="other checkpoints have another suffix, or none",
        detection=Detection(
            template=((f"<tool_calls{_S}>",), ("<tool_sep",)), tokens=(f"<tool_calls{_S}>",), names=("hy3", "hy4")
        ),
    ),
)
