"""Invented requests with their calls, made of nothing but the tools' schemas.

A small model learns the shape of a call from seeing some. An example is made of arguments that a tool's schema admits,
and of a request that says the tool's description and these arguments. Values vary from one to the next, so that none
becomes a habit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from punchcard.schemas import JsonSchema
from punchcard.tools import Tool

Example = tuple[str, Tool, dict[str, Any]]
"""A request, and the tool and arguments of the call that it asks for."""


def survey(tools: Sequence[Tool]) -> list[Example]:
    """One example for each tool."""
    return [_example(tool, variant, optional=True) for variant, tool in enumerate(tools)]


def study(tool: Tool) -> list[Example]:
    """A few examples of one tool, with optional arguments and without."""
    return [_example(tool, variant, optional=variant != 2) for variant in (1, 2, 3)]


def _example(tool: Tool, variant: int, *, optional: bool) -> Example:
    arguments = example_arguments(tool, variant, optional=optional)
    return example_request(tool, arguments), tool, arguments


def example_request(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Words that ask for a call of ``tool`` with ``arguments``."""
    purpose = tool.description.split("\n")[0].strip().rstrip(".") or tool.name.replace("_", " ")
    said = _say(arguments)
    return f"{purpose}: {said}" if said else purpose


def example_arguments(tool: Tool, variant: int = 0, *, optional: bool = True) -> dict[str, Any]:
    """Arguments that the tool's schema admits, as far as patterns and formats do not matter. Different variants give
    different values; ``optional``: with the optional ones."""
    value = _Maker(tool.parameters, variant, 2 if optional else 0).make(tool.parameters, 0)
    return value if isinstance(value, dict) else {}


def _say(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key.replace('_', ' ')} {_say(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " and ".join(_say(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value)


_WORDS = ("sunflower", "Maria", "blue box", "Lisbon", "green tea", "seven hills", "Otto", "paper boat")


class _Maker:
    def __init__(self, root: JsonSchema, variant: int, optional_depth: int) -> None:
        self._root = root
        self._variant = variant
        self._optional_depth = optional_depth  # optional members above it; a recursive type would have no end

    def make(self, schema: Any, depth: int) -> Any:
        schema = self._resolved(schema)
        if examples := schema.get("examples") or schema.get("enum"):
            return examples[self._variant % len(examples)]
        if "const" in schema:
            return schema["const"]
        for keyword in ("anyOf", "oneOf"):
            if branches := schema.get(keyword):
                return self.make(branches[0], depth)
        kind = schema.get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind in ("integer", "number"):
            return self._number(schema, whole=kind == "integer")
        if kind == "boolean":
            return self._variant % 2 == 0
        if kind == "array":
            return self._array(schema, depth)
        if kind == "object":
            return self._object(schema, depth)
        return None if kind == "null" else self._text(schema)

    def _resolved(self, schema: Any) -> JsonSchema:
        # A chain of references that leads nowhere must not hang; no real one is longer.
        for _ in range(8):
            if not isinstance(schema, dict):
                return {}
            reference = schema.get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#"):
                return schema
            target: Any = self._root
            for part in reference.split("/")[1:]:
                target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
            schema = target
        return {}

    def _number(self, schema: JsonSchema, *, whole: bool) -> float:
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        low = low if low is not None else (high - 20 if high is not None else 1)
        high = high if high is not None else low + 20
        value = low + (high - low) * (2 + self._variant % 3) / 6
        step = schema.get("multipleOf", 1 if whole or high - low > 2 else 0.1)
        rounded: float = min(max(round(value / step) * step, low), high)
        return rounded

    def _text(self, schema: JsonSchema) -> str:
        # Words that the request repeats, so that the example shows where they come from.
        text = _WORDS[self._variant % len(_WORDS)]
        text = text.ljust(schema.get("minLength", 0), ".")
        most: int = schema.get("maxLength", len(text))
        return text[:most]

    def _array(self, schema: JsonSchema, depth: int) -> list[Any]:
        if prefix := schema.get("prefixItems"):
            return [self.make(item, depth + 1) for item in prefix]
        return [self.make(schema.get("items", {}), depth + 1)] * max(schema.get("minItems", 1), 1)

    def _object(self, schema: JsonSchema, depth: int) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        return {
            name: self.make(inner, depth + 1)
            for name, inner in schema.get("properties", {}).items()
            if name in required or depth < self._optional_depth
        }
