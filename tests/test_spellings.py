"""How values may be spelled under the profile ``generate``: no mask admits a beginning and masks its natural end, and
no number has more digits than anyone needs."""

from __future__ import annotations

import json
from typing import Any

import pytest

import punchcard
from punchcard import (
    Grammar,
    GrammarCompiler,
    GrammarError,
    GrammarMatcher,
    Limits,
    TokenizerInfo,
    UnsatisfiableSchemaError,
)

END = 256
COMPILER = GrammarCompiler(
    TokenizerInfo.from_vocab([bytes([i]) for i in range(256)], eos_token_ids=[END], vocab_size=257)
)


def masked_at(schema: Any, text: str, **options: Any) -> int | None:
    """The offset of the first byte that a mask does not let pass; None if all pass, and the end."""
    matcher = GrammarMatcher(COMPILER.compile_json_schema(schema, **options))
    bitmask = punchcard.allocate_token_bitmask(1, 257)
    for offset, token in enumerate([*text.encode(), END]):
        matcher.fill_next_token_bitmask(bitmask)
        if not int(bitmask[0, token >> 5]) >> (token & 31) & 1:
            return offset
        assert matcher.accept_token(token)
    return None


PRICE = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}

NATURAL: list[tuple[Any, list[str]]] = [
    (PRICE, ['{"price": 18.40}', '{"price": 5.0}', '{"price": 0.50}', '{"price": 1e-07}', '{"price": 1.256e-06}']),
    ({"enum": [18.4, 0.5, -2]}, ["18.40", "18.4", "0.50", "-2", "-2.0"]),
    ({"const": 18.4}, ["18.400"]),
    ({"multipleOf": 0.01}, ["19.90", "19.9", "20.00"]),
    ({"type": "number", "minimum": 0.5, "maximum": 100}, ["0.50", "100.00", "99.90", "0.500"]),
    ({"type": "string"}, [r'"caf\u00e9"', r'"http:\/\/a"', r'"\ud83d\ude00"', r'"\u001b[0m"', r'"a\tb\u0026"']),
    ({"const": "café"}, [r'"caf\u00e9"', '"café"', r'"caf\u00E9"']),
    ({"enum": ["a/b", "😀"]}, [r'"a\/b"', r'"\ud83d\ude00"']),
    ({"pattern": "^[é/]+$", "type": "string"}, [r'"\u00e9\/"']),
    ({"properties": {"é": True}, "required": ["é"]}, [r'{"\u00e9":1}', '{"é":1}']),
    ({"type": "object", "additionalProperties": {"type": "number"}}, [r'{"a\/b":1.0, "\u00e9":2.50}']),
]


@pytest.mark.parametrize(("schema", "texts"), NATURAL, ids=[json.dumps(schema) for schema, _ in NATURAL])
def test_what_libraries_write_is_admitted(schema: Any, texts: list[str]) -> None:
    for text in texts:
        assert masked_at(schema, text) is None, text


def test_what_cannot_be_meant_is_not_begun() -> None:
    for schema, text, offset in [
        ({"type": "integer"}, "5.0", 1),
        ({"const": 5}, "5.0", 1),
        ({"type": "integer"}, "1e3", 1),
        ({"minimum": 0}, "-0.0", 0),
        ({"minimum": 1}, "5e-1", 1),
        ({"const": "a/b"}, r'"a\/c"', 4),
        ({"const": "café"}, r'"caf\u00e8"', 9),
    ]:
        assert masked_at(schema, text) == offset, text


def test_minimal_escapes_begin_nothing_that_may_be_another_character() -> None:
    for text, offset in [(r'"\u001b"', 2), (r'"caf\u00e9"', 5), (r'"\n\"\\"', None), ('"é"', None)]:
        assert masked_at({"type": "string"}, text, string_escapes="minimal") == offset, text
    escape = {"const": "\u001b[0m"}
    assert masked_at(escape, r'"\u001b[0m"', string_escapes="minimal") is None
    assert masked_at(escape, r'"\u001c', string_escapes="minimal") == 6
    either = {"enum": ["\u001b", "a"]}
    assert masked_at(either, r'"\u001b"', string_escapes="minimal") == 1
    assert masked_at(either, '"a"', string_escapes="minimal") is None


def test_forced_text_takes_no_detour() -> None:
    matcher = GrammarMatcher(COMPILER.compile_json_schema({"enum": ["straight on"]}))
    assert matcher.find_jump_forward_string() == '"straight on"'
    matcher = GrammarMatcher(COMPILER.compile_json_schema({"enum": ["way\n"]}))
    assert matcher.find_jump_forward_string() == '"way\\'


