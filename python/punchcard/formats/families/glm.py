"""GLM, and those who took its elements over: keys and values by turns, the name bare in front of them."""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat
from punchcard.tags.styles import Style

_TAGS = ("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<think>", "</think>")
_PAIRS = Style("<arg_key>", ("</arg_key><arg_value>",), "</arg_value>")
_STOP = ("<|observation|>", "<|user|>", "<|endoftext|>")

FORMATS = (
    ToolFormat(
        name="glm45",
        models=("GLM-4.5", "GLM-4.6"),
        begin="<tool_call>",
        between="\n",
        end="</tool_call>",
        separator="\n",
        arguments=Style("<arg_key>", ("</arg_key>\n<arg_value>",), "</arg_value>\n"),
        gap="\n",
        reasoning=(Frame("\n<think>", "</think>\n"),),
        markers=_TAGS,
        stop=_STOP,
        detection=Detection(
            template=(("<arg_key>{arg-key-1}</arg_key>\n",), ("<arg_key>", "[gMASK]")), names=("glm-4.5", "glm-4.6")
        ),
    ),
    ToolFormat(
        name="glm47",
        models=("GLM-4.7", "GLM-5", "GLM-5.3"),
        begin="<tool_call>",
        between="",
        end="</tool_call>",
        arguments=_PAIRS,
        reasoning=(Frame("<think>", "</think>"),),
        calls_end_reasoning=True,
        markers=_TAGS,
        stop=_STOP,
        detection=Detection(
            template=(("<tool_call>{function-name}<arg_key>", "[gMASK]"), ("[gMASK]", "</arg_key><arg_value>")),
            names=("glm-4.7", "glm-5"),
        ),
        result="<tool_response>{content}</tool_response>",
    ),
    ToolFormat(
        name="ling3",
        models=("Ling-3.0-flash", "Ring"),
        begin="<tool_call>",
        between="\n",
        end="\n</tool_call>",
        separator="\n",
        arguments=Style("<arg_key>", ("</arg_key>\n<arg_value>",), "</arg_value>"),
        gap="\n",
        reasoning=(Frame("\n<think>", "</think>"),),
        markers=_TAGS,
        stop=("<|role_end|>",),
        detection=Detection(
            template=(("<arg_key>", "<|role_end|>"), ("<role>OBSERVATION</role>",)), names=("ling-3", "ring")
        ),
    ),
    ToolFormat(
        name="laguna",
        models=("poolside Laguna-S, XS", "Spark2.5"),
        begin="<tool_call>",
        between="",
        end="</tool_call>",
        arguments=_PAIRS,
        reasoning=(Frame("<think>", "</think>"),),
        markers=_TAGS,
        stop=("</assistant>",),
        unsure="the XS models write line breaks between all tags",
        detection=Detection(
            template=(("<arg_key>", "</assistant>"), ("<arg_key>", "<available_tools>"), ("<arg_key>", "<|Bot|>")),
            names=("laguna", "spark2.5"),
        ),
        result="<tool_response>{content}</tool_response>",
    ),
    ToolFormat(
        name="iquest_q1",
        models=("IQuest-Q1",),
        begin="<iquest_tool_call>",
        between="",
        end="</iquest_tool_call>",
        arguments=_PAIRS,
        reasoning=(Frame("<think>", "</think>"),),
        markers=("<iquest_tool_call>", "</iquest_tool_call>", "<think>", "</think>"),
        confidence="low",
        unsure="markers, prompt, result and stop token",
        detection=Detection(template=(("<iquest_tool_call>",),), tokens=("<iquest_tool_call>",), names=("iquest",)),
    ),
    ToolFormat(
        name="k2_horizon",
        models=("IFM K2-Horizon",),
        section_begin="<ifm|tool_calls>",
        begin="<ifm|tool_call>",
        between="",
        end="</ifm|tool_call>",
        section_end="</ifm|tool_calls>",
        arguments=Style("<ifm|arg_key>", ("</ifm|arg_key><ifm|arg_value>",), "</ifm|arg_value>"),
        reasoning=(
            Frame("<ifm|think>", "</ifm|think>"),
            Frame("<ifm|think_fast>", "</ifm|think_fast>"),
            Frame("<ifm|think_faster>", "</ifm|think_faster>"),
        ),
        markers=("<ifm|tool_calls>", "</ifm|tool_calls>", "<ifm|tool_call>", "</ifm|tool_call>"),
        confidence="low",
        unsure="markers, prompt, result and stop token; there are two further ways to write arguments",
        detection=Detection(template=(("<ifm|tool_calls>",),), tokens=("<ifm|tool_calls>",), names=("k2-horizon",)),
    ),
)
