"""What a server refuses, how it says so, and that nobody holds up anybody."""

from __future__ import annotations

import concurrent.futures
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fake_model import FakeModel, speaker
from server_process import FakeBatchModel, counting, eventually, serving

from punchcard.errors import PunchcardError
from punchcard.server.options import ServerOptions

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

# Compiles for seconds, and then passes a limit.
SLOW = {
    "type": "array",
    "allOf": [{"contains": {"type": "string", "pattern": f"x{i}.*y"}} for i in range(12)],
    "maxItems": 9,
}
GARBLED = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{"}}


def post(server: Any, path: str = "/v1/chat/completions", **body: Any) -> Any:
    headers = body.pop("headers", None)
    if path == "/v1/chat/completions":
        body = {"model": "fake", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 8, **body}
    return httpx.post(f"{server.url}{path}", json=body, headers=headers, timeout=60)


def error(answer: Any) -> Any:
    body = answer.json()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return body["error"]


def state(server: Any) -> tuple[int, int]:
    now = server.service.scheduler.state
    return now.running, now.waiting


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with serving(FakeBatchModel(counting), ServerOptions(max_tokens=100)) as running:
        yield running


@pytest.mark.parametrize(
    ("body", "param", "code", "says"),
    [
        ({"messages": []}, "messages", "invalid_value", "at least 1"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", None, "no content"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role", "invalid_value", "'system'"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content[0].type",
            "invalid_value",
            "'text'",
        ),
        ({"temperature": 3}, "temperature", "invalid_value", "less than or equal to 2"),
        ({"temperature": "1"}, "temperature", "invalid_value", "number"),
        ({"top_p": 0}, "top_p", "invalid_value", "greater than 0"),
        ({"top_k": 0}, "top_k", None, "-1"),
        ({"n": 9}, "n", None, "at most 8"),
        ({"max_tokens": 0}, "max_tokens", "invalid_value", "greater than or equal to 1"),
        ({"max_tokens": 101}, "max_tokens", "max_tokens_too_large", "at most 100"),
        ({"max_completion_tokens": 101}, "max_completion_tokens", "max_tokens_too_large", "at most 100"),
        ({"frequency_penalty": 0.5}, "frequency_penalty", "unsupported_parameter", "not supported"),
        ({"presence_penalty": 0.5}, "presence_penalty", "unsupported_parameter", "not supported"),
        ({"logit_bias": {"5": 1}}, "logit_bias", "unsupported_parameter", "structured_outputs"),
        ({"functions": [{"name": "f"}]}, "functions", "unsupported_parameter", "tools"),
        ({"modalities": ["audio"]}, "modalities", "unsupported_parameter", "text"),
        ({"verbosity": "low"}, "verbosity", "unsupported_parameter", "system message"),
        ({"nonsense": 1}, "nonsense", "invalid_value", "not permitted"),
        ({"chat_template_kwargs": {"x": 1}}, "chat_template_kwargs.x", "invalid_value", "not permitted"),
        ({"top_logprobs": 3}, "top_logprobs", None, "logprobs"),
        ({"stream_options": {"include_usage": True}}, "stream_options", None, "stream"),
        ({"tool_choice": "required"}, "tool_choice", None, "no tools"),
        (
            {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": True}},
            "reasoning_effort",
            None,
            "contradict",
        ),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type", "invalid_value", "'function'"),
        (
            {"tools": [{"type": "function", "function": {"name": "two words"}}]},
            "tools[0].function.name",
            "invalid_value",
            "pattern",
        ),
        ({"tools": [{"type": "function", "function": {"name": "f"}}] * 2}, "tools", None, "Two tools"),
        ({"response_format": {"type": "yaml"}}, "response_format", "invalid_value", "json_schema"),
        ({"messages": [{"role": "user", "content": "x" * 5000}]}, None, "context_length_exceeded", "4096"),
    ],
)
def test_refusals_name_the_field(server: Any, body: Any, param: str, code: str | None, says: str) -> None:
    answer = post(server, **body)
    told = error(answer)
    assert answer.status_code == 400
    assert (told["param"], told["code"]) == (param, code)
    assert told["type"] == "invalid_request_error"
    assert says in told["message"]


CALLED = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"const": "x" * 30}}}}}


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 5}, "max_tokens"),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": "x"}], "max_completion_tokens": 5},
            "max_completion_tokens",
        ),
        ("completions", {"prompt": "x", "max_tokens": 5}, "max_tokens"),
        ("responses", {"input": "x", "max_output_tokens": 5}, "max_output_tokens"),
    ],
)
def test_too_few_tokens_are_told_in_the_words_of_the_request(server: Any, path: str, body: Any, param: str) -> None:
    constrained = {"structured_outputs": {"json": {"const": "x" * 30}}}
    answer = post(server, f"/v1/{path}", model="fake", **body, **constrained)
    told = error(answer)
    assert answer.status_code == 400
    assert (told["param"], told["code"]) == (param, "max_tokens_too_small")
    assert (
        told["message"]
        == f"{param} is 5; a complete answer takes at least 32. Raise {param}, or make the schema simpler"
    )