def test_numbers_have_a_bound_on_their_digits() -> None:
    nines = "9" * 19
    third = "0." + "3" * 17
    for schema, text, offset in [
        ({"type": "integer"}, nines, None),
        ({"type": "integer"}, nines + "9", 19),
        ({"type": "number"}, nines + "9", 19),
        ({"type": "number"}, third, None),
        ({"type": "number"}, third + "3", 19),
        ({"type": "number"}, "12345678901234.567", None),
        ({"type": "number"}, "12345678901234.5678", 18),
        ({"type": "number"}, "0." + "0" * 18, 19),
        ({}, "9" * 20, 19),
    ]:
        assert masked_at(schema, text) == offset, text
        assert masked_at(schema, text + "0" * 5000, number_digits="any") is None
        assert masked_at(schema, text + "0" * 5000, profile="spec") is None


def test_a_bound_on_digits_gives_way_to_the_schema() -> None:
    for schema, text in [
        ({"const": 10**30}, str(10**30)),
        ({"type": "integer", "minimum": 10**25}, str(3 * 10**25)),
        ({"enum": [0.1234567890123456789, 2]}, "0.12345678901234568"),
        ({"multipleOf": 1e30}, str(2 * 10**30)),
        ({"type": "integer", "minimum": -(2**63), "maximum": 2**64}, str(2**64)),
    ]:
        for digits in ("bounded", 1, 3):
            assert masked_at(schema, text, number_digits=digits) is None, (schema, digits)
    exact = '{"exclusiveMinimum": 1e-40, "exclusiveMaximum": 2e-40}'
    assert masked_at(exact, "0." + "0" * 39 + "15") is None


def test_the_option_for_digits() -> None:
    assert masked_at({"type": "number"}, "123", number_digits=2) == 2
    assert masked_at({"type": "number"}, "1.25", number_digits=2) == 3
    assert masked_at({"type": "number"}, "0.0012", number_digits=2) is None
    with pytest.raises(GrammarError, match="number_digits"):
        Grammar.from_json_schema({}, number_digits=0)
    with pytest.raises(GrammarError, match="number_digits"):
        Grammar.from_json_schema({}, number_digits=5, number_spelling="any")


@pytest.mark.parametrize(
    ("schema", "bound", "holds"),
    [
        ({"exclusiveMaximum": 1}, 1.0, lambda x: x < 1),
        ({"exclusiveMinimum": 1}, 1.0, lambda x: x > 1),
        ({"exclusiveMaximum": 0.1}, 0.1, lambda x: x < 0.1),
        ({"exclusiveMinimum": -0.3}, -0.3, lambda x: x > -0.3),
        ({"not": {"const": 1}}, 1.0, lambda x: x != 1),
        ({"exclusiveMaximum": 9007199254740992}, 9007199254740992.0, lambda x: x < 9007199254740992),
    ],
)
def test_no_number_is_rounded_across_a_bound(schema: Any, bound: float, holds: Any) -> None:
    """Digits are taken as near to the bound as masks let them come."""
    for toward in ("9876543210.", "0123456789."):
        matcher = GrammarMatcher(COMPILER.compile_json_schema({"type": "number", **schema}))
        text = repr(bound)[:2] if bound < 0 else ""
        start = {1.0: "0" if toward[0] == "9" else "1", 0.1: "0.0" if toward[0] == "9" else "0.1", -0.3: "-0."}
        text = start.get(bound, "900719925474099")
        if not matcher.accept_string(text):
            continue
        bitmask = punchcard.allocate_token_bitmask(1, 257)
        while True:
            if matcher.is_accepting():
                assert holds(float(text)), text
            matcher.fill_next_token_bitmask(bitmask)
            ways = [c for c in toward if int(bitmask[0, ord(c) >> 5]) >> (ord(c) & 31) & 1]
            if not ways:
                break
            text += ways[0]
            assert matcher.accept_string(ways[0])
    near = repr(bound)
    assert (masked_at({"type": "number", **schema}, near) is None) == holds(bound)


