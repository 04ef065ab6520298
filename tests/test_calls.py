"""Calls come out right in all formats: writer, grammar and reader, whole and cut, mean the same by a text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import pytest
from test_formats import Speech, described, letters, read, told

from punchcard.chat import Call
from punchcard.errors import SchemaError, ToolError
from punchcard.exact import LongInteger, read_json, write_json
from punchcard.formats import FORMATS
from punchcard.formats.base import Json, ToolFormat
from punchcard.formats.grammar import Answers
from punchcard.formats.literals import Literal, as_json
from punchcard.formats.parser import OutputParser
from punchcard.formats.prompt import render_prompt
from punchcard.formats.writing import write_calls
from punchcard.tags.parameters import schema_kinds
from punchcard.tools import Tool

# Texts that some language takes for another value, and no family writes for one.
TEXTS = [
    "8e91234",
    "1e5",
    "0xAb12",
    "0x" + "f" * 400,
    "1_000",
    "5 # five apples",
    "-0",
    "007",
    "1.50",
    ".5",
    "+5",
    " 5",
    "1, 2",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "1j",
    '["\\ud83d"]',
    "[8e91234]",
    "[1, 2",
    "(1, 2)",
    "'x'",
    '"x"',
    "TRUE",
    "undefined",
    "١٢",
    "[" * 300,
]
VALUES: list[Any] = [5, -3, 1.5, 1e-07, True, False, None, [], [1, "x", [True]], {}, {"k": [2, "y"], "m": {"n": 0.5}}]
OPEN = {
    "untyped": {},
    "listed": {"type": ["string", "number", "boolean", "null", "array", "object"]},
    "alternatives": {
        "anyOf": [{"type": "string"}, {"type": ["number", "boolean", "null"]}, {"type": ["array", "object"]}]
    },
}


def calls_of(form: ToolFormat, text: str, tools: Sequence[Tool], **options: Any) -> list[list[dict[str, Any]]]:
    """The calls in an answer: read whole and letter by letter, with a grammar behind it and without."""
    found = []
    for constrained in (False, True):
        for cut in ([(text, False)], letters([(text, False)])):
            reply, deltas = read(form, cut, tools, constrained=constrained, **options)
            calls = [call.to_dict() for call in reply.calls]
            assert calls == told(deltas), text
            "".join(delta.text for delta in deltas).encode()  # it can be sent
            found.append(calls)
    return found


def written_call(form: ToolFormat, tool: Tool, arguments: dict[str, Any]) -> str:
    return write_calls(form, [Call(tool.name, arguments)]).removeprefix(form.prefill) + form.closing


@pytest.mark.parametrize("kind", OPEN)
@pytest.mark.parametrize("name", FORMATS)
def test_what_an_open_type_admits_comes_back_as_it_went(name: str, kind: str) -> None:
    form = FORMATS[name]
    if name == "minimax_m3":
        pytest.skip("an object with any members cannot be written")
    tool = described("f", ["a"], a=OPEN[kind])
    prefilled = bool(form.prefill)
    matcher = Speech(form, marked=False).matcher([tool], calls="must", prefilled=prefilled)
    for value in [*VALUES, *TEXTS]:
        if value is None and not isinstance(form.arguments, Json) and not form.arguments.words[2]:
            continue
        written = written_call(form, tool, {"a": value})
        matcher.reset()
        assert all(map(matcher.accept_token, written.encode())) and matcher.is_accepting(), written
        expected = [{"name": "f", "arguments": {"a": value}}]
        assert calls_of(form, written, [tool], prefilled=prefilled) == [expected] * 4, written


# What schemas say decides where a text could be two values.
UNIONS = [
    ({"type": ["string", "integer"]}, "12", 12),
    ({"type": ["string", "integer"]}, "1.5", "1.5"),
    ({"type": ["string", "integer"]}, "5.0", "5.0"),
    ({"type": ["string", "boolean"]}, "12", "12"),
    ({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "number"}]}, "12e5", 1200000.0),
    ({"anyOf": [{"type": "string", "maxLength": 5}, {"type": "number"}]}, "12e5", "12e5"),
    ({"anyOf": [{"enum": ["5"]}, {"type": "integer", "minimum": 10}]}, "5", "5"),
    ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}, '["x"]', '["x"]'),
    ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}, "[1]", [1]),
    ({"anyOf": [{"$ref": "#/$defs/text"}, {"$ref": "#/$defs/count"}]}, "7", 7),
    ({"anyOf": [{"$ref": "#/$defs/text"}, {"$ref": "#/$defs/count"}]}, "-7", "-7"),
    ({"type": "integer"}, "1_000", 1000),
    ({"type": "number"}, "+.5", 0.5),
    ({"type": "boolean"}, "true", True),
    ({"type": "boolean"}, "True", True),
    ({"type": "array"}, "1, 2", [1, 2]),
    ({"type": "integer"}, "many", "many"),
]


@pytest.mark.parametrize("family", ["qwen_tagged", "glm47", "minimax_m2", "mimo_v2"])
def test_a_text_that_could_be_two_values(family: str) -> None:
    form = FORMATS[family]
    for schema, text, value in UNIONS:
        tool = described("f", ["a"], a=schema)
        tool.parameters["$defs"] = {"text": {"type": "string"}, "count": {"type": "integer", "minimum": 0}}
        written = written_call(form, tool, {"a": "QZQZ"}).replace("QZQZ", text)
        admitted = Speech(form, marked=False).admits(written, [tool], calls="must")
        assert calls_of(form, written, [tool]) == [[{"name": "f", "arguments": {"a": value}}]] * 4, (schema, text)
        assert admitted or schema.get("type") in ("integer", "number", "boolean", "array"), (schema, text)


# Numbers beyond Python's.


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("digits", ["1" * 4301, "-" + "9" * 4400])
def test_long_integers_are_read_and_told_exactly(name: str, digits: str) -> None:
    form = FORMATS[name]
    tool = described("f", ["a"], a={"type": "integer"})
    written = written_call(form, tool, {"a": read_json(digits)})
    assert digits in written
    halves = [(written[:-2000], False), (written[-2000:], False)]
    for cut in ([(written, False)], halves):
        reply, deltas = read(form, cut, [tool], prefilled=bool(form.prefill))
        assert [str(call.arguments["a"]) for call in reply.calls] == [digits]
        assert re.findall(r"-?\d+", "".join(d.text for d in deltas if d.kind == "arguments")) == [digits]


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_beyond_floats_are_told_as_they_are(name: str) -> None:
    form = FORMATS[name]
    tool = described("f", ["a"], a={"type": "number"})
    written = written_call(form, tool, {"a": math.inf}).replace("1e999", "7e4321")
    reply, deltas = read(form, [(written, False)], [tool], prefilled=bool(form.prefill))
    assert [call.arguments for call in reply.calls] == [{"a": math.inf}]
    assert "7e4321" in "".join(d.text for d in deltas if d.kind == "arguments")


def test_exact_json() -> None:
    value = read_json('{"a": %s, "b": [1e999, -1e999, 2, "x"]}' % ("1" * 5000))
    assert isinstance(value["a"], LongInteger) and value["b"][:2] == [math.inf, -math.inf]
    assert f"{value['a']}" == repr(value["a"]) == "1" * 5000
    assert write_json(value) == '{"a": %s, "b": [1e999, -1e999, 2, "x"]}' % ("1" * 5000)
    assert write_json([math.inf], indent=1) == "[\n 1e999\n]"
    assert read_json("1" * 200_000) == math.inf
    with pytest.raises(ValueError, match="no JSON"):
        read_json("NaN")


# Arguments are an object.


@pytest.mark.parametrize("name", FORMATS)
def test_arguments_are_always_an_object(name: str) -> None:
    form = FORMATS[name]
    speech, prefilled = Speech(form, marked=False), bool(form.prefill)
    objects: list[Any] = [
        {},
        {"type": ["object", "null"]},
        {"anyOf": [{"type": "object"}, {"type": "null"}]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "definitions": {"a": {}}},
    ]
    for parameters in objects if name != "minimax_m3" else []:  # an object with any members cannot be written there
        tool = Tool(name="f", description="", parameters=parameters)
        written = written_call(form, tool, {})
        matcher = speech.matcher([tool], calls="must", prefilled=prefilled)
        assert all(map(matcher.accept_token, written.encode())) and matcher.is_accepting()
        for other in ("null", "[]", "1", '"x"'):
            if isinstance(form.arguments, Json):
                matcher.reset()
                accepted = all(map(matcher.accept_token, written.replace("{}", other).encode()))
                assert not (accepted and matcher.is_accepting()), other
    for parameters in ({"type": "array"}, {"type": "null"}, {"const": 5}, {"anyOf": [{"type": "string"}]}):
        with pytest.raises(ToolError, match=r"of set_it admit .* always an object") as caught:
            speech.matcher([Tool(name="set_it", description="", parameters=parameters)])
        assert caught.value.fields["tool"] == "set_it"


NULLS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"required": None}, {}),
    ({"properties": None, "required": None}, {}),
    (
        {"additionalProperties": None, "properties": {"a": {"type": "string"}}},
        {"properties": {"a": {"type": "string"}}},
    ),
    (
        {"properties": {"a": {"type": "array", "items": None, "description": None}}},
        {"properties": {"a": {"type": "array"}}},
    ),
    (
        {"properties": {"a": {"type": "object", "properties": None, "required": None}}},
        {"properties": {"a": {"type": "object"}}},
    ),
    ({"properties": {"a": None}}, {"properties": {"a": {}}}),
    ({"properties": {"a": {"type": None, "enum": None, "minimum": None}}}, {"properties": {"a": {}}}),
    (
        {"properties": {"a": {"anyOf": [{"type": "string", "pattern": None}]}}},
        {"properties": {"a": {"anyOf": [{"type": "string"}]}}},
    ),
    ({"$defs": None, "title": None, "default": None}, {"default": None}),
    ({"properties": {"required": {"const": None}}}, {"properties": {"required": {"const": None}}}),
]


@pytest.mark.parametrize("name", FORMATS)
def test_a_keyword_that_is_null_counts_as_absent(name: str) -> None:
    for given, meant in NULLS:
        if name == "minimax_m3" and given is not NULLS[2][0]:
            continue  # an object with any members cannot be written
        tools = [Tool(name="f", description="", parameters={"type": "object", **schema}) for schema in (given, meant)]
        first, second = (Answers(FORMATS[name], [tool], calls="must").grammar() for tool in tools)
        assert first._expr == second._expr and tools[0].parameters == tools[1].parameters


@pytest.mark.parametrize("name", FORMATS)
def test_a_malformed_schema_is_refused_by_tool_and_pointer(name: str) -> None:
    malformed: list[tuple[dict[str, Any], str]] = [
        ({"required": "a"}, "/required"),
        ({"properties": ["a"]}, "/properties"),
        ({"properties": {"a": {"anyOf": [None, {"type": "string"}]}}}, "/properties/a/anyOf/0"),
        ({"properties": {"a": {"type": ["string", None]}}}, "/properties/a/type"),
        ({"properties": {"a": {"properties": {"b": {"minLength": "x"}}}}}, "/properties/a/properties/b/minLength"),
        ({"properties": {"a/b": {"items": 5}}}, "/properties/a~1b/items"),
    ]
    for schema, pointer in malformed:
        tool = Tool(name="set_it", description="", parameters={"type": "object", **schema})
        with pytest.raises(SchemaError, match="set_it") as caught:
            Answers(FORMATS[name], [tool]).grammar()
        assert (caught.value.fields["pointer"], caught.value.fields["tool"]) == (pointer, "set_it")


@pytest.mark.parametrize("name", FORMATS)
def test_a_name_may_begin_with_a_digit(name: str) -> None:
    form = FORMATS[name]
    tools = [described(each, ["a"], a={"type": "string"}) for each in ("3d_print", "3d", "7")]
    if form.between == "(":
        with pytest.raises(ToolError, match="3d_print"):
            Speech(form, marked=False).matcher(tools)
        return
    for tool in tools:
        written = written_call(form, tool, {"a": "x"})
        assert Speech(form, marked=False).admits(written, tools, calls="must", prefilled=bool(form.prefill))
        expected = [{"name": tool.name, "arguments": {"a": "x"}}]
        assert calls_of(form, written, tools, prefilled=bool(form.prefill)) == [expected] * 4


# Results.


def asked(*identities: str | None) -> dict[str, Any]:
    calls = [
        {
            **({"id": each} if each else {}),
            "type": "function",
            "function": {"name": f"tool_{at}", "arguments": {"n": at}},
        }
        for at, each in enumerate(identities)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(content: str, identity: str | None = None, name: str | None = None) -> dict[str, Any]:
    told_of = {"tool_call_id": identity, "name": name}
    return {"role": "tool", "content": content, **{key: value for key, value in told_of.items() if value}}


ORDERS = [
    ([asked("A", "B", "C"), result("rC", "C"), result("rA", "A"), result("rB", "B")], "ABC"),
    ([asked("A", "B", "C"), result("rB", "B"), result("rC", "C")], "BC"),
    ([asked(None, None), result("rA"), result("rB")], "AB"),
    ([asked(None, None), result("rB", name="tool_1"), result("rA", name="tool_0")], "AB"),
    ([asked("A", "B"), result("rB", "B"), result("rA")], "AB"),
    (
        [asked("A", "B"), result("rB", "B"), result("rA", "A"), asked("A", "B"), result("rD", "B"), result("rC", "A")],
        "ABCD",
    ),
    ([asked("A"), result("rA", "A"), result("rX", "X")], "AX"),
]


@pytest.mark.parametrize("name", FORMATS)
def test_results_stand_in_the_order_of_their_calls(name: str) -> None:
    for messages, order in ORDERS:
        prompt = render_prompt(FORMATS[name], None, [{"role": "user", "content": "hi"}, *messages], [])
        places = [prompt.index(f"r{letter}") for letter in order]
        assert places == sorted(places), order


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if "{name}" in form.result])
def test_a_result_says_which_tool_it_is_from(name: str) -> None:
    form = FORMATS[name]
    messages = [asked("A", "B"), result("rB", "B"), result("rA", "A")]
    prompt = render_prompt(form, None, [{"role": "user", "content": "hi"}, *messages], [])
    for at, letter in enumerate("AB"):
        assert (
            form.result.replace("{name}", f"tool_{at}").replace("{content}", f"r{letter}").replace("{id}", letter)
            in prompt
        )


@pytest.mark.parametrize("name", FORMATS)
def test_an_id_that_is_a_number_is_that_of_its_digits(name: str) -> None:
    calls = asked("1", "2")
    for number, call in enumerate(calls["tool_calls"], 1):
        call["id"] = number
    prompt = render_prompt(
        FORMATS[name], None, [{"role": "user", "content": "hi"}, calls, result("rB", "2"), result("rA", "1")], []
    )
    assert 0 <= prompt.find("rA") < prompt.find("rB")


def test_a_template_is_given_names_and_order_too() -> None:
    template = (
        "{% for m in messages %}{{ m.role }}:{{ m.get('name', '') }}:{{ m.content }}"
        "{% for c in m.tool_calls or [] %}{{ c.function.name }}={{ c.function.arguments | tojson }}{% endfor %}"
        "|{% endfor %}"
    )
    messages = [{"role": "user", "content": "hi"}, asked("A", "B"), result("rB", "B"), result("rA", "A")]
    prompt = render_prompt(FORMATS["qwen_json"], template, messages, [])
    assert prompt.endswith("tool:tool_0:rA|tool:tool_1:rB|")


# What models write without a grammar.

TAGGED = "<tool_call>\n<function=f>\n%s</function>\n</tool_call>"
DRIFT: list[tuple[str, str, dict[str, Any]]] = [
    # Strings of Python, with what Python would not take.
    ("lfm2", "<|tool_call_start|>[f(a='x\ny')]<|tool_call_end|>", {"a": "x\ny"}),
    ("lfm2", "<|tool_call_start|>[f(a='C:\\Users')]<|tool_call_end|>", {"a": "C:\\Users"}),
    ("lfm2", "<|tool_call_start|>[f(a='C:\\xyz\\Q')]<|tool_call_end|>", {"a": "C:\\xyz\\Q"}),
    ("lfm2", "<|tool_call_start|>[f(b=['x\ny', 'it\\'s', \"z\"])]<|tool_call_end|>", {"b": ["x\ny", "it's", "z"]}),
    (
        "lfm2",
        "<|tool_call_start|>[f(b={'k': (1, True), 2: None,})]<|tool_call_end|>",
        {"b": {"k": [1, True], "2": None}},
    ),
    ("lfm2", "<|tool_call_start|> [f(a='x')]<|tool_call_end|>", {"a": "x"}),
    ("lfm2", "<|tool_call_start|>\n[ f( a = 'x' ) ]\n<|tool_call_end|>", {"a": "x"}),
    ("pythonic", "[f(a='\\x41\\u0042', b=\"\\ud83d\\ude00\")]", {"a": "AB", "b": "😀"}),
    ("olmo3", '<function_calls>\nf(a="x\ty")\n</function_calls>', {"a": "x\ty"}),
    ("lfm2", "<|tool_call_start|>[f(a='it's fine', b=True)]<|tool_call_end|>", {"a": "it's fine", "b": True}),
    ("lfm2", "<|tool_call_start|>[f(a=r'C:\\new')]<|tool_call_end|>", {"a": "C:\\new"}),
    ("lfm2", '<|tool_call_start|>[f(a="""x\ny""")]<|tool_call_end|>', {"a": "x\ny"}),
    ("lfm2", "<|tool_call_start|>f(a='x')<|tool_call_end|>", {"a": "x"}),
    # JSON among values without quotes.
    (
        "gemma4",
        '<|tool_call>call:f{b:{"mode": "fast", "n": [1, "x, y"]}}<tool_call|>',
        {"b": {"mode": "fast", "n": [1, "x, y"]}},
    ),
    ("gemma4", '<|tool_call>call:f{b:["x, y", "a}b"]}<tool_call|>', {"b": ["x, y", "a}b"]}),
    ("gemma4", "<|tool_call>call:f{b:['x, y']}<tool_call|>", {"b": ["x, y"]}),
    ("gemma4", '<|tool_call>call:f{"a":"x \\"y\\""}<tool_call|>', {"a": 'x "y"'}),
    ("functiongemma", '<start_function_call>call:f{a:"x, y"}<end_function_call>', {"a": "x, y"}),
    # Tags that are missing.
    ("glm47", "<tool_call>f<arg_key>a</arg_key>hello</arg_value></tool_call>", {"a": "hello"}),
    ("glm47", "<tool_call>f<arg_key>a<arg_value>hello</arg_value></tool_call>", {"a": "hello"}),
    ("glm47", "<tool_call>f<arg_key>a</arg_key><arg_value>hello</tool_call>", {"a": "hello"}),
    (
        "glm47",
        "<tool_call>f<arg_key>a</arg_key><arg_value>x<arg_key>b</arg_key><arg_value>3</tool_call>",
        {"a": "x", "b": 3},
    ),
    ("glm45", "<tool_call>f\n<arg_key>a</arg_key>\nhello</arg_value>\n</tool_call>", {"a": "hello"}),
    (
        "glm45",
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x\n<arg_key>b</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
        {"a": "x", "b": 3},
    ),
    ("qwen_tagged", TAGGED % "<parameter=a>\nx\n<parameter=b>\n3\n</parameter>\n", {"a": "x", "b": 3}),
    ("qwen_tagged", TAGGED % "<parameter=a>\nx\n", {"a": "x"}),
    ("qwen_tagged", "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</tool_call>", {"a": "x"}),
    ("qwen_tagged", "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>", {"a": "x"}),
    ("qwen_tagged", "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>", {"a": "x"}),
    ("seed_oss", "<seed:tool_call>\n<function=f>\n<parameter=a>x</parameter>\n</seed:tool_call>", {"a": "x"}),
    (
        "minimax_m2",
        '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">x<parameter name="b">3</parameter>\n'
        "</invoke>\n</minimax:tool_call>",
        {"a": "x", "b": 3},
    ),
    (
        "deepseek_v3_2",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="b">7</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        {"b": 7},
    ),
    # JSON that is Python, or has line breaks.
    (
        "qwen_json",
        '<tool_call>{"name": "f", "arguments": "{\'a\': \'x\', \'b\': True}"}</tool_call>',
        {"a": "x", "b": True},
    ),
    ("qwen_json", '<tool_call>\n{"name": "f", "arguments": {"a": "x\ny"}}\n</tool_call>', {"a": "x\ny"}),
    (
        "qwen_json",
        '<tool_call>\n{"name": "f", "arguments": {"b": [True, None, False]}}\n</tool_call>',
        {"b": [True, None, False]},
    ),
    ("qwen_json", "<tool_call>\n{'name': 'f', 'arguments': {'a': 'x'}}\n</tool_call>", {"a": "x"}),
    ("qwen_json", '<tool_call>\n{"name": "f", "arguments": {"a": "x",},}\n</tool_call>', {"a": "x"}),
    ("qwen_json", '<tool_call>\n{"name": "f", "arguments": {"a": "C:\\Users"}}\n</tool_call>', {"a": "C:\\Users"}),
    ("qwen_json", '<tool_call>\n{"name": "f", "arguments": {"a": "\\ud83d"}}\n</tool_call>', {"a": "\ufffd"}),
    ("qwen_json", '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}</tool_call></tool_call>', {"a": "x"}),
    ("mistral_v11", '[TOOL_CALLS]f[CALL_ID]aB3dE5gH7[ARGS]{"a": "x\ny", "b": True}', {"a": "x\ny", "b": True}),
    # Headers and ids that are not as they were trained.
    ("harmony", '<|channel|>commentary to=functions.f <|constrain|> json <|message|>{"a": "x"}<|call|>', {"a": "x"}),
    ("gemma4", '<|tool_call> call:f {a: <|"|>hello<|"|>, b: true}<tool_call|>', {"a": "hello", "b": True}),
    ("harmony", '<|channel|>commentary to=functions.f code<|message|>{"a": "x"}<|call|>', {"a": "x"}),
    ("harmony", '<|channel|>commentary to=functions.f <|constrain|>code<|message|>{"a": "x"}<|call|>', {"a": "x"}),
    ("harmony", '<|channel|>analysis to=functions.f code<|message|>{"a": "x"}<|call|>', {"a": "x"}),
    ("harmony", '<|channel|>commentary to=f<|message|>{"a": "x"}<|call|>', {"a": "x"}),
    ("kimi_k2", '<|tool_call_begin|>functions.f:0 <|tool_call_argument_begin|>{"a": "x"}<|tool_call_end|>', {"a": "x"}),
    ("kimi_k2", '<|tool_call_begin|>functionsf5<|tool_call_argument_begin|>{"a": "x"}<|tool_call_end|>', {"a": "x"}),
    ("kimi_k2", '<|tool_call_begin|>functions.f<|tool_call_argument_begin|>{"a": "x"}<|tool_call_end|>', {"a": "x"}),
    ("kimi_k2", '<|tool_call_begin|>f:0<|tool_call_argument_begin|>{"a": "x"}<|tool_call_end|>', {"a": "x"}),
    # Texts without their quotes, though they have commas or read like numbers, and numbers as Python has them.
    ("lfm2", "<|tool_call_start|>[f(a=Paris, France, b=0x1F)]<|tool_call_end|>", {"a": "Paris, France", "b": 31}),
    ("lfm2", "<|tool_call_start|>[f(a=02139)]<|tool_call_end|>", {"a": "02139"}),
    ("pythonic", "[f(a=5, b=1_000)]", {"a": "5", "b": 1000}),
    (
        "gemma4",
        "<|tool_call>call:f{a:Paris, France,b:[1_000, x]}<tool_call|>",
        {"a": "Paris, France", "b": [1000, "x"]},
    ),
    ("gemma4", "<|tool_call>call:f{a:12345,b:+7}<tool_call|>", {"a": "12345", "b": 7}),
    ("functiongemma", "<start_function_call>call:f{a:True, or not}<end_function_call>", {"a": "True, or not"}),
    # White space around keys, and members of the call's object without quotes.
    (
        "glm47",
        "<tool_call>f<arg_key> a </arg_key><arg_value>x</arg_value><arg_key>\nb\n<arg_value>3</arg_value></tool_call>",
        {"a": "x", "b": 3},
    ),
    ("qwen_json", '<tool_call>\n{name: "f", arguments: {a: "x"}}\n</tool_call>', {"a": "x"}),
    # A string's own quotes inside of it.
    (
        "qwen_json",
        '<tool_call>{"name": "f", "arguments": {"a": "say "hi" to all", "b": [1]}}</tool_call>',
        {"a": 'say "hi" to all', "b": [1]},
    ),
    ("mistral_v11", """[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{'a': 'it's', 'b': [2]}""", {"a": "it's", "b": [2]}),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": "5" or 6" wide" }}</tool_call>', {"a": '5" or 6" wide'}),
    (
        "qwen_json",
        '<tool_call>{"name": "f", "arguments": {"a": "x"%s"y"}}</tool_call>' % (" " * 126),
        {"a": 'x"%s"y' % (" " * 126)},
    ),
    # A bracket too many.
    ("qwen_json", '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}}\n</tool_call>', {"a": "x"}),
    ("qwen_json", '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}},\n</tool_call>', {"a": "x"}),
    # Keyword arguments spelled like members.
    ("lfm2", "<|tool_call_start|>[f('a'='x', \"b\": 3)]<|tool_call_end|>", {"a": "x", "b": 3}),
    ("lfm2", "<|tool_call_start|>[f(a: 'x', b=3)]<|tool_call_end|>", {"a": "x", "b": 3}),
    ("lfm2", "<|tool_call_start|>[f(a='x')]", {"a": "x"}),
]
LOOSE = Tool(
    name="f",
    description="",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "array", "object", "boolean"]}},
    },
)


