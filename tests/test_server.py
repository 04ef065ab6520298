"""A real server with a real model, asked by OpenAI's own client."""

from __future__ import annotations

import concurrent.futures
import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from server_process import serving

from punchcard.errors import PunchcardError

httpx = pytest.importorskip("httpx")
openai = pytest.importorskip("openai")
pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

MODEL = "smollm2-135m"
LIGHTS = {
    "name": "set_lights",
    "description": "Turn the lights of a room on, off, up or down.",
    "parameters": {
        "type": "object",
        "properties": {
            "room": {"type": "string", "enum": ["kitchen", "bedroom", "office"]},
            "brightness": {"type": "integer", "minimum": 0, "maximum": 100},
        },
        "required": ["room", "brightness"],
        "additionalProperties": False,
    },
}
ALARM = {
    "name": "set_alarm",
    "description": "Set an alarm.",
    "parameters": {
        "type": "object",
        "properties": {"hour": {"type": "integer", "minimum": 0, "maximum": 23}},
        "required": ["hour"],
        "additionalProperties": False,
    },
}
TOOLS: Any = [{"type": "function", "function": function} for function in (LIGHTS, ALARM)]
DIM: Any = [{"role": "user", "content": "Dim the kitchen lights to 10%"}]
MISSPELT = {"properties": {"a": {"type": "integr"}}}
HELLO: Any = [{"role": "user", "content": "Say hello."}]


class Weather(BaseModel):
    city: Literal["Paris", "Oslo"]
    celsius: int


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    core = pytest.importorskip("punchcard._core")
    if not hasattr(core, "LocalRuntime"):
        pytest.skip("built without the local runtime")
    from punchcard.models import LocalModel
    from punchcard.server.options import ServerOptions

    try:
        model = LocalModel.load(MODEL)
    except PunchcardError as error:
        pytest.skip(str(error))
    with serving(model, ServerOptions(max_tokens=300, slots=4)) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Any) -> Any:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def chat(client: Any, messages: Any = HELLO, **options: Any) -> Any:
    options = {"max_tokens": 24, "temperature": 0, **options}
    return client.chat.completions.create(model=MODEL, messages=messages, **options)


