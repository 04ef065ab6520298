"""The parts below HTTP: slots, and one batch for all."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from fake_model import PIECES, FakeModel, Logits, speaker
from server_process import FakeBatchModel, counting, eventually

from punchcard.chat import Sampling
from punchcard.errors import ModelError
from punchcard.grammar import Grammar
from punchcard.sampling import Sampler
from punchcard.server.batching import OneSequence, batch_model
from punchcard.server.errors import Overdue, Unavailable
from punchcard.server.planning import Completion, make_plan
from punchcard.server.scheduler import Job, Scheduler, Update
from punchcard.server.slots import Slots, common_beginning
from punchcard.server.writer import Writer


@pytest.mark.parametrize(
    ("first", "second", "length"),
    [([], [], 0), ([1], [2], 0), ([1, 2, 3], [1, 2], 2), ([1, 2, 3, 4], [1, 2, 9, 4], 2), ([1, 2], [1, 2], 2)],
)
def test_common_beginnings(first: list[int], second: list[int], length: int) -> None:
    assert common_beginning(first, second) == length


def test_common_beginnings_of_long_sequences() -> None:
    generator = np.random.default_rng(0)
    for length in (5, 64, 1000):
        tokens = generator.integers(0, 5, length).tolist()
        for place in generator.integers(0, length, 20).tolist():
            assert common_beginning(tokens, [*tokens[:place], 9, *tokens[place + 1 :]]) == place


class TestSlots:
    def test_a_conversation_that_goes_on_keeps_its_slot(self) -> None:
        slots = Slots(FakeBatchModel(counting), 2)
        first = slots.take([1, 2, 3])
        _compute(first, [1, 2, 3, 4, 5])
        assert slots.take([1, 2, 3, 4, 5, 6]) is first
        assert first.tokens == [1, 2, 3, 4, 5]

    def test_what_another_slot_holds_is_copied(self) -> None:
        model = FakeBatchModel(counting)
        slots = Slots(model, 2)
        first = slots.take([1, 2, 3])
        _compute(first, [1, 2, 3, 4], busy=True)
        second = slots.take([1, 2, 3, 9])
        assert second is not first
        assert second.tokens == [1, 2, 3]
        assert model.copied == 3
        assert first.tokens == [1, 2, 3, 4]

    def test_a_conversation_that_shares_a_part_is_not_lost(self) -> None:
        slots = Slots(FakeBatchModel(counting), 2)
        first = slots.take([1, 2, 3])
        _compute(first, [1, 2, 3, 4, 5, 6])
        second = slots.take([1, 2, 7])
        assert second is not first
        assert first.tokens == [1, 2, 3, 4, 5, 6]

    def test_the_last_token_is_always_computed(self) -> None:
        slots = Slots(FakeBatchModel(counting), 1)
        slot = slots.take([1, 2, 3])
        _compute(slot, [1, 2, 3])
        assert slots.known([1, 2, 3]) == 2
        assert slots.take([1, 2, 3]).tokens == [1, 2]


def _compute(slot: Any, tokens: list[int], busy: bool = False) -> None:
    slot.sequence.tokens[:] = tokens
    slot.tokens[:] = tokens
    slot.busy = busy


class Answer:
    """Gathers the updates of a job."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.done = threading.Event()

    def tell(self, update: Update) -> None:
        self.updates.append(update)
        if update.finish is not None or update.error is not None:
            self.done.set()

    @property
    def text(self) -> str:
        return "".join(delta.text for update in self.updates for delta in update.written.deltas)

    def wait(self) -> Update:
        assert self.done.wait(20)
        return self.updates[-1]


def ask(model: Any, prompt: str, *, answer: Grammar | None = None, **options: Any) -> tuple[Job, Answer]:
    plan = make_plan(model, Completion(prompt, answer))
    deadline = options.pop("deadline", float("inf"))
    options.setdefault("max_new_tokens", 8)
    heard = Answer()
    writer = Writer(plan, Sampling(**options), model.tokenize, complete=answer is not None)
    return Job(plan.prompt, writer, heard.tell, deadline=deadline), heard


