"""DeepSeek: fenced JSON in V3, bare JSON in V3.1, elements that say whether a value is a string from V3.2 on.

The bars are U+FF5C and the blocks U+2581; they are no ASCII.
"""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat, Variant
from punchcard.tags.styles import STRING_OR_NOT, Style

_STOP = ("<｜end▁of▁sentence｜>",)
_THINK = Frame("<think>", "</think>")
_CALLS = (
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
)
_UNSURE = "whether the marks are special tokens, and what the prompt begins a chat without thoughts with"


def _dsml(
    name: str, models: tuple[str, ...], section: str, space: str, names: tuple[str, ...], **more: object
) -> ToolFormat:
    """The layout of V3.2 and later, with the name of the section and what stands before the names of elements."""
    return ToolFormat(
        name=name,
        models=models,
        section_begin=f"\n\n<｜DSML｜{section}>\n",
        begin=f'<｜DSML｜{space}invoke name="',
        between='">\n',
        end=f"</｜DSML｜{space}invoke>\n",
        section_end=f"</｜DSML｜{section}>",
        arguments=Style(
            f'<｜DSML｜{space}parameter name="',
            ('" string="{type}">',),
            f"</｜DSML｜{space}parameter>\n",
            types=STRING_OR_NOT,
        ),
        reasoning=(_THINK,),
        markers=("｜DSML｜", "<think>", "</think>"),
        stop=_STOP,
        unsure="that ｜DSML｜ is one token; " + _UNSURE,
        detection=Detection(template=((f"<｜DSML｜{section}>",), ("｜DSML｜", section)), names=names),
        **more,  # type: ignore[arg-type]
    )


FORMATS = (
    ToolFormat(
        name="deepseek_v3_r1",
        models=("DeepSeek-V3", "DeepSeek-V3-0324", "DeepSeek-R1", "DeepSeek-R1-0528"),
        section_begin="<｜tool▁calls▁begin｜>",
        begin="<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        between="\n```json\n",
        end="\n```<｜tool▁call▁end｜>",
        separator="\n",
        section_end="<｜tool▁calls▁end｜>",
        variants=(
            Variant("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n", "<｜tool▁call▁end｜>"),
            Variant("<｜tool▁call▁begin｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>"),
        ),
        reasoning=(Frame("<think>\n", "\n</think>\n\n"),),
        markers=(*_CALLS, "<think>", "</think>"),
        stop=_STOP,
        unsure=_UNSURE,
        detection=Detection(
            template=(
                ("<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>", "```json"),
                ("<｜tool▁call▁begin｜>", "'function'"),
                ("<｜User｜>",),
            ),
            tokens=("<｜tool▁calls▁begin｜>",),
            names=("deepseek-v3", "deepseek-r1"),
        ),
    ),
    ToolFormat(
        name="deepseek_v3_1",
        models=("DeepSeek-V3.1", "V3.1-Terminus", "V3.2-Exp"),
        section_begin="<｜tool▁calls▁begin｜>",
        begin="<｜tool▁call▁begin｜>",
        between="<｜tool▁sep｜>",
        end="<｜tool▁call▁end｜>",
        section_end="<｜tool▁calls▁end｜>",
        reasoning=(_THINK,),
        markers=(*_CALLS, "<think>", "</think>"),
        stop=_STOP,
        unsure=_UNSURE,
        detection=Detection(
            template=(("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "thinking"),),
            names=("deepseek-v3.1", "deepseek-v3.2-exp", "v3.1-terminus", "v3.2-exp"),
        ),
    ),
    _dsml(
        "deepseek_v3_2",
        ("DeepSeek-V3.2",),
        "function_calls",
        "",
        ("deepseek-v3.2", "v3.2-speciale"),
        result="<function_results>\n<result>{content}</result>\n</function_results>",
    ),
    _dsml(
        "deepseek_v4",
        ("DeepSeek-V4", "DeepSeek-V4-Flash"),
        "tool_calls",
        "",
        ("deepseek-v4",),
        result="<tool_result>{content}</tool_result>",
    ),
    _dsml(
        "deepseek_v4_1",
        ("DeepSeek-V4.1-Flash",),
        " calls",
        " ",
        ("deepseek-v4.1",),
        confidence="medium",
        result="<tool_result>{content}</tool_result>",
    ),
)
