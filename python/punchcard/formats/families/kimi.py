"""Kimi: JSON behind an id that holds the name (K2), elements that say their type (K3)."""

from __future__ import annotations

from punchcard.formats.base import INDEX0, INDEX1, NAME, Detection, Frame, ToolFormat, Variant
from punchcard.tags.styles import STYLES

FORMATS = (
    ToolFormat(
        name="kimi_k2",
        models=("Kimi-K2", "K2-0905", "K2-Thinking", "K2.5"),
        section_begin="<|tool_calls_section_begin|>",
        begin="<|tool_call_begin|>functions.",
        between=f":{INDEX0}<|tool_call_argument_begin|>",
        end="<|tool_call_end|>",
        section_end="<|tool_calls_section_end|>",
        call_id=f"functions.{NAME}:{INDEX0}",
        # The id is not always written as it was trained.
        variants=(
            Variant("<|tool_call_begin|>functions", f":{INDEX0}<|tool_call_argument_begin|>", "<|tool_call_end|>"),
            Variant("<|tool_call_begin|>functions.", f" : {INDEX0}<|tool_call_argument_begin|>", "<|tool_call_end|>"),
            Variant("<|tool_call_begin|>functions.", "<|tool_call_argument_begin|>", "<|tool_call_end|>"),
            Variant("<|tool_call_begin|>", f":{INDEX0}<|tool_call_argument_begin|>", "<|tool_call_end|>"),
            Variant("<|tool_call_begin|>functions", f"{INDEX0}<|tool_call_argument_begin|>", "<|tool_call_end|>"),
            Variant("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"),
        ),
        reasoning=(Frame("<think>", "</think>"),),
        calls_end_reasoning=True,
        markers=(
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "<think>",
            "</think>",
        ),
        stop=("<|im_end|>",),
        unsure="what K2.5 begins its thoughts with, and its TypeScript style of tools",
        detection=Detection(
            template=(("<|tool_calls_section_begin|>",),),
            tokens=("<|tool_calls_section_begin|>",),
            names=("kimi-k2", "k2-0905", "k2-thinking", "k2.5"),
        ),
        result="## Return of {id}\n{content}",
    ),
    ToolFormat(
        name="kimi_k3",
        models=("Kimi-K3",),
        section_begin="<|open|>tools<|sep|>",
        begin='<|open|>call tool="',
        between=f'" index="{INDEX1}"<|sep|>',
        end="<|close|>call<|sep|>",
        section_end="<|close|>tools<|sep|>",
        closing="<|close|>message<|sep|>",
        arguments=STYLES["kimi_k3_xml"],
        reasoning=(Frame("<|open|>think<|sep|>", "<|close|>think<|sep|>"),),
        text=(Frame("<|open|>response<|sep|>", "<|close|>response<|sep|>"),),
        markers=("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"),
        stop=("<|end_of_msg|>",),
        detection=Detection(
            template=(("<|open|>", "<|sep|>", "<|end_of_msg|>"),), tokens=("<|end_of_msg|>",), names=("kimi-k3",)
        ),
    ),
)