def test_no_double_between_bounds_is_no_number() -> None:
    with pytest.raises(UnsatisfiableSchemaError):
        COMPILER.compile_json_schema({"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1.0000000000000002})
    between = {"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1.0000000000000004}
    assert masked_at(between, "1.0000000000000002") is None


STEPS: list[tuple[Any, list[str], list[str]]] = [
    ({"type": "number", "multipleOf": 0.33333333}, ["0", "0.33333333", "0.66666666", "33.333333"], ["1", "0.3"]),
    ({"multipleOf": 1e100}, ["0", "1" + "0" * 100], ["1"]),
    ({"multipleOf": 1e308}, ["0"], ["1"]),
    ({"multipleOf": 0.1 + 0.2}, ["0", "0.30000000000000004", "0.60000000000000008"], ["0.3", "0.30000000000000003"]),
    ({"multipleOf": 3.141592653589793}, ["3.141592653589793", "-6.283185307179586"], ["3.14", "3"]),
    ({"allOf": [{"multipleOf": n} for n in (0.7, 1.1, 1.3, 1.7, 1.9, 2.3)]}, ["0", "743642.9"], ["7.7", "74364.29"]),
    ({"type": "integer", "multipleOf": 0.123456789}, ["0", "123456789"], ["1"]),
    ({"oneOf": [{"multipleOf": 0.33333333}, {"multipleOf": 0.22222222}]}, ["0.33333333"], ["0", "0.66666666"]),
    ({"type": "number", "not": {"multipleOf": 0.33333333}}, ["1", "0.3"], ["0.33333333", "0"]),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), STEPS, ids=[json.dumps(row[0])[:60] for row in STEPS])
def test_steps_of_many_digits(schema: Any, valid: list[str], invalid: list[str]) -> None:
    schema = {"type": "number", **schema}
    for profile in ("generate", "spec"):
        options: dict[str, Any] = {"profile": profile, "limits": Limits(max_automaton_states=60_000)}
        for text in valid:
            assert masked_at(schema, text, **options) is None, text
        for text in invalid:
            assert masked_at(schema, text, **options) is not None, text
    matcher = GrammarMatcher(COMPILER.compile_json_schema({"type": "array", "items": schema, "minItems": 1}))
    assert matcher.accept_string("[")
    completion = matcher.find_completion()
    assert completion is not None and matcher.accept_string(completion) and matcher.is_accepting()


@pytest.mark.parametrize(
    "items",
    [
        ["1e9999", "1"],
        ["1e12020"],
        ["1e12020", "1e12021", "-1e12020"],
        ["1e99999999999999999999", "1e-99999999999999999999"],
        ["1" + "0" * 10_001, "2" + "0" * 10_001],
        ["[1e12020]", "[1e12021]"],
        ["0." + "0" * 10_100 + "1", "0"],
    ],
    ids=lambda items: items[0][:20],
)
@pytest.mark.parametrize("kind", ["integer", "number", "anything"])
def test_unique_numbers_of_any_size(items: list[str], kind: str) -> None:
    nested, fraction = items[0].startswith("["), items[0].startswith("0.") or "e-" in items[-1]
    if (kind == "integer" and fraction) or (kind != "anything" and nested):
        pytest.skip("no values of that type")
    schema = {"type": "array", "uniqueItems": True, **({} if kind == "anything" else {"items": {"type": kind}})}
    grammar = COMPILER.compile_json_schema(schema, profile="spec")
    for text, is_unique in [(items, True), ([*items, items[0]], False), ([items[0], " " + items[0] + " "], False)]:
        matcher = GrammarMatcher(grammar)
        assert (matcher.accept_string("[" + ",".join(text) + "]") and matcher.is_accepting()) == is_unique
    # Equal by value, however it is spelled.
    if items[0] == "1e12020":
        assert not GrammarMatcher(grammar).accept_string("[1e12020,0.01E+12022]")
        assert not GrammarMatcher(grammar).accept_string(f"[1e12020,1{'0' * 12020}]")


def test_masks_of_unique_numbers_of_any_size() -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}
    for text, offset in [("[1e9999,1]", None), ("[1e12020]", None), ("[1e12020,1e12020]", 16), ("[1,1.0]", 6)]:
        assert masked_at(schema, text, profile="spec") == offset, text


def test_few_numbers_are_counted_by_value() -> None:
    """A number that can be spelled in several ways is one value all the same."""
    schema = {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"enum": [0.5, 1.5, 2]}}
    assert masked_at(schema, "[0.50,2.0,1.5]") is None
    assert masked_at(schema, "[0.50,0.5") == 6
    with pytest.raises(UnsatisfiableSchemaError):
        COMPILER.compile_json_schema({**schema, "minItems": 4})
    steps = {"type": "number", "multipleOf": 0.25, "minimum": 0, "exclusiveMaximum": 1}
    assert masked_at({**schema, "minItems": 4, "items": steps}, "[0.50,0.25,0,0.750]") is None
    with pytest.raises(UnsatisfiableSchemaError):
        COMPILER.compile_json_schema({**schema, "minItems": 5, "items": steps})


def test_integers_of_draft_4_have_no_point() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "anyOf": [{"type": "integer"}, {"enum": [2.5]}]}
    for profile in ("generate", "spec"):
        assert masked_at(schema, "2.5", profile=profile) is None and masked_at(schema, "4", profile=profile) is None
        assert masked_at(schema, "4.0", profile=profile) is not None
