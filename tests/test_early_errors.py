"""Whatever can be known without a vocabulary is an error where a grammar is made, and says where it is."""

from __future__ import annotations

import json
import re
from typing import Any

import pydantic
import pytest

from punchcard import (
    Grammar,
    GrammarCompiler,
    GrammarError,
    GrammarMatcher,
    InvalidSchemaError,
    Limits,
    PunchcardError,
    TokenizerInfo,
    UnsupportedSchemaError,
    structural_tag,
)

INFO = TokenizerInfo.from_vocab([*(bytes([i]) for i in range(256)), b"</s>"], eos_token_ids=[256])
COMPILER = GrammarCompiler(INFO)


def admits(grammar: Any, text: str) -> bool:
    matcher = GrammarMatcher(COMPILER.compile(grammar))
    return matcher.accept_string(text) and matcher.is_accepting()


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(a", "the group is not closed"),
        ("a)", "parenthesis"),
        ("[a", "not closed"),
        ("a{3,2}", "column"),
        ("*", "column"),
        (r"(a)\1", "back-reference"),
        (re.compile(r"(a)\1"), "back-reference"),
        ("\ud800", "half of a surrogate pair"),
        ("(" * 200_000, "limit"),
    ],
)
def test_malformed_patterns(pattern: Any, says: str) -> None:
    with pytest.raises(GrammarError, match=says):
        Grammar.from_regex(pattern)


@pytest.mark.parametrize(
    ("schema", "kind", "says"),
    [
        ("{", InvalidSchemaError, "not JSON"),
        ("", InvalidSchemaError, "not JSON"),
        ('{"type": "object"} x', InvalidSchemaError, "not JSON"),
        ("{'type': 'object'}", InvalidSchemaError, "not JSON"),
        ("null", InvalidSchemaError, "no schema"),
        ("[1]", InvalidSchemaError, "no schema"),
        ("5", InvalidSchemaError, "no schema"),
        (None, InvalidSchemaError, "no schema"),
        ({"type": "text"}, InvalidSchemaError, "'type' at '/type'"),
        ({"properties": {"a": {"type": 3}}}, InvalidSchemaError, "/properties/a/type"),
        ({"properties": {"a": 5}}, InvalidSchemaError, "/properties/a"),
        ({"items": {"minLength": -1}}, InvalidSchemaError, "/items/minLength"),
        ({"required": "a"}, InvalidSchemaError, "'required'"),
        ({"anyOf": []}, InvalidSchemaError, "'anyOf'"),
        ({"$ref": "#/$defs/a"}, InvalidSchemaError, "leads nowhere"),
        ({"items": {"$ref": "other.json"}}, InvalidSchemaError, "not known"),
        ({"items": {"$ref": "#anchor"}}, InvalidSchemaError, "anchor"),
        ({"pattern": "(a"}, PunchcardError, "group is not closed"),
        ({"pattern": r"(a)\1"}, UnsupportedSchemaError, "/pattern"),
        ({"const": "\ud800"}, InvalidSchemaError, "surrogate"),
        ({1: {2: {3}}}, InvalidSchemaError, "not JSON"),
    ],
)
def test_malformed_schemas(schema: Any, kind: type[PunchcardError], says: str) -> None:
    with pytest.raises(kind, match=says):
        Grammar.from_json_schema(schema)
    # Left unread, it is refused when it is compiled, or cannot be written at all.
    with pytest.raises(PunchcardError):
        COMPILER.compile_json_schema(schema)


@pytest.mark.parametrize(
    "options",
    [
        {"profile": "strict"},
        {"draft": "8"},
        {"property_order": "sorted"},
        {"whitespace": "some"},
        {"whitespace": -1},
        {"whitespace": 10**20},
        {"number_spelling": 5},
        {"string_escapes": "all"},
        {"on_unsupported": "ignore"},
        {"strict": "yes"},
        {"resources": 5},
        {"resources": {"http://a/b": "{"}},
        {"limits": 5},
        {"limits": {"max_search": 5}},
        {"draft": object()},
    ],
)
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(PunchcardError):
        Grammar.from_json_schema({"type": "object"}, **options)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(TypeError, match="'colour'"):
        Grammar.from_json_schema({}, colour="red")  # type: ignore[call-arg]


def test_a_limit_is_passed_where_it_is_known() -> None:
    deep = '{"const":' + "[" * 2000 + "]" * 2000 + "}"
    grammar = Grammar.from_json_schema(deep)
    with pytest.raises(PunchcardError, match="max_depth=1000"):
        COMPILER.compile(grammar)
    assert GrammarCompiler(INFO, limits=Limits(max_depth=5000)).compile(grammar)
    with pytest.raises(PunchcardError, match="max_depth=7"):
        Grammar.from_json_schema({"const": [[[[[[[[[]]]]]]]]]}, limits=Limits(max_depth=7))


