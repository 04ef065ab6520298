"""Every bit of a mask, with the Llama 3 vocabulary: a token is allowed exactly if it can be taken.

A mask is put together from what is known of languages, of kinds of characters and of what stands around a value; taking
a token reads its bytes one by one and knows nothing of all that. So one is a test of the other.
"""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from tokenizer_data import ranks

from punchcard import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo, allocate_token_bitmask


@cache
def compiler() -> GrammarCompiler:
    pieces = ranks("llama3")
    tokens = [b""] * (max(pieces.values()) + 257)
    for piece, rank in pieces.items():
        tokens[rank] = piece
    end = len(tokens) - 1
    return GrammarCompiler(
        TokenizerInfo.from_vocab(tokens, eos_token_ids=[end], special_token_ids=range(end - 255, end))
    )


def text(**schema: object) -> dict[str, object]:
    return {"type": "string", **schema}


def obj(**schema: object) -> dict[str, object]:
    return {"type": "object", **schema}


# A schema, a text that it accepts, and options. The text is split where a mask is looked at.
CASES: dict[str, tuple[object, list[str], dict[str, object]]] = {
    "words": (text(pattern=r"^(?:\S+\s+){0,5}\S+$"), ['"', "ab", " c", "d e f g", " h"], {}),
    "search": (text(pattern="sound"), ['"', "a s", "ou", "nd", ", é"], {}),
    "searches": (text(pattern="alpha|beta|rc"), ['"', "x r", "c", "alp"], {}),
    "capitals": (text(pattern="OGG"), ['"O', "G", "G", "x"], {}),
    "hex": (text(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}$"), ['"0', "123ab", "cd", "-12"], {}),
    "not a slash": (text(pattern=r"^/[^/\0]+$"), ['"', "/", "añ", "b"], {}),
    "letters": (text(pattern=r"^\p{L}[\p{L}\p{N} ]*$"), ['"', "É", "ß1", " x"], {}),
    "words of ASCII": (text(pattern=r"^\w+(\.\w+)*$"), ['"', "a_1", ".", "Zz"], {}),
    "no space": (text(pattern=r"^\S*$"), ['"', "x", "\u00a3"], {}),
    "only spaces": (text(pattern=r"^\s+x"), ['"', "  ", "\u3000", "x"], {}),
    "emoji": (text(pattern="^[\U0001f600-\U0001f64f]+$"), ['"', "😀", "😂"], {}),
    "up to seven": (text(maxLength=7), ['"', "abc", "é", "\\n", "x"], {}),
    "three to five": (text(minLength=3, maxLength=5), ['"', "a", "bc", "d"], {}),
    "three or more": (text(minLength=3), ['"', "a", "\\u0001", "x"], {"profile": "spec"}),
    "letters, up to nine": (text(pattern="^[a-z]{2,9}$"), ['"', "ab", "cde"], {}),
    "excluded": (text(**{"not": {"enum": ["in", "interest", 'a"b']}}), ['"', "in", "ter", "est"], {}),
    "email": (text(format="email"), ['"', "jo", "hn.d", "@", "ex", ".com"], {}),
    "uri": (text(format="uri"), ['"', "http", "://", "a.b", "/%4", "1?x"], {}),
    "date-time": (text(format="date-time"), ['"20', "22-", "01-01T", "23:", "59:00"], {}),
    "enum": ({"enum": ["kitchen", "kit", "hall", 12, None]}, ['"', "k", "it"], {}),
    "either pattern": ({"oneOf": [text(pattern="^a+$"), text(pattern="b$")]}, ['"', "a", "a", "b"], {}),
    "integer": ({"type": "integer"}, ["-", "1", "23"], {}),
    "bounds": ({"type": "integer", "minimum": -7, "maximum": 360}, ["3", "6"], {}),
    "number": ({"type": "number"}, ["1", "0", ".", "5"], {}),
    "any number": ({"type": "number", "multipleOf": 0.5}, ["1", "0", ".", "5"], {"profile": "spec"}),
    "numbers": ({"type": "array", "items": {"type": "number"}}, ["[", "1", "2", ", ", "3.5", ", -"], {}),
    "any value": ({}, ['{"', 'a": ', '[1, "', 'x", ', "true", "], ", '"b', '": null'], {}),
    "declared": (
        obj(
            properties={"id": {}, "idx": text(), "name": {"type": "integer"}},
            required=["name"],
            additionalProperties=False,
        ),
        ['{"', "id", '": ', '"x', '", "', "name", '": 1'],
        {},
    ),
    "any order": (
        obj(properties={"id": {}, "idx": text(), "name": {"type": "integer"}}, additionalProperties=False),
        ['{"', "name", '": 1', ', "', "id", '": ', "[]"],
        {"profile": "spec"},
    ),
    "more names": (
        obj(properties={"id": text(), "type": {"const": "t"}}, additionalProperties={"type": "integer"}),
        ['{"', "id", '": "', 'x", "', "ty", 'px": ', '1, "ty', 'p": 2, "typ'],
        {},
    ),
    "more names, escaped": (
        obj(properties={"id": text()}, additionalProperties=text()),
        ['{"', "i", "\\u0064", '": "x", "', "\\u0069", "d2"],
        {"profile": "spec"},
    ),
    "patterns of names": (
        obj(patternProperties={"^x-[a-z]+$": {"type": "integer"}}, additionalProperties=False),
        ['{"', "x", "-a", 'b": ', '1, "x-', "ab"],
        {},
    ),
    "two patterns of names": (
        obj(patternProperties={"^x-": {"type": "integer"}, "y$": text()}, additionalProperties={"type": "null"}),
        ['{"', "x", "-", 'b": ', '1, "', 'y": "', 'a", "z'],
        {},
    ),
    "long names": (
        obj(patternProperties={"^[0-9a-zA-Z_-]{1,255}$": text()}, additionalProperties=False),
        ['{"', "a", '_b": "', 'x", "', "a_"],
        {},
    ),
    "names of a kind": (obj(propertyNames={"pattern": "^[A-Z][a-z]*$"}), ['{"', "A", 'b": ', '1, "', "A"], {}),
    "a count of members": (
        obj(additionalProperties={}, minProperties=2, maxProperties=2),
        ['{"', 'a": 1', ', "', "a"],
        {},
    ),
    "unique texts": ({"type": "array", "uniqueItems": True, "items": text()}, ['["', "ab", '", "', "a", "b"], {}),
    "unique of few": (
        {"type": "array", "uniqueItems": True, "items": {"enum": ["a", "ab", "b"]}, "minItems": 2},
        ['["', "a", '", "', "a"],
        {},
    ),
    "unique arrays": (
        {"type": "array", "uniqueItems": True, "items": {"type": "array", "items": text()}},
        ['[["', "a", '"], ["', "a"],
        {},
    ),
    "a text, then one of few": (
        {"type": "array", "uniqueItems": True, "prefixItems": [text()], "items": {"const": "a"}, "maxItems": 2},
        ['["', "a"],
        {},
    ),
    "nested": (
        obj(properties={"a": obj(properties={"b": text(), "c": text()}), "d": text()}, additionalProperties=False),
        ['{"a": {"', 'b": "', "x", '"', "}", ', "', 'd": "', 'y"'],
        {},
    ),
    "tree": (
        {
            "$defs": {"t": obj(properties={"v": text(), "n": {"type": "array", "items": {"$ref": "#/$defs/t"}}})},
            "$ref": "#/$defs/t",
        },
        ['{"v": "', 'x", "', 'n": [', '{"', 'n": []', "}, ", "{}"],
        {},
    ),
}


def check(matcher: GrammarMatcher, pieces: list[str]) -> None:
    info = compiler().tokenizer_info
    bitmask = allocate_token_bitmask(1, info.vocab_size)
    for piece in pieces:
        assert matcher.accept_string(piece), piece
        matcher.fill_next_token_bitmask(bitmask)
        allowed = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[: info.vocab_size]
        taken = [matcher.validate_tokens([token]) for token in range(info.vocab_size)]
        wrong = np.flatnonzero(allowed != np.array(taken))
        assert not len(wrong), (
            piece,
            [(int(token), info.token_bytes(int(token)), taken[token]) for token in wrong[:5]],
        )


@pytest.mark.parametrize("name", CASES)
def test_a_token_is_allowed_if_it_can_be_taken(name: str) -> None:
    schema, pieces, options = CASES[name]
    check(GrammarMatcher(compiler().compile_json_schema(json.dumps(schema), **options)), pieces)


@pytest.mark.parametrize("name", ["words", "integer", "number", "more names", "unique texts", "any value", "enum"])
def test_values_within_other_grammars(name: str) -> None:
    """What follows the value is no JSON: digits behind a number, letters behind an object."""
    schema, pieces, options = CASES[name]
    value = Grammar.from_json_schema(json.dumps(schema), **options)
    grammar = Grammar.concat(Grammar.from_regex("<<"), value, Grammar.from_regex("[0-9a-z]{2}>>|;.*"))
    check(GrammarMatcher(compiler().compile(grammar)), ["<<" + pieces[0], *pieces[1:]])
