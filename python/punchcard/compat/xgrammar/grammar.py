"""XGrammar's Grammar over Punchcard's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...grammar import Grammar as _Grammar
from . import structural_tag as tags
from .exception import (
    DeserializeFormatError,
    DeserializeVersionError,
    InvalidJSONError,
    InvalidStructuralTagError,
    NotCoveredError,
)

if TYPE_CHECKING:
    from .tokenizer_info import TokenizerInfo

_VERSION = "punchcard-1"


def get_serialization_version() -> str:
    """The version that ``serialize_json`` writes."""
    return _VERSION


class Grammar:
    """A set of texts, made by one of the ``from_...`` methods."""

    def __init__(self, grammar: _Grammar) -> None:
        self._grammar = grammar

    def __str__(self) -> str:
        """The grammar as EBNF."""
        return str(self._grammar)

    @staticmethod
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """From EBNF. Raises `GrammarError`, with line and column."""
        return Grammar(_Grammar.from_ebnf(ebnf_string, start=root_rule_name))

    @staticmethod
    def from_json_schema(
        schema: Any,
        *,
        any_whitespace: bool = True,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        strict_mode: bool = True,
        max_whitespace_cnt: int | None = None,
        print_converted_ebnf: bool = False,
        any_order: bool = False,
    ) -> Grammar:
        """From a JSON Schema: a Pydantic model, a dict or JSON text. The schema is checked at once.

        Args:
            any_whitespace: any white space between tokens, at most ``max_whitespace_cnt`` characters in a place;
                otherwise exactly one space after each comma and colon, or none with ``separators=(",", ":")``.
            strict_mode: where an object is described, only members that are declared may come.
            any_order: properties come in any order; the required ones must be there all the same.

        Raises:
            SchemaError: the schema is invalid, has a keyword that cannot be enforced, or admits nothing.
            NotCoveredError: for ``indent``, other ``separators`` and ``print_converted_ebnf``.
        """
        if print_converted_ebnf:
            raise NotCoveredError("print_converted_ebnf is not covered", hint="Print the grammar")
        grammar = _Grammar.from_json_schema(
            schema,
            whitespace=_white_space(any_whitespace, indent, separators, max_whitespace_cnt),
            strict=strict_mode,
            property_order="any" if any_order else None,
        )
        _ = grammar.report  # reads the schema
        return Grammar(grammar)

    @staticmethod
    def from_regex(regex_string: str, *, print_converted_ebnf: bool = False) -> Grammar:
        """From a regular expression that the whole text matches. It is read when it is compiled."""
        if print_converted_ebnf:
            raise NotCoveredError("print_converted_ebnf is not covered", hint="Print the grammar")
        return Grammar(_Grammar.from_regex(regex_string))

    @staticmethod
    def from_lark(
        lark_string: str, *, tokenizer_info: TokenizerInfo | None = None, named_grammars: dict[str, Any] | None = None
    ) -> Grammar:
        """From a Lark grammar, whose first rule is ``start``. Special tokens are looked up when it is compiled."""
        if named_grammars:
            raise NotCoveredError("named_grammars is not covered", hint="Write the rules into one grammar")
        return Grammar(_Grammar.from_lark(lark_string))

    @staticmethod
    def from_structural_tag(*args: Any, **kwargs: Any) -> Grammar:
        """From a structural tag (an object, a dict or JSON text), or, as of old, from tags and triggers.

        Raises:
            InvalidJSONError: the text is not JSON.
            InvalidStructuralTagError: the tag is malformed; ``path`` says where.
        """
        from ...errors import GrammarError

        tag = tags.from_arguments(args, kwargs)
        try:
            return Grammar(_Grammar.from_structural_tag(tag))
        except GrammarError as error:
            raise InvalidStructuralTagError(error.message, hint=error.hint, **error.fields) from None

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """Any JSON value."""
        return Grammar(_Grammar.from_json_schema(True, whitespace="any", number_spelling="any", string_escapes="any"))

    @staticmethod
    def concat(*grammars: Grammar) -> Grammar:
        """A text of each, one after the other."""
        return Grammar(_Grammar.concat(*(grammar._grammar for grammar in grammars)))

    @staticmethod
    def union(*grammars: Grammar) -> Grammar:
        """The texts of any of them."""
        return Grammar(_Grammar.union(*(grammar._grammar for grammar in grammars)))

    def serialize_json(self) -> str:
        """The grammar as JSON text."""
        return json.dumps({"__VERSION__": _VERSION, "grammar": self._grammar._expr})

    @staticmethod
    def deserialize_json(json_string: str) -> Grammar:
        """From what `serialize_json` wrote."""
        return Grammar(_Grammar(read_serialized(json_string)["grammar"]))


def read_serialized(json_string: str) -> dict[str, Any]:
    """What ``serialize_json`` wrote, checked for its version."""
    try:
        data = json.loads(json_string)
    except ValueError as error:
        raise InvalidJSONError(f"The text is not JSON: {error}") from None
    if not isinstance(data, dict) or "grammar" not in data or "__VERSION__" not in data:
        raise DeserializeFormatError("This is no serialized grammar", hint="Write it with serialize_json")
    if data["__VERSION__"] != _VERSION:
        raise DeserializeVersionError(
            f"The grammar was written as {data['__VERSION__']!r}", hint="Compile it anew from its source"
        )
    return data


def _white_space(any_whitespace: bool, indent: int | None, separators: tuple[str, str] | None, most: int | None) -> Any:
    """The option ``whitespace`` of `punchcard.Grammar.from_json_schema`."""
    if any_whitespace:
        if most is None:
            return "any"
        # Punchcard counts what may follow the one space or line break.
        return most - 1 if most > 0 else "none"
    if indent is not None:
        raise NotCoveredError("indent is not covered", hint="Leave it out; white space stays bounded")
    if separators is None or tuple(separators) == (", ", ": "):
        return "after_separators"
    if tuple(separators) == (",", ":"):
        return "none"
    raise NotCoveredError(f"separators={separators!r} are not covered", hint='Use (", ", ": ") or (",", ":")')
