"""Waiting for functions and coroutines, whichever they are: from ordinary code, and in an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

# Seconds that a coroutine has to tidy up after it was cancelled.
_GRACE = 2.0
# Event loops may wake a little early.
_EARLY = 0.02


class Deadline:
    """A moment ``seconds`` from now; `None` for one that never comes."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def remaining(self) -> float | None:
        """Seconds left, at least 0."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        remaining = self.remaining
        return remaining is not None and remaining <= _EARLY


def is_coroutine_function(function: Any) -> bool:
    """Whether calling ``function`` gives a coroutine; looks into partial functions and callable objects."""
    of_objects = getattr(type(function), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(of_objects)


def loop_is_running() -> bool:
    """Whether the caller is inside an event loop, which may not be blocked."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def to_end(awaitable: Awaitable[T], timeout: float | None = None) -> T:
    """Runs an awaitable to its end, in an event loop of its own. Raises `TimeoutError` after ``timeout`` seconds."""
    return asyncio.run(within(awaitable, timeout))


def without_waiting(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    coroutine.close()
    raise RuntimeError("A coroutine of blocking work has waited")


async def within(awaitable: Awaitable[T], timeout: float | None) -> T:
    """Awaits for at most ``timeout`` seconds; then, or where the caller is cancelled, ``awaitable`` is cancelled too.

    Raises `TimeoutError` when the time is up.
    """
    task = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait({task}, timeout=timeout)
    finally:
        in_time = task.done()
        if not in_time:
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE)
    if not in_time:
        raise TimeoutError(f"not done after {timeout:g} seconds")
    return task.result()


async def in_thread(function: Callable[..., T], *args: Any, stop: Callable[[], None] | None = None) -> T:
    """Calls a blocking function in a thread of its own.

    If the caller is cancelled, a function with ``stop`` is told to stop and waited for; one without is left behind:
    its thread goes on, and does not keep the program from ending.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
            future.exception()  # looked at, whoever awaits it: no warning where nobody does
        else:
            future.set_result(result)

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function, *args)
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    threading.Thread(target=work, name=getattr(function, "__name__", "punchcard"), daemon=True).start()
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
            while not future.done():
                try:
                    await asyncio.wait({future})
                except asyncio.CancelledError:
                    continue  # it is being cancelled already
        raise


async def awaited(value: Any) -> Any:
    """``value``, or what it comes to if it can be awaited."""
    return await value if inspect.isawaitable(value) else value
