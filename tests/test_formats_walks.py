"""Random answers that the grammar of a format lets through: the parser reads them, whole and cut, as calls of the tools
with arguments under their schemas."""

from __future__ import annotations

import random
from typing import Any

import jsonschema
import numpy as np
import pytest
from test_formats import NOTHING, WRITER, Speech, described, joined, letters, read, told

from punchcard import GrammarMatcher
from punchcard.chat import Reply
from punchcard.errors import ToolError
from punchcard.formats import FORMATS
from punchcard.formats.base import Json, ToolFormat
from punchcard.formats.grammar import Answers
from punchcard.tools import Tool

NODE: dict[str, Any] = {
    "type": "object",
    "properties": {"v": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
    "required": ["v"],
    "additionalProperties": False,
}
TOOLSETS = {
    "plain": [WRITER, NOTHING],
    "unions": [
        described(
            "f",
            ["a"],
            a={"type": ["string", "integer", "null"]},
            b={"anyOf": [{"type": "string", "maxLength": 3}, {"type": "boolean"}]},
            c={"enum": ["1", 1, "true", True, None]},
        )
    ],
    "patterns": [described("p", ["d"], d={"type": "string", "pattern": "^[0-9]{2}$"}, k={"const": "x<y"})],
    "recursive": [
        Tool(
            name="r",
            description="",
            parameters={
                "type": "object",
                "properties": {"root": {"$ref": "#/$defs/n"}},
                "required": ["root"],
                "additionalProperties": False,
                "$defs": {"n": NODE},
            },
        )
    ],
    "keys": [
        described("if", ["a-b"], **{"a-b": {"type": "string"}, "é": {"type": "string"}, "x y": {"type": "integer"}})
    ],
}
FRAGMENTS = [
    '"',
    "'",
    "\\",
    "<",
    "</",
    "\n",
    " ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "(",
    "=",
    "```",
    "None",
    "5",
    "é",
    "\u2028",
]


def fragments(form: ToolFormat, tools: list[Tool]) -> list[str]:
    """What looks like the marks of a format, and its marks."""
    frames = [*form.reasoning, *form.text]
    layout = [form.begin, form.end, form.section_begin, form.section_end, form.separator, *form.markers, *form.stop]
    layout += [text for frame in frames for text in (frame.begin, frame.end)]
    layout += [form.begin.strip() + tool.name + form.between for tool in tools]
    layout += [variant.begin + tools[0].name + variant.between for variant in form.variants]
    if not isinstance(form.arguments, Json):
        layout += [form.arguments.before, form.arguments.close, form.arguments.delimiter]
    return [text.strip() for text in layout if text.strip() and all(not "\ue000" <= c <= "\ue00f" for c in text)]


def allowed(matcher: GrammarMatcher, speech: Speech) -> list[int]:
    size = speech.info.vocab_size
    mask = np.full((1, (size + 31) // 32), -1, dtype=np.int32)
    matcher.fill_next_token_bitmask(mask)
    return [int(i) for i in np.flatnonzero(np.unpackbits(mask.view(np.uint8).ravel(), bitorder="little")[:size])]


def walk(speech: Speech, matcher: GrammarMatcher, marks: list[str], rng: random.Random) -> list[int]:
    """The tokens of a random answer: pieces of what completes it, of marks and of anything, then its completion."""
    ends = set(speech.info.eos_token_ids)
    taken: list[int] = []

    def take(tokens: list[int]) -> None:
        for token in tokens:
            assert matcher.accept_token(token), (taken, token)
            taken.append(token)

    for _ in range(rng.choice([3, 12, 30])):
        draw = rng.random()
        if draw < 0.35:
            take(matcher.find_completion_tokens()[: rng.choice([1, 3, 8, 30])])
        elif draw < 0.8:
            piece = rng.choice(FRAGMENTS if rng.random() < 0.5 else marks)
            for token in speech.spell(piece) if rng.random() < 0.5 else piece.encode()[: rng.randint(1, len(piece))]:
                if token in ends or not matcher.accept_token(token):
                    break
                taken.append(token)
        else:
            choices = [token for token in allowed(matcher, speech) if token not in ends]
            assert choices or allowed(matcher, speech)
            take([rng.choice(choices)] if choices else [])
    take(matcher.find_completion_tokens())
    assert matcher.is_accepting()
    while taken and taken[-1] in ends:
        taken.pop()
    return taken


def checked(speech: Speech, tokens: list[int], tools: list[Tool], **start: Any) -> Reply:
    """The reply, which is the same however it is cut and holds calls of the tools only, under their schemas."""
    spelled = [speech.info.tokens[token] for token in tokens]
    marked = [token >= 256 for token in tokens]
    pieces = joined([(p.decode() if m else p.decode("latin-1"), m) for p, m in zip(spelled, marked, strict=True)])
    reply, deltas = read(speech.form, pieces, tools, tokens=speech.tokens, constrained=True, **start)
    assert [call.to_dict() for call in reply.calls] == told(deltas), pieces
    again, _ = read(speech.form, letters(pieces), tools, tokens=speech.tokens, constrained=True, **start)
    assert again == reply, pieces
    assert reply.partial is None, pieces
    schemas = {tool.name: tool.parameters for tool in tools}
    for call in reply.calls:
        jsonschema.validate(call.arguments, schemas[call.name])
    return reply


@pytest.mark.parametrize("marked", [False, True], ids=["text", "tokens"])
@pytest.mark.parametrize("name", FORMATS)
def test_what_a_grammar_lets_through_is_read_as_calls_of_its_tools(name: str, marked: bool) -> None:
    form = FORMATS[name]
    speech = Speech(form, marked=marked)
    for label, tools in TOOLSETS.items():
        rng = random.Random(f"{name} {marked} {label}")
        start = rng.choice(["nothing", "nothing", "thought", "reasoning" if form.reasoning else "nothing"])
        must, most = rng.choice([True, False]), rng.choice([1, 3])
        options = {"calls": "must" if must else "may", "most_calls": most, "begun": start}
        answers = Answers(form, tools, tokens=speech.tokens, thoughts=rng.choice(["may", "must", "none"]), **options)
        matcher = GrammarMatcher(speech.compiler.compile(answers.grammar()), events=True)
        for _ in range(2):
            matcher.reset()
            try:
                tokens = walk(speech, matcher, fragments(form, tools), rng)
                reply = checked(speech, tokens, tools, begun=start)
            except UnicodeDecodeError:
                continue
            ended = [event.name for event in matcher.events() if (event.kind, event.what) == ("call", "end")]
            assert len(ended) <= len(reply.calls) <= most, (tokens, reply)
            assert reply.calls or not must


# What such walks have found.


def test_calls_in_another_frame_are_under_the_grammar() -> None:
    bare = '{"name": "set", "arguments": {"room": %s}}'
    tools = [described("set", ["room"], room={"type": "string"})]
    for name, written in [
        ("hermes", bare),
        ("llama3_json", "```json\n" + bare),
        ("qwen_tagged", "So: <function=set>\n<parameter=room>\n%s\n</parameter>\n</function>"),
        ("minimax_m2", '<invoke name="set">\n<parameter name="room">%s</parameter>\n</invoke>\n'),
    ]:
        speech = Speech(FORMATS[name], marked=name == "minimax_m2")
        assert speech.admits(written % '"den"', tools)
        assert not speech.admits((written % '"den"').replace("room", "zoom"), tools)
        assert [call.name for call in read(speech.form, [(written % '"den"', False)], tools)[0].calls] == ["set"]


def test_thoughts_in_the_middle_of_text_hide_no_call() -> None:
    call = '<tool_call>\n{"name": "nothing", "arguments": {}}\n</tool_call>'
    assert not Speech(FORMATS["exaone4"], marked=False).admits(f"So <think>{call}", [NOTHING])
    assert not Speech(FORMATS["hermes"], marked=False).admits(f"So <think>\n{call}", [NOTHING], thoughts="none")


def test_calls_of_a_variant_follow_each_other() -> None:
    one = "<function=nothing></function>"
    for cut in ([(f"{one}\n{one}", False)], letters([(f"{one}\n{one}", False)])):
        assert [call.name for call in read(FORMATS["qwen_tagged"], cut, [NOTHING])[0].calls] == ["nothing"] * 2


def test_what_ends_a_value_is_part_of_a_string_inside_it() -> None:
    tools = [described("f", ["a"], a={"type": "array", "items": {"type": "string"}})]
    written = "<tool_call>\n<function=f>\n<parameter=a>\n%s\n</parameter>\n</function>\n</tool_call>"
    for value in ('["x</parameter>\\"y"]', '["</parameter>", "\'"]'):
        for cut in ([(written % value, False)], letters([(written % value, False)])):
            (call,) = read(FORMATS["qwen_tagged"], cut, tools)[0].calls
            assert call.arguments["a"][0].startswith(("x</parameter>", "</parameter>"))


def test_keyword_arguments_that_python_would_not_take_as_names() -> None:
    tools = [described("f", ["user-id"], **{"user-id": {"type": "string"}})]
    assert Speech(FORMATS["pythonic"], marked=False).admits('[f(user-id="x")]', tools, calls="must")
    assert read(FORMATS["pythonic"], [('[f(user-id="x")]', False)], tools)[0].calls[0].arguments == {"user-id": "x"}


def test_a_call_that_is_none_keeps_its_white_space() -> None:
    for text in ('{"name": "nothing", "arguments": 5 \t}#', '{"name": "nothing", "arguments": =5'):
        for cut in ([(text, False)], letters([(text, False)])):
            assert read(FORMATS["jamba"], cut, [NOTHING])[0].text == text


def test_a_key_that_ends_itself_is_refused() -> None:
    with pytest.raises(ToolError, match="a=b"):
        Speech(FORMATS["pythonic"], marked=False).matcher([described("f", [], **{"a=b": {"type": "string"}})])


@pytest.mark.parametrize("name", ["qwen_json", "qwen_tagged", "pythonic"])
def test_much_white_space_is_text(name: str) -> None:
    space = "\n" * 20_000  # at a cost that grows with its square, this would take many seconds
    assert read(FORMATS[name], [(space, False)])[0].text == space
    assert read(FORMATS[name], letters([(space, False)]))[0].text == space
