"""What fails inside is an error as any other: it says what was done, and harms nothing but the object at hand."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard import (
    BatchMatcher,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    InternalError,
    PunchcardError,
    TokenizerInfo,
)
from punchcard._core import _fail

INFO = TokenizerInfo.from_vocab([*(bytes([i]) for i in range(256)), b"</s>"], eos_token_ids=[256])
COMPILER = GrammarCompiler(INFO)


def mask() -> Any:
    return punchcard.allocate_token_bitmask(1, INFO.vocab_size)


#: Every call on a matcher that runs the engine.
CALLS: list[Callable[[GrammarMatcher], object]] = [
    lambda matcher: matcher.fill_next_token_bitmask(mask()),
    lambda matcher: matcher.fill_draft_bitmask(punchcard.allocate_token_bitmask(2, INFO.vocab_size), [49]),
    lambda matcher: matcher.accept_token(49),
    lambda matcher: matcher.accept_string("1"),
    lambda matcher: matcher.accept_string("1" * 1000),
    lambda matcher: matcher.validate_tokens([49]),
    lambda matcher: matcher.num_readings,
    lambda matcher: matcher.num_steps,
    lambda matcher: matcher.budget_left,
    lambda matcher: matcher.events(),
    lambda matcher: matcher.is_accepting(),
    lambda matcher: matcher.is_terminated(),
    lambda matcher: matcher.rollback(0),
    lambda matcher: matcher.fork(),
    lambda matcher: matcher.reset(),
    lambda matcher: matcher.find_completion(),
    lambda matcher: matcher.find_completion_tokens(),
    lambda matcher: matcher.find_jump_forward_bytes(),
    lambda matcher: matcher.find_jump_forward_string(),
    lambda matcher: matcher.find_jump_forward_tokens(),
    lambda matcher: BatchMatcher(2).fill_next_token_bitmask([matcher], mask()),
]


def refuses(matcher: GrammarMatcher) -> None:
    for call in CALLS:
        with pytest.raises(InternalError, match="failed inside Punchcard: an earlier call has failed") as raised:
            call(matcher)
        assert raised.value.hint and raised.value.fields["operation"]


def works(matcher: GrammarMatcher) -> None:
    for call in CALLS:
        call(matcher)


def test_a_panic_is_an_error_that_says_what_was_done_and_asks_for_a_report() -> None:
    with pytest.raises(Exception, match="asked to") as raised:
        _fail()
    error = raised.value
    assert isinstance(error, InternalError) and isinstance(error, PunchcardError)
    assert error.fields["operation"] == "A test"
    assert error.hint is not None and "report" in error.hint
    assert "engine.rs:" in str(error)


def test_a_panic_prints_nothing() -> None:
    code = "from punchcard._core import _fail\ntry: _fail()\nexcept Exception as error: print(type(error).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "InternalError\n" and done.stderr == ""


def test_a_matcher_that_failed_inside_refuses_every_call_and_harms_no_other() -> None:
    compiled = COMPILER.compile_regex("[0-9]+")
    failed, other = GrammarMatcher(compiled, events=True), GrammarMatcher(compiled, events=True)
    with pytest.raises(InternalError, match="asked to"):
        _fail(failed)
    refuses(failed)
    works(other)
    works(GrammarMatcher(compiled, events=True))
    assert COMPILER.compile_regex("[0-9]+") is compiled


def test_a_grammar_that_failed_inside_goes_on_with_what_it_remembers_built_anew() -> None:
    compiler = GrammarCompiler(INFO)
    compiled = compiler.compile_regex("[0-9]+")
    matcher = GrammarMatcher(compiled, events=True)
    assert matcher.accept_string("12")
    before = mask()
    matcher.fill_next_token_bitmask(before)
    for _ in range(3):
        with pytest.raises(InternalError, match="asked to"):
            _fail(compiled)
        after = mask()
        matcher.fill_next_token_bitmask(after)
        assert (before == after).all() and matcher.is_accepting() and not matcher.accept_string("a")
    works(matcher)
    works(GrammarMatcher(compiled, events=True))
    assert compiler.compile_regex("[0-9]+") is compiled
    assert compiled.serialize() and compiled.memory_size_bytes > 0 and compiled.expr_json()


@pytest.mark.parametrize("threads", [1, 4])
def test_a_batch_with_a_matcher_that_failed_is_an_error_and_the_others_go_on(threads: int) -> None:
    grammars = [COMPILER.compile_regex(f"[0-9]{{{i}}}") for i in range(1, 5)]
    matchers = [GrammarMatcher(grammar) for grammar in grammars]
    batch, bitmask = BatchMatcher(threads), punchcard.allocate_token_bitmask(4, INFO.vocab_size)
    with pytest.raises(InternalError):
        _fail(matchers[2])
    with pytest.raises(InternalError, match="batch of masks"):
        batch.fill_next_token_bitmask(matchers, bitmask)
    sound = [*matchers[:2], None, matchers[3]]
    assert batch.fill_next_token_bitmask(sound, bitmask) == [True, True, False, True]


def test_threads_that_wait_for_a_grammar_that_fails_go_on() -> None:
    compiled = GrammarCompiler(INFO).compile_regex("[0-9]+")
    matchers = [GrammarMatcher(compiled) for _ in range(4)]
    barrier, failures, errors = threading.Barrier(4), list[Exception](), list[Exception]()

    def run(matcher: GrammarMatcher) -> None:
        barrier.wait()
        for _ in range(30):
            try:
                assert matcher.accept_token(49)
                matcher.fill_next_token_bitmask(mask())
            except Exception as error:
                errors.append(error)
            try:
                _fail(compiled)
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=run, args=(matcher,)) for matcher in matchers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and len(failures) == 120 and all(isinstance(error, InternalError) for error in failures)
    assert all(matcher.num_steps == 30 for matcher in matchers)


# ---------------------------------------------------------------- one matcher, several threads


def test_two_threads_on_one_matcher_are_served_one_after_the_other() -> None:
    compiled = COMPILER.compile(Grammar.from_json_schema({"type": "array", "items": {"type": "string"}}))
    matcher = GrammarMatcher(compiled)
    assert matcher.accept_string("[")
    errors = list[BaseException]()

    def run() -> None:
        try:
            for _ in range(50):
                matcher.accept_string('"abc",')
                matcher.fill_next_token_bitmask(mask())
                matcher.find_completion()
                matcher.num_steps  # noqa: B018
                matcher.fork().accept_token(34)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and matcher.num_steps == 201


def test_a_matcher_may_be_twice_in_a_batch() -> None:
    matcher = GrammarMatcher(COMPILER.compile_regex("[0-9]+"))
    bitmask = punchcard.allocate_token_bitmask(2, INFO.vocab_size)
    assert BatchMatcher(2).fill_next_token_bitmask([matcher, matcher], bitmask) == [True, True]
    assert (bitmask[0] == bitmask[1]).all()


# ---------------------------------------------------------------- numbers and buffers of any kind

HUGE = [2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, 2**64, 2**200]
ODD = [*HUGE, *(-number for number in HUGE), -1]


@pytest.mark.parametrize("number", ODD)
def test_rows_that_no_bitmask_has_are_refused(number: int) -> None:
    matcher = GrammarMatcher(COMPILER.compile_regex("[0-9]+"))
    bitmask = punchcard.allocate_token_bitmask(3, INFO.vocab_size)
    for call in (
        lambda: matcher.fill_next_token_bitmask(bitmask, number),
        lambda: matcher.fill_draft_bitmask(bitmask, [49, 49], index=number),
        lambda: matcher.fill_draft_bitmask(bitmask, [], index=number),
        lambda: matcher.fill_draft_bitmask(bitmask, [49, 49], parents=[-1, number if number != -1 else 1]),
        lambda: BatchMatcher(2).fill_next_token_bitmask([matcher], bitmask, [number]),
        lambda: BatchMatcher(2).fill_next_token_bitmask([None], bitmask, [number]),
        lambda: BatchMatcher(number),
        lambda: matcher.rollback(number),
    ):
        with pytest.raises(PunchcardError):
            call()
    assert (bitmask == -1).all()


@pytest.mark.parametrize("number", ODD)
def test_there_are_no_events_beyond_the_last_one_and_none_before_the_first(number: int) -> None:
    matcher = GrammarMatcher(COMPILER.compile_regex("a"), events=True)
    if number > 0:
        assert matcher.events(number) == []
    else:
        with pytest.raises(PunchcardError, match="is negative"):
            matcher.events(number)


@pytest.mark.parametrize("number", ODD)
def test_tokens_that_no_vocabulary_has_are_never_legal(number: int) -> None:
    matcher = GrammarMatcher(COMPILER.compile_regex("[0-9]+"))
    assert not matcher.accept_token(number)
    assert matcher.validate_tokens([49, number]) == 1
    bitmask = punchcard.allocate_token_bitmask(3, INFO.vocab_size)
    assert matcher.fill_draft_bitmask(bitmask, [49, number]) == [True, False]


@pytest.mark.parametrize("number", HUGE)
def test_bounds_that_cannot_be_counted_are_as_good_as_none(number: int) -> None:
    compiled = COMPILER.compile_regex("[0-9]+")
    matcher = GrammarMatcher(compiled, max_rollback_tokens=number, token_budget=number)
    assert matcher.accept_string("12") and matcher.budget_left is not None
    matcher.rollback()
    assert GrammarMatcher(compiled, max_rollback_tokens=-number).accept_string("1")
    with pytest.raises(punchcard.BudgetError):
        GrammarMatcher(compiled, token_budget=-number)


def test_no_step_is_left_out_where_a_row_is_the_last_one() -> None:
    matcher = GrammarMatcher(COMPILER.compile_regex("[0-9]+"))
    bitmask = punchcard.allocate_token_bitmask(4, INFO.vocab_size)
    assert matcher.fill_draft_bitmask(bitmask, [49, 97], index=1) == [True, False]
    assert (bitmask[0] == -1).all() and (bitmask[3] == 0).all()
    with pytest.raises(PunchcardError, match="row 4 of"):
        matcher.fill_draft_bitmask(bitmask, [49, 97], index=2)


def odd_buffers() -> list[Any]:
    words = (INFO.vocab_size + 31) // 32
    unaligned = np.zeros(4 * (3 * words + 1), np.uint8)[1:-3].view(np.int32).reshape(3, words)
    read_only = np.zeros((3, words), np.int32)
    read_only.flags.writeable = False
    return [
        np.zeros((3, words), np.int32)[::2],
        np.zeros((3, words), np.int32)[::-1],
        np.zeros((words, 3), np.int32).T,
        np.zeros((3, 2 * words), np.int32)[:, ::2],
        np.zeros((3, words + 1), np.int32)[:, :words],
        np.zeros((3, words + 1), np.int32),
        np.zeros((3, 0), np.int32),
        np.zeros((0, words), np.int32),
        np.zeros((2**60, 0), np.int32),
        np.zeros((3, words), ">i4"),
        np.zeros((3, words), np.uint32),
        np.zeros((3, words), np.int64),
        np.zeros((3, words), np.float32),
        np.zeros(words, np.int32),
        np.zeros((1, 3, words), np.int32),
        np.broadcast_to(np.zeros((1, words), np.int32), (3, words)),
        unaligned,
        read_only,
        [[0] * words] * 3,
        None,
        b"0" * 4 * words,
        object(),
    ]


@pytest.mark.parametrize("index", range(len(odd_buffers())))
def test_buffers_that_are_no_bitmask_are_refused(index: int) -> None:
    bitmask = odd_buffers()[index]
    matcher = GrammarMatcher(COMPILER.compile_regex("[0-9]+"))
    for call in (
        lambda: matcher.fill_next_token_bitmask(bitmask, 2),
        lambda: matcher.fill_draft_bitmask(bitmask, [49, 50]),
        lambda: BatchMatcher(2).fill_next_token_bitmask([matcher, None], bitmask, [2, 0]),
    ):
        with pytest.raises(PunchcardError):
            call()


def test_a_bitmask_without_words_can_only_be_filled_with_nothing() -> None:
    assert BatchMatcher(1).fill_next_token_bitmask([None, None], np.zeros((2**60, 0), np.int32)) == [False, False]
    assert BatchMatcher(1).fill_next_token_bitmask([], np.zeros((0, 0), np.int32)) == []


class Lying(list[int]):
    """A list that says to be as long as there are addresses."""

    def __len__(self) -> int:
        return 2**60


def test_how_long_a_list_says_to_be_is_not_believed() -> None:
    matcher = GrammarMatcher(COMPILER.compile_regex("[0-9]+"))
    assert matcher.validate_tokens(Lying([49, 50, 97])) == 2
    assert matcher.validate_tokens(np.array([49, 50], np.int64)) == 2  # type: ignore[arg-type]


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    matcher = GrammarMatcher(COMPILER.compile_regex("(?s).*"))
    assert not matcher.accept_string("\ud800") and not matcher.accept_string("a" * 1000 + "\udfff")
    assert matcher.accept_string("\U0001f600") and matcher.num_steps == 1
    for wrong in (1, None, ["a"]):
        with pytest.raises(TypeError):
            matcher.accept_string(wrong)  # type: ignore[arg-type]
