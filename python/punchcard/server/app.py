"""The ASGI application: endpoints, and what becomes of errors."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from punchcard.errors import PunchcardError
from punchcard.generation import Model
from punchcard.server.batching import BatchModel
from punchcard.server.bodies import Reader
from punchcard.server.errors import (
    ApiError,
    BadRequest,
    Failed,
    MethodNotAllowed,
    NotFound,
    Unavailable,
    refusal,
)
from punchcard.server.guard import ClientGone, Guard, refuse
from punchcard.server.options import ServerOptions
from punchcard.server.protocol.chat import ChatCompletion, ChatReply, ChatRequest
from punchcard.server.protocol.common import Body, ErrorBody
from punchcard.server.protocol.completions import CompletionReply, CompletionRequest, TextCompletion
from punchcard.server.protocol.responses import Response as ModelResponse
from punchcard.server.protocol.responses import ResponseReply, ResponseRequest
from punchcard.server.scheduler import Update
from punchcard.server.service import Answers, Service, Usage, Work
from punchcard.server.streams import Event, EventStream, event, unless_gone

_LOG = logging.getLogger("punchcard.server")


class Reply(Protocol):
    """Gathers the updates of all answers to a request, and tells them as the events of a stream."""

    def begin(self) -> Iterable[Event]: ...
    def add(self, index: int, update: Update) -> Iterable[Event]: ...
    def end(self, usage: Usage) -> Iterable[Event]: ...
    def fail(self, error: ApiError) -> Iterable[Event]: ...
    def whole(self, usage: Usage) -> BaseModel: ...


class ModelCard(BaseModel):
    id: str
    object: str = "model"
    created: int
    owned_by: str = "punchcard"


class ModelList(BaseModel):
    object: str = "list"
    data: list[ModelCard]


class Health(BaseModel):
    status: str


_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": description}
    for status, description in {
        400: "The request is wrong, or asks for what cannot be done",
        401: "The API key is missing or wrong",
        404: "There is no such model",
        405: "The path has other methods",
        408: "The request did not come in time",
        413: "The request is too large",
        429: "Too many requests wait; the header Retry-After says for how long",
        500: "The server is at fault",
        503: "The server is shutting down, or its compilers are busy",
        504: "The request, or its grammar, took too long",
    }.items()
}
# OpenAPI has no word for a stream of things; each event of it is like this.
_EVENT = {
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}
_STREAM: dict[str, Any] = {"content": {"text/event-stream": {"schema": _EVENT}}}
_ANSWERS: dict[int | str, dict[str, Any]] = {**_ERRORS, 200: _STREAM}


def create_app(model: Model | BatchModel, options: ServerOptions | None = None) -> FastAPI:
    """The application that serves ``model``, which belongs to it until it is shut down.

    It starts and ends with its lifespan; its `Service` is ``app.state.service``.
    """
    options = options or ServerOptions()
    service = Service(model, options)
    reader = Reader(options)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()
        reader.close()

    app = FastAPI(
        title="Punchcard",
        summary="Answers of a language model under schemas and grammars, in the manner of OpenAI's API",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    app.router.route_class = _route_class(reader)
    app.add_middleware(_Counted, service=service)
    app.add_middleware(Guard, options=options)
    _add_error_handlers(app)
    _add_endpoints(app, service, reader)
    return app


def _add_endpoints(app: FastAPI, service: Service, reader: Reader) -> None:
    pieces = service.model.tokenizer_info.tokens
    options = service.options
    vocab_size = service.model.vocab_size

    async def prepare(request: Request, name: str, to_work: Callable[[], Work]) -> Work:
        """What is to be written: in a thread, as there may be much to read in schemas and tools."""
        service.check_model(name)
        work = await reader.lane(await request.body()).run(lambda: to_work().with_key())
        service.check_count(work)
        return work

    @app.post("/v1/chat/completions", response_model=ChatCompletion, responses=_ANSWERS)
    async def chat_completions(body: ChatRequest, request: Request) -> Response:
        """Goes on with a conversation: in words, or with calls of tools, which are never executed here."""
        work = await prepare(request, body.model, lambda: body.to_work(options))
        return await _answer(request, service, work, ChatReply(body, body.model, pieces), bool(body.stream))

    @app.post("/v1/completions", response_model=TextCompletion, responses=_ANSWERS)
    async def completions(body: CompletionRequest, request: Request) -> Response:
        """Goes on with a text."""
        work = await prepare(request, body.model, lambda: body.to_work(options, vocab_size))
        reply = CompletionReply(body, body.model, pieces)
        return await _answer(request, service, work, reply, bool(body.stream))

    @app.post("/v1/responses", response_model=ModelResponse, responses=_ANSWERS)
    async def responses(body: ResponseRequest, request: Request) -> Response:
        """Goes on with a conversation, which the request brings as a whole; nothing is stored."""
        work = await prepare(request, body.model, lambda: body.to_work(options))
        reply = ResponseReply(body, body.model, pieces, options.default_temperature)
        return await _answer(request, service, work, reply, bool(body.stream))

    card = ModelCard(id=service.model_name, created=service.created)

    @app.get("/v1/models", responses={401: _ERRORS[401]})
    async def models() -> ModelList:
        """The model that is served."""
        return ModelList(data=[card])

    @app.get("/v1/models/{id:path}", responses={401: _ERRORS[401], 404: _ERRORS[404]})
    async def model(id: str) -> ModelCard:
        service.check_model(id)
        return card

    @app.get("/health", responses={503: _ERRORS[503]})
    async def health() -> Health:
        """Whether requests are served."""
        if not service.scheduler.alive:
            raise Unavailable("The server does not serve any more")
        return Health(status="ok")

    @app.get(
        "/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, 401: _ERRORS[401]}
    )
    async def metrics() -> Response:
        """What the server has done, for Prometheus."""
        return Response(service.metrics.text(service.scheduler), media_type="text/plain; version=0.0.4")


def _route_class(reader: Reader) -> type[APIRoute]:
    """Routes that read bodies in threads. What FastAPI knows of a body serves the OpenAPI document alone."""

    class Route(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            if self.body_field is None:
                return super().get_route_handler()
            kind = self.body_field.field_info.annotation
            assert isinstance(kind, type) and issubclass(kind, Body)

            async def handle(request: Request) -> Response:
                media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                # A request in another media type is no JSON: this also keeps web pages from calling without preflight.
                if not (media_type.startswith("application/") and media_type.endswith(("/json", "+json"))):
                    raise BadRequest(
                        "The body is not JSON", hint="Send it as application/json", param=None, code="invalid_json"
                    )
                body = await reader.read(await request.body(), kind)
                answer: Response = await self.endpoint(body=body, request=request)
                return answer

            return handle

    return Route


async def _answer(request: Request, service: Service, work: Work, reply: Reply, stream: bool) -> Response:
    """Answers a request, at once or as a stream. Whatever can be refused is refused before a stream begins."""
    if stream:
        answers = await unless_gone(request, lambda: service.answer(work))
        return EventStream(_events(answers, reply), answers.release)

    async def whole() -> BaseModel:
        answers = await service.answer(work)
        try:
            async for index, update in answers.updates():
                for _ in reply.add(index, update):
                    pass  # told to nobody
            return reply.whole(answers.usage)
        finally:
            answers.release()

    answer = await unless_gone(request, whole)
    return _Json(answer)


class _Json(Response):
    """A model as JSON."""

    media_type = "application/json"

    def render(self, content: BaseModel) -> bytes:
        return content.model_dump_json().encode()


async def _events(answers: Answers, reply: Reply) -> AsyncIterator[bytes]:
    """The events of a stream. Its status has been sent, so what goes wrong is an event too."""
    try:
        for told in reply.begin():
            yield event(told)
        async for index, update in answers.updates():
            for told in reply.add(index, update):
                yield event(told)
        for told in reply.end(answers.usage):
            yield event(told)
    except Exception as error:
        for told in reply.fail(_refused(error)):
            yield event(told)


def _refused(error: Exception) -> ApiError:
    """What a client is told of an error; the log has the rest."""
    refused = refusal(error)
    if isinstance(refused, Failed):
        _LOG.error("A request failed", exc_info=error)
    return refused


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404:
            return refuse(NotFound(f"There is nothing at {request.url.path}", code="not_found"))
        if error.status_code == 405:
            answer = refuse(MethodNotAllowed(f"{request.url.path} has no method {request.method}"))
            answer.headers.update(error.headers or {})
            return answer
        if error.status_code < 500:
            return refuse(BadRequest(str(error.detail)))
        return refuse(Failed(str(error.detail)))

    @app.exception_handler(ClientGone)
    async def gone(request: Request, error: ClientGone) -> Response:
        return Response(status_code=499)  # for the log; nobody reads it

    @app.exception_handler(PunchcardError)
    @app.exception_handler(UnicodeEncodeError)
    async def refused(request: Request, error: Exception) -> Response:
        return refuse(_refused(error))

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return refuse(refusal(error))  # the framework logs it


class _Counted:
    """Counts requests by path and status, and how long they take."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._metrics = service.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status = 499

        async def sending(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            # Paths that are not there are told as one, or anybody could fill the memory with their names.
            route = scope.get("route")
            path = getattr(route, "path", "other")
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.request_seconds.labels(path).observe(time.monotonic() - started)
