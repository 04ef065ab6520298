"""Random walks through the masks, with the Llama 3 vocabulary: every walk ends in a document that jsonschema accepts."""

from __future__ import annotations

import json
import random
from functools import cache

import jsonschema
import numpy as np
import pytest
from tokenizer_data import ranks

import punchcard
from punchcard import GrammarCompiler, GrammarMatcher, TokenizerInfo

# Schemas of the kinds that tool calls and extractions are made of, and of those that lead others into dead ends.
SCHEMAS: list[object] = [
    {"type": "object", "properties": {"room": {"enum": ["kitchen", "hall"]}, "brightness": {"type": "integer", "minimum": 0, "maximum": 100}}, "required": ["room"], "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "string", "maxLength": 12}, "b": {"type": "number", "minimum": -1.5, "maximum": 9.75}, "c": {"type": "boolean"}}, "required": ["b"]},
    {"type": "array", "items": {"type": "integer", "exclusiveMinimum": -20, "exclusiveMaximum": 20}, "minItems": 2, "maxItems": 6},
    {"type": "array", "prefixItems": [{"type": "string", "minLength": 1, "maxLength": 3}, {"type": "null"}], "items": {"const": [1, {"k": "v"}]}, "minItems": 2, "maxItems": 5},
    {"$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}}, "required": ["v", "next"], "additionalProperties": False}}, "$ref": "#/$defs/node"},
    {"type": "object", "additionalProperties": {"type": ["integer", "null"]}, "maxProperties": 3, "minProperties": 1},
    {"anyOf": [{"type": "object", "properties": {"t": {"const": "x"}, "v": {"type": "integer"}}, "required": ["t", "v"], "additionalProperties": False}, {"type": "object", "properties": {"t": {"const": "xy"}, "w": {"type": "string", "maxLength": 4}}, "required": ["t", "w"], "additionalProperties": False}]},
    {"enum": [1, "1", None, True, 2.5, {"a": [1]}, [], "é😀\n"]},
    {"type": "string", "minLength": 3, "maxLength": 8},
    {"type": "number", "multipleOf": 0.05, "minimum": 3, "maximum": 4},
    {"type": "integer", "multipleOf": 7, "minimum": 700, "maximum": 7000},
    {"oneOf": [{"type": "integer", "minimum": 3, "maximum": 50}, {"type": "number", "minimum": 10, "maximum": 60}]},
    {"type": "object", "properties": {"k": {"enum": ["us", "nl"]}, "zip": {"type": "string"}}, "required": ["k", "zip"], "additionalProperties": False, "if": {"properties": {"k": {"const": "us"}}}, "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}}, "else": {"properties": {"zip": {"pattern": "^[0-9]{4}$"}}}},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "not": {"required": ["a", "b"]}, "additionalProperties": False, "minProperties": 1},
    {"type": "object", "patternProperties": {"^x-[a-z]{1,3}$": {"type": "boolean"}}, "additionalProperties": False, "minProperties": 2, "maxProperties": 3},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "contains": {"const": 7}, "maxItems": 4},
    {"type": "object", "properties": {"when": {"type": "string", "format": "date"}, "id": {"type": "string", "format": "uuid"}}, "required": ["when", "id"], "additionalProperties": False},
]  # fmt: skip


@cache
def llama3() -> TokenizerInfo:
    pieces = ranks("llama3")
    tokens = [b""] * (len(pieces) + 256)
    for piece, rank in pieces.items():
        tokens[rank] = piece
    n = len(pieces)
    for i in range(256):
        tokens[n + i] = f"<|special_{i}|>".encode()
    return TokenizerInfo.from_vocab(tokens, eos_token_ids=[n + 9], special_token_ids=range(n, n + 256))


@cache
def compiler() -> GrammarCompiler:
    return GrammarCompiler(llama3())


def allowed(matcher: GrammarMatcher, bitmask: np.ndarray) -> np.ndarray:
    matcher.fill_next_token_bitmask(bitmask)
    return np.flatnonzero(np.unpackbits(bitmask[0].view(np.uint8), bitorder="little"))


def walk(schema: object, rng: random.Random, **options: object) -> str:
    """Random tokens until the end; after a while short tokens that close something are taken wherever they are allowed."""
    info = llama3()
    matcher = GrammarMatcher(compiler().compile_json_schema(schema, **options))
    bitmask = punchcard.allocate_token_bitmask(1, info.vocab_size)
    closers = [i for i, token in enumerate(info.tokens) if token in {b'"', b"}", b"]", b"0", b"5", b"7", b"null", b'"]', b'"}'}]
    text = b""
    for step in range(4_000):
        ids = allowed(matcher, bitmask)
        assert len(ids), f"dead end after {text!r}"
        end = [i for i in info.eos_token_ids if i in ids]
        near = np.intersect1d(closers, ids) if step > 12 else []
        if end and (step > 12 or rng.random() < 0.3):
            token = end[0]
        elif len(near) and rng.random() < 0.8:
            token = int(rng.choice(list(near)))
        else:
            token = int(ids[rng.randrange(len(ids))])
        assert matcher.accept_token(token)
        if matcher.is_terminated():
            return text.decode()
        text += info.tokens[token]
    raise AssertionError(f"no end after {len(text)} bytes: {text[:200]!r}")


def no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a name twice: {names}"
    return dict(pairs)


@pytest.mark.parametrize("profile", ["generate", "spec"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_every_walk_ends_in_a_valid_document(schema: object, profile: str) -> None:
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    for seed in range(25):
        # Unbounded white space would let a random walk drift for ever.
        text = walk(schema, random.Random(seed), profile=profile, whitespace="bounded")
        document = json.loads(text, object_pairs_hook=no_duplicates)
        # The validator tells multiples in binary floating point; the tests of the algebra do so exactly.
        errors = [e for e in validator.iter_errors(document) if e.validator != "multipleOf"]
        assert not errors, (text, errors[0].message)


@pytest.mark.parametrize("schema", SCHEMAS[:8], ids=range(8))
def test_mask_and_accept_agree_for_all_ids(schema: object) -> None:
    info, rng = llama3(), random.Random(1)
    matcher = GrammarMatcher(compiler().compile_json_schema(schema))
    bitmask = punchcard.allocate_token_bitmask(1, info.vocab_size)
    for _ in range(4):
        ids = allowed(matcher, bitmask)
        inside = set(ids.tolist())
        for token in range(info.vocab_size):
            took = matcher.accept_token(token)
            assert took == (token in inside), (token, info.tokens[token])
            if took:
                matcher.rollback(1)
        token = int(ids[rng.randrange(len(ids))])
        assert matcher.accept_token(token)
        if matcher.is_terminated():
            break
    for token in (-1, info.vocab_size, 1 << 40):
        assert not matcher.accept_token(token)
