"""What compiled schemas admit and refuse, byte by byte: tables of schemas, valid documents and invalid ones."""

from __future__ import annotations

import json

import pytest

import punchcard
from punchcard import (
    GrammarCompiler,
    GrammarMatcher,
    InvalidSchemaError,
    LimitError,
    PunchcardError,
    TokenizerInfo,
    UnsatisfiableSchemaError,
)

END = 256
COMPILER = GrammarCompiler(
    TokenizerInfo.from_vocab([bytes([i]) for i in range(256)], eos_token_ids=[END], vocab_size=257)
)


def admits(schema: object, text: str, **options: object) -> bool:
    """Whether each byte of the text, and the end after it, is allowed by the mask; and accept_token says the same."""
    matcher = GrammarMatcher(COMPILER.compile_json_schema(schema, **options))
    bitmask = punchcard.allocate_token_bitmask(1, 257)
    for token in [*text.encode(), END]:
        matcher.fill_next_token_bitmask(bitmask)
        allowed = bool(int(bitmask[0, token >> 5]) >> (token & 31) & 1)
        assert matcher.accept_token(token) == allowed
        if not allowed:
            return False
    return True


D4 = "http://json-schema.org/draft-04/schema#"
#: Sixteen kinds, each with parameters of its own, told apart by a member that may come last.
KINDS = {
    "type": "object",
    "properties": {"kind": {"type": "string"}},
    "required": ["kind"],
    "allOf": [
        {
            "if": {"properties": {"kind": {"const": f"k{i}"}}},
            "then": {"properties": {"parameters": {"type": "object", "required": [f"p{i}"]}}},
        }
        for i in range(16)
    ],
}
TABLE: list[tuple[str, object, list[str], list[str]]] = [
    (
        "draft 4: an integer is spelled without a fraction",
        {"$schema": D4, "type": "integer", "maximum": 20},
        ["7", "-0", "20"],
        ["7.0", "1e1", "21"],
    ),
    (
        "draft 4: what is no integer",
        {"$schema": D4, "type": "number", "not": {"type": "integer"}},
        ["7.0", "1e1", "0.5"],
        ["7", "0", "-0"],
    ),
    (
        "exponents by value",
        {"type": "integer", "minimum": 1, "maximum": 10},
        ["1e1", "100e-1", "0.1E+1"],
        ["1e2", "5e-1"],
    ),
    (
        "many conditions on a member that comes last",
        KINDS,
        ['{"parameters":{"p3":1},"kind":"k3"}', '{"kind":"k3","parameters":{"p3":1}}', '{"parameters":1,"kind":"z"}'],
        ['{"parameters":{"p3":1},"kind":"k4"}', '{"parameters":{},"kind":"k0"}', '{"parameters":{"p3":1}}'],
    ),
    (
        "overlapping alternatives with an optional tag",
        {"oneOf": [{"properties": {"t": {"const": i}, "v": {"type": "object", "maxProperties": i}}} for i in range(6)]},
        ['{"t":3,"v":{"a":1}}', '{"v":{"a":1,"b":2,"c":3,"d":4,"e":5}}', '{"v":{},"t":5}'],
        ['{"v":{"a":1}}', '{"t":1,"v":{"a":1,"b":2}}', "{}", "1"],
    ),
    ("types", {"type": ["string", "null"]}, ['"a"', "null"], ["1", "true", "nul"]),
    ("boolean", {"type": "boolean"}, ["true", "false"], ["null", "truefalse", '"true"']),
    ("false in a union", {"anyOf": [False, {"const": 1}]}, ["1"], ["2"]),
    (
        "strings by length",
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"ab"', '"é😀x"'],
        ['"a"', '"abcd"', '""'],
    ),
    (
        "const object, any order",
        {"const": {"a": 1, "b": [True]}},
        ['{"a":1,"b":[true]}', '{"b":[true],"a":1}'],
        ['{"a":1}'],
    ),
    ("const numbers by value", {"const": 1.0}, ["1"], ["2", "1.5"]),
    ("integers", {"type": "integer"}, ["0", "-12", "100"], ["1.5", "01", "-", "+1"]),
    ("integer range", {"type": "integer", "minimum": -5, "maximum": 12}, ["-5", "0", "12"], ["-6", "13", "120"]),
    (
        "number range",
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1.5},
        ["0.1", "1.5", "1"],
        ["0", "1.51", "-1"],
    ),
    ("multiples", {"type": "number", "multipleOf": 0.25}, ["0.75", "-2", "1.5"], ["0.3", "1.26"]),
    ("required", {"type": "object", "required": ["a", "b"]}, ['{"a":1,"b":2}', '{"b":2,"a":1}'], ["{}", '{"a":1}']),
    ("no name twice", {"type": "object"}, ['{"a":1,"b":1}'], ['{"a":1,"a":1}', '{"a":1,"\\u0061":1}']),
    (
        "closed",
        {"properties": {"a": True}, "additionalProperties": False, "type": "object"},
        ["{}", '{"a":0}'],
        ['{"b":0}'],
    ),
    ("impossible optional member", {"type": "object", "properties": {"a": False}}, ["{}", '{"b":1}'], ['{"a":1}']),
    (
        "prefix and rest",
        {"prefixItems": [{"type": "null"}], "items": {"type": "integer"}},
        ["[null,1]", "[]"],
        ["[1]", "[null,null]"],
    ),
    (
        "item count",
        {"type": "array", "minItems": 2, "maxItems": 3, "items": {"type": "integer"}},
        ["[1,2]", "[1,2,3]"],
        ["[1]", "[1,2,3,4]"],
    ),
    ("contains", {"type": "array", "contains": {"const": 1}}, ["[1]", "[0,1]", "[1,1]"], ["[]", "[0]"]),
    (
        "contains, bounded",
        {"type": "array", "contains": {"const": 1}, "minContains": 2, "maxContains": 2},
        ["[1,0,1]"],
        ["[1]", "[1,1,1]"],
    ),
    ("exactly one", {"oneOf": [{"type": "integer"}, {"minimum": 2, "type": "number"}]}, ["1", "2.5"], ["2", "1.5"]),
    ("not", {"type": "object", "not": {"required": ["a"]}}, ["{}", '{"b":1}'], ['{"a":1}']),
    (
        "conditional",
        {
            "type": "object",
            "properties": {"k": {"enum": ["x", "y"]}, "v": True},
            "required": ["k"],
            "if": {"properties": {"k": {"const": "x"}}},
            "then": {"required": ["v"]},
        },
        ['{"k":"x","v":1}', '{"k":"y"}'],
        ['{"k":"x"}'],
    ),
    ("dependent", {"type": "object", "dependentRequired": {"a": ["b"]}}, ['{"b":1}', '{"a":1,"b":1}'], ['{"a":1}']),
    (
        "name patterns",
        {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False},
        ['{"x1":1}', "{}"],
        ['{"x":"s"}', '{"y":1}'],
    ),
    ("names", {"type": "object", "propertyNames": {"maxLength": 2}}, ['{"ab":1}'], ['{"abc":1}']),
    # What names refer back to says something of strings, too.
    ("names of the root", {"type": ["object", "string"], "propertyNames": {"$ref": "#"}}, ['{"a":1}', '"a"'], ["1"]),
    (
        "names of each other",
        {
            "$defs": {
                "a": {"propertyNames": {"$ref": "#/$defs/b"}, "maxLength": 2},
                "b": {"allOf": [{"$ref": "#/$defs/a"}], "propertyNames": {"$ref": "#/$defs/a"}, "minLength": 2},
            },
            "$ref": "#/$defs/a",
        },
        ['{"ab":1}', '"a"', "{}"],
        ['{"a":1}', '{"abc":1}', '"abc"'],
    ),
    (
        "names that are no names of the same",
        {"propertyNames": {"not": {"$ref": "#"}}, "maxLength": 1},
        ['{"ab":1}', '"a"'],
        ['{"a":1}', '"ab"'],
    ),
    (
        "names below",
        {"maxLength": 1, "properties": {"a": {"type": "object", "propertyNames": {"$ref": "#"}}}},
        ['{"a":{"b":1}}'],
        ['{"a":{"bc":1}}'],
    ),
    (
        "recursion",
        {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}},
        ["[[],[[]]]"],
        ["[1]"],
    ),
    (
        "recursion to the root",
        {"type": "object", "properties": {"c": {"$ref": "#"}}, "additionalProperties": False},
        ['{"c":{"c":{}}}'],
        ['{"c":1}'],
    ),
    ("pattern", {"type": "string", "pattern": "^[a-z]+(?!x)\\d$"}, ['"ab1"'], ['"1"', '"ab"']),
    ("format", {"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2023-02-29"']),
    ("untyped keywords", {"minLength": 2, "required": ["a"]}, ["1", '"ab"', '{"a":1}', "[]"], ['"a"', "{}"]),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_admits_exactly_the_valid_documents(schema: object, valid: list[str], invalid: list[str]) -> None:
    for text in valid:
        assert admits(schema, text, profile="spec"), text
    for text in invalid:
        for profile in ("spec", "generate"):
            assert not admits(schema, text, profile=profile), (text, profile)


def test_declared_order_and_white_space_of_the_generate_profile() -> None:
    schema = {"type": "object", "properties": {"a": True, "b": {"type": "integer"}}}
    for text in ('{"a":1,"b":2}', '{"a": 1, "b": 2}', '{\n  "a": 1,\n  "b": 2\n}', '{"b":2,"z":0}'):
        assert admits(schema, text), text
    for text in (
        '{"b":2,"a":1}',
        '{"z":0,"a":1}',
        '{"a":  1}',
        '{"a":1}\n',
        ' {"a":1}',
        '{"b":2.0}',
    ):
        assert not admits(schema, text), text
    assert admits(schema, '{"a":"\\u0041"}') and not admits(schema, '{"a":"\\u0041"}', string_escapes="minimal")
    assert admits(schema, '{"b":2,"a":1}', property_order="any")
    assert admits(schema, '{"a":1} ', outer_whitespace=True)
    assert not admits(schema, '{"a": 1}', whitespace="none")
    assert admits(schema, '{"a"   :1}', whitespace="any")


def test_strict_closes_objects_that_do_not_say() -> None:
    schema = {"type": "object", "properties": {"a": True, "o": {"type": "object", "properties": {}}}}
    assert admits(schema, '{"z":1}')
    assert not admits(schema, '{"z":1}', strict=True)
    assert not admits(schema, '{"o":{"z":1}}', strict=True)


@pytest.mark.parametrize(
    ("schema", "error", "pointer"),
    [
        ('{"type": "object"', InvalidSchemaError, ""),
        ({"type": "strin"}, InvalidSchemaError, "/type"),
        ({"properties": {"a": "b"}}, InvalidSchemaError, "/properties/a"),
        ({"items": {"minLength": -1}}, InvalidSchemaError, "/items/minLength"),
        ({"items": {"$ref": "#/$defs/a"}}, InvalidSchemaError, "/items/$ref"),
        ({"$ref": "https://example.com/other.json"}, InvalidSchemaError, "/$ref"),
        ({"pattern": "a("}, PunchcardError, "/pattern"),
        ({"type": "array", "contains": False}, UnsatisfiableSchemaError, ""),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            UnsatisfiableSchemaError,
            "/$defs/a",
        ),
        (
            {
                "type": "object",
                "properties": {"free": {"type": "string", "maxLength": 0, "minLength": 1}, "no": {"enum": []}},
                "required": ["no"],
            },
            UnsatisfiableSchemaError,
            "/properties/no",
        ),
        ({"type": "object", "required": ["c"], "properties": {"c": {"$ref": "#"}}}, UnsatisfiableSchemaError, ""),
    ],
)
def test_errors_name_the_spot(schema: object, error: type[PunchcardError], pointer: str) -> None:
    with pytest.raises(error) as caught:
        COMPILER.compile_json_schema(schema)
    assert caught.value.fields["pointer"] == pointer
    assert caught.value.hint


def test_deep_schemas_meet_a_limit_or_compile() -> None:
    deep: dict[str, object] = {"type": "integer"}
    for _ in range(500):
        deep = {"type": "array", "items": deep}
    assert admits(deep, "[" * 500 + "1" + "]" * 500)
    text = '{"items":' * 20_000 + "{}" + "}" * 20_000
    with pytest.raises(LimitError):
        COMPILER.compile_json_schema(text)
    chain = {"$ref": "#/$defs/d0", "$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(5_000)}}
    chain["$defs"]["d5000"] = {"type": "integer"}  # type: ignore[index]
    assert admits(chain, "7")


@pytest.mark.parametrize("keywords", [("anyOf", "allOf"), ("oneOf", "allOf"), ("oneOf", "not")])
def test_nested_alternatives_share_their_parts(keywords: tuple[str, str]) -> None:
    schema: dict[str, object] = {"type": "object", "properties": {"a": {"const": 1}}}
    for i in range(60):
        parts = [schema, {"required": [f"k{i % 7}"]}]
        schema = {"not": {"anyOf": parts}} if keywords[i % 2] == "not" else {keywords[i % 2]: parts}
    matcher = GrammarMatcher(COMPILER.compile_json_schema(schema, profile="spec"))
    assert matcher.accept_string('{"k1":1') and matcher.find_completion()


def test_deep_output_neither_crashes_nor_slows() -> None:
    matcher = GrammarMatcher(COMPILER.compile_json_schema({}))
    for _ in range(100_000):
        assert matcher.accept_token(ord("["))
    for _ in range(100_000):
        assert matcher.accept_token(ord("]"))
    assert matcher.is_accepting()
    matcher.rollback(150_000)
    assert not matcher.is_accepting()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "minItems": 10**9},
        {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {}, "minItems": 10**9}},
            "required": ["a"],
        },
        {"type": "array", "prefixItems": [{"type": "array", "minItems": 10**8}] * 50, "minItems": 50},
        {"type": "array", "items": {"const": "x" * 10_000}, "minItems": 10**5},
    ],
)
def test_a_completion_without_end_meets_a_limit(schema: dict[str, object]) -> None:
    matcher = GrammarMatcher(COMPILER.compile_json_schema(schema))
    with pytest.raises(LimitError, match="bytes of an example"):
        matcher.find_completion()
    assert matcher.accept_string("[" if schema["type"] == "array" else '{"a":[')