@pytest.fixture
def schedulers() -> Any:
    made: list[Scheduler] = []

    def make(model: Any, **options: Any) -> Scheduler:
        made.append(Scheduler(model, **{"slots": 4, **options}))
        return made[-1]

    yield make
    for scheduler in made:
        scheduler.close()


def test_requests_share_a_batch(schedulers: Any) -> None:
    model = FakeBatchModel(counting, seconds=0.002)
    scheduler = schedulers(model)
    asked = [ask(model, "x" * length) for length in (3, 4, 5, 6)]
    scheduler.submit(*(job for job, _ in asked))
    for (job, answer), begin in zip(asked, (3, 4, 5, 6), strict=True):
        assert answer.wait().finish == "length"
        assert answer.text == "".join(chr(ord("a") + (begin + i) % 26) for i in range(8))
        assert job.writer.tokens == 8
    # One pass for all prompts, and one for each further token of all.
    assert len(model.batches) == 8
    assert model.batches[0] == [3, 4, 5, 6]


def test_a_long_prompt_is_read_in_pieces_and_holds_nobody_up(schedulers: Any) -> None:
    model = FakeBatchModel(counting, seconds=0.001)
    scheduler = schedulers(model, prompt_chunk=16)
    _, quick = first = ask(model, "abc", max_new_tokens=40)
    scheduler.submit(first[0])
    assert eventually(lambda: len(quick.updates) > 2)
    before = len(quick.updates)
    job, slow = ask(model, "z" * 400)
    scheduler.submit(job)
    assert eventually(lambda: not job.reading)
    assert len(quick.updates) >= before + 20
    assert max(sum(batch) for batch in model.batches) <= 16 + 1
    assert slow.wait().finish == "length"


def test_two_long_prompts_are_read_side_by_side(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model, prompt_chunk=64)
    jobs = [ask(model, "a" * 10), ask(model, "b" * 200), ask(model, "c" * 200)]
    scheduler.submit(*(job for job, _ in jobs))
    for _, answer in jobs:
        answer.wait()
    # The short one takes what it needs; the rest is shared evenly.
    assert sorted(model.batches[0]) == [10, 27, 27]


def test_a_request_leaves_at_once_when_nobody_waits_for_it(schedulers: Any) -> None:
    model = FakeBatchModel(counting, seconds=0.005)
    scheduler = schedulers(model, slots=1)
    job, answer = ask(model, "abc", max_new_tokens=1000)
    scheduler.submit(job)
    assert eventually(lambda: len(answer.updates) > 1)
    job.cancelled = True
    passes = len(model.batches)
    other, heard = ask(model, "xyz", max_new_tokens=1)
    scheduler.submit(other)
    assert heard.wait().finish == "length"
    assert len(model.batches) <= passes + 3
    assert not answer.done.is_set()


def test_a_request_that_takes_too_long_is_ended(schedulers: Any) -> None:
    model = FakeBatchModel(counting, seconds=0.005)
    scheduler = schedulers(model, slots=1)
    job, answer = ask(model, "abc", max_new_tokens=4000, deadline=time.monotonic() + 0.2)
    waiting, other = ask(model, "abc", max_new_tokens=4000, deadline=time.monotonic() + 0.1)
    scheduler.submit(job, waiting)
    assert isinstance(answer.wait().error, Overdue)
    assert isinstance(other.wait().error, Overdue)
    assert not other.text
    assert len(answer.text) > 5


def test_a_model_that_fails_fails_its_requests_only(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model)
    model.failing = True
    job, answer = ask(model, "abc")
    scheduler.submit(job)
    assert isinstance(answer.wait().error, RuntimeError)
    model.failing = False
    job, answer = ask(model, "abc")
    scheduler.submit(job)
    assert answer.wait().finish == "length"
    assert answer.text == "defghijk"


def test_a_shared_prompt_is_read_once(schedulers: Any) -> None:
    model = FakeBatchModel(counting, seconds=0.001)
    scheduler = schedulers(model, prompt_chunk=16)
    asked = [ask(model, "s" * 160 + end) for end in ("a", "b", "c")]
    scheduler.submit(*(job for job, _ in asked))
    for _, answer in asked:
        assert answer.wait().finish == "length"
    assert [job.cached_tokens for job, _ in asked] == [0, 160, 160]
    assert model.copied == 320