@pytest.mark.parametrize(("family", "text", "arguments"), DRIFT)
def test_drift_is_read(family: str, text: str, arguments: dict[str, Any]) -> None:
    form = FORMATS[family]
    for marked in (False, True):
        speech = Speech(form, marked=marked)
        pieces = list(speech.pieces(text))
        for cut in (pieces, letters(pieces)):
            reply, deltas = read(form, cut, [LOOSE], tokens=speech.tokens)
            assert [call.arguments for call in reply.calls] == [arguments], reply
            assert told(deltas) == [{"name": "f", "arguments": arguments}] and reply.text == ""


def test_a_value_may_hold_what_looks_like_a_missing_tag_under_a_grammar() -> None:
    text = "<tool_call>f<arg_key>a</arg_key><arg_value>x<arg_key>b</arg_key><arg_value>3</arg_value></tool_call>"
    for cut in ([(text, False)], letters([(text, False)])):
        (call,) = read(FORMATS["glm47"], cut, [LOOSE], constrained=True)[0].calls
        assert call.arguments == {"a": "x<arg_key>b</arg_key><arg_value>3"}


@pytest.mark.parametrize(
    ("family", "text"),
    [
        *(
            ("kimi_k2", f'<|tool_call_begin|>{head}<|tool_call_argument_begin|>{{"a": "x"}}<|tool_call_end|>')
            for head in (
                "functions.f: 0",
                "functions_f:0",
                "functions.f0",
                "functions.f-1",
                "functions.f_12",
                "function.f:3",
            )
        ),
        *(
            ("qwen_json", f'<tool_call>{{"name": "{name}", "arguments": {{"a": "x"}}}}</tool_call>')
            for name in (" f", "f\\n", "functions.f")
        ),
    ],
)
def test_a_tool_is_known_by_its_name_with_a_namespace_or_a_number(family: str, text: str) -> None:
    for cut in ([(text, False)], letters([(text, False)])):
        reply, deltas = read(FORMATS[family], cut, [LOOSE])
        assert [(call.name, call.arguments) for call in reply.calls] == [("f", {"a": "x"})]
        assert told(deltas) == [{"name": "f", "arguments": {"a": "x"}}] and reply.text == ""


