"""Tool formats: what each family writes passes its grammar and is read back, whole and cut anywhere."""

from __future__ import annotations

import importlib.util
import json
import re
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from punchcard import GrammarCompiler, GrammarMatcher, TokenizerInfo
from punchcard.chat import Call, Delta, PartialCall, Reply
from punchcard.errors import PunchcardError, ToolError
from punchcard.formats import FORMATS, detect_format, get_format
from punchcard.formats.base import Json, ToolFormat
from punchcard.formats.grammar import Answers, Begun
from punchcard.formats.parser import OutputParser
from punchcard.formats.writing import write_calls
from punchcard.tools import Tool
from punchcard.turn import Plan, Speaker

EXAMPLES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "tool_formats.json").read_text(encoding="utf-8")
)
SHARED = Path(__file__).parents[2] / "shared" / "tool-formats.json"
BYTES = [bytes([byte]) for byte in range(256)]


def described(name: str, required: Sequence[str], **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return Tool(name=name, description="", parameters=schema)


TOOLS = [
    described("get_weather", ["city"], city={"type": "string"}, days={"type": "integer"}),
    described("set_lights", ["room"], room={"type": "string"}, on={"type": "boolean"}),
]


class Speech:
    """A vocabulary of bytes in which the marks of a format are one token each, or are not."""

    def __init__(self, form: ToolFormat, *, marked: bool) -> None:
        names = list(dict.fromkeys([*form.markers, *form.stop])) if marked else []
        self.form = form
        self.tokens = frozenset(form.markers if marked else ())
        self._ids = {name: 256 + i for i, name in enumerate(names)}
        end = 256 + len(names)
        self.info = TokenizerInfo.from_vocab(
            [*BYTES, *(name.encode() for name in names), b"</end>"],
            special_token_ids=list(self._ids.values()),
            eos_token_ids=[end, *(self._ids[stop] for stop in form.stop if stop in self._ids)],
        )
        self.compiler = GrammarCompiler(self.info)
        ordered = sorted(names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered)) or "(?!)")

    def spell(self, text: str) -> list[int]:
        ids: list[int] = []
        at = 0
        for mark in self._pattern.finditer(text):
            ids += text[at : mark.start()].encode()
            ids.append(self._ids[mark[0]])
            at = mark.end()
        return ids + list(text[at:].encode())

    def matcher(self, tools: Sequence[Tool], **options: Any) -> GrammarMatcher:
        return GrammarMatcher(self.compiler.compile(Answers(self.form, tools, tokens=self.tokens, **options).grammar()))

    def admits(self, text: str, tools: Sequence[Tool], **options: Any) -> bool:
        matcher = self.matcher(tools, **options)
        return all(map(matcher.accept_token, self.spell(text))) and (matcher.is_accepting() or matcher.is_terminated())

    def pieces(self, text: str) -> Iterator[tuple[str, bool]]:
        at = 0
        for mark in self._pattern.finditer(text):
            yield text[at : mark.start()], False
            yield mark[0], True
            at = mark.end()
        yield text[at:], False


def read(
    form: ToolFormat, pieces: Sequence[tuple[str, bool]], tools: Sequence[Tool] = TOOLS, **options: Any
) -> tuple[Reply, list[Delta]]:
    parser = OutputParser(form, tools, **options)
    deltas = [delta for piece, special in pieces for delta in parser.feed(piece, special=special)]
    return parser.reply, deltas + parser.finish()