def test_an_end_that_alone_is_allowed_takes_no_pass(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model)
    job, answer = ask(model, "x", answer=Grammar.from_regex("[a-z]{3}"))
    scheduler.submit(job)
    assert answer.wait().finish == "stop"
    assert len(answer.text) == 3
    assert len(model.batches) == 3


def test_text_that_must_follow_goes_with_the_token_before_it(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model)
    job, answer = ask(model, "x", answer=Grammar.from_regex("[ab]certainly[xy]"), max_new_tokens=20)
    scheduler.submit(job)
    assert answer.wait().finish == "stop"
    assert answer.text[1:-1] == "certainly"
    assert model.batches == [[1], [9], [1]]
    assert job.writer.forced_tokens == 8


def test_an_answer_under_a_grammar_is_complete_within_its_tokens(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model)
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    job, answer = ask(model, "x", answer=Grammar.from_json_schema(schema, whitespace="none"), max_new_tokens=20)
    scheduler.submit(job)
    assert answer.wait().finish == "budget"
    assert answer.text.startswith('{"text":"')
    assert answer.text.endswith('"}')
    assert job.writer.tokens == 20


def test_a_mask_that_takes_long_holds_nobody_up(schedulers: Any) -> None:
    model = FakeBatchModel(counting, seconds=0.001)
    scheduler = schedulers(model)
    job, slow = ask(model, "x", answer=Grammar.from_regex("[a-z]{3}"))
    release = threading.Event()

    class Slow:
        budget_left = 8

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
            assert release.wait(20)
            return bool(self._inner.fill_next_token_bitmask(bitmask, index))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    job.writer.matcher = Slow(job.writer.matcher)  # type: ignore[assignment]
    scheduler.submit(job)
    other, quick = ask(model, "abc", max_new_tokens=30)
    scheduler.submit(other)
    assert quick.wait().finish == "length"
    assert not slow.updates
    release.set()
    assert slow.wait().finish == "stop"
    assert len(slow.text) == 3


def test_a_grammar_that_fails_ends_its_request_only(schedulers: Any) -> None:
    model = FakeBatchModel(counting, seconds=0.001)
    scheduler = schedulers(model)
    job, failing = ask(model, "x", answer=Grammar.from_regex("[a-z]{3}"))

    class Failing:
        def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
            raise ModelError("no mask")

    job.writer.matcher = Failing()  # type: ignore[assignment]
    other, good = ask(model, "x", answer=Grammar.from_regex("[a-z]{3}"))
    scheduler.submit(job, other)
    assert isinstance(failing.wait().error, ModelError)
    assert good.wait().finish == "stop"


def test_stop_texts_end_an_answer(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model)
    job, answer = ask(model, "x", max_new_tokens=100, stop=("klm",))
    scheduler.submit(job)
    assert answer.wait().finish == "stop"
    assert answer.text == "bcdefghij"


def test_characters_come_whole(schedulers: Any) -> None:
    # Without a turn, the speaker would say nothing.
    model = FakeBatchModel(speaker("naïve €"))
    scheduler = schedulers(model)
    job, answer = ask(model, "<|im_start|>assistant\n", max_new_tokens=100)
    scheduler.submit(job)
    assert answer.wait().finish == "stop"
    pieces = [delta.text for update in answer.updates for delta in update.written.deltas]
    assert pieces == ["n", "a", "ï", "v", "e", " ", "€"]


def test_a_step_model_serves_one_request_at_a_time(schedulers: Any) -> None:
    model, most = batch_model(FakeModel(counting))
    assert isinstance(model, OneSequence)
    assert most == 1
    scheduler = schedulers(model, slots=1)
    asked = [ask(model, "ab"), ask(model, "abcd"), ask(model, "xyz")]
    scheduler.submit(*(job for job, _ in asked))
    assert [answer.wait().finish for _, answer in asked] == ["length"] * 3
    assert [answer.text for _, answer in asked] == ["cdefghij", "efghijkl", "defghijk"]
    # The second goes on from where it agrees with what the first left behind.
    assert [job.cached_tokens for job, _ in asked] == [0, 3, 0]