def test_a_name_is_changed_only_into_that_of_a_tool() -> None:
    form = FORMATS["kimi_k2"]
    tools = [LOOSE, described("f0", []), described("functions.g", [])]
    head = "<|tool_call_begin|>{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    for written, name in {"functions.f0": "f0", "functions.g:1": "g", "functions.h1": "h1"}.items():
        reply, _ = read(form, [(head.format(written), False)], tools)
        assert [call.name for call in reply.calls] == [name]
    reply, _ = read(FORMATS["qwen_json"], [('<tool_call>{"name": "f_2", "arguments": {}}</tool_call>', False)], tools)
    assert [call.name for call in reply.calls] == ["f_2"]


@pytest.mark.parametrize("between", ["]\n[", "], [", "; "])
def test_lists_of_one_call_each_are_read(between: str) -> None:
    text = f"<|tool_call_start|>[f(a='x'){between}f(a='y')]<|tool_call_end|>"
    for cut in ([(text, False)], letters([(text, False)])):
        reply, _ = read(FORMATS["lfm2"], cut, [LOOSE])
        assert [call.arguments for call in reply.calls] == [{"a": "x"}, {"a": "y"}] and reply.text == ""


# Calls that are none, and calls that break off.


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("qwen_json", '<tool_call>{"name": "f", "arguments": {"a": }}</tool_call> So.'),
        ("qwen_json", '<tool_call>\n{"name": "f", "arguments": [1]}\n</tool_call>'),
        ("qwen_json", '<tool_call>\n{"name": "f", "arguments": {"a": "x'),
        ("qwen_tagged", "<tool_call>\n<function=f>\n<parameter=a>\nx"),
        ("qwen_tagged", TAGGED % "<parameter=a>\nx\n</parameter>\nand more\n"),
        ("kimi_k2", '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": nothing}'),
        ("gemma4", "<|tool_call>call:f{a:<tool_call|>"),
        ("gemma4", "<|tool_call>call:f{b:[1, 2}<tool_call|>"),
        ("gemma4", "<|tool_call>call:f{b:[[1, , 2]}<tool_call|>"),
    ],
)
def test_a_call_that_is_none_is_text_and_nothing_else(family: str, text: str) -> None:
    for cut in ([(text, False)], letters([(text, False)])):
        reply, deltas = read(FORMATS[family], cut, [LOOSE])
        assert (reply.text, reply.calls, reply.partial, reply.finish) == (text, [], None, "stop")
        assert "".join(delta.text for delta in deltas) == text and {delta.kind for delta in deltas} == {"text"}


