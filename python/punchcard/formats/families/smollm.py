"""SmolLM2: all calls in one JSON list, between tags that are plain text; an empty list where no tool serves. SmolLM3:
blocks as Qwen writes them.

The chat template of SmolLM2 knows no tools. The sizes below 1.7B were hardly trained for calls: descriptions and
schemas in the prompt confuse more than they help, while an example for each tool shows all there is to know, its name,
its purpose and the shape of its arguments. What the examples show is what the model writes, so their layout is free to
choose: without spaces and line breaks, these models find the right tool more often. They favour some tools over others
whatever is asked, which the calibrated choice evens out. Of a result they would make up a story, so a run ends with its
calls and their results.
"""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, Json, ToolFormat
from punchcard.formats.families.qwen import TOOL_CALL_TAGS

FORMATS = (
    ToolFormat(
        name="smollm2",
        models=("SmolLM2-1.7B-Instruct",),
        section_begin="<tool_call>[\n",
        begin='{"name": "',
        between='", "arguments": ',
        end="}",
        separator=",\n",
        section_end="\n]</tool_call>",
        call_keys=("name", "arguments"),
        empty="<tool_call>[]</tool_call>",
        stop=("<|im_end|>",),
        confidence="medium",
        detection=Detection(template=(("named SmolLM, trained by Hugging Face",),), names=("smollm2", "smollm-")),
        system=(
            "You are an expert in composing functions. Answer with nothing but the calls that the question asks for, "
            "in the form {example}, or with <tool_call>[]</tool_call> if none serves.\n<tools>[{tools}]</tools>"
        ),
        always_calls=True,
    ),
    ToolFormat(
        name="smollm2_small",
        models=("SmolLM2-135M, 360M Instruct",),
        section_begin="<tool_call>[",
        begin='{"name":"',
        between='","arguments":',
        end="}",
        separator=",",
        section_end="]</tool_call>",
        arguments=Json("compact"),
        call_keys=("name", "arguments"),
        empty="<tool_call>[]</tool_call>",
        stop=("<|im_end|>",),
        detection=Detection(
            template=(("named SmolLM, trained by Hugging Face",),), names=("smollm2-135m", "smollm2-360m")
        ),
        system="Answer with the function call that the request asks for.",
        result="Result: {content}",
        always_calls=True,
        calls_once=True,
        examples=True,
        calibrate=True,
    ),
    ToolFormat(
        name="smollm3",
        models=("SmolLM3-3B",),
        begin='<tool_call>\n{"name": "',
        between='", "arguments": ',
        end="}\n</tool_call>",
        separator="\n",
        call_keys=("name", "arguments"),
        reasoning=(Frame("<think>\n", "\n</think>\n"),),
        markers=(*TOOL_CALL_TAGS, "<tool_response>", "</tool_response>", "<code>", "</code>"),
        stop=("<|im_end|>",),
        unsure="the ids of its tokens",
        detection=Detection(
            template=(("named SmolLM, trained by Hugging Face", "/no_think"), ("xml_tools", "python_tools")),
            names=("smollm3",),
        ),
        result="{content}",
    ),
)