class TestChat:
    def test_words(self, client: Any) -> None:
        answer = chat(client)
        choice = answer.choices[0]
        assert answer.model == MODEL
        assert answer.object == "chat.completion"
        assert choice.message.role == "assistant"
        assert len(choice.message.content) > 10
        assert choice.message.tool_calls is None
        assert choice.finish_reason in ("stop", "length")
        assert 0 < answer.usage.completion_tokens <= 24
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens

    def test_a_stream_brings_the_same_words(self, client: Any) -> None:
        whole = chat(client)
        chunks = list(chat(client, stream=True, stream_options={"include_usage": True}))
        assert chunks[0].choices[0].delta.role == "assistant"
        assert (
            "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == whole.choices[0].message.content
        )
        assert [chunk.choices[0].finish_reason for chunk in chunks[-2:-1]] == [whole.choices[0].finish_reason]
        assert chunks[-1].choices == []
        assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
        assert all(chunk.usage is None for chunk in chunks[:-1])
        assert len({chunk.id for chunk in chunks}) == 1

    def test_a_prompt_is_read_once(self, client: Any) -> None:
        chat(client, [{"role": "user", "content": "What is the colour of the sky at noon?"}], max_tokens=4)
        answer = chat(client, [{"role": "user", "content": "What is the colour of the sky at noon?"}], max_tokens=4)
        details = answer.usage.prompt_tokens_details
        assert details.cached_tokens == answer.usage.prompt_tokens - 1

    def test_several_answers(self, client: Any) -> None:
        answer = chat(client, n=3, temperature=1, seed=5, max_tokens=12)
        assert [choice.index for choice in answer.choices] == [0, 1, 2]
        assert len({choice.message.content for choice in answer.choices}) == 3
        assert answer.usage.completion_tokens > answer.choices[0].index
        chunks = list(chat(client, n=3, temperature=1, seed=5, max_tokens=12, stream=True))
        told = ["", "", ""]
        for chunk in chunks:
            told[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        assert all(told)

    def test_a_seed_repeats_an_answer(self, client: Any) -> None:
        def answer(seed: int) -> str:
            return str(chat(client, temperature=1, top_p=0.9, seed=seed, max_tokens=16).choices[0].message.content)

        answer(7)  # from now on the prompt is in a slot, and every answer is computed alike
        assert answer(7) == answer(7)
        assert answer(7) != answer(8)
        assert answer(-7) == answer(-7)

    def test_stop_texts(self, client: Any) -> None:
        whole = chat(client).choices[0].message.content
        stop = whole[5:9]
        answer = chat(client, stop=[stop, "never"]).choices[0]
        assert answer.message.content == whole[: whole.index(stop)]
        assert answer.finish_reason == "stop"
        chunks = chat(client, stop=stop, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == answer.message.content

    def test_log_probabilities(self, client: Any) -> None:
        choice = chat(client, logprobs=True, top_logprobs=3, max_tokens=6).choices[0]
        tokens = choice.logprobs.content
        assert "".join(token.token for token in tokens) == choice.message.content
        for token in tokens:
            assert bytes(token.bytes).decode() == token.token
            assert token.logprob <= 0
            assert len(token.top_logprobs) == 3
            # Greedily, the token is the likeliest one.
            assert token.top_logprobs[0].token == token.token
            assert token.top_logprobs[0].logprob == pytest.approx(token.logprob)
        streamed = [
            token
            for chunk in chat(client, logprobs=True, top_logprobs=3, max_tokens=6, stream=True)
            if chunk.choices[0].logprobs
            for token in chunk.choices[0].logprobs.content
        ]
        assert [token.token for token in streamed] == [token.token for token in tokens]

    def test_parts_and_roles(self, client: Any) -> None:
        plain = chat(client, [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello there"}])
        parts = [{"type": "text", "text": "Hello "}, {"type": "text", "text": "there"}]
        developer = chat(client, [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}])
        assert developer.usage.prompt_tokens == plain.usage.prompt_tokens
        assert developer.choices[0].message.content == plain.choices[0].message.content

    def test_what_changes_nothing_is_taken(self, client: Any) -> None:
        answer = chat(
            client,
            user="somebody",
            metadata={"a": "b"},
            store=False,
            service_tier="auto",
            frequency_penalty=0,
            presence_penalty=0,
            logit_bias={},
            max_tokens=2,
            extra_body={"repetition_penalty": 1.0, "min_p": 0, "top_k": 40},
        )
        assert answer.choices[0].message.content


class TestTools:
    def test_a_required_call(self, client: Any) -> None:
        choice = chat(
            client, DIM, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_tokens=60
        ).choices[0]
        (call,) = choice.message.tool_calls
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content is None
        assert call.type == "function"
        assert call.id.startswith("call_")
        _check_call(call.function.name, call.function.arguments)

    @pytest.mark.parametrize(
        "choice",
        [
            {"type": "function", "function": {"name": "set_alarm"}},
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "set_alarm"}}],
                },
            },
        ],
    )
    def test_a_named_call(self, client: Any, choice: Any) -> None:
        parallel = choice["type"] == "function"  # a certain function is called once
        answer = chat(
            client, DIM, tools=TOOLS, tool_choice=choice, parallel_tool_calls=parallel, max_tokens=60
        ).choices[0]
        assert [call.function.name for call in answer.message.tool_calls] == ["set_alarm"]
        _check_call("set_alarm", answer.message.tool_calls[0].function.arguments)

    def test_no_call(self, client: Any) -> None:
        choice = chat(client, DIM, tools=TOOLS, tool_choice="none").choices[0]
        assert choice.message.tool_calls is None
        assert choice.message.content

    def test_calls_or_words(self, client: Any) -> None:
        choice = chat(client, DIM, tools=TOOLS, max_tokens=80, temperature=0).choices[0]
        for call in choice.message.tool_calls or ():
            _check_call(call.function.name, call.function.arguments)
        assert choice.message.tool_calls or choice.message.content

    def test_a_call_is_streamed_in_pieces(self, client: Any) -> None:
        options: Any = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 60}
        whole = chat(client, DIM, **options).choices[0].message.tool_calls[0].function
        chunks = [chunk.choices[0] for chunk in chat(client, DIM, stream=True, **options)]
        pieces = [piece for chunk in chunks for piece in chunk.delta.tool_calls or ()]
        assert pieces[0].function.name == whole.name
        assert pieces[0].id
        assert all(piece.id is None and piece.index == 0 for piece in pieces[1:])
        assert len(pieces) > 4
        assert "".join(piece.function.arguments for piece in pieces) == whole.arguments
        assert chunks[-1].finish_reason == "tool_calls"

    def test_the_result_of_a_call_goes_back(self, client: Any) -> None:
        call = {"id": "call_1", "type": "function", "function": {"name": "set_alarm", "arguments": '{"hour": 7}'}}
        messages: Any = [
            {"role": "user", "content": "Wake me at seven"},
            {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None, "annotations": []},
            {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        ]
        answer = chat(client, messages, tools=TOOLS, tool_choice="none")
        assert answer.choices[0].message.content
        assert answer.choices[0].message.tool_calls is None


def _check_call(name: str, arguments: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = {"set_lights": LIGHTS, "set_alarm": ALARM}[name]["parameters"]
    jsonschema.validate(json.loads(arguments), schema)


class TestConstraints:
    def test_a_parsed_model(self, client: Any) -> None:
        answer = client.chat.completions.parse(
            model=MODEL,
            messages=[{"role": "user", "content": "Weather in Paris?"}],
            response_format=Weather,
            max_tokens=40,
        )
        parsed = answer.choices[0].message.parsed
        assert isinstance(parsed, Weather)
        assert answer.choices[0].finish_reason == "stop"

    def test_few_tokens_still_make_a_whole_document(self, client: Any) -> None:
        schema = {"type": "object", "properties": {"story": {"type": "string"}}, "required": ["story"]}
        form = {"type": "json_schema", "json_schema": {"name": "story", "schema": schema}}
        choice = chat(client, response_format=form, max_tokens=12).choices[0]
        assert (choice.finish_reason, choice.stop_reason) == ("stop", "budget")
        assert list(json.loads(choice.message.content)) == ["story"]
        chunks = list(chat(client, response_format=form, max_tokens=12, stream=True))
        assert [chunk.choices[0].stop_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["budget"]
        text = {"format": {"type": "json_schema", "name": "story", "schema": schema}}
        response = client.responses.create(
            model=MODEL, input="Tell a long story", text=text, max_output_tokens=16, temperature=0
        )
        assert (response.status, response.stop_reason) == ("completed", "budget")

    @pytest.mark.parametrize(
        "constraint", [{"regex": r"\d+"}, {"json": {"type": "integer"}}, {"grammar": "root ::= [0-9]+"}]
    )
    def test_what_could_go_on_is_cut_off(self, client: Any, constraint: Any) -> None:
        question = [{"role": "user", "content": "Write many digits: 123456789123456789"}]
        choice = chat(client, question, extra_body={"structured_outputs": constraint}, max_tokens=4).choices[0]
        assert (choice.finish_reason, choice.stop_reason) == ("length", None)
        assert choice.message.content.isdigit()
        completion = client.completions.create(
            model=MODEL, prompt="1234567", max_tokens=4, temperature=0, extra_body={"structured_outputs": constraint}
        )
        assert completion.choices[0].finish_reason == "length"

    def test_any_object(self, client: Any) -> None:
        choice = chat(client, response_format={"type": "json_object"}, max_tokens=40).choices[0]
        assert isinstance(json.loads(choice.message.content), dict)

    @pytest.mark.parametrize(
        ("extra", "allowed"),
        [
            ({"structured_outputs": {"choice": ["yes", "no"]}}, ["yes", "no"]),
            ({"guided_choice": ["yes", "no"]}, ["yes", "no"]),
            ({"structured_outputs": {"regex": "(un)?true"}}, ["true", "untrue"]),
            ({"guided_regex": "a{3}"}, ["aaa"]),
            ({"structured_outputs": {"grammar": 'root ::= "x" | "y"'}}, ["x", "y"]),
            ({"guided_grammar": 'start: "x" | "y"'}, ["x", "y"]),
            ({"structured_outputs": {"lark": 'start: "x" | "y"'}}, ["x", "y"]),
            ({"structured_outputs": {"json": {"enum": [1, 2]}}}, ["1", "2"]),
            ({"guided_json": {"const": "é"}}, ['"é"']),
            ({"guided_json": '{"const": null}'}, ["null"]),
            (
                {"structured_outputs": {"json": {"const": {"a": [1, 2]}}, "disable_any_whitespace": True}},
                ['{"a":[1,2]}'],
            ),
            (
                {"structured_outputs": {"structural_tag": {"type": "const_string", "value": "tagged"}}},
                ["tagged"],
            ),
            (
                {
                    "response_format": {
                        "type": "structural_tag",
                        "format": {"type": "const_string", "value": "tagged"},
                    }
                },
                ["tagged"],
            ),
        ],
    )
    def test_every_kind(self, client: Any, extra: dict[str, Any], allowed: list[str]) -> None:
        choice = chat(client, extra_body=extra, temperature=1).choices[0]
        assert choice.message.content in allowed
        assert choice.finish_reason == "stop"

    @pytest.mark.parametrize(
        ("options", "code", "says"),
        [
            (
                {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": MISSPELT}}},
                "invalid_schema",
                "/properties/a/type",
            ),
            (
                {"extra_body": {"guided_json": {"type": "string", "minLength": 3, "maxLength": 2}}},
                "unsatisfiable_schema",
                "",
            ),
            ({"extra_body": {"guided_regex": "(a"}}, "invalid_grammar", "column"),
            ({"extra_body": {"guided_grammar": "root ::= nothing"}}, "invalid_grammar", "nothing"),
            ({"extra_body": {"structured_outputs": {}}}, None, "exactly one"),
            ({"extra_body": {"structured_outputs": {"regex": "a", "choice": ["b"]}}}, None, "exactly one"),
            ({"extra_body": {"guided_regex": "a", "guided_choice": ["b"]}}, None, "several ways"),
            ({"extra_body": {"guided_json": {"const": "abcdefgh"}}, "max_tokens": 1}, "max_tokens_too_small", "1"),
        ],
    )
    def test_what_cannot_be_met_is_refused(self, client: Any, options: Any, code: str | None, says: str) -> None:
        with pytest.raises(openai.BadRequestError) as caught:
            chat(client, **options)
        assert caught.value.code == code
        assert caught.value.type == "invalid_request_error"
        assert says in caught.value.message


class TestResponses:
    def test_words(self, client: Any) -> None:
        answer = client.responses.create(model=MODEL, input="Say hello.", max_output_tokens=20, temperature=0)
        assert answer.output_text
        assert answer.status in ("completed", "incomplete")
        assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens

    def test_a_cut_answer_is_incomplete(self, client: Any) -> None:
        answer = client.responses.create(model=MODEL, input="Tell a long story.", max_output_tokens=3, temperature=0)
        assert answer.status == "incomplete"
        assert answer.incomplete_details.reason == "max_output_tokens"

    def test_typed_events(self, client: Any) -> None:
        with client.responses.stream(
            model=MODEL, input="Say hello.", max_output_tokens=12, temperature=0, instructions="Be kind."
        ) as stream:
            events = list(stream)
            final = stream.get_final_response()
        kinds = [event.type for event in events]
        assert kinds[:4] == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
        ]
        assert kinds[-4:] == [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            f"response.{final.status}",
        ]
        told = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert told == final.output_text
        assert [event.sequence_number for event in events] == list(range(len(events)))

    def test_a_streamed_call(self, client: Any) -> None:
        tools: Any = [{"type": "function", **LIGHTS, "strict": True}]
        stream = client.responses.create(
            model=MODEL,
            input="Dim the kitchen lights to 10%",
            tools=tools,
            tool_choice={"type": "function", "name": "set_lights"},
            parallel_tool_calls=False,
            max_output_tokens=60,
            temperature=0,
            stream=True,
        )
        events = list(stream)
        (call,) = events[-1].response.output
        assert call.type == "function_call"
        assert call.status == "completed"
        _check_call(call.name, call.arguments)
        told = "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta")
        assert told == call.arguments

    def test_a_parsed_model(self, client: Any) -> None:
        answer = client.responses.parse(
            model=MODEL, input="Weather in Oslo?", text_format=Weather, max_output_tokens=40
        )
        assert isinstance(answer.output_parsed, Weather)

    def test_a_whole_conversation(self, client: Any) -> None:
        answer = client.responses.create(
            model=MODEL,
            input=[
                {"role": "user", "content": "Wake me at seven"},
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "function_call", "call_id": "c1", "name": "set_alarm", "arguments": '{"hour": 7}'},
                {"type": "function_call_output", "call_id": "c1", "output": "done"},
                {"role": "user", "content": [{"type": "input_text", "text": "Thanks"}]},
            ],
            tools=[{"type": "function", **ALARM}],
            tool_choice="none",
            max_output_tokens=10,
        )
        assert answer.output_text

    def test_log_probabilities(self, client: Any) -> None:
        answer = client.responses.create(
            model=MODEL,
            input="Say hello.",
            max_output_tokens=5,
            temperature=0,
            top_logprobs=2,
            include=["message.output_text.logprobs"],
        )
        part = answer.output[0].content[0]
        assert "".join(token.token for token in part.logprobs) == part.text
        assert all(len(token.top_logprobs) == 2 for token in part.logprobs)

    @pytest.mark.parametrize(
        ("options", "param"),
        [
            ({"previous_response_id": "resp_1"}, "previous_response_id"),
            ({"background": True}, "background"),
            ({"truncation": "auto"}, "truncation"),
            ({"max_tool_calls": 2}, "max_tool_calls"),
            ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ],
    )
    def test_what_needs_a_memory_is_refused(self, client: Any, options: Any, param: str) -> None:
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(model=MODEL, input="Hello", **options)
        assert caught.value.param == param


class TestCompletions:
    def test_texts(self, client: Any) -> None:
        answer = client.completions.create(
            model=MODEL, prompt=["The capital of France is", "One, two,"], max_tokens=3, temperature=0, n=2
        )
        texts = [choice.text for choice in answer.choices]
        assert texts[0] == texts[1] == " Paris.\n"
        assert texts[2] == texts[3]
        assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
        assert answer.usage.completion_tokens == 12

    def test_log_probabilities(self, client: Any) -> None:
        answer = client.completions.create(
            model=MODEL, prompt="The capital of France is", max_tokens=3, temperature=0, logprobs=2
        )
        choice = answer.choices[0]
        assert choice.logprobs.tokens == [" Paris", ".", "\n"]
        assert choice.logprobs.text_offset == [0, 6, 7]
        assert all(len(top) == 2 for top in choice.logprobs.top_logprobs)

    def test_a_stream_under_a_pattern(self, client: Any) -> None:
        chunks = client.completions.create(
            model=MODEL,
            prompt="The answer is",
            max_tokens=10,
            stream=True,
            extra_body={"structured_outputs": {"regex": " (yes|no)"}},
        )
        chunks = list(chunks)
        assert "".join(chunk.choices[0].text for chunk in chunks) in (" yes", " no")
        assert chunks[-1].choices[0].finish_reason == "stop"

    def test_token_ids(self, client: Any, server: Any) -> None:
        ids = server.service.model.tokenize("The capital of France is")
        answer = client.completions.create(model=MODEL, prompt=ids, max_tokens=1, temperature=0)
        assert answer.choices[0].text == " Paris"
        with pytest.raises(openai.BadRequestError, match="out of range"):
            client.completions.create(model=MODEL, prompt=[1 << 20], max_tokens=1)


def test_models(client: Any) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("gpt-2/large")
    assert caught.value.code == "model_not_found"


def test_many_clients_at_once(client: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    requests: list[Any] = [
        {"messages": HELLO},
        {"messages": HELLO, "response_format": form},
        {"messages": DIM, "tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 60},
    ] * 4
    with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        answers = list(pool.map(lambda request: chat(client, **request), requests))
    for request, answer in zip(requests, answers, strict=True):
        message = answer.choices[0].message
        if "response_format" in request:
            assert isinstance(json.loads(message.content)["n"], int)
        elif "tools" in request:
            _check_call(message.tool_calls[0].function.name, message.tool_calls[0].function.arguments)
        else:
            assert message.content


def test_metrics(client: Any, server: Any) -> None:
    chat(client, max_tokens=2)
    told = httpx.get(f"{server.url}/metrics").text
    figures = dict(line.rsplit(" ", 1) for line in told.splitlines() if not line.startswith("#"))
    assert float(figures['punchcard_requests_total{path="/v1/chat/completions",status="200"}']) >= 1
    assert float(figures["punchcard_generated_tokens_total"]) >= 2
    assert float(figures["punchcard_slots"]) == server.service.slots
    assert float(figures["punchcard_running"]) == 0
    assert float(figures["punchcard_first_token_seconds_count"]) >= 1
