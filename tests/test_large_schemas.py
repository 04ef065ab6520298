"""Large schemas: what they cost grows with their size, and what they mean does not change with it."""

from __future__ import annotations

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


GROWING = {"oneOf with a tag": tagged, "positions": positions, "properties": wide}


@pytest.mark.parametrize("make", GROWING.values(), ids=GROWING)
def test_memory_grows_with_the_size_of_the_schema(make: Any) -> None:
    def size(count: int) -> int:
        grammar = COMPILER.compile_json_schema(make(count))
        assert GrammarMatcher(grammar).accept_string("{" if make is not positions else "[")
        return grammar.memory_size_bytes

    assert size(1200) < 6 * size(300)


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
    assert json_text(data) == json.dumps(data, ensure_ascii=False)


class Text(str):
    pass


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize("data", [{1: 2}, {"a": float("nan")}, Text("a"), {Text("a"): 1}, {"a": {1}}, "\ud800", LOOP])
def test_other_data_are_left_to_json(data: Any) -> None:
    assert json_text(data) is None


def test_half_a_surrogate_pair_is_an_error_of_the_schema() -> None:
    with pytest.raises(punchcard.InvalidSchemaError, match="surrogate"):
        COMPILER.compile_json_schema({"const": "\ud800"})
