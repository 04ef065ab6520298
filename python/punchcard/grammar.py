"""Grammars: what may be written, whatever the tokens are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any, Literal, TypeAlias

from .errors import GrammarError, InvalidSchemaError, PunchcardError
from .limits import Limits
from .report import Report, report_from_core

#: A JSON Schema: a dict, a bool, JSON text, or a Python type (a Pydantic model, or what Pydantic's TypeAdapter takes).
Schema: TypeAlias = Any

_PROFILES: dict[str, dict[str, Any]] = {
    "generate": {
        "property_order": "declared",
        "whitespace": "bounded",
        "outer_whitespace": False,
        "number_spelling": "plain",
        "string_escapes": "minimal",
    },
    "spec": {
        "property_order": "any",
        "whitespace": "any",
        "outer_whitespace": True,
        "number_spelling": "any",
        "string_escapes": "any",
    },
}

#: Spaces or tabs of indentation after a line break, with ``whitespace="bounded"``.
_INDENTATION = 64


class Grammar:
    """A set of texts, made by one of the ``from_...`` methods. `GrammarCompiler.compile` compiles it for a vocabulary.

    Example:
        >>> grammar = Grammar.from_json_schema({"type": "integer", "minimum": 3})
        >>> grammar.report.example
        '3'
    """

    def __init__(self, kind: Literal["json_schema", "regex"], text: str, options: dict[str, Any]) -> None:
        """Use one of the ``from_...`` methods instead."""
        self._kind = kind
        self._text = text
        self._options = options

    @classmethod
    def from_regex(cls, pattern: str, *, limits: Limits | None = None) -> Grammar:
        """The texts that a regular expression matches from the beginning to the end.

        Args:
            pattern: ECMA-262 in Unicode mode, as in JSON Schema's ``pattern``.
            limits: against hostile patterns.
        """
        if not isinstance(pattern, str):
            raise GrammarError("A regular expression is given as its text", hint="Pass pattern.pattern")
        return cls("regex", pattern, cls.from_json_schema(True, limits=limits)._options)

    @classmethod
    def from_json_schema(
        cls,
        schema: Schema,
        *,
        profile: Literal["generate", "spec"] = "generate",
        strict: bool = False,
        draft: str | None = None,
        resources: Mapping[str, Any] | None = None,
        property_order: Literal["declared", "any"] | None = None,
        whitespace: Literal["bounded", "any", "none"] | int | None = None,
        outer_whitespace: bool | None = None,
        number_spelling: Literal["plain", "any"] | None = None,
        string_escapes: Literal["minimal", "any"] | None = None,
        assert_formats: bool = True,
        on_unsupported: Literal["error", "report"] = "error",
        limits: Limits | None = None,
    ) -> Grammar:
        """The JSON documents that a schema admits.

        Args:
            schema: a dict, a bool, JSON text, a Pydantic model or any type that Pydantic's TypeAdapter takes.
            profile: ``"spec"`` admits every spelling, white space and order that JSON and JSON Schema admit;
                ``"generate"`` its useful subset for a language model. The profile sets the options below that are None.
            strict: objects that declare properties and do not say ``additionalProperties`` admit no others.
            draft: dialect where ``$schema`` is silent: ``"4"``, ``"6"``, ``"7"``, ``"2019-09"``, ``"2020-12"`` (the
                default) or the URI of one.
            resources: further documents for ``$ref``, by URI. Nothing is ever fetched.
            property_order: ``"declared"`` (declared properties in order, then others) or ``"any"``.
            whitespace: ``"bounded"`` (one space, or one line break and indentation), ``"any"``, ``"none"``, or the
                most characters of indentation after a line break.
            outer_whitespace: white space may also stand before and after the whole text.
            number_spelling: ``"plain"`` (no exponent, no needless digit) or ``"any"``.
            string_escapes: ``"minimal"`` (only what must be escaped) or ``"any"``.
            assert_formats: enforce ``format``.
            on_unsupported: ``"error"``, or ``"report"``: a keyword that cannot be enforced is left out, and is an entry
                of ``report.not_enforced``.
            limits: against hostile schemas.

        The schema is read when the grammar is compiled, or its `report` asked for; that is when errors of the schema
        are raised.
        """
        if profile not in _PROFILES:
            raise PunchcardError(f"profile={profile!r} is not known", hint="Expected 'generate' or 'spec'")
        options = dict(_PROFILES[profile])
        given = {
            "property_order": property_order,
            "whitespace": whitespace,
            "outer_whitespace": outer_whitespace,
            "number_spelling": number_spelling,
            "string_escapes": string_escapes,
        }
        options.update({name: value for name, value in given.items() if value is not None})
        options["whitespace"] = _white_space(options["whitespace"])
        options.update(strict=strict, draft=draft or "2020-12", assert_formats=assert_formats)
        options["resources"] = [(uri, schema_text(document)) for uri, document in (resources or {}).items()]
        options.update(on_unsupported=on_unsupported, limits=asdict(limits or Limits()))
        return cls("json_schema", schema_text(schema), options)

    @cached_property
    def report(self) -> Report:
        """What each keyword became, what is not enforced, what it costs, and an example of a document.

        Raises:
            InvalidSchemaError: not JSON, or not a valid schema.
            UnsupportedSchemaError: a keyword that cannot be enforced; names keyword and JSON pointer.
            UnsatisfiableSchemaError: no value satisfies the schema.
            LimitError: a limit against hostile schemas was passed.
        """
        from ._core import report_json_schema

        if self._kind != "json_schema":
            raise PunchcardError("Only the grammar of a JSON Schema has a report", hint="Use Grammar.from_json_schema")

        return report_from_core(report_json_schema(self._text, self._options))

    def __repr__(self) -> str:
        text = self._text if len(self._text) <= 60 else self._text[:57] + "..."
        kind = {"json_schema": "JSON Schema", "regex": "regular expression"}[self._kind]
        return f"<Grammar of the {kind} {text}>"


def _white_space(value: str | int) -> int | None:
    """None: any run. 0: none. Otherwise one more than the most characters of indentation."""
    if value == "any":
        return None
    if value == "none":
        return 0
    if value == "bounded":
        return _INDENTATION + 1
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10_000:
        return value + 1
    raise PunchcardError(
        f"whitespace={value!r} is no option", hint="Expected 'bounded', 'any', 'none' or a number from 0 to 10000"
    )


def schema_text(schema: Schema) -> str:
    """The JSON text of a schema, whatever it was given as."""
    if isinstance(schema, str):
        return schema
    if not isinstance(schema, (dict, bool)):
        from .schemas import pydantic_schema

        schema = pydantic_schema(schema)
    try:
        return json.dumps(schema, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise InvalidSchemaError(
            "The schema is nested too deeply, or contains itself",
            hint="Name its parts with $defs and $ref",
            pointer="",
            keyword="",
        ) from None
    except (TypeError, ValueError) as error:
        raise InvalidSchemaError(
            f"The schema is not JSON: {error}",
            hint="Use plain dicts, lists, strings and numbers",
            pointer="",
            keyword="",
        ) from None
