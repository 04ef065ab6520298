"""What texts add to a compiled grammar is bounded: tables begin anew, and matchers notice nothing of it."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import numpy as np
import pytest

from punchcard import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    LimitError,
    Limits,
    TokenizerInfo,
    allocate_token_bitmask,
)

TOKENS = [bytes([i]) for i in range(256)]
TOKENS += [
    b'","',
    b'":',
    b'"}',
    b'{"',
    b'a"',
    b'["',
    b"12",
    b'1"',
    b'":{"',
    b"ab",
    b"((",
    b"))",
    b"<t>",
    b"xx",
    b"\xc3\xa9",
]
END = len(TOKENS)
INFO = TokenizerInfo.from_vocab([*TOKENS, b"</s>"], eos_token_ids=[END])

SCHEMAS: list[Any] = [
    {"type": "object"},
    {"type": "object", "additionalProperties": {"type": ["integer", "object"]}, "maxProperties": 4},
    {"type": "object", "propertyNames": {"maxLength": 2}, "minProperties": 2},
    {"type": "object", "patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}}},
    {"properties": {"a": {"enum": [1, [2, "x"], {"b": None}]}, "ab": {"type": "string", "maxLength": 5}}},
    {"type": "array", "uniqueItems": True, "minItems": 3},
    {"type": "array", "uniqueItems": True, "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    {"type": "array", "items": {"enum": ["a", "b", "ab"]}, "uniqueItems": True, "minItems": 2},
    {"type": "array", "prefixItems": [{"type": "integer"}], "contains": {"const": "a"}, "maxContains": 2},
    {"type": "string", "pattern": "^(a|é){3,40}(?!b)[a-c]*$"},
    {"type": "string", "format": "date-time"},
    {"type": "number", "multipleOf": 0.75, "minimum": -3},
    {"oneOf": [{"required": ["a"], "type": "object"}, {"required": ["b"], "type": "object"}]},
    {"$ref": "#/$defs/n", "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}, "maxItems": 3}}},
    {
        "type": "object",
        "dependentRequired": {"a": ["b"]},
        "properties": {"a": {"const": 1}},
        "unevaluatedProperties": False,
    },
]
GRAMMARS = [
    'root ::= item{0,1000}\nitem ::= "(" item ")" | "x" | "ab"{2,7}',
    'root ::= sum\nsum ::= sum "+" sum | "(" sum ")" | [0-9]+',
    'root ::= "a" root "b" | "ab" | root root',
    "root ::= (word | [ ])*\nword ::= [a-z]+ | [0-9]{3,5}",
]
LARK = [
    'start: NAME ("=" value)? ";" start?\nvalue: NUMBER | NAME | "(" value ")"\n%import common.NUMBER\n'
    "%import common.CNAME -> NAME\n%ignore / /",
    'start: (part ";")*\npart[max_tokens=9]: /[ab]*/ inner /[ab]*/\ninner[max_tokens=6]: ("(" /[a-b]+/ ")")*',
    'start: "<t>" json "</t>" start?\njson: %json {"type": "object", "properties": {"a": {"type": "array"}}}',
]


EXPRESSIONS = [Grammar.from_json_schema(schema) for schema in SCHEMAS]
EXPRESSIONS += [Grammar.from_json_schema(schema, property_order="any") for schema in SCHEMAS[:5]]
EXPRESSIONS += [Grammar.from_ebnf(text) for text in GRAMMARS]
EXPRESSIONS += [Grammar.from_lark(text) for text in LARK]
NESTED = len(SCHEMAS) + 5


def compiled(which: int, max_memory: int = Limits().max_memory) -> CompiledGrammar:
    limits = Limits(max_memory=max_memory)
    return GrammarCompiler(INFO, limits=limits, cache_enabled=False).compile(EXPRESSIONS[which])


def mask_of(matcher: GrammarMatcher) -> list[int]:
    row = allocate_token_bitmask(1, INFO.vocab_size)
    matcher.fill_next_token_bitmask(row)
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: INFO.vocab_size]
    return [int(i) for i in np.flatnonzero(bits)]


def drops(sizes: list[int]) -> int:
    """Counts how often tables began anew."""
    return sum(later < earlier for earlier, later in itertools.pairwise(sizes))


@pytest.mark.parametrize("which", range(len(EXPRESSIONS)))
def test_tables_that_begin_anew_every_few_steps_change_nothing(which: int) -> None:
    usual, small = compiled(which), compiled(which, 40_000)
    random_ = random.Random(which)
    sizes = []
    for _ in range(12):
        a, b = GrammarMatcher(usual), GrammarMatcher(small)
        for _ in range(40):
            expected = mask_of(a)
            assert mask_of(b) == expected
            token = random_.choice(expected)
            assert a.accept_token(token) and b.accept_token(token)
            sizes.append(small.memory_size_bytes)
            assert a.is_terminated() == b.is_terminated()
            if a.is_terminated():
                break
            assert a.is_accepting() == b.is_accepting()
            assert a.find_jump_forward_bytes() == b.find_jump_forward_bytes()
    # A few have so few states that they never fill up.
    assert drops(sizes) >= 2 or max(sizes) < 200_000


def test_matchers_of_many_epochs_take_turns_roll_back_and_fork() -> None:
    random_ = random.Random(7)
    for which in range(len(EXPRESSIONS)):
        usual, small = compiled(which), compiled(which, 60_000)
        pairs = [(GrammarMatcher(usual), GrammarMatcher(small)) for _ in range(6)]
        for _ in range(250):
            a, b = pairs[random_.randrange(len(pairs))]
            expected = mask_of(a)
            assert mask_of(b) == expected
            if a.is_terminated() or random_.random() < 0.1:
                count = random_.randrange(a.num_steps + 1)
                a.rollback(count)
                b.rollback(count)
            elif random_.random() < 0.1:
                pairs[random_.randrange(len(pairs))] = (a.fork(), b.fork())
            else:
                token = random_.choice(expected)
                assert a.accept_token(token) and b.accept_token(token)


def test_budgets_and_events_live_on_in_new_tables() -> None:
    text = b'{"a":{"b":[1,2]},"ab":"xx","c":3}'
    usual, small = compiled(0), compiled(0, 60_000)
    a, b = (GrammarMatcher(grammar, events=True) for grammar in (usual, small))
    for i in range(len(text)):
        assert a.accept_string(text[i : i + 1]) and b.accept_string(text[i : i + 1])
        assert a.events() == b.events()
    a, b = (GrammarMatcher(grammar, token_budget=30) for grammar in (usual, small))
    random_ = random.Random(3)
    while not a.is_terminated():
        expected = mask_of(a)
        assert mask_of(b) == expected
        token = random_.choice(expected)
        assert a.accept_token(token) and b.accept_token(token)
        assert a.budget_left == b.budget_left


def documents(kind: str, number: int) -> str:
    if kind == "object":
        return json.dumps({f"name {number}": number, "id": {f"x{number}": [1]}}, separators=(",", ":"))
    if kind == "unique":
        return json.dumps([number, f"s{number}", [number]], separators=(",", ":"))
    return "x" * (number % 7) + "(" * (number % 50) + "x" + ")" * (number % 50)


@pytest.mark.parametrize(
    ("kind", "which", "most"), [("object", 0, 2_000_000), ("unique", 5, 2_000_000), ("nested", NESTED, 100_000)]
)
def test_memory_stays_flat_over_thousands_of_documents(kind: str, which: int, most: int) -> None:
    grammar = compiled(which, most)
    first = grammar.memory_size_bytes
    sizes = []
    for number in range(4_000):
        matcher = GrammarMatcher(grammar)
        assert matcher.accept_string(documents(kind, number)) and matcher.is_accepting()
        sizes.append(grammar.memory_size_bytes)
    # More than once the tables filled up, and never held more than one and a half times the limit.
    assert drops(sizes) >= 1
    assert max(sizes) < first * 2 + most * 1.5


def test_one_object_of_many_names_takes_memory_in_proportion() -> None:
    grammar = compiled(0)
    matcher = GrammarMatcher(grammar)
    assert matcher.accept_string('{"":0')
    sizes = []
    for number in range(6_000):
        assert matcher.accept_string(f',"name {number * 7919 % 6_000}":0')
        if number % 2_000 == 1_999:
            sizes.append(grammar.memory_size_bytes)
            mask_of(matcher)
    assert sizes[2] - sizes[1] < 2 * (sizes[1] - sizes[0])
    assert sizes[2] < 30_000_000
    before = matcher.fork()
    assert not matcher.accept_string(',"name 17":') and matcher.accept_string(',"name')
    # Only the end of a name that was seen is refused.
    assert matcher.accept_string(" 17") and ord('"') not in mask_of(matcher) and ord("0") in mask_of(matcher)
    assert before.accept_string("}") and before.is_accepting()


@pytest.mark.parametrize(
    "schema", [SCHEMAS[0], SCHEMAS[3], {"type": "object", "patternProperties": {"x$": {}, "^k": {}}}]
)
@pytest.mark.parametrize("whole", [True, False])
def test_masks_refuse_the_ends_of_seen_names(schema: Any, whole: bool) -> None:
    grammar = Grammar.from_json_schema(schema)
    if not whole:
        grammar = Grammar.concat(grammar, Grammar.from_text(";"))
    matcher = GrammarMatcher(GrammarCompiler(INFO, cache_enabled=False).compile(grammar))
    names = ["{", "ab", "a", "", "xx", "é", "kx", 'q"q', "1", *(f"x{i}" for i in range(40))]
    for i, name in enumerate(names):
        quoted = json.dumps(name, ensure_ascii=False)
        if not matcher.accept_string(("," if i else "{") + quoted + ":"):
            # A name of two classes that contradict each other.
            assert name == "ab"
            continue
        assert any(matcher.accept_string(value) for value in ("1", '"b"')), name
        fork = matcher.fork()
        assert fork.accept_string(',"')
        for text in ("", name[:1], name):
            at = fork.fork()
            if at.accept_string(json.dumps(text, ensure_ascii=False)[1:-1]):
                taken = [token for token in range(INFO.vocab_size) if at.fork().accept_token(token)]
                assert mask_of(at) == taken, (name, text)


def test_a_state_that_takes_more_than_the_limit_by_itself_is_an_error() -> None:
    grammar = compiled(0, 20_000)
    matcher = GrammarMatcher(grammar)
    assert matcher.accept_string("{" + ",".join(f'"name {i}":0' for i in range(2_000)))
    with pytest.raises(LimitError, match="max_memory=20000") as caught:
        matcher.accept_string(",")
    assert caught.value.hint
    # Others are not harmed.
    assert GrammarMatcher(grammar).accept_string('{"a":1}')
