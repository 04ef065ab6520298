"""``/v1/completions``: a text is gone on with."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from punchcard.server.errors import ApiError, BadRequest
from punchcard.server.options import ServerOptions
from punchcard.server.planning import Completion
from punchcard.server.protocol.common import (
    FINISH_REASONS,
    Body,
    CompletionUsage,
    Count,
    Items,
    Pairs,
    Seed,
    Stop,
    StopReason,
    Stops,
    StreamOptions,
    Temperature,
    TopK,
    TopP,
    required,
    sampling,
    stop_reason,
)
from punchcard.server.protocol.constraints import (
    ResponseFormat,
    StructuredOutputs,
    response_format_grammar,
    structured_grammar,
)
from punchcard.server.protocol.logprobs import LEAST
from punchcard.server.scheduler import Update
from punchcard.server.service import Usage, Work
from punchcard.server.writer import TokenLogprob

Token = Annotated[int, Field(ge=0, lt=1 << 31)]
Tokens = Annotated[Items[Token], Field(min_length=1)]


class CompletionRequest(Body):
    """``prompt``: a text, token ids, or several of one of them. Special tokens in a text are read as such."""

    model: str
    prompt: str | Tokens | Annotated[Items[str], Field(min_length=1)] | Annotated[Items[Tokens], Field(min_length=1)]
    max_tokens: Count | None = 16
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    n: Count | None = None
    seed: Seed | None = None
    stop: Stop | Stops | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    user: str | None = None
    # What would change the answer, and is refused
    best_of: int | None = None
    echo: bool | None = None
    suffix: str | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    min_p: float | None = None
    logit_bias: Pairs[float] | None = None

    NEUTRAL: ClassVar[Mapping[str, tuple[tuple[Any, ...], str | None]]] = {
        "best_of": ((1,), "Ask for n answers and pick one"),
        "echo": ((False,), None),
        "suffix": (("",), None),
        "frequency_penalty": ((0,), None),
        "presence_penalty": ((0,), None),
        "repetition_penalty": ((1,), None),
        "min_p": ((0,), "Use top_p or top_k"),
        "logit_bias": (({},), "Constrain the answer with structured_outputs"),
    }
    HINTS: ClassVar[Mapping[str, str]] = {
        "prompt": "A prompt is a text or a list of token ids, at least one; several prompts are a list of them"
    }

    def to_work(self, options: ServerOptions, vocab_size: int) -> Work:
        """What is to be written. Raises `BadRequest` for what cannot be met."""
        self.refuse_unsupported()
        required(self.stream_options is None or bool(self.stream), "stream_options wants stream", "stream_options")
        limit = options.max_schema_bytes
        if self.structured_outputs is None:
            answer = response_format_grammar(self.response_format, limit)
        else:
            required(self.response_format is None, "The answer is constrained in several ways", "response_format")
            answer = structured_grammar(self.structured_outputs, limit)
        for prompt in self._prompts():
            if not isinstance(prompt, str) and max(prompt) >= vocab_size:
                raise BadRequest(
                    f"Token {max(prompt)} is out of range: the vocabulary has {vocab_size}", param="prompt"
                )
        wanted = sampling(
            options,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            seed=self.seed,
            stop=self.stop,
        )
        asked = tuple(Completion(prompt, answer) for prompt in self._prompts())
        return Work(asked, wanted, self.n or 1, self.logprobs, "max_tokens" if self.max_tokens else None)

    def _prompts(self) -> list[str | list[int]]:
        if isinstance(self.prompt, str):
            return [self.prompt]
        prompts: list[str | list[int]] = []
        tokens: list[int] = []
        for item in self.prompt:
            if isinstance(item, int):
                tokens.append(item)
            else:
                prompts.append(item)
        return [tokens] if tokens else prompts

    @property
    def choices(self) -> int:
        """How many answers there will be."""
        return len(self._prompts()) * (self.n or 1)


class TokenLogprobs(BaseModel):
    """For each token its text, the log of its probability, the likeliest tokens with theirs, and where it begins in the
    text of the choice, in characters."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(BaseModel):
    index: int
    text: str
    logprobs: TokenLogprobs | None
    finish_reason: Literal["stop", "tool_calls", "length"]
    stop_reason: StopReason | None = None


