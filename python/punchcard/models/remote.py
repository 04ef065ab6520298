"""A model behind an HTTP API in OpenAI's manner: OpenAI itself, vLLM, SGLang, llama.cpp's server, and others.

There the far end must enforce: this end has no logits, it can only ask, in the words of the server's dialect, and hold
against its schemas whatever comes back. What breaks them is a `NotEnforcedError`, never a call.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, get_args

from punchcard.chat import Call, Delta, Message, Reply, Request, Sampling
from punchcard.errors import GrammarError, ModelError, PunchcardError, SchemaError, ToolError
from punchcard.exact import read_json, write_json
from punchcard.generation import Statistics
from punchcard.grammar import Grammar
from punchcard.models.base import require
from punchcard.models.checked import CheckedText, NotEnforcedError, any_spelling, arguments_grammar
from punchcard.schemas import JsonSchema
from punchcard.toolschemas import blamed, object_schema

if TYPE_CHECKING:
    from punchcard.tools import Tool

Dialect = Literal["openai", "vllm", "sglang", "llama.cpp"]
OnDelta = Callable[[Delta], None]

_GREEDY = Sampling()


class RemoteModel:
    """A `Chat` over an HTTP API in OpenAI's manner.

    Args:
        base_url: up to and with ``/v1``; `None` for OpenAI's own.
        model: its name there.
        api_key: by default the environment's ``OPENAI_API_KEY``, or none at all for a server of one's own.
        dialect: whose words to use for what the API of OpenAI has none for. Without such words, a request that needs
            them is an error:

            ============ ================= ======================= ================ =======
            dialect      answer of a       answer of any other     allowed tools    top_k
                         JSON Schema       grammar
            ============ ================= ======================= ================ =======
            openai       response_format   --                      allowed_tools    --
            vllm         structured_outputs structured_outputs     others left out  yes
            sglang       response_format   regex, ebnf             others left out  yes
            llama.cpp    response_format   grammar (not of regex)  others left out  yes
            ============ ================= ======================= ================ =======
        timeout: seconds without a sign of the server after which a request fails.
        max_retries: how often a request that could not be delivered, or met a busy server, is sent again.
        extra_body: more fields for each request, as the server takes them.

    Raises `PunchcardError` if the package openai is missing (``pip install 'punchcard[remote]'``), or the dialect is
    not known.
    """

    def __init__(
        self,
        base_url: str | None,
        model: str,
        *,
        api_key: str | None = None,
        dialect: Dialect = "openai",
        timeout: float = 60.0,
        max_retries: int = 2,
        extra_body: dict[str, Any] | None = None,
    ) -> None:
        if dialect not in get_args(Dialect):
            raise PunchcardError(
                f"{dialect!r} is no known dialect", hint=f"Use one of {', '.join(get_args(Dialect))}", dialect=dialect
            )
        self.name = model
        self.dialect: Dialect = dialect
        self._extra_body = dict(extra_body or {})
        self._openai = require("openai", install="'punchcard[remote]'")
        self._timeout = timeout
        if api_key is None and base_url is not None:
            # The package wants a key, where servers of one's own do not.
            api_key = os.environ.get("OPENAI_API_KEY", "none")
        self._options = {"base_url": base_url, "api_key": api_key, "timeout": timeout, "max_retries": max_retries}
        with self._errors():
            self._client = self._openai.OpenAI(**self._options)
        self._url = str(self._client.base_url)

    def respond(self, request: Request, sampling: Sampling = _GREEDY, *, on_delta: OnDelta | None = None) -> Reply:
        """The answer to ``request``; ``on_delta`` is told of each piece of it.

        Raises:
            SchemaError: a tool's arguments cannot be checked here (unless the request says ``skip_tools``).
            PunchcardError: the dialect has no words for what is asked.
            ModelError: the server cannot be reached, fails, refuses, or takes longer than ``timeout``.
            NotEnforcedError: the answer breaks what was asked for. Pieces of it may have been told by then, but no more
                than the one that breaks it.
        """
        answer = _Answer(self.name, request, on_delta)
        with (
            self._errors(),
            self._client.chat.completions.create(**self._body(answer.tools, request, sampling)) as parts,
        ):
            for part in parts:
                answer.add(part)
        return answer.finish()

    async def arespond(
        self, request: Request, sampling: Sampling = _GREEDY, *, on_delta: OnDelta | None = None
    ) -> Reply:
        """`respond`, without blocking the event loop."""
        answer = _Answer(self.name, request, on_delta)
        with self._errors():
            async with self._openai.AsyncOpenAI(**self._options) as client:
                stream = await client.chat.completions.create(**self._body(answer.tools, request, sampling))
                async with stream as parts:
                    async for part in parts:
                        answer.add(part)
        return answer.finish()

    def __repr__(self) -> str:
        return f"RemoteModel({self._url!r}, {self.name!r}, dialect={self.dialect!r})"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Makes errors of the package errors of ours, which say where and what to do."""
        openai = self._openai
        try:
            yield
        except openai.APITimeoutError as error:
            raise self._slow() from error
        except openai.APIConnectionError as error:
            raise ModelError(
                f"{self._url} cannot be reached: {error.__cause__ or error}", hint="Check base_url, and that it runs"
            ) from error
        except openai.APIStatusError as error:
            raise ModelError(
                f"{self._url} refused the request with status {error.status_code}: {error.message}",
                hint=_HINTS.get(error.status_code),
                status=error.status_code,
            ) from error
        except openai.OpenAIError as error:
            raise ModelError(f"The request failed: {error}") from error
        except json.JSONDecodeError as error:
            raise ModelError(
                f"{self._url} sent what is no JSON: {error}", hint="Check that base_url is an API in OpenAI's manner"
            ) from error

        except Exception as error:
            # In the middle of a stream the package lets errors of its HTTP library through, whose name is not settled.
            if type(error).__module__.split(".")[0] not in ("httpx", "httpx2"):
                raise
            if "Timeout" in type(error).__name__:
                raise self._slow() from error
            raise ModelError(f"The connection to {self._url} broke: {error}", hint="Look at its log") from error

    def _slow(self) -> ModelError:
        return ModelError(
            f"{self._url} did not answer within {self._timeout} seconds",
            hint="Give RemoteModel a longer timeout, or look at the load of the server",
        )

    # The request.

    def _body(self, tools: list[Tool], request: Request, sampling: Sampling) -> dict[str, Any]:
        own = self.dialect == "openai"
        extra = dict(self._extra_body)
        body: dict[str, Any] = {
            "model": self.name,
            "messages": _messages(request.messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": sampling.temperature,
            "max_completion_tokens" if own else "max_tokens": sampling.max_new_tokens,
            "extra_body": extra,
        }
        for name in ("top_p", "seed"):
            if (value := getattr(sampling, name)) is not None:
                body[name] = value
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if sampling.top_k is not None:
            if own:
                raise self._unspeakable("top_k", "Leave it out, or set top_p")
            extra["top_k"] = sampling.top_k
        if request.reasoning is not None:
            if own:
                body["reasoning_effort"] = "medium" if request.reasoning else "none"
            else:
                extra["chat_template_kwargs"] = {
                    **extra.get("chat_template_kwargs", {}),
                    "enable_thinking": request.reasoning,
                }
        if tools:
            body.update(self._tool_fields(tools, request))
        if request.constrained and request.answer is not None:
            body.update(self._answer_fields(request.answer, extra))
        return body

    def _tool_fields(self, tools: list[Tool], request: Request) -> dict[str, Any]:
        allowed = [tool for tool in tools if request.allowed is None or tool.name in request.allowed]
        choice: Any = request.tool_choice
        named = [{"type": "function", "function": {"name": tool.name}} for tool in allowed]
        if choice == "required" and request.allowed is not None and len(allowed) == 1:
            choice = named[0]
        elif choice != "none" and len(allowed) < len(tools):
            if self.dialect == "openai":
                choice = {"type": "allowed_tools", "allowed_tools": {"mode": choice, "tools": named}}
            else:
                tools = allowed
        if not tools:
            return {}
        return {
            "tools": [self._definition(tool, request.constrained) for tool in tools],
            "tool_choice": choice,
            "parallel_tool_calls": request.parallel and request.max_calls > 1,
        }

    def _definition(self, tool: Tool, constrained: bool) -> dict[str, Any]:
        definition = tool.definition()
        # OpenAI refuses schemas in strict mode that leave anything open; other servers take any.
        if constrained and (self.dialect != "openai" or _is_closed(tool.parameters)):
            definition["function"] = {**definition["function"], "strict": True}
        return definition

    def _answer_fields(self, answer: Grammar, extra: dict[str, Any]) -> dict[str, Any]:
        kind, value = _wire_form(answer)
        if kind == "json":
            if self.dialect == "vllm":
                extra["structured_outputs"] = {"json": value}
                return {}
            schema = {"name": "answer", "schema": value, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        if self.dialect == "vllm":
            extra["structured_outputs"] = {kind: value}
        elif self.dialect == "sglang":
            extra["ebnf" if kind == "grammar" else kind] = value
        elif self.dialect == "llama.cpp" and kind == "grammar":
            extra["grammar"] = value
        else:
            what = "a regular expression" if kind == "regex" else "a grammar"
            raise self._unspeakable(f"an answer of {what}", "Ask for JSON of a schema, or use another server")
        return {}

    def _unspeakable(self, what: str, hint: str) -> PunchcardError:
        return PunchcardError(f"The dialect {self.dialect} has no words for {what}", hint=hint, dialect=self.dialect)


_HINTS = {
    400: "The server does not take some field: check the dialect, and its message",
    401: "Check api_key",
    403: "Check api_key",
    404: "Check the name of the model, and that base_url ends in /v1",
    429: "The server is busy, or the quota is used up: wait, or raise max_retries",
}


class _Answer:
    """An answer on its way: gathered, checked and told piece by piece."""

    def __init__(self, name: str, request: Request, on_delta: OnDelta | None) -> None:
        self._name = name
        self._request = request
        self._tell = on_delta or (lambda delta: None)
        self._checks = _compilable(request)
        #: The tools of the request that can be checked here.
        self.tools = [tool for tool in request.tools if tool.name in self._checks]
        self._answer = any_spelling(request.answer) if request.constrained and request.answer is not None else None
        if self._answer is not None:
            CheckedText(self._answer, "")  # errors of the grammar come before the request
        self._text = ""
        self._reasoning = ""
        self._refusal = ""
        self._calls: list[_WrittenCall] = []
        self._finish: str | None = None
        self._cut_short = False
        self._statistics = Statistics()
        self._started = time.perf_counter()

    def add(self, part: Any) -> None:
        """A part of the stream, a ``ChatCompletionChunk``."""
        if part.usage is not None:
            self._statistics.prompt_tokens = part.usage.prompt_tokens
            self._statistics.tokens = part.usage.completion_tokens
            details = getattr(part.usage, "prompt_tokens_details", None)
            self._statistics.cached_tokens = getattr(details, "cached_tokens", None) or 0
        for choice in part.choices[:1]:
            delta = choice.delta
            # vLLM says reasoning, SGLang and llama.cpp reasoning_content.
            thought = getattr(delta, "reasoning", None) or getattr(delta, "reasoning_content", None)
            if isinstance(thought, str):
                self._reasoning += thought
                self._tell(Delta("reasoning", thought))
            if delta.content:
                self._text += delta.content
                self._tell(Delta("text", delta.content))
            self._refusal += getattr(delta, "refusal", None) or ""
            for piece in delta.tool_calls or ():
                self._add_call(piece)
            self._finish = choice.finish_reason or self._finish
            # Not OpenAI's: how Punchcard's server says that an answer was cut short.
            self._cut_short |= getattr(choice, "stop_reason", None) == "budget"

    def _add_call(self, piece: Any) -> None:
        function = piece.function
        name = function.name if function else None
        at = piece.index if piece.index is not None else max(0, len(self._calls) - 1)
        known = self._calls[at] if at < len(self._calls) else None
        if known is None or (name and piece.id and known.id is not None and piece.id != known.id):
            # Some servers give all calls the same index.
            known = self._begin_call(name, piece.id)
        if function and function.arguments:
            known.add(function.arguments)
            self._tell(Delta("arguments", function.arguments, index=self._calls.index(known)))

    def _begin_call(self, name: str | None, call_id: str | None) -> _WrittenCall:
        request = self._request
        allowed = [tool for tool in self._checks if request.allowed is None or tool in request.allowed]
        number = len(self._calls) + 1
        problem = None
        if request.tool_choice == "none" or not allowed:
            problem = f"calls {name}, although it may call nothing"
        elif name not in allowed and (request.constrained or name not in self._checks):
            problem = f"calls {name}, which is not among {', '.join(allowed)}"
        elif request.constrained and number > (request.max_calls if request.parallel else 1):
            problem = f"calls {name} as number {number}, more than it may"
        if problem is not None or name is None:
            raise NotEnforcedError(
                f"{self._name} {problem or 'calls a tool without a name'}",
                hint="The far end does not enforce what it was asked for: see its documentation on tools",
                tool=name,
            )
        call = _WrittenCall(self._name, name, call_id, self._checks[name])
        self._calls.append(call)
        self._tell(Delta("call", name, index=number - 1, id=call_id))
        return call

    def finish(self) -> Reply:
        """The whole answer. Raises `NotEnforcedError` if it ends where it must not."""
        if self._refusal:
            raise ModelError(f"{self._name} refuses to answer: {self._refusal}", hint="Ask for something else")
        if self._finish == "content_filter":
            raise ModelError(f"The answer of {self._name} was held back by a content filter", hint="Ask otherwise")
        if self._finish is None:
            raise ModelError(f"The answer of {self._name} broke off", hint="Look at the server's log, and ask again")
        self._statistics.seconds = time.perf_counter() - self._started
        cut = self._finish == "length"
        # Of an answer that was cut off, the last call may be a torso.
        calls = [call.finish() for call in self._calls if not cut or call.is_complete()]
        if not cut:
            self._check_end()
        finish: Literal["stop", "calls", "budget", "length"] = "length" if cut else "calls" if calls else "stop"
        if self._cut_short and not cut:
            finish = "budget"
        return Reply(self._text, self._reasoning, calls, finish=finish, statistics=self._statistics)

    def _check_end(self) -> None:
        request = self._request
        if self._calls or not request.constrained:
            return
        if request.tool_choice == "required" and self.tools:
            raise NotEnforcedError(
                f"{self._name} calls no tool, although it must: {self._text[:60]!r}",
                hint="The far end does not enforce tool_choice: see its documentation on tools",
                text=self._text,
            )
        if self._answer is not None:
            check = CheckedText(self._answer, f"The answer of {self._name}")
            check.add(self._text)
            check.finish()


class _WrittenCall:
    """A call on its way. ``grammar``: of its arguments."""

    def __init__(self, model: str, name: str, call_id: str | None, grammar: Grammar) -> None:
        self.name = name
        self.id = call_id
        self._check = CheckedText(grammar, f"{model} calls {name} with arguments whose text", tool=name)

    def add(self, piece: str) -> None:
        self._check.add(piece)

    def is_complete(self) -> bool:
        try:
            self._check.finish()
        except NotEnforcedError:
            return False
        return True

    def finish(self) -> Call:
        if not self._check.text:
            self._check.add("{}")  # how some servers write that there are none
        self._check.finish()
        return Call(self.name, read_json(self._check.text), self.id)


def _compilable(request: Request) -> dict[str, Grammar]:
    """The grammar of each tool's arguments, by name. Raises `SchemaError`, with the field ``tool``, if one cannot be
    compiled."""
    grammars: dict[str, Grammar] = {}
    for tool in request.tools:
        try:
            schema = object_schema(tool.name, tool.parameters) if request.constrained else {"type": "object"}
            grammar = arguments_grammar(schema)
            CheckedText(grammar, "")
        except (SchemaError, ToolError) as error:
            if request.skip_tools:
                continue
            raise error if error.fields.get("tool") else blamed(tool.name, error) from error
        grammars[tool.name] = grammar
    return grammars


def _messages(messages: Iterable[Message]) -> list[Message]:
    """As the API takes them: arguments are JSON text, and each result names its call."""
    result: list[Message] = []
    waiting: list[str] = []  # ids of calls without a result
    count = 0
    for message in messages:
        written = dict(message)
        if message.get("tool_calls"):
            calls: list[dict[str, Any]] = []
            for call in message["tool_calls"]:
                count += 1
                arguments = call["function"]["arguments"]
                text = arguments if isinstance(arguments, str) else write_json(arguments)
                function = {"name": call["function"]["name"], "arguments": text}
                calls.append({"id": call.get("id") or f"call_{count}", "type": "function", "function": function})
            written["tool_calls"] = calls
            waiting = [str(call["id"]) for call in calls]
        elif message["role"] == "tool":
            told = written.get("tool_call_id")
            if told in waiting:
                waiting.remove(told)
            elif told is None and waiting:
                written["tool_call_id"] = waiting.pop(0)
        result.append(written)
    return result


def _wire_form(answer: Grammar) -> tuple[Literal["json", "regex", "grammar"], Any]:
    """A grammar as JSON Schema, regular expression or EBNF. Raises `GrammarError` if it is none that others read."""
    found = answer._json_schema()
    if found is not None:
        if "resources" in json.loads(found[1]):
            raise GrammarError("A schema cannot be sent with its resources", hint="Put them into its $defs")
        return "json", json.loads(found[0])
    match answer._expr:
        case {"regex": {"pattern": str(pattern), **flags}, **others} if not flags and not others:
            return "regex", pattern
    text = str(answer)
    # Outside of literals and classes, an @ begins what only Punchcard reads.
    if "@" in re.sub(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]', "", text):
        raise GrammarError(
            "The grammar has parts that no other engine reads, such as schemas, free text or lookaround",
            hint="Send a JSON Schema, a regular expression in ECMAScript's manner or plain EBNF",
        )
    return "grammar", text


def _is_closed(schema: JsonSchema | bool | Any) -> bool:
    """Whether all objects of a schema are closed and all of their members required, as OpenAI's strict mode wants."""
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(properties) - set(schema.get("required", ())):
            return False
    return all(
        _is_closed(list(value.values()) if keyword in ("properties", "$defs", "definitions") else value)
        for keyword, value in schema.items()
        if keyword not in ("enum", "const", "default", "examples")
    )
