"""From a request to its answers: admission, preparation in threads, and the way back from the scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from punchcard import CancelToken, allocate_token_bitmask
from punchcard.chat import Request, Sampling
from punchcard.errors import ContextLengthError, ModelError
from punchcard.generation import Model
from punchcard.server.batching import BatchModel, batch_model
from punchcard.server.errors import BadRequest, Busy, NotFound, Overdue, Unavailable
from punchcard.server.metrics import Metrics
from punchcard.server.options import ServerOptions
from punchcard.server.planning import Completion, limit_grammars, make_plan
from punchcard.server.scheduler import Job, Scheduler, Update
from punchcard.server.writer import Writer

Result = TypeVar("Result")


@dataclass(frozen=True)
class Work:
    """What a request wants written: ``n`` answers to each of ``asked``. ``logprobs``: alternatives to tell for each
    token; `None` for no log probabilities."""

    asked: tuple[Request | Completion, ...]
    sampling: Sampling
    n: int = 1
    logprobs: int | None = None


@dataclass
class Usage:
    """Tokens of a request, over all its answers."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(eq=False)
class Answer:
    """An answer on its way from the scheduler's thread to the event loop that asked for it."""

    index: int
    job: Job = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _updates: asyncio.Queue[Update] = field(default_factory=asyncio.Queue)

    def tell(self, update: Update) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
            self._loop.call_soon_threadsafe(self._updates.put_nowait, update)

    async def updates(self) -> AsyncIterator[Update]:
        """What comes of the answer, up to its end. Raises what went wrong."""
        while True:
            update = await self._updates.get()
            if update.error is not None:
                raise update.error
            yield update
            if update.finish is not None:
                return


@dataclass
class Answers:
    """The answers to one request. Whoever has them must call `release` in the end, done or not."""

    each: list[Answer]
    _on_release: Callable[[], None]
    _on_first: Callable[[], None]

    async def updates(self) -> AsyncIterator[tuple[int, Update]]:
        """What comes of all the answers, with the index of each, as it comes."""
        merged: asyncio.Queue[tuple[int, Update | Exception]] = asyncio.Queue()

        async def forward(answer: Answer) -> None:
            try:
                async for update in answer.updates():
                    merged.put_nowait((answer.index, update))
            except Exception as error:
                merged.put_nowait((answer.index, error))

        tasks = [asyncio.ensure_future(forward(answer)) for answer in self.each]
        try:
            left = len(self.each)
            first = True
            while left:
                index, update = await merged.get()
                if isinstance(update, Exception):
                    raise update
                if first:
                    self._on_first()
                    first = False
                left -= update.finish is not None
                yield index, update
        finally:
            for task in tasks:
                task.cancel()

    def release(self) -> None:
        """Has what is still being written abandoned."""
        for answer in self.each:
            answer.job.cancelled = True
        self._on_release()

    @property
    def usage(self) -> Usage:
        """What has been used so far. The prompt counts once for all answers to it."""
        usage = Usage()
        prompts: dict[int, Job] = {}
        for answer in self.each:
            prompts.setdefault(id(answer.job.prompt), answer.job)
            usage.completion_tokens += answer.job.writer.tokens
            usage.reasoning_tokens += answer.job.writer.reasoning_tokens
        for job in prompts.values():
            usage.prompt_tokens += len(job.prompt)
            usage.cached_tokens += job.cached_tokens
        return usage


