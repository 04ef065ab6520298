"""The compiler's cache: equal grammars are compiled once, also by many threads, within a limit of bytes."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

import punchcard.compiler
from punchcard import Grammar, GrammarCompiler, GrammarError, GrammarMatcher, PunchcardError, TokenizerInfo

INFO = TokenizerInfo.from_vocab([*(bytes([i]) for i in range(256)), b"</s>"], eos_token_ids=[256])


def compiler(**options: Any) -> GrammarCompiler:
    return GrammarCompiler(INFO, **options)


def admits(compiled: Any, text: str) -> bool:
    matcher = GrammarMatcher(compiled)
    return matcher.accept_string(text) and matcher.is_accepting()


def test_equal_grammars_are_compiled_once_however_they_were_written() -> None:
    made = compiler()
    first = made.compile_json_schema({"type": "integer", "minimum": 3})
    assert made.compile_json_schema({"type": "integer", "minimum": 3}) is first
    assert made.compile(Grammar.from_json_schema('{"type": "integer", "minimum": 3}')) is first
    assert made.compile_json_schema({"type": "integer", "minimum": 4}) is not first
    assert made.compile_json_schema({"type": "integer", "minimum": 3}, whitespace="any") is not first
    info = made.cache_info()
    assert (info.hits, info.misses, info.entries, info.evictions) == (2, 3, 3, 0)
    assert info.bytes > 0 and info.compile_seconds > 0


def test_every_notation_has_a_method() -> None:
    made = compiler()
    assert admits(made.compile_regex("a+"), "aa")
    assert admits(made.compile_regex(re.compile("A+", re.I)), "aA")
    assert admits(made.compile_ebnf('root ::= "a" | "b"'), "b")
    assert admits(made.compile_ebnf('x ::= "a"\ny ::= x "b"', start="y"), "ab")
    assert admits(made.compile_lark('start: "a"'), "a")
    assert admits(made.compile_structural_tag({"type": "const_string", "value": "a"}), "a")
    assert made.cache_info().misses == 6


def test_clearing_forgets_grammars_and_counts() -> None:
    made = compiler()
    first = made.compile_regex("a")
    made.clear_cache()
    assert made.cache_info() == type(made.cache_info())(limit_bytes=1 << 30)
    assert made.compile_regex("a") is not first
    assert admits(first, "a")


def test_without_a_cache_each_is_compiled() -> None:
    made = compiler(cache_enabled=False)
    assert made.compile_regex("a") is not made.compile_regex("a")
    assert made.cache_info().misses == 0
    made.clear_cache()


def test_the_least_recently_used_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sized:
        memory_size_bytes = 40

    monkeypatch.setattr(punchcard.compiler, "compile_grammar", lambda *_: Sized())
    made = compiler(cache_limit_bytes=100)
    a, b = made.compile_regex("a"), made.compile_regex("b")
    assert made.compile_regex("a") is a
    made.compile_regex("c")
    info = made.cache_info()
    assert (info.entries, info.bytes, info.evictions, info.limit_bytes) == (2, 80, 1, 100)
    assert made.compile_regex("a") is a and made.compile_regex("b") is not b


def test_one_that_exceeds_the_limit_alone_is_kept_until_the_next() -> None:
    made = compiler(cache_limit_bytes=0)
    first = made.compile_regex("a")
    assert made.compile_regex("a") is first
    made.compile_regex("b")
    assert made.cache_info().entries == 1
    with pytest.raises(PunchcardError, match="cache_limit_bytes is -1"):
        compiler(cache_limit_bytes=-1)


def at_once(count: int, work: Any) -> list[Any]:
    """What ``work`` returns or raises in each of so many threads that start together."""
    barrier, results = threading.Barrier(count), [None] * count

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = work()
        except Exception as error:
            results[index] = error  # type: ignore[call-overload]

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_nobody_waits_while_sizes_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, goes_on = threading.Event(), threading.Event()

    class Slow:
        @property
        def memory_size_bytes(self) -> int:
            asked.set()
            assert goes_on.wait(60)
            return 40

    monkeypatch.setattr(punchcard.compiler, "compile_grammar", lambda *_: Slow())
    made = compiler(cache_limit_bytes=100)
    first = threading.Thread(target=lambda: made.compile_regex("a"))
    first.start()
    assert asked.wait(60)
    # The first one is still being measured.
    results: list[Any] = []
    others = [threading.Thread(target=lambda: results.append(made.compile_regex("a"))) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join(60)
    assert len(results) == 2 and not goes_on.is_set()
    goes_on.set()
    first.join()
    assert made.cache_info().bytes == 40


def test_many_threads_share_one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    compile_grammar = punchcard.compiler.compile_grammar

    def slow(vocabulary: Any, expr: str, limits: str, cancel: Any) -> Any:
        calls.append(expr)
        threading.Event().wait(0.05)
        return compile_grammar(vocabulary, expr, limits, cancel)

    monkeypatch.setattr(punchcard.compiler, "compile_grammar", slow)
    made = compiler()
    results = at_once(8, lambda: made.compile_regex("a"))
    assert len(calls) == 1 and all(result is results[0] for result in results)
    assert (made.cache_info().hits, made.cache_info().misses) == (7, 1)


def test_a_failure_reaches_all_that_wait_and_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def fail(vocabulary: Any, expr: str, limits: str, cancel: Any) -> Any:
        calls.append(expr)
        threading.Event().wait(0.05)
        raise GrammarError("no")

    monkeypatch.setattr(punchcard.compiler, "compile_grammar", fail)
    made = compiler()
    assert all(isinstance(result, GrammarError) for result in at_once(4, lambda: made.compile_regex("a")))
    assert len(calls) == 1 and made.cache_info().entries == 0
    with pytest.raises(GrammarError):
        made.compile_regex("a")
    assert len(calls) == 2


def test_what_was_cleared_while_it_was_compiled_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiler()
    compile_grammar = punchcard.compiler.compile_grammar

    def clearing(*arguments: Any) -> Any:
        made.clear_cache()
        return compile_grammar(*arguments)

    monkeypatch.setattr(punchcard.compiler, "compile_grammar", clearing)
    assert admits(made.compile_regex("a"), "a")
    assert made.cache_info().entries == 0
