"""Agents in an event loop: concurrent tools, cancelling, limits, runtimes that wait by themselves."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Coroutine
from typing import Any

import pytest
from fake_chat import FakeAsyncChat, FakeChat
from fake_model import FakeModel, speaker

from punchcard import Agent, Refusal, tool
from punchcard.chat import Call, Delta, Reply
from punchcard.errors import ContextLengthError, PunchcardError
from punchcard.waiting import in_thread, within


@tool
async def fetch(page: int, seconds: float = 0.0) -> str:
    """Fetch a page."""
    await asyncio.sleep(seconds)
    return f"page {page}"


@tool
def read(page: int, seconds: float = 0.0) -> str:
    """Read a page."""
    time.sleep(seconds)
    return f"read {page}"


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def calls(*written: Call) -> Reply:
    return Reply(calls=list(written), finish="calls")


def block(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_a_run_in_an_event_loop_gives_what_an_ordinary_run_gives() -> None:
    def subject() -> Agent:
        answers = ("First.\n" + block("fetch", page=1) + "\n" + block("read", page=2), "Done.")
        return Agent([fetch, read], FakeModel(speaker(*answers)))

    ordinary, other = subject(), subject()
    expected, result = ordinary.run("Go"), run(other.arun("Go"))
    for one in (expected, result):
        one.pop("timings")
    assert result == expected and result["success"]
    assert [entry["result"] for entry in result["results"]] == ["page 1", "read 2"]
    assert other.messages == ordinary.messages
    assert run(subject().acomplete("Go"))["results"] == []


def test_the_calls_of_an_answer_run_at_the_same_time_and_their_order_is_kept() -> None:
    met: dict[int, asyncio.Event] = {}

    async def meet(n: int, other: int) -> str:
        """Wait for the other call."""
        met.setdefault(n, asyncio.Event()).set()
        await met.setdefault(other, asyncio.Event()).wait()
        return f"met {other}"

    chat = FakeChat(calls(Call("meet", {"n": 1, "other": 2}), Call("meet", {"n": 2, "other": 1})), "Done.")
    result = run(Agent([meet], chat).arun("Go", max_seconds=60))  # one after the other, they would wait forever
    assert [entry["result"] for entry in result["results"]] == ["met 2", "met 1"]
    chat = FakeChat(
        calls(*(Call(name, {"page": n, "seconds": 0.3 - n / 10}) for n in (1, 2) for name in ("fetch", "read"))),
        "Done.",
    )
    result = run(Agent([fetch, read], chat).arun("Go"))
    assert [entry["result"] for entry in result["results"]] == ["page 1", "read 1", "page 2", "read 2"]


def test_the_event_loop_goes_on_while_the_model_thinks() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    async def main() -> None:
        ticking = asyncio.ensure_future(tick())
        await Agent([], FakeChat("one two three four", pause=0.1)).arun("Count")
        ticking.cancel()

    run(main())
    assert ticks > 10


def test_a_runtime_that_waits_by_itself_is_awaited() -> None:
    chat = FakeAsyncChat(Call("fetch", {"page": 1}), "Done well.", pause=0.05)
    deltas: list[Delta] = []
    result = run(Agent([fetch], chat).arun("Go", on_delta=deltas.append))
    assert result["text"] == "Done well." and len(chat.requests) == 2
    assert [delta.text for delta in deltas] == ["Done ", "well. "]
    slow = FakeAsyncChat("one two", pause=20)
    result = run(Agent([fetch], slow).arun("Go", max_seconds=0.2))
    assert "max_seconds" in result["error"] and result["text"] == ""


def test_deltas_come_in_the_event_loop_before_the_result() -> None:
    heard: list[tuple[str, int]] = []

    async def main() -> tuple[dict[str, Any], int]:
        subject = Agent([fetch], FakeModel(speaker("It is dim.")))
        result = await subject.arun("Go", on_delta=lambda delta: heard.append((delta.text, threading.get_ident())))
        return result, threading.get_ident()

    result, thread = run(main())
    assert "".join(text for text, _ in heard) == result["text"] == "It is dim."
    assert {ident for _, ident in heard} == {thread}


def test_cancelling_cancels_the_tools_and_leaves_the_conversation() -> None:
    ended: list[str] = []

    async def wait(name: str) -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append(name)
            raise

    async def main() -> Agent:
        chat = FakeChat("Hello.", calls(Call("wait", {"name": "a"}), Call("wait", {"name": "b"})), "Hello again.")
        subject = Agent([wait], chat)
        await subject.arun("Hello")
        before = list(subject.messages)
        task = asyncio.ensure_future(subject.arun("Wait"))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert subject.messages == before
        assert (await subject.arun("Hello"))["text"] == "Hello again."  # and it can go on
        return subject

    subject = run(main())
    assert sorted(ended) == ["a", "b"]
    cancelled = subject.transcript.runs[1]
    assert cancelled.error == "cancelled" and not cancelled.kept
    assert [call.status for call in cancelled.calls] == ["stopped", "stopped"]
    assert subject.transcript.conversation() == subject.messages


def test_cancelling_stops_the_model_after_its_next_token() -> None:
    willing = speaker("a very long story " * 50)
    forwards: list[float] = []

    def slow(tokens: list[int]) -> Any:
        if tokens[-1] == ord("y"):
            forwards.append(time.monotonic())
            time.sleep(0.05)
        return willing(tokens)

    async def main() -> float:
        subject = Agent([], FakeModel(slow))
        task = asyncio.ensure_future(subject.arun("Tell", max_new_tokens=800))
        while len(forwards) < 5:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ended = time.monotonic()
        assert subject.messages == []
        await asyncio.sleep(0.3)
        return ended

    ended = run(main())
    assert forwards[-1] <= ended  # nothing goes on behind the caller's back


def test_time_that_is_up_cancels_what_runs_and_keeps_what_is_done() -> None:
    chat = FakeChat(
        calls(
            Call("fetch", {"page": 1}),
            Call("fetch", {"page": 2, "seconds": 30}),
            Call("read", {"page": 3, "seconds": 3}),
        ),
        "never said",
    )
    subject = Agent([fetch, read], chat)
    result = run(subject.arun("Go", max_seconds=0.4))
    assert [entry.get("result") or entry["error"] for entry in result["results"]] == [
        "page 1",
        "stopped: the time is up",
        "stopped: the time is up",
    ]
    assert result["error"] == "stopped after 0.4 seconds (max_seconds)" and len(chat.requests) == 1
    # Each call has its result, as servers want it.
    assert [message["content"] for message in subject.messages[2:]] == [
        "page 1",
        "error: stopped: the time is up",
        "error: stopped: the time is up",
    ]


def test_time_that_is_up_while_the_model_writes() -> None:
    result = run(Agent([], FakeChat("one two three four five six", pause=0.1)).arun("Count", max_seconds=0.25))
    assert result["text"].startswith("one") and "six" not in result["text"] and "max_seconds" in result["error"]


def test_a_tools_own_timeout_is_its_failure() -> None:
    async def impatient() -> None:
        await asyncio.wait_for(asyncio.sleep(5), 0.05)

    result = run(Agent([impatient], FakeChat(Call("impatient"), "Hm.")).arun("Go", max_seconds=20))
    assert result["results"][0]["error"].startswith("TimeoutError") and result["text"] == "Hm."


def test_hooks_may_be_coroutines_and_are_asked_one_after_the_other() -> None:
    asked: list[str] = []
    told: list[Any] = []

    async def approve(call: Call) -> Refusal | None:
        asked.append(f"{call.arguments['page']}?")
        await asyncio.sleep(0.05)
        asked.append(f"{call.arguments['page']}!")
        return Refusal("no") if call.arguments["page"] == 2 else None

    def note(call: Call, outcome: Any) -> Awaitable[None] | None:
        told.append((call.arguments["page"], outcome.result, threading.current_thread() is threading.main_thread()))
        return None

    chat = FakeChat(calls(Call("fetch", {"page": 1}), Call("fetch", {"page": 2})), "Done.")
    result = run(Agent([fetch], chat, before_call=approve, after_call=note).arun("Go"))
    assert asked == ["1?", "1!", "2?", "2!"]
    assert told == [(1, "page 1", False)]  # a plain function may block, so it has a thread
    assert [entry.get("result") or entry["error"] for entry in result["results"]] == ["page 1", "refused: no"]


def test_errors_leave_the_conversation_and_the_agent_usable() -> None:
    async def main() -> None:
        subject = Agent([fetch], FakeModel(speaker("Hi.")))
        with pytest.raises(ContextLengthError):
            await subject.arun("x" * 5000)
        assert subject.messages == [] and (await subject.arun("Hello"))["text"] == "Hi."

    run(main())


def test_a_listener_that_fails_ends_the_run() -> None:
    def broken(delta: Delta) -> None:
        raise OSError("the pipe is closed")

    for model in (FakeModel(speaker("It is dim.")), FakeAsyncChat("It is dim.")):
        subject = Agent([], model)  # type: ignore[arg-type]
        with pytest.raises(OSError, match="the pipe is closed"):
            run(subject.arun("Go", on_delta=broken))
        assert subject.messages == []


def test_one_conversation_answers_one_request_at_a_time() -> None:
    async def main() -> list[Any]:
        subject = Agent([], FakeChat("one two three", pause=0.05))
        return await asyncio.gather(subject.arun("a"), subject.arun("b"), return_exceptions=True)

    first, second = run(main())
    assert first["text"] == "one two three" and isinstance(second, PunchcardError)


def test_agents_that_share_a_model_take_turns() -> None:
    model = FakeModel(speaker("the same long answer to everybody"))

    async def main() -> list[Any]:
        return await asyncio.gather(*(Agent([], model).arun(f"Request {n}") for n in range(4)))

    assert [result["text"] for result in run(main())] == ["the same long answer to everybody"] * 4


def test_waiting_within_a_time() -> None:
    async def main() -> None:
        assert await within(asyncio.sleep(0, "value"), 5) == "value"
        with pytest.raises(TimeoutError, match=r"not done after 0\.05 seconds"):
            await within(asyncio.sleep(5), 0.05)
        with pytest.raises(ZeroDivisionError):
            await in_thread(lambda: 1 // 0)

    run(main())


def test_a_tool_is_not_chosen_to_its_end_for_nobody() -> None:
    """Where a tool is chosen by comparison, the choice is many prompts long."""
    passes: list[float] = []
    model = FakeModel(speaker(""))
    forward = model.forward

    def counted(ids: Any, *, all_positions: bool = False) -> Any:
        passes.append(time.monotonic())
        time.sleep(0.05)
        return forward(ids, all_positions=all_positions)

    model.forward = counted  # type: ignore[method-assign]
    subject = Agent([fetch, read], model, tool_format="smollm2")
    result = run(subject.arun("Go", max_seconds=0.2))
    assert "max_seconds" in result["error"] and result["steps"] == 1
    few = len(passes)
    subject.run("Go")
    assert len(passes) - few > 2 * few
