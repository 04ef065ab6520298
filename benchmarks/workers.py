"""Processes that run one engine each, and the walk along a text that is timed in them."""

from __future__ import annotations

import math
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import Row, vocabulary
from engines import ENGINES, Engine

MEMORY = 16 << 30
Task = Callable[[Engine, Row], Row]


def follow(
    engine: Engine, grammar: Any, tokens: Sequence[int], seconds: float = math.inf
) -> tuple[list[float], list[float], str]:
    """Masks and commits along a text: the microseconds of each, and what was not allowed, if it was not all.

    A walk of more seconds is cut off.
    """
    now, masks, commits = time.perf_counter_ns, [], []
    end = now() + seconds * 1e9
    matcher = engine.start(grammar)
    for token in tokens:
        begun = now()
        engine.fill(matcher)
        filled = now()
        if filled > end:
            return masks, commits, ""
        masks.append((filled - begun) / 1e3)
        if not engine.allows(token):
            return masks, commits, engine.problem(matcher) or f"token {len(masks)} of {len(tokens)} is not allowed"
        begun = now()
        engine.accept(matcher, token)
        commits.append((now() - begun) / 1e3)
    return masks, commits, "" if engine.may_end(matcher) else engine.problem(matcher) or "the end is not allowed"


class Worker:
    """A process with one engine, in which a task is done for each job. It is started anew where it died or hung."""

    def __init__(self, name: str, task: Task, size: int | None = None, limit: float = 60) -> None:
        self.name, self._task, self._size, self._limit = name, task, size, limit
        self._process: Any = None
        self.setup_s = 0.0

    def ask(self, job: Row) -> Row:
        """What the task says; ``error`` and why, where it failed."""
        if self._process is None:
            self._start()
        try:
            self._pipe.send(job)
            if self._pipe.poll(self._limit):
                return self._pipe.recv()  # type: ignore[no-any-return]
            failure = f"over {self._limit:g} s"
        except (EOFError, OSError):
            failure = "the process died"
        self.stop()
        return {"error": failure}

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_work, args=(there, self.name, self._task, self._size), daemon=True)
        self._process.start()
        there.close()
        if not self._pipe.poll(300):
            raise SystemExit(f"{self.name} does not start")
        self.setup_s = self._pipe.recv()["setup_s"]

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _work(pipe: Any, name: str, task: Task, size: int | None) -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY if limit < 0 else min(MEMORY, limit), limit))
    vocab = vocabulary(size)
    begun = time.perf_counter()
    engine = ENGINES[name](vocab)
    pipe.send({"setup_s": time.perf_counter() - begun})
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # some engines write of each schema that they refuse
    while True:
        job = pipe.recv()
        try:
            row = task(engine, job)
        except BaseException as error:  # a refusal is a result, and so is a panic in native code
            row = {"error": f"{type(error).__name__}: {error}"[:300]}
        pipe.send(row | {"peak_mb": peak_mb()})


def peak_mb() -> float:
    """The most memory that this process has had, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1e3
    return 0.0