def test_a_call_behind_one_that_is_none_is_read() -> None:
    good = '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call>'
    reply, _ = read(FORMATS["qwen_json"], [('<tool_call>\n{"name": "f", "arguments": {"a": \n' + good, False)], [LOOSE])
    assert [call.arguments for call in reply.calls] == [{"a": "x"}]
    # After many, what is none is text as a whole, so that reading stays linear.
    for family, text in [
        ("qwen_json", '<tool_call>{"name": "f", "arguments": {"a": "' * 2000),
        ("qwen_tagged", "<tool_call>\n<function=f>\n<parameter=a>\n" * 2000),
        ("gemma4", '<|tool_call>call:f{a:<|"|>' * 2000),
    ]:
        reply, _ = read(FORMATS[family], [(text, False)], [LOOSE])
        assert reply.text.rstrip() == text.rstrip() and reply.calls == []


def test_arguments_come_as_they_are_written_under_a_grammar_and_whole_without() -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {"a": "x", "b": 1}}\n</tool_call>'
    counts = []
    for constrained in (True, False):
        _, deltas = read(FORMATS["qwen_json"], letters([(text, False)]), [LOOSE], constrained=constrained)
        assert [d.text for d in deltas if d.kind == "call"] == ["f"]
        first = next(at for at, d in enumerate(deltas) if d.kind == "call")
        assert all(d.kind == "arguments" for d in deltas[first + 1 :])
        parser = OutputParser(FORMATS["qwen_json"], [LOOSE], constrained=constrained)
        counts.append(len([d for d in parser.feed(text[:50]) if d.kind == "arguments"]))
    assert counts[0] > 0 and counts[1] == 0


