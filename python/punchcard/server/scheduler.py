"""One thread that owns the model and writes all answers side by side.

In every step each running request adds something to one batch: those that write, the tokens they have just picked;
those that still read their prompt, a piece of it. Requests join and leave between steps. Masks are made before the
forward pass, as they do not depend on it: an answer that can only end ends there, without a pass of its own.

What grammars do is done in threads (`punchcard.server.steps`). A request for which that takes long, as it may under a
hostile grammar, stays out of the batch until it is done; and where others wait for a slot, it has to give its own up
meanwhile. Whatever fails, fails one request: nothing ends this thread but `Scheduler.close`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from punchcard.server.batching import BatchModel
from punchcard.server.errors import Overdue, Unavailable
from punchcard.server.lanes import ordinary
from punchcard.server.slots import Slot, Slots, common_beginning
from punchcard.server.steps import Account, Mask, Step, Steps
from punchcard.server.writer import Finish, Writer, Written

_LOG = logging.getLogger(__name__)

# Seconds that a pass waits for masks, nearly all of which take microseconds; and where nothing else is to be done.
_PATIENCE = 0.01
_IDLE_PATIENCE = 0.1
# Seconds after which a request that others wait for is set aside, and how often that may happen: what it has read may
# have to be read again.
_BEFORE_ASIDE = 0.25
_MOST_ASIDE = 3


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
    step: Future[Step] | None = None
    """What is being done for the grammar; the job cannot pick a token until it is there."""
    step_began: float = 0.0
    late: bool = False
    """The step is not waited for any more."""
    mask: Mask = None
    """The mask of the next token, where no step is under way."""
    account: Account = field(default_factory=Account)
    context: list[int] = field(default_factory=list)
    """What its slot has to hold before it goes on: the prompt, and what it had written when it was set aside."""
    asides: int = 0

    def __post_init__(self) -> None:
        self.context = list(self.prompt)


@dataclass(frozen=True)
class Pass:
    """What one pass did. ``seconds`` is wall time, ``prompt_tokens`` and ``tokens`` what was computed."""

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
        mask_seconds: most seconds of computing that the masks of a job may take.
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
        mask_seconds: float = 10.0,
        on_step: Callable[[Pass], None] = lambda done: None,
        on_start: Callable[[Job], None] = lambda job: None,
        on_end: Callable[[Job, Update], None] = lambda job, update: None,
    ) -> None:
        self._model = model
        self._slots = Slots(model, slots)
        self._prompt_chunk = prompt_chunk
        self._on_step, self._on_start, self._on_end = on_step, on_start, on_end
        self._steps = Steps(slots, model.vocab_size, mask_seconds)
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._aside: list[Job] = []
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
            return State(len(self._running), len(self._waiting) + len(self._aside), len(self._slots))

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and not self._closing

    def _serve(self) -> None:
        try:
            while self._has_work():
                try:
                    self._turn()
                except BaseException as error:
                    _LOG.exception("The scheduler failed; the answers that it was writing end")
                    for job in self._jobs():
                        self._end(job, error=ordinary(error))
        finally:
            # Whatever ended the loop: nobody waits for an answer that will not come.
            with self._condition:
                self._closing = True
            for job in self._jobs():
                self._end(job, error=Unavailable("The server is shutting down"))
            self._steps.close()
            self._slots.close()

    def _has_work(self) -> bool:
        """Waits for jobs. False when it is time to end."""
        with self._condition:
            while not (self._closing or self._waiting or self._running or self._aside):
                self._condition.wait()
            return not self._closing

    def _jobs(self) -> list[Job]:
        with self._condition:
            return [*self._running, *self._aside, *self._waiting]

    def _turn(self) -> None:
        self._drop()
        self._settle()
        self._make_room()
        self._admit()
        if not self._pass():
            self._idle()

    def _drop(self) -> None:
        """Lets go of jobs that nobody waits for, or whose time is up."""
        now = time.monotonic()
        for job in self._jobs():
            if job.cancelled:
                self._end(job)
            elif now > job.deadline:
                self._end(job, error=Overdue("The answer took longer than this server gives a request"))

    def _settle(self) -> None:
        """Takes what steps have brought. Waits a moment for those that have just begun."""
        wait([job.step for job in self._running if job.step is not None and not self._is_late(job)], _PATIENCE)
        for job in [*self._running, *self._aside]:
            if job.step is None:
                continue
            if job.step.done():
                self._guarded(job, partial(self._take, job, job.step))
            else:
                job.late = True

    def _is_late(self, job: Job) -> bool:
        return job.late or job.account.slow

    def _take(self, job: Job, step: Future[Step]) -> None:
        job.step, job.late = None, False
        pending, job.mask = step.result()
        job.pending += pending
        self._report(job)
        if job in self._aside:
            # Its turn comes after those who wait already.
            job.context += pending
            with self._condition:
                self._aside.remove(job)
                self._waiting.append(job)

    def _make_room(self) -> None:
        """Where jobs wait for a slot, takes one from the job whose grammar takes longest, while that is not done."""
        if not self._waiting or self._slots.any_idle:
            return
        now = time.monotonic()
        slow = [
            job
            for job in self._running
            if job.late and job.step is not None and (job.account.slow or now - job.step_began > _BEFORE_ASIDE)
        ]
        if not slow:
            return
        job = max(slow, key=lambda job: job.account.seconds)
        job.asides += 1
        if job.asides > _MOST_ASIDE:
            error = Overdue(
                "The masks of the grammar take so long that others would have to wait",
                hint="Make the schema or grammar simpler, or try again when the server is less busy",
                code="mask_timeout",
                retry_after=10,
            )
            self._end(job, error=error)
            return
        slot = _slot(job)
        job.context = [*slot.tokens, *job.pending]
        job.pending = []
        with self._condition:
            self._running.remove(job)
            self._aside.append(job)
        self._free(job)

    def _admit(self) -> None:
        """Gives idle slots to the jobs that have waited longest."""
        with self._condition:
            waiting = list(self._waiting)
        for job in waiting:
            if not self._slots.any_idle:
                return
            if not self._should_wait(job):
                self._guarded(job, partial(self._start, job))

    def _start(self, job: Job) -> None:
        first = job.asides == 0
        slot = self._slots.take(job.context)
        job.slot, job.reading = slot, True
        job.pending = job.context[len(slot.tokens) :]
        with self._condition:
            self._waiting.remove(job)
            self._running.append(job)
        if first:
            job.cached_tokens = len(slot.tokens)
            self._on_start(job)
            if job.writer.matcher is not None:
                self._begin(job, self._steps.begin(job.writer, job.account))

    def _begin(self, job: Job, step: Future[Step]) -> None:
        job.step, job.step_began, job.late = step, time.monotonic(), False
        step.add_done_callback(lambda done: self._wake())

    def _wake(self) -> None:
        with self._condition:
            self._condition.notify()

    def _idle(self) -> None:
        """Waits until a step is done or a job comes; not for long, as jobs may be cancelled."""
        jobs = self._jobs()
        with self._condition:
            known = len(self._running) + len(self._aside) + len(self._waiting)
            done = any(job.step is not None and job.step.done() for job in jobs)
            if jobs and not done and not self._closing and known == len(jobs):
                self._condition.wait(_IDLE_PATIENCE)

    def _should_wait(self, job: Job) -> bool:
        """Whether somebody is just reading a good part of the job's prompt, which it could copy in a moment."""
        if job.behind is not None and job.behind.reading and job.behind in self._running:
            return True
        worth = self._slots.known(job.context) + self._prompt_chunk
        readers = (other for other in self._running if other.reading)
        job.behind = next((other for other in readers if common_beginning(other.context, job.context) > worth), None)
        return job.behind is not None

    def _pass(self) -> bool:
        """One pass of the model. False if no job can go on."""
        started = time.perf_counter()
        parts = self._parts()
        if not parts:
            return False
        try:
            logits = self._model.forward_batch([(_slot(job).sequence, part) for job, part in parts])
        except BaseException as error:  # whatever a runtime raises must not end the thread that serves everybody
            for job, _ in parts:
                self._guarded(job, partial(_slot(job).cut, 0))
                self._end(job, error=ordinary(error))
            return True
        prompt_tokens = sum(len(part) for job, part in parts if job.reading)
        tokens = sum(len(part) for _, part in parts) - prompt_tokens
        for (job, part), row in zip(parts, logits, strict=True):
            _slot(job).tokens.extend(part)
            del job.pending[: len(part)]
            if not job.pending:
                job.reading = False
                self._guarded(job, partial(self._choose, job, row))
        self._on_step(Pass(time.perf_counter() - started, len(parts), prompt_tokens, tokens))
        return True

    def _parts(self) -> list[_Part]:
        """What each running job adds to the next pass. Prompts share the tokens that a pass has for them evenly; what
        a short one leaves goes to the longer ones. The last token of a prompt waits for the first mask."""
        left = self._prompt_chunk
        parts = [(job, list(job.pending)) for job in self._running if not job.reading and job.step is None]
        readers = {job: len(job.pending) - (job.step is not None) for job in self._running if job.reading}
        waiting = sorted((job for job, length in readers.items() if length), key=lambda job: readers[job])
        for index, job in enumerate(waiting):
            part = job.pending[: min(readers[job], max(1, left // (len(waiting) - index)))]
            left -= len(part)
            parts.append((job, part))
        return parts

    def _choose(self, job: Job, logits: NDArray[np.float32]) -> None:
        job.writer.look(logits)
        if job.writer.matcher is None:
            job.pending = job.writer.choose(logits)
            self._report(job)
        else:
            # A runtime may reuse its logits in the next pass, which may come before the step is done.
            self._begin(job, self._steps.go_on(job.writer, job.account, logits.copy(), job.mask))

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
        except BaseException as error:
            self._end(job, error=ordinary(error))

    def _end(self, job: Job, *, finish: Finish | None = None, error: Exception | None = None) -> None:
        with self._condition:
            for jobs in (self._running, self._aside, self._waiting):
                if job in jobs:
                    jobs.remove(job)
                    break
            else:
                return
        self._free(job)
        if job.writer.cancel is not None:
            # A mask may still be in the making.
            job.writer.cancel.cancel()
        update = Update(job.writer.written(), finish, error)
        try:
            self._on_end(job, update)
        finally:
            if not job.cancelled:
                job.tell(update)

    def _free(self, job: Job) -> None:
        if job.slot is not None:
            job.slot.busy = False
            job.slot = None


#: A job, and what it adds to a pass.
_Part: TypeAlias = tuple[Job, list[int]]


def _slot(job: Job) -> Slot:
    assert job.slot is not None
    return job.slot
