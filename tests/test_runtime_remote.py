"""A model behind an HTTP API: a server in the test answers well, badly and slowly."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("openai", reason="openai is not installed")

from runtime_data import snippet

from punchcard import Grammar, PunchcardError, Tool
from punchcard.chat import Call, Delta, Request, Sampling
from punchcard.errors import GrammarError, ModelError
from punchcard.models import RemoteModel
from punchcard.models.checked import NotEnforcedError, pointer_at

LIGHTS = Tool.from_definition(
    {
        "name": "set_lights",
        "description": "Set a room's lights.",
        "parameters": {
            "type": "object",
            "properties": {
                "room": {"enum": ["kitchen", "hall"]},
                "levels": {"type": "array", "items": {"type": "integer", "maximum": 100}},
            },
            "required": ["room"],
            "additionalProperties": False,
        },
    }
)
CLOSED = Tool.from_definition(
    {
        "name": "open_door",
        "parameters": {
            "type": "object",
            "properties": {"door": {"type": "string"}},
            "required": ["door"],
            "additionalProperties": False,
        },
    }
)
ASK: list[dict[str, Any]] = [{"role": "user", "content": "Dim the kitchen lights"}]
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}},
    "required": ["city"],
    "additionalProperties": False,
}


class Server:
    """Answers each request with ``events``, parts of a stream; a number among them is a pause in seconds."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.status = 200
        self.bodies: list[dict[str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                server.bodies.append({**json.loads(self.rfile.read(size)), "path": self.path})
                self.send_response(server.status)
                if server.status != 200:
                    text = json.dumps({"error": {"message": "no such model", "type": "x", "code": None}}).encode()
                    self.send_header("content-length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                    return
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for event in server.events:
                    if isinstance(event, float):
                        time.sleep(event)
                        continue
                    text = event if isinstance(event, str) else json.dumps(event)
                    try:
                        self.wfile.write(f"data: {text}\n\n".encode())
                        self.wfile.flush()
                    except OSError:
                        return  # the client has heard enough

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def part(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}


def call(index: int, name: str | None, arguments: str, call_id: str | None = None) -> dict[str, Any]:
    return part(
        tool_calls=[{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}],
    )


USAGE = {**part(), "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}}


def remote(server: Server, **options: Any) -> RemoteModel:
    return RemoteModel(server.url, "m", **{"max_retries": 0, "timeout": 5.0, **options})


def ask(server: Server, request: Request, sampling: Sampling = Sampling(), **options: Any) -> Any:  # noqa: B008
    return remote(server, **options).respond(request, sampling)


# Good answers


def test_text_thoughts_and_figures(server: Server) -> None:
    server.events = [part(role="assistant", content=""), part(reasoning="Hm"), part(reasoning_content=", so")]
    server.events += [part(content="It is "), part(content="dark."), part(finish="stop"), USAGE, "[DONE]"]
    told: list[Delta] = []
    reply = remote(server).respond(Request(ASK), on_delta=told.append)
    assert (reply.text, reply.reasoning, reply.finish, reply.calls) == ("It is dark.", "Hm, so", "stop", [])
    assert [(delta.kind, delta.text) for delta in told] == [
        ("reasoning", "Hm"),
        ("reasoning", ", so"),
        ("text", "It is "),
        ("text", "dark."),
    ]
    assert reply.statistics is not None
    assert (reply.statistics.prompt_tokens, reply.statistics.tokens, reply.confidence) == (12, 7, None)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_calls_are_told_and_parsed(server: Server, asynchronous: bool) -> None:
    server.events = [call(0, "set_lights", "", "a"), call(0, None, '{"room": "kit'), call(0, None, 'chen", "levels"')]
    server.events += [call(0, None, ": [10, 2e1]}"), call(1, "open_door", '{"door":"front"}', "b")]
    server.events += [part(finish="tool_calls"), "[DONE]"]
    told: list[Delta] = []
    request = Request(ASK, [LIGHTS, CLOSED])
    if asynchronous:
        reply = asyncio.run(remote(server).arespond(request, on_delta=told.append))
    else:
        reply = remote(server).respond(request, on_delta=told.append)
    assert reply.calls == [
        Call("set_lights", {"room": "kitchen", "levels": [10, 20.0]}, "a"),
        Call("open_door", {"door": "front"}, "b"),
    ]
    assert reply.finish == "calls"
    assert [(delta.kind, delta.text, delta.index, delta.id) for delta in told] == [
        ("call", "set_lights", 0, "a"),
        ("arguments", '{"room": "kit', 0, None),
        ("arguments", 'chen", "levels"', 0, None),
        ("arguments", ": [10, 2e1]}", 0, None),
        ("call", "open_door", 1, "b"),
        ("arguments", '{"door":"front"}', 1, None),
    ]


def test_servers_may_give_all_calls_one_index(server: Server) -> None:
    server.events = [call(0, "open_door", '{"door": "a"}', "x"), call(0, "open_door", '{"door": "b"}', "y")]
    server.events += [part(finish="stop")]
    assert [made.arguments["door"] for made in ask(server, Request(ASK, [CLOSED])).calls] == ["a", "b"]


def test_no_arguments_may_be_no_text(server: Server) -> None:
    server.events = [call(0, "now", "", "x"), part(finish="tool_calls")]
    now = Tool.from_definition({"name": "now"})
    assert ask(server, Request(ASK, [now])).calls == [Call("now", {}, "x")]


def test_an_answer_in_any_spelling_is_valid(server: Server) -> None:
    server.events = [part(content='\n{"days" : [1,\n2],"c\\u0069ty":"Rome"}'), part(finish="stop")]
    reply = ask(server, Request(ASK, answer=Grammar.from_json_schema(WEATHER)))
    assert json.loads(reply.text) == {"city": "Rome", "days": [1, 2]}


def test_what_is_cut_off_keeps_whole_calls(server: Server) -> None:
    server.events = [call(0, "open_door", '{"door": "a"}', "x"), call(1, "open_door", '{"door": "b', "y")]
    server.events += [part(finish="length")]
    reply = ask(server, Request(ASK, [CLOSED]))
    assert (reply.finish, reply.calls) == ("length", [Call("open_door", {"door": "a"}, "x")])


def test_without_constraints_anything_goes(server: Server) -> None:
    server.events = [call(0, "set_lights", '{"room": "moon"}'), part(finish="tool_calls")]
    reply = ask(server, Request(ASK, [LIGHTS], constrained=False, answer=Grammar.from_regex("a")))
    assert reply.calls == [Call("set_lights", {"room": "moon"})]
    assert "strict" not in server.bodies[0]["tools"][0]["function"] and "response_format" not in server.bodies[0]


# Bad answers


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        ('{"room": "cellar"}', "/room"),
        ('{"room": "hall", "levels": [1, 200]}', "/levels/1"),
        ('{"room": "hall", "colour": 1}', ""),
        ('{"levels": []}', ""),
        ('{"room": "hall"', ""),
        ('{"room": "hall"} and more', ""),
        ("[]", ""),
        ("", ""),
    ],
)
def test_arguments_that_break_the_schema(server: Server, arguments: str, pointer: str) -> None:
    server.events = [call(0, "set_lights", arguments[:9], "a"), call(0, None, arguments[9:]), part(finish="tool_calls")]
    with pytest.raises(NotEnforcedError) as caught:
        ask(server, Request(ASK, [LIGHTS]))
    assert (caught.value.tool, caught.value.pointer) == ("set_lights", pointer)
    assert "set_lights" in caught.value.message and "does not enforce" in str(caught.value)
    assert (pointer or "its root") in caught.value.message


@pytest.mark.parametrize(
    ("options", "name", "problem"),
    [
        ({}, "explode", "calls explode, which is not among set_lights, open_door"),
        ({"allowed": ["open_door"]}, "set_lights", "calls set_lights, which is not among open_door"),
        ({"tool_choice": "none"}, "set_lights", "calls set_lights, although it may call nothing"),
    ],
)
def test_calls_of_other_tools(server: Server, options: dict[str, Any], name: str, problem: str) -> None:
    server.events = [call(0, name, '{"room": "hall"}', "a"), part(finish="tool_calls")]
    told: list[Delta] = []
    with pytest.raises(NotEnforcedError, match=problem):
        remote(server).respond(Request(ASK, [LIGHTS, CLOSED], **options), on_delta=told.append)
    assert told == []


@pytest.mark.parametrize("options", [{"parallel": False}, {"max_calls": 1}])
def test_more_calls_than_allowed(server: Server, options: dict[str, Any]) -> None:
    server.events = [call(i, "open_door", '{"door": "a"}', str(i)) for i in range(2)]
    with pytest.raises(NotEnforcedError, match="as number 2"):
        ask(server, Request(ASK, [CLOSED], **options))
    assert server.bodies[0]["parallel_tool_calls"] is False


def test_no_call_where_one_is_required(server: Server) -> None:
    server.events = [part(content="I would rather not"), part(finish="stop")]
    with pytest.raises(NotEnforcedError, match="calls no tool, although it must: 'I would rather not'"):
        ask(server, Request(ASK, [LIGHTS], tool_choice="required"))


@pytest.mark.parametrize(
    ("answer", "text", "pointer"),
    [
        (Grammar.from_json_schema(WEATHER), '{"city": "Rome", "days": [1, "two"]}', "/days/1"),
        (Grammar.from_json_schema(WEATHER), "Rome", ""),
        (Grammar.from_regex("yes|no"), "yess", None),
        (Grammar.from_regex("yes|no"), "y", None),
    ],
)
def test_answers_that_break_the_grammar(server: Server, answer: Grammar, text: str, pointer: str | None) -> None:
    server.events = [part(content=text), part(finish="stop")]
    with pytest.raises(NotEnforcedError, match="The answer of m ") as caught:
        ask(server, Request(ASK, answer=answer), dialect="vllm")
    assert (caught.value.tool, caught.value.pointer) == (None, pointer)


def test_refusals_filters_and_breaks(server: Server) -> None:
    for events, problem in (
        ([part(refusal="I must not"), part(finish="stop")], "refuses to answer: I must not"),
        ([part(content="x"), part(finish="content_filter")], "held back"),
        ([part(content="x")], "broke off"),
        ([{"error": {"message": "out of memory"}}], "out of memory"),
        (["no json"], "no JSON"),
    ):
        server.events = events
        with pytest.raises(ModelError, match=problem):
            ask(server, Request(ASK))


# Servers that fail


def test_slow_servers(server: Server) -> None:
    server.events = [part(content="x"), 1.5, part(finish="stop")]
    for respond in (
        lambda model: model.respond(Request(ASK)),
        lambda model: asyncio.run(model.arespond(Request(ASK))),
    ):
        with pytest.raises(ModelError, match=r"did not answer within 0\.3 seconds"):
            respond(remote(server, timeout=0.3))


def test_a_connection_that_breaks_in_the_middle_is_an_error_of_ours(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.events = [part(content="x"), part(finish="stop")]
    model = remote(server)
    broken = type("ReadError", (Exception,), {"__module__": "httpx2"})("reset")
    slow = type("ReadTimeout", (Exception,), {"__module__": "httpx"})("timed out")
    for error, said in ((broken, "broke: reset"), (slow, "did not answer within")):
        monkeypatch.setattr("punchcard.models.remote._Answer.add", lambda self, part, error=error: raised(error))
        with pytest.raises(ModelError, match=said):
            model.respond(Request(ASK))


def raised(error: Exception) -> None:
    raise error


def test_statuses_say_what_to_do(server: Server) -> None:
    server.status = 404
    with pytest.raises(ModelError, match=r"status 404: .*no such model") as caught:
        ask(server, Request(ASK))
    assert "name of the model" in str(caught.value) and caught.value.fields["status"] == 404


def test_nobody_there() -> None:
    with pytest.raises(ModelError, match="cannot be reached"):
        RemoteModel("http://127.0.0.1:9/v1", "m", max_retries=0).respond(Request(ASK))


def test_no_key_for_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        RemoteModel(None, "gpt")


# What is asked


def sent(server: Server, request: Request, sampling: Sampling = Sampling(), **options: Any) -> dict[str, Any]:  # noqa: B008
    server.events = [part(content="yes"), part(finish="length")]
    ask(server, request, sampling, **options)
    return server.bodies[-1]


def test_fields_of_a_request(server: Server) -> None:
    sampling = Sampling(32, temperature=0.5, top_p=0.9, seed=3, stop=("END",))
    body = sent(server, Request(ASK, [LIGHTS, CLOSED]), sampling, extra_body={"user": "me"})
    tools = body.pop("tools")
    assert body == {
        "path": "/v1/chat/completions",
        "model": "m",
        "messages": ASK,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_completion_tokens": 32,
        "top_p": 0.9,
        "seed": 3,
        "stop": ["END"],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "user": "me",
    }
    assert tools[0] == LIGHTS.definition()  # strict mode takes no schema with optional members
    assert tools[1]["function"] == {**CLOSED.definition()["function"], "strict": True}


NAMED = {"type": "function", "function": {"name": "open_door"}}


@pytest.mark.parametrize(
    ("dialect", "options", "choice", "tools"),
    [
        ("openai", {"tool_choice": "none"}, "none", 2),
        ("openai", {"tool_choice": "required"}, "required", 2),
        ("openai", {"tool_choice": "required", "allowed": ["open_door"]}, NAMED, 2),
        (
            "openai",
            {"allowed": ["open_door"]},
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}},
            2,
        ),
        ("vllm", {"allowed": ["open_door"]}, "auto", 1),
        ("sglang", {"tool_choice": "required", "allowed": ["open_door"]}, NAMED, 2),
    ],
)
def test_tool_choice(server: Server, dialect: Any, options: dict[str, Any], choice: Any, tools: int) -> None:
    body = sent(server, Request(ASK, [LIGHTS, CLOSED], **options), dialect=dialect)
    assert body["tool_choice"] == choice and len(body["tools"]) == tools
    assert dialect == "openai" or all(tool["function"]["strict"] for tool in body["tools"])


SCHEMA = Grammar.from_json_schema(WEATHER)
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": WEATHER, "strict": True}}
REGEX = Grammar.from_regex("yes|no")
EBNF = Grammar.from_ebnf('root ::= "yes" | "no@" [@x]')


@pytest.mark.parametrize(
    ("dialect", "answer", "fields"),
    [
        ("openai", SCHEMA, {"response_format": FORMAT}),
        ("vllm", SCHEMA, {"structured_outputs": {"json": WEATHER}}),
        ("sglang", SCHEMA, {"response_format": FORMAT}),
        ("llama.cpp", SCHEMA, {"response_format": FORMAT}),
        ("vllm", REGEX, {"structured_outputs": {"regex": "yes|no"}}),
        ("sglang", REGEX, {"regex": "yes|no"}),
        ("vllm", EBNF, {"structured_outputs": {"grammar": str(EBNF)}}),
        ("sglang", EBNF, {"ebnf": str(EBNF)}),
        ("llama.cpp", EBNF, {"grammar": str(EBNF)}),
    ],
)
def test_answers_in_each_dialect(server: Server, dialect: Any, answer: Grammar, fields: dict[str, Any]) -> None:
    body = sent(server, Request(ASK, answer=answer), dialect=dialect)
    assert {name: body[name] for name in fields} == fields
    assert not {"response_format", "structured_outputs", "regex", "ebnf", "grammar"} & set(body) - set(fields)


@pytest.mark.parametrize(
    ("dialect", "request_", "sampling"),
    [
        ("openai", Request(ASK, answer=REGEX), Sampling()),
        ("openai", Request(ASK, answer=EBNF), Sampling()),
        ("llama.cpp", Request(ASK, answer=REGEX), Sampling()),
        ("openai", Request(ASK), Sampling(top_k=5)),
    ],
)
def test_what_a_dialect_has_no_words_for(server: Server, dialect: Any, request_: Request, sampling: Sampling) -> None:
    with pytest.raises(PunchcardError, match="has no words for"):
        ask(server, request_, sampling, dialect=dialect)
    assert server.bodies == []


def test_grammars_that_no_other_engine_reads(server: Server) -> None:
    for grammar in (Grammar.union(REGEX, EBNF), Grammar.from_json_schema(WEATHER, resources={"urn:a": True})):
        with pytest.raises(GrammarError):
            ask(server, Request(ASK, answer=grammar), dialect="vllm")
    with pytest.raises(PunchcardError, match="'vlm' is no known dialect"):
        remote(server, dialect="vlm")


def test_tools_that_cannot_be_checked(server: Server) -> None:
    odd = Tool.from_definition({"name": "odd", "parameters": {"type": "object", "$ref": "http://elsewhere/x"}})
    with pytest.raises(PunchcardError, match="The arguments of odd") as caught:
        ask(server, Request(ASK, [odd]))
    assert caught.value.fields["tool"] == "odd" and server.bodies == []
    body = sent(server, Request(ASK, [odd, CLOSED], skip_tools=True))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["open_door"]


@pytest.mark.parametrize(
    ("dialect", "reasoning", "fields"),
    [
        ("openai", False, {"reasoning_effort": "none"}),
        ("vllm", True, {"chat_template_kwargs": {"enable_thinking": True}}),
        ("sglang", False, {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_reasoning(server: Server, dialect: Any, reasoning: bool, fields: dict[str, Any]) -> None:
    body = sent(server, Request(ASK, reasoning=reasoning), dialect=dialect)
    assert {name: body[name] for name in fields} == fields


def test_results_name_their_calls(server: Server) -> None:
    calls = [{"function": {"name": "set_lights", "arguments": {"room": "hall"}}}, {"id": "z", **NAMED}]
    calls[1]["function"] = {"name": "open_door", "arguments": '{"door": "a"}'}
    messages = [
        *ASK,
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "name": "set_lights", "content": "done"},
        {"role": "tool", "name": "open_door", "content": "stuck"},
    ]
    body = sent(server, Request(messages))
    written = body["messages"][1]["tool_calls"]
    assert [(made["id"], made["function"]["arguments"]) for made in written] == [
        ("call_1", '{"room": "hall"}'),
        ("z", '{"door": "a"}'),
    ]
    assert [message.get("tool_call_id") for message in body["messages"]] == [None, None, "call_1", "z"]


def test_the_example_of_the_documents_runs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    import punchcard.models

    class Local(RemoteModel):
        def __init__(self, base_url: str, model: str, **options: Any) -> None:
            assert base_url == "http://localhost:8000/v1"
            super().__init__(server.url, model, **options)

    monkeypatch.setattr(punchcard.models, "RemoteModel", Local)
    server.events = [part(content='{"city": "Paris"}'), part(finish="stop")]
    assert snippet("Servers")["weather"].city == "Paris"
    assert "city" in server.bodies[0]["structured_outputs"]["json"]["properties"]


# Pointers


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("", ""),
        ("{", ""),
        ('{"a', ""),
        ('{"a": ', "/a"),
        ('{"a": 1, "b', ""),
        ('{"a": [1, {"b~/": "x', "/a/1/b~0~1"),
        ('{"a": [1, {"b": "}]"}, ', "/a/2"),
        ('{"a": {"b": 1}, "c\\"": tr', '/c"'),
        ("[[], [", "/1/0"),
        ('{"a": {"b": 1}} ', ""),
        ('{"a": {"b": "x"', "/a"),
        ('{"a": {"b": []', "/a"),
        ('{"a": {"b": 12', "/a/b"),
        ('["x", "y"', ""),
    ],
)
def test_pointers_say_where_a_text_stands(text: str, pointer: str) -> None:
    assert pointer_at(text) == pointer


def test_the_package_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(PunchcardError, match="openai cannot be imported") as caught:
        RemoteModel("http://127.0.0.1:9/v1", "m")
    assert "pip install 'punchcard[remote]'" in str(caught.value)
