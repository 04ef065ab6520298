"""A server that speaks OpenAI's API answers the documents: vLLM, SGLang, llama.cpp, a gateway before many of them.

The schema goes along as ``response_format``; what comes back is checked here all the same, whatever the server made of
it. Requests that fail in passing (429, 5xx, no connection, no answer in time) are tried again with growing pauses, by
the openai package.

What goes wrong with a document is its own failure. What goes wrong with all of them (a key that is refused, a model
that is unknown, a server that is gone) ends the run, so that it can go on later, instead of spoiling every row.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from punchcard.batch.answers import Answer, Answers, Failure, Task, answer_of
from punchcard.chat import Sampling
from punchcard.errors import ModelError, PunchcardError, extra_hint
from punchcard.extraction import Shape, Written, cut_off

if TYPE_CHECKING:
    import openai

# The longest pause that the openai package makes between two tries, in seconds.
_LONGEST_PAUSE = 60.0
# What a gateway says when there is nobody behind it.
_NOBODY_BEHIND = (502, 503, 504)
# So many documents in a row for which the server could not be had, at least, and it counts as gone.
_GONE = 8


@dataclass(frozen=True)
class Endpoint:
    """A server, and how to ask it.

    Attributes:
        url: the base of its API, such as ``http://localhost:8000/v1``.
        model: as the server calls it; `None` where it serves just one.
        concurrency: requests under way at once.
        api_key_env: the environment variable that holds the key; `None` where the server wants none.
        timeout: seconds that a request may take.
        retries: how often a request that failed in passing is tried again.
    """

    url: str
    model: str | None = None
    concurrency: int = 16
    api_key_env: str | None = None
    timeout: float = 120.0
    retries: int = 5

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise PunchcardError(
                f"{self.url!r} is no address of an API", hint="Give its base, such as http://localhost:8000/v1"
            )
        if self.concurrency < 1:
            raise PunchcardError(f"concurrency is {self.concurrency}; it must be at least 1")
        if self.timeout <= 0:
            raise PunchcardError(f"timeout is {self.timeout}; it must be above 0 seconds")
        if self.retries < 0:
            raise PunchcardError(f"retries is {self.retries}; it must be at least 0")

    def client(self) -> openai.AsyncOpenAI:
        """Raises `PunchcardError` if the openai package or the key is missing."""
        try:
            import openai
        except ImportError:
            raise PunchcardError("The openai package is not installed", hint=extra_hint("remote")) from None
        key = "none"  # the package insists on one; its own default would send the user's key to any server
        if self.api_key_env is not None:
            key = os.environ.get(self.api_key_env, "")
            if not key:
                raise PunchcardError(f"The environment variable {self.api_key_env} holds no API key")
        return openai.AsyncOpenAI(base_url=self.url, api_key=key, timeout=self.timeout, max_retries=self.retries)

    async def served_model(self, client: openai.AsyncOpenAI) -> str:
        """The model to name in requests. Raises `ModelError` if it must be chosen, or the server cannot be asked."""
        import openai

        if self.model is not None:
            return self.model
        try:
            served: list[str] = [model.id async for model in client.models.list()]
        except openai.OpenAIError as error:
            raise ModelError(
                f"{self.url} does not say which models it serves: {_said(error)}", hint="Name one with model"
            ) from error
        if len(served) == 1:
            return served[0]
        raise ModelError(
            f"{self.url} serves {len(served)} models", hint=f"Choose one with model: {', '.join(served[:20]) or '-'}"
        )


def answer_at_endpoint(
    tasks: Iterator[Task], endpoint: Endpoint, shape: Shape, system: str | None, sampling: Sampling
) -> Answers:
    """Answers tasks, at most ``endpoint.concurrency`` of them at once.

    Raises `SchemaError` if the schema cannot be compiled, `ModelError` if the server refuses to serve at all or cannot
    be reached any more.
    """
    shape.prepare_check()
    with _EventLoop() as loop:
        requests = _Requests(endpoint, endpoint.client(), shape, system, sampling)
        try:
            loop.submit(requests.open()).result()
            yield from _answers(tasks, loop, requests, endpoint)
        finally:
            loop.submit(requests.close()).result()


def _answers(tasks: Iterator[Task], loop: _EventLoop, requests: _Requests, endpoint: Endpoint) -> Answers:
    pending: set[Future[Answer | _Unreachable | _Refused]] = set()
    unreachable: list[_Unreachable] = []  # since the last answer: the document's fault, or the server is gone?
    refused: list[_Refused] = []  # before the first answer: is the request wrong, or just the document?
    answered = False
    while True:
        while not refused and len(pending) < endpoint.concurrency and (task := next(tasks, None)) is not None:
            pending.add(loop.submit(requests.answer(task)))
        if not pending:
            if refused:
                raise refused[0].error(endpoint)
            break
        done, pending = wait(pending, return_when=FIRST_COMPLETED)
        # What ends the run comes last, so that no answer is lost to it.
        for future in sorted(done, key=lambda future: future.exception() is not None):
            outcome = future.result()
            if isinstance(outcome, Answer):
                answered = True
                yield outcome
                yield from (lost.answer for lost in unreachable)
                yield from (lost.answer for lost in refused)
                unreachable, refused = [], []
                continue
            if isinstance(outcome, _Refused):
                # Where another document was answered, the request as such is right.
                if answered:
                    yield outcome.answer
                else:
                    refused.append(outcome)
                continue
            unreachable.append(outcome)
            if len(unreachable) >= max(endpoint.concurrency, _GONE):
                raise outcome.error(endpoint)
    if unreachable and not answered:
        raise unreachable[0].error(endpoint)
    yield from (lost.answer for lost in unreachable)


@dataclass(frozen=True)
class _Unreachable:
    """A document for which the server could not be had, after all retries."""

    answer: Answer
    cause: Exception

    def error(self, endpoint: Endpoint) -> ModelError:
        return ModelError(f"{endpoint.url} does not answer: {_said(self.cause)}", hint="Is the server up, and at ease?")


@dataclass(frozen=True)
class _Refused:
    """A document for which the server refused what all requests have in common."""

    answer: Answer
    cause: Exception

    def error(self, endpoint: Endpoint) -> ModelError:
        return ModelError(
            f"{endpoint.url} refuses the request, whatever the document: {_said(self.cause)}",
            hint="Change the schema or the option that it names; `punchcard check` says what a schema asks for",
        )


class _Requests:
    """Asks for one document at a time; runs in the event loop."""

    def __init__(
        self, endpoint: Endpoint, client: openai.AsyncOpenAI, shape: Shape, system: str | None, sampling: Sampling
    ) -> None:
        self._endpoint = endpoint
        self._client = client
        self._shape = shape
        self._system = system
        self._options = _request_options(shape, sampling)
        self._model = ""

    async def open(self) -> None:
        self._model = await self._endpoint.served_model(self._client)

    async def close(self) -> None:
        await self._client.close()

    async def answer(self, task: Task) -> Answer | _Unreachable | _Refused:
        """Raises `ModelError` for what would fail for all documents alike."""
        import openai

        # The timeout of a request counts from one byte to the next; this one bounds a server that dribbles.
        deadline = (self._endpoint.timeout + _LONGEST_PAUSE) * (self._endpoint.retries + 1)
        try:
            return answer_of(task, await asyncio.wait_for(self._write(task.text), deadline))
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            raise ModelError(
                f"{self._endpoint.url} refuses to answer: {_said(error)}", hint="Check the address, the model, the key"
            ) from error
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            if _names_the_request(error):
                return _Refused(Answer(task.index, _failure(error)), error)
            return Answer(task.index, _failure(error))
        except (openai.APIConnectionError, openai.RateLimitError) as error:
            return _Unreachable(Answer(task.index, _failure(error)), error)
        except openai.OpenAIError as error:
            failed = Answer(task.index, _failure(error))
            nobody = getattr(error, "status_code", None) in _NOBODY_BEHIND
            return _Unreachable(failed, error) if nobody else failed
        except asyncio.TimeoutError:
            return Answer(task.index, Failure("TimeoutError", f"There was no answer within {deadline:g} seconds"))
        except Exception as error:  # whatever a strange answer leads to
            return Answer(task.index, Failure.of(error))

    async def _write(self, text: str) -> str:
        messages: Any = self._shape.messages(text, self._system)
        completion = await self._client.chat.completions.create(model=self._model, messages=messages, **self._options)
        choices = getattr(completion, "choices", None)
        if not choices:
            raise PunchcardError("The server's answer holds no message", hint="Is it a chat completions API?")
        content = choices[0].message.content
        if choices[0].finish_reason == "length":
            raise cut_off(content if isinstance(content, str) else "", "by the server")
        if not isinstance(content, str):
            refusal = getattr(choices[0].message, "refusal", None)
            raise PunchcardError(f"The model refuses: {refusal}" if refusal else "The server's answer holds no text")
        answer = content.strip()
        # Off the event loop: the other requests go on while a long answer is read.
        await asyncio.to_thread(self._shape.check, answer)
        # Not OpenAI's: how our own server says that an answer was cut short.
        cut_short = getattr(choices[0], "stop_reason", None) == "budget"
        return Written(answer, "budget" if cut_short else "stop")


def _request_options(shape: Shape, sampling: Sampling) -> dict[str, Any]:
    schema = shape.json_schema
    if isinstance(schema, bool):  # the API wants an object
        schema = {} if schema else {"not": {}}
    options: dict[str, Any] = {
        "response_format": {"type": "json_schema", "json_schema": {"name": "extraction", "schema": schema}},
        "max_tokens": sampling.max_new_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
    }
    if sampling.top_k is not None:
        options["extra_body"] = {"top_k": sampling.top_k}  # not OpenAI's; vLLM, SGLang and llama.cpp know it
    return {name: value for name, value in options.items() if value is not None}


# Fields of a request that are the same for all documents, and how servers call what is wrong with them.
_SHARED_FIELDS = frozenset(
    [
        "response_format",
        "json_schema",
        "structured_outputs",
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "model",
        "max_tokens",
        "max_completion_tokens",
    ]
)
_SHARED_CODES = frozenset(
    [
        "invalid_schema",
        "unsupported_schema",
        "unsatisfiable_schema",
        "invalid_grammar",
        "limit_exceeded",
        "max_tokens_too_large",
        "max_tokens_too_small",
        "unsupported_parameter",
        "invalid_json_schema",
    ]
)
_SHARED_WORDS = ("schema", "response_format", "grammar", "temperature", "top_p", "top_k", "seed")


def _names_the_request(error: openai.APIStatusError) -> bool:
    """Whether a refusal is about what all requests have in common, and not about this document.

    Servers that say no more than a message are taken at their words: what names the schema, and no length, is meant.
    """
    param, code = getattr(error, "param", None), getattr(error, "code", None)
    if code in _SHARED_CODES:
        return True
    if code == "context_length_exceeded":
        return False
    if isinstance(param, str) and param:
        return param.split(".")[0].split("[")[0] in _SHARED_FIELDS
    said = _said(error).lower()
    if "context" in said or "too long" in said:
        return False
    return any(word in said for word in _SHARED_WORDS)


def _failure(error: Exception) -> Failure:
    return Failure(type(error).__name__, _said(error))


def _said(error: Exception) -> str:
    """What the server or the network said, on one line that is not too long."""
    said = " ".join(str(getattr(error, "message", error)).split())
    cause = error.__cause__
    if cause is not None and type(cause).__module__ != type(error).__module__ and str(cause):
        said = f"{said} ({' '.join(str(cause).split())})"
    return said if len(said) <= 500 else said[:500] + "…"


class _EventLoop:
    """An event loop in a thread of its own, so that the caller may be in one already, as in a notebook."""

    def __enter__(self) -> _EventLoop:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="punchcard-endpoint", daemon=True)
        self._thread.start()
        return self

    def submit(self, coroutine: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(RuntimeError):
            self.submit(self._cancel_all()).result(timeout=5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    async def _cancel_all(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