def test_too_few_tokens_that_nobody_has_named(server: Any) -> None:
    body = {"model": "fake", "input": "x", "structured_outputs": {"json": {"const": "x" * 200}}}
    told = error(post(server, "/v1/responses", **body))
    assert (told["param"], told["code"]) == (None, "max_tokens_too_small")
    assert "at most 100 tokens" in told["message"]


def test_too_little_room_after_the_prompt(server: Any) -> None:
    messages = [{"role": "user", "content": "x" * 4000}]
    told = error(post(server, messages=messages, max_tokens=90, structured_outputs={"json": {"const": "x" * 85}}))
    assert told["code"] == "max_tokens_too_small"
    assert "The prompt leaves room for" in told["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": "x " * 1_000_000}]}),
        ("chat/completions", {"messages": [{"role": "user", "content": "x"}] * 10_000}),
        ("chat/completions", {"messages": [{"role": "user", "content": "x " * 1_000_000}], "tools": [CALLED]}),
        ("completions", {"prompt": "x " * 1_000_000}),
        ("responses", {"input": "x " * 1_000_000, "structured_outputs": {"json": {}}}),
    ],
)
def test_a_prompt_that_is_far_too_long_is_no_fault_of_the_grammar(server: Any, path: str, body: Any) -> None:
    answer = post(server, f"/v1/{path}", model="fake", **body)
    told = error(answer)
    assert answer.status_code == 400
    assert told["code"] == "context_length_exceeded"
    assert "room for 4096" in told["message"]
    assert "grammar" not in told["message"]


