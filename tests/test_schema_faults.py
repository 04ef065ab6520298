"""What a schema can get wrong is an error when it is compiled; what is only unusual in size or shape works."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_algebra import COMPILER, admits

from punchcard import (
    GrammarMatcher,
    InvalidSchemaError,
    LimitError,
    Limits,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
    allocate_token_bitmask,
)

Schema = dict[str, Any]

# ---------------------------------------------------------------- names that are required and not declared

KEYS = [f"k{i}" for i in range(65)]
MANY_REQUIRED: dict[str, Schema] = {
    "a record of an enum": {
        "type": "object",
        "propertyNames": {"enum": KEYS},
        "additionalProperties": {"type": "integer"},
        "required": KEYS,
    },
    "required only": {"type": "object", "required": KEYS},
    "by pattern": {"type": "object", "patternProperties": {"^k": {"type": "integer"}}, "required": KEYS},
    "dependent": {"type": "object", "dependentRequired": {"k0": KEYS[1:]}, "required": ["k0"]},
    "some declared": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", *KEYS]},
    "many declared": {"type": "object", "properties": {f"p{i}": {} for i in range(200)}, "required": KEYS},
}


@pytest.mark.parametrize("profile", ["generate", "spec"])
@pytest.mark.parametrize("schema", MANY_REQUIRED.values(), ids=MANY_REQUIRED)
def test_more_required_names_than_a_word_has_bits(schema: Schema, profile: str) -> None:
    declared = {"a": 1} if "a" in schema["required"] else {}
    document = declared | dict.fromkeys(reversed(KEYS), 1)
    assert admits(schema, json.dumps(document), profile=profile)
    del document["k7"]
    assert not admits(schema, json.dumps(document), profile=profile)
    grammar = COMPILER.compile_json_schema(schema, profile=profile)
    for beginning in ("", "{", '{"', '{"a":1,' if declared else '{"k3":1,'):
        matcher = GrammarMatcher(grammar)
        assert matcher.accept_string(beginning)
        assert admits(schema, beginning + matcher.find_completion().decode(), profile=profile)
    matcher, bitmask = GrammarMatcher(grammar, token_budget=2000), allocate_token_bitmask(1, 257)
    assert matcher.fill_next_token_bitmask(bitmask) is not None and matcher.accept_string("{")


# ---------------------------------------------------------------- tight counts

TWENTY = [f"r{i}" for i in range(21)]
TIGHT: dict[str, tuple[Schema, list[str], list[str]]] = {
    "anyOf": (
        {
            "type": "object",
            "required": TWENTY,
            "maxProperties": 24,
            "anyOf": [{"required": ["a", "b"]}, {"required": ["c", "b", "d"]}],
        },
        ["a", "b"],
        ["x", "y"],
    ),
    "two choices": (
        {
            "type": "object",
            "required": TWENTY,
            "maxProperties": 23,
            "allOf": [
                {"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]},
                {"anyOf": [{"required": ["d", "e"]}, {"required": ["f"]}]},
            ],
        },
        ["a", "f"],
        ["x"],
    ),
    "dependent": (
        {"type": "object", "required": TWENTY, "maxProperties": 22, "dependentRequired": {"a": ["b"], "c": ["d", "e"]}},
        ["z"],
        ["a"],
    ),
    "at least": (
        {
            "type": "object",
            "required": TWENTY,
            "minProperties": 24,
            "maxProperties": 24,
            "propertyNames": {"enum": [*TWENTY, "a", "b", "c", "d"]},
            "anyOf": [{"required": ["a", "b"]}, {"not": {"required": ["d"]}}],
        },
        ["a", "b", "c"],
        ["d", "c"],
    ),
}


@pytest.mark.parametrize(("schema", "taken", "refused"), TIGHT.values(), ids=TIGHT)
def test_tight_counts_are_seen_without_a_search(schema: Schema, taken: list[str], refused: list[str]) -> None:
    grammar = COMPILER.compile_json_schema(schema, profile="spec", limits=Limits(max_search=2_000))
    for beginning in ("", '{"', '{"r3":1,"', "{" + ",".join(f'"{name}":1' for name in taken) + ',"'):
        matcher = GrammarMatcher(grammar)
        assert matcher.accept_string(beginning)
        document = json.loads(beginning + matcher.find_completion().decode())
        assert set(TWENTY) <= set(document) and admits(schema, json.dumps(document))
    matcher = GrammarMatcher(grammar)
    assert not matcher.accept_string("{" + "".join(f'"{name}":1,' for name in refused) + '"')


# ---------------------------------------------------------------- counts


@pytest.mark.parametrize("count", [2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**40, 10**300, 1e300])
def test_counts_beyond_any_document(count: float) -> None:
    # Taken modulo a power of two, these would be small.
    for keyword, kind in (("Length", "string"), ("Items", "array"), ("Properties", "object")):
        text = {"string": '"a"', "array": "[1]", "object": '{"a":1}'}[kind]
        assert admits({f"max{keyword}": count}, text)
        assert not admits({f"min{keyword}": count}, text) and admits({f"min{keyword}": count}, "null")
        assert admits({"not": {f"min{keyword}": count, "type": kind}}, text)
        with pytest.raises(UnsatisfiableSchemaError, match=f"min{keyword}"):
            COMPILER.compile_json_schema({"type": kind, f"min{keyword}": count})
    assert admits({"contains": {"type": "integer"}, "maxContains": count}, "[1]")
    assert not admits({"contains": {"type": "integer"}, "minContains": count}, "[1]")


# ---------------------------------------------------------------- errors that come at once


@pytest.mark.parametrize(
    "definitions",
    [
        {"e": {"not": {"$ref": "#/$defs/e"}}},
        {"e": {"not": {"allOf": [{"$ref": "#/$defs/f"}]}}, "f": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/e"}]}},
        {"e": {"if": {"$ref": "#/$defs/e"}, "then": False}},
        {"e": {"$ref": "#/$defs/f"}, "f": {"allOf": [{"not": {"$ref": "#/$defs/e"}}, {"minLength": 2}]}},
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda e: e,
        lambda e: {"properties": {"a": e}},
        lambda e: {"items": {"properties": {"a": {"additionalProperties": e}}}},
        lambda e: {"anyOf": [{"type": "null"}, {"prefixItems": [True, e]}]},
        lambda e: {"contains": e},
    ],
)
def test_a_definition_that_is_its_own_negation_is_refused_wherever_it_is_used(definitions: Schema, use: Any) -> None:
    schema = use({"$ref": "#/$defs/e"}) | {"$defs": definitions}
    with pytest.raises(InvalidSchemaError, match="own negation"):
        COMPILER.compile_json_schema(schema)
    assert COMPILER.compile_json_schema({"$defs": definitions}) is not None  # nobody uses it


def test_a_negation_within_a_member_is_no_contradiction() -> None:
    schema = {
        "$ref": "#/$defs/e",
        "$defs": {"e": {"not": {"properties": {"x": {"$ref": "#/$defs/e"}}, "required": ["x"]}}},
    }
    for text, valid in (("{}", True), ('{"x":1}', True), ('{"x":{}}', False), ('{"x":{"x":{}}}', True), ("1", False)):
        assert admits(schema, text) == valid, text


@pytest.mark.parametrize(
    ("schema", "pointer", "said"),
    [
        ({"type": "integer", "minimum": 5, "maximum": 3}, "", '"minimum": 5 and "maximum": 3'),
        ({"type": "number", "exclusiveMinimum": 3, "maximum": 3}, "", '"exclusiveMinimum": 3 and "maximum": 3'),
        ({"type": "string", "title": "t", "minLength": 5, "maxLength": 3}, "", '"minLength": 5 and "maxLength": 3'),
        ({"type": "array", "minItems": 5, "maxItems": 3}, "", '"minItems": 5 and "maxItems": 3'),
        ({"type": "object", "minProperties": 5, "maxProperties": 3}, "", '"minProperties": 5 and "maxProperties": 3'),
        ({"const": 1, "enum": [2, "a"]}, "", '"const": 1 and "enum": [2, "a"] contradict'),
        ({"const": {"a": 1}, "type": "string"}, "", '"const" and "type": "string" contradict'),
        ({"enum": [1, 2], "type": "string", "minLength": 1}, "", '"enum": [1, 2] and "type": "string" contradict'),
        ({"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6}, "", '"multipleOf": 7, "minimum": 1'),
        (
            {"type": "object", "required": ["a"], "additionalProperties": False},
            "",
            '"required": ["a"] and "additionalProperties": false',
        ),
        (
            {
                "type": "object",
                "required": ["x"],
                "properties": {"x": {"type": "string", "pattern": "^a$", "minLength": 2}},
            },
            "/properties/x",
            '"pattern": "^a$" and "minLength": 2',
        ),
        ({"type": "array", "items": False, "minItems": 1}, "", '"items": false and "minItems": 1'),
        ({"enum": []}, "", 'nothing satisfies "enum": []'),
    ],
)
def test_a_contradiction_names_its_keywords(schema: Schema, pointer: str, said: str) -> None:
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        COMPILER.compile_json_schema(schema)
    assert said in str(caught.value) and caught.value.fields["pointer"] == pointer
    assert "title" not in str(caught.value)


# ---------------------------------------------------------------- dynamic references


def ring(count: int, anchors: int) -> Schema:
    """Resources that lead to each other, with some anchors between them."""
    uris = [f"https://example.com/{i}" for i in range(count)]
    definitions = {
        str(i): {
            "$id": uri,
            "$dynamicAnchor": f"a{i % anchors}",
            "properties": {
                "own": {"$dynamicRef": f"#a{i % anchors}"},
                **{str(j): {"$ref": other} for j, other in enumerate(uris) if j != i},
            },
            "required": ["own"] if i == 0 else [],
        }
        for i, uri in enumerate(uris)
    }
    return {"$ref": uris[-1], "$defs": definitions}


def test_dynamic_scopes_are_told_apart_by_what_they_bind() -> None:
    # Each order in which resources are entered is one more way, and there are 11! of them.
    grammar = COMPILER.compile_json_schema(ring(12, 1), profile="spec", limits=Limits(max_contexts=100))
    for text, valid in (('{"0":{"own":{"3":{}}}}', True), ('{"0":{"own":{"0":{}}}}', False)):
        matcher = GrammarMatcher(grammar)
        assert (matcher.accept_string(text) and matcher.is_accepting()) == valid, text
    # Of anchors that only one place has, no way binds another.
    assert COMPILER.compile_json_schema(
        ring(12, 12) | {"$ref": "https://example.com/11"}, limits=Limits(max_contexts=1)
    )


def test_what_dynamic_references_multiply_meets_a_limit() -> None:
    with pytest.raises(LimitError) as caught:
        COMPILER.compile_json_schema(ring(16, 8), limits=Limits(max_contexts=2_000))
    assert caught.value.fields["limit"] == "max_contexts"


# ---------------------------------------------------------------- vocabularies

BASE = "https://json-schema.org/draft/2020-12/"


def metaschema(**vocabularies: bool) -> Schema:
    names = {f"{BASE}vocab/{name.replace('_', '-')}": required for name, required in vocabularies.items()}
    return {"$id": "https://example.com/meta", "$schema": BASE + "schema", "$vocabulary": names}


def test_a_custom_vocabulary() -> None:
    def judge(meta: Schema, schema: Schema, text: str) -> bool:
        return admits(schema | {"$schema": meta["$id"]}, text, resources={meta["$id"]: meta})

    bounds = {"properties": {"n": {"minimum": 10, "format": "date"}, "no": False}}
    plain = metaschema(core=True, applicator=True)
    assert (
        judge(plain, bounds, '{"n":1}') and not judge(plain, bounds, '{"no":1}') and judge(plain, bounds, '{"n":"x"}')
    )
    checks = metaschema(core=True, validation=True, format_assertion=True)
    assert judge(checks, bounds, '{"no":1}') and not judge(checks, {"minimum": 10}, "1")
    assert not judge(checks, {"format": "date"}, '"x"')
    optional = metaschema(core=True, validation=True)
    optional["$vocabulary"]["https://example.com/vocab/mine"] = False
    assert not judge(optional, {"type": "number"}, '"x"')
    required = metaschema(core=True)
    required["$vocabulary"]["https://example.com/vocab/mine"] = True
    with pytest.raises(UnsupportedSchemaError, match="vocab/mine"):
        COMPILER.compile_json_schema({"$schema": required["$id"]}, resources={required["$id"]: required})
    # A metaschema that no schema names is a document like others.
    assert admits({}, "1", resources={required["$id"]: required})
