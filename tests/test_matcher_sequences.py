"""Whatever is done to a matcher, it is where a fresh one would be that was only given the steps that count.

A thousand sequences: ``PUNCHCARD_EXAMPLES=1000 pytest tests/test_matcher_sequences.py``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard import CompiledGrammar, Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo
from punchcard.errors import MatcherError

EXAMPLES = int(os.environ.get("PUNCHCARD_EXAMPLES", "100"))

PIECES = [
    b"ab",
    b"aab",
    b"b,",
    b'":',
    b'{"',
    b'"}',
    b'","',
    b"12",
    b"true",
    b"</",
    b"f>",
    b"<call=",
    b'"a"',
    b"\xc3\xa9",
    b"\xf0\x9f",
]
TOKENS = [*(bytes([i]) for i in range(256)), *PIECES, b"", b"</s>", b"<|a|>", b"<|b|>", b"<|stop|>"]
END, A, B, STOP = (TOKENS.index(name) for name in (b"</s>", b"<|a|>", b"<|b|>", b"<|stop|>"))
INFO = TokenizerInfo.from_vocab(TOKENS, eos_token_ids=[END, STOP], special_token_ids=[A, B], vocab_size=len(TOKENS) + 9)

GRAMMARS: dict[str, Grammar] = {
    "schema": Grammar.from_json_schema(
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "string", "maxLength": 3},
                "c": {"enum": ["a", "ab", True]},
            },
            "required": ["a"],
            "additionalProperties": {"type": "boolean"},
            "maxProperties": 4,
        }
    ),
    "unique items": Grammar.from_json_schema(
        {"type": "array", "items": {"enum": [1, 12, "a", "ab"]}, "uniqueItems": True}
    ),
    "any schema": Grammar.from_json_schema(True, profile="spec"),
    "nested": Grammar.from_ebnf('root ::= "a" root "b" | "ab" | "," root'),
    "left recursive": Grammar.from_ebnf('root ::= root "," item | item\nitem ::= "a"+ "b"? | "(" root ")"'),
    "ambiguous": Grammar.from_ebnf('root ::= root root | "a" | "b" | "ab" | ""'),
    "empty in the middle": Grammar.from_ebnf('root ::= "a" rest "b"\nrest ::= "" | "a" rest "b" rest'),
    "regex": Grammar.from_regex("(a|ab|aab)*[é😀]?(b,){0,3}"),
    "tokens": Grammar.from_ebnf('root ::= (<|a|> [ab]* <|b|>)+ (<|stop|> | "12")'),
    "any token": Grammar(
        {"sequence": [{"repeat": {"body": {"token": {"ids": [B], "except": True}}, "min": 0}}, {"token": {"ids": [B]}}]}
    ),
    "limit": Grammar(
        {
            "sequence": [
                {"max_tokens": {"body": {"regex": {"pattern": "[ab,]*"}}, "tokens": 5}},
                {"text": "12"},
                {"choice": [{"text": ""}, {"token": {"ids": [A]}}]},
            ]
        }
    ),
    "tags": Grammar.from_structural_tag(
        {
            "type": "triggered_tags",
            "triggers": ["<call="],
            "tags": [
                {
                    "begin": "<call=f>",
                    "content": {
                        "type": "json_schema",
                        "json_schema": {"type": "object", "additionalProperties": {"type": "integer"}},
                    },
                    "end": "</f>",
                },
                {"begin": "<call=a>", "content": {"type": "any_text"}, "end": "</a>"},
            ],
        }
    ),
    "named": Grammar.from_ebnf(
        'root ::= @named("list", "l", item ("," item)*)\nitem ::= @named("item", "i", "a"+ tail)\n'
        'tail ::= @named("tail", "t", "" | "b" tail)'
    ),
}


@cache
def compiled(name: str) -> CompiledGrammar:
    return GrammarCompiler(INFO).compile(GRAMMARS[name])


Step = int | bytes


class Pair:
    """A matcher that much is done to, and the steps that a fresh one needs to get where it is."""

    def __init__(self, name: str, events: bool, budget: int | None) -> None:
        self.options: dict[str, Any] = {"events": events, "token_budget": budget}
        self.name = name
        self.matcher = GrammarMatcher(compiled(name), **self.options)
        self.steps: list[Step] = []

    def fresh(self, more: Sequence[int] = ()) -> GrammarMatcher | None:
        """A matcher after the steps and more tokens; None if one of those cannot come."""
        matcher = GrammarMatcher(compiled(self.name), **self.options)
        for step in self.steps:
            assert matcher.accept_token(step) if isinstance(step, int) else matcher.accept_string(step)
        return matcher if all(matcher.accept_token(token) for token in more) else None

    def check(self) -> None:
        fresh = self.fresh()
        assert fresh is not None
        assert state(self.matcher) == state(fresh)
        if self.options["events"]:
            assert self.matcher.events() == fresh.events()
            told = self.matcher.events()
            assert self.matcher.events(len(told) // 2) == told[len(told) // 2 :]
        assert self.matcher.num_steps == len(self.steps)


def row_of(matcher: GrammarMatcher) -> list[int]:
    bitmask = punchcard.allocate_token_bitmask(1, INFO.vocab_size)
    matcher.fill_next_token_bitmask(bitmask)
    return np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")).tolist()


def state(matcher: GrammarMatcher) -> tuple[Any, ...]:
    return (
        row_of(matcher),
        matcher.is_accepting(),
        matcher.is_terminated(),
        matcher.budget_left,
        matcher.find_jump_forward_bytes(),
        matcher.find_completion_tokens(),
        matcher.num_readings,
    )


def draw_token(pair: Pair, rng: random.Random) -> int:
    """Mostly one that is allowed, now and then any number."""
    if rng.random() < 0.75:
        allowed = [token for token in row_of(pair.matcher) if token not in (END, STOP) or rng.random() < 0.3]
        if allowed:
            return rng.choice(allowed)
    return rng.choice([rng.randrange(INFO.vocab_size), rng.randrange(256, len(TOKENS)), END, A, B, -1, 10_000, 1 << 40])


def draw_chain(pair: Pair, rng: random.Random) -> list[int]:
    """Tokens from here on, of which the first ones are likely to be legal."""
    fork, out = pair.matcher.fork(), []
    for _ in range(rng.randrange(1, 6)):
        allowed = row_of(fork)
        token = rng.choice(allowed) if allowed and rng.random() < 0.85 else rng.randrange(len(TOKENS))
        out.append(token)
        fork.accept_token(token)
    return out


def do_accept_token(pair: Pair, rng: random.Random) -> None:
    token = draw_token(pair, rng)
    allowed = token in row_of(pair.matcher) and not pair.matcher.is_terminated()
    assert pair.matcher.accept_token(token) == allowed
    pair.steps += [token] if allowed else []


def do_accept_string(pair: Pair, rng: random.Random) -> None:
    chain = [token for token in draw_chain(pair, rng) if token < END]
    data = b"".join(TOKENS[token] for token in chain) if rng.random() < 0.9 else rng.choice([b"", b"?", b"\xff", b"ab"])
    if pair.matcher.accept_string(data):
        pair.steps.append(data)


def do_rollback(pair: Pair, rng: random.Random) -> None:
    count = rng.randrange(min(len(pair.steps), 6) + 1)
    if rng.random() < 0.1:
        with pytest.raises(MatcherError):
            pair.matcher.rollback(len(pair.steps) + 1 + rng.randrange(3))
        count = 0
    pair.matcher.rollback(count)
    del pair.steps[len(pair.steps) - count :]


def do_fork(pair: Pair, rng: random.Random) -> None:
    """Goes on with one of the two; what is done to the other does not matter."""
    fork = pair.matcher.fork()
    if rng.random() < 0.5:
        pair.matcher, fork = fork, pair.matcher
    for token in draw_chain(pair, rng):
        fork.accept_token(token)
    if fork.num_steps:
        fork.rollback(1)
    if rng.random() < 0.3:
        fork.reset()


def do_validate(pair: Pair, rng: random.Random) -> None:
    chain = draw_chain(pair, rng)
    count = pair.matcher.validate_tokens(chain)
    assert pair.fresh(chain[:count]) is not None
    assert count == len(chain) or pair.fresh(chain[: count + 1]) is None


def do_draft(pair: Pair, rng: random.Random) -> None:
    """A chain, or a tree of chains; each row is what a fresh matcher says there."""
    tokens = draw_chain(pair, rng)
    parents = list(range(-1, len(tokens) - 1))
    is_tree = rng.random() < 0.6
    for _ in range(rng.randrange(1, 3) if is_tree else 0):
        at = rng.randrange(-1, len(tokens))
        for token in draw_chain(pair, rng):
            tokens.append(token)
            parents.append(at)
            at = len(tokens) - 1
    index = rng.randrange(3)
    bitmask = punchcard.allocate_token_bitmask(index + len(tokens) + 2, INFO.vocab_size)
    legal = pair.matcher.fill_draft_bitmask(bitmask, tokens, parents if is_tree else None, index)
    bits = np.unpackbits(bitmask.view(np.uint8), axis=1, bitorder="little")
    assert (bitmask[:index] == -1).all()
    assert (bitmask[-1] == -1).all()
    assert np.flatnonzero(bits[index]).tolist() == row_of(pair.matcher)
    for i in range(len(tokens)):
        path, at = [tokens[i]], parents[i]
        while at >= 0:
            path, at = [tokens[at], *path], parents[at]
        there = pair.fresh(path)
        assert legal[i] == (there is not None)
        assert np.flatnonzero(bits[index + 1 + i]).tolist() == (row_of(there) if there else [])


def do_reset(pair: Pair, rng: random.Random) -> None:
    if rng.random() < 0.3:
        pair.matcher.reset()
        pair.steps = []


DEEDS = (
    [do_accept_token] * 8
    + [do_accept_string] * 3
    + [do_rollback] * 3
    + [do_fork] * 2
    + [do_validate] * 2
    + [do_draft, do_reset]
)


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_sequences(seed: int) -> None:
    rng = random.Random(seed)
    name = sorted(GRAMMARS)[seed % len(GRAMMARS)]
    least = len(GrammarMatcher(compiled(name)).find_completion_tokens())
    budget = rng.choice([None, None, least + rng.randrange(20)])
    pair = Pair(name, events=rng.random() < 0.5, budget=budget)
    pair.check()
    for _ in range(30):
        rng.choice(DEEDS)(pair, rng)
        pair.check()


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_events_come_in_pairs_and_never_change(name: str) -> None:
    """What was told stays; at the end everything that began has ended, within what began before it."""
    for seed in range(8):
        rng = random.Random(seed)
        matcher = GrammarMatcher(compiled(name), events=True, token_budget=40)
        told: list[Any] = []
        while not matcher.is_terminated():
            assert matcher.accept_token(rng.choice(row_of(matcher)))
            events = matcher.events()
            assert events[: len(told)] == told
            told = events
        open_: list[tuple[str, str]] = []
        for event in told:
            if event.what == "begin":
                open_.append((event.kind, event.name))
            else:
                assert open_.pop() == (event.kind, event.name)
        assert not open_
        assert [event.position for event in told] == sorted(event.position for event in told)


def test_events_around_an_empty_part() -> None:
    matcher = GrammarMatcher(compiled("named"), events=True)
    assert matcher.accept_string("a,ab")
    assert matcher.accept_token(END)
    told = [(event.name, event.what, event.position) for event in matcher.events() if event.kind != "rule"]
    assert told == [
        ("l", "begin", 0),
        ("i", "begin", 0),
        ("t", "begin", 1),
        ("t", "end", 1),
        ("i", "end", 1),
        ("i", "begin", 2),
        ("t", "begin", 3),
        ("t", "begin", 4),
        ("t", "end", 4),
        ("t", "end", 4),
        ("i", "end", 4),
        ("l", "end", 4),
    ]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("parents", [[0, 0], [-1, 1], [-1, 5], [-2, 0], [-1], [-1, 0, 1]])
def test_parents_that_are_none(parents: list[int]) -> None:
    bitmask = punchcard.allocate_token_bitmask(3, INFO.vocab_size)
    with pytest.raises(MatcherError, match="parent"):
        GrammarMatcher(compiled("regex")).fill_draft_bitmask(bitmask, [97, 98], parents)
    assert (bitmask == -1).all()


def test_drafts_that_do_not_fit_the_bitmask() -> None:
    matcher = GrammarMatcher(compiled("regex"))
    for rows, index in [(2, 0), (3, 1), (3, 1_000)]:
        with pytest.raises(MatcherError):
            matcher.fill_draft_bitmask(punchcard.allocate_token_bitmask(rows, INFO.vocab_size), [97, 98], None, index)
    with pytest.raises(MatcherError):
        matcher.fill_draft_bitmask(punchcard.allocate_token_bitmask(3, 32), [97, 98])


def test_drafts_of_nothing_and_of_ids_out_of_range() -> None:
    matcher = GrammarMatcher(compiled("regex"))
    bitmask = punchcard.allocate_token_bitmask(5, INFO.vocab_size)
    assert matcher.fill_draft_bitmask(bitmask, []) == []
    assert matcher.fill_draft_bitmask(bitmask, [-1, 1 << 40, 97, 98], [-1, -1, -1, 1]) == [False, False, True, False]
    assert not bitmask[[1, 2, 4]].any()


def test_rollback_after_the_end_and_its_limit() -> None:
    matcher = GrammarMatcher(compiled("regex"), max_rollback_tokens=2)
    for token in (97, 98, END):
        assert matcher.accept_token(token)
    with pytest.raises(MatcherError, match="max_rollback_tokens=2"):
        matcher.rollback(3)
    matcher.rollback(2)
    assert not matcher.is_terminated()
    assert matcher.num_steps == 1
    # An empty text is a step too, also after the end.
    assert matcher.accept_token(END)
    assert matcher.accept_string("")
    assert matcher.num_steps == 3
    matcher.rollback(1)
    assert matcher.is_terminated()
    matcher.rollback(1)
    assert not matcher.is_terminated()


def test_no_events_without_asking() -> None:
    with pytest.raises(MatcherError, match="tells no events"):
        GrammarMatcher(compiled("regex")).events()


# ---------------------------------------------------------------- what is large


def test_large_counts_and_literals() -> None:
    compiler = GrammarCompiler(INFO)
    matcher = GrammarMatcher(compiler.compile_ebnf('root ::= "<" [a-z]{0,100000} ">"'))
    assert matcher.accept_string("<" + "a" * 99_999)
    assert ord("a") in row_of(matcher)
    assert TOKENS.index(b"ab") not in row_of(matcher)
    assert matcher.accept_string("a")
    assert row_of(matcher) == [ord(">")]

    matcher = GrammarMatcher(compiler.compile_ebnf('root ::= item{0,100000}\nitem ::= "(" item ")" | "x"'))
    assert matcher.accept_string("x" * 90_000 + "(x)" * 10_000)
    assert matcher.is_accepting()
    assert not matcher.accept_string("x")

    text = "".join(random.Random(0).choices("abc", k=50_000))
    matcher = GrammarMatcher(compiler.compile(Grammar.from_text(text)))
    assert matcher.accept_string(text[:45_000])
    forced = ""
    while more := matcher.find_jump_forward_string():
        assert matcher.accept_string(more)
        forced += more
    assert forced == text[45_000:]
    assert row_of(matcher) == [END, STOP]
    matcher = GrammarMatcher(compiler.compile(Grammar.from_text(text)), token_budget=50_000)
    assert matcher.accept_string(text)


def test_deep_recursion() -> None:
    matcher = GrammarMatcher(compiled("nested"))
    assert matcher.accept_string("a" * 100_000)
    assert len(matcher.find_completion()) in (100_000, 100_002)
    assert matcher.accept_string("b" * 99_999)
    assert not matcher.is_accepting()
    assert matcher.accept_string("b")
    assert row_of(matcher) == [END, STOP]
    matcher.rollback(2)
    assert len(matcher.find_completion_tokens()) > 0
