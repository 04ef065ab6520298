"""Structural tags: what each format admits, byte by byte, and what is refused with which path."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard import Grammar, GrammarCompiler, GrammarError, GrammarMatcher, TokenizerInfo, structural_tag
from punchcard.tags import (
    AnyTextFormat,
    ConstStringFormat,
    JSONSchemaFormat,
    StructuralTag,
    TagFormat,
    TriggeredTagsFormat,
)

#: Every byte is a token; then two special tokens and the end.
CALL, RETURN, END = 256, 257, 258
INFO = TokenizerInfo.from_vocab(
    [*(bytes([i]) for i in range(256)), b"<|call|>", b"<|return|>", b"</s>"],
    eos_token_ids=[END],
    special_token_ids=[CALL, RETURN],
)
COMPILER = GrammarCompiler(INFO)


def admits_tokens(tag: Any, tokens: list[int]) -> bool:
    """Whether the masks let all tokens pass, and then the end; and accept_token says the same at each."""
    matcher = GrammarMatcher(COMPILER.compile_structural_tag(tag))
    bitmask = punchcard.allocate_token_bitmask(1, INFO.vocab_size)
    for token in [*tokens, END]:
        matcher.fill_next_token_bitmask(bitmask)
        assert np.any(bitmask), "a dead end"
        allowed = bool(int(bitmask[0, token >> 5]) >> (token & 31) & 1)
        assert matcher.accept_token(token) == allowed
        if not allowed:
            return False
    return True


def admits(tag: Any, text: str) -> bool:
    return admits_tokens(tag, list(text.encode()))


def check(tag: Any, accepted: list[str], rejected: list[str]) -> None:
    for text in accepted:
        assert admits(tag, text), f"refused: {text!r}"
    for text in rejected:
        assert not admits(tag, text), f"admitted: {text!r}"


def const(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def tag(begin: Any, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(**fields: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", **fields}


TEXT = {"type": "any_text"}
A = tag("<a>", const("x"), "</a>")


# The formats, one by one.

FORMATS: dict[str, tuple[Any, list[str], list[str]]] = {
    "const_string": (const("héllo"), ["héllo"], ["", "hello", "hélloo"]),
    "const_string, empty": (const(""), [""], ["x"]),
    "json_schema": (
        {"type": "json_schema", "json_schema": {"type": "integer", "minimum": 7}},
        ["7", "123"],
        ["6", "x", ""],
    ),
    "json_schema of any value": ({"type": "json_schema", "json_schema": True}, ["1", '{"a": [null]}'], ["", "x"]),
    "json_schema, white space": (
        {"type": "json_schema", "json_schema": {"type": "array"}, "max_whitespace_cnt": 0},
        ["[1,2]"],
        ["[1, 2]"],
    ),
    "json_schema, two white spaces": (
        {"type": "json_schema", "json_schema": {"type": "array"}, "max_whitespace_cnt": 2},
        ["[1, 2]", "[\n 1]"],
        ["[\n  1]"],
    ),
    "json_schema, any order": (
        {
            "type": "json_schema",
            "any_order": True,
            "json_schema": {
                "properties": {"a": {"const": 1}, "b": {"const": 2}},
                "required": ["a", "b"],
                "type": "object",
                "additionalProperties": False,
            },
        },
        ['{"a":1,"b":2}', '{"b":2,"a":1}'],
        ['{"a":1}', '{"a":1,"a":1}'],
    ),
    "json_schema, options": (
        {"type": "json_schema", "json_schema": {"type": "number"}, "options": {"number_spelling": "any"}},
        ["1e3", "1"],
        ["1e"],
    ),
    "regex": ({"type": "regex", "pattern": "[ab]+|c"}, ["abba", "c"], ["", "cc", "d"]),
    "grammar": ({"type": "grammar", "grammar": 'root ::= "a" root "b" | ""'}, ["", "ab", "aabb"], ["aab", "ba"]),
    "any_text": (TEXT, ["", "a\nb", "日本"], []),
    "any_text, excludes": (
        {"type": "any_text", "excludes": ["<END>", "ab"]},
        ["", "<EN<E b", "ba"],
        ["x<END>", "<EN<END>", "aab"],
    ),
    "any_text, max_chars": ({"type": "any_text", "max_chars": 2}, ["", "日本"], ["abc"]),
    "any_text, max_chars and excludes": (
        {"type": "any_text", "max_chars": 3, "excludes": ["b"]},
        ["", "aaa"],
        ["b", "aaaa"],
    ),
    "any_text, max_tokens": ({"type": "any_text", "max_tokens": 3}, ["", "abc"], ["abcd", "日本"]),
    "sequence": ({"type": "sequence", "elements": [const("a"), const("b")]}, ["ab"], ["a", "", "ba"]),
    "sequence, empty": ({"type": "sequence", "elements": []}, [""], ["a"]),
    "or": ({"type": "or", "elements": [const("a"), const("ab")]}, ["a", "ab"], ["", "b"]),
    "optional": ({"type": "optional", "content": const("ab")}, ["", "ab"], ["a", "abab"]),
    "star": ({"type": "star", "content": const("ab")}, ["", "ab", "abab"], ["a"]),
    "plus": ({"type": "plus", "content": const("ab")}, ["ab", "abab"], ["", "aba"]),
    "repeat": (
        {"type": "repeat", "min": 1, "max": 3, "content": const("a")},
        ["a", "aa", "aaa"],
        ["", "aaaa"],
    ),
    "repeat without an upper bound": (
        {"type": "repeat", "min": 2, "max": -1, "content": const("a")},
        ["aa", "a" * 50],
        ["", "a"],
    ),
    "tag": (A, ["<a>x</a>"], ["<a></a>", "x", "<a>x</a>y"]),
    "tag with several ends": (
        tag("<t>", TEXT, ["</t>", "<|x|>"]),
        ["<t></t>", "<t>a<|x|>", "<t><|x</t>"],
        ["<t>a<|x|></t>", "<t></t></t>", "<t>"],
    ),
    "tag whose text ends at the first end": (
        tag("<t>", TEXT, "</t>"),
        ["<t>a</t</t>", "<t><</t>", "<t>日</t>"],
        ["<t>a</t>b</t>", "a<t></t>"],
    ),
    "tag whose end overlaps itself": (tag("", TEXT, "aa"), ["aa", "baa", "abaa"], ["aaa", "baaa", "a"]),
    "tag whose text has excludes": (
        tag("<t>", {"type": "any_text", "excludes": ["<t>"]}, "</t>"),
        ["<t>a</t>", "<t><t</t>"],
        ["<t><t></t>"],
    ),
    "tag whose text is short": (
        tag("<t>", {"type": "any_text", "max_tokens": 2}, "</t>"),
        ["<t>ab</t>", "<t></t>"],
        ["<t>abc</t>", "<t></t></t>"],
    ),
    "tag with free text last in a sequence": (
        tag("<t>", {"type": "sequence", "elements": [const("k"), TEXT]}, "</t>"),
        ["<t>k</t>", "<t>kz</t>"],
        ["<t>kz</t>q</t>", "<t>z</t>"],
    ),
    "tag with free text or else": (
        tag("<t>", {"type": "or", "elements": [const("k"), TEXT]}, "</t>"),
        ["<t>k</t>", "<t></t>"],
        ["<t>kz</t>q</t>"],
    ),
    "tag with free text or nothing": (
        tag("<t>", {"type": "optional", "content": TEXT}, "</t>"),
        ["<t>k</t>", "<t></t>"],
        ["<t>kz</t>q</t>"],
    ),
    "tag with tags in free text": (
        tag("<t>", triggered(triggers=["<a"], tags=[A]), "</t>"),
        ["<t></t>", "<t>z<a>x</a>q</t>", "<t><a>x</a><a>x</a></t>", "<t>a</t</t>"],
        ["<t>z</t>q</t>", "<t><a></t>", "<t><a>x</a>"],
    ),
    "triggered_tags": (
        triggered(triggers=["<a"], tags=[A]),
        ["", "hi", "<", "<<a>x</a>", "p<a>x</a>q<a>x</a>r"],
        ["<a", "p<a>y</a>", "<a>x</a><a"],
    ),
    "triggered_tags, two triggers": (
        triggered(triggers=["<a", "[["], tags=[A, tag("[[b", const("!"), "]]")]),
        ["<a>x</a>[[b!]]", "[<[[b!]]"],
        ["[[a", "<a>x</a>[["],
    ),
    "triggered_tags, one trigger inside the other": (
        triggered(triggers=["<a", "x<a"], tags=[A, tag("x<a!", TEXT, ".")]),
        ["x<a!q.", "x<a>x</a>", "<a>x</a>"],
        ["<a!q.", "x<a?"],
    ),
    "triggered_tags, the shorter trigger fires": (
        triggered(triggers=["<a", "<a>"], tags=[A]),
        ["<a>x</a>"],
        ["<ab", "<a>"],
    ),
    "triggered_tags, self-overlapping trigger": (
        triggered(triggers=["aab"], tags=[tag("aab", const("!"), "")]),
        ["aaab!", "aab!a", "aaa"],
        ["aaab", "aab"],
    ),
    "triggered_tags, excludes": (
        triggered(triggers=["<a"], tags=[A], excludes=["<b"]),
        ["<a>x</a>b", "<<a>x</a>"],
        ["<b", "q<b<a>x</a>", "<a>x</a><b"],
    ),
    "triggered_tags, at_least_one": (
        triggered(triggers=["<a"], tags=[A], at_least_one=True),
        ["<a>x</a>", "<a>x</a>z<a>x</a>"],
        ["", "z<a>x</a>", "z"],
    ),
    "triggered_tags, stop_after_first": (
        triggered(triggers=["<a"], tags=[A], stop_after_first=True),
        ["zz", "z<a>x</a>", "<a>x</a>"],
        ["<a>x</a>z", "<a>x</a><a>x</a>"],
    ),
    "triggered_tags, exactly one": (
        triggered(triggers=["<a"], tags=[A], at_least_one=True, stop_after_first=True),
        ["<a>x</a>"],
        ["", "z<a>x</a>", "<a>x</a>z"],
    ),
    "triggered_tags, exactly one, in a tag": (
        tag("<t>", triggered(triggers=["<a"], tags=[A], stop_after_first=True), "</t>"),
        ["<t>z<a>x</a></t>", "<t>z</t>"],
        ["<t><a>x</a>z</t>", "<t></t></t>"],
    ),
    "dispatch": (
        {"type": "dispatch", "rules": [["#", {"type": "regex", "pattern": "[0-9]"}], ["@", const("me")]]},
        ["", "a#1b@mec", "#1#2"],
        ["#", "#a", "@you"],
    ),
    "dispatch, once": (
        {"type": "dispatch", "rules": [["#", const("1")]], "loop": False, "excludes": ["!"]},
        ["a", "a#1"],
        ["a#1b", "!", "!#1"],
    ),
    "tags_with_separator": (
        {"type": "tags_with_separator", "tags": [A, tag("b", const(""), "")], "separator": ", "},
        ["", "b", "<a>x</a>, b", "b, b, b"],
        ["b,b", "b, ", ", b"],
    ),
    "tags_with_separator, at_least_one": (
        {"type": "tags_with_separator", "tags": [A], "separator": "", "at_least_one": True},
        ["<a>x</a>", "<a>x</a><a>x</a>"],
        [""],
    ),
    "tags_with_separator, stop_after_first": (
        {"type": "tags_with_separator", "tags": [A], "separator": ",", "stop_after_first": True},
        ["", "<a>x</a>"],
        ["<a>x</a>,<a>x</a>"],
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_admits_its_texts_and_no_others(name: str) -> None:
    check(*FORMATS[name])


def test_lark_is_a_format_of_its_own_and_a_syntax_of_grammar() -> None:
    for form in ({"type": "lark"}, {"type": "grammar", "syntax": "lark"}):
        check({**form, "grammar": 'start: "a" start "b" | "c"'}, ["c", "aacbb"], ["", "ac"])


# Tokens.


def test_special_tokens_are_matched_by_id_or_name_and_not_by_their_text() -> None:
    for ref in (CALL, "<|call|>"):
        form = {"type": "sequence", "elements": [{"type": "token", "token": ref}, const("x")]}
        assert admits_tokens(form, [CALL, ord("x")])
        assert not admits(form, "<|call|>x")
    assert admits_tokens({"type": "exclude_token", "exclude_tokens": [CALL]}, [RETURN])
    assert not admits_tokens({"type": "exclude_token", "exclude_tokens": [CALL]}, [CALL])
    some = {"type": "any_tokens", "exclude_tokens": ["<|call|>"], "max_tokens": 3}
    assert admits_tokens(some, []) and admits_tokens(some, [RETURN, 65, RETURN])
    assert not admits_tokens(some, [CALL]) and not admits_tokens(some, [65] * 4)


def test_a_tag_between_tokens() -> None:
    form = tag({"type": "token", "token": CALL}, {"type": "any_tokens"}, {"type": "token", "token": RETURN})
    assert admits_tokens(form, [CALL, RETURN])
    assert admits_tokens(form, [CALL, 65, CALL, RETURN])
    assert not admits_tokens(form, [CALL, RETURN, RETURN])
    text = tag({"type": "token", "token": CALL}, TEXT, {"type": "token", "token": RETURN})
    assert admits_tokens(text, [CALL, *b"<|return|>", RETURN]) and not admits_tokens(text, [CALL, CALL, RETURN])


def test_tokens_trigger_tags_and_text_that_looks_like_them_does_not() -> None:
    form = {
        "type": "token_triggered_tags",
        "trigger_tokens": [CALL],
        "tags": [tag({"type": "token", "token": CALL}, const("x"), "")],
        "exclude_tokens": [RETURN],
    }
    assert admits_tokens(form, [*b"a<|call|>b"])
    assert admits_tokens(form, [65, CALL, ord("x"), 66])
    assert not admits_tokens(form, [CALL, ord("y")]) and not admits_tokens(form, [RETURN])
    once = {**form, "at_least_one": True, "stop_after_first": True}
    assert admits_tokens(once, [CALL, ord("x")])
    assert not admits_tokens(once, [65, CALL, ord("x")]) and not admits_tokens(once, [CALL, ord("x"), 65])
    dispatch = {"type": "token_dispatch", "rules": [["<|call|>", const("x")]], "loop": False}
    assert admits_tokens(dispatch, [65, CALL, ord("x")]) and not admits_tokens(dispatch, [CALL, ord("x"), 65])


# The scenarios of tool calls.

GET = {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"], "additionalProperties": False}
NONE = {"type": "object", "properties": {}, "additionalProperties": False}
CALLS = [
    tag(f'<tool_call>{{"name":"{name}","arguments":', {"type": "json_schema", "json_schema": schema}, "}</tool_call>")
    for name, schema in (("get", GET), ("get_all", NONE))
]
ONE = '<tool_call>{"name":"get","arguments":{"k":1}}</tool_call>'
ALL = '<tool_call>{"name":"get_all","arguments":{}}</tool_call>'


def calls(**options: Any) -> dict[str, Any]:
    return triggered(triggers=["<tool_call>"], tags=CALLS, **options)


def test_tc_triggered_several_calls() -> None:
    check(
        calls(),
        ["hello", ONE, f"hi {ONE} and {ALL} bye", ALL + ALL, "a < b"],
        [
            "hi <tool_call>",
            'x <tool_call>{"name":"put","arguments":{}}</tool_call>',
            '<tool_call>{"name":"get","arguments":{}}</tool_call>',
            ONE[:-1],
        ],
    )


def test_tc_names_sharing_prefix() -> None:
    check(
        calls(),
        [ONE, ALL],
        [
            '<tool_call>{"name":"get_","arguments":{}}</tool_call>',
            '<tool_call>{"name":"get_all","arguments":{"k":1}}</tool_call>',
            '<tool_call>{"name":"getx","arguments":{"k":1}}</tool_call>',
        ],
    )
    matcher = GrammarMatcher(COMPILER.compile_structural_tag(calls()))
    assert matcher.accept_string('<tool_call>{"name":"get')
    bitmask = punchcard.allocate_token_bitmask(1, INFO.vocab_size)
    matcher.fill_next_token_bitmask(bitmask)
    bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")
    assert sorted(np.flatnonzero(bits)) == sorted([ord('"'), ord("_")])


def test_tc_no_parallel_calls() -> None:
    check(calls(stop_after_first=True), ["hello", f"hi {ONE}", ALL], [ONE + ONE, f"{ONE} more", ALL + ALL])


def test_tc_required_at_least_one() -> None:
    check(calls(at_least_one=True), [ONE, ONE + ALL], ["", "hello", f"hello {ONE}"])


def test_tc_any_text_until_marker() -> None:
    block = tag("<TOOL>", {"type": "any_text", "excludes": ["<END>"]}, "")
    check(
        triggered(triggers=["<TOOL>"], tags=[block], at_least_one=True, stop_after_first=True),
        ["<TOOL>", "<TOOL>abc", "<TOOL>a<EN<E b"],
        ["abc", "<TOOL>a<END>", "<TOOL><EN<END>"],
    )


def test_tc_xml_value_near_marker() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["city"],
    }
    check(
        tag("<function=w>", {"type": "json_schema", "json_schema": schema, "style": "qwen_xml"}, "</function>"),
        [
            "<function=w><parameter=city>Oslo</parameter></function>",
            "<function=w><parameter=city>a</par</parameter></function>",
            "<function=w><parameter=city>a</parameter1></parameter></function>",
            "<function=w><parameter=city>x\ny</parameter><parameter=n>3</parameter></function>",
        ],
        [
            "<function=w></function>",
            "<function=w><parameter=city>a</parameter1></function>",
            "<function=w><parameter=city>a</parameter><parameter=n>x</parameter></function>",
            "<function=w><parameter=town>a</parameter></function>",
        ],
    )


def test_tc_reasoning_trigger_not_yet() -> None:
    check(
        {"type": "sequence", "elements": [tag("", TEXT, "</think>"), {"type": "regex", "pattern": "[a-z]+"}]},
        ["Think, 1+1 = 2.</think>two", "</think>x"],
        ["Think</think>Two", "Think</think>", "no marker yet"],
    )


def test_tc_tools_or_final_json() -> None:
    final = {
        "type": "object",
        "properties": {"done": {"type": "boolean"}},
        "required": ["done"],
        "additionalProperties": False,
    }
    some = {"type": "tags_with_separator", "tags": CALLS, "separator": "", "at_least_one": True}
    check(
        {"type": "or", "elements": [some, {"type": "json_schema", "json_schema": final}]},
        [ONE, ONE + ONE, '{"done":true}'],
        ["hello", '{"done":1}', '{"done":true}' + ONE],
    )


def test_mat_stop_token_as_terminal() -> None:
    ends = {"type": "or", "elements": [{"type": "token", "token": "<|call|>"}, {"type": "token", "token": END}]}
    form = {"type": "sequence", "elements": [const("ok"), ends]}
    matcher = GrammarMatcher(COMPILER.compile_structural_tag(form))
    assert not matcher.accept_token(END) and matcher.accept_string("ok")
    assert not matcher.is_accepting()
    assert matcher.fork().accept_token(CALL) and matcher.accept_token(END)


# Arguments as XML-like elements.

STRING = {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]}


def styled(schema: Any, style: str = "qwen_xml", **fields: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": schema, "style": style, **fields}


def one(value: Any, **keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": value}, "required": ["v"], **keywords}


@pytest.mark.parametrize(
    ("style", "string", "number"),
    [
        ("qwen_xml", "<parameter=v>\nx\n</parameter>\n", "<parameter=v>\n3\n</parameter>\n"),
        ("minimax_xml", '<parameter name="v">x</parameter>\n', '<parameter name="v">3</parameter>\n'),
        (
            "deepseek_xml",
            '<｜DSML｜parameter name="v" string="true">x</｜DSML｜parameter>\n',
            '<｜DSML｜parameter name="v" string="false">3</｜DSML｜parameter>\n',
        ),
        (
            "deepseek_v4_1_xml",
            '<｜DSML｜ parameter name="v" string="true">x</｜DSML｜ parameter>\n',
            '<｜DSML｜ parameter name="v" string="false">3</｜DSML｜ parameter>\n',
        ),
        (
            "glm_xml",
            "<arg_key>v</arg_key>\n<arg_value>x</arg_value>\n",
            "<arg_key>v</arg_key>\n<arg_value>3</arg_value>\n",
        ),
        (
            "kimi_k3_xml",
            '<|open|>argument key="v" type="string"<|sep|>x<|close|>argument<|sep|>',
            '<|open|>argument key="v" type="number"<|sep|>3<|close|>argument<|sep|>',
        ),
    ],
)
def test_each_style_spells_strings_raw_and_numbers_as_json(style: str, string: str, number: str) -> None:
    compact = (string.replace("\n", ""), number.replace("\n", ""))
    text, integer, either = one({"type": "string"}), one({"type": "integer"}), one({"type": ["string", "integer"]})
    tells = style.startswith(("deepseek", "kimi"))
    check(styled(text, style), [string, compact[0]], [*([number] if tells else []), ""])
    check(styled(integer, style), [number, compact[1]], [string, compact[0], ""])
    check(styled(either, style), [string, compact[0], number, compact[1]], [""])
    check(styled(text, style, newlines="required"), [string], [compact[0]] if "\n" in string else [])
    check(styled(integer, style, newlines="none"), [compact[1]], [number] if "\n" in number else [])


def test_one_line_break_on_each_side_is_no_part_of_a_value() -> None:
    word = one({"enum": ["a", "\nb"]})
    check(
        styled(word),
        [f"<parameter=v>{value}</parameter>" for value in ("a", "\na", "a\n", "\na\n", "\n\nb", "\n\nb\n")],
        [f"<parameter=v>{value}</parameter>" for value in ("\nb", "b", "\n\na", "a\n\n")],
    )
    check(
        styled(one({"type": "string", "minLength": 1})),
        ["<parameter=v>x</parameter>", "<parameter=v>\n\n\n</parameter>"],
        ["<parameter=v></parameter>", "<parameter=v>\n</parameter>", "<parameter=v>\n\n</parameter>"],
    )


PARAMETERS: dict[str, tuple[Any, list[str], list[str]]] = {
    "in order, optional ones may be absent": (
        {
            "type": "object",
            "properties": {"a": {"type": "null"}, "b": {"type": "boolean"}, "c": {"type": "integer"}},
            "required": ["b"],
        },
        [
            "<parameter=b>true</parameter>",
            "<parameter=a>null</parameter><parameter=b>false</parameter><parameter=c>1</parameter>",
        ],
        ["", "<parameter=c>1</parameter><parameter=b>true</parameter>", "<parameter=b>True</parameter>"],
    ),
    "no parameters": ({"type": "object", "properties": {}}, ["", "\n"], ["<parameter=a>1</parameter>"]),
    "an enum of strings is raw": (
        one({"enum": ["x", "y z"]}),
        ["<parameter=v>x</parameter>", "<parameter=v>y z</parameter>"],
        ['<parameter=v>"x"</parameter>', "<parameter=v>z</parameter>"],
    ),
    "an optional string is raw or null": (
        one({"anyOf": [{"type": "string", "pattern": "^[a-z]+$"}, {"type": "null"}]}),
        ["<parameter=v>abc</parameter>", "<parameter=v>null</parameter>"],
        ["<parameter=v>1</parameter>", '<parameter=v>"abc"</parameter>'],
    ),
    "anything is a raw string too": (one(True), ["<parameter=v>a b</parameter>", "<parameter=v>[1]</parameter>"], []),
    "references reach definitions": (
        {
            **one({"$ref": "#/$defs/node"}),
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {"next": {"$ref": "#/$defs/node"}},
                    "additionalProperties": False,
                }
            },
        },
        ["<parameter=v>{}</parameter>", '<parameter=v>{"next":{"next":{}}}</parameter>'],
        ["<parameter=v>1</parameter>", '<parameter=v>{"next":1}</parameter>', "<parameter=v>x</parameter>"],
    ),
    "references to strings are raw": (
        {**one({"$ref": "#/$defs/a~1b"}), "$defs": {"a/b": {"type": "string", "maxLength": 2}}},
        ["<parameter=v>ab</parameter>"],
        ["<parameter=v>abc</parameter>", '<parameter=v>"abc"</parameter>'],
    ),
    "the parameters are behind a reference": (
        {"$ref": "#/$defs/args", "$defs": {"args": one({"type": "integer"})}},
        ["<parameter=v>1</parameter>"],
        ["", "<parameter=v>x</parameter>"],
    ),
    "others, under their schema": (
        {"type": "object", "properties": {"v": {"type": "null"}}, "additionalProperties": {"type": "integer"}},
        ["", "<parameter=w>1</parameter>", "<parameter=v>null</parameter><parameter=w>1</parameter>"],
        ["<parameter=w>x</parameter>", "<parameter=v>1</parameter>"],
    ),
    "any, where none is declared": (
        {"type": "object"},
        ["", "<parameter=w>1</parameter><parameter=x>y</parameter>"],
        ["<parameter=>1</parameter>"],
    ),
    "any, under the schema true": (True, ["", "<parameter=w>1</parameter>"], ["x"]),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name: str) -> None:
    schema, accepted, rejected = PARAMETERS[name]
    check(styled(schema), accepted, rejected)


def test_the_older_name_of_the_qwen_style() -> None:
    check({"type": "qwen_xml_parameter", "json_schema": STRING}, ["<parameter=s>x</parameter>"], ["x"])


def test_texts_can_be_excluded_from_raw_strings() -> None:
    check(
        styled(STRING, excludes=["<parameter"]),
        ["<parameter=s>a<param</parameter>"],
        ["<parameter=s>a<parameter=t>b</parameter>"],
    )


# How tags are given.


def test_objects_json_data_json_text_and_the_older_form_are_the_same() -> None:
    form = TriggeredTagsFormat(
        triggers=["<f"],
        tags=[TagFormat(begin="<f>", content=JSONSchemaFormat(json_schema={"type": "integer"}), end="</f>")],
    )
    whole = StructuralTag(format=form)
    data = whole.model_dump()
    older = {"structures": [{"begin": "<f>", "schema": '{"type": "integer"}', "end": "</f>"}], "triggers": ["<f"]}
    spellings: list[Any] = [
        form, whole, data, json.dumps(data), data["format"], older, {"type": "structural_tag", **older}
    ]  # fmt: skip
    for spelling in spellings:
        assert structural_tag(spelling).to_expr() == whole.to_expr()
        assert Grammar.from_structural_tag(spelling)._expr == whole.to_expr()
    check(older, ["x<f>1</f>y"], ["<f>x</f>"])


def test_events_are_named_after_triggers_and_beginnings() -> None:
    text = json.dumps(structural_tag(calls()).to_expr())
    assert text.count('"kind": "trigger", "name": "<tool_call>"') == 1
    assert text.count('"kind": "tag"') == 2


#: A tag, where it is wrong, and what is said.
WRONG: list[tuple[Any, str, str]] = [
    ({"type": "zzz"}, "format", "There is no format 'zzz'"),
    ({"format": {"value": "x"}}, "format", "'type' is missing"),
    ({"type": "const_string"}, "format", "'value' is missing"),
    ({"type": "any_text", "exclude": []}, "format.exclude", "There is no such field"),
    ({"type": "any_text", "excludes": ["a", ""]}, "format.excludes[1]", "empty text"),
    ({"type": "any_text", "max_chars": -1}, "format.max_chars", "greater than or equal to 0"),
    ({"type": "or", "elements": []}, "format.elements", "no alternative"),
    ({"type": "repeat", "min": 3, "max": 2, "content": TEXT}, "format.max", "less than min"),
    ({"type": "sequence", "elements": [TEXT, tag(5, TEXT, "")]}, "format.elements[1].begin", "valid string"),
    ({"type": "sequence", "elements": [TEXT, tag("x", TEXT, [])]}, "format.elements[1].end", "no end"),
    (triggered(triggers=["<b"], tags=[A]), "format.tags[0].begin", "none of the triggers"),
    (triggered(triggers=["<a", "<b"], tags=[A]), "format.triggers[1]", "No tag begins with"),
    (triggered(triggers=["<a", ""], tags=[A]), "format.triggers[1]", "empty text"),
    (triggered(triggers=[], tags=[], at_least_one=True), "format.tags", "no tags"),
    (
        triggered(triggers=["<a", "xx<ab"], tags=[A, tag("xx<ab>", TEXT, ".")]),
        "format.tags[1].begin",
        "never fires",
    ),
    (
        tag("", triggered(triggers=["<"], tags=[A]), "</t>"),
        "format.content",
        "never reached",
    ),
    (
        triggered(triggers=["<a"], tags=[tag({"type": "token", "token": 3}, TEXT, "")]),
        "format.tags[0].begin",
        "token_triggered_tags",
    ),
    (
        {"type": "token_triggered_tags", "trigger_tokens": [3], "tags": [A]},
        "format.tags[0].begin",
        "triggered_tags",
    ),
    ({"type": "dispatch", "rules": [["a", TEXT], ["xab", TEXT]]}, "format.rules[1][0]", "never fire"),
    ({"type": "tags_with_separator", "tags": [], "separator": ""}, "format.tags", "no tags"),
    ({"type": "grammar", "grammar": "root ::= ("}, "format.grammar", "format.grammar"),
    (styled(True, "cohere_xml"), "format.style", "not covered"),
    (styled(True, "json", excludes=["x"]), "format.excludes", "pattern"),
    (styled(STRING, any_order=True), "format.any_order", "order of the schema"),
    (styled(False), "format.json_schema", "admit no object"),
    (styled({"type": "array"}), "format.json_schema", "not 'array'"),
    (styled(one(False)), "format.json_schema", "admits no value"),
    (styled(one(True, minProperties=3)), "format.json_schema", "'minProperties'"),
    (styled({"properties": {}, "required": ["x"]}), "format.json_schema", "'x' is required"),
    (styled({"$ref": "#/$defs/no"}), "format.json_schema", "points to nothing"),
    (styled({"$ref": "other.json"}), "format.json_schema", "does not point into"),
    ({"type": "json_schema", "json_schema": {}, "options": {"colour": 1}}, "format.options", "'colour'"),
    ({"type": "json_schema", "json_schema": {}, "options": {"whitespace": "x"}}, "format.options", "whitespace"),
    ({"type": "json_schema", "json_schema": "{"}, "format.json_schema", "Expecting"),
    ({"structures": [], "triggers": []}, "structures", "not a list of tags"),
    ({"structures": [{"begin": "a"}], "triggers": []}, "structures[0]", "begin, schema and end"),
    ({"structures": [{"begin": "a", "schema": {}, "end": ""}]}, "triggers", "not a list"),
    ("{", "", "not JSON"),
    ("[]", "", "is an object"),
]


@pytest.mark.parametrize(("value", "path", "said"), WRONG)
def test_errors_name_the_path(value: Any, path: str, said: str) -> None:
    with pytest.raises(GrammarError) as caught:
        structural_tag(value).to_expr()
    assert caught.value.fields["path"] == path
    assert said in str(caught.value) and caught.value.hint


def test_errors_of_objects_that_are_built_in_python() -> None:
    with pytest.raises(GrammarError, match="'value' is missing"):
        ConstStringFormat()  # type: ignore[call-arg]
    with pytest.raises(GrammarError, match="excludes"):
        AnyTextFormat(excludes="x")  # type: ignore[arg-type]


def test_deep_nesting_is_refused() -> None:
    form: dict[str, Any] = const("a")
    for _ in range(150):
        form = {"type": "optional", "content": form}
    with pytest.raises(GrammarError, match="nested"):
        structural_tag(form).to_expr()
    for _ in range(5_000):
        form = {"type": "optional", "content": form}
    with pytest.raises(GrammarError):
        structural_tag(form).to_expr()
