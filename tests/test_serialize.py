"""Compiled grammars as bytes, and back."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarError,
    GrammarMatcher,
    LimitError,
    Limits,
    TokenizerInfo,
)

TOKENS = [*(bytes([i]) for i in range(256)), b"</s>", b"<|a|>", b"ab", b'":', b"12"]
END, A = 256, 257
INFO = TokenizerInfo.from_vocab(TOKENS, eos_token_ids=[END], special_token_ids=[A])

TAG = {
    "type": "structural_tag",
    "format": {"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"},
}
LARK = 'start: item ("," item)*\nitem: /[a-z]+/ | "(" start ")"\n'
NAMED = {"named": {"kind": "tag", "name": "é", "body": {"text": "ab"}}}

GRAMMARS: dict[str, Grammar] = {
    "schema": Grammar.from_json_schema({"type": "object", "properties": {"é": {"type": "integer"}}, "required": ["é"]}),
    "schema with options": Grammar.from_json_schema(
        {"$ref": "urn:x"},
        profile="spec",
        draft="7",
        resources={"urn:x": {"type": "array", "maxItems": 3}},
        whitespace=4,
    ),
    "regex": Grammar.from_regex(r"(\d{2}|é)+\n?"),
    "ebnf": Grammar.from_ebnf('root ::= root "+" root | [0-9]+ | "(" root ")"'),
    "lark": Grammar.from_lark(LARK),
    "tag": Grammar.from_structural_tag(TAG),
    "text": Grammar.from_text('quote " backslash \\ nul \x00 é😀\n'),
    "tokens": Grammar.from_ebnf("root ::= <|a|> [ab]* !<|a|>"),
    "limit": Grammar({"max_tokens": {"body": {"regex": {"pattern": "[ab]*"}}, "tokens": 3}}),
    "named": Grammar({"repeat": {"body": NAMED, "min": 1}}),
    "combined": Grammar.concat(
        Grammar.from_text("<"),
        Grammar.union(Grammar.from_regex("a+"), Grammar.from_json_schema(True)),
        Grammar.from_text(">"),
    ),
    "deep": Grammar.from_regex("(" * 400 + "a" + ")" * 400),
}


def compiled(name: str) -> CompiledGrammar:
    return GrammarCompiler(INFO, cache_enabled=False).compile(GRAMMARS[name])


def row_of(matcher: GrammarMatcher) -> list[int]:
    row = punchcard.allocate_token_bitmask(1, INFO.vocab_size)
    matcher.fill_next_token_bitmask(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def same(one: CompiledGrammar, two: CompiledGrammar) -> None:
    """On random walks both allow the same."""
    for seed in range(6):
        rng = random.Random(seed)
        a, b = (GrammarMatcher(grammar, events=True) for grammar in (one, two))
        for _ in range(25):
            row = row_of(a)
            assert row == row_of(b)
            assert a.is_accepting() == b.is_accepting()
            assert a.find_completion_tokens() == b.find_completion_tokens()
            token = rng.choice(row)
            assert a.accept_token(token)
            assert b.accept_token(token)
            assert a.events() == b.events()
            if a.is_terminated():
                break


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_what_is_read_back_allows_the_same(name: str) -> None:
    before = compiled(name)
    data = before.serialize()
    after = CompiledGrammar.deserialize(data, INFO)
    assert after.serialize() == data
    assert after.vocab_size == INFO.vocab_size
    same(before, after)


def test_it_does_not_depend_on_what_the_grammar_was_used_for() -> None:
    grammar = compiled("schema")
    data = grammar.serialize()
    matcher = GrammarMatcher(grammar, token_budget=30)
    for token in b'{"\xc3\xa9":12':
        row_of(matcher)
        assert matcher.accept_token(token)
    assert grammar.serialize() == data


def test_limits_come_along() -> None:
    limited = GrammarCompiler(INFO, limits=Limits(max_states=100)).compile_json_schema(True)
    matcher = GrammarMatcher(CompiledGrammar.deserialize(limited.serialize(), INFO))
    with pytest.raises(LimitError, match="max_states=100"):
        matcher.accept_string("[" * 1_000)


@pytest.mark.parametrize("name", ["schema", "ebnf", "text"])
def test_damage_is_refused(name: str) -> None:
    """Any byte that is another one, and any part that is missing."""
    data = compiled(name).serialize()
    places = sorted({*range(90), *range(0, len(data), 7), len(data) - 1})
    for place in places:
        for bit in (0x01, 0x20, 0x80):
            damaged = bytearray(data)
            damaged[place] ^= bit
            with pytest.raises(GrammarError):
                CompiledGrammar.deserialize(bytes(damaged), INFO)
    for length in [0, 1, *places]:
        with pytest.raises(GrammarError, match="damaged"):
            CompiledGrammar.deserialize(data[:length], INFO)
    with pytest.raises(GrammarError, match="damaged"):
        CompiledGrammar.deserialize(data + b"\n", INFO)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"  \n", b"\xff\xfe\n{}", b"punchcard-grammar 1 0\n{}", b"{}", b"\n" * 1_000]
)
def test_what_never_was_one_is_refused(data: bytes) -> None:
    with pytest.raises(GrammarError, match="damaged"):
        CompiledGrammar.deserialize(data, INFO)


def sealed(body: bytes, version: bytes = b"1") -> bytes:
    return b"punchcard-grammar " + version + b" " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def test_another_version_is_refused() -> None:
    head, _, body = compiled("text").serialize().partition(b"\n")
    assert head.split()[1] == b"1"
    with pytest.raises(GrammarError, match="has version 2; this is version 1"):
        CompiledGrammar.deserialize(sealed(body, b"2"), INFO)
    same(CompiledGrammar.deserialize(sealed(body), INFO), compiled("text"))


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b'{"vocabulary": 1, "limits": {}, "expr": ""}', b"[" * 100_000]
)
def test_a_sealed_body_that_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(GrammarError):
        CompiledGrammar.deserialize(sealed(body), INFO)


@pytest.mark.parametrize(
    "changed",
    [
        {"tokens": [*TOKENS[:-1], b"13"]},
        {"tokens": [*TOKENS, b"more"]},
        {"eos_token_ids": [A]},
        {"eos_token_ids": [END, A]},
        {"special_token_ids": []},
        {"vocab_size": 300},
    ],
)
def test_another_vocabulary_is_refused(changed: dict[str, Any]) -> None:
    options = {"tokens": TOKENS, "eos_token_ids": [END], "special_token_ids": [A], **changed}
    info = TokenizerInfo.from_vocab(options.pop("tokens"), **options)
    with pytest.raises(GrammarError, match="another vocabulary"):
        CompiledGrammar.deserialize(compiled("regex").serialize(), info)


def test_an_equal_vocabulary_is_the_same() -> None:
    info = TokenizerInfo.from_json(INFO.to_json())
    assert GrammarMatcher(CompiledGrammar.deserialize(compiled("regex").serialize(), info)).accept_string("12")
