"""Tool formats: how each model family reads tools and writes calls.

One module a family; `base` says what an entry is.
"""

from __future__ import annotations

from punchcard.errors import PunchcardError
from punchcard.formats import qwen_json, smollm2
from punchcard.formats.base import Call, Message, ToolFormat

FORMATS: dict[str, ToolFormat] = {module.FORMAT.name: module.FORMAT for module in (qwen_json, smollm2)}

# Where nothing tells the family: the most common format.
_DEFAULT = qwen_json.FORMAT


def detect_format(chat_template: str | None, model_name: str = "") -> ToolFormat:
    """The format of a model, by the marks that its chat template or its name bears."""
    for tool_format in FORMATS.values():
        if any(mark in (chat_template or "") or mark.lower() in model_name.lower() for mark in tool_format.markers):
            return tool_format
    return _DEFAULT


def get_format(name: str) -> ToolFormat:
    """A format by its name. Raises `PunchcardError` for an unknown one."""
    try:
        return FORMATS[name]
    except KeyError:
        raise PunchcardError(f"There is no tool format {name!r}", hint=f"Known are {', '.join(FORMATS)}") from None


__all__ = ["FORMATS", "Call", "Message", "ToolFormat", "detect_format", "get_format"]
