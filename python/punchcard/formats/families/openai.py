"""gpt-oss: messages on channels. Thoughts go to *analysis*, calls and words before them to *commentary*, answers to
*final*; the header of a message names its recipient."""

from __future__ import annotations

from punchcard.formats.base import ID, Detection, Frame, ToolFormat, Variant
from punchcard.tags.styles import Style

_NEXT = "<|end|><|start|>assistant"

FORMATS = (
    ToolFormat(
        name="harmony",
        models=("gpt-oss-20b", "gpt-oss-120b", "gpt-oss-safeguard"),
        begin="<|channel|>commentary to=functions.",
        between=" <|constrain|>json<|message|>",
        end="<|call|>",
        separator="<|start|>assistant",
        variants=(
            Variant("<|channel|>commentary to=functions.", "<|constrain|>json<|message|>", "<|call|>"),
            Variant("<|channel|>commentary to=functions.", "json<|message|>", "<|call|>"),
            Variant("<|channel|>commentary to=functions.", "<|message|>", "<|call|>"),
            Variant("<|channel|>commentary to=functions.", f" {ID}<|message|>", "<|call|>"),
            Variant("<|channel|>commentary to=functions.", f" <|constrain|>{ID}<|message|>", "<|call|>"),
            Variant("<|channel|>commentary to=", "<|constrain|>json<|message|>", "<|call|>"),
            Variant("<|channel|>commentary to=", f" {ID}<|message|>", "<|call|>"),
            Variant("<|channel|>commentary to=", "<|message|>", "<|call|>"),
            Variant("<|channel|>analysis to=functions.", "<|constrain|>json<|message|>", "<|call|>"),
            Variant("<|channel|>analysis to=functions.", "json<|message|>", "<|call|>"),
            Variant("<|channel|>analysis to=functions.", f" {ID}<|message|>", "<|call|>"),
            Variant("<|channel|>analysis to=functions.", "<|message|>", "<|call|>"),
            Variant(" to=functions.", "<|channel|>commentary <|constrain|>json<|message|>", "<|call|>"),
            Variant(" to=functions.", f"<|channel|>commentary {ID}<|message|>", "<|call|>"),
            Variant(" to=functions.", "<|channel|>commentary<|message|>", "<|call|>"),
            Variant(" to=functions.", "<|channel|>analysis <|constrain|>json<|message|>", "<|call|>"),
        ),
        reasoning=(Frame("<|channel|>analysis<|message|>", _NEXT),),
        text=(Frame("<|channel|>final<|message|>", "<|return|>"),),
        preamble=Frame("<|channel|>commentary<|message|>", _NEXT),
        markers=("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"),
        stop=("<|call|>", "<|return|>"),
        one_call=True,
        detection=Detection(template=(("<|channel|>", "<|message|>", "<|start|>"),), names=("gpt-oss",)),
    ),
    ToolFormat(
        name="beam",
        models=("Beam checkpoints (frame of gpt-oss, elements inside)",),
        begin=" to=",
        between="<|channel|>analysis <|constrain|>xml<|message|>",
        end="",
        separator=_NEXT,
        section_end="<|call|>",
        arguments=Style('<rfl:parameter name="', ('">\n',), "\n</rfl:parameter>", alphabetical=True),
        reasoning=(Frame("<|channel|>analysis<|message|>", _NEXT),),
        text=(Frame("<|channel|>final<|message|>", "<|return|>"),),
        trigger="named",
        markers=("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"),
        stop=("<|call|>", "<|return|>"),
        confidence="low",
        unsure="prompt and result, and what stands between two parameters",
        detection=Detection(template=(("<|channel|>", "<|message|>", "<|start|>", "rfl:parameter"),), names=("beam",)),
    ),
    ToolFormat(
        name="muse_atem",
        models=("Muse, Muse-Glimmer",),
        begin=' to=\ue005<|message|><atem:function_calls>\n<atem:invoke name="',
        between='">\n',
        end="</atem:invoke>\n</atem:function_calls>",
        separator="<|eom|><|start|>assistant",
        arguments=Style('<atem:parameter name="', ('">',), "</atem:parameter>\n"),
        variants=(
            Variant('<atem:function_calls>\n<atem:invoke name="', '">', "</atem:invoke>\n</atem:function_calls>"),
        ),
        reasoning=(Frame(" to=self<|message|>", "<|eom|><|start|>assistant"),),
        text=(Frame(" to=user<|message|>", ""),),
        trigger="named",
        markers=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
        stop=("<|eot|>",),
        detection=Detection(template=(("atem:function_calls",),), names=("muse",)),
        result='<tool_output name="{name}">\n{content}\n</tool_output>',
    ),
)
