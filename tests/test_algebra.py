"""Schemas are sets of values: what random schemas admit, alone and combined, and where masks lead in them.

More examples: ``PUNCHCARD_EXAMPLES=20000 pytest tests/test_algebra.py``; they are drawn by chance then.
"""

from __future__ import annotations

import decimal
import json
import os
import random
import re
from decimal import Decimal
from typing import Any

import hypothesis
import jsonschema
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import punchcard
from punchcard import (
    CompiledGrammar,
    GrammarCompiler,
    GrammarMatcher,
    TokenizerInfo,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)

END = 256
COMPILER = GrammarCompiler(
    TokenizerInfo.from_vocab([bytes([i]) for i in range(256)], eos_token_ids=[END], vocab_size=257)
)
EXAMPLES = int(os.environ.get("PUNCHCARD_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 150,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
Schema = Any

decimal.getcontext().prec = 200

# ---------------------------------------------------------------- values, drawn from few, so that they meet

NAMES = ["a", "b", "ab", "c1", "é"]
STRINGS = ["", "a", "b", "ab", "ba", "aab", "1", "é😀", 'a"\\/', "c1"]
NUMBERS = ["0", "1", "2", "3", "-1", "-2", "0.5", "1.5", "-0.25", "10", "12", "0.1", "0.3", "100"]

numbers = st.sampled_from(NUMBERS).map(lambda text: int(text) if text.lstrip("-").isdigit() else float(text))
scalars = st.one_of(st.none(), st.booleans(), numbers, st.sampled_from(STRINGS))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)),
    max_leaves=5,
)


@st.composite
def spellings(draw: st.DrawFn, of: st.SearchStrategy[Any] = values) -> str:
    """JSON texts: a value, with white space, escapes and spellings of numbers that only the profile spec admits."""
    rng = random.Random(draw(st.integers(0, 255)))

    def space() -> str:
        return rng.choice(["", "", "", " ", "\n\t"])

    def string(text: str) -> str:
        if rng.random() < 0.7:
            return json.dumps(text, ensure_ascii=rng.random() < 0.5)
        return '"' + "".join(f"\\u{u:04X}" for u in np.frombuffer(text.encode("utf-16-le"), "<u2")) + '"'

    def number(value: float) -> str:
        plain = str(value)
        if value == 0:
            others = ["0.0", "-0", "0e7", "-0.00E-12"]
        elif isinstance(value, int):
            others = [f"{plain}.0", f"{plain}e0", f"{plain}0E-1", f"{plain}.00e+00"]
        else:
            others = [f"{plain}0", f"{plain}e0", f"{Decimal(plain) * 100:f}e-02"]
        return rng.choice([plain, plain, *others])

    def spell(value: Any) -> str:
        if isinstance(value, str):
            return string(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return number(value)
        if isinstance(value, list):
            return "[" + space() + ",".join(space() + spell(item) + space() for item in value) + "]"
        if isinstance(value, dict):
            pairs = [f"{space()}{string(k)}{space()}:{space()}{spell(v)}" for k, v in value.items()]
            return "{" + ",".join(pairs) + space() + "}"
        return json.dumps(value)

    return space() + spell(draw(of)) + space()


# ---------------------------------------------------------------- schemas

PATTERNS = ["^a", "b$", "^[a-c]+$", "a.*b", "^.?$", "\\d", "^(a|b1?)*$", "^(?!a)", "[^a]"]
sizes = st.integers(0, 3)


def some(keywords: dict[str, st.SearchStrategy[Any]], least: int = 1) -> st.SearchStrategy[dict[str, Any]]:
    """One to three of the keywords, each with a value."""
    names = st.lists(st.sampled_from(sorted(keywords)), min_size=least, max_size=3, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in chosen}))


def typed(name: str, keywords: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Schema]:
    """Keywords with the type that they speak of, or without."""
    return st.builds(lambda schema, kind: schema | kind, some(keywords), st.sampled_from([{"type": name}, {}]))


LEAVES: st.SearchStrategy[Schema] = st.one_of(
    st.sampled_from([True, False, {}]),
    st.builds(lambda value: {"const": value}, values),
    st.builds(lambda choice: {"enum": choice}, st.lists(values, min_size=1, max_size=4)),
    st.builds(
        lambda types: {"type": types},
        st.lists(
            st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"]),
            min_size=1,
            max_size=4,
            unique=True,
        ),
    ),
    typed(
        "number",
        {
            "minimum": numbers,
            "maximum": numbers,
            "exclusiveMinimum": numbers,
            "exclusiveMaximum": numbers,
            "multipleOf": st.sampled_from([1, 2, 3, 0.5, 0.1, 0.25, 1.5]),
        },
    ),
    typed("string", {"minLength": sizes, "maxLength": sizes, "pattern": st.sampled_from(PATTERNS)}),
)


