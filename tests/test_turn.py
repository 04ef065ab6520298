"""Turns: from a request to prompt, grammar and parser, and from tokens to a reply."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from fake_model import END, TAG, FakeModel, speaker

from punchcard import Grammar, GrammarMatcher
from punchcard.answering import StepChat
from punchcard.chat import Call, Delta, Reply, Request, Sampling
from punchcard.errors import ModelError, SchemaError, ToolError
from punchcard.formats import FORMATS
from punchcard.formats.prompt import render_prompt
from punchcard.server.writer import Writer
from punchcard.stopping import StopTexts
from punchcard.tools import Tool
from punchcard.turn import Speaker, plan


def described(name: str, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return Tool(name=name, description=f"Does {name}.", parameters=schema)


LIGHTS = described("set_lights", room={"type": "string"})
WEATHER = described("get_weather", city={"type": "string"})
BAD = described("bad", x={"type": "string", "pattern": "("})
USER = [{"role": "user", "content": "Dim it"}]
CALL = '<tool_call>\n{"name": "set_lights", "arguments": {"room": "den"}}\n</tool_call>'


def admits(model: FakeModel, text: str, **options: Any) -> bool:
    planned = plan(model, Request(USER, [LIGHTS, WEATHER], **options))
    assert planned.grammar is not None
    matcher = GrammarMatcher(planned.grammar)
    return all(map(matcher.accept_token, model.tokenize(text, parse_special=True))) and matcher.is_accepting()


def test_choices_of_a_request() -> None:
    model = FakeModel(speaker())
    other = CALL.replace("set_lights", "get_weather").replace("room", "city")
    assert admits(model, "Hello.") and admits(model, CALL) and admits(model, f"{CALL}\n{other}")
    assert not admits(model, "Hello.", tool_choice="required") and admits(model, CALL, tool_choice="required")
    assert admits(model, "Hello.", tool_choice="none") and not admits(model, CALL, tool_choice="none")
    assert admits(model, CALL, allowed=["set_lights"]) and not admits(model, other, allowed=["set_lights"])
    assert admits(model, CALL, parallel=False) and not admits(model, f"{CALL}\n{other}", parallel=False)
    assert admits(model, f"{CALL}\n{other}", max_calls=2) and not admits(model, f"{CALL}\n{other}\n{CALL}", max_calls=2)


def test_an_answer_under_a_schema_and_tools_in_one_request() -> None:
    model = FakeModel(speaker())
    answer = Grammar.from_json_schema({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    assert admits(model, '{"n": 1}', answer=answer) and admits(model, CALL, answer=answer)
    assert not admits(model, "Hello.", answer=answer) and not admits(model, '{"n": "x"}', answer=answer)


def test_a_tool_that_cannot_be_compiled_is_named_and_the_others_go_on_if_asked() -> None:
    model = FakeModel(speaker())
    with pytest.raises(SchemaError, match="The arguments of bad") as caught:
        plan(model, Request(USER, [LIGHTS, BAD]))
    assert caught.value.tool == "bad" and caught.value.pointer == "/properties/x/pattern"
    planned = plan(model, Request(USER, [LIGHTS, BAD], skip_tools=True))
    assert list(planned.left_out) == ["bad"] and "bad" not in model.detokenize(planned.prompt)
    assert planned.grammar is not None and GrammarMatcher(planned.grammar).accept_string("Hi")
    with pytest.raises(ToolError, match="no tool to call"):
        plan(model, Request(USER, [BAD], skip_tools=True, tool_choice="required"))
    with pytest.raises(ToolError, match="There is no tool nix"):
        plan(model, Request(USER, [LIGHTS], allowed=["nix"]))


def test_marks_that_are_tokens_are_special_in_the_grammar() -> None:
    model = FakeModel(speaker())
    speaker_of = Speaker.of(model)
    assert speaker_of.tokens == {"<tool_call>"} and speaker_of is Speaker.of(model)
    assert TAG in speaker_of.info.special_token_ids and speaker_of.stop_token_ids == {END}
    # As text, the mark is prose.
    planned = plan(model, Request(USER, [LIGHTS]))
    assert planned.grammar is not None
    matcher = GrammarMatcher(planned.grammar)
    assert all(map(matcher.accept_token, b"<tool_call> is a tag")) and matcher.is_accepting()


THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
    '{% elif prefilled %}<think>\n{% endif %}{# <tool_call> {"name": <function-name> #}'
)


def test_reasoning_on_off_and_as_the_model_likes() -> None:
    model = FakeModel(speaker())
    model.chat_template = THINKING
    thought = "<think>\nHm.\n</think>\n\n"
    assert admits(model, thought + CALL) and admits(model, CALL)
    assert admits(model, thought + CALL, reasoning=True) and not admits(model, CALL, reasoning=True)
    assert admits(model, CALL, reasoning=False) and not admits(
        model, thought + CALL, reasoning=False, tool_choice="required"
    )
    off = plan(model, Request(USER, [LIGHTS], reasoning=False))
    assert off.begun == "thought"
    opened = plan(model, Request(USER, [LIGHTS]), prefilled=True)
    assert opened.begun == "reasoning"
    parser = opened.parser()
    parser.feed_all(model.tokenize("Hm.\n</think>\n\nHello", parse_special=True))
    parser.finish()
    assert (parser.reply.reasoning, parser.reply.text) == ("Hm.", "Hello")
    # A model that always thinks has its thoughts closed for it.
    model.chat_template = THINKING.replace("enable_thinking is defined and not enable_thinking", "false").replace(
        "prefilled", "true"
    )
    closed = plan(model, Request(USER, [LIGHTS], reasoning=False))
    assert model.detokenize(closed.prompt).endswith("<think>\n\n</think>\n\n") and closed.begun == "thought"


def test_an_answer_is_read_while_it_is_written() -> None:
    model = FakeModel(speaker("On it. " + CALL))
    deltas: list[Delta] = []
    reply = StepChat(model).respond(Request(USER, [LIGHTS]), on_delta=deltas.append)
    assert reply.text == "On it." and reply.calls == [Call("set_lights", {"room": "den"})] and reply.finish == "calls"
    kinds = [delta.kind for delta in deltas]
    assert kinds.index("text") < kinds.index("call") < kinds.index("arguments")
    assert json.loads("".join(d.text for d in deltas if d.kind == "arguments")) == {"room": "den"}
    assert "".join(d.text for d in deltas if d.kind == "text") == reply.text
    assert reply.statistics is not None and reply.statistics.tokens > 0 and reply.confidence is not None


def test_a_call_that_runs_out_of_tokens_is_completed_and_says_so() -> None:
    model = FakeModel(speaker(CALL))
    sampling = Sampling(max_new_tokens=len(CALL) - 14)
    reply = StepChat(model).respond(Request(USER, [LIGHTS]), sampling)
    assert reply.finish == "budget" and reply.partial is None
    assert [call.name for call in reply.calls] == ["set_lights"] and len(reply.calls[0].arguments["room"]) < 3


def test_an_answer_without_a_grammar_that_runs_out_of_tokens_keeps_its_call() -> None:
    model = FakeModel(speaker(CALL))
    reply = StepChat(model).respond(Request(USER, [LIGHTS], constrained=False), Sampling(max_new_tokens=50))
    assert reply.finish == "length" and reply.calls == [] and reply.partial is not None
    assert reply.partial.name == "set_lights"


@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("rooms", ["aaa", "abac", "aab", "aaaaaaaaa"])
def test_calls_that_are_written_again_are_calls(rooms: str, constrained: bool) -> None:
    """As when dice are rolled; told and kept are the same, in a chat and in the server."""
    said = "\n".join(CALL.replace("den", room) for room in rooms)
    expected = [Call("set_lights", {"room": room}) for room in rooms]
    request = Request(USER, [LIGHTS], constrained=constrained)
    deltas: list[Delta] = []
    reply = StepChat(FakeModel(speaker(said))).respond(request, Sampling(max_new_tokens=2000), on_delta=deltas.append)
    assert reply.calls == expected and reply.finish == "calls" and reply.text == ""
    assert [d.index for d in deltas if d.kind == "call"] == list(range(len(rooms)))
    model = FakeModel(speaker(said))
    planned = plan(model, request)
    writer = Writer(planned, Sampling(max_new_tokens=2000), model.tokenize)
    tokens = [*model.tokenize(said, parse_special=True), END]
    while writer.finish is None:
        logits = np.zeros(model.vocab_size, dtype=np.float32)
        logits[tokens[0]] = 1.0
        del tokens[: len(writer.choose(logits))]  # it takes what must follow, too
    assert writer.finish == "calls"
    assert [d for d in writer.written().deltas if d.kind == "call"] == [d for d in deltas if d.kind == "call"]


def test_stop_texts_end_an_answer_and_are_left_out() -> None:
    model = FakeModel(speaker("One. Two. Three."))
    deltas: list[Delta] = []
    reply = StepChat(model).respond(Request(USER), Sampling(stop=(" Th", "Two!")), on_delta=deltas.append)
    assert reply.text == "One. Two." == "".join(d.text for d in deltas) and reply.finish == "stop"


def test_text_is_held_back_only_as_far_as_it_may_be_a_stop() -> None:
    stop = StopTexts(["END"])
    said = [[d.text for d in stop.pass_on([Delta("text", piece)])] for piece in ("ab E", "N", "X E", "ND c")]
    assert said == [["ab "], [], ["ENX "], []] and stop.found
    reply = Reply(text="ab ENX END c")
    stop.cut(reply)
    assert reply.text == "ab ENX "
    within = StopTexts(["xyz", "y"])
    said = [d.text for d in [*within.pass_on([Delta("text", "axy")]), *within.finish([])]]
    assert "".join(said) == "ax" and within.found


# Prompts.


KNOWS_ALL = (
    "{% for t in tools or [] %}TOOL {{ t | tojson }}\n{% endfor %}"
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
    "{% for c in m.tool_calls or [] %}CALL {{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}\n"
    "{% endfor %}[assistant]"
)
KNOWS_NOTHING = (
    "{% for m in messages %}{% if m.role not in ('user', 'assistant', 'system') %}{{ raise_exception('role') }}"
    "{% endif %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]"
)
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + KNOWS_NOTHING
TEXT_ARGUMENTS = KNOWS_ALL.replace("c.function.arguments | tojson", "c.function.arguments + ''")

HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Dim it"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"type": "function", "id": "call_9", "function": {"name": "set_lights", "arguments": '{"room": "den"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_9", "content": "done"},
]


def rendered(template: str | None, form: str = "qwen_json", **options: Any) -> str:
    return render_prompt(FORMATS[form], template, HISTORY, [LIGHTS], **options)


def test_a_template_that_knows_tools_is_left_to_it() -> None:
    text = rendered(KNOWS_ALL)
    assert (
        text.count('"name": "set_lights"') == 1 and 'CALL set_lights {"room": "den"}' in text and "[tool]done" in text
    )


def test_what_a_template_does_not_show_is_put_into_words() -> None:
    text = rendered(KNOWS_NOTHING)
    assert '"name": "set_lights"' in text.split("[user]")[0]
    assert "[assistant]" + CALL in text and "[user]<tool_response>\ndone\n</tool_response>" in text


def test_a_template_without_a_system_turn_has_it_in_the_first_request() -> None:
    assert "[user]Be brief." in rendered(NO_SYSTEM) and "[system]" not in rendered(NO_SYSTEM)


def test_arguments_are_text_where_the_template_wants_text() -> None:
    assert 'CALL set_lights {"room": "den"}' in rendered(TEXT_ARGUMENTS)


def test_ids_are_of_the_kind_that_the_family_takes() -> None:
    shows_ids = KNOWS_ALL.replace("CALL ", "CALL {{ c.id }} ").replace(
        "[{{ m.role }}]", "[{{ m.role }} {{ m.tool_call_id }}]"
    )
    text = rendered(shows_ids, "mistral_v11")
    identity = text.split("CALL ")[1].split(" ")[0]
    assert len(identity) == 9 and f"[tool {identity}]" in text


def test_families_of_one_call_see_each_with_its_result() -> None:
    calls = [
        {"type": "function", "id": f"call_{n}", "function": {"name": "set_lights", "arguments": {"room": n}}}
        for n in ("a", "b")
    ]
    results = [{"role": "tool", "tool_call_id": f"call_{n}", "content": f"did {n}"} for n in ("b", "a")]
    history = [*HISTORY[:2], {"role": "assistant", "content": "", "tool_calls": calls}, *results]
    text = render_prompt(FORMATS["llama3_json"], KNOWS_ALL, history, [LIGHTS])
    assert [text.index(part) for part in ('{"room": "a"}', "did a", '{"room": "b"}', "did b")] == sorted(
        text.index(part) for part in ('{"room": "a"}', "did a", '{"room": "b"}', "did b")
    )


def test_content_in_parts_is_read_and_what_is_no_text_is_refused() -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    assert "[user]ab" in render_prompt(FORMATS["qwen_json"], KNOWS_ALL, parts, [])
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    with pytest.raises(ModelError, match="no text"):
        render_prompt(FORMATS["qwen_json"], KNOWS_ALL, image, [])


@pytest.mark.parametrize("name", FORMATS)
def test_every_family_has_a_prompt_without_a_template(name: str) -> None:
    text = render_prompt(FORMATS[name], None, HISTORY, [LIGHTS])
    assert "set_lights" in text and "Dim it" in text and "done" in text and "{tools}" not in text


def test_without_tools_what_looks_like_a_call_is_the_answer() -> None:
    answer = Grammar.from_json_schema({"type": "object", "properties": {"name": {}, "parameters": {}}})
    said = '{"name": "Bob", "parameters": {"a": 1}}'
    for form in ("llama3_json", "qwen_json", "xlam"):
        model = FakeModel(speaker(said))
        reply = StepChat(model, form).respond(Request(USER, answer=answer))
        assert reply.text == said and reply.calls == []
    model = FakeModel(speaker(CALL))
    reply = StepChat(model).respond(Request(USER, [LIGHTS], tool_choice="none", constrained=False))
    assert reply.calls == [] and "set_lights" in reply.text
