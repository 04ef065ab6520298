"""What an operation may cost is counted in steps, and another thread can cancel it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import punchcard
import punchcard.compiler
from punchcard import (
    CancelledError,
    CancelToken,
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    InvalidSchemaError,
    LimitError,
    Limits,
    PunchcardError,
    TokenizerInfo,
)

INFO = TokenizerInfo.from_vocab([*(bytes([i]) for i in range(256)), b"</s>"], eos_token_ids=[256])

#: Four looks ahead that count: masks within take thousands of steps, all else a few.
PASSWORD = "^(?=(.*[a-z]){4})(?=(.*[A-Z]){4})(?=(.*[0-9]){4})(?=(.*[!@#]){4}).{16,40}$"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["x", "y"]}, "password": {"type": "string", "pattern": PASSWORD}},
    "additionalProperties": False,
}


def mask(matcher: GrammarMatcher) -> set[int]:
    bitmask = punchcard.allocate_token_bitmask(1, INFO.vocab_size)
    matcher.fill_next_token_bitmask(bitmask)
    return set(np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")).tolist())


def steps_of(work: Callable[[int], object]) -> int:
    """The least limit on steps under which the work is done."""
    low, high = 0, 1 << 24
    while low < high:
        middle = (low + high) // 2
        try:
            work(middle)
            high = middle
        except LimitError as error:
            assert error.fields["limit"] == "max_work" and error.fields["value"] == middle
            low = middle + 1
    return low


def within(steps: int) -> GrammarCompiler:
    return GrammarCompiler(INFO, limits=Limits(max_work=steps), cache_enabled=False)


GRAMMARS: dict[str, Callable[[GrammarCompiler], CompiledGrammar]] = {
    "schema": lambda compiler: compiler.compile_json_schema(SCHEMA),
    "references": lambda compiler: compiler.compile_json_schema(
        {
            "$ref": "#/$defs/d0",
            "$defs": {f"d{i}": {"items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(50)} | {"d50": {}},
        }
    ),
    "rules": lambda compiler: compiler.compile_ebnf(
        "root ::= r0\n" + "".join(f'r{i} ::= "a" r{i + 1} "b" | r{i + 1}\n' for i in range(50)) + 'r50 ::= "x"'
    ),
    "longest": lambda compiler: compiler.compile_lark(
        "start: (name | number | WS)*\nname: NAME\nnumber: NUMBER\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\nWS: / +/"
    ),
    "pattern": lambda compiler: compiler.compile_regex(PASSWORD),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_compiling_takes_as_many_steps_every_time_and_no_more_than_are_allowed(name: str) -> None:
    compile_it = GRAMMARS[name]
    steps = steps_of(lambda steps: compile_it(within(steps)))
    assert 0 < steps < Limits().max_work // 100
    for _ in range(3):
        compile_it(within(steps))
        with pytest.raises(LimitError) as raised:
            compile_it(within(steps - 1))
        assert raised.value.fields["limit"] == "max_work" and raised.value.hint


def test_a_mask_that_takes_too_much_leaves_the_matcher_and_all_others_usable() -> None:
    enough = steps_of(lambda steps: within(steps).compile_json_schema(SCHEMA))

    def walk(steps: int) -> None:
        matcher = GrammarMatcher(within(max(steps, enough)).compile_json_schema(SCHEMA))
        assert matcher.accept_string('{"password": "a')
        mask(matcher)

    # Less than the mask in the password takes, and enough for compiling.
    most = max(steps_of(walk) - 1, enough)
    compiled = within(most).compile_json_schema(SCHEMA)
    matcher, other = GrammarMatcher(compiled), GrammarMatcher(compiled)
    assert other.accept_string('{"name": "')
    before = mask(other)
    assert matcher.accept_string('{"')
    for _ in range(3):
        with pytest.raises(LimitError) as raised:
            for text in ("password", '": ', '"', "a", "b", "A"):
                assert matcher.accept_string(text)
                mask(matcher)
        assert raised.value.fields["limit"] == "max_work"
        assert mask(other) == before and {ord("x"), ord("y")} <= before
        matcher.rollback(matcher.num_steps - 1)
        assert ord("n") in mask(matcher)
    assert matcher.accept_string('name": "x"}') and matcher.is_accepting()
    assert other.accept_string('y"}') and other.is_accepting()
    assert GrammarMatcher(compiled).accept_string('{"name": "x"}')


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (Limits(max_automaton_states=6_000), "max_automaton_states"),
        (Limits(max_states=400), "max_states"),
        (Limits(max_automaton_work=20), "max_automaton_work"),
    ],
)
def test_no_text_uses_a_limit_up_for_the_others(limits: Limits, limit: str) -> None:
    compiled = GrammarCompiler(INFO, limits=limits).compile_json_schema(
        {"type": "object", "properties": {"name": {"enum": ["x", "y"]}, "password": {"pattern": PASSWORD}}}
    )
    other = GrammarMatcher(compiled)
    assert other.accept_string('{"name": "')
    for _ in range(3):
        matcher = GrammarMatcher(compiled)
        with pytest.raises(LimitError) as raised:
            assert matcher.accept_string('{"password": "')
            for character in "aB1!" * 9:
                assert matcher.accept_string(character)
                mask(matcher)
            assert matcher.accept_string('", "')
            for name in range(1000):
                assert matcher.accept_string(f'{name}": {name}, "')
        assert raised.value.fields["limit"] == limit
        matcher.rollback(matcher.num_steps)
        assert mask(matcher) == {ord("{")}
        assert {ord("x"), ord("y")} <= mask(other)
    assert other.accept_string('x"}') and other.is_accepting()


# ---------------------------------------------------------------- cancelling


def endless() -> Grammar:
    """A grammar that takes long, whatever is done about it."""
    names = [f"n{i}" for i in range(40)]
    some = [
        {"properties": {name: {"pattern": f"{name}.*[ab]{{{i}}}"}}, "required": [name]} for i, name in enumerate(names)
    ]
    return Grammar.from_json_schema(
        {"allOf": [{"anyOf": some}] * 2, "minProperties": 30, "not": {"anyOf": some[:20]}}, check=False
    )


def test_a_cancelled_token_ends_every_kind_of_work() -> None:
    token = CancelToken()
    assert not token.is_cancelled
    compiled = within(10**9).compile_json_schema(SCHEMA)
    matcher = GrammarMatcher(compiled, cancel=token)
    free = GrammarMatcher(compiled)
    assert matcher.accept_string('{"pass')
    token.cancel()
    assert token.is_cancelled
    for name, compile_it in GRAMMARS.items():
        del name
        grammar = Grammar._read(compile_it(within(10**9)).expr_json())
        with pytest.raises(CancelledError):
            within(10**9).compile(grammar, cancel=token)
    for call in (
        lambda: matcher.accept_string('word": "ab'),
        lambda: matcher.fork().accept_string('word": "ab'),
        lambda: [matcher.accept_token(byte) for byte in b'word": "ab'],
    ):
        with pytest.raises(CancelledError):
            call()
    assert free.accept_string('{"password": "ab') and mask(free)
    with pytest.raises(CancelledError):
        GrammarMatcher(compiled, cancel=token, token_budget=500)
    token.cancel()


def test_another_thread_ends_a_compilation() -> None:
    token, failed = CancelToken(), list[Exception]()
    compiler = GrammarCompiler(INFO, limits=Limits(**dict.fromkeys(vars(Limits()), 2**62)))
    started = threading.Event()

    def run() -> None:
        started.set()
        try:
            while True:
                compiler.compile(endless(), cancel=token)
                compiler.clear_cache()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(60)
    token.cancel()
    thread.join(60)
    assert not thread.is_alive() and isinstance(failed[0], CancelledError) and isinstance(failed[0], PunchcardError)


def test_whoever_waits_for_a_cancelled_compilation_compiles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_grammar = punchcard.compiler.compile_grammar
    begun = threading.Event()
    calls: list[CancelToken | None] = []

    def slow(vocabulary: Any, expr: str, limits: str, cancel: CancelToken | None) -> Any:
        calls.append(cancel)
        if cancel is first:
            begun.set()
            while not first.is_cancelled:
                threading.Event().wait(0.001)
            raise CancelledError("The operation was cancelled")
        return compile_grammar(vocabulary, expr, limits, cancel)

    monkeypatch.setattr(punchcard.compiler, "compile_grammar", slow)
    compiler, first, third = GrammarCompiler(INFO), CancelToken(), CancelToken()
    results: dict[str, object] = {}

    def run(name: str, token: CancelToken | None) -> None:
        try:
            results[name] = compiler.compile(Grammar.from_regex("a+"), cancel=token)
        except Exception as error:
            results[name] = error

    threads = {
        name: threading.Thread(target=run, args=(name, token))
        for name, token in (("first", first), ("second", None), ("third", third))
    }
    threads["first"].start()
    assert begun.wait(60)
    threads["second"].start()
    threads["third"].start()
    third.cancel()
    threads["third"].join(60)
    assert isinstance(results["third"], CancelledError)
    first.cancel()
    for thread in threads.values():
        thread.join(60)
    assert isinstance(results["first"], CancelledError) and isinstance(results["second"], CompiledGrammar)
    assert calls == [first, None] and compiler.cache_info().entries == 1


# ---------------------------------------------------------------- limits, and documents that are large when written out


@pytest.mark.parametrize("value", [-1, 1.5, "5", None, True, [1]])
@pytest.mark.parametrize("name", ["max_bytes", "max_work", "max_automaton_states"])
def test_a_limit_is_a_number(name: str, value: Any) -> None:
    with pytest.raises(PunchcardError, match=f"{name} is "):
        Limits(**{name: value})


@pytest.mark.parametrize("value", [2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**200])
def test_a_limit_that_cannot_be_counted_is_none(value: int) -> None:
    compiled = GrammarCompiler(INFO, limits=Limits(**dict.fromkeys(vars(Limits()), value))).compile_json_schema(SCHEMA)
    assert GrammarMatcher(CompiledGrammar.deserialize(compiled.serialize(), INFO)).accept_string('{"name": "x"}')


def doubled(part: Any, times: int, twice: Callable[[Any], Any]) -> Any:
    for _ in range(times):
        part = twice(part)
    return part


class Members(dict[str, Any]):
    """No plain dict."""


@pytest.mark.parametrize(
    "twice",
    [
        lambda part: {"anyOf": [part, part]},
        lambda part: {"properties": {"a": part, "b": part}},
        lambda part: {"allOf": (part, part)},
        lambda part: Members(anyOf=[part, part]),
    ],
)
def test_a_schema_in_which_parts_are_shared_is_measured_before_it_is_written_out(twice: Any) -> None:
    schema = doubled({"type": "string"}, 60, twice)
    compiler = GrammarCompiler(INFO, limits=Limits(max_bytes=1 << 20))
    calls: list[Callable[[], object]] = [
        lambda: Grammar.from_json_schema(schema, limits=Limits(max_bytes=1 << 20)),
        lambda: compiler.compile_json_schema(schema, limits=Limits(max_bytes=1 << 20)),
        lambda: Grammar.from_json_schema({}, resources={"http://a/b": schema}, limits=Limits(max_bytes=1 << 20)),
    ]
    for call in calls:
        with pytest.raises(LimitError) as raised:
            call()
        assert raised.value.fields["limit"] == "max_bytes" and raised.value.fields["value"] == 1 << 20
    few = doubled({"type": "string"}, 4, twice)
    assert Grammar.from_json_schema(few).report


def test_the_default_holds_where_no_limit_is_given() -> None:
    schema = doubled({"type": "string"}, 200, lambda part: {"anyOf": [part, part]})
    tag = {"type": "json_schema", "json_schema": schema}
    for make in (
        lambda: Grammar.from_json_schema(schema),
        lambda: Grammar.from_structural_tag(tag),
        lambda: Grammar.from_structural_tag({**tag, "style": "qwen_xml"}),
        lambda: GrammarCompiler(INFO).compile(doubled(Grammar.from_text("a"), 60, lambda g: Grammar.union(g, g))),
        lambda: hash(doubled(Grammar.from_text("a"), 60, lambda g: Grammar.concat(g, g))),
        lambda: str(doubled(Grammar.from_text("a"), 60, lambda g: Grammar.concat(g, g))),
    ):
        with pytest.raises(LimitError, match="max_bytes"):
            make()


def test_data_that_contain_themselves_are_refused() -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    with pytest.raises(InvalidSchemaError, match=r"contains itself|Circular"):
        Grammar.from_json_schema(schema)


def test_what_is_measured_is_what_json_writes() -> None:
    from punchcard._core import json_size, json_text

    plain = {"a": [1, 2.5, None, True, 'é\n"'], "b": ({"c": "d"},)}
    written = json.dumps(plain, ensure_ascii=False)
    assert json_text(plain, len(written.encode())) == written
    with pytest.raises(LimitError):
        json_text(plain, len(written.encode()) - 2)
    size = json_size(plain)
    assert size is not None and len(written) // 2 <= size <= 2 * len(written)
    assert json_size(Members(a=[1])) == json_size({"a": [1]}) and json_size({"a": {1, 2}}) is None
