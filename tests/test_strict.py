"""``strict=True``: what a schema admits, without members that no description of the object declares."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_algebra import COMPILER, LEAVES, NAMES, PROFILE, admits, compile_schema, is_valid, schemas, texts

from punchcard import GrammarMatcher, PunchcardError

Schema = dict[str, Any]
MASKBENCH = Path(__file__).parents[2] / "shared" / "data" / "maskbench.jsonl.gz"

A = {"type": "object", "properties": {"a": {"type": "integer"}}}
B = {"type": "object", "properties": {"b": {"type": "integer"}}}


def needs(name: str, **more: Any) -> Schema:
    return {"properties": {name: True}, "required": [name], **more}


def tagged(kind: str, *names: str) -> Schema:
    properties = {"kind": {"const": kind}, **{name: {"type": "integer"} for name in names}}
    return {"type": "object", "properties": properties, "required": ["kind"]}


TABLE: list[tuple[str, Any, list[str], list[str]]] = [
    ("an object", A, ["{}", '{"a":1}'], ['{"z":1}', '{"a":1,"z":1}', '{"a":"x"}']),
    (
        "what must come is declared",
        A | {"required": ["b"]},
        ['{"a":1,"b":{"z":1}}', '{"b":1}'],
        ['{"a":1}', '{"b":1,"z":1}'],
    ),
    (
        "what a member requires",
        A | {"dependentRequired": {"a": ["b"]}},
        ['{"a":1,"b":1}', "{}"],
        ['{"a":1}', '{"b":1}'],
    ),
    ("no properties at all", {"type": "object", "properties": {}}, ["{}"], ['{"z":1}']),
    ("a free object", {"type": "object"}, ["{}", '{"z":{"y":1}}'], ["1"]),
    ("a free member", {"properties": {"f": {"type": "object", "minProperties": 1}}}, ['{"f":{"z":1}}'], ['{"z":1}']),
    ("anything", {}, ['{"z":1}'], []),
    ("said to be open", A | {"additionalProperties": True}, ['{"z":1}'], ['{"a":"x"}']),
    ("said to be closed", A | {"additionalProperties": False}, ['{"a":1}'], ['{"z":1}']),
    ("others described", A | {"additionalProperties": A}, ['{"a":1,"z":{"a":1}}'], ['{"z":{"z":1}}']),
    ("unevaluated open", A | {"unevaluatedProperties": True}, ['{"z":1}'], []),
    ("unevaluated described", A | {"unevaluatedProperties": A}, ['{"z":{"a":1}}'], ['{"z":{"z":1}}']),
    ("open in a part", {"allOf": [A, {"additionalProperties": True}]}, ['{"a":1,"z":1}'], ['{"a":"x"}']),
    ("name patterns", A | {"patternProperties": {"^x": True}}, ['{"a":1,"xz":1}'], ['{"z":1}']),
    ("within", {"properties": {"o": {"properties": {"p": A}}}}, ['{"o":{"p":{"a":1}}}'], ['{"o":{"p":{"z":1}}}']),
    ("items", {"items": A}, ['[{"a":1},{}]'], ['[{"z":1}]']),
    (
        "a tuple",
        {"type": "array", "prefixItems": [A], "items": B},
        ['[{"a":1},{"b":1}]'],
        ['[{"b":1}]', '[{},{"a":1}]'],
    ),
    ("the root within itself", {"properties": {"n": {"$ref": "#"}}}, ['{"n":{"n":{}}}'], ['{"n":{"n":{"z":1}}}']),
    # Parts of one description.
    ("allOf", {"allOf": [A, B]}, ['{"a":1,"b":1}', "{}"], ['{"a":1,"z":1}', '{"b":"x"}']),
    ("allOf beside properties", A | {"allOf": [B, needs("c")]}, ['{"a":1,"b":1,"c":1}'], ['{"c":1,"z":1}', '{"a":1}']),
    (
        "a reference beside properties",
        needs("c") | {"$ref": "#/$defs/a", "$defs": {"a": A}},
        ['{"a":1,"c":1}', '{"c":1}'],
        ['{"c":1,"z":1}', '{"a":1}'],
    ),
    (
        "parts of parts",
        {"allOf": [{"allOf": [{"$ref": "#/$defs/a"}, B]}, needs("c")], "$defs": {"a": A}},
        ['{"a":1,"b":1,"c":1}'],
        ['{"c":1,"z":1}'],
    ),
    # Alternatives.
    ("anyOf", {"anyOf": [A, B]}, ['{"a":1}', '{"b":1}', '{"a":1,"b":1}'], ['{"z":1}', '{"a":1,"z":1}']),
    ("one that fails declares nothing", {"anyOf": [A, needs("c")]}, ['{"a":1,"c":1}'], ['{"a":"x","c":1}']),
    (
        "anyOf beside properties",
        A | {"anyOf": [needs("e"), needs("p")]},
        ['{"a":1,"e":1}', '{"p":1}', '{"e":1,"p":1}'],
        ['{"a":1}', '{"e":1,"z":1}'],
    ),
    (
        "anyOf of what is required",
        {"properties": {"a": True, "b": True}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a":1}', '{"a":1,"b":1}'],
        ["{}", '{"a":1,"z":1}'],
    ),
    ("nullable", {"anyOf": [A, {"type": "null"}]}, ["null", '{"a":1}'], ['{"z":1}', "1"]),
    ("a free alternative", {"anyOf": [A | {"required": ["a"]}, {"type": "object"}]}, ['{"z":1}'], ["1"]),
    ("oneOf", {"oneOf": [needs("a"), needs("b")]}, ['{"a":1}', '{"b":1}'], ["{}", '{"a":1,"b":1}', '{"a":1,"z":1}']),
    (
        "oneOf of what is not closed by itself",
        {"oneOf": [A | {"required": ["a"]}, {"properties": {"a": True, "b": True}, "required": ["b"]}]},
        ['{"a":1}', '{"a":"x","b":1}'],
        ['{"a":1,"b":1}'],
    ),
    (
        "tags",
        {"oneOf": [tagged("x", "i"), tagged("y", "j")]},
        ['{"kind":"x","i":1}', '{"kind":"y","j":1}'],
        ['{"kind":"x","j":1}', '{"kind":"y","i":1}'],
    ),
    (
        "two choices",
        {"allOf": [{"anyOf": [needs("a"), needs("b")]}, {"oneOf": [needs("c"), needs("d")]}]},
        ['{"a":1,"d":1}', '{"a":1,"b":1,"c":1}'],
        ['{"a":1}', '{"a":1,"c":1,"d":1}', '{"a":1,"c":1,"z":1}'],
    ),
    (
        "a choice within a choice",
        {"anyOf": [needs("a", oneOf=[needs("b"), needs("c")]), needs("d")]},
        ['{"a":1,"b":1}', '{"d":1}', '{"a":1,"c":1,"d":1}'],
        ['{"a":1}', '{"a":1,"d":1}', '{"b":1,"d":1}'],
    ),
    # Conditions.
    (
        "if",
        {
            "type": "object",
            "properties": {"c": {"enum": ["US", "CA"]}, "zip": {"type": "string"}},
            "required": ["c", "zip"],
            "if": {"properties": {"c": {"const": "US"}}},
            "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}},
        },
        ['{"c":"US","zip":"12345"}', '{"c":"CA","zip":"x"}'],
        ['{"c":"US","zip":"x"}', '{"c":"CA","zip":"x","z":1}'],
    ),
    (
        "members of then and else",
        {"properties": {"k": True}, "if": {"required": ["k"]}, "then": B, "else": needs("c")},
        ['{"k":1,"b":1}', '{"c":1}'],
        ['{"k":1,"c":1}', '{"b":1,"c":1}', '{"k":1,"z":1}'],
    ),
    ("not", needs("a") | {"not": {"properties": {"a": A}}}, ['{"a":1}', '{"a":{"a":"x"}}'], ['{"a":{"z":1}}', "{}"]),
    ("contains", {"type": "array", "contains": needs("a")}, ['[{"a":1,"z":1}]'], ['[{"z":1}]']),
    (
        "at most so many",
        {"contains": needs("a"), "maxContains": 1},
        ['[{"a":1,"z":1}]'],
        ['[{"a":1,"z":1},{"a":2,"z":1}]'],
    ),
    ("names", {"propertyNames": {"maxLength": 1}, "properties": {"a": A}}, ['{"a":{"a":1}}'], ['{"ab":1}', '{"b":1}']),
    ("a dependent schema", A | {"dependentSchemas": {"a": B}}, ['{"a":1,"b":1}'], ['{"b":1}', '{"a":1,"z":1}']),
    (
        "a dozen conditions on one member",
        {
            "properties": {"k": {"type": "string"}},
            "required": ["k"],
            "allOf": [{"if": {"properties": {"k": {"const": k}}}, "then": needs("v" + k)} for k in "abcdefghijkl"],
        },
        ['{"k":"a","va":1}', '{"k":"z"}'],
        ['{"k":"a"}', '{"k":"a","va":1,"vb":1}', '{"k":"z","va":1}'],
    ),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_nothing_undeclared_where_an_object_is_described(schema: Schema, valid: list[str], invalid: list[str]) -> None:
    for profile in ("spec", "generate"):
        for text in valid:
            assert admits(schema, text, strict=True, profile=profile, property_order="any"), (text, profile)
        for text in invalid:
            assert not admits(schema, text, strict=True, profile=profile), (text, profile)


@pytest.mark.parametrize("draft", ["4", "7", "2019-09"])
def test_earlier_drafts(draft: str) -> None:
    schema = {"definitions": {"a": A}, "properties": {"o": {"$ref": "#/definitions/a", "properties": {"z": {}}}}}
    assert admits(schema, '{"o":{"a":1}}', strict=True, draft=draft)
    # Up to draft 7 a reference hides what stands beside it.
    assert admits(schema, '{"o":{"a":1,"z":1}}', strict=True, draft=draft) == (draft == "2019-09")
    assert not admits(schema, '{"o":{"y":1}}', strict=True, draft=draft)
    dependent = {"properties": {"a": {}}, "dependencies": {"a": {"properties": {"b": {}}}}}
    assert admits(dependent, '{"a":1,"b":1}', strict=True, draft=draft)
    assert not admits(dependent, '{"b":1}', strict=True, draft=draft)


def test_many_alternatives_stay_alternatives() -> None:
    tags = {"oneOf": [tagged(f"k{i}", f"v{i}") for i in range(200)]}
    assert admits(tags, '{"kind":"k7","v7":1}', strict=True) and not admits(tags, '{"kind":"k7","v8":1}', strict=True)
    tags = {"anyOf": tags["oneOf"]}
    assert admits(tags, '{"kind":"k7","v7":1}', strict=True) and not admits(tags, '{"kind":"k7","v8":1}', strict=True)
    # Without a tag many branches are closed one by one.
    named = {"anyOf": [needs(f"v{i}") for i in range(100)]}
    assert admits(named, '{"v7":1}', strict=True) and not admits(named, '{"v7":1,"z":1}', strict=True)


# ---------------------------------------------------------------- random schemas


@PROFILE
@given(schemas, texts)
def test_strict_admits_a_subset(schema: Any, documents: list[str]) -> None:
    for text in documents:
        assert not admits(schema, text, strict=True) or admits(schema, text), text


def parts(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Schemas of one object whose members hold no further objects that a schema describes."""
    lists = st.lists(inner, min_size=1, max_size=3)
    keywords = {
        "allOf": lists,
        "anyOf": lists,
        "oneOf": lists,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "dependentSchemas": st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=2),
        "properties": DECLARED,
    }
    names = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=3, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in chosen}))


