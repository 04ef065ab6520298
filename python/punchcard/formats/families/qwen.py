"""Qwen: one `<tool_call>` block for each call, with a JSON object in it up to Qwen 3, with elements from 3-Coder on.

The Coder models of 2.5 write a fence or the bare object in place of the tag, which they do not know (after it they
would end the answer): the frame that the model chose is left as it is.
"""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat, Variant
from punchcard.tags.styles import PYTHON_WORDS, Style

THINK = Frame("<think>\n", "\n</think>\n\n")
TOOL_CALL_TAGS = ("<tool_call>", "</tool_call>", "<think>", "</think>")

FORMATS = (
    ToolFormat(
        name="qwen_json",
        models=("Qwen2.5 (also VL, Omni, Coder)", "QwQ", "Qwen3", "Qwen3-Next", "Qwen3-VL", "MiMo-VL", "Reka-Edge"),
        begin='<tool_call>\n{"name": "',
        between='", "arguments": ',
        end="}\n</tool_call>",
        separator="\n",
        call_keys=("name", "arguments"),
        gap="\n",
        reasoning=(THINK,),
        markers=(*TOOL_CALL_TAGS, "<tool_response>", "</tool_response>"),
        stop=("<|im_end|>",),
        detection=Detection(
            template=(
                ("<tool_call>", '{\\"name\\": <function-name>'),
                ("<tool_call>", '{"name": <function-name>'),
                ("<tool_call>\\n{",),
            ),
            names=("qwen2.5", "qwen3", "qwq"),
        ),
        shown="lines",
        instruction=(
            "You are a helpful assistant. Call functions where they serve the request, one call for each thing that is "
            "asked for. Answer in words where no function serves the request."
        ),
        # The template of 2.5 shows the object in doubled braces, and some copy that.
        drift=r"(?:```(?:json|xml)?\s*)?(?:<tools?>\s*)?\[?\s*\{?",
        drift_end=(r"\}", r"\]", r"</tools?>", "```"),
    ),
    ToolFormat(
        name="qwen_tagged",
        models=(
            "Qwen3-Coder",
            "Qwen3.5",
            "Qwen3.6",
            "Qwen3.8",
            "Nemotron-3",
            "Step-3.5, 3.7, 5",
            "Granite-4.2",
            "Nanbeige4.2",
        ),
        begin="<tool_call>\n<function=",
        between=">\n",
        end="</function>\n</tool_call>",
        separator="\n",
        # Words that are no strings are printed by Python, lists and objects as JSON.
        arguments=Style("<parameter=", (">\n",), "\n</parameter>\n", words=PYTHON_WORDS),
        variants=(Variant("<function=", ">\n", "</function>"),),
        gap="\n\n",
        reasoning=(THINK,),
        markers=TOOL_CALL_TAGS,
        stop=("<|im_end|>",),
        detection=Detection(
            template=(("<tool_call>", "<function=", "<parameter="),),
            names=(
                "qwen3-coder",
                "qwen3.5",
                "qwen3.6",
                "qwen3.8",
                "nemotron-3",
                "step-3.5",
                "step-3.7",
                "step-5",
                "granite-4.2",
                "nanbeige4.2",
            ),
        ),
        result="<tool_response>\n{content}\n</tool_response>\n",
    ),
)
