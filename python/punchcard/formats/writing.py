"""Calls as a model would write them: for examples in prompts, and for templates that print no calls."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from punchcard import exact
from punchcard.chat import Call
from punchcard.formats.base import ID, ID9, ID10, INDEX0, INDEX1, NAME, PLACEHOLDERS, Json, Spacing, ToolFormat
from punchcard.tags.styles import write_object

_SEPARATORS = {"spaced": None, "compact": (",", ":"), "indented": None}
_HEX_IDS = {ID9: 9, ID10: 10, ID: 9}


def write_calls(tool_format: ToolFormat, calls: Sequence[Call]) -> str:
    """The section that holds ``calls``; without any, `ToolFormat.empty`."""
    if not calls:
        return tool_format.empty or ""
    written = []
    for index, call in enumerate(calls):
        parts = (tool_format.separator if index else tool_format.section_begin, tool_format.begin)
        head = "".join(parts)
        name = json_name(call.name) if tool_format.is_object else call.name
        arguments = write_arguments(tool_format, call.arguments)
        layout = f"{head}{name}{tool_format.between}\0{tool_format.end}"
        written.append(fill(layout, call, index).replace("\0", arguments))
    return "".join(written) + tool_format.section_end


def write_arguments(tool_format: ToolFormat, arguments: dict[str, Any]) -> str:
    """A call's arguments."""
    style = tool_format.arguments
    if not isinstance(style, Json):
        return write_object(style, arguments)
    if style.spacing == "indented":
        indented = exact.write_json(arguments, indent=4)
        return indented.replace("\n", "\n        ")
    return write_json(arguments, style.spacing)


def write_json(value: Any, spacing: Spacing = "spaced") -> str:
    return exact.write_json(value, separators=_SEPARATORS[spacing])


def json_name(name: str) -> str:
    """A tool's name inside the quotes of a JSON string."""
    return json.dumps(name, ensure_ascii=False)[1:-1]


def fill(layout: str, call: Call, index: int) -> str:
    """A layout with its placeholders filled in for call number ``index`` (from 0)."""
    for placeholder, value in ((INDEX0, str(index)), (INDEX1, str(index + 1)), (NAME, call.name)):
        layout = layout.replace(placeholder, value)
    for placeholder in (ID9, ID10, ID):
        if placeholder in layout:
            layout = layout.replace(placeholder, fitting_id(placeholder, str(call.id or f"{call.name} {index}")))
    return layout


def fitting_id(placeholder: str, given: str) -> str:
    """``given`` where it is an id of this kind, else one that is always the same for it."""
    if re.fullmatch(PLACEHOLDERS[placeholder], given):
        return given
    return hashlib.sha256(given.encode()).hexdigest()[: _HEX_IDS[placeholder]]
