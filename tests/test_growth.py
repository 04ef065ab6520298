"""What schemas and tags cost grows with their size: work is counted at a size and at twice that size."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from punchcard import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    LimitError,
    Limits,
    TokenizerInfo,
    UnsatisfiableSchemaError,
    allocate_token_bitmask,
)
from punchcard.tags import structural_tag

END = 256
INFO = TokenizerInfo.from_vocab([*(bytes([i]) for i in range(256)), b"</s>"], eos_token_ids=[END])
COMPILER = GrammarCompiler(INFO, cache_enabled=False)


def compiled(schema: Any) -> CompiledGrammar:
    return COMPILER.compile_json_schema(json.dumps(schema))


def admits(grammar: CompiledGrammar, text: str) -> bool:
    matcher = GrammarMatcher(grammar)
    return matcher.accept_string(text) and matcher.is_accepting()


# oneOf: what it admits is what one alternative alone admits, however the alternatives are put together.


def kind(value: Any, **members: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"kind": {"const": value}, **members},
        "required": ["kind", *members],
        "additionalProperties": False,
    }


ALTERNATIVES: dict[str, tuple[list[Any], list[Any]]] = {
    "constants, some of them twice": (
        [{"const": value, "description": "d"} for value in ["a", "b", "a", "c", 1, 1.0, 2, None, True, "d"]],
        ["a", "b", "c", "d", 1, 2, None, True, False],
    ),
    "lists and patterns": (
        [{"enum": ["ab", "x1", 3]}, {"enum": ["x2", "x1"]}, {"type": "string", "pattern": "^x"}]
        + [{"type": "string", "pattern": f"^{c}"} for c in "abcdefg"]
        + [{"type": "string", "pattern": "b$"}],
        ["ab", "x1", "x2", "x3", "a", "b", "axb", "g", "gb", "h", 3],
    ),
    "numbers and ranges": (
        [{"const": n} for n in (1, 2, 3, 3, 7)]
        + [{"type": "integer", "minimum": 5 * n, "maximum": 5 * n + 5} for n in range(6)]
        + [{"type": "number", "multipleOf": 7}],
        [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14, 21, 28, 29, 35, 42],
    ),
    "objects and arrays that are constants": (
        [{"const": value} for value in [{"a": 1}, {"a": 1, "b": 2}, {"b": 2}, {"a": 1}, [1], [1, 2], [], [1], {}]],
        [{"a": 1}, {"a": 1, "b": 2}, {"b": 2}, {}, [1], [1, 2], [], [2]],
    ),
    "tags of all types": (
        [kind(value) for value in ["a", "b", 1, 2, True, None, "c", "a"]]
        + [{"type": "object", "properties": {"kind": {"enum": ["c", 2]}}, "required": ["kind"]}],
        [{"kind": value} for value in ["a", "b", "c", "d", 1, 2, 3, True, False, None]] + [{}],
    ),
    "two tags": (
        [kind(i % 3, sub={"const": i // 3}) for i in range(9)] + [kind(1, sub={"type": "integer"})],
        [{"kind": a, "sub": b} for a in range(4) for b in range(4)],
    ),
    "choices within": (
        [{"anyOf": [kind(f"a{i}"), kind(f"b{i % 5}")]} for i in range(9)],
        [{"kind": f"{c}{i}"} for c in "ab" for i in range(10)],
    ),
    "tuples": (
        [{"type": "array", "prefixItems": [{"const": i % 8}, {"type": "string"}], "minItems": 1} for i in range(9)]
        + [{"type": "array", "minItems": 2}],
        [[i, *rest] for i in range(9) for rest in ([], ["x"], [1])] + [[]],
    ),
    "everything at once": (
        [True, {"const": 1}, {"type": "string"}, {"const": "x"}, {"type": "object"}, kind("a"), {"minimum": 3}]
        + [False] * 9,
        [1, 2, 3, "x", "y", {}, {"kind": "a"}, None, []],
    ),
}


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_one_of_many_is_exactly_one(name: str) -> None:
    alternatives, values = ALTERNATIVES[name]
    each = [compiled(alternative) if alternative is not False else None for alternative in alternatives]
    whole = compiled({"oneOf": alternatives})
    seen = set()
    for value in values:
        text = json.dumps(value)
        expected = sum(grammar is not None and admits(grammar, text) for grammar in each) == 1
        assert admits(whole, text) == expected, text
        seen.add(expected)
    assert seen == {True, False}


# Structural tags.


def tag(begin: str, schema: Any = True) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": {"type": "json_schema", "json_schema": schema}, "end": ";"}


def triggered(count: int) -> dict[str, Any]:
    begins = [f"<f{i}>" for i in range(count)]
    return {"type": "triggered_tags", "triggers": begins, "tags": [tag(begin) for begin in begins]}


def dispatch(count: int) -> dict[str, Any]:
    rules = [[f"<f{i}>", {"type": "const_string", "value": "x"}] for i in range(count)]
    return {"type": "dispatch", "rules": rules, "excludes": ["!"]}


def listed(count: int) -> dict[str, Any]:
    return {"type": "tags_with_separator", "separator": ",", "tags": [tag(f"<f{i}>") for i in range(count)]}


def within(count: int) -> dict[str, Any]:
    return {"type": "tag", "begin": "[", "content": triggered(count), "end": [f"]{i}" for i in range(count)]}


@pytest.mark.parametrize("make", [triggered, dispatch, listed, within])
def test_an_expression_of_many_tags_is_as_long_as_their_list(make: Callable[[int], dict[str, Any]]) -> None:
    once, twice = (len(json.dumps(structural_tag(make(count)).to_expr())) for count in (200, 400))
    assert twice < 2.2 * once


@pytest.mark.parametrize("make", [triggered, dispatch, within])
def test_too_many_triggers_are_refused(make: Callable[[int], dict[str, Any]]) -> None:
    with pytest.raises(LimitError, match=r"max_triggers=1000 was passed \(at format") as caught:
        Grammar.from_structural_tag({"format": make(1_001)})
    assert caught.value.fields["path"].startswith("format")
    assert "in common" in (caught.value.hint or "")


def test_triggers_that_are_too_long_are_refused() -> None:
    triggers = [f"<{index}{'x' * 20_000}" for index in range(60)]
    tags = [tag(f"{trigger}>", {"const": 1}) for trigger in triggers]
    with pytest.raises(LimitError, match="max_trigger_characters"):
        Grammar.from_structural_tag({"format": {"type": "triggered_tags", "triggers": triggers, "tags": tags}})


def test_many_tags_are_followed_together() -> None:
    forms = [
        {
            "type": "triggered_tags",
            "triggers": ["<f"],
            "tags": [tag(f"<f{i}>", {"const": i % 7}) for i in range(900)],
        },
        {**listed(900), "tags": [tag(f"<f{i}>", {"const": i % 7}) for i in range(900)]},
    ]
    compiler = GrammarCompiler(INFO, limits=Limits(max_readings=200))
    for form in forms:
        grammar = compiler.compile(Grammar.from_structural_tag(form))
        mask = allocate_token_bitmask(1, INFO.vocab_size)
        for i in (0, 9, 899):
            matcher = GrammarMatcher(grammar)
            for byte in f"<f{i}>{i % 7};".encode():
                matcher.fill_next_token_bitmask(mask)
                assert matcher.accept_token(byte)
            assert matcher.is_accepting()
        assert not GrammarMatcher(grammar).accept_string("<f900>")
        assert not GrammarMatcher(grammar).accept_string("<f9>1;")


def test_alternatives_that_begin_alike_mean_what_they_did() -> None:
    # Few alternatives are taken as they are: each alone says what all of them together admit.
    rng = random.Random(3)
    begins = ["".join(rng.choices("abé", k=rng.randint(1, 4))) for _ in range(90)]
    rests = [rng.choice(["[0-9]", "x*", "b+", ""]) for _ in begins]
    ends = [{"type": "regex", "pattern": rest} if rest else {"type": "const_string", "value": ""} for rest in rests]
    ways = [
        {"type": "sequence", "elements": [{"type": "const_string", "value": begin}, end]}
        for begin, end in zip(begins, ends, strict=True)
    ]
    whole = COMPILER.compile(Grammar.from_structural_tag({"type": "or", "elements": ways}))
    each = [COMPILER.compile(Grammar.from_structural_tag(way)) for way in ways]
    texts = {begin + tail for begin in begins for tail in ["", "0", "x", "xx", "b", "bb", "é", "0x"]}
    for text in texts:
        assert admits(whole, text) == any(admits(grammar, text) for grammar in each), text


# Events.


@pytest.mark.parametrize(
    ("begin", "end", "name"),
    [('{"a":', "}", "/a"), ("[[", "]]", "/0/0"), ('{"":[', "]}", "//0"), ('{"a/~":{"b":', "}}", "/a~1~0/b")],
)
def test_members_are_told_down_to_a_depth_and_no_deeper(begin: str, end: str, name: str) -> None:
    grammar = COMPILER.compile_json_schema("true")
    depth = 1_000 // name.count("/") - 2
    matcher = GrammarMatcher(grammar, events=True)
    assert matcher.accept_string(begin * depth + '{"x":0}' + end * depth)
    told = [event for event in matcher.events() if event.name.endswith("/x")]
    assert [(event.what, event.name) for event in told] == [
        ("begin", name * depth + "/x"),
        ("end", name * depth + "/x"),
    ]
    matcher = GrammarMatcher(grammar, events=True)
    assert matcher.accept_string(begin * depth)
    with pytest.raises(LimitError, match="max_depth=1000"):
        matcher.accept_string(begin * 4)
    assert matcher.accept_string("1" + end * depth)
    assert GrammarMatcher(grammar).accept_string(begin * 4_000 + "1" + end * 4_000)


def test_what_is_told_is_shared_between_steps() -> None:
    # A copy of a name for each token of it would take gigabytes.
    matcher = GrammarMatcher(COMPILER.compile_json_schema("true"), events=True)
    name = "n" * 200_000
    assert matcher.accept_string('{"')
    for character in name.encode():
        assert matcher.accept_token(character)
    assert matcher.accept_string('":1}')
    assert [event.name for event in matcher.events()] == [f"/{name}"] * 2


# Completions and budgets: what is known of a long answer is kept from each place on.


LONG = {
    "a text": {"const": "ab" * 60_000},
    "a text in another alphabet": {"const": "é" * 50_000},
    "a text in an object": {
        "type": "object",
        "properties": {"a": {"const": "xyz" * 40_000}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
    "items": {"type": "array", "minItems": 4_000, "items": {"type": "integer"}},
    "members": {
        "type": "object",
        "properties": {f"p{i}": {"type": "null"} for i in range(300)},
        "required": [f"p{i}" for i in range(300)],
    },
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_answer_is_completed_and_budgeted_from_anywhere(name: str) -> None:
    grammar = compiled(LONG[name])
    whole = GrammarMatcher(grammar).find_completion()
    assert admits(grammar, whole.decode())
    matcher = GrammarMatcher(grammar, token_budget=len(whole))
    mask = allocate_token_bitmask(1, INFO.vocab_size)
    sizes = []
    for at, byte in enumerate(whole[:200]):
        matcher.fill_next_token_bitmask(mask)
        assert matcher.accept_token(byte)
        if at % 50 == 49:
            sizes.append(grammar.memory_size_bytes)
            rest = matcher.find_completion()
            assert len(rest) == len(whole) - at - 1
    # Had each step its own plan, each would add a megabyte.
    assert sizes[-1] - sizes[0] < 3 << 20


def test_a_budget_holds_along_a_plan_of_pieces() -> None:
    text = json.dumps({"a": "x" * 1_000, "b": [0] * 400}, separators=(",", ":"))
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 1_000}, "b": {"type": "array", "minItems": 400}},
        "required": ["a", "b"],
    }
    grammar = compiled(schema)
    least = len(GrammarMatcher(grammar).find_completion())
    assert least <= len(text) + 400 * 3
    matcher = GrammarMatcher(grammar, token_budget=least)
    plan = matcher.find_completion_tokens()
    assert len(plan) == least
    for token in plan:
        assert matcher.accept_token(token)
    assert matcher.is_accepting()


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [{"id": i, "name": f"n{i}"} for i in range(300)]},
        {"items": {"enum": [[i, i, 0] for i in range(300)]}},
        {"anyOf": [kind(i, x={"type": "integer"}) for i in range(300)]},
        {"properties": {"a": {"oneOf": [kind(i) for i in range(300)]}}},
    ],
)
def test_more_alternatives_than_can_be_read_at_once_are_refused_when_compiled(schema: Any) -> None:
    compiler = GrammarCompiler(INFO, limits=Limits(max_readings=299), cache_enabled=False)
    with pytest.raises(LimitError, match="max_readings=299") as caught:
        compiler.compile_json_schema(schema)
    assert caught.value.fields["pointer"].endswith(("/enum", "/anyOf", "/oneOf"))
    # With room for them the first masks are found.
    compiler = GrammarCompiler(INFO, limits=Limits(max_readings=300), cache_enabled=False)
    matcher = GrammarMatcher(compiler.compile_json_schema(schema))
    for byte in matcher.find_completion() or b"[":
        matcher.fill_next_token_bitmask(allocate_token_bitmask(1, INFO.vocab_size))
        assert matcher.accept_token(byte)


def test_alternatives_with_equal_rests_are_read_together() -> None:
    compiler = GrammarCompiler(INFO, limits=Limits(max_readings=10), cache_enabled=False)
    for values in ([{"id": i} for i in range(300)], [[i, "x"] for i in range(300)]):
        matcher = GrammarMatcher(compiler.compile_json_schema({"enum": values}))
        for byte in json.dumps(values[217], separators=(",", ":")).encode():
            matcher.fill_next_token_bitmask(allocate_token_bitmask(1, INFO.vocab_size))
            assert matcher.accept_token(byte)


# Objects whose members ask for each other are finished without a search over all orders and alternatives.


def chain(count: int) -> dict[str, Any]:
    return {"type": "object", "dependentRequired": {f"p{i}": [f"p{i + 1}"] for i in range(count)}}


def conditions(count: int) -> dict[str, Any]:
    def condition(i: int) -> dict[str, Any]:
        given = {"properties": {f"a{i}": {"const": 1}}, "required": [f"a{i}"]}
        return {"if": given, "then": {"required": [f"b{i}"]}, "else": {"required": [f"c{i}"]}}

    first = {f"a{i}": {"enum": [1, 2]} for i in range(count)}
    return {"type": "object", "properties": first, "allOf": [condition(i) for i in range(count)], "required": [*first]}


def forbidden(count: int) -> dict[str, Any]:
    """What asks for a member forbids another that is asked for, too: no proposal without a search holds."""
    rules = [{"not": {"required": [f"a{i}", f"a{i + 1}"]}} for i in range(count)]
    either = [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(count)]
    return {"type": "object", "allOf": [*rules, *either], "required": ["a1"]}


@pytest.mark.parametrize(
    ("schema", "begin"),
    [
        (chain(400), ""),
        (chain(400), '{"p400":0,"p398":0'),
        (chain(40), '{"p0":0'),
        (chain(400) | {"required": ["p0"]}, ""),
        (chain(100) | {"required": ["p0"], "maxProperties": 101}, ""),
        (chain(12) | {"required": ["p0"], "propertyNames": {"pattern": "^p"}}, '{"p5":1'),
        (conditions(60), ""),
        (conditions(60), '{"a0":1,"a1":2'),
        (conditions(20) | {"minProperties": 43}, '{"a0":1,"a1":1'),
        (forbidden(6), ""),
        (forbidden(6), '{"b2":1'),
        ({"type": "object", "minProperties": 400}, ""),
        ({"type": "object", "minProperties": 400}, '{"a":1,"c":2'),
        ({"type": "object", "minProperties": 30, "propertyNames": {"pattern": "^[ab]{4,5}$"}}, '{"aaaa":1'),
        ({"type": "object", "minProperties": 40, "propertyNames": {"enum": [f"n{i}" for i in range(40)]}}, '{"n7":1'),
    ],
)
def test_objects_are_completed_from_anywhere(schema: dict[str, Any], begin: str) -> None:
    matcher = GrammarMatcher(compiled(schema))
    assert matcher.accept_string(begin)
    text = begin.encode() + matcher.find_completion()
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    # The way is also one that the masks let through.
    assert matcher.accept_string(text[len(begin.encode()) :])
    assert matcher.is_accepting()


@pytest.mark.parametrize(
    "schema", [forbidden(2) | {"maxProperties": 1}, chain(5) | {"required": ["p0"], "maxProperties": 5}]
)
def test_what_no_proposal_finishes_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsatisfiableSchemaError):
        compiled(schema)


def test_a_mask_before_many_members_that_ask_for_each_other_agrees_with_what_is_taken() -> None:
    row = allocate_token_bitmask(1, INFO.vocab_size)
    matcher = GrammarMatcher(compiled(chain(60) | {"maxProperties": 30}))
    assert matcher.accept_string('{"p')
    matcher.fill_next_token_bitmask(row)
    # After p31 all of p32 to p60 must come: 30 members in all.
    assert matcher.fork().accept_string('31":0')
    assert not matcher.fork().accept_string('30":0')
    assert matcher.fork().accept_string('6":0') is False


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= "" | b b{0,50} [ab]\nb ::= root root | ""',
        'root ::= b b | "a"\nb ::= root | root "a" | ""',
        'root ::= a a | ""\na ::= "a" root root | ""',
    ],
)
def test_events_that_were_told_stay_or_are_refused(grammar: str) -> None:
    matcher = GrammarMatcher(COMPILER.compile(Grammar.from_ebnf(grammar)), events=True)
    told: list[Any] = []
    try:
        for _ in range(12):
            matcher.accept_string("a")
            assert matcher.events()[: len(told)] == told
            told = matcher.events()
        matcher.accept_token(END)
        assert matcher.events()[: len(told)] == told
    except LimitError as error:
        assert "events" in str(error)


@pytest.mark.parametrize("count", [10**9, 20_000])
def test_a_budget_does_not_plan_more_members_than_an_example_may_have(count: int) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"minProperties": count}, "b": {"required": ["x"], "minProperties": count}},
    }
    grammar = compiled(schema)
    row = allocate_token_bitmask(1, INFO.vocab_size)
    for begin in ('{"a":', '{"b":', '{"b":{"x":1'):
        matcher = GrammarMatcher(grammar, token_budget=60)
        try:
            assert not matcher.accept_string(begin + "{") or begin.endswith("1")
            matcher.fill_next_token_bitmask(row)
        except LimitError as error:
            assert "members of an example" in str(error)


def apart(letters: str) -> dict[str, Any]:
    """Each letter must be in some name that is longer than three characters and has an a and a b."""
    there = [{"not": {"patternProperties": {letter: False}}} for letter in letters]
    names: list[Any] = [{"patternProperties": {"^.{1,3}$": False}, "additionalProperties": True}]
    names += [{"patternProperties": {letter: True}, "additionalProperties": False} for letter in "ab"]
    return {"type": "object", "allOf": [*names, *there]}


@pytest.mark.parametrize(
    ("letters", "bounds"),
    [
        ("c", {"maxProperties": 1}),
        ("cdf", {"maxProperties": 1}),
        ("cdfghk", {"maxProperties": 1}),
        ("c", {"minProperties": 4}),
        ("c", {"minProperties": 12}),
    ],
)
def test_names_whose_shortest_length_is_hard_to_tell_are_found(letters: str, bounds: dict[str, Any]) -> None:
    schema = apart(letters) | bounds
    value = json.loads(GrammarMatcher(compiled(schema)).find_completion())
    jsonschema.Draft202012Validator(schema).validate(value)
    assert all(any(letter in name for name in value) for letter in letters)
