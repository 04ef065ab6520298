"""Qwen 2.5 (also Coder), Qwen 3, QwQ: one JSON object in a `<tool_call>` block for each call.

The chat template shows the tools itself. The Coder models write a fence or the bare object in place of the tag, which
they do not know (after it they would end the answer): the frame that the model chose is left as it is.
"""

from __future__ import annotations

from punchcard.formats.base import ToolFormat

FORMAT = ToolFormat(
    name="qwen_json",
    markers=("<tool_call>\\n{", '{"name": <function-name>'),
    section_begin="",
    begin="<tool_call>\n",
    end="\n</tool_call>",
    separator="\n",
    section_end="",
    empty=None,
    system=(
        "You may call functions to serve the user. These are the functions:\n<tools>\n{tools}\n</tools>\n"
        "For each call write a JSON object with its name and arguments within tags:\n"
        '<tool_call>\n{"name": <name>, "arguments": <arguments>}\n</tool_call>'
    ),
    result="<tool_response>\n{content}\n</tool_response>",
    instruction=(
        "You are a helpful assistant. Call functions where they serve the request, one call for each thing that is "
        "asked for. Answer in words where no function serves the request."
    ),
    # The template of 2.5 shows the object in doubled braces, and some copy that.
    drift=r"(?:```(?:json|xml)?\s*)?(?:<tools?(?:_call)?>\s*)?\[?\s*\{?",
    compact=True,
)