class TextCompletion(BaseModel):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage


@dataclass
class _Choice:
    text: str = ""
    logprobs: list[TokenLogprob] = field(default_factory=list)
    offset: int = 0
    finish: Literal["stop", "tool_calls", "length"] = "stop"
    stop_reason: StopReason | None = None


class CompletionReply:
    """Gathers updates into a `TextCompletion`, and tells each as the chunks of a stream."""

    def __init__(self, request: CompletionRequest, model: str, pieces: Sequence[bytes]) -> None:
        self._head: dict[str, Any] = {
            "id": f"cmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
        }
        self._with_logprobs = request.logprobs is not None
        self._with_usage = bool(request.stream_options and request.stream_options.include_usage)
        self._pieces = pieces
        self._choices = [_Choice() for _ in range(request.choices)]

    def begin(self) -> Iterable[dict[str, Any]]:
        return ()

    def add(self, index: int, update: Update) -> Iterable[dict[str, Any]]:
        """Takes an update. Returns its chunks."""
        choice = self._choices[index]
        text = "".join(delta.text for delta in update.written.deltas)
        choice.text += text
        choice.logprobs += update.written.logprobs
        if text or update.written.logprobs:
            yield self._chunk(index, text, self._spelled(choice, update.written.logprobs), None)
        if update.finish is not None:
            choice.finish, choice.stop_reason = FINISH_REASONS[update.finish], stop_reason(update.finish)
            yield self._chunk(index, "", None, choice.finish, choice.stop_reason)

    def end(self, usage: Usage) -> Iterable[dict[str, Any] | str]:
        """The last chunk, and what says so."""
        if self._with_usage:
            yield {**self._chunk_head(), "choices": [], "usage": CompletionUsage.of(usage).model_dump()}
        yield "[DONE]"

    def fail(self, error: ApiError) -> Iterable[dict[str, Any]]:
        """What ends a stream that failed."""
        yield error.body()

    def whole(self, usage: Usage) -> TextCompletion:
        choices = []
        for index, choice in enumerate(self._choices):
            choice.offset = 0
            logprobs = self._spelled(choice, choice.logprobs)
            choices.append(
                CompletionChoice(
                    index=index,
                    text=choice.text,
                    logprobs=logprobs,
                    finish_reason=choice.finish,
                    stop_reason=choice.stop_reason,
                )
            )
        return TextCompletion(**self._head, choices=choices, usage=CompletionUsage.of(usage))

    def _spelled(self, choice: _Choice, logprobs: Sequence[TokenLogprob]) -> TokenLogprobs | None:
        if not self._with_logprobs:
            return None
        made = TokenLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
        for logprob in logprobs:
            token = self._spell(logprob.token)
            made.tokens.append(token)
            made.token_logprobs.append(max(logprob.logprob, LEAST))
            # The token itself is always among them.
            top = {self._spell(id): max(value, LEAST) for id, value in logprob.top}
            made.top_logprobs.append({**top, token: max(logprob.logprob, LEAST)})
            made.text_offset.append(choice.offset)
            choice.offset += len(token)
        return made

    def _spell(self, token: int) -> str:
        return self._pieces[token].decode("utf-8", "replace")

    def _chunk_head(self) -> dict[str, Any]:
        return {**self._head, "object": "text_completion"}

    def _chunk(
        self,
        index: int,
        text: str,
        logprobs: TokenLogprobs | None,
        finish: str | None,
        stop_reason: StopReason | None = None,
    ) -> dict[str, Any]:
        spelled = None if logprobs is None else logprobs.model_dump()
        choice: dict[str, Any] = {"index": index, "text": text, "logprobs": spelled, "finish_reason": finish}
        if finish is not None:
            choice["stop_reason"] = stop_reason
        chunk = {**self._chunk_head(), "choices": [choice]}
        if self._with_usage:
            chunk["usage"] = None
        return chunk