def test_answers_without_number(server: Any) -> None:
    for n in (9, 10**9, 10**18):
        assert error(post(server, n=n))["param"] == "n"
    told = error(post(server, "/v1/completions", model="fake", prompt=["x"] * 9))
    assert told["param"] == "prompt"


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, BaseException, MemoryError, RecursionError])
def test_whatever_preparing_raises_is_the_fault_of_one_request(
    server: Any, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    from punchcard.server import service

    def fail(*_: Any, **__: Any) -> Any:
        raise raised("broken")

    monkeypatch.setattr(service, "make_plan", fail)
    failed = post(server)
    assert failed.status_code == (503 if raised is MemoryError else 500)
    assert "broken" not in failed.text
    monkeypatch.undo()
    assert post(server).status_code == 200


@pytest.mark.parametrize(
    ("content", "kind", "says"),
    [
        (b"{", "application/json", "not JSON"),
        (b"", "application/json", "JSON"),
        (b"[1]", "application/json", "dictionary"),
        (b'{"a": 1}', "text/plain", "application/json"),
        (b"\xff\xfe", "application/json", "JSON"),
        (b"[" * 100_000, "application/json", "JSON"),
        (b'{"model": "fake", "messages": [{"role": "user", "content": "\\ud800"}]}', "application/json", "surrogate"),
        (
            b'{"model": "fake", "messages": [{"role": "user", "content": "x"}], "top_p": NaN}',
            "application/json",
            "top_p",
        ),
    ],
)
def test_bodies_that_cannot_be_read(server: Any, content: bytes, kind: str, says: str) -> None:
    answer = httpx.post(f"{server.url}/v1/chat/completions", content=content, headers={"content-type": kind})
    assert answer.status_code == 400
    assert says in error(answer)["message"]


def test_paths_and_methods(server: Any) -> None:
    assert httpx.get(f"{server.url}/v1/chat/completions").status_code == 405
    assert error(httpx.get(f"{server.url}/v1/chat/completions"))["message"].endswith("has no method GET")
    assert httpx.post(f"{server.url}/health").headers["allow"] == "GET"
    absent = httpx.get(f"{server.url}/v1/embeddings")
    assert absent.status_code == 404
    assert error(absent)["code"] == "not_found"
    wrong = post(server, model="gpt-2")
    assert wrong.status_code == 404
    assert error(wrong)["code"] == "model_not_found"
    assert "'fake'" in error(wrong)["message"]


def test_the_server_says_how_it_is(server: Any) -> None:
    assert httpx.get(f"{server.url}/health").json() == {"status": "ok"}
    assert "/v1/responses" in httpx.get(f"{server.url}/openapi.json").json()["paths"]


def test_a_large_request() -> None:
    with serving(FakeBatchModel(counting), ServerOptions(max_request_bytes=2000)) as server:
        small = post(server)
        assert small.status_code == 200
        large = post(server, messages=[{"role": "user", "content": "x" * 2000}])
        assert large.status_code == 413
        assert error(large)["code"] == "request_too_large"

        def chunks() -> Iterator[bytes]:
            for _ in range(100):
                yield b" " * 100

        unknown = httpx.post(
            f"{server.url}/v1/chat/completions", content=chunks(), headers={"content-type": "application/json"}
        )
        assert unknown.status_code == 413


def test_a_large_schema() -> None:
    with serving(FakeBatchModel(counting), ServerOptions(max_schema_bytes=500)) as server:
        schema = {"enum": ["x" * 600]}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        told = error(post(server, response_format=form))
        assert (told["code"], told["param"]) == ("limit_exceeded", "response_format.json_schema.schema")
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        assert error(post(server, tools=[tool]))["param"] == "tools[0].function.parameters"
        assert error(post(server, structured_outputs={"regex": "x" * 600}))["param"] == "structured_outputs.regex"


def test_too_many_requests() -> None:
    model = FakeBatchModel(counting, seconds=0.01)
    with serving(model, ServerOptions(slots=1, queue=2)) as server, concurrent.futures.ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(post, server, max_tokens=60) for _ in range(3)]
        assert eventually(lambda: state(server) == (1, 2))
        refused = post(server)
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert error(refused)["code"] == "queue_full"
        assert [answer.result().status_code for answer in waiting] == [200] * 3
        assert post(server).status_code == 200


def test_a_request_that_takes_too_long() -> None:
    model = FakeBatchModel(counting, seconds=0.02)
    with serving(model, ServerOptions(request_seconds=1)) as server:
        late = post(server, max_tokens=1000)
        assert late.status_code == 504
        assert error(late)["type"] == "timeout_error"
        lines = post(server, max_tokens=1000, stream=True).text.strip().split("\n\n")
        assert len(lines) > 10
        assert json.loads(lines[-1].removeprefix("data: "))["error"]["type"] == "timeout_error"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_frees_its_slot(stream: bool) -> None:
    model = FakeBatchModel(counting, seconds=0.005)
    with serving(model, ServerOptions(slots=1)) as server:
        body = json.dumps(
            {
                "model": "fake",
                "messages": [{"role": "user", "content": "hi"}],
                "max_tokens": 4000,
                "stream": stream,
            }
        ).encode()
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            connection.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            assert eventually(lambda: state(server) == (1, 0) and len(model.batches) > 5)
        assert eventually(lambda: state(server) == (0, 0), seconds=2)
        passes = len(model.batches)
        assert passes < 1000
        assert post(server).status_code == 200
        assert 'punchcard_answers_total{finish="cancelled"} 1.0' in httpx.get(f"{server.url}/metrics").text


def test_a_slow_schema_holds_nobody_up() -> None:
    options = ServerOptions(compile_seconds=4)
    model = FakeBatchModel(counting, seconds=0.001)
    with serving(model, options) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        slow = pool.submit(post, server, structured_outputs={"json": SLOW})
        time.sleep(0.3)
        answered = 0
        while not slow.done():
            assert post(server, structured_outputs={"json": {"type": "integer"}}).status_code == 200
            assert post(server).status_code == 200
            answered += 2
        assert answered >= 4
        # Which of its limits it meets first depends on the machine.
        assert slow.result().status_code in (400, 504)
        assert error(slow.result())["code"] in ("limit_exceeded", "compile_timeout")


