"""``/v1/chat/completions``."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from punchcard.chat import Message, Request
from punchcard.grammar import Grammar
from punchcard.server.errors import ApiError, BadRequest
from punchcard.server.options import ServerOptions
from punchcard.server.protocol.common import (
    FINISH_REASONS,
    Body,
    CompletionUsage,
    Count,
    Items,
    Pairs,
    Part,
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
    Schema,
    StructuredOutputs,
    TextFormat,
    response_format_grammar,
    structured_grammar,
)
from punchcard.server.protocol.logprobs import Logprob, spell
from punchcard.server.protocol.tools import FunctionTool, ToolChoice, read_tools
from punchcard.server.scheduler import Update
from punchcard.server.service import Usage, Work

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class TextPart(Part):
    type: Literal["text"]
    text: str


class RefusalPart(Part):
    type: Literal["refusal"]
    refusal: str


class CalledFunction(Part):
    name: str
    arguments: str


class ToolCall(Part):
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = None


class ChatMessage(Part):
    """A turn. ``content`` may be parts, of text only; ``reasoning_content``: the thoughts of an earlier answer."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Items[TextPart | RefusalPart] | None = None
    name: str | None = None
    tool_calls: Items[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    # What clients send back of an answer, always empty here.
    refusal: str | None = None
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None
    audio: None = None
    function_call: None = None


_LENGTHS = ("max_completion_tokens", "max_tokens")


class TemplateOptions(Part):
    """``enable_thinking``: whether the model thinks before it answers."""

    enable_thinking: bool | None = None


class ChatRequest(Body):
    model: str
    messages: Annotated[Items[ChatMessage], Field(min_length=1)]
    tools: Items[FunctionTool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    max_tokens: Annotated[Count | None, Field(description="An older name of max_completion_tokens")] = None
    max_completion_tokens: Count | None = None
    n: Count | None = None
    seed: Seed | None = None
    stop: Stop | Stops | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    reasoning_effort: ReasoningEffort | None = None
    chat_template_kwargs: TemplateOptions | None = None
    # vLLM's constraints
    structured_outputs: StructuredOutputs | None = None
    guided_json: Schema | str | None = None
    guided_regex: str | None = None
    guided_choice: Annotated[Items[str], Field(min_length=1)] | None = None
    guided_grammar: str | None = None
    guided_decoding_backend: str | None = None
    # What changes nothing here
    user: str | None = None
    metadata: Pairs[str] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    # What would change the answer, and is refused
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    min_p: float | None = None
    logit_bias: Pairs[float] | None = None
    modalities: Items[str] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    functions: list[Any] | None = None
    function_call: Any = None
    audio: Any = None
    prediction: Any = None
    web_search_options: Any = None
    moderation: Any = None

    NEUTRAL: ClassVar[Mapping[str, tuple[tuple[Any, ...], str | None]]] = {
        "frequency_penalty": ((0,), None),
        "presence_penalty": ((0,), None),
        "repetition_penalty": ((1,), None),
        "min_p": ((0,), "Use top_p or top_k"),
        "logit_bias": (({},), "Constrain the answer with structured_outputs"),
        "modalities": ((["text"],), "Answers are text"),
        "verbosity": (("medium",), "Say in the system message how long an answer should be"),
        "functions": (([],), "Use tools"),
        "function_call": ((), "Use tool_choice"),
        "audio": ((), "Answers are text"),
        "prediction": ((), None),
        "web_search_options": ((), None),
        "moderation": ((), None),
    }
    HINTS: ClassVar[Mapping[str, str]] = {
        "messages": 'A message is like {"role": "user", "content": "..."}, and a part of its content like '
        '{"type": "text", "text": "..."}',
        "tools": 'A tool is like {"type": "function", "function": {"name": "...", "parameters": {...}}}',
        "tool_choice": 'A function is named by {"type": "function", "function": {"name": "..."}}',
        "input": "The conversation is sent as messages",
        "prompt": "The conversation is sent as messages",
        "response_format": 'A schema is sent as {"type": "json_schema", "json_schema": {"schema": {...}}}',
    }

    def to_work(self, options: ServerOptions) -> Work:
        """What is to be written. Raises `BadRequest` for what cannot be met."""
        self.refuse_unsupported()
        limit = options.max_schema_bytes
        choice = read_tools(self.tools, self.tool_choice, limit)
        required(not self.top_logprobs or bool(self.logprobs), "top_logprobs wants logprobs to be true", "top_logprobs")
        required(self.stream_options is None or bool(self.stream), "stream_options wants stream", "stream_options")
        request = Request(
            messages=[_message(message, index) for index, message in enumerate(self.messages)],
            tools=choice.tools,
            tool_choice=choice.tool_choice,
            allowed=choice.allowed,
            parallel=self.parallel_tool_calls is not False and not choice.one,
            answer=self._answer(limit),
            reasoning=self._reasoning(),
        )
        length_param = next((name for name in _LENGTHS if getattr(self, name)), None)
        wanted = sampling(
            options,
            max_tokens=self.max_completion_tokens or self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            seed=self.seed,
            stop=self.stop,
            param=length_param or "max_tokens",
        )
        logprobs = (self.top_logprobs or 0) if self.logprobs else None
        return Work((request,), wanted, self.n or 1, logprobs, length_param)

    def _answer(self, limit: int) -> Grammar | None:
        kinds = {"json": self.guided_json, "regex": self.guided_regex, "choice": self.guided_choice}
        guided: dict[str, Any] = {**kinds, "grammar": self.guided_grammar}
        guided = {kind: value for kind, value in guided.items() if value is not None}
        formatted = self.response_format is not None and not isinstance(self.response_format, TextFormat)
        if len(guided) + formatted + (self.structured_outputs is not None) > 1:
            raise BadRequest(
                "The answer is constrained in several ways",
                hint="Give one of response_format, structured_outputs and guided_...",
                param="response_format" if formatted else "structured_outputs",
            )
        if guided:
            name = next(iter(guided))
            return structured_grammar(StructuredOutputs.model_validate(guided), limit, f"guided_{name}")
        if self.structured_outputs is not None:
            return structured_grammar(self.structured_outputs, limit)
        return response_format_grammar(self.response_format, limit)

    def _reasoning(self) -> bool | None:
        told = self.chat_template_kwargs.enable_thinking if self.chat_template_kwargs else None
        asked = None if self.reasoning_effort is None else self.reasoning_effort != "none"
        if told is not None and asked is not None and told != asked:
            raise BadRequest("reasoning_effort and enable_thinking contradict each other", param="reasoning_effort")
        return asked if told is None else told


def _message(message: ChatMessage, index: int) -> Message:
    param = f"messages[{index}]"
    content = message.content
    if isinstance(content, list):
        content = "".join(part.text if isinstance(part, TextPart) else part.refusal for part in content)
    calls = message.tool_calls or []
    required(not calls or message.role == "assistant", "Only an assistant makes calls", f"{param}.tool_calls")
    required(content is not None or message.role == "assistant", "This message has no content", f"{param}.content")
    made: Message = {
        "role": "system" if message.role == "developer" else message.role,
        "content": content or message.refusal or "",
    }
    if calls:
        made["tool_calls"] = [_call(call) for call in calls]
    for name in ("name", "tool_call_id", "reasoning_content"):
        if (value := getattr(message, name)) is not None:
            made[name] = value
    return made


def _call(call: ToolCall) -> dict[str, Any]:
    # The text of arguments is not judged: an answer that was cut off leaves the beginning of an object.
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


# What is answered


class FunctionCall(BaseModel):
    name: str
    arguments: str


class MessageCall(BaseModel):
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class AnswerMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    reasoning_content: str | None = None
    tool_calls: list[MessageCall] | None = None


class Logprobs(BaseModel):
    content: list[Logprob]
    refusal: None = None


class ChatChoice(BaseModel):
    index: int
    message: AnswerMessage
    logprobs: Logprobs | None
    finish_reason: Literal["stop", "tool_calls", "length"]
    stop_reason: StopReason | None = None


class ChatCompletion(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: CompletionUsage


@dataclass
class _Call:
    id: str
    name: str
    arguments: str = ""


@dataclass
class _Choice:
    text: str = ""
    reasoning: str = ""
    calls: list[_Call] = field(default_factory=list)
    logprobs: list[Logprob] = field(default_factory=list)
    finish: Literal["stop", "tool_calls", "length"] = "stop"
    stop_reason: StopReason | None = None


class ChatReply:
    """Gathers updates into a `ChatCompletion`, and tells each as the chunks of a stream."""

    def __init__(self, request: ChatRequest, model: str, pieces: Sequence[bytes]) -> None:
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
        }
        self._with_logprobs = bool(request.logprobs)
        self._with_usage = bool(request.stream_options and request.stream_options.include_usage)
        self._pieces = pieces
        self._choices = [_Choice() for _ in range(request.n or 1)]

    def begin(self) -> Iterable[dict[str, Any]]:
        """The first chunk of each choice."""
        for index in range(len(self._choices)):
            yield self._chunk(index, {"role": "assistant", "content": ""})

    def add(self, index: int, update: Update) -> Iterable[dict[str, Any]]:
        """Takes an update. Returns its chunks."""
        choice = self._choices[index]
        logprobs = [spell(logprob, self._pieces) for logprob in update.written.logprobs]
        choice.logprobs += logprobs
        deltas = list(self._deltas(choice, update))
        if logprobs and not deltas:
            deltas = [{}]
        for i, delta in enumerate(deltas):
            # The probabilities of a step go with its first chunk.
            yield self._chunk(index, delta, logprobs=logprobs if i == 0 else ())
        if update.finish is not None:
            choice.finish, choice.stop_reason = FINISH_REASONS[update.finish], stop_reason(update.finish)
            if choice.stop_reason is not None and choice.calls:
                choice.finish = "tool_calls"
            yield self._chunk(index, {}, finish=choice.finish, stop_reason=choice.stop_reason)

    def end(self, usage: Usage) -> Iterable[dict[str, Any] | str]:
        """The last chunk, and what says so."""
        if self._with_usage:
            yield {**self._chunk_head(), "choices": [], "usage": CompletionUsage.of(usage).model_dump()}
        yield "[DONE]"

    def fail(self, error: ApiError) -> Iterable[dict[str, Any]]:
        """What ends a stream that failed."""
        yield error.body()

    def whole(self, usage: Usage) -> ChatCompletion:
        return ChatCompletion(
            **self._head,
            choices=[self._whole_choice(index, choice) for index, choice in enumerate(self._choices)],
            usage=CompletionUsage.of(usage),
        )

    def _whole_choice(self, index: int, choice: _Choice) -> ChatChoice:
        message = AnswerMessage(content=choice.text if choice.text or not choice.calls else None)
        if choice.reasoning:
            message.reasoning_content = choice.reasoning
        if choice.calls:
            message.tool_calls = [
                MessageCall(id=call.id, function=FunctionCall(name=call.name, arguments=call.arguments))
                for call in choice.calls
            ]
        logprobs = Logprobs(content=choice.logprobs) if self._with_logprobs else None
        return ChatChoice(
            index=index,
            message=message,
            logprobs=logprobs,
            finish_reason=choice.finish,
            stop_reason=choice.stop_reason,
        )

    def _deltas(self, choice: _Choice, update: Update) -> Iterable[dict[str, Any]]:
        for delta in update.written.deltas:
            if delta.kind == "text":
                choice.text += delta.text
                yield {"content": delta.text}
            elif delta.kind == "reasoning":
                choice.reasoning += delta.text
                yield {"reasoning_content": delta.text}
            elif delta.kind == "call":
                call = _Call(delta.id or f"call_{secrets.token_hex(12)}", delta.text)
                choice.calls.append(call)
                function = {"name": call.name, "arguments": ""}
                yield {"tool_calls": [{"index": delta.index, "id": call.id, "type": "function", "function": function}]}
            else:
                choice.calls[delta.index].arguments += delta.text
                yield {"tool_calls": [{"index": delta.index, "function": {"arguments": delta.text}}]}

    def _chunk_head(self) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk"}

    def _chunk(
        self,
        index: int,
        delta: dict[str, Any],
        *,
        logprobs: Sequence[Logprob] = (),
        finish: str | None = None,
        stop_reason: StopReason | None = None,
    ) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        if logprobs:
            choice["logprobs"] = {"content": [logprob.model_dump() for logprob in logprobs], "refusal": None}
        if finish is not None:
            choice["stop_reason"] = stop_reason
        chunk = {**self._chunk_head(), "choices": [choice]}
        if self._with_usage:
            chunk["usage"] = None
        return chunk
