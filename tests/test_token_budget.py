"""A token budget is kept: whatever a model prefers, its answer is complete within it.

The models here are adversaries: of the tokens that the mask allows they take the one that puts the end off the most,
and they end only when nothing else is allowed. As many schemas of MaskBench as
``PUNCHCARD_EXAMPLES=500 pytest tests/test_token_budget.py`` says are gone through.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_walks import compiler, exact, llama3, no_duplicates

import punchcard
from punchcard import CompiledGrammar, Grammar, GrammarCompiler, GrammarMatcher, PunchcardError, TokenizerInfo
from punchcard.errors import BudgetError, MatcherError

SHARED = Path(__file__).resolve().parents[2] / "shared"
MASKBENCH = SHARED / "data" / "maskbench.jsonl.gz"
EXAMPLES = int(os.environ.get("PUNCHCARD_EXAMPLES", "25"))

Adversary = Callable[[GrammarMatcher, np.ndarray, random.Random], int]


class Sampling:
    """Answers over one vocabulary, by adversaries."""

    def __init__(self, info: TokenizerInfo) -> None:
        self.info = info
        self.ends = list(info.eos_token_ids)
        self.bitmask = punchcard.allocate_token_bitmask(1, info.vocab_size)
        self.lengths = np.array([len(token) for token in info.tokens] + [0] * (info.vocab_size - len(info.tokens)))
        self.adversaries: dict[str, Adversary] = {
            "by need": self.by_need,
            "longest": self.longest,
            "shortest": self.shortest,
            "any": self.any,
        }

    def mask(self, matcher: GrammarMatcher) -> np.ndarray:
        """bool [vocab_size]."""
        matcher.fill_next_token_bitmask(self.bitmask)
        bits = np.unpackbits(self.bitmask[0].view(np.uint8), bitorder="little")
        return bits[: self.info.vocab_size].astype(bool)

    def by_need(self, matcher: GrammarMatcher, allowed: np.ndarray, rng: random.Random) -> int:
        """The token behind which the most is missing, of a few."""
        few = allowed if len(allowed) <= 12 else allowed[[rng.randrange(len(allowed)) for _ in range(12)]]

        def need(token: int) -> int:
            fork = matcher.fork()
            assert fork.accept_token(token)
            return len(fork.find_completion_tokens())

        return max(few.tolist(), key=need)

    def longest(self, matcher: GrammarMatcher, allowed: np.ndarray, rng: random.Random) -> int:
        """One of the three longest tokens."""
        return int(rng.choice(allowed[np.argsort(self.lengths[allowed])[-3:]]))

    def shortest(self, matcher: GrammarMatcher, allowed: np.ndarray, rng: random.Random) -> int:
        """One of the three shortest tokens."""
        return int(rng.choice(allowed[np.argsort(self.lengths[allowed])[:3]]))

    def any(self, matcher: GrammarMatcher, allowed: np.ndarray, rng: random.Random) -> int:
        return int(rng.choice(allowed))

    def answer(self, compiled: CompiledGrammar, budget: int, adversary: Adversary, rng: random.Random) -> list[int]:
        """The tokens of an answer within a budget, without the end token."""
        matcher = GrammarMatcher(compiled, token_budget=budget)
        tokens: list[int] = []
        while True:
            mask = self.mask(matcher)
            assert matcher.budget_left == budget - len(tokens)
            assert mask.any(), ("dead end", tokens)
            assert len(matcher.find_completion_tokens()) <= budget - len(tokens)
            assert mask[self.ends].any() == matcher.is_accepting()
            other = rng.randrange(self.info.vocab_size)
            assert matcher.fork().accept_token(other) == mask[other], (tokens, other)
            goes_on = mask.copy()
            goes_on[self.ends] = False
            if not goes_on.any():
                assert matcher.accept_token(self.ends[0])
                assert matcher.is_terminated()
                return tokens
            token = adversary(matcher, np.flatnonzero(goes_on), rng)
            assert matcher.accept_token(token), (tokens, token)
            tokens.append(token)
            assert len(tokens) <= budget

    def text(self, tokens: list[int]) -> str:
        return b"".join(self.info.tokens[token] for token in tokens).decode()

    def answers(self, compiled: CompiledGrammar, seed: object, adversaries: list[str] | None = None) -> list[list[int]]:
        """Answers of all adversaries within budgets from the least up; and less than that is refused."""
        least = len(GrammarMatcher(compiled).find_completion_tokens())
        if least:
            with pytest.raises(BudgetError, match=str(least)) as error:
                GrammarMatcher(compiled, token_budget=least - 1)
            assert error.value.fields["minimum"] == least
        found = []
        for budget in (least, least + 1, least + 2, least + 5, 2 * least, least + 50):
            for name in adversaries or self.adversaries:
                rng = random.Random(f"{seed} {budget} {name}")
                found.append(self.answer(compiled, budget, self.adversaries[name], rng))
        return found


@cache
def sampling() -> Sampling:
    return Sampling(llama3())


# ---------------------------------------------------------------- the Llama 3 vocabulary


@cache
def maskbench(count: int) -> list[dict[str, Any]]:
    if not MASKBENCH.exists():
        return []
    with gzip.open(MASKBENCH, "rt", encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    return random.Random(0).sample(cases, min(count, len(cases)))


@pytest.mark.skipif(not MASKBENCH.exists(), reason=f"{MASKBENCH} is absent")
@pytest.mark.parametrize("index", range(EXAMPLES))
def test_schemas_of_maskbench(index: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
    maskbench_walks = pytest.importorskip("maskbench_walks")
    case = maskbench(EXAMPLES)[index]
    try:
        compiled = GrammarCompiler(llama3(), cache_enabled=False).compile_json_schema(case["schema"])
    except PunchcardError as error:
        pytest.skip(f"refused: {error}")
    validators = maskbench_walks.Validators(case["schema"])
    adversaries = ["by need", ["longest", "shortest", "any"][index % 3]]
    for tokens in sampling().answers(compiled, index, adversaries):
        text = sampling().text(tokens)
        json.loads(text, object_pairs_hook=no_duplicates, parse_float=exact)
        objections = validators.objections(text)
        refusals = sum(not objection.startswith("broken") for objection in objections.values())
        assert refusals < 2, (text, objections)


REGEXES = [
    r"[0-9]{1,3}",
    r"(cat|dog)s?( and (cat|dog)s?)*",
    r"\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}Z)?",
    r"[^\n]*\n\n(yes|no)",
    r"(a{3}b{2,}){5,9}",
    r"[娃高海](领)+",
    r"x{0,100000}y",
]


@pytest.mark.parametrize("pattern", REGEXES)
def test_regexes(pattern: str) -> None:
    compiled = compiler().compile_regex(pattern)
    for tokens in sampling().answers(compiled, pattern):
        assert re.fullmatch(pattern, sampling().text(tokens))


# Grammars and the same as Python's `re`, or a function.
def is_sum(text: str) -> bool:
    """A sum of numbers and sums in parentheses."""
    while (shorter := re.sub(r"\(\d+([+*]\d+)*\)", "0", text)) != text:
        text = shorter
    return re.fullmatch(r"\d+([+*]\d+)*", text) is not None


def is_nested(text: str) -> bool:
    while (shorter := re.sub(r"\[( ?0(, 0)*)?\]", "0", text)) != text:
        text = shorter
    return text == "0"


GRAMMARS: list[tuple[str, Callable[[str], bool]]] = [
    ('root ::= root "+" root | root "*" root | [0-9]+ | "(" root ")"', is_sum),
    ('root ::= "[" (root (", " root)*)? "]"', is_nested),
    ('root ::= "a" root "b" | "ab"', lambda text: text == "a" * (len(text) // 2) + "b" * (len(text) // 2) != ""),
    (
        'root ::= (word " "){3,} word "."\nword ::= [a-z]+',
        lambda text: bool(re.fullmatch(r"([a-z]+ ){3,}[a-z]+\.", text)),
    ),
    ('root ::= "" | "x" root "y" root', lambda text: is_balanced(text)),
]


def is_balanced(text: str) -> bool:
    while "xy" in text:
        text = text.replace("xy", "")
    return not text


@pytest.mark.parametrize("index", range(len(GRAMMARS)))
def test_grammars_in_ebnf(index: int) -> None:
    text, check = GRAMMARS[index]
    compiled = compiler().compile_ebnf(text)
    for tokens in sampling().answers(compiled, index):
        assert check(sampling().text(tokens)), sampling().text(tokens)


CALL = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
TAG = {
    "type": "triggered_tags",
    "triggers": ["<call="],
    "tags": [
        {"begin": "<call=f>", "content": {"type": "json_schema", "json_schema": CALL}, "end": "</call>"},
        {"begin": "<call=g>", "content": {"type": "any_text"}, "end": "</call>"},
    ],
    "at_least_one": True,
}


def test_structural_tags() -> None:
    compiled = compiler().compile_structural_tag({"type": "structural_tag", "format": TAG})
    for tokens in sampling().answers(compiled, "tags"):
        text = sampling().text(tokens)
        assert "<call=" in text
        # Every call is complete, and its arguments are right.
        rest = text
        while "<call=" in rest:
            found = re.match(r"<call=(f|g)>(.*?)</call>", rest[rest.index("<call=") :], re.DOTALL)
            assert found, text
            if found[1] == "f":
                assert isinstance(json.loads(found[2])["n"], int)
            rest = rest[rest.index("<call=") + found.end() :]


# ---------------------------------------------------------------- special tokens, limits on tokens

SMALL = TokenizerInfo.from_vocab(
    [*(bytes([i]) for i in range(256)), b"ab", b"abab", b"</s>", b"<|a|>", b"<|b|>"],
    eos_token_ids=[258],
    special_token_ids=[259, 260],
)
AB = {"repeat": {"body": {"text": "ab"}, "min": 2}}


@cache
def small() -> Sampling:
    return Sampling(SMALL)


def compile_expr(expr: Any) -> CompiledGrammar:
    return GrammarCompiler(SMALL).compile(Grammar(expr))


@pytest.mark.parametrize(
    ("expr", "pattern"),
    [
        (
            {"sequence": [{"token": {"names": ["<|a|>"]}}, {"regex": {"pattern": "x*"}}, {"token": {"ids": [260]}}]},
            "Ax*B",
        ),
        ({"repeat": {"body": {"token": {"ids": [259, 260]}}, "min": 3}}, "[AB]{3,}"),
        (
            {"sequence": [{"repeat": {"body": {"token": {"ids": [259], "except": True}}, "min": 1}}, {"text": "!"}]},
            "[^A]+!",
        ),
        ({"max_tokens": {"body": AB, "tokens": 5}}, "(ab){2,}"),
        (
            {"sequence": [{"max_tokens": {"body": {"regex": {"pattern": "[a-z]*"}}, "tokens": 4}}, {"text": "."}]},
            r"[a-z]*\.",
        ),
        ({"max_tokens": {"body": {"sequence": [AB, {"token": {"ids": [259]}}]}, "tokens": 6}}, "(ab){2,}A"),
        ({"repeat": {"body": {"max_tokens": {"body": AB, "tokens": 5}}, "min": 1}}, "(ab){2,}"),
    ],
)
def test_special_tokens_and_limits_on_tokens(expr: Any, pattern: str) -> None:
    tokens = [*SMALL.tokens[:259], b"A", b"B"]
    for answer in small().answers(compile_expr(expr), pattern):
        text = b"".join(tokens[token] for token in answer)
        assert re.fullmatch(pattern.encode(), text, re.DOTALL), text


def test_a_limit_on_tokens_holds_under_a_budget() -> None:
    compiled = compile_expr(
        {"sequence": [{"max_tokens": {"body": {"regex": {"pattern": "[a-z]*"}}, "tokens": 4}}, {"text": "."}]}
    )
    counts = {len(tokens) for tokens in small().answers(compiled, "limit")}
    assert max(counts) == 5  # four within the limit, and the full stop


# ---------------------------------------------------------------- the edges


def test_budgets_of_nothing_and_of_everything() -> None:
    empty = GrammarMatcher(GrammarCompiler(SMALL).compile_regex("x*"), token_budget=0)
    assert np.flatnonzero(small().mask(empty)).tolist() == [258]
    assert not empty.accept_token(ord("x"))
    assert not empty.accept_string("x")
    assert empty.accept_string("")
    assert empty.accept_token(258)

    compiled = GrammarCompiler(SMALL).compile_regex("x+")
    with pytest.raises(BudgetError, match="takes 1 tokens"):
        GrammarMatcher(compiled, token_budget=0)
    for giant in (2**31, 2**32 - 1, 2**32, 2**63, 2**80):
        matcher = GrammarMatcher(compiled, token_budget=giant)
        assert np.flatnonzero(small().mask(matcher)).tolist() == [ord("x")]
        assert matcher.accept_token(ord("x"))
    with pytest.raises(MatcherError):
        GrammarMatcher(compiled, token_budget=-1)


def test_only_the_tokens_count() -> None:
    """The end token is not one of them; an end token that the grammar asks for is."""
    matcher = GrammarMatcher(compile_expr({"text": "abab"}), token_budget=1)
    assert np.flatnonzero(small().mask(matcher)).tolist() == [257]
    assert matcher.accept_token(257)
    assert matcher.budget_left == 0
    assert matcher.accept_token(258)

    compiled = compile_expr({"sequence": [{"text": "abab"}, {"token": {"ids": [258]}}]})
    with pytest.raises(BudgetError) as error:
        GrammarMatcher(compiled, token_budget=1)
    assert error.value.fields["minimum"] == 2
    matcher = GrammarMatcher(compiled, token_budget=2)
    assert matcher.accept_token(257)
    assert not matcher.is_accepting()
    assert matcher.accept_token(258)
    assert matcher.is_terminated()
    assert matcher.budget_left == 0


def test_forks_and_rollback_have_the_budget_of_their_place() -> None:
    compiled = GrammarCompiler(SMALL).compile_regex("(ab)*c")
    matcher = GrammarMatcher(compiled, token_budget=3)
    assert matcher.accept_token(257)
    fork = matcher.fork()
    assert fork.accept_token(256)
    assert fork.budget_left == 1
    assert np.flatnonzero(small().mask(fork)).tolist() == [ord("c")]
    assert matcher.budget_left == 2
    assert {256, 257, ord("c")} == set(np.flatnonzero(small().mask(matcher)).tolist())
    fork.rollback(2)
    assert fork.budget_left == 3
    # "a", "b" and then "c" would be three, which is just enough.
    assert fork.accept_token(ord("a"))
    assert fork.accept_token(ord("b"))
    assert np.flatnonzero(small().mask(fork)).tolist() == [ord("c")]
    fork.reset()
    assert fork.budget_left == 3


def test_drafts_and_validation_keep_the_budget() -> None:
    matcher = GrammarMatcher(GrammarCompiler(SMALL).compile_regex("(ab)*c"), token_budget=3)
    assert matcher.validate_tokens([256, 256, ord("c"), 258]) == 4
    assert matcher.validate_tokens([256, 256, 256, ord("c")]) == 2
    bitmask = punchcard.allocate_token_bitmask(4, SMALL.vocab_size)
    assert matcher.fill_draft_bitmask(bitmask, [256, 256, 256]) == [True, True, False]
    rows = np.unpackbits(bitmask.view(np.uint8), axis=1, bitorder="little")
    assert np.flatnonzero(rows[2]).tolist() == [ord("c")]
    assert not rows[3].any()


def test_what_completes_a_text_keeps_the_budget() -> None:
    """As tokens and as text, wherever an adversary leads to."""
    compiled = GrammarCompiler(SMALL).compile_regex("(ab|abab|ba)*(c{4}|bd?)")
    least = len(GrammarMatcher(compiled).find_completion_tokens())
    for budget in range(least, least + 9):
        rng = random.Random(budget)
        matcher = GrammarMatcher(compiled, token_budget=budget)
        while not matcher.is_terminated():
            tokens, text = matcher.find_completion_tokens(), matcher.find_completion()
            assert matcher.validate_tokens(tokens) == len(tokens)
            fork = matcher.fork()
            assert fork.accept_string(text)
            assert fork.is_accepting()
            assert matcher.accept_token(int(rng.choice(np.flatnonzero(small().mask(matcher)))))


def test_many_ways_on() -> None:
    """However many states the next token leads to, the mask and `accept_token` agree, and say the same again."""
    rng = random.Random(0)
    tokens = [t for t in llama3().tokens[:128_000] if t.isascii() and t.isalnum()]
    words = [word.decode() + "." * rng.randrange(6) for word in sorted(rng.sample(tokens, 6_000))]
    grammar = Grammar({"choice": [{"text": word} for word in words]})
    compiled = GrammarCompiler(llama3(), cache_enabled=False).compile(grammar)
    matcher = GrammarMatcher(compiled, token_budget=2)
    mask = sampling().mask(matcher)
    for token in [
        *np.flatnonzero(mask).tolist(),
        *rng.sample(range(128_000), 3_000),
        *map(llama3().tokens.index, tokens[:2_000]),
    ]:
        assert matcher.fork().accept_token(token) == mask[token], llama3().tokens[token]
    assert (sampling().mask(matcher) == mask).all()


# ---------------------------------------------------------------- member names

FREE: list[Any] = [
    {"type": "object"},
    {"type": "object", "minProperties": 3},
    {"type": "object", "minProperties": 2, "maxProperties": 2, "propertyNames": {"pattern": "^[ab]*$"}},
    {"type": "object", "properties": {"ab": {"type": "integer"}}, "required": ["ab", "abab", "b"]},
    {
        "type": "object",
        "patternProperties": {"^a": {"enum": ["abab", "ab"]}, "b$": {"type": "string"}},
        "minProperties": 2,
    },
    {
        "type": "object",
        "patternProperties": {"^[ab]{3}$": {"const": "b"}},
        "required": ["aab"],
        "additionalProperties": False,
    },
    {"type": "object", "additionalProperties": {"type": "object", "minProperties": 1}, "minProperties": 1},
    {"anyOf": [{"type": "object", "required": ["a", "c"]}, {"type": "object", "required": ["ab"], "maxProperties": 1}]},
    {"type": "array", "items": {"type": "object", "required": ["a"]}, "uniqueItems": True, "minItems": 2},
]


@pytest.mark.parametrize("index", range(len(FREE)))
@pytest.mark.parametrize("whole", [False, True])
def test_member_names(index: int, whole: bool) -> None:
    """However names clash with those that still have to come: mask and `accept_token` agree for all tokens."""
    jsonschema = pytest.importorskip("jsonschema")
    pieces = [
        b'{"',
        b'":',
        b'","',
        b'"a',
        b'"ab"',
        b'"}',
        b"ab",
        b"aab",
        b"b",
        b'ab":',
        b'a","b',
        b'""',
        b'b":"',
        b"1}",
    ]
    info = TokenizerInfo.from_vocab(
        [*(bytes([i]) for i in range(256)), *pieces, b"</s>"], eos_token_ids=[256 + len(pieces)]
    )
    grammar = Grammar.from_json_schema(FREE[index])
    if not whole:
        # The same as a part of another grammar.
        grammar = Grammar.concat(Grammar.from_text("<"), grammar, Grammar.from_text(">"))
    compiled = GrammarCompiler(info).compile(grammar)
    sampling = Sampling(info)
    least = len(GrammarMatcher(compiled).find_completion_tokens())
    # Items that must differ are told apart by all of their text, which is slow.
    for seed in range(3 if "uniqueItems" in FREE[index] else 24):
        rng = random.Random(seed)
        matcher = GrammarMatcher(compiled, token_budget=least + rng.choice([0, 1, 2, 3, 5, 9]))
        text = b""
        while not matcher.is_terminated():
            mask = sampling.mask(matcher)
            agreeing = [matcher.fork().accept_token(token) for token in range(info.vocab_size)]
            assert np.flatnonzero(mask).tolist() == np.flatnonzero(agreeing).tolist(), text
            ids = [token for token in np.flatnonzero(mask).tolist() if token != sampling.ends[0]] or sampling.ends
            # Names of few letters, so that they meet.
            few = [token for token in ids if info.tokens[token].strip(b'ab{}",:<>') in (b"", b"1", b"c")]
            token = rng.choice(few or ids)
            assert matcher.accept_token(token)
            text += info.tokens[token] if token != sampling.ends[0] else b""
        document = json.loads(text if whole else text[1:-1], object_pairs_hook=no_duplicates)
        assert jsonschema.Draft202012Validator(FREE[index]).is_valid(document), text


def test_free_member_names_cost_little() -> None:
    """One state for each kind of names, not one for each token."""
    compiled = GrammarCompiler(llama3(), cache_enabled=False).compile_json_schema(
        {"type": "object", "required": ["_x"]}
    )
    matcher = GrammarMatcher(compiled, token_budget=60)
    assert matcher.accept_string('{"some na')
    assert sampling().mask(matcher).sum() > 100_000
    assert compiled.memory_size_bytes < 30_000_000


@pytest.mark.parametrize("whitespace", ["none", "bounded", "any", "after_separators", 4])
def test_every_way_to_space_json_has_completions_at_every_place(whitespace: Any) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a, b": {"type": "string", "minLength": 1},
            "c": {"type": "array", "items": {"type": "integer", "minimum": 10}, "minItems": 2},
            "d": {"type": "object", "properties": {"e": {"type": "boolean"}}, "required": ["e"]},
        },
        "required": ["a, b", "c", "d"],
    }
    info = TokenizerInfo.from_vocab([*(bytes([i]) for i in range(256)), b"</s>"], eos_token_ids=[256])
    compiled = GrammarCompiler(info).compile_json_schema(schema, whitespace=whitespace)
    whole = GrammarMatcher(compiled).find_completion()
    for at in range(len(whole) + 1):
        matcher = GrammarMatcher(compiled, token_budget=300)
        assert matcher.accept_string(whole[:at])
        rest = matcher.find_completion()
        assert matcher.accept_string(rest) and matcher.is_accepting(), (whole[:at], rest)
