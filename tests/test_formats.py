"""Tool formats: what each family writes passes its grammar and is read back, whole and cut anywhere."""

from __future__ import annotations

import json
import re
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
