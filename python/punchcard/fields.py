"""`Field`: what an argument or a model's attribute must satisfy beyond its type.

It stands where Pydantic's own `Field` would: inside `Annotated`, or as a default. What it returns is a Pydantic
`FieldInfo`, so it works in functions, models, dataclasses and typed dicts alike, and every constraint is both written
into the JSON Schema (so that the grammar enforces it) and checked when arguments are converted.

    def set_lights(room: str, brightness: Annotated[int, Field(ge=0, le=100)] = 50): ...
    def set_mode(mode: str = Field(description="how to heat", enum=["eco", "comfort"])): ...
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pydantic
from pydantic.annotated_handlers import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema, to_jsonable_python

from punchcard.errors import ToolError


class _Missing:
    """Marks an option that was not given, where ``None`` is a value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


def Field(
    default: Any = MISSING,
    *,
    default_factory: Callable[[], Any] | None = None,
    description: str | None = None,
    enum: Sequence[Any] | None = None,
    const: Any = MISSING,
    ge: float | None = None,
    le: float | None = None,
    gt: float | None = None,
    lt: float | None = None,
    multiple_of: float | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    pattern: str | None = None,
    format: str | None = None,
    min_items: int | None = None,
    max_items: int | None = None,
    unique_items: bool | None = None,
    examples: Sequence[Any] | None = None,
) -> Any:
    """Describes and constrains one argument.

    ``default`` (or ``default_factory``) makes it optional; ``description`` and ``examples`` are read by the model.
    ``enum`` lists the admitted JSON values, ``const`` is the only one; ``ge``, ``le``, ``gt``, ``lt`` and
    ``multiple_of`` bound numbers (inclusive: ``ge``, ``le``); ``min_length`` and ``max_length`` count code points,
    ``pattern`` is a regular expression that must match somewhere in the string, ``format`` a JSON Schema format name;
    ``min_items``, ``max_items`` and ``unique_items`` are for lists. Each names the JSON Schema keyword that it becomes.

    Raises `ToolError` for options that exclude each other.
    """
    if default is not MISSING and default_factory is not None:
        raise ToolError("Field takes default or default_factory, not both")
    if (min_length is not None and min_items is not None) or (max_length is not None and max_items is not None):
        raise ToolError("Field bounds a string (min_length, max_length) or a list (min_items, max_items), not both")
    if enum is not None and not enum:
        raise ToolError("Field(enum=[]) admits no value", hint="List at least one value")

    options: dict[str, Any] = {
        "description": description,
        "examples": None if examples is None else list(examples),
        "ge": ge,
        "le": le,
        "gt": gt,
        "lt": lt,
        "multiple_of": multiple_of,
        "min_length": min_length if min_length is not None else min_items,
        "max_length": max_length if max_length is not None else max_items,
        "pattern": pattern,
        "default_factory": default_factory,
    }
    options = {name: value for name, value in options.items() if value is not None}
    if default is not MISSING:
        options["default"] = default
    info = pydantic.Field(**options)

    keywords: dict[str, Any] = {}
    if enum is not None:
        keywords["enum"] = [to_jsonable_python(value) for value in enum]
    if const is not MISSING:
        keywords["const"] = to_jsonable_python(const)
    if format is not None:
        keywords["format"] = format
    if unique_items:
        keywords["uniqueItems"] = True
    if keywords:
        info.metadata.append(_Keywords(keywords))
    return info


@dataclass(frozen=True)
class _Keywords:
    """JSON Schema keywords for which Pydantic has no option. Lives in a field's metadata, where Pydantic asks it for
    its part of the validator and of the schema."""

    keywords: dict[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._validate, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), **self.keywords}

    def _validate(self, value: Any, handler: Callable[[Any], Any]) -> Any:
        result = handler(value)
        # The values of enum and const are JSON: compare with what came in, or with what it became.
        spellings = {_canonical(value), _canonical(result)}
        allowed = self.keywords.get("enum", [])
        if "const" in self.keywords:
            allowed = [self.keywords["const"]]
        if allowed and not any(_canonical(choice) in spellings for choice in allowed):
            choices = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in allowed)
            raise PydanticCustomError("punchcard_enum", "Input should be one of {choices}", {"choices": choices})
        if self.keywords.get("uniqueItems") and len({_canonical(item) for item in value}) < len(value):
            raise PydanticCustomError("punchcard_unique_items", "Items should be unique")
        return result


def _canonical(value: Any) -> str:
    """One spelling for equal JSON values: ``1`` and ``1.0`` agree, ``1`` and ``true`` do not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    plain = to_jsonable_python(value, fallback=repr)
    return json.dumps(plain, sort_keys=True, ensure_ascii=False)
