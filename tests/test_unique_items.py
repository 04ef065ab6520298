"""uniqueItems: items are compared by value, and no item may use up what a later one needs."""

from __future__ import annotations

import json

import pytest
from test_json_schema import COMPILER, admits

from punchcard import GrammarMatcher, UnsatisfiableSchemaError

UNIQUE = {"type": "array", "uniqueItems": True}
BOOLEAN = {"type": "boolean"}
CLOSED = {"type": "object", "properties": {"a": BOOLEAN}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        pytest.param(
            UNIQUE,
            ["[]", "[1,2]", '[1,"1"]', "[1,true]", "[0,false]", "[[1],[2]]", '[{"a":1},{"a":2}]', '[{"a":1},{}]'],
            ["[1,1]", "[1,2,1]", "[null,null]", "[[],[]]", "[{},{}]", '["a","a"]'],
            id="any values",
        ),
        pytest.param(
            UNIQUE,
            ['[{"a":1,"b":2},{"b":1,"a":2}]'],
            ["[1,1.0]", "[1,10e-1]", r'["a","\u0061"]', '[{"a":1,"b":2}, {"b":2.0 , "a":1}]', "[[1,[2]],[1, [2.0]]]"],
            id="equal, not spelled alike",
        ),
        pytest.param(
            {**UNIQUE, "items": {"enum": ["a", "b", "c"]}, "minItems": 3},
            ['["c","a","b"]'],
            ['["a","b"]', '["a","b","a"]'],
            id="all of an enum",
        ),
        pytest.param(
            {**UNIQUE, "prefixItems": [{"enum": ["a", "b"]}, {"const": "a"}], "minItems": 2},
            ['["b","a"]', '["b","a",1]'],
            ['["a","a"]'],
            id="an item that a later one needs",
        ),
        pytest.param(
            {**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2},
            ["[1,2]", "[2,3,1]"],
            ["[1]", "[1,1]", "[1,3]"],
            id="contains",
        ),
        pytest.param(
            {**UNIQUE, "items": {**UNIQUE, "items": BOOLEAN}},
            ["[[],[true],[true,false],[false,true]]"],
            ["[[],[]]", "[[true,true]]", "[[true,false],[true,false]]"],
            id="within each other",
        ),
        pytest.param(
            {**UNIQUE, "items": CLOSED, "minItems": 3},
            ['[{"a":true},{},{"a":false}]'],
            ["[{},{}]", '[{},{"a":true},{"a":true}]'],
            id="few objects",
        ),
        pytest.param(
            {"type": "array", "not": {"uniqueItems": True}},
            ["[1,1]", "[1,2,1.0]", '[{"a":1},{"a":1}]'],
            ["[]", "[1]", "[1,2]"],
            id="not unique",
        ),
        pytest.param(
            {"type": "array", "prefixItems": [{"enum": [1, 2]}, {"enum": [2, 3]}], "items": False, "not": UNIQUE},
            ["[2,2]"],
            ["[1,2]", "[2,3]"],
            id="not unique, few ways",
        ),
        pytest.param(
            {"type": "array", "if": UNIQUE, "then": {"maxItems": 2}, "else": {"minItems": 4}},
            ["[1,2]", "[1,1,2,3]"],
            ["[1,1]", "[1,2,3]", "[1,1,1]"],
            id="a condition",
        ),
        pytest.param(
            {"type": "array", "oneOf": [{"uniqueItems": True}, {"minItems": 3}]},
            ["[1,2]", "[1,1,1]", "[]"],
            ["[1,2,3]", "[1,1]"],
            id="exactly one",
        ),
        pytest.param(
            {"$ref": "#/$defs/t", "$defs": {"t": {**UNIQUE, "items": {"$ref": "#/$defs/t"}}}},
            ["[]", "[[],[[]],[[],[[]]]]"],
            ["[[],[]]", "[[[],[]]]"],
            id="recursive",
        ),
    ],
)
def test_uniqueness(schema: object, valid: list[str], invalid: list[str]) -> None:
    for text in valid:
        assert admits(schema, text, profile="spec"), text
    for text in invalid:
        assert not admits(schema, text, profile="spec"), text


@pytest.mark.parametrize(
    "schema",
    [
        {**UNIQUE, "items": BOOLEAN, "minItems": 3},
        {**UNIQUE, "contains": {"const": 1}, "minContains": 2},
        {**UNIQUE, "items": CLOSED, "minItems": 4},
        {"$ref": "#/$defs/t", "$defs": {"t": {**UNIQUE, "items": {"$ref": "#/$defs/t"}, "minItems": 1}}},
    ],
    ids=["booleans", "contains", "objects", "recursion"],
)
def test_too_few_values_are_no_value_at_all(schema: object) -> None:
    with pytest.raises(UnsatisfiableSchemaError):
        COMPILER.compile_json_schema(schema)


def test_an_item_without_a_way_on_is_never_begun() -> None:
    schema = {**UNIQUE, "prefixItems": [{"enum": ["a", "b", "c"]}, {"enum": ["a", "b"]}, {"const": "a"}], "minItems": 3}
    matcher = GrammarMatcher(COMPILER.compile_json_schema(schema, whitespace="none"))
    assert matcher.find_jump_forward_string() == '["c","b","a"'


def test_many_objects_with_equal_parts() -> None:
    schema = {**UNIQUE, "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}}
    items = [{"id": i, "name": f"item {i}", "tags": ["a", "b"]} for i in range(60)]
    assert admits(schema, json.dumps(items), profile="spec")
    assert not admits(schema, json.dumps([*items, items[3]]), profile="spec")


def test_enums_of_objects_are_followed_together() -> None:
    values = [{"kind": i % 10, "id": i, "list": [i, {"deep": i % 3}]} for i in range(2_000)]
    schema = {"enum": values}
    assert admits(schema, json.dumps(values[1_234]), profile="spec")
    assert admits(schema, json.dumps(dict(reversed(values[1_234].items()))), profile="spec")
    assert not admits(schema, json.dumps({**values[1_234], "id": 1_235}), profile="spec")
    assert not admits({"not": schema}, json.dumps(values[1_234]), profile="spec")
    assert admits({"not": schema}, json.dumps({**values[1_234], "id": 1_235}), profile="spec")
