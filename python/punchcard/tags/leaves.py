"""Formats that hold no other format: constant text, schemas, patterns, grammars, free text and tokens."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt

from ..errors import PunchcardError
from ..grammar import Grammar, check_schema, schema_text
from .base import NO_END, End, Format, Place
from .expressions import (
    ANY_TEXT,
    Expr,
    TokenName,
    both,
    max_tokens,
    repeat,
    sequence,
    shortest,
    text,
    text_without,
    token,
)
from .parameters import parameters
from .styles import STYLES

#: As many as an expression counts to.
_Count = Annotated[NonNegativeInt, Field(le=2**31 - 1)]


def read_schema(value: Any) -> Any:
    """A schema as JSON data, from whatever `Grammar.from_json_schema` takes. `ValueError` if it is none."""
    if isinstance(value, (dict, bool)):
        return value
    try:
        schema = json.loads(schema_text(value))
    except (PunchcardError, ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(schema, (dict, bool)):
        raise ValueError(f"{json.dumps(schema)[:40]} is no schema: a schema is an object, true or false")
    return schema


JsonSchema = Annotated[bool | dict[str, Any], BeforeValidator(read_schema)]


class ConstStringFormat(Format):
    """This text."""

    type: Literal["const_string"] = "const_string"
    value: str

    def _expr(self, place: Place) -> Expr:
        return text(self.value)


class JSONSchemaFormat(Format):
    """Values under a JSON Schema, in the spelling of ``style``.

    Attributes:
        json_schema: the schema: a dict, a bool, JSON text, a Pydantic model or another Python type.
        style: ``"json"``, or how a model family writes the arguments of a call as XML-like elements: ``qwen_xml``,
            ``minimax_xml``, ``deepseek_xml``, ``deepseek_v4_1_xml``, ``glm_xml``, ``kimi_k3_xml``, for objects.
        newlines: of an XML-like style: whether the line breaks that the family writes around values may be there
            (``"optional"``), must (``"required"``) or must not (``"none"``).
        any_order: properties may come in any order, each once and the required ones all the same. Not in XML-like
            styles.
        max_whitespace_cnt: most white space characters in one place; 0 for none. `None`: as in `from_json_schema`.
        options: further options of `Grammar.from_json_schema`, such as ``{"profile": "spec"}``.
        excludes: texts that may not occur in the strings of an XML-like style. Refused in JSON, where a ``pattern``
            in the schema says it.
    """

    type: Literal["json_schema"] = "json_schema"
    json_schema: JsonSchema
    style: str = "json"
    newlines: Literal["optional", "required", "none"] = "optional"
    any_order: bool = False
    max_whitespace_cnt: _Count | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    excludes: list[str] = Field(default_factory=list)

    def _expr(self, place: Place) -> Expr:
        options = self._options(place)
        with place.field("json_schema").around():
            schema = schema_text(self.json_schema)
        if self.style == "json":
            if self.excludes:
                raise place.field("excludes").error(
                    "Texts cannot be excluded from the strings of JSON", "Give the strings a pattern in the schema"
                )
            with place.field("json_schema").around():
                check_schema(schema, options)
            return {"json_schema": {"schema": schema, **_unless_empty(options=options)}}
        if self.style not in STYLES:
            raise place.field("style").error(
                f"The style {self.style!r} is not covered", f"Known are json, {', '.join(STYLES)}"
            )
        if self.any_order:
            raise place.field("any_order").error(
                f"Parameters of the style {self.style} come in the order of the schema", "Leave any_order out"
            )
        if "" in self.excludes:
            raise place.field("excludes").error("An empty text occurs in every text", "Remove it")
        arguments = parameters(
            STYLES[self.style],
            self.json_schema,
            newlines=self.newlines,
            excludes=self.excludes,
            options=options,
            place=place.field("json_schema"),
        )
        with place.field("json_schema").around():
            check_schema(schema, options)
        return arguments

    def _options(self, place: Place) -> dict[str, Any]:
        """The options of the expression, checked."""
        options = dict(self.options)
        if self.any_order:
            options["property_order"] = "any"
        if self.max_whitespace_cnt is not None:
            # The engine counts what may follow the one space or line break.
            options["whitespace"] = self.max_whitespace_cnt - 1 if self.max_whitespace_cnt else "none"
        try:
            checked: dict[str, Any] = Grammar.from_json_schema(True, **options)._expr["json_schema"]["options"]
        except TypeError:
            known = sorted(set(inspect.signature(Grammar.from_json_schema).parameters) - {"schema", "check"})
            unknown = next(name for name in options if name not in known)
            raise place.field("options").error(f"There is no option {unknown!r}", f"Known are {known}") from None
        except PunchcardError as error:
            raise place.field("options").of(error) from None
        return checked


class QwenXMLParameterFormat(Format):
    """An older name of `JSONSchemaFormat` with ``style="qwen_xml"``."""

    type: Literal["qwen_xml_parameter"] = "qwen_xml_parameter"
    json_schema: JsonSchema

    def _expr(self, place: Place) -> Expr:
        return JSONSchemaFormat(json_schema=self.json_schema, style="qwen_xml")._expr(place)


class RegexFormat(Format):
    """What a regular expression (ECMA-262 with the ``u`` flag) matches as a whole."""

    type: Literal["regex"] = "regex"
    pattern: str

    def _expr(self, place: Place) -> Expr:
        with place.field("pattern").around():
            return Grammar.from_regex(self.pattern)._expr


class GrammarFormat(Format):
    """What a grammar derives, from its rule ``root`` (EBNF) or ``start`` (Lark).

    Attributes:
        grammar: its text.
        syntax: ``"ebnf"`` (GBNF) or ``"lark"``.
    """

    type: Literal["grammar"] = "grammar"
    grammar: str
    syntax: Literal["ebnf", "lark"] = "ebnf"

    def _expr(self, place: Place) -> Expr:
        read = Grammar.from_ebnf if self.syntax == "ebnf" else Grammar.from_lark
        with place.field("grammar").around():
            return read(self.grammar)._expr


class LarkFormat(Format):
    """What a Lark grammar derives from its rule ``start``."""

    type: Literal["lark"] = "lark"
    grammar: str

    def _expr(self, place: Place) -> Expr:
        return GrammarFormat(grammar=self.grammar, syntax="lark")._expr(place)


class AnyTextFormat(Format):
    """Any text. Before the end of a tag it runs until the first occurrence of that end.

    Attributes:
        excludes: texts that may not occur in it; a beginning of one is ordinary text.
        max_tokens: most tokens.
        max_chars: most characters (code points).
    """

    type: Literal["any_text"] = "any_text"
    excludes: list[str] = Field(default_factory=list)
    max_tokens: _Count | None = None
    max_chars: _Count | None = None

    def _followed_by(self, end: End, place: Place) -> Expr:
        if "" in self.excludes:
            where = place.field("excludes").item(self.excludes.index(""))
            raise where.error("An empty text occurs in every text", "Remove it")
        if end.marks and self.max_tokens is None:
            found = shortest(sequence(ANY_TEXT, end.expr))
            if not self.excludes and self.max_chars is None:
                return found
            return both(found, sequence(text_without(self.excludes, max_chars=self.max_chars), end.expr))
        body = text_without([*self.excludes, *end.marks], max_chars=self.max_chars)
        return sequence(max_tokens(body, self.max_tokens), end.expr)

    def _expr(self, place: Place) -> Expr:
        return self._followed_by(NO_END, place)


class TokenFormat(Format):
    """One token, by id or, for a special token, by name. Text that looks like it is not it."""

    type: Literal["token"] = "token"
    token: TokenName

    def _expr(self, place: Place) -> Expr:
        return token([self.token])

    @property
    def label(self) -> str:
        """What the token is called in events."""
        return self.token if isinstance(self.token, str) else f"token {self.token}"


class ExcludeTokenFormat(Format):
    """One token that is none of these."""

    type: Literal["exclude_token"] = "exclude_token"
    exclude_tokens: list[TokenName] = Field(default_factory=list)

    def _expr(self, place: Place) -> Expr:
        return token(self.exclude_tokens, but=True)


class AnyTokensFormat(Format):
    """Any number of tokens, none of which is one of these, nor the token that ends the tag around them.

    Attributes:
        exclude_tokens: tokens that may not be among them.
        max_tokens: most tokens.
    """

    type: Literal["any_tokens"] = "any_tokens"
    exclude_tokens: list[TokenName] = Field(default_factory=list)
    max_tokens: _Count | None = None

    def _followed_by(self, end: End, place: Place) -> Expr:
        one = token([*self.exclude_tokens, *end.tokens], but=True)
        return sequence(repeat(one, 0, self.max_tokens), end.expr)

    def _expr(self, place: Place) -> Expr:
        return self._followed_by(NO_END, place)


def _unless_empty(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