def letters(pieces: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
    return [one for piece, special in pieces for one in ([(piece, True)] if special else [(c, False) for c in piece])]


def begun(form: ToolFormat, prefill: str) -> dict[str, Any]:
    thinking = any(prefill.rstrip().endswith(frame.begin.strip()) for frame in form.reasoning if frame.begin.strip())
    start: Begun = "reasoning" if thinking else "nothing"
    return {"begun": start, "prefilled": bool(form.prefill) and prefill.endswith(form.prefill)}


def told(deltas: Sequence[Delta]) -> list[dict[str, Any]]:
    """The calls that the deltas tell of."""
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        if delta.kind == "call":
            calls[delta.index] = [delta.text, ""]
        elif delta.kind == "arguments":
            calls[delta.index][1] += delta.text
    return [{"name": name, "arguments": json.loads(arguments)} for name, arguments in calls.values()]


# The examples.


def test_every_family_has_an_example() -> None:
    assert set(EXAMPLES) == set(FORMATS)


@pytest.mark.parametrize("marked", [False, True], ids=["text", "tokens"])
@pytest.mark.parametrize("name", FORMATS)
def test_the_example_passes_the_grammar_and_is_read(name: str, marked: bool) -> None:
    form, example = FORMATS[name], EXAMPLES[name]
    start = begun(form, example["prefill"])
    speech = Speech(form, marked=marked)
    assert speech.admits(example["output"], TOOLS, **start)
    if not example["text"]:
        assert speech.admits(example["output"], TOOLS, calls="must", **start)
    pieces = list(speech.pieces(example["output"]))
    for cut in (pieces, letters(pieces)):
        reply, deltas = read(form, cut, tokens=speech.tokens, **start)
        assert [call.to_dict() for call in reply.calls] == example["calls"] == told(deltas)
        assert (reply.text, reply.reasoning) == (example["text"], example["reasoning"])
        assert "".join(d.text for d in deltas if d.kind == "text") == reply.text
        assert reply.finish == "calls" and reply.partial is None


@pytest.mark.parametrize("name", FORMATS)
def test_the_example_is_read_alike_wherever_it_is_cut_in_two(name: str) -> None:
    form, example = FORMATS[name], EXAMPLES[name]
    start = begun(form, example["prefill"])
    whole, _ = read(form, [(example["output"], False)], **start)
    for at in range(len(example["output"])):
        halves = [(example["output"][:at], False), (example["output"][at:], False)]
        assert read(form, halves, **start)[0] == whole, at


@pytest.mark.parametrize("marked", [False, True], ids=["text", "tokens"])
@pytest.mark.parametrize("name", FORMATS)
def test_the_example_is_read_byte_by_byte_with_its_marks_as_tokens(name: str, marked: bool) -> None:
    form, example = FORMATS[name], EXAMPLES[name]
    speech = Speech(form, marked=marked)
    model: Any = types.SimpleNamespace(
        name=name, tokenizer_info=speech.info, eos_token_ids=speech.info.eos_token_ids, chat_template=None
    )
    speaker = Speaker(model, form)
    # A mark like "<function" is also how a text may be cut into tokens, so it counts only if it is special.
    assert speaker.tokens == speech.tokens
    planned = Plan([], None, speaker.stop_token_ids, speaker, TOOLS, calls=True, **begun(form, example["prefill"]))
    parser = planned.parser()
    deltas = parser.feed_all(speech.spell(example["output"])) + parser.finish()
    assert [call.to_dict() for call in parser.reply.calls] == example["calls"] == told(deltas)
    assert (parser.reply.text, parser.reply.reasoning) == (example["text"], example["reasoning"])


@pytest.mark.parametrize("name", FORMATS)
def test_the_example_is_what_the_format_writes(name: str) -> None:
    form, example = FORMATS[name], EXAMPLES[name]
    ids = re.findall(r'"id": "(\w+)"|CALL_ID\](\w+)|call:begin\|>(\w+)', example["output"])
    calls = [
        Call(call["name"], call["arguments"], "".join(ids[i]) if ids else None)
        for i, call in enumerate(example["calls"])
    ]
    written = write_calls(form, calls)
    assert written.strip().removeprefix(form.prefill) in example["output"] + form.end


@pytest.mark.skipif(not SHARED.exists(), reason="the collection of facts is not here")
def test_the_examples_are_those_of_the_collection() -> None:
    for entry in json.loads(SHARED.read_text(encoding="utf-8")):
        example = EXAMPLES[entry["family"]]
        assert example["output"] == entry["example_output"]
        assert example["calls"] == entry["example_calls"]
        one = entry["example_output_one_call"]
        form = FORMATS[entry["family"]]
        start = begun(form, entry["example_prompt_prefill"])
        assert Speech(form, marked=True).admits(one, TOOLS, **start)
        reply, _ = read(form, [(one, False)], **start)
        assert [call.to_dict() for call in reply.calls] == entry["example_calls"][:1]


# Hostile values.

WRITER = described(
    "write_note",
    ["text"],
    text={"type": "string"},
    tags={"type": "array", "items": {"type": "string"}},
    count={"type": ["integer", "null"]},
    ready={"type": "boolean"},
    where={
        "type": "object",
        "properties": {"place": {"type": "string"}, "floor": {"type": "number"}},
        "required": ["place"],
        "additionalProperties": False,
    },
)
NOTHING = described("nothing", [])
_HOLE = "QZQZ"
HOSTILE = [
    "",
    " ",
    "\n",
    "\n\n  indented\n",
    "5",
    "-0.5e3",
    "true",
    "True",
    "null",
    "None",
    "{}",
    '{"name": "set_lights", "arguments": {}}',
    "[1, 2]",
    'a "quoted" \\ back\\slash',
    "it's",
    "'",
    '"""',
    "é 漢字 🙂 \u2028 \u00a0",
    "<b>&amp; < > </b>",
    "a, b) c(d=1",
    "},{",
    "]",
    "```json\n{}\n```",
    "text<",
    "<|",
    "</",
    "]]>",
    "tab\tand\rreturn",
]


def near_misses(form: ToolFormat) -> list[str]:
    """Texts that look like the frame of a call, and are none."""
    frames = [form.begin, form.end, form.section_begin, form.section_end, form.between, form.separator]
    closers = [frame.strip() for frame in frames if frame.strip()]
    return [text for closer in closers for text in (closer[:-1], closer[1:], f"{closer[:-1]} {closer[-1]}") if text]


def forbidden(form: ToolFormat) -> list[str]:
    """What a raw string may not hold."""
    if isinstance(form.arguments, Json) or form.arguments.strings != "raw":
        return []
    found = [form.arguments.closer, form.end.strip() if form.end.strip() not in form.stop else ""]
    return [text for text in [*found, "]]>" if form.arguments.cdata else ""] if text]


@pytest.mark.parametrize("marked", [False, True], ids=["text", "tokens"])
@pytest.mark.parametrize("name", FORMATS)
def test_hostile_values_come_back_as_they_went(name: str, marked: bool) -> None:
    form = FORMATS[name]
    speech = Speech(form, marked=marked)
    tools = [WRITER, NOTHING]

    def arguments(value: str) -> dict[str, Any]:
        count = {} if not isinstance(form.arguments, Json) and not form.arguments.words[2] else {"count": None}
        place = {"place": value, "floor": 1}
        return {"text": value, "tags": [value, "x"], **count, "ready": False, "where": place}

    def write(value: str) -> str:
        calls = [Call("write_note", arguments(value)), Call("nothing", {})][: 1 if form.one_call else 2]
        return write_calls(form, calls).removeprefix(form.prefill) + form.closing

    values = [*HOSTILE, *near_misses(form), form.begin.strip() or "(", form.end.strip()]
    matcher = speech.matcher(tools, calls="must", prefilled=bool(form.prefill))
    for value in values:
        if any(text in value for text in forbidden(form)):
            continue
        # The marks of the frame are tokens; the same characters in a value are text.
        written = write(value)
        tokens = spelled(speech, written, write(_HOLE))
        matcher.reset()
        accepted = [matcher.accept_token(token) for token in tokens]
        assert all(accepted), (value, written, accepted.index(False))
        assert matcher.is_accepting() or matcher.is_terminated()
        pieces = [(speech.info.tokens[t].decode("latin-1"), t >= 256) for t in tokens]
        pieces = [(p.encode("latin-1").decode() if s else p, s) for p, s in pieces]
        reply, deltas = read(form, joined(pieces), tools, tokens=speech.tokens, prefilled=bool(form.prefill))
        expected = [{"name": "write_note", "arguments": arguments(value)}, {"name": "nothing", "arguments": {}}]
        expected = expected[: 1 if form.one_call else 2]
        assert [call.to_dict() for call in reply.calls] == expected == told(deltas), (value, written)


def spelled(speech: Speech, written: str, frame: str) -> list[int]:
    """The tokens of what a format wrote: the frame, as written with `_HOLE` for a value, in its marks, and values in
    bytes."""
    parts = [part.strip("'\"") for part in frame.split(_HOLE)]
    found = re.fullmatch("(.*?)".join(map(re.escape, parts)), written, re.S)
    assert found is not None, (written, frame)
    ids = speech.spell(parts[0])
    for value, part in zip(found.groups(), parts[1:], strict=True):
        ids += [*value.encode(), *speech.spell(part)]
    return ids


def joined(pieces: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Bytes as characters, put together to text."""
    result: list[tuple[str, bool]] = []
    held = b""
    for piece, special in pieces:
        if special:
            result += [(held.decode(), False), (piece, True)]
            held = b""
        else:
            held += piece.encode("latin-1")
    return [*result, (held.decode(), False)]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.parametrize("name", FORMATS)
def test_any_text_comes_back_however_it_is_cut(name: str, data: st.DataObject) -> None:
    form = FORMATS[name]
    fragments = [*near_misses(form), *HOSTILE, *(mark[:-1] for mark in form.markers)]
    value = "".join(data.draw(st.lists(st.sampled_from(fragments) | st.text(max_size=3), max_size=4)))
    if any(text in value for text in forbidden(form)):
        return
    call = Call("write_note", {"text": value, "ready": True})
    written = write_calls(form, [call]).removeprefix(form.prefill) + form.closing
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=6)))
    pieces = [(written[a:b], False) for a, b in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    reply, deltas = read(form, pieces, [WRITER], prefilled=bool(form.prefill))
    assert [(c.name, c.arguments) for c in reply.calls] == [(call.name, call.arguments)]
    assert told(deltas) == [call.to_dict()]


@pytest.mark.parametrize("name", FORMATS)
def test_what_closes_a_raw_value_cannot_be_written_into_it(name: str) -> None:
    form = FORMATS[name]
    speech = Speech(form, marked=False)
    for text in forbidden(form):
        written = write_calls(form, [Call("write_note", {"text": f"a<{text}b", "ready": True})])
        assert not speech.admits(written.removeprefix(form.prefill) + form.closing, [WRITER], calls="must")


@settings(max_examples=25, deadline=None)
@given(text=st.text(alphabet=st.sampled_from('<>/|[]{}"=:,\n tolcaingwher_é'), max_size=60))
@pytest.mark.parametrize("name", FORMATS)
def test_any_output_is_read_without_an_error_and_nothing_is_lost(name: str, text: str) -> None:
    form = FORMATS[name]
    whole, deltas = read(form, [(text, False)])
    assert read(form, letters([(text, False)]))[0] == whole
    assert "".join(d.text for d in deltas if d.kind == "text") == whole.text
    if not whole.calls and whole.partial is None:
        kept = re.sub(r"\s", "", whole.reasoning + whole.text)
        marks = re.compile("|".join(map(re.escape, sorted(known_marks(form), key=len, reverse=True))) or "(?!)")
        assert re.sub(r"\s", "", marks.sub("", text)) in (kept, marks.sub("", kept))


def known_marks(form: ToolFormat) -> set[str]:
    frames = [*form.reasoning, *form.text, *([form.preamble] if form.preamble else [])]
    marks = {text.strip() for frame in frames for text in (frame.begin, frame.end)}
    left = {mark.strip() for mark in (form.separator, form.section_end, form.closing, *form.stop)}
    return {mark for mark in marks if mark} | {mark for mark in left if mark.startswith("<")}


# What models write that is not what they were trained to write.


@pytest.mark.parametrize(
    ("name", "output", "text", "calls"),
    [
        ("qwen_json", "", "", []),
        ("qwen_json", "  \n plain \n", "  \n plain \n", []),
        ("qwen_json", "A list [1, 2] and {braces}.", "A list [1, 2] and {braces}.", []),
        ("qwen_json", '{"name": "Bob", "age": 3}', '{"name": "Bob", "age": 3}', []),
        ("qwen_json", "[" * 5000, "[" * 5000, []),
        ("qwen_json", '```json\n{"name": "set_lights", "arguments": {"room": "x"}}\n```', "", [("set_lights", "x")]),
        ("qwen_json", '{"name": "set_lights", "parameters": {"room": "x"}}', "", [("set_lights", "x")]),
        (
            "qwen_json",
            '<tools>\n{{"name": "set_lights", "arguments": {"room": "x"}}}\n</tools>',
            "",
            [("set_lights", "x")],
        ),
        (
            "qwen_json",
            '<tool_call>{"arguments": {"room": "x"}, "name": "set_lights"}</tool_call>',
            "",
            [("set_lights", "x")],
        ),
        (
            "qwen_json",
            '<tool_call>{"name": "set_lights", "arguments": "{\\"room\\": \\"x\\"}"}</tool_call>',
            "",
            [("set_lights", "x")],
        ),
        (
            "qwen_json",
            'Hi <tool_call>{"type": "function", "function": {"name": "set_lights", "arguments": {"room": "x"}}}'
            "</tool_call> bye",
            "Hi bye",
            [("set_lights", "x")],
        ),
        (
            "qwen_json",
            '<tool_call>\n[{"name": "set_lights", "arguments": {"room": "x"}}, '
            '{"name": "set_lights", "arguments": {"room": "y"}}]\n</tool_call>',
            "",
            [("set_lights", "x"), ("set_lights", "y")],
        ),
        (
            "qwen_json",
            'a <tool_call>{"name": "f", "arguments": {"a": }}</tool_call> b',
            'a <tool_call>{"name": "f", "arguments": {"a": }}</tool_call> b',
            [],
        ),
        (
            "qwen_tagged",
            "<function=set_lights><parameter=room>x</parameter></function>",
            "",
            [("set_lights", "x")],
        ),
        (
            "qwen_tagged",
            "On it.\n\n<tool_call><function=set_lights>\n<parameter=room>\nx\n</parameter></function></tool_call>",
            "On it.",
            [("set_lights", "x")],
        ),
        ("pythonic", "[link](http://x)", "[link](http://x)", []),
        ("pythonic", "[set_lights(room='x')]", "", [("set_lights", "x")]),
        ("llama3_json", 'Here: {"name": "set_lights"} is JSON', 'Here: {"name": "set_lights"} is JSON', []),
        (
            "llama3_json",
            '<|python_tag|>{"type": "function", "name": "set_lights", "parameters": {"room": "x"}}',
            "",
            [("set_lights", "x")],
        ),
        (
            "harmony",
            '<|channel|>commentary to=functions.set_lights json<|message|>{"room": "x"}<|call|>',
            "",
            [("set_lights", "x")],
        ),
        (
            "harmony",
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant to=functions.set_lights<|channel|>commentary"
            '<|message|>{"room": "x"}<|call|>',
            "",
            [("set_lights", "x")],
        ),
        (
            "glm47",
            "<tool_call>set_lights\n<arg_key>room</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
            "",
            [("set_lights", "x")],
        ),
        ("functools", "import functools\nfunctools.cache", "import functools\nfunctools.cache", []),
        (
            "kimi_k2",
            '<|tool_call_begin|>functions.set_lights:0<|tool_call_argument_begin|>{"room": "x"}<|tool_call_end|>',
            "",
            [("set_lights", "x")],
        ),
    ],
)
def test_drift_is_read(name: str, output: str, text: str, calls: list[tuple[str, str]]) -> None:
    for cut in ([(output, False)], letters([(output, False)])):
        reply, _ = read(FORMATS[name], cut)
        assert (reply.text, [(call.name, call.arguments["room"]) for call in reply.calls]) == (text, calls)


def test_an_answer_that_is_cut_off_keeps_what_it_had_begun() -> None:
    said = '<tool_call>\n{"name": "set_lights", "arguments": {"room": "d'
    for constrained in (False, True):
        parser = OutputParser(FORMATS["qwen_json"], TOOLS, constrained=constrained)
        deltas = parser.feed(said) + parser.finish("length")
        reply = parser.reply
        assert reply.partial == PartialCall("set_lights", '{"room": "d') and reply.calls == []
        assert (reply.text, reply.finish) == ("", "length")
        assert [(d.kind, d.text) for d in deltas if d.kind == "call"] == [("call", "set_lights")]
        assert "".join(d.text for d in deltas if d.kind == "arguments") == '{"room": "d'


def test_a_call_that_ends_before_its_end_is_text() -> None:
    said = '<tool_call>\n{"name": "set_lights", "arguments": {"room": "d'
    reply, deltas = read(FORMATS["qwen_json"], [(said, False)])
    assert (reply.text, reply.calls, reply.partial, reply.finish) == (said, [], None, "stop")
    assert {delta.kind for delta in deltas} == {"text"}


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_that_is_cut_off_behind_a_mark_says_nothing_of_it(name: str) -> None:
    form, example = FORMATS[name], EXAMPLES[name]
    speech, start = Speech(form, marked=True), begun(FORMATS[name], EXAMPLES[name]["prefill"])
    pieces = list(speech.pieces(example["output"]))
    for count in [at for at in range(1, len(pieces)) if pieces[at - 1][1]]:
        parser = OutputParser(form, TOOLS, tokens=speech.tokens, constrained=True, **start)
        deltas = [delta for piece, special in pieces[:count] for delta in parser.feed(piece, special=special)]
        deltas += parser.finish("length")
        assert example["text"].startswith(parser.reply.text.strip()), pieces[:count]
        assert "".join(delta.text for delta in deltas if delta.kind == "text") == parser.reply.text


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_that_is_cut_off_anywhere_says_nothing_of_the_frame_of_its_calls(
    name: str, constrained: bool
) -> None:
    form, example = FORMATS[name], EXAMPLES[name]
    start = begun(form, example["prefill"])
    for at in range(len(example["output"])):
        parser = OutputParser(form, TOOLS, constrained=constrained, **start)
        deltas = parser.feed(example["output"][:at]) + parser.finish("length")
        reply = parser.reply
        # One character more may be the beginning of a mark, or text.
        assert example["text"].startswith(reply.text.strip()[:-1].strip()), at
        assert "".join(delta.text for delta in deltas if delta.kind == "text") == reply.text
        begun_calls = [delta.text for delta in deltas if delta.kind == "call"]
        expected = [call["name"] for call in example["calls"]]
        assert begun_calls == expected[: len(begun_calls)]
        assert len(begun_calls) == len(reply.calls) + (reply.partial is not None)
        assert [call.to_dict() for call in reply.calls] == example["calls"][: len(reply.calls)]


def test_marks_that_are_tokens_are_prose_where_they_are_spelled() -> None:
    form = FORMATS["qwen_json"]
    speech = Speech(form, marked=True)
    said = '<tool_call>{"name": "set_lights", "arguments": {"room": "x"}}</tool_call>'
    reply, _ = read(form, [(said, False)], tokens=speech.tokens)
    assert reply.text == said and reply.calls == []
    matcher = speech.matcher(TOOLS)
    assert all(map(matcher.accept_token, said.encode())) and matcher.is_accepting()


def test_ids_are_kept_where_the_model_writes_them() -> None:
    reply, _ = read(FORMATS["kimi_k2"], [(EXAMPLES["kimi_k2"]["output"], False)])
    assert [call.id for call in reply.calls] == ["functions.get_weather:0", "functions.set_lights:1"]
    reply, _ = read(FORMATS["mistral_v11"], [(EXAMPLES["mistral_v11"]["output"], False)])
    assert [call.id for call in reply.calls] == ["aB3dE5gH7", "k9Lm2nP4q"]


# Which calls are let through.

WEATHER = 'get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
LIGHTS = 'set_lights", "arguments": {"room": "den"}}\n</tool_call>'
BEGIN = '<tool_call>\n{"name": "'


def test_choices() -> None:
    speech = Speech(FORMATS["qwen_json"], marked=True)
    one, two = BEGIN + WEATHER, BEGIN + WEATHER + "\n" + BEGIN + LIGHTS
    assert speech.admits("Hello.", TOOLS) and speech.admits("Hm.\n" + one, TOOLS) and speech.admits(two, TOOLS)
    assert not speech.admits("Hello.", TOOLS, calls="must") and speech.admits(two, TOOLS, calls="must")
    assert not speech.admits("Hm.\n" + one, TOOLS, calls="must")
    assert speech.admits("Hello.", []) and not speech.admits(one, [])
    assert speech.admits(one, TOOLS[:1]) and not speech.admits(BEGIN + LIGHTS, TOOLS[:1])
    assert speech.admits(one, TOOLS, most_calls=1) and not speech.admits(two, TOOLS, most_calls=1)


def test_a_call_in_a_frame_of_the_models_own_is_under_the_grammar_too() -> None:
    speech = Speech(FORMATS["qwen_json"], marked=True)
    object = '{"name": "set_lights", "arguments": {"room": "den"}}'
    for said in (object, f"```json\n{object}\n```", f"<tools>\n{object}\n</tools>", f"{object}\n{object}"):
        assert speech.admits(said, TOOLS)
        assert not speech.admits(said.replace("den", 'den", "on": "x'), TOOLS)
        assert not speech.admits(said, TOOLS, calls="must")
    # Other objects are text, but for those that begin an answer over several lines.
    for said in ('{"a": 1}', '```json\n{"a":\n1}\n```', 'So: {\n"a": 1}', '{"name": "put", "arguments": {}}'):
        assert speech.admits(said, TOOLS)
    assert not speech.admits('```json\n{\n"a": 1}\n```', TOOLS) and speech.admits('```json\n{\n"a": 1}\n```', [])


def test_a_name_that_begins_another() -> None:
    for name in ("glm47", "kimi_k2", "mistral_v13_v15", "qwen_json", "gemma4"):
        form = FORMATS[name]
        tools = [TOOLS[0], described("get_weather_hourly", ["city"], city={"type": "string"})]
        for tool in tools:
            written = write_calls(form, [Call(tool.name, {"city": "Oslo"})])
            assert Speech(form, marked=True).admits(written, tools, calls="must")
            assert [call.name for call in read(form, [(written, False)], tools)[0].calls] == [tool.name]


def test_names_and_schemas_that_a_format_cannot_write_are_refused_by_name() -> None:
    speech = Speech(FORMATS["pythonic"], marked=False)
    with pytest.raises(ToolError, match=r"get-weather.*pythonic"):
        speech.matcher([described("get-weather", [])])
    unordered = Tool(
        name="f", description="", parameters={"type": "object", "minProperties": 1, "properties": {"a": {}}}
    )
    with pytest.raises(ToolError, match="minProperties") as caught:
        Speech(FORMATS["glm47"], marked=False).matcher([unordered])
    assert caught.value.tool == "f"


# Which family it is.


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("Hermes-3-Llama-3.1-8B", "hermes"),
        ("ToolACE-2-Llama-3.1-8B", "pythonic"),
        ("Llama-3_1-Nemotron-Ultra-253B-v1", "nemotron_toolcall"),
        ("Ministral-8B-Instruct-2410", "mistral_v3_v7"),
        # Versions with a dash for a dot, and sizes, which are no part of one.
        ("meta_llama-3-1-70b", "llama3_json"),
        ("Qwen3_5-27B", "qwen_tagged"),
        ("glm-4-7", "glm47"),
        ("glm-4-9b", "qwen_json"),
        ("deepseek-v3-1-terminus", "deepseek_v3_1"),
        ("deepseek-v3-1b", "deepseek_v3_r1"),
    ],
)
def test_detection_by_names(model: str, family: str) -> None:
    assert detect_format(None, model).name == family


def test_detection() -> None:
    assert detect_format("... named SmolLM, trained by Hugging Face").name == "smollm2"
    assert detect_format(None, "SmolLM2-135M-Instruct.Q4_1").name == "smollm2_small"
    assert detect_format("named SmolLM, trained by Hugging Face", "smollm2-135m").name == "smollm2_small"
    assert detect_format('... <tool_call>\n{"name": <function-name>, ...').name == "qwen_json"
    assert detect_format("<tool_call><function=f><parameter=a></parameter></function></tool_call>").name == "mimo_v2"
    assert detect_format(None, "", {"<|tool_calls_section_begin|>"}).name == "kimi_k2"
    assert detect_format("[TOOL_CALLS] [AVAILABLE_TOOLS] [ARGS]").name == "mistral_v13_v15"
    assert detect_format("[TOOL_CALLS] [AVAILABLE_TOOLS] [ARGS] [CALL_ID]").name == "mistral_v11"
    assert detect_format(None, "unheard-of").name == "qwen_json"


#: Models that take several formats, by their prompt.
BY_PROMPT = {"Llama-4 (JSON mode)", "Phi-4-mini (vLLM's template)", "Llama-3.1 with a custom prompt"}


@pytest.mark.parametrize("name", FORMATS)
def test_the_name_of_a_model_tells_its_format(name: str) -> None:
    for model in FORMATS[name].models:
        if model not in BY_PROMPT:
            plain = model.split(" (frame")[0]
            spellings = (plain, plain.upper(), f"someone/{plain}")
            assert {detect_format(None, spelled).name for spelled in spellings} == {name}


def test_names_of_models_in_the_wild() -> None:
    for model, name in [
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek_v3_1"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek_v3_2"),
        ("deepseek-ai/DeepSeek-V4.1-Flash", "deepseek_v4_1"),
        ("LiquidAI/LFM2.5-1.2B-Instruct", "lfm2"),
        ("MiniMaxAI/MiniMax-M2.5", "minimax_m2"),
        ("meetkai/functionary-small-v3.2", "functionary_v3_2"),
        ("mistralai/Magistral-Small-2506", "mistral_v11"),
        ("mistralai/Magistral-Small-2507", "mistral_v13_v15"),
        ("stepfun-ai/Step-3.5-Flash", "qwen_tagged"),
        ("DeepHermes-3-Llama-3-8B", "hermes"),
        ("string-theory-7b", "qwen_json"),
        ("amused-7b", "qwen_json"),
    ]:
        assert detect_format(None, model).name == name, model


def test_unknown_formats_are_refused() -> None:
    assert get_format("harmony") is FORMATS["harmony"]
    with pytest.raises(PunchcardError, match="Did you mean qwen_json"):
        get_format("qwen_jason")


def test_the_page_on_formats_is_made_from_the_entries() -> None:
    root = Path(__file__).parents[1]
    spec = importlib.util.spec_from_file_location("tool_formats", root / "scripts" / "tool_formats.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run python scripts/tool_formats.py"
