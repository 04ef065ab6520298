"""Random walks through the masks, with the Llama 3 vocabulary: each ends in a document that jsonschema accepts."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from functools import cache

import jsonschema
import numpy as np
import pytest
from tokenizer_data import ranks

import punchcard
from punchcard import GrammarCompiler, GrammarMatcher, TokenizerInfo

# Schemas of the kinds that tool calls and extractions are made of, and of those that lead others into dead ends.
SCHEMAS: list[object] = [
    {
        "type": "object",
        "properties": {
            "room": {"enum": ["kitchen", "hall"]},
            "brightness": {"type": "integer", "minimum": 0, "maximum": 100},
        },
        "required": ["room"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "a": {"type": "string", "maxLength": 12},
            "b": {"type": "number", "minimum": -1.5, "maximum": 9.75},
            "c": {"type": "boolean"},
        },
        "required": ["b"],
        "maxProperties": 3,
    },
    {
        "type": "array",
        "items": {"type": "integer", "exclusiveMinimum": -20, "exclusiveMaximum": 20},
        "minItems": 2,
        "maxItems": 6,
    },
    {
        "type": "array",
        "prefixItems": [{"type": "string", "minLength": 1, "maxLength": 3}, {"type": "null"}],
        "items": {"const": [1, {"k": "v"}]},
        "minItems": 2,
        "maxItems": 5,
    },
    {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "v": {"type": "integer"},
                    "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
                },
                "required": ["v", "next"],
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/node",
    },
    {"type": "object", "additionalProperties": {"type": ["integer", "null"]}, "maxProperties": 3, "minProperties": 1},
    {
        "anyOf": [
            {
                "type": "object",
                "properties": {"t": {"const": "x"}, "v": {"type": "integer"}},
                "required": ["t", "v"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"t": {"const": "xy"}, "w": {"type": "string", "maxLength": 4}},
                "required": ["t", "w"],
                "additionalProperties": False,
            },
        ]
    },
    {"enum": [1, "1", None, True, 2.5, {"a": [1]}, [], "é😀\n"]},
    {"type": "string", "minLength": 3, "maxLength": 8},
    {"type": "number", "multipleOf": 0.05, "minimum": 3, "maximum": 4},
    {"type": "integer", "multipleOf": 7, "minimum": 700, "maximum": 7000},
    {"oneOf": [{"type": "integer", "minimum": 3, "maximum": 50}, {"type": "number", "minimum": 10, "maximum": 60}]},
    {
        "type": "object",
        "properties": {"k": {"enum": ["us", "nl"]}, "zip": {"type": "string"}},
        "required": ["k", "zip"],
        "additionalProperties": False,
        "if": {"properties": {"k": {"const": "us"}}},
        "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}},
        "else": {"properties": {"zip": {"pattern": "^[0-9]{4}$"}}},
    },
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "not": {"required": ["a", "b"]},
        "additionalProperties": False,
        "minProperties": 1,
    },
    {
        "type": "object",
        "patternProperties": {"^x-[a-z]{1,3}$": {"type": "boolean"}},
        "additionalProperties": False,
        "minProperties": 2,
        "maxProperties": 3,
    },
    {
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "maximum": 9},
        "contains": {"const": 7},
        "maxItems": 4,
    },
    {
        "type": "object",
        "properties": {"when": {"type": "string", "format": "date"}, "id": {"type": "string", "format": "uuid"}},
        "required": ["when", "id"],
        "additionalProperties": False,
    },
]


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
    """The mask as bool [vocab_size]."""
    matcher.fill_next_token_bitmask(bitmask)
    return np.unpackbits(bitmask[0].view(np.uint8), bitorder="little").astype(bool)[: llama3().vocab_size]


@cache
def ids() -> dict[bytes, int]:
    return {piece: i for i, piece in reversed(list(enumerate(llama3().tokens))) if piece}


def first_token(mask: np.ndarray, plan: bytes) -> int:
    """The longest token that begins the plan; it must be allowed, and so must its beginnings."""
    spelled = [ids()[plan[:length]] for length in range(1, min(len(plan), 16) + 1) if plan[:length] in ids()]
    for token in spelled:
        assert mask[token], f"{llama3().tokens[token]!r} begins the completion {plan!r}"
    return spelled[-1]


def pick(mask: np.ndarray, rng: random.Random) -> int:
    for _ in range(20):
        token = rng.randrange(len(mask))
        if mask[token]:
            return token
    ids = np.flatnonzero(mask)
    return int(ids[rng.randrange(len(ids))])


def walk(schema: object, rng: random.Random, **options: object) -> str:
    """Random tokens for a while, then along a completion to the end."""
    info = llama3()
    end = info.eos_token_ids[0]
    matcher = GrammarMatcher(compiler().compile_json_schema(schema, **options))
    bitmask = punchcard.allocate_token_bitmask(1, info.vocab_size)
    text, plan = b"", None
    free = rng.randrange(40)
    for step in range(1_500):
        mask = allowed(matcher, bitmask)
        assert mask.any(), f"dead end after {text!r}"
        if step == free:
            plan = matcher.find_completion()
        if mask[end] and (plan == b"" or rng.random() < 0.3):
            token = end
        elif plan is not None:
            token = first_token(mask, plan)
            plan = plan[len(info.tokens[token]) :]
        else:
            token = pick(mask, rng)
        assert matcher.accept_token(token)
        if matcher.is_terminated():
            return text.decode()
        text += info.tokens[token]
    raise AssertionError(f"no end after {len(text)} bytes: {text[:200]!r}")


def exact(text: str) -> int | float:
    """A number as jsonschema understands it, without overflow."""
    value = Decimal(text)
    return int(value) if value == value.to_integral_value() else float(value)


def no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a name twice: {names}"
    return dict(pairs)


@pytest.mark.parametrize("profile", ["generate", "spec"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_every_walk_ends_in_a_valid_document(schema: object, profile: str) -> None:
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    for seed in range(25):
        text = walk(schema, random.Random(seed), profile=profile)
        document = json.loads(text, object_pairs_hook=no_duplicates, parse_float=exact)
        # The validator tells multiples in binary floating point; the tests of the algebra do so exactly.
        # RFC 3339 has a year 0000, which Python's dates, and so jsonschema, do not know.
        errors = [
            e
            for e in validator.iter_errors(document)
            if e.validator != "multipleOf" and not (e.validator == "format" and str(e.instance).startswith("0000-"))
        ]
        assert not errors, (text, errors[0].message)


@pytest.mark.parametrize("schema", SCHEMAS[:8], ids=range(8))
def test_mask_and_accept_agree_for_all_ids(schema: object) -> None:
    info, rng = llama3(), random.Random(1)
    matcher = GrammarMatcher(compiler().compile_json_schema(schema))
    bitmask = punchcard.allocate_token_bitmask(1, info.vocab_size)
    for _ in range(4):
        mask = allowed(matcher, bitmask)
        for token, expected in enumerate(mask.tolist()):
            took = matcher.accept_token(token)
            assert took == expected, (token, info.tokens[token])
            if took:
                matcher.rollback(1)
        assert matcher.accept_token(pick(mask, rng))
        if matcher.is_terminated():
            break
    for token in (-1, info.vocab_size, 1 << 40):
        assert not matcher.accept_token(token)