def test_a_completion_of_many_members_meets_a_limit() -> None:
    for schema in ({"type": "object", "minProperties": 10**9}, {"minItems": 1, "items": {"$ref": "#/$defs/o"}}):
        schema = {
            **schema,
            "$defs": {"o": {"type": "object", "minProperties": 12_000}},
            "type": schema.get("type", "array"),
        }
        with pytest.raises(LimitError, match="members of an example"):
            GrammarMatcher(COMPILER.compile_json_schema(schema)).find_completion()


def test_large_enums_are_tries() -> None:
    values = [f"{'shared prefix ' * 3}{i:06}" for i in range(5_000)]
    assert admits({"enum": values}, json.dumps(values[4_321]))
    assert not admits({"enum": values}, json.dumps(values[4_321][:-1]))


def test_forced_text() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    tight = GrammarMatcher(COMPILER.compile_json_schema(schema, whitespace="none"))
    assert tight.find_jump_forward_string() == '{"name":"'
    loose = GrammarMatcher(COMPILER.compile_json_schema(schema))
    assert loose.find_jump_forward_string() == "{"
    assert loose.accept_string('{"')
    assert loose.find_jump_forward_string() == 'name"'


def test_rollback_fork_and_end() -> None:
    matcher = GrammarMatcher(COMPILER.compile_json_schema({"type": "integer"}))
    assert matcher.accept_string("4")
    twin = matcher.fork()
    assert matcher.accept_token(ord("2")) and matcher.accept_token(END) and matcher.is_terminated()
    assert not matcher.accept_token(END) and not matcher.accept_token(ord("1"))
    assert not twin.is_terminated() and twin.accept_token(ord("7"))
    matcher.rollback(3)
    assert not matcher.is_accepting()
    with pytest.raises(punchcard.PunchcardError):
        matcher.rollback(1)
