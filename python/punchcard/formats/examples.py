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
    """One example for each tool, to tell them apart by. The text of an argument is its name, which tells of the tool
    what no invented text could."""
    makers = ((tool, _Maker(tool.parameters, variant, words=False)) for variant, tool in enumerate(tools))
    return [_example(tool, maker, optional=variant % 2 == 1) for variant, (tool, maker) in enumerate(makers)]


def study(tool: Tool) -> list[Example]:
    """A few examples of one tool, with optional arguments and without, to write its arguments by. Texts are invented,
    and said in the request: that shows where they come from."""
    return [_example(tool, _Maker(tool.parameters, i, words=True), optional=i != 2) for i in (1, 2, 4)]


def _example(tool: Tool, maker: _Maker, *, optional: bool) -> Example:
    arguments = maker.arguments(optional=optional)
    return example_request(tool, arguments), tool, arguments


def example_request(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Words that ask for a call of ``tool`` with ``arguments``."""
    purpose = tool.description.split("\n")[0].strip().rstrip(".") or tool.name.replace("_", " ")
    said = _say(arguments)
    return f"{purpose}: {said}" if said else purpose


def _say(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key.replace('_', ' ')} {_say(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " and ".join(_say(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value)


_WORDS = ("sunflower", "Maria", "blue box", "old map", "green tea", "seven hills", "Otto", "paper boat")


class _Maker:
    """Makes values that a schema admits, as far as patterns and formats do not matter. Different variants make
    different values. ``words``: texts are invented; otherwise a text is the name of its member."""

    def __init__(self, root: JsonSchema, variant: int, *, words: bool) -> None:
        self._root = root
        self._variant = variant
        self._words = words
        self._optional_depth = 0  # optional members are made above it; a recursive type would have no end

    def arguments(self, *, optional: bool) -> dict[str, Any]:
        self._optional_depth = 2 if optional else 0
        made = self.make(self._root, "text", 0)
        return made if isinstance(made, dict) else {}

    def make(self, schema: Any, name: str, depth: int) -> Any:
        schema = self._resolved(schema)
        if examples := schema.get("examples") or schema.get("enum"):
            return examples[self._variant % len(examples)]
        if "const" in schema:
            return schema["const"]
        for keyword in ("anyOf", "oneOf"):
            if branches := schema.get(keyword):
                return self.make(branches[0], name, depth)
        kind = schema.get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind in ("integer", "number"):
            return self._number(schema, whole=kind == "integer")
        if kind == "boolean":
            return self._variant % 2 == 0
        if kind == "array":
            return self._array(schema, name, depth)
        if kind == "object":
            return self._object(schema, depth)
        return None if kind == "null" else self._text(schema, name)

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

    def _text(self, schema: JsonSchema, name: str) -> str:
        text = _WORDS[self._variant % len(_WORDS)] if self._words else name.replace("_", " ")
        text = text.ljust(schema.get("minLength", 0), ".")
        most: int = schema.get("maxLength", len(text))
        return text[:most]

    def _array(self, schema: JsonSchema, name: str, depth: int) -> list[Any]:
        if prefix := schema.get("prefixItems"):
            return [self.make(item, name, depth + 1) for item in prefix]
        return [self.make(schema.get("items", {}), name, depth + 1)] * max(schema.get("minItems", 1), 1)

    def _object(self, schema: JsonSchema, depth: int) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        return {
            name: self.make(inner, name, depth + 1)
            for name, inner in schema.get("properties", {}).items()
            if name in required or depth < self._optional_depth
        }
