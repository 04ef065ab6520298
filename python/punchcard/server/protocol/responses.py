"""``/v1/responses``, without a memory: each request brings the whole conversation, and nothing is stored."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from punchcard.chat import Delta, Message, Request
from punchcard.server.errors import ApiError, BadRequest
from punchcard.server.options import ServerOptions
from punchcard.server.protocol.chat import ReasoningEffort
from punchcard.server.protocol.common import (
    Body,
    Count,
    Items,
    Pairs,
    Part,
    StopReason,
    Temperature,
    TopP,
    required,
    sampling,
    stop_reason,
)
from punchcard.server.protocol.constraints import (
    JsonObjectFormat,
    Schema,
    StructuredOutputs,
    TextFormat,
    json_grammar,
    structured_grammar,
)
from punchcard.server.protocol.logprobs import Logprob, spell
from punchcard.server.protocol.tools import FlatFunctionTool, FlatToolChoice, read_tools
from punchcard.server.scheduler import Update
from punchcard.server.service import Usage, Work
from punchcard.server.writer import Finish

Status = Literal["in_progress", "completed", "incomplete"]


class InputText(Part):
    type: Literal["input_text", "output_text"]
    text: str
    # What clients send back of an answer.
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None
    logprobs: list[Any] | None = None


class InputRefusal(Part):
    type: Literal["refusal"]
    refusal: str


class MessageItem(Part):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | Items[InputText | InputRefusal]
    type: Literal["message"] = "message"
    id: str | None = None
    status: Status | None = None
    phase: str | None = None


class CallItem(Part):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: Status | None = None


class OutputItem(Part):
    type: Literal["function_call_output"]
    call_id: str
    output: str | Items[InputText]
    id: str | None = None
    status: Status | None = None


class ReasoningText(Part):
    type: Literal["reasoning_text", "summary_text"]
    text: str


class ReasoningItem(Part):
    type: Literal["reasoning"]
    id: str | None = None
    summary: Items[ReasoningText] | None = None
    content: Items[ReasoningText] | None = None
    encrypted_content: str | None = None
    status: Status | None = None


InputItem = MessageItem | CallItem | OutputItem | ReasoningItem


class FlatJsonSchemaFormat(Part):
    """A JSON Schema. ``strict`` closes objects that do not say ``additionalProperties``; it is enforced either way."""

    type: Literal["json_schema"]
    name: str | None = None
    description: str | None = None
    schema_: Schema | None = Field(None, alias="schema")
    strict: bool | None = None


FlatFormat = Annotated[TextFormat | JsonObjectFormat | FlatJsonSchemaFormat, Field(discriminator="type")]


class TextOptions(Part):
    format: FlatFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ReasoningOptions(Part):
    """``summary``: thoughts are told as they are, so none is made."""

    effort: ReasoningEffort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None


class ResponseStreamOptions(Part):
    include_obfuscation: bool | None = None


Include = Literal["message.output_text.logprobs", "reasoning.encrypted_content"]


class ResponseRequest(Body):
    model: str
    input: str | Annotated[Items[InputItem], Field(min_length=1)]
    instructions: str | None = None
    tools: Items[FlatFunctionTool] | None = None
    tool_choice: FlatToolChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextOptions | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    max_output_tokens: Count | None = None
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    include: Items[Include] | None = None
    reasoning: ReasoningOptions | None = None
    structured_outputs: StructuredOutputs | None = None
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
    background: bool | None = None
    truncation: Literal["auto", "disabled"] | None = None
    max_tool_calls: int | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    context_management: Any = None
    moderation: Any = None
    prompt: Any = None

    NEUTRAL: ClassVar[Mapping[str, tuple[tuple[Any, ...], str | None]]] = {
        "background": ((False,), None),
        "truncation": (("disabled",), "Shorten the input where it is too long"),
        "max_tool_calls": ((), "parallel_tool_calls: false allows one call"),
        "previous_response_id": ((), "Nothing is stored: send the whole conversation as input"),
        "conversation": ((), "Nothing is stored: send the whole conversation as input"),
        "context_management": ((), None),
        "moderation": ((), None),
        "prompt": ((), "Send instructions and input"),
    }
    HINTS: ClassVar[Mapping[str, str]] = {
        "input": 'Send a text, or a list of items, at least one, such as {"role": "user", "content": "..."}, '
        '{"type": "function_call", ...} or {"type": "function_call_output", ...}',
        "tools": 'A tool is like {"type": "function", "name": "...", "parameters": {...}}',
        "tool_choice": 'A function is named by {"type": "function", "name": "..."}',
        "messages": "The conversation is sent as input",
        "response_format": "The form of the answer is sent as text.format",
    }

    def to_work(self, options: ServerOptions) -> Work:
        """What is to be written. Raises `BadRequest` for what cannot be met."""
        self.refuse_unsupported()
        limit = options.max_schema_bytes
        text = self.text or TextOptions()
        required(
            text.verbosity in (None, "medium"),
            "text.verbosity is not supported by this server",
            "text.verbosity",
            "Say in the instructions how long an answer should be",
        )
        form = text.format
        answer = None
        if self.structured_outputs is not None:
            required(form is None or form.type == "text", "The answer is constrained in several ways", "text.format")
            answer = structured_grammar(self.structured_outputs, limit)
        elif isinstance(form, FlatJsonSchemaFormat):
            answer = json_grammar(form.schema_, bool(form.strict), limit, "text.format.schema")
        elif isinstance(form, JsonObjectFormat):
            answer = json_grammar(None, False, limit, "text.format")
        choice = read_tools(self.tools, self.tool_choice, limit)
        effort = self.reasoning.effort if self.reasoning else None
        request = Request(
            messages=self._messages(),
            tools=choice.tools,
            tool_choice=choice.tool_choice,
            allowed=choice.allowed,
            parallel=self.parallel_tool_calls is not False and not choice.one,
            answer=answer,
            reasoning=None if effort is None else effort != "none",
        )
        wanted = sampling(
            options,
            max_tokens=self.max_output_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            param="max_output_tokens",
        )
        logprobs = (self.top_logprobs or 0) if self.with_logprobs else None
        return Work((request,), wanted, 1, logprobs, "max_output_tokens" if self.max_output_tokens else None)

    @property
    def with_logprobs(self) -> bool:
        return bool(self.top_logprobs) or "message.output_text.logprobs" in (self.include or ())

    def _messages(self) -> list[Message]:
        messages: list[Message] = []
        if self.instructions:
            messages.append({"role": "system", "content": self.instructions})
        if isinstance(self.input, str):
            return [*messages, {"role": "user", "content": self.input}]
        thoughts = ""
        for item in self.input:
            if isinstance(item, ReasoningItem):
                thoughts += "".join(part.text for part in item.content or ())
                continue
            if isinstance(item, OutputItem):
                messages.append({"role": "tool", "tool_call_id": item.call_id, "content": _text(item.output)})
                continue
            if isinstance(item, MessageItem):
                role = "system" if item.role == "developer" else item.role
                messages.append({"role": role, "content": _text(item.content)})
            else:
                # Words and calls of one answer are one turn.
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": ""})
                call = {
                    "id": item.call_id,
                    "type": "function",
                    "function": {"name": item.name, "arguments": item.arguments},
                }
                messages[-1].setdefault("tool_calls", []).append(call)
            if thoughts and messages[-1]["role"] == "assistant":
                messages[-1]["reasoning_content"] = thoughts
            thoughts = ""
        if not messages:
            raise BadRequest("The input holds thoughts only", param="input")
        return messages


def _text(content: str | Sequence[InputText | InputRefusal]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text if isinstance(part, InputText) else part.refusal for part in content)


# What is answered


class OutputText(BaseModel):
    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[Any] = []
    logprobs: list[Logprob] = []


class OutputMessage(BaseModel):
    type: Literal["message"] = "message"
    id: str
    role: Literal["assistant"] = "assistant"
    status: Status
    content: list[OutputText]


class OutputCall(BaseModel):
    type: Literal["function_call"] = "function_call"
    id: str
    call_id: str
    name: str
    arguments: str
    status: Status


class OutputThought(BaseModel):
    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


class OutputReasoning(BaseModel):
    type: Literal["reasoning"] = "reasoning"
    id: str
    summary: list[Any] = []
    content: list[OutputThought]
    status: Status


Item = OutputMessage | OutputCall | OutputReasoning


class InputDetails(BaseModel):
    cached_tokens: int
    cache_write_tokens: int = 0


class OutputDetails(BaseModel):
    reasoning_tokens: int


class ResponseUsage(BaseModel):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class IncompleteDetails(BaseModel):
    reason: Literal["max_output_tokens"]


class ResponseError(BaseModel):
    code: str
    message: str


class Response(BaseModel):
    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    stop_reason: StopReason | None = None
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    output: list[Item]
    parallel_tool_calls: bool
    previous_response_id: None = None
    reasoning: dict[str, Any]
    store: Literal[False] = False
    temperature: float
    text: dict[str, Any]
    tool_choice: Any
    tools: list[dict[str, Any]]
    top_logprobs: int
    top_p: float
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None
    user: str | None


Event = dict[str, Any]


@dataclass
class _Open:
    """The item that is being written, and its place."""

    kind: Literal["text", "reasoning", "call"]
    id: str
    place: int
    text: str = ""
    name: str = ""
    call_id: str = ""
    logprobs: list[Logprob] = field(default_factory=list)

    def item(self, status: Status) -> Item:
        if self.kind == "text":
            content = [OutputText(text=self.text, logprobs=self.logprobs)]
            return OutputMessage(
                id=self.id, status=status, content=content if self.text or status != "in_progress" else []
            )
        if self.kind == "reasoning":
            thoughts = [OutputThought(text=self.text)] if self.text else []
            return OutputReasoning(id=self.id, status=status, content=thoughts)
        return OutputCall(id=self.id, call_id=self.call_id, name=self.name, arguments=self.text, status=status)


_PREFIXES = {"text": "msg", "reasoning": "rs", "call": "fc"}


class ResponseReply:
    """Gathers updates into a `Response`, and tells each as the typed events of a stream."""

    def __init__(self, request: ResponseRequest, model: str, pieces: Sequence[bytes], temperature: float) -> None:
        self._request = request
        self._pieces = pieces
        self._items: list[Item] = []
        self._open: _Open | None = None
        self._logprobs: list[Logprob] = []  # of tokens that have not been told with a text
        self._finish: Finish | None = None
        self._error: ApiError | None = None
        self._numbers = itertools.count()
        text = request.text or TextOptions()
        form = text.format.model_dump(by_alias=True, exclude_unset=True) if text.format else {"type": "text"}
        self._head: dict[str, Any] = {
            "id": f"resp_{secrets.token_hex(16)}",
            "created_at": int(time.time()),
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "metadata": request.metadata or {},
            "model": model,
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "reasoning": {"effort": request.reasoning.effort if request.reasoning else None, "summary": None},
            "temperature": temperature if request.temperature is None else request.temperature,
            "text": {"format": form},
            "tool_choice": _dumped(request.tool_choice or "auto"),
            "tools": [_dumped(tool) for tool in request.tools or ()],
            "top_logprobs": request.top_logprobs or 0,
            "top_p": 1.0 if request.top_p is None else request.top_p,
            "user": request.user,
        }

    def begin(self) -> Iterable[Event]:
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self._response("in_progress").model_dump())

    def add(self, index: int, update: Update) -> Iterable[Event]:
        """Takes an update. Returns its events."""
        self._logprobs += [spell(logprob, self._pieces) for logprob in update.written.logprobs]
        for delta in update.written.deltas:
            yield from self._take(delta)
        if update.finish is not None:
            self._finish = update.finish
            yield from self._close("incomplete" if update.finish == "length" else "completed")

    def end(self, usage: Usage) -> Iterable[Event]:
        response = self.whole(usage)
        yield self._event(f"response.{response.status}", response=response.model_dump())

    def fail(self, error: ApiError) -> Iterable[Event]:
        """The last events of an answer that failed while it was written."""
        self._error = error
        yield from self._close("incomplete")
        yield self._event("response.failed", response=self._response("failed").model_dump())

    def whole(self, usage: Usage) -> Response:
        if not self._items:
            self._items.append(OutputMessage(id=_id("text"), status="completed", content=[OutputText(text="")]))
        return self._response("incomplete" if self._finish == "length" else "completed", usage)

    def _take(self, delta: Delta) -> Iterable[Event]:
        kind: Literal["text", "reasoning", "call"] = "call" if delta.kind in ("call", "arguments") else delta.kind  # type: ignore[assignment]
        if delta.kind == "call" or self._open is None or self._open.kind != kind:
            yield from self._close("completed")
            yield from self._begin(kind, delta)
        open = self._open
        if open is None or delta.kind == "call":
            return
        open.text += delta.text
        where: dict[str, Any] = {"item_id": open.id, "output_index": open.place, "delta": delta.text}
        if kind == "call":
            yield self._event("response.function_call_arguments.delta", **where)
        elif kind == "reasoning":
            yield self._event("response.reasoning_text.delta", content_index=0, **where)
        else:
            new = self._take_logprobs()
            open.logprobs += new
            logprobs = [logprob.model_dump() for logprob in new]
            yield self._event("response.output_text.delta", content_index=0, logprobs=logprobs, **where)

    def _take_logprobs(self) -> list[Logprob]:
        taken, self._logprobs = self._logprobs, []
        return taken if self._request.with_logprobs else []

    def _begin(self, kind: Literal["text", "reasoning", "call"], delta: Delta) -> Iterable[Event]:
        if kind != "text":
            self._logprobs = []
        self._open = open = _Open(kind, _id(kind), len(self._items))
        if kind == "call":
            open.name, open.call_id = delta.text, delta.id or f"call_{secrets.token_hex(12)}"
        item = open.item("in_progress").model_dump()
        yield self._event("response.output_item.added", output_index=open.place, item=item)
        if kind != "call":
            yield self._event("response.content_part.added", **self._part(open, ""))

    def _close(self, status: Status) -> Iterable[Event]:
        open = self._open
        if open is None:
            return
        self._open = None
        where = {"item_id": open.id, "output_index": open.place}
        if open.kind == "call":
            yield self._event("response.function_call_arguments.done", name=open.name, arguments=open.text, **where)
        elif open.kind == "reasoning":
            yield self._event("response.reasoning_text.done", content_index=0, text=open.text, **where)
        else:
            logprobs = [logprob.model_dump() for logprob in open.logprobs]
            yield self._event("response.output_text.done", content_index=0, text=open.text, logprobs=logprobs, **where)
        if open.kind != "call":
            yield self._event("response.content_part.done", **self._part(open, open.text))
        item = open.item(status)
        self._items.append(item)
        yield self._event("response.output_item.done", output_index=open.place, item=item.model_dump())

    @staticmethod
    def _part(open: _Open, text: str) -> dict[str, Any]:
        part: BaseModel = OutputText(text=text) if open.kind == "text" else OutputThought(text=text)
        return {"item_id": open.id, "output_index": open.place, "content_index": 0, "part": part.model_dump()}

    def _response(
        self, status: Literal["in_progress", "completed", "incomplete", "failed"], usage: Usage | None = None
    ) -> Response:
        failed = self._error
        return Response(
            **self._head,
            status=status,
            stop_reason=stop_reason(self._finish),
            error=None if failed is None else ResponseError(code=failed.code or failed.type, message=str(failed)),
            incomplete_details=IncompleteDetails(reason="max_output_tokens") if status == "incomplete" else None,
            output=list(self._items),
            usage=None if usage is None else _usage(usage),
        )

    def _event(self, kind: str, **fields: Any) -> Event:
        return {"type": kind, "sequence_number": next(self._numbers), **fields}


def _id(kind: str) -> str:
    return f"{_PREFIXES[kind]}_{secrets.token_hex(12)}"


def _dumped(value: Any) -> Any:
    return value.model_dump(by_alias=True, exclude_unset=True) if isinstance(value, BaseModel) else value


def _usage(usage: Usage) -> ResponseUsage:
    return ResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details=InputDetails(cached_tokens=usage.cached_tokens),
        output_tokens=usage.completion_tokens,
        output_tokens_details=OutputDetails(reasoning_tokens=usage.reasoning_tokens),
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
    )