class Service:
    """Serves one model, which belongs to it until `close`."""

    def __init__(self, model: Model | BatchModel, options: ServerOptions | None = None) -> None:
        self.options = options = options or ServerOptions()
        self.model, most = batch_model(model)
        self.model_name = options.model_name or self.model.name
        self.created = int(time.time())
        self.metrics = Metrics()
        limit_grammars(self.model, options.limits)
        self.slots = min(options.slots, most or options.slots)
        self.scheduler = Scheduler(
            self.model,
            slots=self.slots,
            prompt_chunk=options.prompt_chunk,
            on_step=self.metrics.step,
            on_start=self.metrics.start,
            on_end=self.metrics.end,
        )
        # Requests without a grammar never wait behind one that is hard to compile.
        self._compilers = ThreadPoolExecutor(options.compile_threads, thread_name_prefix="punchcard-compile")
        self._renderers = ThreadPoolExecutor(2, thread_name_prefix="punchcard-render")
        self._in_flight = 0
        self._seconds_of_answers = 1.0  # a running mean, for Retry-After

    def close(self) -> None:
        self.scheduler.close()
        for pool in (self._compilers, self._renderers):
            pool.shutdown(wait=False, cancel_futures=True)

    def check_model(self, name: str) -> None:
        """Raises `NotFound` if the model is not the one that is served."""
        if name != self.model_name:
            raise NotFound(
                f"The model {name!r} is not served here",
                hint=f"This server has {self.model_name!r}",
                code="model_not_found",
                param="model",
            )

    async def answer(self, work: Work) -> Answers:
        """Begins to answer a request.

        Raises `Busy` if too many wait already, `BadRequest` or another `PunchcardError` if it cannot be met.
        """
        arrived = time.monotonic()
        count = len(work.asked) * work.n
        if count > self.options.max_n:
            raise BadRequest(
                f"The request asks for {count} answers; this server gives at most {self.options.max_n}", param="n"
            )
        release = self._admit(count)
        try:
            answers = Answers([], release, lambda: self._observe_first(arrived))
            index = itertools.count()
            for asked in work.asked:
                answers.each += await self._prepare(work, asked, index, arrived)
            self.scheduler.submit(*(answer.job for answer in answers.each))
        except BaseException:
            release()
            raise
        return answers

    def _admit(self, count: int) -> Callable[[], None]:
        """Counts answers in. Returns what counts them out again, once."""
        if self._in_flight + count > self.slots + self.options.queue:
            rounds = max(1, self._in_flight - self.slots) / self.slots
            raise Busy(
                f"{self._in_flight} answers are being written or wait",
                hint="Try again later",
                code="queue_full",
                retry_after=max(1, min(60, math.ceil(rounds * self._seconds_of_answers))),
            )
        self._in_flight += count
        arrived = time.monotonic()
        done = False

        def release() -> None:
            nonlocal done
            if not done:
                done = True
                self._in_flight -= count
                self._seconds_of_answers += 0.1 * (time.monotonic() - arrived - self._seconds_of_answers)

        return release

    def _observe_first(self, arrived: float) -> None:
        self.metrics.first_token_seconds.observe(time.monotonic() - arrived)

    async def _prepare(
        self, work: Work, asked: Request | Completion, index: itertools.count[int], arrived: float
    ) -> list[Answer]:
        compiles = asked.answer is not None or (isinstance(asked, Request) and bool(asked.tools))
        pool = self._compilers if compiles else self._renderers
        seeds: list[int | None] = [None] * work.n
        if work.sampling.seed is not None:
            seeds = [(work.sampling.seed + i) % (1 << 64) for i in range(work.n)]
        # The answers to one prompt have a token each, as one may end long before the others.
        cancels = [CancelToken() for _ in seeds]
        with self.metrics.prepare_seconds.time():
            prompt, writers = await self._in_time(pool.submit(self._write, work, asked, seeds, cancels), cancels[0])
        made = []
        for writer in writers:
            answer = Answer(next(index))
            answer.job = Job(prompt, writer, answer.tell, deadline=arrived + self.options.request_seconds)
            made.append(answer)
        return made

    async def _in_time(self, future: Future[Result], cancel: CancelToken) -> Result:
        """The result of a preparation, if it comes soon enough. Otherwise it is cancelled."""
        seconds = self.options.compile_seconds
        wrapped = asyncio.wrap_future(future)
        try:
            return await asyncio.wait_for(asyncio.shield(wrapped), seconds)
        except asyncio.CancelledError:
            # The client has gone.
            wrapped.add_done_callback(lambda done: done.cancelled() or done.exception())
            cancel.cancel()
            future.cancel()
            raise
        except (asyncio.TimeoutError, TimeoutError):
            wrapped.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody asks for it any more
            cancel.cancel()
            if future.cancel():
                raise Unavailable(
                    "All compilers are busy with other grammars", hint="Try again later", retry_after=5
                ) from None
            raise Overdue(
                f"The grammar was not compiled within {seconds:g} seconds",
                hint="Make the schema simpler",
                code="compile_timeout",
            ) from None

    def _write(
        self, work: Work, asked: Request | Completion, seeds: list[int | None], cancels: list[CancelToken]
    ) -> tuple[list[int], list[Writer]]:
        """In a thread of its own: the prompt, and a writer for each answer."""
        try:
            plan = make_plan(self.model, asked, grammar=self.options.grammar, cancel=cancels[0])
        except ContextLengthError:
            raise
        except ModelError as error:
            # The template refuses the conversation, such as two turns of the same role.
            raise BadRequest(error.message, hint=error.hint, param="messages") from error
        room = self.model.context_length - len(plan.prompt)
        if room < 1:
            raise ContextLengthError(
                f"The prompt has {len(plan.prompt)} tokens; {self.model_name} has room for {self.model.context_length}",
                hint="Shorten the request, or give fewer tools",
                tokens=len(plan.prompt),
                context_length=self.model.context_length,
            )
        limit = min(work.sampling.max_new_tokens, room)
        writers = [
            Writer(
                plan,
                replace(work.sampling, max_new_tokens=limit, seed=random.getrandbits(63) if seed is None else seed),
                self.model.tokenize,
                logprobs=work.logprobs,
                complete=True,
                cancel=cancel,
            )
            for seed, cancel in zip(seeds, cancels, strict=True)
        ]
        if (matcher := writers[0].matcher) is not None:
            # The first mask of a grammar is the costliest. Made here, it holds nobody up.
            matcher.fill_next_token_bitmask(allocate_token_bitmask(1, self.model.vocab_size))
        return plan.prompt, writers