def test_the_same_seed_draws_the_same_tokens(schedulers: Any) -> None:
    def even(tokens: list[int]) -> Logits:
        row = np.full(len(PIECES), -np.inf, dtype=np.float32)
        row[ord("a") : ord("z") + 1] = 0
        return row

    model = FakeBatchModel(even)
    scheduler = schedulers(model)
    asked = [ask(model, "x", temperature=1.0, seed=seed, max_new_tokens=30) for seed in (1, 1, 2)]
    scheduler.submit(*(job for job, _ in asked))
    one, again, other = (answer.wait() and answer.text for _, answer in asked)
    assert one == again != other


def test_log_probabilities_are_those_before_the_mask(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model)
    plan = make_plan(model, Completion("x", Grammar.from_regex("Z")))
    heard = Answer()
    writer = Writer(plan, Sampling(max_new_tokens=4), model.tokenize, logprobs=2, complete=True)
    scheduler.submit(Job(plan.prompt, writer, heard.tell))
    heard.wait()
    (logprob,) = [logprob for update in heard.updates for logprob in update.written.logprobs]
    total = np.log(np.exp(9.0) + len(PIECES) - 1)
    assert logprob.token == ord("Z")
    assert logprob.logprob == pytest.approx(-total, abs=1e-5)
    assert logprob.top[0] == (ord("b"), pytest.approx(9 - total, abs=1e-5))
    assert len(logprob.top) == 2


def test_closing_ends_what_is_left() -> None:
    model = FakeBatchModel(counting, seconds=0.005)
    scheduler = Scheduler(model, slots=1)
    asked = [ask(model, "x", max_new_tokens=4000) for _ in range(2)]
    scheduler.submit(*(job for job, _ in asked))
    assert eventually(lambda: scheduler.state.running == 1 and scheduler.state.waiting == 1)
    scheduler.close()
    assert all(isinstance(answer.wait().error, Unavailable) for _, answer in asked)
    assert not scheduler.alive
    with pytest.raises(Unavailable, match="shutting down"):
        scheduler.submit(asked[0][0])


def test_a_temperature_next_to_nothing_is_greedy() -> None:
    logits = np.array([0.0, 3.0, -50.0], dtype=np.float32)
    assert Sampler(5e-324, top_p=5e-324, seed=1).sample(logits) == 1


class Panic(BaseException):
    """As pyo3 raises where Rust panics: no `Exception`."""


@pytest.mark.parametrize("error", [Panic, KeyboardInterrupt, SystemExit, MemoryError, GeneratorExit])
@pytest.mark.parametrize("name", ["fill_next_token_bitmask", "accept_token", "find_jump_forward_string"])
def test_whatever_a_grammar_raises_ends_its_request_only(
    schedulers: Any, error: type[BaseException], name: str
) -> None:
    model = FakeBatchModel(counting, seconds=0.001)
    scheduler = schedulers(model)
    job, failing = ask(model, "x", answer=Grammar.from_regex("[a-z]{3}"))
    job.writer.matcher = _Broken(job.writer.matcher, name, error)  # type: ignore[assignment]
    other, good = ask(model, "x", answer=Grammar.from_regex("[a-z]{3}"))
    scheduler.submit(job, other)
    raised = failing.wait().error
    assert isinstance(raised, Exception)
    assert good.wait().finish == "stop"
    assert scheduler.alive
    later, heard = ask(model, "x")
    scheduler.submit(later)
    assert heard.wait().finish == "length"


class _Broken:
    """A matcher of which one method raises."""

    def __init__(self, inner: Any, name: str, error: type[BaseException]) -> None:
        self._inner, self._name, self._error = inner, name, error

    def __getattr__(self, name: str) -> Any:
        if name != self._name:
            return getattr(self._inner, name)

        def fail(*_: Any) -> Any:
            raise self._error("broken")

        return fail


