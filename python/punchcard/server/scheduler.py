"""One thread that owns the model and writes all answers side by side.

In every step each running request adds something to one batch: those that write, the tokens they have just picked;
those that still read their prompt, a piece of it. Requests join and leave between steps. Masks are made before the
forward pass, as they do not depend on it: an answer that can only end ends there, without a pass of its own. They are
made in threads, and a request whose mask takes long, as those of a hostile grammar may, stays out of the batch until it
is there: it holds nobody up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from punchcard import allocate_token_bitmask, apply_token_bitmask_inplace
from punchcard.ending import Budgeted
from punchcard.server.batching import BatchModel
from punchcard.server.errors import Overdue, Unavailable
from punchcard.server.slots import Slot, Slots, common_beginning
from punchcard.server.writer import Finish, Writer, Written

_LOG = logging.getLogger(__name__)

#: A row of a bitmask; `None` where everything is allowed.
_Mask: TypeAlias = "NDArray[np.int32] | None"

# Seconds that a step waits for masks, nearly all of which take microseconds; and where nothing else is to be done.
_PATIENCE = 0.01
_IDLE_PATIENCE = 0.1


@dataclass
class Update:
    """What a step brought for a job: what was written, and at the end either ``finish`` or ``error``."""

    written: Written
    finish: Finish | None = None
    error: Exception | None = None


@dataclass(eq=False)
class Job:
    """One answer to be written.

    Attributes:
        prompt: token ids, at least one.
        writer: picks the tokens.
        tell: called with each `Update`, in the scheduler's thread: it must not wait for anything.
        deadline: when it has to be done, on the clock of `time.monotonic`.
        cancelled: set, by any thread, where nobody waits for the answer any more. Nothing more is told then.
        cached_tokens: tokens of the prompt that did not have to be computed.
    """

    prompt: Sequence[int]
    writer: Writer
    tell: Callable[[Update], None]
    deadline: float = float("inf")
    cancelled: bool = False
    cached_tokens: int = 0
    submitted: float = field(default_factory=time.monotonic)
    slot: Slot | None = None
    pending: list[int] = field(default_factory=list)
    """What the next passes have to compute: the rest of the prompt, or tokens that were just written."""
    reading: bool = True
    behind: Job | None = None
    """A job that is reading what this one could then copy."""
    mask: Future[_Mask] | None = None
    """The mask of the next token, while it is made and until it is used."""


@dataclass(frozen=True)
class Step:
    """What one step did. ``seconds`` is wall time, ``prompt_tokens`` and ``tokens`` what was computed."""

    seconds: float
    requests: int
    prompt_tokens: int
    tokens: int


@dataclass(frozen=True)
class State:
    """How busy a scheduler is."""

    running: int
    waiting: int
    slots: int


class Scheduler:
    """Serves jobs on a model, which belongs to it until `close`.

    Args:
        slots: how many jobs run at once; the others wait, first come, first served.
        prompt_chunk: most tokens of prompts that are read in one step, by all jobs together. A step takes the longer
            the more there are, and so does everybody's next token.
        on_step, on_start, on_end: told of each step, and of each job when it gets a slot and when it is over.
    """

    def __init__(
        self,
        model: BatchModel,
        *,
        slots: int,
        prompt_chunk: int = 64,
        on_step: Callable[[Step], None] = lambda step: None,
        on_start: Callable[[Job], None] = lambda job: None,
        on_end: Callable[[Job, Update], None] = lambda job, update: None,
    ) -> None:
        self._model = model
        self._slots = Slots(model, slots)
        self._prompt_chunk = prompt_chunk
        self._on_step, self._on_start, self._on_end = on_step, on_start, on_end
        self._masks = ThreadPoolExecutor(slots, thread_name_prefix="punchcard-mask")
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._condition = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="punchcard-scheduler", daemon=True)
        self._thread.start()

    def submit(self, *jobs: Job) -> None:
        """Queues jobs. Raises `Unavailable` if the scheduler is closed."""
        with self._condition:
            if self._closing:
                raise Unavailable("The server is shutting down")
            self._waiting.extend(jobs)
            self._condition.notify()

    def close(self) -> None:
        """Ends all jobs with an error, and the thread."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join()

    @property
    def state(self) -> State:
        with self._condition:
            return State(len(self._running), len(self._waiting), len(self._slots))

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and not self._closing

    def _serve(self) -> None:
        try:
            while self._has_work():
                self._drop()
                self._admit()
                if self._running:
                    self._step()
        except Exception:
            _LOG.exception("The scheduler has failed; nothing more will be served")
        finally:
            # Whatever ended the loop: nobody waits for an answer that will not come.
            with self._condition:
                self._closing = True
            for job in [*self._running, *self._waiting]:
                self._end(job, error=Unavailable("The server is shutting down"))
            self._masks.shutdown(wait=False, cancel_futures=True)
            self._slots.close()

    def _has_work(self) -> bool:
        """Waits for jobs. False when it is time to end."""
        with self._condition:
            while not (self._closing or self._waiting or self._running):
                self._condition.wait()
            return not self._closing

    def _drop(self) -> None:
        """Lets go of jobs that nobody waits for, or whose time is up."""
        now = time.monotonic()
        for job in [*self._running, *self._waiting]:
            if job.cancelled:
                self._end(job)
            elif now > job.deadline:
                self._end(job, error=Overdue("The answer took longer than this server gives a request"))

    def _admit(self) -> None:
        """Gives idle slots to the jobs that have waited longest."""
        with self._condition:
            waiting = list(self._waiting)
        for job in waiting:
            if not self._slots.any_idle:
                return
            if self._should_wait(job):
                continue
            slot = self._slots.take(job.prompt)
            job.slot, job.cached_tokens = slot, len(slot.tokens)
            job.pending = list(job.prompt[len(slot.tokens) :])
            with self._condition:
                self._waiting.remove(job)
                self._running.append(job)
            self._on_start(job)

    def _should_wait(self, job: Job) -> bool:
        """Whether somebody is just reading a good part of the job's prompt, which it could copy in a moment."""
        if job.behind is not None and job.behind.reading and job.behind in self._running:
            return True
        worth = self._slots.known(job.prompt) + self._prompt_chunk
        readers = (other for other in self._running if other.reading)
        job.behind = next((other for other in readers if common_beginning(other.prompt, job.prompt) > worth), None)
        return job.behind is not None

    def _step(self) -> None:
        started = time.perf_counter()
        parts = self._with_masks(self._parts())
        if not parts:
            return
        try:
            logits = self._model.forward_batch([(_slot(job).sequence, part) for job, part in parts])
        except Exception as error:  # whatever a runtime raises must not end the thread that serves everybody
            for job, _ in parts:
                _slot(job).cut(0)
                self._end(job, error=error)
            return
        prompt_tokens = sum(len(part) for job, part in parts if job.reading)
        tokens = sum(len(part) for _, part in parts) - prompt_tokens
        for (job, part), row in zip(parts, logits, strict=True):
            _slot(job).tokens.extend(part)
            del job.pending[: len(part)]
            if not job.pending:
                job.reading = False
                self._guarded(job, partial(self._choose, job, row))
        self._on_step(Step(time.perf_counter() - started, len(parts), prompt_tokens, tokens))

    def _parts(self) -> list[_Part]:
        """What each running job adds to the next pass. Prompts share the tokens that a step has for them evenly; what
        a short one leaves goes to the longer ones."""
        left = self._prompt_chunk
        readers = sorted((job for job in self._running if job.reading), key=lambda job: len(job.pending))
        parts = [(job, list(job.pending)) for job in self._running if not job.reading]
        for index, job in enumerate(readers):
            part = job.pending[: max(1, left // (len(readers) - index))]
            left -= len(part)
            parts.append((job, part))
        return parts

    def _with_masks(self, parts: Sequence[_Part]) -> list[_Part]:
        """Those of the parts whose jobs can go on: one that will pick a token behind its part needs its mask.

        Jobs that can only end are ended.
        """
        choosing = [job for job, part in parts if len(part) == len(job.pending) and job.writer.matcher is not None]
        for job in choosing:
            if job.mask is None and job.writer.matcher is not None:
                job.mask = self._masks.submit(_fill, job.writer.matcher, self._model.vocab_size)
        masks = [job.mask for job in choosing if job.mask is not None]
        # Where nobody could go on meanwhile, the first mask is waited for; not for ever, as jobs may be cancelled.
        idle = len(choosing) == len(parts)
        wait(masks, _PATIENCE)
        if idle and not any(mask.done() for mask in masks):
            wait(masks, _IDLE_PATIENCE, FIRST_COMPLETED)
        for job in choosing:
            if job.mask is not None and job.mask.done():
                self._guarded(job, partial(self._end_if_nothing_follows, job, job.mask))
        late = {job for job in choosing if job.mask is not None and not job.mask.done()}
        return [(job, part) for job, part in parts if job.slot is not None and job not in late]

    def _end_if_nothing_follows(self, job: Job, mask: Future[_Mask]) -> None:
        row = mask.result()
        if row is not None and _only_ends(row, job.writer.ends):
            job.writer.end("stop")
            self._report(job)

    def _choose(self, job: Job, logits: NDArray[np.float32]) -> None:
        job.writer.look(logits)
        if job.mask is not None and (row := job.mask.result()) is not None:
            apply_token_bitmask_inplace(logits, row)
        job.mask = None
        job.pending = job.writer.choose(logits)
        self._report(job)

    def _report(self, job: Job) -> None:
        """Tells what came of a job in this step."""
        if job.writer.finish is not None:
            self._end(job, finish=job.writer.finish)
            return
        written = job.writer.written()
        if (written.deltas or written.logprobs) and not job.cancelled:
            job.tell(Update(written))

    def _guarded(self, job: Job, work: Callable[[], Any]) -> None:
        """Does something for a job. If it fails, the job ends with the error, and nobody else is touched."""
        try:
            work()
        except Exception as error:
            self._end(job, error=error)

    def _end(self, job: Job, *, finish: Finish | None = None, error: Exception | None = None) -> None:
        with self._condition:
            if job in self._running:
                self._running.remove(job)
            elif job in self._waiting:
                self._waiting.remove(job)
            else:
                return
        if job.slot is not None:
            job.slot.busy = False
            job.slot = None
        if job.writer.cancel is not None:
            # A mask may still be in the making.
            job.writer.cancel.cancel()
        update = Update(job.writer.written(), finish, error)
        self._on_end(job, update)
        if not job.cancelled:
            job.tell(update)


#: A job, and what it adds to a pass.
_Part: TypeAlias = tuple[Job, list[int]]


def _slot(job: Job) -> Slot:
    assert job.slot is not None
    return job.slot


def _fill(matcher: Budgeted, vocab_size: int) -> _Mask:
    bitmask = allocate_token_bitmask(1, vocab_size)
    return bitmask[0] if matcher.fill_next_token_bitmask(bitmask) else None


def _only_ends(mask: NDArray[np.int32], ends: frozenset[int]) -> bool:
    """Whether a row of a bitmask allows no token but ends."""
    words = np.flatnonzero(mask)
    if len(words) > len(ends):
        return False
    return all(int(word) * 32 + bit in ends for word in words for bit in range(32) if int(mask[word]) >> bit & 1)
