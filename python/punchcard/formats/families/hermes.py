"""Hermes, and those who took its layout over: a JSON object in a tag, spaced like Qwen's."""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat
from punchcard.formats.families.qwen import THINK, TOOL_CALL_TAGS

FORMATS = (
    ToolFormat(
        name="hermes",
        models=("Hermes-2-Pro", "Hermes-3", "Hermes-4", "fine-tunes of NousResearch"),
        begin='<tool_call>\n{"name": "',
        between='", "arguments": ',
        end="}\n</tool_call>",
        separator="\n",
        call_keys=("name", "arguments"),
        reasoning=(THINK, Frame("<scratch_pad>\n", "\n</scratch_pad>\n")),
        markers=(*TOOL_CALL_TAGS, "<tools>", "</tools>", "<tool_response>", "</tool_response>"),
        stop=("<|im_end|>",),
        unsure="whether the tags are special tokens differs from release to release",
        detection=Detection(
            template=(("<tool_call>", "pydantic model json schema"),),
            names=("hermes", "nousresearch", "hermes-3-llama"),
        ),
        system=(
            "You are a function calling AI model. You are provided with function signatures within <tools></tools> "
            "tags. You may call one or more of them to assist with the user query.\n<tools>\n{tools}\n</tools>\n"
            "For each call return a JSON object with its name and arguments within tags:\n{example}"
        ),
    ),
    ToolFormat(
        name="longcat",
        models=("LongCat-Flash",),
        begin='<longcat_tool_call>\n{"name": "',
        between='", "arguments": ',
        end="}\n</longcat_tool_call>",
        separator="\n",
        call_keys=("name", "arguments"),
        reasoning=(Frame("<longcat_think>\n", "\n</longcat_think>\n"),),
        markers=("<longcat_tool_call>", "</longcat_tool_call>", "<longcat_think>", "</longcat_think>"),
        stop=("</longcat_s>",),
        confidence="medium",
        unsure="whether the tags are single tokens, the reasoning tags, the result and the stop token",
        detection=Detection(template=(("<longcat_tool_call>",),), tokens=("<longcat_tool_call>",), names=("longcat",)),
    ),
    ToolFormat(
        name="exaone4",
        models=("EXAONE-4.0", "K-EXAONE"),
        begin='<tool_call>{"name": "',
        between='", "arguments": ',
        end="}</tool_call>",
        separator="\n",
        call_keys=("name", "arguments"),
        reasoning=(THINK,),
        markers=(*TOOL_CALL_TAGS, "<tool_result>", "</tool_result>"),
        stop=("<|endofturn|>", "[|endofturn|]"),
        unsure="how EXAONE-4.0 (without K) declares tools and wraps results",
        detection=Detection(
            template=(("[|endofturn|]", "<tool_call>"), ("<|tool_declare|>", "<|endofturn|>")), names=("exaone",)
        ),
        result="<tool_result>{content}</tool_result>",
    ),
    ToolFormat(
        name="ernie45_thinking",
        models=("ERNIE-4.5-21B-A3B-Thinking", "ERNIE-4.5-VL-Thinking", "ERNIE-X1.1"),
        section_begin="\n",
        begin='<tool_call>\n{"name": "',
        between='", "arguments": ',
        end="}\n</tool_call>\n",
        separator="\n\n",
        call_keys=("name", "arguments"),
        reasoning=(THINK,),
        text=(Frame("<response>\n", "\n</response>\n"),),
        bare=True,
        markers=(*TOOL_CALL_TAGS, "<response>", "</response>", "<tool_output>", "</tool_output>"),
        stop=("<|im_end|>",),
        unsure="how many blank lines stand before the first call",
        detection=Detection(template=(("<tool_output>", "<global_setting>"),), names=("ernie",)),
        result="<tool_output>{content}</tool_output>",
    ),
    ToolFormat(
        name="nemotron_toolcall",
        models=("Nemotron-Nano-v2", "Llama-3.3-Nemotron-Super-v1.5"),
        section_begin="<TOOLCALL>[",
        begin='{"name": "',
        between='", "arguments": ',
        end="}",
        separator=", ",
        section_end="]</TOOLCALL>",
        call_keys=("name", "arguments"),
        gap="\n",
        reasoning=(THINK,),
        markers=("<think>", "</think>", "<TOOLCALL>", "</TOOLCALL>"),
        stop=("<SPECIAL_12>",),
        unsure="that the tags of Nano-v2 are plain text",
        detection=Detection(template=(("<TOOLCALL>",),), names=("nemotron-nano", "nemotron-super", "nemotron-ultra")),
        result="<TOOL_RESPONSE>[{content}]</TOOL_RESPONSE>",
    ),
)
