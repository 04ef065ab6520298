"""The JSON Schema of a call, made of the schemas of several tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from punchcard.schemas import JsonSchema, map_schema
from punchcard.tools import Tool


def call_schema(tools: Sequence[Tool]) -> JsonSchema:
    """The schema of ``{"name": ..., "arguments": ...}`` for any of ``tools``.

    Each tool's definitions move to the root under the tool's name, and its references follow them.
    """
    definitions: dict[str, Any] = {}
    branches = []
    for tool in tools:
        parameters = _hoisted(tool, definitions)
        branches.append(
            {
                "type": "object",
                "properties": {"name": {"const": tool.name}, "arguments": parameters},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    schema: JsonSchema = branches[0] if len(branches) == 1 else {"anyOf": branches}
    if definitions:
        schema["$defs"] = definitions
    return schema


def _hoisted(tool: Tool, definitions: dict[str, Any]) -> Any:
    """The parameters of ``tool``, their definitions moved into ``definitions``."""
    parameters = dict(tool.parameters)
    own = {keyword: parameters.pop(keyword) for keyword in ("$defs", "definitions") if keyword in parameters}
    escaped = quote(tool.name.replace("~", "~0").replace("/", "~1"), safe="~")
    whole_is_used = False

    def moved(schema: JsonSchema) -> JsonSchema:
        nonlocal whole_is_used
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return schema
        for keyword in own:
            if reference.startswith(f"#/{keyword}/"):
                rest = reference[len(keyword) + 3 :]
                return {**schema, "$ref": f"#/$defs/{escaped}.{rest}"}
        whole_is_used = True
        return {**schema, "$ref": f"#/$defs/{escaped}{reference[1:]}"}

    parameters = map_schema(parameters, moved)
    for entries in own.values():
        for name, definition in entries.items():
            definitions[f"{tool.name}.{name}"] = map_schema(definition, moved)
    if not whole_is_used:
        return parameters
    definitions[tool.name] = parameters
    return {"$ref": f"#/$defs/{escaped}"}
