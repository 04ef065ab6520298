"""Grammars that are made to break the engine: each is compiled and followed, or refused with an error that says why."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pytest

from punchcard import (
    Grammar,
    GrammarCompiler,
    GrammarError,
    GrammarMatcher,
    LimitError,
    Limits,
    MatcherError,
    TokenizerInfo,
    allocate_token_bitmask,
)

END = 256
INFO = TokenizerInfo.from_vocab([*(bytes([i]) for i in range(256)), b"</s>"], eos_token_ids=[END])
MANY = 20_000


def matcher(grammar: Grammar, **options: int | None) -> GrammarMatcher:
    return GrammarMatcher(GrammarCompiler(INFO, cache_enabled=False).compile(grammar), **options)


def first_mask(grammar: Grammar) -> GrammarMatcher:
    out = matcher(grammar)
    out.fill_next_token_bitmask(allocate_token_bitmask(1, INFO.vocab_size))
    return out


def chain(count: int, rule: Callable[[int], str], last: str) -> str:
    """Rules a0, a1, ..., each made of the next one, after a root that is the first."""
    return "root ::= a0\n" + "".join(f"a{i} ::= {rule(i)}\n" for i in range(count)) + f"a{count} ::= {last}"


# Groups may nest 500 deep, which is more than Python's own JSON may.

DEEP = "root ::= " + '("b" | "c" ' * 480 + "root" + ")" * 480


@pytest.mark.parametrize(
    "read", [Grammar.from_ebnf, lambda text: Grammar.from_lark(text.replace("root ::=", "root:"), start="root")]
)
def test_all_groups_that_are_read_can_be_compiled(read: Callable[[str], Grammar]) -> None:
    text = "root ::= " + '("b" | "c" ' * 480 + '"d"' + ")" * 480
    grammar = read(text)
    assert matcher(grammar).accept_string("cccb")
    assert grammar == read(text) and hash(grammar) == hash(read(text))
    assert str(grammar).startswith("root ::= ")
    assert repr(grammar) == "<Grammar ...>"


@pytest.mark.parametrize(
    "make",
    [
        lambda: reduce(
            lambda inner, _: Grammar.concat(Grammar.from_text("a"), inner), range(3_000), Grammar.from_text("")
        ),
        lambda: Grammar(reduce(lambda inner, _: {"not": inner}, range(5_000), {"text": "a"})),
        lambda: Grammar.union(Grammar.from_ebnf(DEEP), Grammar.from_text("a")),
    ],
)
def test_expressions_that_nest_too_deeply_are_refused(make: Callable[[], Grammar]) -> None:
    with pytest.raises(GrammarError, match="nests too deeply") as caught:
        GrammarCompiler(INFO).compile(make())
    assert "as rules" in caught.value.hint


def test_an_expression_that_is_no_json_is_refused() -> None:
    with pytest.raises(GrammarError, match="not JSON"):
        GrammarCompiler(INFO).compile(Grammar({"text": b"a"}))


# Long chains of rules: what is found out about them is found in one pass, not in one for each rule.


def test_chains_of_rules() -> None:
    assert matcher(Grammar.from_ebnf(chain(MANY, lambda i: f"a{i + 1}", '"a"'))).find_completion() == b"a"
    nested = chain(5_000, lambda i: f'"(" a{i + 1} ")" | a{i + 1}', '"a" a0 | "b"')
    assert matcher(Grammar.from_ebnf(nested)).find_completion() == b"b"
    with pytest.raises(GrammarError, match="401 rules begin with each other"):
        matcher(Grammar.from_ebnf(chain(400, lambda i: f'a{i + 1} "x"', 'a0 | "b"')))


def test_long_circles_of_rules() -> None:
    circle = matcher(Grammar.from_ebnf(chain(MANY, lambda i: f"a{i + 1}", 'a0 | "b"')))
    assert circle.find_completion() == b"b"
    assert circle.accept_string("b") and circle.is_accepting()
    # By way of rules that may be empty, to the left and to the right of each rule.
    hidden = chain(2_000, lambda i: f"e a{i + 1} e", 'a0 | "b"') + '\ne ::= "" | "-" | e e'
    assert matcher(Grammar.from_ebnf(hidden)).accept_string("-b--")
    # Each rule begins with every other one, and all are the same.
    names = " | ".join(f"a{i}" for i in range(200))
    everyone = matcher(Grammar.from_ebnf("\n".join(f'a{i} ::= {names} | "{i}"' for i in range(200))))
    assert everyone.accept_string("117") and everyone.is_accepting()


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        # Each rule is a union of all behind it.
        (chain(MANY, lambda i: f'a{i + 1} "x" | a{i + 1}', '"a"'), "max_automaton_states"),
        # What may follow one part is a set of all parts behind it.
        (
            "root ::= "
            + " ".join(f"r{i}" for i in range(3_000))
            + "\n"
            + "".join(f'r{i} ::= "x" r{i} "y" | \n' for i in range(3_000)),
            "max_states",
        ),
        (
            "root ::= a0\n" + "".join(f'a{i} ::= a{(i + 1) % 60} a{(i + 7) % 60} "x" | "b" | \n' for i in range(60)),
            "max_states",
        ),
    ],
)
def test_what_grows_with_the_square_of_a_grammar_is_limited(text: str, limit: str) -> None:
    compiler = GrammarCompiler(INFO, limits=Limits(max_states=100_000))
    with pytest.raises(LimitError) as caught:
        GrammarMatcher(compiler.compile_ebnf(text)).accept_string("x" * 64)
    assert caught.value.limit == limit


def test_no_completion_is_spelled_that_no_memory_holds() -> None:
    endless = first_mask(Grammar.from_ebnf('root ::= (((r){1000}){1000}){1000}\nr ::= "(" r ")" | "x"'))
    with pytest.raises(MatcherError, match="No example"):
        endless.find_completion()
    assert endless.accept_string("x((x))")
    long = matcher(Grammar.from_ebnf('root ::= r{100000}\nr ::= "(" r ")" | "x"'))
    assert long.find_completion() == b"x" * 100_000


@pytest.mark.parametrize("name", ["", "A"])
def test_what_grows_exponentially_in_one_step_is_limited(name: str) -> None:
    rules = chain(60, lambda i: f'a{i + 1} "x" a{i + 1} | a{i + 1}', '"a"')
    grammar = Grammar.from_ebnf(rules)
    if name:
        grammar = Grammar.from_lark(
            rules.replace("root ::= a0", "start: A0")
            .replace("::=", ":")
            .replace("a", "A")
            .replace('"A"', '"a"')
            .replace("stArt", "start")
        )
    with pytest.raises(LimitError) as caught:
        matcher(grammar).accept_string("axaxaxaxaxaxaxaxaxaxaxaxaxaxaxaxaxaxaxaxa")
    assert caught.value.limit == "max_automaton_states"


def test_long_literals() -> None:
    text = "añ" * 100_000
    long = matcher(Grammar.from_text(text))
    assert long.accept_string(text[:120_000])
    assert long.find_completion().decode() == text[120_000:]
    assert text[120_000:].startswith(long.find_jump_forward_string())
    assert not long.fork().accept_string("b")
    assert long.accept_string(text[120_000:]) and long.is_accepting()


def test_limits_may_be_as_large_as_numbers_are() -> None:
    compiler = GrammarCompiler(INFO, limits=Limits(max_automaton_states=2**64 - 1))
    assert GrammarMatcher(compiler.compile_ebnf('root ::= @and([a-z]*, @not("a"))')).accept_string("ab")


# Repetitions of repetitions whose rounds end in different states: equal rests are written out once.


@pytest.mark.parametrize(
    ("text", "taken", "refused"),
    [
        ("root ::= (r{0,50})*\nr ::= @longest([a-z]+) | @longest([0-9]+)", "a1b2", "-"),
        ('root ::= (r{0,50})*\nr ::= @longest([a-z]+) | @longest([0-9]+) ("(" r ")")?', "a1(b)2", "1()"),
        ('root ::= ((r{0,50})* "x")*\nr ::= @longest([A-Z]+) | @longest([0-9]+)', "A1Axx", "A1"),
        ("root ::= (r{2,50}){2,50}\nr ::= @longest([a-z]+) | @longest([0-9]+) | @longest([a-z][0-9])", "a1b2", "a1b"),
        ("root ::= ((r{0,50}){0,50}){0,50}\nr ::= @longest([a-z]+) | @longest([0-9]+) | @longest([A-Z]+)", "a1B", "-"),
    ],
)
def test_counted_repetitions_of_terminals_that_could_go_on(text: str, taken: str, refused: str) -> None:
    grammar = Grammar.from_ebnf(text)
    out = first_mask(grammar)
    assert out.accept_string(taken) and out.is_accepting()
    out = matcher(grammar)
    assert not (out.accept_string(refused) and out.is_accepting())


# Alternatives within limits on tokens: their terminals are looked up like all others as long as there is room.


def test_many_alternatives_within_limits() -> None:
    count = 60
    names = " | ".join(f"@max_tokens({12 + i}, a{i})" for i in range(count))
    rules = "".join(f'a{i} ::= [a-z]+ (":" | @max_tokens({6 + i}, [a-z ]*) ".")\n' for i in range(count))
    out = first_mask(Grammar.from_ebnf(f"root ::= ({names})*\n{rules}"))
    assert out.accept_string("abc def.x:") and out.is_accepting()
    # The largest limit is the last to go.
    assert all(out.accept_token(ord("a")) for _ in range(70)) and not out.accept_token(ord("a"))
    assert out.find_completion() in (b".", b":")
