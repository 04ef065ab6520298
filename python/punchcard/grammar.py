"""Grammars: what may be written, whatever the tokens are."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_origin

from ._core import json_size, json_text
from .errors import GrammarError, InvalidSchemaError, LimitError, PunchcardError
from .limits import Limits
from .report import Report, report_from_core

#: A JSON Schema: a dict, a bool, JSON text, or a Python type (a Pydantic model, or what Pydantic's TypeAdapter takes).
Schema: TypeAlias = Any

#: A grammar expression in its JSON form, as the Rust type `Expr` documents it.
Expr: TypeAlias = Any


class Grammar:
    """A set of texts, made by one of the ``from_...`` methods. `GrammarCompiler.compile` compiles it for a vocabulary.

    Grammars of all kinds combine: `union` and `concat` take any of them, and a structural tag any as its content.
    ``str(grammar)`` is EBNF that `from_ebnf` reads back.

    Example:
        >>> grammar = Grammar.from_json_schema({"type": "integer", "minimum": 3})
        >>> grammar.report.example
        '3'
    """

    def __init__(self, expr: Expr) -> None:
        """Use one of the ``from_...`` methods instead."""
        self._expr = expr

    @classmethod
    def _read(cls, text: str) -> Grammar:
        """The grammar of an expression in JSON text, however deeply it nests."""
        try:
            return cls(json.loads(text))
        except RecursionError:
            return _DeepGrammar(text)

    def _json(self) -> str:
        """The expression as JSON text, equal for equal expressions."""
        return _json_text(self._expr)

    def _json_schema(self) -> tuple[str, str] | None:
        """Schema and options as JSON text, equal for equal expressions, if the grammar is that of a JSON Schema."""
        match self._expr:
            case {"json_schema": {"schema": str(schema), "options": dict(options), **unknown}, **others}:
                if not unknown and not others:
                    return schema, _json_text(options)
        return None

    @classmethod
    def from_regex(cls, pattern: str | re.Pattern[str], *, limits: Limits | None = None) -> Grammar:
        """The texts that a regular expression matches from the beginning to the end.

        Args:
            pattern: ECMA-262 in Unicode mode, as in JSON Schema's ``pattern``; or a compiled pattern of Python's `re`,
                which is taken as `re` means it, with its flags.
            limits: against hostile patterns; give them to the `GrammarCompiler` instead.

        Raises:
            GrammarError: the pattern is malformed or not regular; says at which column. One that matches nothing is
                refused when it is compiled.
        """
        return cls(_checked(cls._regex(pattern)))

    @staticmethod
    def _regex(pattern: str | re.Pattern[str]) -> Expr:
        """The expression of a regular expression that is yet to be read."""
        if isinstance(pattern, re.Pattern):
            if not isinstance(pattern.pattern, str):
                raise GrammarError("A pattern of bytes matches no text", hint="Compile the pattern from a str")
            _whole(pattern.pattern, "pattern")
            known = {"i": re.I, "m": re.M, "s": re.S, "x": re.X, "a": re.A}
            flags = "".join(letter for letter, flag in known.items() if pattern.flags & flag)
            return {"regex": {"pattern": pattern.pattern, "flags": flags, "syntax": "python"}}
        if not isinstance(pattern, str):
            raise GrammarError("A regular expression is given as its text", hint="Pass a str or a re.Pattern")
        _whole(pattern, "pattern")
        return {"regex": {"pattern": pattern}}

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
        number_digits: Literal["bounded", "any"] | int | None = None,
        string_escapes: Literal["minimal", "any"] | None = None,
        assert_formats: bool = True,
        on_unsupported: Literal["error", "report"] = "error",
        limits: Limits | None = None,
        check: bool = True,
    ) -> Grammar:
        """The JSON documents that a schema admits.

        Args:
            schema: a dict, a bool, JSON text, a Pydantic model or any type that Pydantic's TypeAdapter takes.
            profile: ``"spec"`` admits every spelling, white space and order that JSON and JSON Schema admit;
                ``"generate"`` its useful subset for a language model. The profile sets the options below that are None.
            strict: where an object is described, only members that are declared may come, as with
                ``unevaluatedProperties: false``; conditions (``if``, ``not``, ``contains``) stay as they are.
            draft: dialect where ``$schema`` is silent: ``"4"``, ``"6"``, ``"7"``, ``"2019-09"``, ``"2020-12"`` (the
                default) or the URI of one.
            resources: further documents for ``$ref``, by URI. Nothing is ever fetched.
            property_order: ``"declared"`` (declared properties in order, then others) or ``"any"``.
            whitespace: ``"bounded"`` (one space, or one line break and indentation), ``"any"``, ``"none"``,
                ``"after_separators"`` (exactly one space after each comma and colon), or the most characters of
                indentation after a line break.
            outer_whitespace: white space may also stand before and after the whole text.
            number_spelling: ``"plain"`` (no exponent, and no point where only whole numbers are allowed) or ``"any"``.
            number_digits: how many digits a plain number may have, unless its schema needs more: ``"bounded"`` (19
                before the point, 17 in all where there is one), ``"any"``, or a number that bounds both.
            string_escapes: ``"any"``, or ``"minimal"`` (the short escapes of what must be escaped).
            assert_formats: enforce ``format``.
            on_unsupported: ``"error"``, or ``"report"``: a keyword that cannot be enforced is left out, and is an entry
                of ``report.not_enforced``.
            limits: against hostile schemas.
            check: read the schema now, to refuse one that is malformed. Without, that is found out when it is compiled.

        Raises:
            InvalidSchemaError: not JSON, a reference that leads nowhere, or a keyword with a value that is not allowed.
            UnsupportedSchemaError: a keyword that cannot be enforced; names keyword and JSON pointer.
            GrammarError: an option has a value that it cannot have.

        Whether any value satisfies the schema is found out when it is compiled, or its `report` asked for.
        """
        if resources is not None and not isinstance(resources, Mapping):
            raise GrammarError("resources are documents by URI", hint="Pass a dict")
        if limits is not None and not isinstance(limits, Limits):
            raise GrammarError(f"limits are a punchcard.Limits, not {_named(limits)}")
        most = (limits or Limits()).max_bytes
        options: dict[str, Any] = {
            "profile": None if profile == "generate" else profile,
            "strict": strict or None,
            "draft": draft,
            "resources": {uri: schema_text(document, most) for uri, document in (resources or {}).items()} or None,
            "property_order": property_order,
            "whitespace": whitespace,
            "outer_whitespace": outer_whitespace,
            "number_spelling": number_spelling,
            "number_digits": number_digits,
            "string_escapes": string_escapes,
            "assert_formats": None if assert_formats else False,
            "on_unsupported": None if on_unsupported == "error" else on_unsupported,
            "limits": asdict(limits) if limits else None,
        }
        options = {name: value for name, value in options.items() if value is not None}
        text = schema_text(schema, most)
        if check:
            check_schema(text, options)
        elif options:
            check_schema("true", options)
        return cls({"json_schema": {"schema": text, "options": options}})

    @classmethod
    def from_ebnf(cls, text: str, *, start: str | None = None) -> Grammar:
        """A grammar in EBNF: llama.cpp's GBNF, XGrammar's EBNF, or that of the W3C.

        Args:
            text: the rules.
            start: the rule of the whole text; by default ``root``, or else the first one.

        Raises:
            GrammarError: says at which line and column, and what to do.
        """
        from ._core import parse_ebnf

        return cls._read(parse_ebnf(_whole(text, "grammar"), start and _whole(start, "name of a rule")))

    @classmethod
    def from_lark(
        cls,
        text: str,
        *,
        start: str | None = None,
        lexer: Literal["dynamic", "dynamic_complete"] = "dynamic",
    ) -> Grammar:
        """A grammar in Lark's notation, with the additions that llguidance knows; see ``docs/lark.md``.

        Args:
            text: the rules and terminals.
            start: the rule of the whole text; by default ``start``.
            lexer: ``"dynamic"``, in which each terminal goes as far as it can (a name is never cut into two), or
                ``"dynamic_complete"``, in which any text of a terminal will do. The names are Lark's.

        Raises:
            GrammarError: says at which line and column, and what to do.
        """
        from ._core import parse_lark

        start = start and _whole(start, "name of a rule")
        return cls._read(parse_lark(_whole(text, "grammar"), start, _whole(lexer, "lexer")))

    @classmethod
    def from_structural_tag(cls, tag: Any) -> Grammar:
        """Free text, tagged parts and data in one: a `punchcard.tags.StructuralTag`, or its JSON form, a dict or text.

        Raises:
            GrammarError: says where in the tag, and what to do.
        """
        from .tags import structural_tag

        return cls(_whole_expr(structural_tag(tag).to_expr()))

    @classmethod
    def from_text(cls, text: str) -> Grammar:
        """Exactly this text."""
        return cls({"text": _whole(text, "text")})

    @classmethod
    def of(cls, value: Any) -> Grammar:
        """The grammar that a value stands for, where there is no doubt about that.

        Args:
            value: a grammar; a JSON Schema as a dict; a Pydantic model, or another type that a schema can be made of;
                a structural tag, also as a dict with ``"type": "structural_tag"``; or a compiled pattern of `re`.

        Raises:
            GrammarError: it could mean several things (a str), or nothing.
        """
        if isinstance(value, Grammar):
            return value
        if isinstance(value, re.Pattern):
            return cls.from_regex(value)
        if isinstance(value, Mapping):
            if value.get("type") == "structural_tag" or {"structures", "triggers"} <= set(value):
                return cls.from_structural_tag(value)
            return cls.from_json_schema(dict(value))
        if isinstance(value, str):
            raise GrammarError(
                "A str may be a text, a pattern, a grammar or a schema",
                hint="Say which: Grammar.from_text, from_regex, from_ebnf, from_lark or from_json_schema",
            )
        if isinstance(value, type) or get_origin(value) is not None:
            return cls.from_json_schema(value)
        # The import takes a while, and only who has made a tag can hand one in.
        if "punchcard.tags" in sys.modules:
            from .tags import Format

            if isinstance(value, Format):
                return cls.from_structural_tag(value)
        raise GrammarError(
            f"{_named(value)} is no grammar",
            hint="Pass a Grammar, a JSON Schema as a dict, a Pydantic model, a structural tag or a re.Pattern"
            + ("; for the arguments of a function, punchcard.tool(function).parameters" if callable(value) else ""),
        )

    @staticmethod
    def union(*grammars: Any) -> Grammar:
        """The texts of any of the grammars, or of what `of` makes one of.

        Raises:
            GrammarError: there is none, or it is none.
        """
        if not grammars:
            raise GrammarError("A union of no grammars has no text", hint="Give at least one")
        return Grammar({"choice": [Grammar.of(grammar)._expr for grammar in grammars]})

    @staticmethod
    def concat(*grammars: Any) -> Grammar:
        """A text of each grammar, or of what `of` makes one of, one after the other.

        Raises:
            GrammarError: one is none.
        """
        return Grammar({"sequence": [Grammar.of(grammar)._expr for grammar in grammars]})

    def __str__(self) -> str:
        """EBNF that `from_ebnf` reads back to the same language."""
        from ._core import print_grammar

        return print_grammar(self._json())

    def show(self) -> str:
        """A picture: a railroad diagram of each rule, as the text of an SVG file. Notebooks show a grammar like this by
        themselves.

        Raises:
            PunchcardError: the package railroad-diagrams is missing (``pip install 'punchcard[show]'``).
        """
        from .railroad import svg

        return svg(self._expr)

    def _repr_svg_(self) -> str | None:
        try:
            return self.show()
        except PunchcardError:
            return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grammar) and self._json() == other._json()

    def __hash__(self) -> int:
        return hash(self._json())

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

        if not isinstance(self._expr, dict) or "json_schema" not in self._expr:
            raise PunchcardError("Only the grammar of a JSON Schema has a report", hint="Use Grammar.from_json_schema")
        part = self._expr["json_schema"]
        return report_from_core(report_json_schema(part["schema"], json.dumps(part.get("options", {}))))

    def __repr__(self) -> str:
        try:
            text = json.dumps(self._expr, ensure_ascii=False)
        except (PunchcardError, RecursionError, TypeError, ValueError):
            text = "..."
        return f"<Grammar {text if len(text) <= 60 else text[:57] + '...'}>"


class _DeepGrammar(Grammar):
    """A grammar that nests more deeply than Python's objects may: it stays JSON text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def _expr(self) -> Expr:
        raise _too_deep()

    def _json(self) -> str:
        return self._text

    def _json_schema(self) -> None:
        return None