@pytest.mark.parametrize(
    "text",
    ["root ::= (", "root ::= x", 'root ::= "a', "", "root ::= [a", 'root ::= "a"{3,2}'],
)
def test_malformed_ebnf(text: str) -> None:
    with pytest.raises(GrammarError):
        Grammar.from_ebnf(text)


@pytest.mark.parametrize(
    "text",
    [
        "start: (",
        "start: x",
        "start: /(a/",
        'start: "a',
        "",
        'start: %json {"type": "text"}',
        'start: %json {"$ref": "#/a"}',
        "start: %json {",
    ],
)
def test_malformed_lark(text: str) -> None:
    with pytest.raises(PunchcardError):
        Grammar.from_lark(text)


def tag(**content: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": "<f>", "content": content, "end": "</f>"}


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"type": "json_schema", "json_schema": None}, "json_schema"),
        ({"type": "json_schema", "json_schema": "null"}, "json_schema"),
        ({"type": "json_schema", "json_schema": "1"}, "json_schema"),
        ({"type": "json_schema", "json_schema": 0}, "json_schema"),
        ({"type": "json_schema", "json_schema": []}, "json_schema"),
        ({"type": "json_schema", "json_schema": "{"}, "json_schema"),
        ({"type": "json_schema", "json_schema": {"type": "text"}}, "json_schema"),
        ({"type": "json_schema", "json_schema": {"$ref": "#/a"}}, "json_schema"),
        ({"type": "json_schema", "json_schema": {"items": {"minItems": "1"}}}, "json_schema"),
        ({"type": "json_schema", "json_schema": {}, "options": {"limits": {"max_search": 5}}}, "options"),
        ({"type": "json_schema", "json_schema": {}, "options": {"colour": "red"}}, "options"),
        ({"type": "json_schema", "json_schema": {"properties": {"a": {"minimum": "1"}}}, "style": "qwen_xml"}, "json_"),
        ({"type": "qwen_xml_parameter", "json_schema": None}, "json_schema"),
        ({"type": "regex", "pattern": "(a"}, "pattern"),
        ({"type": "regex", "pattern": r"(a)\1"}, "pattern"),
        ({"type": "grammar", "grammar": "root ::= x"}, "grammar"),
        ({"type": "lark", "grammar": "start: /(a/"}, "grammar"),
        ({"type": "grammar", "syntax": "lark", "grammar": 'start: %json {"type": "text"}'}, "grammar"),
    ],
)
def test_bad_content_of_tags_is_named(content: dict[str, Any], path: str) -> None:
    for form in (tag(**content), json.dumps(tag(**content)), {"type": "sequence", "elements": [tag(**content)]}):
        with pytest.raises(PunchcardError) as raised:
            Grammar.from_structural_tag(form)
        assert f"content.{path}" in raised.value.fields["path"], raised.value
    assert "RuntimeError" not in str(raised.value)


@pytest.mark.parametrize("schema", [None, "null", 3, [], "{"])
def test_bad_schemas_of_the_older_form_are_named(schema: Any) -> None:
    older = {"structures": [{"begin": "<f>", "schema": schema, "end": "</f>"}], "triggers": ["<f"]}
    with pytest.raises(GrammarError) as raised:
        structural_tag(older)
    assert raised.value.fields["path"] == "structures[0].schema"


# ---------------------------------------------------------------- what stands for a grammar


class Point(pydantic.BaseModel):
    x: int


def test_what_stands_for_a_grammar_without_doubt_is_taken() -> None:
    assert admits(Point, '{"x": 1}') and not admits(Point, "{}")
    assert admits({"type": "integer"}, "12") and not admits({"type": "integer"}, '"a"')
    assert admits(list[int], "[1, 2]") and admits(int | None, "null")
    assert admits(re.compile("A+", re.I), "aA")
    assert admits({"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}, "a")
    assert admits(structural_tag({"type": "const_string", "value": "a"}), "a")
    assert admits(Grammar.union(Point, {"type": "integer"}, re.compile("x"), Grammar.from_text("y")), "y")
    assert admits(Grammar.concat(Point, re.compile("x")), '{"x": 1}x')
    same = Grammar.from_text("a")
    assert Grammar.of(same) is same


def function(x: int) -> None: ...


@pytest.mark.parametrize("value", ["a", b"a", None, 1, True, 1.5, ["a"], ("a",), function, Point(x=1), object(), json])
def test_what_could_mean_several_things_or_nothing_is_refused(value: Any) -> None:
    for use in (COMPILER.compile, Grammar.union, Grammar.concat, lambda value: Grammar.union(Point, value)):
        with pytest.raises(GrammarError) as raised:
            use(value)
        assert raised.value.hint


def test_a_union_of_nothing_has_no_text() -> None:
    with pytest.raises(GrammarError, match="no grammars"):
        Grammar.union()
    assert admits(Grammar.concat(), "")


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", b"a", None, 5])
def test_a_text_is_a_str_of_whole_characters(text: Any) -> None:
    with pytest.raises(GrammarError):
        Grammar.from_text(text)
