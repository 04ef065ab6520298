"""Structural tags under XGrammar's names: the formats of `punchcard.tags`, and the older items."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from ...errors import GrammarError
from ...tags import (
    AnyFormat,
    AnyTextFormat,
    AnyTokensFormat,
    ConstStringFormat,
    DispatchFormat,
    ExcludeTokenFormat,
    GrammarFormat,
    JSONSchemaFormat,
    OptionalFormat,
    OrFormat,
    PlusFormat,
    QwenXMLParameterFormat,
    RegexFormat,
    RepeatFormat,
    SequenceFormat,
    StarFormat,
    TagFormat,
    TagsWithSeparatorFormat,
    TokenDispatchFormat,
    TokenFormat,
    TokenTriggeredTagsFormat,
    TriggeredTagsFormat,
)
from ...tags import Format as _Format
from ...tags import StructuralTag as _StructuralTag
from ...tags import structural_tag as _read
from .exception import InvalidJSONError, InvalidStructuralTagError

Format = AnyFormat

__all__ = [
    "AnyTextFormat",
    "AnyTokensFormat",
    "ConstStringFormat",
    "DispatchFormat",
    "ExcludeTokenFormat",
    "Format",
    "GrammarFormat",
    "JSONSchemaFormat",
    "OptionalFormat",
    "OrFormat",
    "PlusFormat",
    "QwenXMLParameterFormat",
    "RegexFormat",
    "RepeatFormat",
    "SequenceFormat",
    "StarFormat",
    "StructuralTag",
    "StructuralTagItem",
    "TagFormat",
    "TagsWithSeparatorFormat",
    "TokenDispatchFormat",
    "TokenFormat",
    "TokenTriggeredTagsFormat",
    "TriggeredTagsFormat",
]


class StructuralTagItem(_Format):
    """A tag of the older form: ``begin``, a value under ``schema``, ``end``."""

    begin: str
    schema_: Any = Field(alias="schema")
    end: str


class StructuralTag(_StructuralTag):
    """A whole output: one format."""

    @staticmethod
    def from_legacy_structural_tag(tags: Sequence[StructuralTagItem], triggers: list[str]) -> StructuralTag:
        """The tag that the older form stands for."""
        structures = [
            TagFormat(begin=tag.begin, content=JSONSchemaFormat(json_schema=tag.schema_), end=tag.end) for tag in tags
        ]
        return StructuralTag(format=TriggeredTagsFormat(triggers=triggers, tags=structures))

    @staticmethod
    def from_json(json_str: str | dict[str, Any]) -> StructuralTag:
        """The tag of a JSON text or of JSON data."""
        return StructuralTag(format=read(json_str).format)


def read(value: Any) -> _StructuralTag:
    """A structural tag from whatever it was given as, with XGrammar's errors."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise InvalidJSONError(f"The structural tag is not JSON: {error}", hint="Mend the JSON text") from None
    try:
        return _read(value)
    except GrammarError as error:
        raise InvalidStructuralTagError(error.message, hint=error.hint, **error.fields) from None


def from_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _StructuralTag:
    """The tag that is meant by the arguments of ``from_structural_tag``: a tag, or tags and triggers."""
    given = dict(zip(("tags", "triggers"), args, strict=False)) if len(args) == 2 else {}
    given.update(kwargs)
    if len(args) == 1 and not kwargs:
        return read(args[0])
    if set(given) == {"structural_tag"} and not args:
        return read(given["structural_tag"])
    if set(given) == {"tags", "triggers"}:
        return StructuralTag.from_legacy_structural_tag(given["tags"], given["triggers"])
    raise TypeError("from_structural_tag takes a structural tag, or tags and triggers")
