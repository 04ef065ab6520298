"""Random grammars against a slow and simple recogniser: every short text, every prefix, every token."""

from __future__ import annotations

import itertools
import os
from typing import Any

from grammar_reference import Reference
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from punchcard import Grammar, GrammarCompiler, GrammarError, GrammarMatcher, TokenizerInfo, allocate_token_bitmask

EXAMPLES = int(os.environ.get("PUNCHCARD_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 150,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
LETTERS = "ab"
TEXTS = ["".join(letters) for length in range(5) for letters in itertools.product(LETTERS, repeat=length)]
TOKENS = [b"", *(text.encode() for text in TEXTS if text), b"<t>", b"a\xc3", b"c"]
END, SPECIAL = 0, TOKENS.index(b"<t>")
INFO = TokenizerInfo.from_vocab(TOKENS, eos_token_ids=[END], special_token_ids=[SPECIAL])
NAMES = ["r", "s", "t"]

words = st.text(LETTERS, min_size=1, max_size=2)
regular = st.one_of(
    st.text(LETTERS, max_size=2).map(lambda text: {"text": text}),
    st.just({"chars": [[97, 98]]}),
    st.sampled_from(["a*b?", "(a|bb)+", "[ab]{2}", "a?"]).map(lambda pattern: {"regex": {"pattern": pattern}}),
    st.lists(words, min_size=1, max_size=2).map(lambda texts: {"text_without": texts}),
)


def combined(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def repeat(parts: tuple[Any, int, int | None]) -> dict[str, Any]:
        body, least, more = parts
        bounds = {} if more is None else {"max": least + more}
        return {"repeat": {"body": body, "min": least, **bounds}}

    return st.one_of(
        st.lists(items, max_size=3).map(lambda parts: {"sequence": parts}),
        st.lists(items, min_size=1, max_size=3).map(lambda parts: {"choice": parts}),
        st.tuples(items, st.integers(0, 2), st.none() | st.integers(0, 2)).map(repeat),
    )


def shortest(expr: Any) -> dict[str, Any]:
    return {"shortest": expr}


terms = st.recursive(regular, combined, max_leaves=4)
terms = st.one_of(
    terms,
    st.lists(terms, min_size=2, max_size=2).map(lambda parts: {"and": parts}),
    terms.map(lambda term: {"not": term}),
    terms.map(shortest),
)
terms = st.one_of(terms, terms.map(lambda term: {"longest": term}))
bodies = st.recursive(st.sampled_from(NAMES).map(lambda name: {"rule": name}) | terms, combined, max_leaves=6)
# Rules as people write them: alternatives of letters and rules, one after the other.
symbols = st.one_of(st.sampled_from(NAMES).map(lambda name: {"rule": name}), words.map(lambda text: {"text": text}))
production = st.lists(symbols, max_size=4).map(lambda parts: {"sequence": parts})
bodies |= st.lists(production, min_size=1, max_size=3).map(lambda parts: {"choice": parts})
grammars = st.fixed_dictionaries({"start": bodies, "rules": st.fixed_dictionaries(dict.fromkeys(NAMES, bodies))})

# An empty alternative with more behind it.
NESTED = {
    "start": {"rule": "r"},
    "rules": {
        "r": {"choice": [{"text": ""}, {"sequence": [{"text": "a"}, {"rule": "r"}, {"text": "b"}, {"rule": "r"}]}]}
    },
}


def language(grammar: dict[str, Any]) -> set[str]:
    return {text for text in TEXTS if Reference(grammar, text).matches(grammar["start"])}


@PROFILE
@given(grammars)
@example(NESTED)
def test_every_short_text_prefix_and_token(grammar: dict[str, Any]) -> None:
    compare(grammar)


# Rules that are hardly more than other rules: circles of them, also through rules that may be empty.
CIRCLE = ["r", "s", "t", "u"]
parts = st.tuples(st.sampled_from([*CIRCLE, *CIRCLE, "a", "b"]), st.sampled_from(["", "", "", "?", "*", "+"]))
circles = st.fixed_dictionaries(
    {name: st.lists(st.lists(parts, max_size=3), min_size=1, max_size=3) for name in CIRCLE}
)


def written(rules: dict[str, list[list[tuple[str, str]]]], define: str, start: str) -> str:
    """The rules in a notation; what is no name of a rule is a literal."""

    def alternative(symbols: list[tuple[str, str]]) -> str:
        return " ".join((name if name in rules else f'"{name}"') + suffix for name, suffix in symbols)

    lines = [f"{start}{define} {next(iter(rules))}"]
    lines += [f"{name}{define} {' | '.join(map(alternative, bodies))}" for name, bodies in rules.items()]
    return "\n".join(lines) + "\n"


@PROFILE
@given(circles)
@example({"r": [[("s", "")]], "s": [[("t", "")], [("a", "")]], "t": [[("s", ""), ("b", "*")]], "u": [[]]})
@example({"r": [[("s", "")], [("a", "")]], "s": [[("r", "")]], "t": [[]], "u": [[]]})
@example({"r": [[("u", ""), ("s", "?")], [("a", "")]], "s": [[("t", "*"), ("r", "")]], "t": [[("u", "")]], "u": [[]]})
@example({"r": [[("s", ""), ("b", "")], [("s", "")]], "s": [[("t", "")], [("a", "")]], "t": [[("r", "")]], "u": [[]]})
def test_circles_of_rules(rules: dict[str, list[list[tuple[str, str]]]]) -> None:
    ebnf = Grammar.from_ebnf(written(rules, " ::=", "root"))
    compare(ebnf._expr["grammar"])
    lark = Grammar.from_lark(written(rules, ":", "start"))
    compare(lark._expr["grammar"])
    tag = {"type": "tag", "begin": "a", "content": {"type": "grammar", "grammar": str(ebnf)}, "end": "b"}
    inner, outer = language(ebnf._expr["grammar"]), Grammar.from_structural_tag({"format": tag})
    try:
        compiled = GrammarCompiler(INFO, cache_enabled=False).compile(outer)
    except GrammarError:
        assert not inner
        return
    for text in TEXTS:
        matcher = GrammarMatcher(compiled)
        taken = matcher.accept_string(f"a{text}b")
        assert (taken and matcher.is_accepting()) == (text in inner), text


def compare(grammar: dict[str, Any]) -> None:
    """Compares the engine with the recogniser on all short texts."""
    expected = language(grammar)
    # A terminal that is as long as it can be forbids a little more than the recogniser does.
    tighter = "longest" in str(grammar)
    try:
        compiled = GrammarCompiler(INFO, cache_enabled=False).compile(Grammar({"grammar": grammar}))
    except GrammarError as error:
        assert "No text matches" in str(error)
        assert tighter or not expected
        return
    bitmask = allocate_token_bitmask(1, INFO.vocab_size)
    for text in TEXTS:
        matcher = GrammarMatcher(compiled)
        if not matcher.accept_string(text):
            assert tighter or not any(longer.startswith(text) for longer in expected)
            continue
        assert matcher.is_accepting() == (text in expected) or (tighter and not matcher.is_accepting()), text
        # No dead end: there is a completion, and the recogniser takes it.
        completion = matcher.find_completion()
        assert matcher.fork().accept_string(completion)
        whole = text + completion.decode()
        if len(whole) <= 12:
            assert Reference(grammar, whole).matches(grammar["start"]), whole
        matcher.fill_next_token_bitmask(bitmask)
        for token in range(len(TOKENS)):
            allowed = bool(bitmask[0][token // 32] >> (token % 32) & 1)
            assert matcher.fork().accept_token(token) == allowed, (text, token)
            if token not in (END, SPECIAL):
                assert matcher.fork().accept_string(TOKENS[token]) == allowed, (text, token)


def limited(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    limit = st.tuples(items, st.integers(1, 9))
    return combined(items) | limit.map(lambda parts: {"max_tokens": {"body": parts[0], "tokens": parts[1]}})


@PROFILE
@given(st.recursive(terms | symbols, limited, max_leaves=8), st.fixed_dictionaries(dict.fromkeys(NAMES, terms)))
def test_masks_within_limits_on_tokens(start: Any, rules: dict[str, Any]) -> None:
    try:
        compiled = GrammarCompiler(INFO, cache_enabled=False).compile(
            Grammar({"grammar": {"start": start, "rules": rules}})
        )
    except GrammarError:
        return
    bitmask = allocate_token_bitmask(1, INFO.vocab_size)
    open_paths: list[tuple[int, ...]] = [()]
    for path in open_paths:
        matcher = GrammarMatcher(compiled)
        assert all(map(matcher.accept_token, path))
        assert matcher.find_completion() is not None
        matcher.fill_next_token_bitmask(bitmask)
        for token in range(len(TOKENS)):
            allowed = bool(bitmask[0][token // 32] >> (token % 32) & 1)
            assert matcher.fork().accept_token(token) == allowed, (path, token)
            # Long tokens and short ones, so that limits are met at different places.
            if allowed and token in (END + 1, END + 2, END + 5, len(TEXTS) - 1) and len(path) < 4:
                open_paths.append((*path, token))


# A token for each byte.
SINGLE = TokenizerInfo.from_vocab([b"</s>", *(bytes([byte]) for byte in range(256))], eos_token_ids=[END])


@PROFILE
@given(st.recursive(terms | symbols, limited, max_leaves=8), st.fixed_dictionaries(dict.fromkeys(NAMES, terms)))
@example(
    {"max_tokens": {"body": {"repeat": {"body": {"rule": "r"}, "min": 0}}, "tokens": 3}},
    {"r": {"sequence": [{"max_tokens": {"body": {"regex": {"pattern": "a*b"}}, "tokens": 2}}]}},
)
def test_limits_within_limits(start: Any, rules: dict[str, Any]) -> None:
    grammar = {"start": start, "rules": {**rules, "r": {"max_tokens": {"body": rules["r"], "tokens": 3}}}}
    try:
        compiled = GrammarCompiler(SINGLE, cache_enabled=False).compile(Grammar({"grammar": grammar}))
    except GrammarError:
        return
    expected, tighter = language(grammar), "longest" in str(grammar)
    for text in TEXTS:
        matcher = GrammarMatcher(compiled)
        if not all(matcher.accept_token(1 + byte) for byte in text.encode()):
            assert tighter or not any(longer.startswith(text) for longer in expected), text
            continue
        assert matcher.is_accepting() == (text in expected) or (tighter and not matcher.is_accepting()), text
        completion = matcher.find_completion()
        assert completion is not None
        assert all(matcher.accept_token(1 + byte) for byte in completion)
        assert matcher.is_accepting()


@PROFILE
@given(grammars)
def test_printed_grammars_have_the_same_texts(grammar: dict[str, Any]) -> None:
    printed = str(Grammar({"grammar": grammar}))
    read = Grammar.from_ebnf(printed)
    assert str(read) == printed
    inner = read._expr["grammar"]
    assert language(inner) == language(grammar), printed
