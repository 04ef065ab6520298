"""What runtimes share: rows that a grammar follows, and a cache that may not be able to go back."""

from __future__ import annotations

import numpy as np
import pytest
from fake_model import END
from numpy.typing import NDArray
from runtime_data import BYTES, regex

from punchcard.errors import ContextLengthError, MatcherError, ModelError, PunchcardError
from punchcard.generation import Model
from punchcard.models.base import CachedModel, Follower, Row, require


def test_followers_keep_what_texts_share() -> None:
    follower = Follower(regex("a(b|c)+"))
    assert follower.follow(b"abbb") and follower.matcher.num_steps == 4
    assert follower.follow(b"abcb") and follower.tokens == list(b"abcb")
    assert follower.follow(b"a") and follower.matcher.num_steps == 1
    assert not follower.follow(b"abxb") and follower.tokens == list(b"ab")
    assert follower.follow([*b"ab", END, 7, 7]) and follower.tokens == [*b"ab", END]
    assert follower.follow(b"") and not follower.matcher.is_terminated()


def behind(row: Row, *texts: list[int]) -> list[int]:
    """How many tokens of the answer the row has taken after each text."""
    counts = []
    for text in texts:
        assert row.follow(text)
        counts.append(len(row.tokens))
    return counts


def test_the_first_text_is_the_prompt() -> None:
    assert behind(Row(regex("a+")), [1, 2], [1, 2, 97], [1, 2, 97, 97], [1, 2, 97, 97, END]) == [0, 1, 2, 3]


@pytest.mark.parametrize("prompt", [[1, 2], [3, 2], [1], [1, 2, 97, 97, END, 5], [], [3, 97, 97, 97, 97, 97]])
def test_other_texts_are_prompts(prompt: list[int]) -> None:
    row = Row(regex("a+"))
    behind(row, [1, 2], [1, 2, 97], [1, 2, 97, 97])
    assert behind(row, prompt, [*prompt, 97]) == [0, 1]


@pytest.mark.parametrize("text", [[1, 2, 97], [1, 2, 5], [1, 2, 97, 5], [1, 2, 97, 97]])
def test_what_may_be_a_draft_or_a_prompt_is_an_error(text: list[int]) -> None:
    row = Row(regex("a+"))
    behind(row, [1, 2], [1, 2, 97], [1, 2, 97, 97])
    with pytest.raises(MatcherError, match="cannot be told") as caught:
        row.follow(text)
    assert "reset()" in str(caught.value) and "drafts=True" in str(caught.value)
    row.reset()
    assert behind(row, text, [*text, 97]) == [0, 1]


def test_drafts_go_back_behind_the_same_prompt() -> None:
    row = Row(regex("a(b|c)*"), drafts=True)
    assert behind(row, [1], [1, 97], [1, 97, 98], [1, 97, 99], [1, 97], [1, 97, 98]) == [0, 1, 2, 2, 1, 2]
    assert not row.follow([1, 98])
    assert behind(row, [1, 97, 98], [2], [2, 97]) == [2, 0, 1]


def test_texts_in_turn_are_an_error() -> None:
    row = Row(regex("a+"))
    behind(row, [1, 2], [1, 2, 97], [3, 2], [4])
    with pytest.raises(MatcherError, match="Several texts are written in turn"):
        row.follow([3, 2, 97])
    row = Row(regex("a+"))
    behind(row, [1, 2], [1, 2, 97], [3, 2])
    with pytest.raises(MatcherError, match="Several texts are written in turn"):
        row.follow([1, 2, 97, 97])


class Counting(CachedModel):
    """Its logits say how many tokens there were, and what the last one was; so a wrong cache shows."""

    name = "counting"
    vocab_size = 300
    context_length = 8
    chat_template = None
    bos_token_id = None
    eos_token_ids = (END,)  # type: ignore[assignment]
    tokenizer_info = BYTES

    def __init__(self, *, goes_back: bool) -> None:
        super().__init__()
        self.cache: list[int] = []
        self.passes: list[int] = []
        self.fails = False
        self._goes_back = goes_back

    def _compute(self, ids: list[int], all_positions: bool) -> NDArray[np.float32]:
        self.passes.append(len(ids))
        rows = []
        for token in ids:
            self.cache.append(token)
            rows.append(np.array([len(self.cache), sum(self.cache), token], dtype=np.float32))
        if self.fails:
            raise KeyboardInterrupt
        return np.stack(rows if all_positions else rows[-1:])

    def _drop(self, count: int) -> bool:
        del self.cache[-1:]  # spoilt, if it cannot go back
        if self._goes_back:
            del self.cache[len(self.cache) + 1 - count :]
        return self._goes_back

    def _clear(self) -> None:
        self.cache = []

    def _encode(self, text: str, parse_special: bool) -> list[int]:
        return list(text.encode()) if text.startswith("\n") else list(f" {text}".encode())


@pytest.mark.parametrize(("goes_back", "passes"), [(True, [4, 2, 1]), (False, [4, 4, 1])])
def test_a_cache_that_cannot_go_back_is_computed_again(goes_back: bool, passes: list[int]) -> None:
    model = Counting(goes_back=goes_back)
    model.forward([1, 2, 3, 4])
    model.rewind(2)
    assert model.position == 2
    assert model.forward([5, 6], all_positions=True).tolist() == [[3, 8, 5], [4, 14, 6]]
    assert model.forward([7]).tolist() == [5, 21, 7]
    assert model.passes == passes
    model.rewind(0)
    assert model.forward([9]).tolist() == [1, 9, 9]


def test_a_pass_that_fails_leaves_the_text_as_it_was() -> None:
    model = Counting(goes_back=True)
    model.forward([1, 2])
    model.fails = True
    with pytest.raises(KeyboardInterrupt):
        model.forward([3])
    model.fails = False
    assert model.position == 2
    model.rewind(1)
    assert model.forward([3]).tolist() == [2, 4, 3]


def test_misuse_says_what_is_wrong() -> None:
    model: Model = Counting(goes_back=True)
    for ids, problem in (([], "at least one token"), ([300], "Token 300 is out of range"), ([-1], "Token -1")):
        with pytest.raises(ModelError, match=problem):
            model.forward(ids)
    with pytest.raises(ContextLengthError, match="9 tokens do not fit the context of counting") as caught:
        model.forward([1] * 9)
    assert (caught.value.tokens, caught.value.context_length) == (9, 8)
    with pytest.raises(ModelError, match="Cannot rewind to position 1"):
        model.rewind(1)


def test_a_space_before_a_text_is_left_out() -> None:
    model = Counting(goes_back=True)
    assert model.tokenize("ab") == list(b"ab")
    assert model.tokenize(" ab") == list(b"  ab")
    assert model.tokenize("") == []
    assert model.detokenize([97, END, 98]) == "ab"


def test_missing_libraries_are_named() -> None:
    with pytest.raises(PunchcardError, match="no_such_library cannot be imported") as caught:
        require("no_such_library", install="'punchcard[mlx]'")
    assert str(caught.value).endswith("pip install 'punchcard[mlx]'")
    assert "In a clone, pip install -e '.[mlx]'" in str(caught.value)