def test_a_schema_that_is_not_compiled_in_time() -> None:
    options = ServerOptions(compile_seconds=1, compile_threads=1)
    with serving(FakeBatchModel(counting), options) as server:
        for _ in range(2):
            slow = post(server, structured_outputs={"json": SLOW})
            assert slow.status_code == 504
            assert error(slow)["code"] == "compile_timeout"
            # The one compiler has given it up, and is there for others.
            assert post(server, structured_outputs={"json": {"type": "integer"}}).status_code == 200
            assert post(server).status_code == 200


@pytest.fixture(scope="module")
def guarded() -> Iterator[Any]:
    with serving(FakeBatchModel(counting), ServerOptions(api_key="geheim-é")) as running:
        yield running


class TestKeys:
    @pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/openapi.json", "/v1/nothing"])
    @pytest.mark.parametrize("key", [None, "Bearer", "Bearer wrong", "Basic geheim-é", "geheim-é"])
    def test_without_the_key(self, guarded: Any, path: str, key: str | None) -> None:
        headers = {} if key is None else {"authorization": key.encode()}
        answer = httpx.get(f"{guarded.url}{path}", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert error(answer)["code"] == "invalid_api_key"

    def test_with_the_key(self, guarded: Any) -> None:
        headers = {"authorization": "Bearer geheim-é".encode()}
        assert httpx.get(f"{guarded.url}/v1/models", headers=headers).status_code == 200
        assert post(guarded, headers=headers).status_code == 200

    def test_whoever_looks_after_the_server_has_none(self, guarded: Any) -> None:
        assert httpx.get(f"{guarded.url}/health").status_code == 200


def test_only_the_names_of_this_machine() -> None:
    with serving(FakeBatchModel(counting), ServerOptions(hosts=("localhost", "127.0.0.1", "::1"))) as server:
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert httpx.get(f"{server.url}/health", headers={"host": "localhost:80"}).status_code == 200
        wrong = httpx.get(f"{server.url}/health", headers={"host": "evil.example"})
        assert wrong.status_code == 400
        assert error(wrong)["code"] == "wrong_host"


def test_a_model_that_fails() -> None:
    model = FakeBatchModel(counting)
    with serving(model) as server:
        model.failing = True
        failed = post(server)
        assert failed.status_code == 500
        # What went wrong inside is nobody's business outside.
        assert "memory" not in failed.text
        model.failing = False
        assert post(server).status_code == 200


def test_a_step_model_is_served_one_request_at_a_time() -> None:
    with serving(FakeModel(speaker("Good morning"))) as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert server.service.slots == 1
        answers = list(pool.map(lambda _: post(server, max_tokens=50, temperature=0), range(4)))
        contents = [answer.json()["choices"][0]["message"]["content"] for answer in answers]
        assert contents == ["Good morning"] * 4


def test_a_stream_ends_with_done(server: Any) -> None:
    answer = post(server, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("data: [DONE]\n\n")
    typed = post(server, "/v1/responses", model="fake", input="hi", stream=True, max_output_tokens=3)
    assert typed.text.startswith("event: response.created\ndata: {")
    assert "[DONE]" not in typed.text


def test_limits_are_positive() -> None:
    with pytest.raises(PunchcardError, match="slots is 0"):
        ServerOptions(slots=0)


@pytest.mark.parametrize("arguments", ["{", "", "[1]", "null", "[" * 1200, '{"a":' * 400 + "1" + "}" * 400])
def test_malformed_arguments_in_the_history_are_no_reason_to_refuse(server: Any, arguments: str) -> None:
    call = {**GARBLED, "function": {"name": "f", "arguments": arguments}}
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]}]
    turns += [{"role": "tool", "tool_call_id": "1", "content": "no"}, {"role": "user", "content": "again"}]
    answer = post(server, messages=turns)
    assert answer.status_code == 200, answer.text
