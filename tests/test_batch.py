"""Masks of many sequences in one call."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard import BatchMatcher, GrammarCompiler, GrammarMatcher, TokenizerInfo
from punchcard.errors import LimitError, MatcherError

END = 256
INFO = TokenizerInfo.from_vocab(
    [*(bytes([i]) for i in range(256)), b"</s>", b"ab", b"12"], eos_token_ids=[END], vocab_size=300
)
COMPILER = GrammarCompiler(INFO)
COMPILED = [
    COMPILER.compile_json_schema({"type": "array", "items": {"type": "integer"}}),
    COMPILER.compile_regex("[ab]{2,}"),
    COMPILER.compile_ebnf('root ::= "(" root ")" | "ab"'),
]


def batch_of(count: int, seed: int) -> list[GrammarMatcher | None]:
    """Matchers of several grammars at several places, some of them at their end, and rows without one."""
    rng = random.Random(seed)
    out: list[GrammarMatcher | None] = []
    for _ in range(count):
        if rng.random() < 0.2:
            out.append(None)
            continue
        matcher = GrammarMatcher(rng.choice(COMPILED), token_budget=rng.choice([None, 9]))
        for _ in range(rng.randrange(6)):
            matcher.accept_token(rng.choice(allowed(matcher)))
        out.append(matcher)
    return out


def allowed(matcher: GrammarMatcher) -> list[int]:
    return np.flatnonzero(bits(one_row(matcher)[0])).tolist()


def one_row(matcher: GrammarMatcher) -> tuple[np.ndarray, bool]:
    row = punchcard.allocate_token_bitmask(1, INFO.vocab_size)
    needed = matcher.fill_next_token_bitmask(row)
    return row[0], needed


def bits(row: np.ndarray) -> np.ndarray:
    return np.unpackbits(row.view(np.uint8), bitorder="little")


@pytest.mark.parametrize("threads", [None, 1, 2, 5])
@pytest.mark.parametrize("seed", range(6))
def test_each_row_is_that_of_its_matcher(threads: int | None, seed: int) -> None:
    matchers = batch_of(24, seed)
    bitmask = punchcard.allocate_token_bitmask(30, INFO.vocab_size)
    bitmask[:] = 7
    rows = random.Random(seed).sample(range(30), 24)
    needed = BatchMatcher(threads).fill_next_token_bitmask(matchers, bitmask, rows)
    for matcher, row, is_needed in zip(matchers, rows, needed, strict=True):
        expected = one_row(matcher) if matcher else (np.full(bitmask.shape[1], -1), False)
        assert (bitmask[row] == expected[0]).all()
        assert is_needed == expected[1]
    assert (bitmask[[row for row in range(30) if row not in rows]] == 7).all()


def test_rows_are_in_order_by_default() -> None:
    matchers = batch_of(5, 1)
    one, two = (punchcard.allocate_token_bitmask(5, INFO.vocab_size) for _ in range(2))
    batch = BatchMatcher(2)
    assert batch.threads == 2
    assert batch.fill_next_token_bitmask(matchers, one) == batch.fill_next_token_bitmask(matchers, two, range(5))
    assert (one == two).all()
    assert batch.fill_next_token_bitmask([], one) == []
    assert (one == two).all()


def test_one_matcher_may_have_several_rows() -> None:
    matcher = GrammarMatcher(COMPILED[0])
    bitmask = punchcard.allocate_token_bitmask(2, INFO.vocab_size)
    assert BatchMatcher().fill_next_token_bitmask([matcher, matcher], bitmask) == [True, True]
    assert (bitmask[0] == bitmask[1]).all()


def test_a_torch_tensor_is_written_in_place() -> None:
    torch = pytest.importorskip("torch")
    matcher = GrammarMatcher(COMPILED[0])
    tensor = torch.full((2, (INFO.vocab_size + 31) // 32), -1, dtype=torch.int32)
    BatchMatcher().fill_next_token_bitmask([None, matcher], tensor)
    assert (tensor[1].numpy() == one_row(matcher)[0]).all()
    assert (tensor[0] == -1).all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0], "1 rows do not fit 2 matchers"),
        ([1, 1], "Row 1 is given twice"),
        ([0, 3], "Row 3 is not among the 3 rows"),
    ],
)
def test_rows_that_do_not_fit(rows: list[int], message: str) -> None:
    bitmask = punchcard.allocate_token_bitmask(3, INFO.vocab_size)
    with pytest.raises(MatcherError, match=message):
        BatchMatcher(2).fill_next_token_bitmask([GrammarMatcher(COMPILED[0]), None], bitmask, rows)
    assert (bitmask == -1).all()


@pytest.mark.parametrize(
    "bitmask",
    [
        np.full((2, 5), -1, dtype=np.int32),
        np.full((2, 10), -1, dtype=np.int64),
        np.full((20,), -1, dtype=np.int32),
        np.full((2, 20), -1, dtype=np.int32)[:, ::2],
        "no array",
    ],
)
def test_bitmasks_that_do_not_fit(bitmask: Any) -> None:
    with pytest.raises(MatcherError):
        BatchMatcher().fill_next_token_bitmask([GrammarMatcher(COMPILED[0]), None], bitmask)


def test_a_bitmask_that_is_read_only() -> None:
    bitmask = punchcard.allocate_token_bitmask(1, INFO.vocab_size)
    bitmask.flags.writeable = False
    with pytest.raises(MatcherError):
        BatchMatcher().fill_next_token_bitmask([GrammarMatcher(COMPILED[0])], bitmask)


def test_a_limit_that_one_row_passes_is_raised() -> None:
    limits = punchcard.Limits(max_memory=2_000)
    compiled = GrammarCompiler(INFO, limits=limits).compile_json_schema({"type": "object"}, profile="spec")
    matcher = GrammarMatcher(compiled)
    bitmask = punchcard.allocate_token_bitmask(2, INFO.vocab_size)
    with pytest.raises(LimitError, match="max_memory"):
        for letter in "{" + "".join(f'"name {i}":{{' for i in range(200)):
            BatchMatcher(2).fill_next_token_bitmask([GrammarMatcher(COMPILED[0]), matcher], bitmask)
            matcher.accept_string(letter)


def test_many_threads_use_one_batch_matcher_and_one_grammar() -> None:
    batch, failures = BatchMatcher(2), []

    def work(seed: int) -> None:
        matchers = batch_of(12, seed)
        bitmask = punchcard.allocate_token_bitmask(12, INFO.vocab_size)
        for _ in range(20):
            batch.fill_next_token_bitmask(matchers, bitmask)
            for matcher, row in zip(matchers, bitmask, strict=True):
                if matcher and not (row == one_row(matcher)[0]).all():
                    failures.append(seed)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
