"""Threads for what would block the event loop: bounded, with what takes long apart from what does not.

A `Lane` is a pool whose queue is bounded. `Lanes` tries work in a quick lane first, and starts it again in a slow one
if it takes long: requests that are prepared in milliseconds never wait for one that takes seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from punchcard import CancelToken
from punchcard.errors import InternalError
from punchcard.server.errors import Unavailable

Result = TypeVar("Result")

# Seconds that work has in the quick lane before it is started again in the slow one.
_QUICK_SECONDS = 0.25
# Of every second, a lane with pauses leaves three quarters to others.
_PAUSE = 3.0
_LONGEST_PAUSE = 2.0
_WORTH_A_PAUSE = 0.02


class TooSlow(Exception):
    """Work was not done in time. ``started``: it had begun."""

    def __init__(self, started: bool) -> None:
        super().__init__("not done in time")
        self.started = started


class Lane:
    """A pool of threads with a bounded queue.

    Args:
        threads: how many.
        waiting: most calls that may wait for a thread.
        pauses: a thread rests after a long call. Long work of the interpreter would otherwise slow everything down.
        nice: the threads get less of a busy processor than others, where the system can do that for a thread.
    """

    def __init__(self, name: str, threads: int, *, waiting: int, pauses: bool = False, nice: bool = False) -> None:
        self._pool = ThreadPoolExecutor(threads, f"punchcard-{name}", initializer=be_nice if nice else None)
        self._most = threads + waiting
        self._pauses = pauses
        self._lock = threading.Lock()
        self._taken = 0

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Calls ``work`` in a thread. Whatever it raises is an `Exception` of its future.

        Raises `Unavailable` if too many calls wait.
        """
        with self._lock:
            if self._taken >= self._most:
                raise Unavailable("Too many requests are being prepared", hint="Try again later", retry_after=5)
            self._taken += 1
        future: Future[Result] = Future()
        try:
            self._pool.submit(self._run, future, work)
        except RuntimeError as error:
            self._done()
            raise Unavailable("The server is shutting down") from error
        return future

    async def run(self, work: Callable[[], Result]) -> Result:
        """What ``work`` returns, called in a thread."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, future: Future[Result], work: Callable[[], Result]) -> None:
        started = time.thread_time()
        try:
            if future.set_running_or_notify_cancel():
                settle(future, work)
        finally:
            self._done()
        took = time.thread_time() - started
        if self._pauses and took > _WORTH_A_PAUSE:
            time.sleep(min(took * _PAUSE, _LONGEST_PAUSE))

    def _done(self) -> None:
        with self._lock:
            self._taken -= 1


@dataclass(eq=False)
class Attempt(Generic[Result]):
    """Work that can be cancelled, in a lane."""

    work: Callable[[CancelToken], Result]
    cancel: CancelToken = field(default_factory=CancelToken)
    started: float | None = None

    def run(self) -> Result:
        self.started = time.monotonic()
        return self.work(self.cancel)

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return 0.0 if self.started is None else time.monotonic() - self.started


class Lanes:
    """Lanes of ``threads`` each: for what was quick before, for what may be, and for what is not."""

    def __init__(self, name: str, threads: int, *, waiting: int) -> None:
        self._known = Lane(f"known-{name}", threads, waiting=waiting)
        self._quick = Lane(name, threads, waiting=waiting, nice=True)
        self._slow = Lane(f"slow-{name}", threads, waiting=waiting, nice=True)

    async def run(self, work: Callable[[CancelToken], Result], seconds: float, *, known: bool = False) -> Result:
        """What ``work`` returns. It is called twice if it takes long, and cancelled when nobody waits for it.

        ``known``: it was quick before, and need not be nice to others.

        Raises `TooSlow` after ``seconds``.
        """
        end = time.monotonic() + seconds
        with contextlib.suppress(TooSlow):
            return await _finish(
                self._known if known else self._quick, Attempt(work), min(_QUICK_SECONDS, seconds), end
            )
        return await _finish(self._slow, Attempt(work), seconds, end)

    def close(self) -> None:
        for lane in (self._known, self._quick, self._slow):
            lane.close()


async def _finish(lane: Lane, attempt: Attempt[Result], seconds: float, end: float) -> Result:
    """The result of an attempt, which may run for ``seconds`` and has to be done at ``end``."""
    future = lane.submit(attempt.run)
    wrapped = asyncio.wrap_future(future)
    try:
        while not wrapped.done():
            left = min(seconds - attempt.seconds, end - time.monotonic())
            if left <= 0:
                raise TooSlow(attempt.started is not None)
            await asyncio.wait({wrapped}, timeout=left)
        return wrapped.result()
    finally:
        if not wrapped.done():
            wrapped.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody asks for it any more
            attempt.cancel.cancel()
            future.cancel()


def settle(future: Future[Result], work: Callable[[], Result]) -> None:
    """Calls ``work`` for a future. What it raises beside `Exception`, such as a panic of the engine, becomes one: it is
    the fault of one request, and would otherwise end the thread or the event loop that looks at it."""
    try:
        result = work()
    except Exception as error:
        future.set_exception(error)
    except BaseException as error:
        future.set_exception(ordinary(error))
    else:
        future.set_result(result)


def ordinary(error: BaseException) -> Exception:
    """The error as one that ends nothing but its request."""
    if isinstance(error, Exception):
        return error
    made = InternalError(f"Work in a thread ended with {type(error).__name__}: {error}")
    made.__cause__ = error
    return made


def be_nice() -> None:
    """Gives other threads precedence over this one, where the system has that."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
