"""What clients are told of a wrong body: the field, by its JSON path, and what to do; at little cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastapi")

from punchcard.server.bodies import parse
from punchcard.server.errors import BadRequest
from punchcard.server.protocol.chat import ChatRequest
from punchcard.server.protocol.common import Body
from punchcard.server.protocol.completions import CompletionRequest
from punchcard.server.protocol.responses import ResponseRequest

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
MOST_VALUES = 200_000


def refused(kind: type[Body], body: Any) -> BadRequest:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(BadRequest) as caught:
        parse(data, kind, MOST_VALUES)
    return caught.value


def part(**fields: Any) -> dict[str, Any]:
    return {"messages": [USER, {"role": "user", "content": [{"type": "text", "text": "x"}, fields]}]}


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        (part(type="text", text="x", cache_control={}), "messages[1].content[1].cache_control", "not permitted"),
        (part(type="text"), "messages[1].content[1].text", "required"),
        (part(type="refusal", text="x"), "messages[1].content[1].text", "not permitted"),
        (part(type="image_url", image_url={}), "messages[1].content[1].type", "'text' or 'refusal'"),
        (part(text="x"), "messages[1].content[1].type", "'text' or 'refusal'"),
        (
            {"messages": [{"role": "user", "content": ["x"]}]},
            "messages[0].content[0]",
            '{"type": "text", "text": "..."}',
        ),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "string"),
        ({"messages": [{**USER, "cache_control": {}}]}, "messages[0].cache_control", "not permitted"),
        ({"messages": [{**USER, "contents": "x"}]}, "messages[0].contents", "Did you mean content?"),
        ({"messages": [{"content": "x"}]}, "messages[0].role", "required"),
        ({"messages": ["hi"]}, "messages[0]", '{"role": "user"'),
        ({"messages": "hi"}, "messages", "list"),
        ({"tool_choice": "f"}, "tool_choice", '{"type": "function", "function": {"name": "..."}}'),
        ({"tool_choice": "any"}, "tool_choice", "'none', 'auto' or 'required'"),
        ({"tool_choice": {"name": "f"}}, "tool_choice.type", "'function' or 'allowed_tools'"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice.name", '"function": {"name": "..."}'),
        ({"tool_choice": {"type": "tool", "name": "f"}}, "tool_choice.type", "'function' or 'allowed_tools'"),
        ({"tool_choice": 5}, "tool_choice", "'none', 'auto' or 'required'"),
        ({"tools": [TOOL, TOOL["function"]]}, "tools[1].type", "'function'"),
        ({"tools": TOOL}, "tools", "list"),
        ({"tools": [{"type": "function", "name": "f"}]}, "tools[0].name", '"function": {"name": "..."'),
        ({"max_token": 5}, "max_token", "Did you mean max_tokens?"),
        ({"max_output_tokens": 5}, "max_output_tokens", "Did you mean"),
        ({"input": "x"}, "input", "sent as messages"),
        ({"response_format": {}}, "response_format", "type is missing"),
        ({"response_format": "json"}, "response_format", "json_schema"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "required"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schemas": {}}}},
            "response_format.json_schema.schemas",
            "Did you mean schema?",
        ),
        ({"structured_outputs": {"choices": ["a"]}}, "structured_outputs.choices", "Did you mean choice?"),
        ({"metadata": {"a": 1}}, "metadata.a", "string"),
        ({"stop": [""]}, "stop[0]", "at least 1 character"),
        ({"k" * 1000: 1}, f"{'k' * 100}...", "not permitted"),
    ],
)
def test_chat(body: dict[str, Any], param: str, says: str) -> None:
    error = refused(ChatRequest, {"model": "m", "messages": [USER], **body})
    assert error.param == param
    assert str(error).startswith(f"{param}: ")
    assert says in str(error)


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ({"input": []}, "input", "at least 1 item"),
        ({"input": []}, "input", "Send a text, or a list of items"),
        ({"input": 5}, "input", "Send a text, or a list of items"),
        ({"input": ["x"]}, "input[0]", "object"),
        ({"input": [USER, {"type": "computer_call"}]}, "input[1].type", "'function_call_output' or 'reasoning'"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type", "'message', 'function_call'"),
        ({"input": [{"content": "x"}]}, "input[0].role", "required"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role", "'user', 'assistant'"),
        ({"input": [{"role": "user", "content": [{"type": "text"}]}]}, "input[0].content[0].type", "'input_text'"),
        ({"input": [{"role": "user", "content": "x", "cache_control": {}}]}, "input[0].cache_control", "not permitted"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "f"}]}, "input[0].arguments", "required"),
        ({"messages": [USER]}, "messages", "sent as input"),
        ({"response_format": {"type": "text"}}, "response_format", "text.format"),
        ({"max_tokens": 5}, "max_tokens", "Did you mean max_output_tokens?"),
        ({"tools": [TOOL]}, "tools[0].function", '{"type": "function", "name": "..."'),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "'function'"),
        ({"tool_choice": "f"}, "tool_choice", '{"type": "function", "name": "..."}'),
        ({"text": {"format": {"type": "json_schema", "json_schema": {}}}}, "text.format.json_schema", "schema?"),
    ],
)  # fmt: skip
def test_responses(body: dict[str, Any], param: str, says: str) -> None:
    error = refused(ResponseRequest, {"model": "m", "input": "x", **body})
    assert error.param == param
    assert says in str(error)


@pytest.mark.parametrize(
    ("prompt", "param"), [([], "prompt"), (5, "prompt"), ([1, "a"], "prompt[1]"), ([[1], []], "prompt[0]")]
)
def test_completions(prompt: Any, param: str) -> None:
    error = refused(CompletionRequest, {"model": "m", "prompt": prompt})
    assert error.param == param
    assert "token ids" in str(error)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "line 1, column 1"),
        (b'{\n "model": }', "line 2, column 11"),
        (b"\xff", "UTF-8"),
        (b"[" * 100_000, "too deeply"),
        (b'{"model": 1' + b"1" * 100_000 + b"}", "too many digits"),
    ],
)
def test_what_is_not_json(body: bytes, says: str) -> None:
    error = refused(ChatRequest, body)
    assert error.code == "invalid_json"
    assert says in str(error)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"metadata": {"a": "\ud800"}}, "metadata.a"),
        ({"messages": [USER, {"role": "user", "content": "x\udfff"}]}, "messages[1].content"),
        ({"metadata": {"\ud800": "a"}}, "metadata"),
        ({"user": "\ude00\ud83d"}, "user"),
        ({"\udc00": 1}, None),
        ({"structured_outputs": {"json": {"enum": ["\ud800"]}}}, "structured_outputs.json.enum[0]"),
    ],
)  # fmt: skip
def test_half_a_surrogate_pair(body: dict[str, Any], param: str | None) -> None:
    error = refused(ChatRequest, {"model": "m", "messages": [USER], **body})
    assert (error.param, error.code) == (param, "invalid_text")
    assert "surrogate" in str(error)


def test_whole_surrogate_pairs_are_characters() -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "\\ud83d\\ude00"}]}'
    assert parse(body, ChatRequest, MOST_VALUES).messages[0].content == "\U0001f600"


def test_a_body_of_too_many_values() -> None:
    error = refused(ChatRequest, b'{"model": [' + b"1," * MOST_VALUES + b"1]}")
    assert error.code == "limit_exceeded"
    assert f"at most {MOST_VALUES}" in str(error)


def test_text_is_not_counted_as_values() -> None:
    text = 'a, [b], {c}: \\" ' * MOST_VALUES
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    assert parse(body, ChatRequest, MOST_VALUES).messages[0].content == text


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [USER], **{f"k{i}": i for i in range(100_000)}},
        {"messages": [{"contents": "x"}] * 60_000},
        {"messages": [{"role": "user", "content": [{"type": "x"}] * 60_000}]},
        {"messages": [USER], "metadata": {f"k{i}": i for i in range(100_000)}},
        {"messages": [USER], "logit_bias": {f"k{i}": "x" for i in range(100_000)}},
        {"messages": [USER], "stop": [5] * 100_000},
        {"messages": [USER], "tools": [{"type": "x"}] * 60_000},
        {"messages": [USER], "tool_choice": {f"k{i}": i for i in range(100_000)}},
        {"messages": [USER], "structured_outputs": {f"k{i}": i for i in range(100_000)}},
    ],
)
def test_few_faults_are_looked_at(body: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from punchcard.server import bodies

    looked_at: list[int] = []

    def counted(errors: Any, *rest: Any) -> BadRequest:
        looked_at.append(len(errors))
        return BadRequest("wrong")

    monkeypatch.setattr(bodies, "explain", counted)
    refused(ChatRequest, {"model": "m", **body})
    assert looked_at[0] < 20
