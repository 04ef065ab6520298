"""Structural tags: free text, marked regions, tool calls and schemas in one constraint.

A structural tag is a tree of formats. It is written as Python objects or as JSON, in the form that XGrammar, vLLM and
SGLang share, and becomes a grammar expression:

    tag = structural_tag({"type": "structural_tag", "format": {"type": "any_text"}})
    tag.to_expr()

`docs/structural-tags.md` describes the formats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationError

from ..errors import GrammarError
from .base import NO_END, Format, Place, refusal
from .combined import (
    OptionalFormat,
    OrFormat,
    PlusFormat,
    RepeatFormat,
    SequenceFormat,
    StarFormat,
    TagFormat,
    TagsWithSeparatorFormat,
)
from .dispatch import DispatchFormat, TokenDispatchFormat, TokenTriggeredTagsFormat, TriggeredTagsFormat
from .expressions import Expr
from .leaves import (
    AnyTextFormat,
    AnyTokensFormat,
    ConstStringFormat,
    ExcludeTokenFormat,
    GrammarFormat,
    JSONSchemaFormat,
    LarkFormat,
    QwenXMLParameterFormat,
    RegexFormat,
    TokenFormat,
    read_schema,
)

__all__ = [
    "AnyFormat",
    "AnyTextFormat",
    "AnyTokensFormat",
    "ConstStringFormat",
    "DispatchFormat",
    "ExcludeTokenFormat",
    "Format",
    "GrammarFormat",
    "JSONSchemaFormat",
    "LarkFormat",
    "OptionalFormat",
    "OrFormat",
    "PlusFormat",
    "QwenXMLParameterFormat",
    "RegexFormat",
    "RepeatFormat",
    "SequenceFormat",
    "StarFormat",
    "StructuralTag",
    "TagFormat",
    "TagsWithSeparatorFormat",
    "TokenDispatchFormat",
    "TokenFormat",
    "TokenTriggeredTagsFormat",
    "TriggeredTagsFormat",
    "structural_tag",
]

#: Any of the formats; ``type`` says which.
AnyFormat: TypeAlias = Annotated[
    AnyTextFormat
    | AnyTokensFormat
    | ConstStringFormat
    | DispatchFormat
    | ExcludeTokenFormat
    | GrammarFormat
    | JSONSchemaFormat
    | LarkFormat
    | OptionalFormat
    | OrFormat
    | PlusFormat
    | QwenXMLParameterFormat
    | RegexFormat
    | RepeatFormat
    | SequenceFormat
    | StarFormat
    | TagFormat
    | TagsWithSeparatorFormat
    | TokenDispatchFormat
    | TokenFormat
    | TokenTriggeredTagsFormat
    | TriggeredTagsFormat,
    Field(discriminator="type"),
]

for _format in (
    SequenceFormat,
    OrFormat,
    OptionalFormat,
    StarFormat,
    PlusFormat,
    RepeatFormat,
    TagFormat,
    TagsWithSeparatorFormat,
    TriggeredTagsFormat,
    DispatchFormat,
    TokenTriggeredTagsFormat,
    TokenDispatchFormat,
):
    _format.model_rebuild(_types_namespace={"AnyFormat": AnyFormat, "TagFormat": TagFormat, **globals()})


class StructuralTag(Format):
    """A whole output: one format, in the envelope that request bodies have it in."""

    type: Literal["structural_tag"] = "structural_tag"
    format: AnyFormat

    def to_expr(self) -> Expr:
        return self.format._followed_by(NO_END, Place("format"))


def structural_tag(value: StructuralTag | Format | Mapping[str, Any] | str) -> StructuralTag:
    """A structural tag, from objects, JSON data or JSON text.

    Besides ``{"type": "structural_tag", "format": {...}}`` this takes a format alone, and the older form of vLLM and
    SGLang, ``{"structures": [{"begin", "schema", "end"}], "triggers": [...]}``.

    Raises:
        GrammarError: the tag is malformed; the field ``path`` says where.
    """
    if isinstance(value, StructuralTag):
        return value
    if isinstance(value, Format):
        return StructuralTag(format=value)
    if isinstance(value, str):
        value = _parsed(value)
    if not isinstance(value, Mapping):
        raise GrammarError(
            f"A structural tag is an object, not {type(value).__name__}",
            hint='It looks like {"type": "structural_tag", "format": {...}}',
            path="",
        )
    data = dict(value)
    if "structures" in data:
        return _older_form(data)
    if data.get("type") != "structural_tag" and "format" not in data:
        data = {"format": data}
    return _read(data)


def _read(data: dict[str, Any]) -> StructuralTag:
    try:
        return StructuralTag.model_validate(data)
    except ValidationError as error:
        raise refusal(error, data) from None
    except RecursionError:
        raise GrammarError(
            "The structural tag is nested too deeply", hint="Use a grammar with rules", path=""
        ) from None


def _parsed(source: str) -> Any:
    try:
        return json.loads(source)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"The structural tag is not JSON: {error}", hint="Mend the JSON text", path="") from None


def _older_form(data: dict[str, Any]) -> StructuralTag:
    """Reads ``{"structures": [...], "triggers": [...]}``."""
    unknown = set(data) - {"type", "structures", "triggers"}
    if unknown:
        raise Place(min(unknown)).error("There is no such field", "Remove it, or mend its spelling")
    place = Place("structures")
    structures = data["structures"]
    if not isinstance(structures, list) or not structures:
        raise place.error("structures is not a list of tags", 'Each is {"begin": ..., "schema": ..., "end": ...}')
    tags = []
    for index, structure in enumerate(structures):
        at = place.item(index)
        fields = dict(structure) if isinstance(structure, Mapping) else {}
        if set(fields) != {"begin", "schema", "end"}:
            raise at.error("A structure has begin, schema and end, and no more", "Add or remove fields")
        try:
            schema = read_schema(fields["schema"])
        except ValueError as error:
            raise at.field("schema").error(str(error), "It is a JSON Schema") from None
        try:
            content = {"type": "json_schema", "json_schema": schema}
            tags.append(TagFormat.model_validate({"begin": fields["begin"], "content": content, "end": fields["end"]}))
        except ValidationError as error:
            raise refusal(error, {**fields, "content": {}}, at.path) from None
    if not isinstance(data.get("triggers"), list):
        raise Place("triggers").error("triggers is not a list of texts", "List the beginnings of the tags")
    return StructuralTag(format=TriggeredTagsFormat(triggers=data["triggers"], tags=tags))
