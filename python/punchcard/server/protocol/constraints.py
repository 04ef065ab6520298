"""Constraints on an answer, in the spellings of OpenAI's API and of vLLM's, as grammars."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from punchcard.errors import PunchcardError
from punchcard.grammar import Grammar
from punchcard.notation import is_lark
from punchcard.server.errors import BadRequest, refusal
from punchcard.server.protocol.common import Items, Part

Schema = dict[str, Any] | bool


class TextFormat(Part):
    type: Literal["text"]


class JsonObjectFormat(Part):
    """Any JSON object."""

    type: Literal["json_object"]


class NamedSchema(Part):
    """A JSON Schema. ``strict`` closes objects that do not say ``additionalProperties``; it is enforced either way."""

    name: str | None = None
    description: str | None = None
    schema_: Schema | None = Field(None, alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(Part):
    type: Literal["json_schema"]
    json_schema: NamedSchema


class StructuralTagFormat(Part):
    """A structural tag, in either of its two forms; see docs/structural-tags.md."""

    model_config = ConfigDict(extra="allow", strict=True)
    type: Literal["structural_tag"]


ResponseFormat = Annotated[
    TextFormat | JsonObjectFormat | JsonSchemaFormat | StructuralTagFormat, Field(discriminator="type")
]


class StructuredOutputs(Part):
    """What an answer must be, in one of several ways, as vLLM has them, and ``lark``."""

    json_: Schema | str | None = Field(None, alias="json")
    regex: str | None = None
    choice: Annotated[Items[str], Field(min_length=1)] | None = None
    grammar: str | None = Field(None, description="EBNF or a Lark grammar, as its first rule tells")
    lark: str | None = None
    json_object: bool | None = None
    structural_tag: str | dict[str, Any] | None = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    disable_fallback: bool = False
    whitespace_pattern: None = None


def response_format_grammar(form: Any, limit: int) -> Grammar | None:
    """The grammar of a response format; `None` for any text. ``limit``: bytes of a schema.

    Raises `BadRequest` if it is malformed or too large. What is wrong in a schema itself is found when it is compiled.
    """
    param = "response_format"
    match form:
        case JsonObjectFormat():
            return Grammar.from_json_schema({"type": "object"})
        case JsonSchemaFormat():
            named = form.json_schema
            return json_grammar(named.schema_, bool(named.strict), limit, f"{param}.json_schema.schema")
        case StructuralTagFormat():
            return _structural_tag(form.model_dump(exclude_unset=True), limit, param)
    return None


def json_grammar(schema: Schema | str | None, strict: bool, limit: int, param: str, **options: Any) -> Grammar:
    """The grammar of a JSON Schema; of any object where there is none. Raises `BadRequest` if it is too large."""
    if schema is None:
        schema = {"type": "object"}
    check_size(schema, limit, param)
    return _read(param, lambda: Grammar.from_json_schema(schema, strict=strict, **options))


def structured_grammar(wanted: StructuredOutputs, limit: int, param: str = "structured_outputs") -> Grammar:
    """The grammar of vLLM's structured outputs. Raises `BadRequest` if it is malformed or too large."""
    kinds = ("json_", "regex", "choice", "grammar", "lark", "json_object", "structural_tag")
    given = [kind for kind in kinds if getattr(wanted, kind) not in (None, False) or _is_schema(wanted, kind)]
    if len(given) != 1:
        named = ", ".join(kind.rstrip("_") for kind in given or kinds)
        raise BadRequest(f"{param} wants exactly one of {named}", param=param)
    kind = given[0]
    value = getattr(wanted, kind)
    param = f"{param}.{kind.rstrip('_')}"
    check_size(value, limit, param)
    options: dict[str, Any] = {"whitespace": "none"} if wanted.disable_any_whitespace else {}
    match kind:
        case "json_":
            return json_grammar(value, wanted.disable_additional_properties, limit, param, **options)
        case "json_object":
            return json_grammar(None, False, limit, param, **options)
        case "regex":
            return _read(param, lambda: Grammar.from_regex(value))
        case "choice":
            return Grammar.union(*map(Grammar.from_text, value))
        case "structural_tag":
            return _structural_tag(value, limit, param)
    lark = kind == "lark" or is_lark(value)
    return _read(param, lambda: Grammar.from_lark(value) if lark else Grammar.from_ebnf(value))


def _is_schema(wanted: StructuredOutputs, kind: str) -> bool:
    return kind == "json_" and wanted.json_ is False


def _structural_tag(value: Any, limit: int, param: str) -> Grammar:
    check_size(value, limit, param)
    return _read(param, lambda: Grammar.from_structural_tag(value))


def check_size(value: Any, limit: int, param: str) -> None:
    """Raises `BadRequest` if the schema or grammar has more than ``limit`` bytes."""
    try:
        size = len((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode())
    except RecursionError:
        raise BadRequest(f"{param} is nested too deeply", param=param, code="limit_exceeded") from None
    if size > limit:
        raise BadRequest(
            f"{param} has {size} bytes; this server takes at most {limit}", param=param, code="limit_exceeded"
        )


def _read(param: str, make: Any) -> Grammar:
    try:
        made: Grammar = make()
        return made
    except PunchcardError as error:
        refused = refusal(error)
        refused.param = param
        raise refused from error
