"""Regular expressions as grammars of the whole output."""

from __future__ import annotations

import pytest
from test_json_schema import COMPILER

from punchcard import Grammar, GrammarError, GrammarMatcher


def matches(pattern: str, text: str) -> bool:
    matcher = GrammarMatcher(COMPILER.compile_regex(pattern))
    return matcher.accept_string(text) and matcher.is_accepting()


@pytest.mark.parametrize(
    ("pattern", "valid", "invalid"),
    [
        ("(x|)y(|z)", ["y", "xy", "xyz"], ["x", "yx", ""]),
        ("a+?b()c{0,1}", ["ab", "aabc"], ["b", "abcc"]),
        ("[\U0001f600-\U0001f64f]+", ["\U0001f628", "\U0001f600\U0001f64f"], ["a", "\U0001f650", ""]),
        (r"^(up\ndown|left\nright)$", ["up\ndown"], ["updown", "up\n\ndown"]),
        (r"C\+\+|C#|\(x\)", ["C++", "C#", "(x)"], ["C", "CC", "x"]),
        (r"(?=.*\d)[a-z\d]{3}", ["a1b", "123"], ["abc", "a1"]),
    ],
)
def test_the_whole_output_matches(pattern: str, valid: list[str], invalid: list[str]) -> None:
    for text in valid:
        assert matches(pattern, text), text
    for text in invalid:
        assert not matches(pattern, text), text


@pytest.mark.parametrize("pattern", ["[a-", "(?<=x)*y", "(a)\\1", "[]", "a(?=b)"])
def test_errors_name_the_pattern(pattern: str) -> None:
    with pytest.raises(GrammarError) as caught:
        COMPILER.compile_regex(pattern)
    assert caught.value.fields["excerpt"] == pattern


def test_nesting_is_read_or_refused() -> None:
    assert matches("(" * 5_000 + "a" + ")" * 5_000, "a")
    with pytest.raises(GrammarError):
        COMPILER.compile_regex("(" * 50_000 + "a" + ")" * 50_000)
    assert matches("(" * 200 + "ab" + ")*" * 200, "abab")


def test_nothing_follows_and_everything_can_be_completed() -> None:
    matcher = GrammarMatcher(COMPILER.compile(Grammar.from_regex(r"\d{4}-\d\d")))
    assert matcher.accept_string("20") and not matcher.is_accepting()
    assert matcher.accept_string(matcher.find_completion()) and matcher.is_accepting()
    assert not matcher.accept_string("1")
