"""Gemma 4 and FunctionGemma: an object without quotes, with strings between marks. (Gemma 3 is in `llama`.)"""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat
from punchcard.tags.styles import Items, Style


def _relaxed(delimiter: str) -> Style:
    return Style(
        after=(":",),
        opening="{",
        between=",",
        closing="}",
        delimiter=delimiter,
        items=Items(between=","),
        nested="same",
        names=r"[A-Za-z_][A-Za-z0-9_.-]*",
        alphabetical=True,
    )


FORMATS = (
    ToolFormat(
        name="gemma4",
        models=("Gemma-4 E2B, E4B, 12B, 26B-A4B, 31B",),
        begin="<|tool_call>call:",
        between="",
        end="<tool_call|>",
        arguments=_relaxed('<|"|>'),
        reasoning=(Frame("<|channel>thought\n", "\n<channel|>"),),
        calls_end_reasoning=True,
        markers=(
            "<|tool_call>",
            "<tool_call|>",
            '<|"|>',
            "<|channel>",
            "<channel|>",
            "<|tool_response>",
            "<tool_response|>",
        ),
        stop=("<turn|>", "<|tool_response>"),
        detection=Detection(
            template=(("<|tool_call>call:",), ("<|tool_call>", '<|"|>')), tokens=("<|tool_call>",), names=("gemma-4",)
        ),
        result='<|tool_response>response:{name}{value:<|"|>{content}<|"|>}<tool_response|>',
    ),
    ToolFormat(
        name="functiongemma",
        models=("functiongemma-270m-it",),
        begin="<start_function_call>call:",
        between="",
        end="<end_function_call>",
        arguments=_relaxed("<escape>"),
        markers=(
            "<start_function_call>",
            "<end_function_call>",
            "<escape>",
            "<start_function_response>",
            "<end_function_response>",
        ),
        stop=("<end_of_turn>", "<start_function_response>"),
        confidence="medium",
        detection=Detection(
            template=(("<start_function_call>",),), tokens=("<start_function_call>",), names=("functiongemma",)
        ),
        result="<start_function_response>response:{name}{value:<escape>{content}<escape>}<end_function_response>",
    ),
)
