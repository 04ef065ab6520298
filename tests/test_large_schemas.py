"""Large schemas: what they cost grows with their size, and what they mean does not change with it."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

import punchcard
from punchcard import Grammar, GrammarCompiler, GrammarMatcher
from punchcard._core import json_text

BYTES = punchcard.TokenizerInfo.from_vocab(
    [bytes([byte]) for byte in range(256)] + [b"<end>"], eos_token_ids=[256], special_token_ids=[256]
)
COMPILER = GrammarCompiler(BYTES, cache_enabled=False)


def accepts(grammar: punchcard.CompiledGrammar, value: Any) -> bool:
    matcher = GrammarMatcher(grammar)
    return matcher.accept_string(json.dumps(value)) and matcher.is_accepting()


def tagged(count: int, tag: str = "kind{}") -> dict[str, Any]:
    return {
        "oneOf": [
            {
                "properties": {"kind": {"const": tag.format(i)}, "size": {"type": "integer", "minimum": i}},
                "required": ["kind", "size"],
                "additionalProperties": False,
                "type": "object",
            }
            for i in range(count)
        ]
    }


def positions(count: int) -> dict[str, Any]:
    items = [{"type": "integer", "minimum": i} for i in range(count)]
    return {"type": "array", "prefixItems": items, "items": False, "minItems": count}


def wide(count: int) -> dict[str, Any]:
    names = [f"name{i}" for i in range(count)]
    return {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": names[count // 2 :],
        "additionalProperties": False,
    }


def implications(count: int) -> dict[str, Any]:
    names = [f"name{i}" for i in range(count)]
    chain = {a: [b] for a, b in itertools.pairwise(names)}
    return {"properties": dict.fromkeys(names, True), "dependentRequired": chain, "additionalProperties": False}


def conditions(count: int) -> dict[str, Any]:
    parts = [
        {
            "if": {"properties": {"kind": {"const": f"kind{i}"}}},
            "then": {"properties": {"size": {"minimum": i}}, "required": ["size"]},
        }
        for i in range(count)
    ]
    kind = {"enum": [f"kind{i}" for i in range(count)]}
    return {"properties": {"kind": kind}, "required": ["kind"], "type": "object", "allOf": parts}


def patterns(count: int) -> dict[str, Any]:
    return {
        "type": "object",
        "patternProperties": {f"^p{i}_": {"type": "integer", "minimum": i} for i in range(count)},
        "additionalProperties": False,
    }


GROWING = {
    "oneOf with a tag": tagged,
    "positions": positions,
    "properties": wide,
    "patterns": patterns,
}


@pytest.mark.parametrize("make", GROWING.values(), ids=GROWING)
def test_memory_grows_with_the_size_of_the_schema(make: Any) -> None:
    def size(count: int) -> int:
        grammar = COMPILER.compile_json_schema(make(count))
        assert GrammarMatcher(grammar).accept_string("{" if make is not positions else "[")
        return grammar.memory_size_bytes

    assert size(1200) < 6 * size(300)


def test_memory_hardly_grows_with_the_members_of_a_wide_object() -> None:
    schema = wide(2000) | {"required": []}
    grammar = COMPILER.compile_json_schema(schema)
    assert accepts(grammar, {"name0": 0})
    before = grammar.memory_size_bytes
    for i in range(1, 2000, 100):
        assert accepts(grammar, {f"name{i}": i})
    assert grammar.memory_size_bytes < 2 * before


SHUFFLED = [f"name{i * 77 % 200}" for i in range(200)]


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("required", [[], [SHUFFLED[30]], [SHUFFLED[150], SHUFFLED[151]], ["other", SHUFFLED[120]]])
@pytest.mark.parametrize("before", [[], [3], [3, 10, 29], [5, 30, 31, 100]])
def test_names_that_may_come_next_in_a_wide_object(order: str, required: list[str], before: list[int]) -> None:
    impossible = {SHUFFLED[i] for i in range(0, 200, 9) if i != 30 and i < 110}
    schema = {
        "type": "object",
        "properties": {name: name not in impossible for name in SHUFFLED},
        "required": required,
        "patternProperties": {"^o": {"type": "integer"}},
        "additionalProperties": False,
    }
    grammar = COMPILER.compile_json_schema(schema, property_order=order)
    done = [SHUFFLED[i] for i in before]
    text = "{" + "".join(f'"{name}": 1, ' for name in done)
    last = max(before, default=-1)
    wanted = [SHUFFLED.index(name) for name in required if name in SHUFFLED and name not in done]

    def may_come(name: str) -> bool:
        if order == "any":
            return name not in done
        place = SHUFFLED.index(name) if name in SHUFFLED else len(SHUFFLED)
        return last < place <= min(wanted, default=len(SHUFFLED))

    is_possible = order == "any" or all(place > last for place in wanted)
    for name in [*SHUFFLED, "other", "o", "name", "name200"]:
        is_name = name[:1] == "o" or (name in SHUFFLED and name not in impossible)
        expected = is_possible and not impossible.intersection(done) and is_name and may_come(name)
        matcher = GrammarMatcher(grammar)
        assert matcher.accept_string(text + f'"{name}"') == expected, name


def test_wide_objects_with_names_that_no_token_can_write() -> None:
    tokens = [bytes([byte]) for byte in range(256) if byte != ord("7")]
    info = punchcard.TokenizerInfo.from_vocab([*tokens, b"<end>"], eos_token_ids=[255], special_token_ids=[255])
    grammar = GrammarCompiler(info).compile_json_schema(wide(200) | {"required": []})
    assert accepts(grammar, {"name68": 1, "name80": 1})
    assert not accepts(grammar, {"name80": 1, "name68": 1})
    assert not GrammarMatcher(grammar).accept_string('{"name80": 1, "name1": ')


def test_chains_of_implications() -> None:
    grammar = COMPILER.compile_json_schema(implications(150))
    assert accepts(grammar, {f"name{i}": 0 for i in range(140, 150)})
    assert accepts(grammar, {})
    assert not GrammarMatcher(grammar).accept_string('{"name70": 0, "name72"')
    assert not GrammarMatcher(grammar).accept_string('{"name70": 0}')


def test_conditions_by_kind() -> None:
    grammar = COMPILER.compile_json_schema(conditions(60), property_order="any")
    assert accepts(grammar, {"kind": "kind40", "size": 40})
    assert not accepts(grammar, {"kind": "kind40", "size": 39})
    assert accepts(grammar, {"size": 39, "kind": "kind39"})
    assert not accepts(grammar, {"kind": "kind40"})


def test_patterns_of_names_that_meet_and_that_do_not() -> None:
    schema = patterns(300)
    schema["patternProperties"] |= {"^p7": {"multipleOf": 5}, "x$": {"multipleOf": 7}, "^p71_y": {"maximum": 100}}
    schema["properties"] = {"p71_yes": {"type": "integer"}}
    grammar = COMPILER.compile_json_schema(schema)
    assert accepts(grammar, {"p71_a": 75, "p71_x": 105, "p8_": 8, "zx": 7, "p7_": 10})
    for other in [
        {"p71_a": 76},
        {"p71_x": 75},
        {"p71_y": 105},
        {"p71_yes": 105},
        {"zx": 8},
        {"p300_": 300},
        {"p8_": 7},
    ]:
        assert not accepts(grammar, other), other
    assert accepts(grammar, {"p71_yes": 75, "p71_y": 75})


def test_tags_keep_alternatives_apart() -> None:
    grammar = COMPILER.compile_json_schema(tagged(100))
    assert accepts(grammar, {"kind": "kind7", "size": 7})
    assert not accepts(grammar, {"kind": "kind7", "size": 6})
    assert not accepts(grammar, {"kind": "kind100", "size": 200})


def test_alternatives_with_the_same_tag_are_still_exclusive() -> None:
    schema = tagged(20)
    schema["oneOf"].append(schema["oneOf"][3] | {"description": "again"})
    schema["oneOf"].append({"type": "object", "properties": {"kind": {"const": "kind5"}}, "required": ["kind"]})
    schema["oneOf"].append({"type": "object", "properties": {"size": {"const": 9}}, "required": ["size"]})
    grammar = COMPILER.compile_json_schema(schema)
    assert accepts(grammar, {"kind": "kind4", "size": 4})
    assert not accepts(grammar, {"kind": "kind3", "size": 4})
    assert not accepts(grammar, {"kind": "kind5", "size": 5})
    assert accepts(grammar, {"kind": "kind5", "size": 4})
    assert not accepts(grammar, {"kind": "kind4", "size": 9})


@pytest.mark.parametrize(
    ("schema", "value", "is_valid"),
    [
        (positions(40), list(range(40)), True),
        (positions(40), [*range(39), 0], False),
        (positions(40), list(range(39)), False),
        (positions(3) | {"items": {"type": "integer"}, "minItems": 5}, [0, 1, 2, 3, 4], True),
        (positions(3) | {"items": {"type": "integer"}, "minItems": 5}, [0, 1, 2, 3], False),
        (positions(3) | {"items": {"type": "integer"}, "maxItems": 2, "minItems": 1}, [0], True),
        (wide(30), {f"name{i}": i for i in range(3, 30)}, True),
        (wide(30), {f"name{i}": i for i in range(14)} | {f"name{i}": i for i in range(16, 30)}, False),
    ],
)
def test_meaning(schema: dict[str, Any], value: Any, is_valid: bool) -> None:
    assert accepts(COMPILER.compile_json_schema(schema), value) == is_valid


@pytest.mark.parametrize(
    "schema",
    [
        positions(3) | {"maxItems": 2},
        {"type": "array", "prefixItems": [{"type": "integer"}, False], "minItems": 2},
        {"type": "array", "prefixItems": [True], "items": False, "minItems": 2},
    ],
)
def test_arrays_without_room_have_no_value(schema: dict[str, Any]) -> None:
    with pytest.raises(punchcard.UnsatisfiableSchemaError):
        COMPILER.compile_json_schema(schema)


def test_examples_of_arrays_by_position() -> None:
    example = Grammar.from_json_schema(positions(3) | {"items": {"const": True}, "minItems": 5}).report.example
    assert example is not None
    assert json.loads(example)[3:] == [True, True]


def test_the_last_of_equal_names_counts_in_wide_objects() -> None:
    names = ", ".join(f'"n{i}": false' for i in range(40))
    schema = f'{{"properties": {{"n7": {{"const": 1}}, {names}, "n7": {{"const": 2}}}}, "required": ["n7"]}}'
    grammar = COMPILER.compile_json_schema(schema)
    assert accepts(grammar, {"n7": 2})
    assert not accepts(grammar, {"n7": 1})
    assert not accepts(grammar, {"n8": 1, "n7": 2})


def test_references_into_wide_objects() -> None:
    schema = {"$defs": {f"d{i}": {"const": i} for i in range(100)}, "$ref": "#/$defs/d73"}
    grammar = COMPILER.compile_json_schema(schema)
    assert accepts(grammar, 73)
    assert not accepts(grammar, 72)


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        True,
        None,
        {"a": [1, -2.5, 1e300, 1e-7, 10**30, '\x00\x1f"\\/\b\f\n\r\t\x7f\u2028é😀', {"": ()}], "b": (1, [True])},
        [[[[]]], {"a": {"b": {"c": {}}}}],
    ],
)
def test_plain_data_are_written_as_json_writes_them(data: Any) -> None:
    assert json_text(data, 1 << 20) == json.dumps(data, ensure_ascii=False)


class Text(str):
    pass


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize("data", [{1: 2}, {"a": float("nan")}, Text("a"), {Text("a"): 1}, {"a": {1}}, "\ud800", LOOP])
def test_other_data_are_left_to_json(data: Any) -> None:
    assert json_text(data, 1 << 20) is None


def test_half_a_surrogate_pair_is_an_error_of_the_schema() -> None:
    with pytest.raises(punchcard.InvalidSchemaError, match="surrogate"):
        COMPILER.compile_json_schema({"const": "\ud800"})
