"""SmolLM2: all calls in one JSON list, between tags that are plain text; an empty list where no tool serves.

Its chat template knows no tools. The small sizes were hardly trained for calls: descriptions and schemas in the prompt
confuse more than they help, while an example for each tool shows all there is to know, its name, its purpose and the
shape of its arguments. They favour some tools over others whatever is asked, which the calibrated choice evens out. Of
a result they would make up a story, so a run ends with its calls and their results.
"""

from __future__ import annotations

from punchcard.formats.base import ToolFormat

FORMAT = ToolFormat(
    name="smollm2",
    markers=("SmolLM",),
    section_begin="<tool_call>[",
    begin="",
    end="",
    separator=",",
    section_end="]</tool_call>",
    empty="<tool_call>[]</tool_call>",
    system="Answer with the function call that the request asks for.",
    result="Result: {content}",
    always_calls=True,
    calls_once=True,
    compact=True,
    examples=True,
    calibrate=True,
)