@pytest.mark.parametrize("error", [Panic, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("where", ["forward_batch", "parser", "sequence", "on_start", "on_step", "on_end"])
def test_whatever_raises_the_scheduler_lives(schedulers: Any, error: type[BaseException], where: str) -> None:
    broken = threading.Event()

    def fail(*_: Any) -> Any:
        if broken.is_set():
            raise error("broken")

    model = FakeBatchModel(counting)
    hooks = {name: fail for name in ("on_start", "on_step", "on_end") if name == where}
    scheduler = schedulers(model, **hooks)
    broken.set()
    job, failing = ask(model, "abc")
    if where == "forward_batch":
        forward = model.forward_batch
        model.forward_batch = lambda parts: fail() or forward(parts)  # type: ignore[method-assign]
    if where == "parser":
        job.writer._parser.feed = fail  # type: ignore[method-assign]
    if where == "sequence":
        for slot in scheduler._slots._slots:
            slot.sequence.rewind = fail  # type: ignore[method-assign]
    scheduler.submit(job)
    failing.wait()
    broken.clear()
    other, good = ask(model, "abc")
    scheduler.submit(other)
    assert good.wait().finish == "length"
    assert scheduler.alive


class Laggard:
    """A matcher whose masks take as long as a test likes: each waits for a permit."""

    def __init__(self, inner: Any, computing: float = 0.0) -> None:
        self._inner = inner
        self._computing = computing
        self.permits = threading.Semaphore(0)
        self.entered = 0

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
        self.entered += 1
        assert self.permits.acquire(timeout=60)
        until = time.thread_time() + self._computing
        while time.thread_time() < until:
            pass
        return bool(self._inner.fill_next_token_bitmask(bitmask, index))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def laggard(model: Any, computing: float = 0.0, prompt: str = "x") -> tuple[Job, Any, Laggard]:
    job, heard = ask(model, prompt, answer=Grammar.from_regex("[a-z]{6}"), max_new_tokens=20)
    slow = Laggard(job.writer.matcher, computing)
    job.writer.matcher = slow  # type: ignore[assignment]
    return job, heard, slow


def test_slow_masks_do_not_hold_slots_that_others_wait_for(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model, slots=2)
    slow = [laggard(model, prompt="slow" * 3) for _ in range(2)]
    scheduler.submit(*(job for job, _, _ in slow))
    assert eventually(lambda: all(matcher.entered for _, _, matcher in slow))
    # No mask is made while these are answered.
    for length in (3, 4, 5, 6, 7):
        job, quick = ask(model, "q" * length)
        scheduler.submit(job)
        assert quick.wait().finish == "length"
    for _, _, matcher in slow:
        matcher.permits.release(100)
    expected = "".join(chr(ord("a") + (12 + i) % 26) for i in range(6))
    for _, heard, _ in slow:
        assert heard.wait().finish == "stop"
        assert heard.text == expected
    assert scheduler.state.running == 0


def test_an_answer_that_was_set_aside_goes_on_where_it_was(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model, slots=1)
    job, heard, matcher = laggard(model, prompt="slow" * 3)
    scheduler.submit(job)
    for permits in range(1, 3):
        matcher.permits.release()
        assert eventually(lambda wanted=permits + 1: matcher.entered == wanted)  # type: ignore[misc]
        other, quick = ask(model, "q" * permits)
        scheduler.submit(other)
        assert quick.wait().finish == "length"
        assert job.asides == permits
    matcher.permits.release(100)
    assert heard.wait().finish == "stop"
    assert heard.text == "".join(chr(ord("a") + (12 + i) % 26) for i in range(6))
    assert job.writer.tokens == 6


def test_an_answer_is_not_set_aside_for_ever(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model, slots=1)
    job, heard, matcher = laggard(model)
    scheduler.submit(job)
    for turn in range(4):
        assert eventually(lambda wanted=turn + 1: matcher.entered == wanted)  # type: ignore[misc]
        other, quick = ask(model, "q")
        scheduler.submit(other)
        assert quick.wait().finish == "length"
        matcher.permits.release()
    error = heard.wait().error
    assert isinstance(error, Overdue)
    assert error.code == "mask_timeout"


def test_masks_that_take_more_than_their_share_end_their_request(schedulers: Any) -> None:
    model = FakeBatchModel(counting)
    scheduler = schedulers(model, mask_seconds=0.5)
    job, heard, matcher = laggard(model, computing=0.3)
    matcher.permits.release(100)
    other, good = ask(model, "x", answer=Grammar.from_regex("[a-z]{3}"))
    scheduler.submit(job, other)
    error = heard.wait().error
    assert isinstance(error, Overdue)
    assert "0.5 seconds" in str(error)
    assert error.code == "mask_timeout"
    assert good.wait().finish == "stop"