def test_text_with_half_a_surrogate_pair_is_no_mark() -> None:
    form = FORMATS["qwen_json"]
    speech = Speech(form, marked=True)
    reply, deltas = read(form, [("a\ud800b\ud801", False)], [LOOSE], tokens=speech.tokens)
    assert reply.text == "a\ufffdb\ufffd" and "".join(d.text for d in deltas).encode()


# Marks that are no tags.


def test_the_space_of_an_opener_that_is_no_tag_is_part_of_its_mark() -> None:
    form = ToolFormat("own", (), begin="<<call ", between=" ", end=">>")
    speech = Speech(form, marked=False)
    call = '<<call f {"a": "x"}>>'
    for text, calls in [("x <<callback", 0), (f"So {call}", 1), ("x <<callf {}", 0), ("a << call", 0)]:
        assert speech.admits(text, [LOOSE]), text
        for cut in ([(text, False)], letters([(text, False)])):
            reply, _ = read(form, cut, [LOOSE])
            assert len(reply.calls) == calls and (calls or reply.text == text)
    assert not speech.admits("So <<call g {}>>", [LOOSE])


# Literals.


def test_literals_as_json() -> None:
    table: list[tuple[str, str | None]] = [
        ('{"a": 1, "b": [True, None,], }', '{"a": 1, "b": [true, null]}'),
        ("{'a': 'it\\'s \"x\"', 1: (2,3)}", '{"a": "it\'s \\"x\\"", "1": [2,3]}'),
        ('"x\ny"', '"x\\ny"'),
        ("'C:\\Users'", '"C:\\\\Users"'),
        ('["\\ud83d\\ude00"]', '["\\ud83d\\ude00"]'),
        ("8e91234", "8e91234"),
        ("{a: 1}", '{"a": 1}'),
        ("0x12", None),
        ("1_000", None),
        ("5 # five", None),
        ("1, 2", None),
        ('{"a": }', None),
        ("[1 2]", None),
        ('"open', None),
        ("[]]", None),
        ("", None),
        ("NaN", None),
        ("[" * 300 + "]" * 300, None),
    ]
    for text, expected in table:
        made = as_json(text)
        assert (made and made[0]) == expected, text
        literal, pieces = Literal(), []
        for at, character in enumerate(text):
            if not (literal.ended or literal.broken):
                pieces.append(literal.feed(character, last=at == len(text) - 1)[0])
        assert expected is None or json.loads("".join(pieces)) == json.loads(expected) or "8e" in text


def test_types_of_schemas_that_share_their_parts() -> None:
    shared = {f"n{i}": {"anyOf": [{"$ref": f"#/$defs/n{i + 1}"}] * 2} for i in range(200)}
    schema = {"$defs": {**shared, "n60": {"type": "string"}}, "$ref": "#/$defs/n0"}
    assert schema_kinds(schema, schema) == {"string"}
    circle = {"$defs": {f"n{i}": {"anyOf": [{"$ref": f"#/$defs/n{j}"} for j in range(40)]} for i in range(40)}}
    assert "string" in schema_kinds({"$ref": "#/$defs/n0"}, circle)
