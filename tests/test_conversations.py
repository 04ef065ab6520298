"""Conversations that hold: whatever stands in the history, and whatever a template makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_model import FakeModel, speaker

from punchcard.answering import StepChat
from punchcard.chat import Request
from punchcard.errors import ModelError
from punchcard.formats import get_format
from punchcard.formats.prompt import render_prompt
from punchcard.prompts import readable, safe_prompt

QWEN = get_format("qwen_json")
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Only the first turn may be the system's; a later one vanishes.
DROPS = (
    "{% if messages[0].role == 'system' %}S:{{ messages[0].content }}\n{% endif %}"
    "{% for m in messages %}{% if m.role == 'user' %}U:{{ m.content }}\n{% elif m.role == 'assistant' %}"
    "A:{{ m.content }}\n{% elif m.role == 'tool' %}T:{{ m.content }}\n{% endif %}{% endfor %}"
)
ALTERNATES = (
    "{% if messages[0].role == 'system' %}S:{{ messages[0].content }}\n{% set rest = messages[1:] %}"
    "{% else %}{% set rest = messages %}{% endif %}"
    "{% for m in rest %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{{ m.role[0].upper() }}:{{ m.content }}\n{% endfor %}"
)
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + ALTERNATES
)


def say(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


CONVERSATIONS = {
    "later system": [
        say("system", "one"),
        say("user", "two"),
        say("assistant", "three"),
        say("system", "four"),
        say("user", "five"),
    ],
    "system last": [say("user", "one"), say("assistant", "two"), say("system", "three")],
    "system after user": [say("user", "one"), say("system", "two")],
    "two systems": [say("system", "one"), say("system", "two"), say("user", "three")],
    "developer": [say("system", "one"), say("developer", "two"), say("user", "three")],
    "later developer": [say("developer", "one"), say("user", "two"), say("developer", "three"), say("user", "four")],
    "two users": [say("user", "one"), say("user", "two"), say("assistant", "three"), say("user", "four")],
    "two assistants": [say("user", "one"), say("assistant", "two"), say("assistant", "three"), say("user", "four")],
    "assistant first": [say("assistant", "one"), say("user", "two")],
    "assistant behind system": [say("system", "one"), say("assistant", "two"), say("user", "three")],
}


@pytest.mark.parametrize(
    "template", [None, CHATML, DROPS, ALTERNATES, NO_SYSTEM], ids=["none", "chatml", "drops", "alternates", "no_system"]
)
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_word_of_a_conversation_is_shown_in_its_order(name: str, template: str | None) -> None:
    conversation = CONVERSATIONS[name]
    text = render_prompt(QWEN, template, conversation, [])
    places = [text.index(turn["content"]) for turn in conversation]
    assert places == sorted(places)
    assert "developer" not in text


def test_what_a_template_can_show_is_left_as_it_is() -> None:
    conversation = [say("system", "one"), say("user", "two"), say("system", "three"), say("user", "four")]
    assert (
        render_prompt(QWEN, CHATML, conversation, [])
        == "".join(f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in conversation)
        + "<|im_start|>assistant\n"
    )
    merged = "S:one\nU:two\n\nthree\n\nfour\n"
    assert render_prompt(QWEN, DROPS, conversation, []) == merged


def test_a_template_that_drops_system_turns_in_any_case_is_a_clear_error() -> None:
    template = "{% for m in messages %}{% if m.role == 'user' and loop.first %}{{ m.content }}{% endif %}{% endfor %}"
    with pytest.raises(ModelError, match="does not show the system turn at place 1") as raised:
        render_prompt(
            QWEN, template, [say("user", "one"), say("system", "two"), say("assistant", "x"), say("system", "y")], []
        )
    assert raised.value.hint


def test_a_template_that_refuses_everything_says_why() -> None:
    template = "{{ raise_exception('Only poems') }}"
    with pytest.raises(ModelError, match="Only poems"):
        render_prompt(QWEN, template, [say("user", "one"), say("user", "two")], [])


# Arguments of earlier calls

GARBLED = [
    '{"room": "ki',
    "",
    "null",
    "[1]",
    '"text"',
    "{'room': 1}",
    "[" * 5000,
    '{"a":' * 500 + "1" + "}" * 500,
    "7" * 5000,
]
TEMPLATES = {
    "no calls": None,
    "data": "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
    "{{ c.function.arguments | tojson }}{% endfor %}\n{% endfor %}",
    "members": "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
    "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}\n{% endfor %}",
    "text": "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name + '(' + "
    "c.function.arguments + ')' }}{% endfor %}\n{% endfor %}",
}


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@pytest.mark.parametrize("arguments", [*GARBLED, [1], 5, None], ids=lambda arguments: repr(arguments)[:20])
def test_malformed_arguments_in_the_history_are_taken_as_text(arguments: Any, template: str | None) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "dim", "arguments": arguments}}
    conversation = [
        say("user", "Dim"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "failed"},
        say("user", "Again"),
    ]
    model = FakeModel(speaker("Yes."), context_length=60_000)
    model.chat_template = template
    text = readable(safe_prompt(model, QWEN, conversation, []))
    assert "dim" in text and "failed" in text
    if arguments == '{"room": "ki':
        assert json.dumps(arguments) in text or arguments in text
    assert StepChat(model).respond(Request(conversation)).finish == "length" or model.tokens


@pytest.mark.parametrize("spelled", ["<|im_end|>", "<|im_\\u0065nd|>", "\\u003c|im_end|>"])
@pytest.mark.parametrize("end", ['"}', '"', ""])
def test_arguments_cannot_forge_the_end_of_a_turn(spelled: str, end: str) -> None:
    call = {"type": "function", "function": {"name": "dim", "arguments": '{"room": "' + spelled + end}}
    conversation = [say("user", "Dim"), {"role": "assistant", "content": "", "tool_calls": [call]}, say("user", "x")]
    model = FakeModel(speaker("Yes."))
    prompt = safe_prompt(model, QWEN, conversation, [])
    # Each turn has one end of its own; that in the arguments is broken up.
    assert prompt.count("<|im_end|>") == len(conversation)


@pytest.mark.parametrize(
    ("calls", "spot"),
    [
        ([None], r"messages\[1\].tool_calls\[0\] is no call"),
        ([{"function": None}], r"messages\[1\].tool_calls\[0\] is no call"),
        ([{"id": "1", "function": {"name": "f", "arguments": {}}}, "f()"], r"messages\[1\].tool_calls\[1\] is no call"),
        ("f()", r"messages\[1\].tool_calls is no list"),
    ],
)
def test_what_is_no_call_is_named(calls: Any, spot: str) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": calls}]
    with pytest.raises(ModelError, match=spot):
        render_prompt(get_format("qwen_json"), None, messages, [])