def _whole(text: str, what: str) -> str:
    """The text, if it is made of whole characters. A `str` may hold halves of surrogate pairs, which no UTF-8 can."""
    if not isinstance(text, str):
        raise GrammarError(f"The {what} is given as a str, not as {type(text).__name__}", hint="Decode bytes first")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        before = text[: error.start]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise GrammarError(
            f"Line {line}, column {column}: The {what} holds half of a surrogate pair, which is no character",
            hint="Write characters beyond U+FFFF whole",
        ) from None
    return text


def _whole_expr(expr: Expr) -> Expr:
    """The expression, if all its texts are made of whole characters."""
    try:
        json.dumps(expr, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise GrammarError(
            "The structural tag holds half of a surrogate pair, which is no character",
            hint="Write characters beyond U+FFFF whole",
        ) from None
    except (RecursionError, TypeError, ValueError):
        pass  # Said when it is compiled, as of every other expression.
    return expr


def _too_deep() -> GrammarError:
    return GrammarError("The grammar nests too deeply", hint="Name its parts as rules, or combine more of them at once")


def _json_text(expr: Expr) -> str:
    try:
        return _written(expr, _MOST_BYTES, sort_keys=True)
    except RecursionError:
        raise _too_deep() from None
    except (TypeError, ValueError) as error:
        raise GrammarError(
            f"The grammar expression is not JSON: {error}", hint="Use plain dicts, lists, strings and numbers"
        ) from None


#: Bytes of a grammar or a schema, where no limit says otherwise.
_MOST_BYTES = Limits.max_bytes


def _written(data: Any, most: int, **options: Any) -> str:
    """What `json.dumps` writes. It is measured before: data in which a part stands at many places may be endless."""
    size = json_size(data)
    if size is not None:
        if size > most:
            raise _too_long(most)
        return json.dumps(data, **options)
    # Of what is in it not all is known. `json` will refuse that, if it comes to it.
    pieces, size = [], 0
    for piece in json.JSONEncoder(**options).iterencode(data):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise _too_long(most)
    return "".join(pieces)


def _too_long(most: int) -> LimitError:
    return LimitError(
        f"The limit max_bytes={most} was passed",
        hint="Name what comes again: with rules in a grammar, with $defs and $ref in a schema",
        limit="max_bytes",
        value=most,
    )


def _named(value: object) -> str:
    """What a value is, for people: a function by its name, anything else by its type."""
    name = getattr(value, "__name__", None)
    return f"{type(value).__name__} {name}" if isinstance(name, str) else type(value).__name__


def _checked(expr: Expr) -> Expr:
    """The expression, if nothing in it is malformed."""
    from ._core import check_grammar

    check_grammar(_json_text(expr))
    return expr


def check_schema(schema: str, options: Mapping[str, Any]) -> None:
    """Refuses a schema that is malformed, or options that are."""
    from ._core import check_json_schema

    try:
        options_text = json.dumps(options)
    except (TypeError, ValueError) as error:
        raise GrammarError(f"The options of a JSON Schema are not JSON: {error}") from None
    with no_half_characters():
        check_json_schema(schema, options_text)


@contextmanager
def no_half_characters() -> Iterator[None]:
    """Makes a schema with half of a surrogate pair, which cannot be handed to the engine, an `InvalidSchemaError`."""
    try:
        yield
    except UnicodeEncodeError:
        raise InvalidSchemaError(
            "The schema holds half of a surrogate pair, which is no character",
            hint="Write characters beyond U+FFFF whole",
            pointer="",
            keyword="",
        ) from None


def schema_text(schema: Schema, most: int = _MOST_BYTES) -> str:
    """The JSON text of a schema, whatever it was given as; `LimitError` if it has more bytes than ``most``."""
    if isinstance(schema, str):
        return schema
    if schema is None:
        raise InvalidSchemaError(
            "None is no schema",
            hint='Pass {"type": "null"} for null, or True for any value',
            pointer="",
            keyword="",
        )
    if not isinstance(schema, (dict, bool)):
        from .schemas import pydantic_schema

        schema = pydantic_schema(schema)
    text = json_text(schema, most)
    if text is not None:
        return text
    try:
        return _written(schema, most, ensure_ascii=False, allow_nan=False)
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