DECLARED = st.dictionaries(st.sampled_from(NAMES), LEAVES, min_size=1, max_size=3)
objects = st.dictionaries(st.sampled_from([*NAMES, "z"]), st.sampled_from([0, 1, "a", None]), max_size=4)


@PROFILE
@given(
    st.recursive(st.builds(lambda names: {"properties": names}, DECLARED), parts, max_leaves=5),
    DECLARED,
    st.lists(objects.map(json.dumps), min_size=8, max_size=12),
)
def test_strict_is_what_unevaluated_properties_says(schema: Schema, names: Any, documents: list[str]) -> None:
    whole = {"properties": names, "allOf": [schema]}
    for text in documents:
        assert admits(whole, text, strict=True) == is_valid(whole | {"unevaluatedProperties": False}, text), text


# ---------------------------------------------------------------- schemas from the wild

CONDITIONS = {"if", "not", "propertyNames"}


def keywords(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        return set(schema).union(*map(keywords, schema.values()))
    return set().union(*map(keywords, schema)) if isinstance(schema, list) else set()


@pytest.mark.skipif(not MASKBENCH.exists(), reason="the schemas of MaskBench are not here (../shared)")
def test_strict_admits_a_subset_under_real_schemas() -> None:
    with gzip.open(MASKBENCH, "rt") as lines:
        cases = [json.loads(line) for line in lines]
    for case in random.Random(7).sample(cases, 120):
        schema = case["schema"]
        try:
            grammar = compile_schema(schema, strict=True)
        except PunchcardError as error:
            with pytest.raises(type(error)):
                COMPILER.compile_json_schema(schema, profile="spec")
            continue
        if grammar is None:
            # A condition may ask for a member that nothing declares.
            assert keywords(schema) & CONDITIONS, case["id"]
            continue
        plain = COMPILER.compile_json_schema(schema, profile="spec")
        for test in case["tests"]:
            text = json.dumps(test["data"])
            matcher, loose = GrammarMatcher(grammar), GrammarMatcher(plain)
            if matcher.accept_string(text) and matcher.is_accepting():
                assert loose.accept_string(text) and loose.is_accepting(), case["id"]
