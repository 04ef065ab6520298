"""The schemas of tools' arguments as they come: from servers that write null for a keyword they have nothing to say in,
and of values that are no objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from punchcard.errors import PunchcardError, ToolError
from punchcard.grammar import check_schema, schema_text
from punchcard.schemas import JsonSchema

#: Keywords that may be null, or hold values rather than schemas.
_VALUES = frozenset(("const", "default", "enum", "example", "examples"))
_MAY_BE_NULL = frozenset(("const", "default", "example"))
_MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
#: Schemas within each other; what is deeper stays as it is.
_MOST_DEPTH = 200


def without_nulls(schema: Any, depth: int = 0) -> Any:
    """The schema without the keywords that are null: they count as absent. A member whose schema is null may be
    anything. Where there is no null, the schema itself."""
    if not isinstance(schema, Mapping) or depth > _MOST_DEPTH:
        return schema
    kept = {key: value for key, value in schema.items() if value is not None or key in _MAY_BE_NULL}
    changed = len(kept) < len(schema)
    for key, value in kept.items():
        made = value if key in _VALUES else _within(key, value, depth + 1)
        changed = changed or made is not value
        kept[key] = made
    return kept if changed else schema


def _within(key: str, value: Any, depth: int) -> Any:
    """The value of a keyword, without the nulls in its schemas."""
    if isinstance(value, list):
        return _unless_same(value, [without_nulls(item, depth) for item in value])
    if key in _MAPS and isinstance(value, Mapping):
        made = {name: {} if inner is None else without_nulls(inner, depth) for name, inner in value.items()}
        return made if any(made[name] is not value[name] for name in made) else value
    return without_nulls(value, depth)


def _unless_same(old: list[Any], new: list[Any]) -> list[Any]:
    return new if any(a is not b for a, b in zip(old, new, strict=True)) else old


def object_schema(name: str, schema: JsonSchema | bool) -> dict[str, Any]:
    """The schema of the arguments of the tool ``name``, which admits objects only.

    Raises `SchemaError` if it is malformed, and `ToolError` if it admits no object; both have the field ``tool``.
    """
    from punchcard.tags.parameters import schema_kinds

    try:
        check_schema(schema_text(schema), {})
    except PunchcardError as error:
        raise blamed(name, error) from error
    kinds = schema_kinds(schema, schema)
    if "object" not in kinds:
        declared = ", ".join(sorted(kinds)) or "nothing"
        raise ToolError(
            f"The parameters of {name} admit {declared} only, but arguments are always an object",
            hint='Give a schema with "type": "object"',
            tool=name,
        )
    if isinstance(schema, bool):
        return {"type": "object"}
    if kinds == {"object"}:
        return schema
    beside = {"allOf": [{"$ref": schema["$ref"]}, *schema.get("allOf", [])]} if "$ref" in schema else {}
    # Older drafts take nothing beside a reference.
    return {**{key: value for key, value in schema.items() if key != "$ref"}, "type": "object", **beside}


def blamed(tool: str, error: PunchcardError, make: Callable[..., PunchcardError] | None = None) -> PunchcardError:
    """The error, saying whose arguments it is about."""
    fields = {**error.fields, "tool": tool}
    return (make or type(error))(f"The arguments of {tool}: {error.message}", hint=error.hint, **fields)
