"""From a request to its answers: admission, preparation in threads, and the way back from the scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import math
import random
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

from punchcard import CancelToken, allocate_token_bitmask
from punchcard.chat import Request, Sampling
from punchcard.errors import BudgetError, CancelledError, ContextLengthError, ModelError
from punchcard.generation import Model
from punchcard.server.batching import BatchModel, batch_model
from punchcard.server.errors import BadRequest, Busy, NotFound, Overdue, Unavailable
from punchcard.server.lanes import Lanes, TooSlow
from punchcard.server.metrics import Metrics
from punchcard.server.options import ServerOptions
from punchcard.server.planning import Completion, limit_grammars, make_plan, refuse_long
from punchcard.server.protocol.faults import shorten
from punchcard.server.scheduler import Job, Scheduler, Update
from punchcard.server.writer import Writer

_MOST_KNOWN = 1024


@dataclass(frozen=True)
class Work:
    """What a request wants written: ``n`` answers to each of ``asked``. ``logprobs``: alternatives to tell for each
    token; `None` for no log probabilities."""

    asked: tuple[Request | Completion, ...]
    sampling: Sampling
    n: int = 1
    logprobs: int | None = None
    length_param: str | None = None
    """The field by which the client has bounded the answer."""
    grammar_key: str = ""
    """Says which grammars it needs."""

    def with_key(self) -> Work:
        """The same with its key, which takes a while where grammars are large."""
        digest = hashlib.sha256()
        for asked in self.asked[:1]:  # further ones differ in their prompts
            digest.update(repr(None if asked.answer is None else asked.answer._json()).encode())
            if isinstance(asked, Request):
                parts = [tool.definition() for tool in asked.tools]
                how = [asked.tool_choice, asked.allowed, asked.parallel, asked.reasoning]
                digest.update(json.dumps([parts, how], sort_keys=True, default=str).encode())
        return replace(self, grammar_key=digest.hexdigest())


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
        limit_grammars(self.model, options.limits, options.cache_bytes)
        self.slots = min(options.slots, most or options.slots)
        self.scheduler = Scheduler(
            self.model,
            slots=self.slots,
            prompt_chunk=options.prompt_chunk,
            mask_seconds=options.mask_seconds,
            on_step=self.metrics.step,
            on_start=self.metrics.start,
            on_end=self.metrics.end,
        )
        # Requests without a grammar never wait behind one that is hard to compile.
        self._compilers = Lanes("compile", options.compile_threads, waiting=options.queue)
        self._renderers = Lanes("render", 2, waiting=options.queue)
        self._known: dict[str, None] = {}
        self._in_flight = 0
        self._seconds_of_answers = 1.0  # a running mean, for Retry-After

    def close(self) -> None:
        self.scheduler.close()
        for lanes in (self._compilers, self._renderers):
            lanes.close()

    def check_model(self, name: str) -> None:
        """Raises `NotFound` if the model is not the one that is served."""
        if name != self.model_name:
            raise NotFound(
                f"The model {shorten(name)!r} is not served here",
                hint=f"This server has {self.model_name!r}",
                code="model_not_found",
                param="model",
            )

    def check_count(self, work: Work) -> int:
        """How many answers a request asks for. Raises `BadRequest` if they are too many."""
        count = len(work.asked) * work.n
        if count > self.options.max_n:
            raise BadRequest(
                f"The request asks for {count} answers; this server gives at most {self.options.max_n}",
                hint="Send several requests",
                param="n" if work.n > 1 else "prompt",
            )
        return count

    async def answer(self, work: Work) -> Answers:
        """Begins to answer a request.

        Raises `Busy` if too many wait already, `BadRequest` or another `PunchcardError` if it cannot be met.
        """
        arrived = time.monotonic()
        release = self._admit(self.check_count(work))
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
        compiles = self.options.grammar and (
            asked.answer is not None or (isinstance(asked, Request) and bool(asked.tools))
        )
        lanes = self._compilers if compiles else self._renderers
        seeds: list[int | None] = [None] * work.n
        if work.sampling.seed is not None:
            seeds = [(work.sampling.seed + i) % (1 << 64) for i in range(work.n)]
        seconds = self.options.compile_seconds
        known = not compiles or work.grammar_key in self._known
        try:
            with self.metrics.prepare_seconds.time():
                prompt, writers, taken = await lanes.run(
                    lambda cancel: self._write(work, asked, seeds, cancel), seconds, known=known
                )
            self._note(work.grammar_key)
        except TooSlow as error:
            raise self._too_slow(error, compiles) from None
        made = []
        for writer in writers:
            answer = Answer(next(index))
            answer.job = Job(prompt, writer, answer.tell, deadline=arrived + self.options.request_seconds)
            answer.job.account.seconds = taken
            made.append(answer)
        return made

    def _note(self, key: str) -> None:
        """Remembers a grammar that was compiled, so that the next request with it is not among unknown ones."""
        self._known.pop(key, None)
        self._known[key] = None
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _too_slow(self, error: TooSlow, compiles: bool) -> Unavailable | Overdue:
        seconds = self.options.compile_seconds
        if not error.started:
            return Unavailable(
                "All compilers are busy with other grammars" if compiles else "Too many prompts are being read",
                hint="Try again later",
                retry_after=5,
            )
        if not compiles:
            return Overdue(
                f"The prompt was not read within {seconds:g} seconds", hint="Shorten the messages", param="messages"
            )
        return Overdue(
            f"The grammar was not compiled within {seconds:g} seconds",
            hint="Make the schema simpler",
            code="compile_timeout",
        )

    def _write(
        self, work: Work, asked: Request | Completion, seeds: list[int | None], cancel: CancelToken
    ) -> tuple[list[int], list[Writer], float]:
        """In a thread of its own: the prompt, a writer for each answer, and the seconds that the first mask took."""
        try:
            refuse_long(self.model, asked)
            plan = make_plan(self.model, asked, grammar=self.options.grammar, cancel=cancel)
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
        # Any of the answers may end long before the others, so each has a token of its own to be cancelled by. Until
        # all of them are there, that of the preparation is watched.
        try:
            writers: list[Writer] = []
            for seed in seeds:
                if cancel.is_cancelled:
                    raise CancelledError("The request was cancelled")
                own = replace(
                    work.sampling, max_new_tokens=limit, seed=random.getrandbits(63) if seed is None else seed
                )
                writers.append(
                    Writer(
                        plan,
                        own,
                        self.model.tokenize,
                        logprobs=work.logprobs,
                        complete=True,
                        cancel=CancelToken() if writers else cancel,
                    )
                )
        except BudgetError as error:
            raise _too_few(error, work, limit) from error
        started = time.thread_time()
        if (matcher := writers[0].matcher) is not None:
            # The first mask of a grammar is the costliest. Made here, it holds nobody up.
            matcher.fill_next_token_bitmask(allocate_token_bitmask(1, self.model.vocab_size))
        return plan.prompt, writers, time.thread_time() - started


def _too_few(error: BudgetError, work: Work, limit: int) -> BadRequest:
    """The error in the words of the request, which knows nothing of a budget."""
    minimum = error.fields.get("minimum")
    needs = "more" if minimum is None else f"at least {minimum}"
    asked, param = work.sampling.max_new_tokens, work.length_param
    if limit < asked:
        room, hint = f"The prompt leaves room for {limit} tokens", "Shorten the prompt"
    elif param is None:
        room, hint = f"Answers have at most {asked} tokens here", "Set max_tokens, or make the schema simpler"
    else:
        room, hint = f"{param} is {asked}", f"Raise {param}, or make the schema simpler"
    return BadRequest(f"{room}; a complete answer takes {needs}", hint=hint, code="max_tokens_too_small", param=param)