def containers(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Objects, arrays and combinations of the inner schemas."""
    names = st.sampled_from(NAMES)
    lists = st.lists(inner, min_size=1, max_size=3)
    by_name = st.dictionaries(names, inner, min_size=1, max_size=3)
    some_names = st.lists(names, max_size=2, unique=True)
    combined = {
        "allOf": lists,
        "anyOf": lists,
        "oneOf": lists,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "unevaluatedProperties": inner,
        "unevaluatedItems": inner,
        "dependentSchemas": by_name,
    }
    in_objects = {
        "properties": by_name,
        "required": some_names,
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, min_size=1, max_size=2),
        "propertyNames": inner,
        "minProperties": sizes,
        "maxProperties": sizes,
        "dependentRequired": st.dictionaries(names, some_names, min_size=1, max_size=2),
    }
    in_arrays = {
        "items": inner,
        "prefixItems": lists,
        "contains": inner,
        "minContains": sizes,
        "maxContains": sizes,
        "minItems": sizes,
        "maxItems": sizes,
        "uniqueItems": st.booleans(),
    }
    either = st.one_of(typed("object", in_objects), typed("array", in_arrays))
    return st.one_of(either, some(combined), st.builds(lambda a, b: a | b, either, some(combined)))


schemas = st.recursive(LEAVES, containers, max_leaves=6)
texts = st.lists(spellings(), min_size=6, max_size=12)


# ---------------------------------------------------------------- membership


def compile_schema(schema: Schema, **options: Any) -> CompiledGrammar | None:
    """None: no value satisfies the schema."""
    try:
        return COMPILER.compile_json_schema(schema, **{"profile": "spec"} | options)
    except UnsatisfiableSchemaError:
        return None
    except UnsupportedSchemaError:
        return hypothesis.reject()


def admits(schema: Schema, text: str, **options: Any) -> bool:
    """Whether the mask lets every byte of the text pass, and then the end."""
    grammar = compile_schema(schema, **options)
    if grammar is None:
        return False
    matcher, bitmask = GrammarMatcher(grammar), punchcard.allocate_token_bitmask(1, 257)
    for token in [*text.encode(), END]:
        matcher.fill_next_token_bitmask(bitmask)
        allowed = bool(int(bitmask[0, token >> 5]) >> (token & 31) & 1)
        assert matcher.accept_token(token) == allowed
        if not allowed:
            return False
    return True


def is_valid(schema: Schema, text: str) -> bool:
    """What jsonschema says, with numbers made exact."""
    exact = json.loads(json.dumps(schema), parse_float=Decimal)
    return bool(ORACLE(exact).is_valid(json.loads(text, parse_float=Decimal)))


def is_integer(_: Any, value: Any) -> bool:
    if isinstance(value, Decimal):
        return bool(value == value.to_integral_value())
    return isinstance(value, int) and not isinstance(value, bool)


ORACLE = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", is_integer),
)


# ---------------------------------------------------------------- properties


@PROFILE
@given(schemas, texts)
def test_membership_is_validity(schema: Schema, documents: list[str]) -> None:
    for text in documents:
        assert admits(schema, text) == is_valid(schema, text), text


@PROFILE
@given(schemas, schemas, schemas, texts)
def test_combinations_are_boolean(a: Schema, b: Schema, c: Schema, documents: list[str]) -> None:
    for text in documents:
        in_a, in_b, in_c = (admits(schema, text) for schema in (a, b, c))
        assert admits({"allOf": [a, b]}, text) == (in_a and in_b), text
        assert admits({"anyOf": [a, b]}, text) == (in_a or in_b), text
        assert admits({"oneOf": [a, b]}, text) == (in_a != in_b), text
        assert admits({"oneOf": [a, b, c]}, text) == (in_a + in_b + in_c == 1), text
        assert admits({"not": a}, text) == (not in_a), text
        assert admits({"if": a, "then": b, "else": c}, text) == (in_b if in_a else in_c), text
        assert admits({"allOf": [{"not": {"allOf": [a, b]}}, c]}, text) == (not (in_a and in_b) and in_c), text


@PROFILE
@given(schemas, st.sampled_from(["generate", "spec"]), st.integers(0, 2**16))
def test_walks_meet_no_dead_end(schema: Schema, profile: str, seed: int) -> None:
    grammar = compile_schema(schema, profile=profile, whitespace="none")
    if grammar is None:
        return
    rng = random.Random(seed)
    for _ in range(4):
        matcher, bitmask, text = GrammarMatcher(grammar), punchcard.allocate_token_bitmask(1, 257), bytearray()
        while not matcher.is_terminated() and len(text) < 60:
            matcher.fill_next_token_bitmask(bitmask)
            allowed = np.flatnonzero(np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")[:257]).tolist()
            assert allowed, bytes(text)
            likely = [token for token in allowed if token == END or chr(token) in '"{}[]:,0123ab']
            token = rng.choice(likely if likely and rng.random() < 0.9 else allowed)
            assert matcher.accept_token(token)
            text += bytes([token]) if token < END else b""
        # Exponents of more digits are beyond what the validator can count to.
        if matcher.is_terminated() and not re.search(rb"[eE][+-]?\d{4}", text):
            assert is_valid(schema, text.decode()), bytes(text)
