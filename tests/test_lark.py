"""Lark grammars as they run: which texts each construct lets through."""

from __future__ import annotations

import json

import pytest

from punchcard import Grammar, GrammarCompiler, GrammarError, GrammarMatcher, TokenizerInfo

END, TOOL = 256, 257
COMPILER = GrammarCompiler(
    TokenizerInfo.from_vocab(
        [*(bytes([i]) for i in range(256)), b"</s>", b"<|tool|>"], eos_token_ids=[END], special_token_ids=[END, TOOL]
    )
)

CASES = [
    ('start: "a"i "b" ~ 2', ["abb", "Abb"], ["aBb", "ab", "abbb"]),
    ('start: [X] (X ",")*\nX: "0".."9" | /é|ü/', ["", "1", "1,", "é2,ü,"], ["12", ","]),
    (
        'start: list{NUMBER, ","} ";" list{"x", "-"}\nlist{item, by}: item (by item)*\n%import common.NUMBER',
        ["1;x", "1,2.5;x-x-x"],
        ["1,;x", ";x", "x;1"],
    ),
    ('start: "(" start ")" | "a" start "b" |', ["", "()", "a(ab)b"], ["(", "ab)"]),
    ('start: start "+" start | "1"', ["1", "1+1+1"], ["+", "1+", "11"]),
    # Ignored terminals: before, between and after, but not inside; any number, of any kind.
    (
        'start: "ab" C\nC: "c" "d"\n%ignore " "\n%ignore /#[^#]*#/',
        ["abcd", " ab cd ", "#x#ab # ##y# cd"],
        ["a b cd", "abc d"],
    ),
    ('start: "a" "b"\n%ignore /#[^\\n]*/ | /\\s+/', ["ab", "a #b\nb", "ab#", "a##\n\nb #"], ["a #b", "a#\n"]),
    ('start: "a" NL "b"\nNL: /\\n/\n%ignore /#[^\\n]*/ | " "', ["a\nb", "a #a\nb", "a # \n b#"], ["a #\n\nb", "a #b"]),
    # Terminals go as far as they can.
    ('start: NAME NAME\nNAME: /[a-z]+/\n%ignore " "', ["a b", "if  then"], ["ab", "a", "a b c"]),
    (
        'start: "let" NAME "=" NUM ";"\nNAME: /[a-z]+/\nNUM: /[0-9]+(\\.[0-9]+)?/',
        ["leta=1;", "letlet=1.5;"],
        ["let=1;"],
    ),
    (
        'start: (NAME | NUM | ".")+\nNAME: /[a-z]+/\nNUM: /[0-9]+(\\.[0-9]+)?/',
        ["a.b", "1.a", "1.5.a", "a1b2", ".."],
        [""],
    ),
    ('start: C* "x"\nC: "/*" /(.|\\n)*?/ "*/"', ["x", "/* a */x", "/**//*\n*/x", "/*/**/x"], ["/* a */ */x", "/*x"]),
    # Terminals as sets.
    ('start: ID\nID: /[a-z]{1,3}/ & ~("if" | "do") & ~/.*x/', ["a", "iff", "xa"], ["if", "do", "ax", "", "abcd"]),
    # Ends.
    ('start: t "!"\nt[lazy]: /(.|\\n)*/ "--"', ["--!", "a\n--!", "-a--!"], ["a-!", "--a--!", "---!"]),
    ('start: t "b"\nt[stop="<end>"]: /.*/', ["x<end>b", "<<end>b"], ["x<end>", "<end>a<end>b"]),
    ("start: t\nt[suffix=/<[ab]>/]: /.*/", ["<a>", "a<b<b>"], ["<a><b>", "x"]),
    ('start: t\nt[stop="aa"]: /a*b?/', ["aa", "baa", "abaa"], ["aaa", "aabaa", "bbaa"]),
    # Inline JSON and grammars.
    ('start: WS v WS\nWS: / */\nv: %json {"type": "integer"}', ["1", "  1 "], [" ", "1 1"]),
    ('start: MINUS v\nMINUS: /-*/\nv: %json {"type": "integer"}', ["1", "-1"], ["-"]),
    ('start: "x" v ";"\nv: %json {"type": "integer", "minimum": 7}\n%ignore " "', ["x 7 ;", "x12;"], ["x6;", "x;"]),
    (
        'start: "a" %lark {\n start: "b" "c"\n %ignore "_"\n} "d"\n%ignore " "',
        ["abcd", "a _b_c_ d"],
        ["a b cd", "ab c_d"],
    ),
    (
        'start: Q\nQ: "\\"" %regex {"substring_words": "to be or not"} "\\""',
        ['""', '"be or"', '" not"'],
        ['"to or"', '"t"'],
    ),
]


@pytest.mark.parametrize(("text", "accepted", "refused"), CASES)
def test_texts(text: str, accepted: list[str], refused: list[str]) -> None:
    grammar = COMPILER.compile_lark(text)

    def accepts(output: str) -> bool:
        matcher = GrammarMatcher(grammar)
        return matcher.accept_string(output) and matcher.is_accepting()

    assert [output for output in accepted if not accepts(output)] == []
    assert [output for output in refused if accepts(output)] == []


def test_with_the_complete_lexer_any_cut_will_do() -> None:
    for text, accepted in [
        ('start: NAME "if"\nNAME: /[a-z]+/', ["xif", "ifif"]),
        ('start: A "b"\nA: /[ab]*?/', ["b", "abb", "abab"]),
    ]:
        grammar = COMPILER.compile_lark(text, lexer="dynamic_complete")
        for output in accepted:
            matcher = GrammarMatcher(grammar)
            assert matcher.accept_string(output) and matcher.is_accepting()
    with pytest.raises(GrammarError, match="No text matches"):
        COMPILER.compile_lark('start: NAME "if"\nNAME: /[a-z]+/')
    with pytest.raises(GrammarError, match="is no option"):
        Grammar.from_lark('start: "a"', lexer="lalr")  # type: ignore[arg-type]


def test_special_tokens_are_tokens() -> None:
    for name in ("<|tool|>", f"<[{TOOL}]>", "<[*]>", "<[^0-255]>"):
        matcher = GrammarMatcher(COMPILER.compile_lark(f'start: "a" {name} "b"\n%ignore " "'))
        assert not matcher.accept_string("a<|tool|>b")
        assert matcher.accept_string("a ")
        assert matcher.accept_token(TOOL)
        assert matcher.accept_string(" b")
        assert matcher.is_accepting()


def test_max_tokens_ends_a_rule() -> None:
    matcher = GrammarMatcher(COMPILER.compile_lark('start: t "."\nt[max_tokens=3]: /[a-z]*/'))
    assert all(matcher.accept_token(ord(letter)) for letter in "abc")
    assert not matcher.accept_token(ord("d"))
    assert matcher.accept_token(ord("."))


def test_the_start_may_be_any_rule() -> None:
    assert str(Grammar.from_lark('top: "a"', start="top")) == 'root ::= top\ntop ::= "a"\n'


def test_errors_have_a_place_and_a_remedy() -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark('start: item\nitme: "a"')
    assert str(caught.value).startswith('Line 1, column 8: The rule "item" is not defined. Did you mean "itme"?')


# What is read where a lazy terminal may begin ends before a text of that one does.
TEXT = "TEXT: /(\\n|.)*/"
CALL = '%json {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": false}'
LAZY_FIRST = [
    (
        f'start: tool* tail\ntail: TEXT\nhead[lazy]: TEXT "<tool_call>"\ntool: head {CALL} "</tool_call>"\n{TEXT}',
        [
            "",
            "hi",
            "<tool_cal",
            'a<tool_call>{"x":1}</tool_call>b',
            "<tool_call>{}</tool_call><tool_call>{}</tool_call>",
        ],
        ["<tool_call>", '<tool_call>{"x":"bad"}</tool_call>', "<tool_call>{}</tool_call>x<tool_call>y"],
    ),
    # Two tools with one head, and tools with a head each.
    (
        f'start: (foo | bar)* end\nend: TEXT\nfoo: fh "=foo>" {CALL} "</f>"\nfh[lazy]: TEXT "<f"\n'
        f'bar: bh "=bar>" /[0-9]+/ "</f>"\nbh[lazy]: TEXT "<f"\n{TEXT}',
        ["", "a<f=foo>{}</f>b", "<f=bar>12</f><f=foo>{}</f>", "<"],
        ["<f", "<f=baz>", "<f=foo>1</f>", "<f=bar>1</f><f=bar>x</f>"],
    ),
    (
        f'start: (a | b)* end\nend: TEXT\na: ah "1"\nah[lazy]: TEXT "<a>"\nb: bh "2"\nbh[lazy]: TEXT "<b>"\n{TEXT}',
        ["", "x<a>1", "<b>2<a>1z"],
        ["<a>2", "x<b><a>1", "<b>2<a>2"],
    ),
    # Text between calls, calls alone, a suffix, a terminal as the head, another rule for the text.
    (
        f'start: (tool | TEXT)*\ntool: h "1"\nh[suffix="<a>"]: TEXT\n{TEXT}',
        ["", "x<a>1y<a>1", "<a"],
        ["x<a>", "<a>1<a>2"],
    ),
    (f'start: tool+\ntool: H "1"\nH[lazy]: TEXT "<a>"\n{TEXT}', ["<a>1", "x<a>1y<a>1"], ["", "x", "<a>1x"]),
    ('start: /(.|\\n)*/ | h "1"\nh[lazy]: /[^<]*<c>/', ["", "x<c>1", "<<c>2"], ["x<c>2", "<c>"]),
    # The same beginning in two rules; free text before is not kept from anything.
    (f'start: "x" tool | "x" TEXT\ntool: h "1"\nh[lazy]: TEXT "<t>"\n{TEXT}', ["x", "xa", "xa<t>1"], ["xa<t>2"]),
    (
        f'start: think tool* TEXT\nthink[suffix="</think>"]: TEXT\ntool: h "1"\nh[lazy]: TEXT "<t>"\n{TEXT}',
        ["<t>2</think>", "</think>a<t>1"],
        ["", "</think><t>2"],
    ),
]


@pytest.mark.parametrize("lexer", ["dynamic", "dynamic_complete"])
@pytest.mark.parametrize(("text", "accepted", "refused"), LAZY_FIRST)
def test_lazy_terminals_come_first(text: str, accepted: list[str], refused: list[str], lexer: str) -> None:
    grammar = Grammar.from_lark(text, lexer=lexer)  # type: ignore[arg-type]
    compiled = COMPILER.compile(grammar)
    for other in (compiled, COMPILER.compile(Grammar.from_ebnf(str(grammar)))):
        for wanted in accepted:
            matcher = GrammarMatcher(other)
            assert matcher.accept_string(wanted) and matcher.is_accepting(), wanted
        for unwanted in refused:
            matcher = GrammarMatcher(other)
            assert not (matcher.accept_string(unwanted) and matcher.is_accepting()), unwanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f'start: tool* %json {{}}\ntool: h "1"\nh[lazy]: TEXT "<t>"\n{TEXT}',
            "Line 3, column 1: Inline JSON may begin",
        ),
        (
            f'start: tool* %lark {{\n start: "x"\n}}\ntool: h "1"\nh[lazy]: TEXT "<t>"\n{TEXT}',
            "Line 5, column 1: A grammar in place may begin",
        ),
        (f'start: (h "1")* "x"\nh[lazy]: /( |a)*  /\n%ignore " "\n{TEXT}', "Line 2, column 1: Ignored text may begin"),
        (
            f'start: (h "1")* TEXT\nh[lazy]: /(a(?=.*x)[a-y])+x/\n{TEXT}',
            "Line 2, column 1: This lazy terminal looks beyond",
        ),
    ],
)
def test_what_cannot_make_room_for_a_lazy_terminal_is_refused(text: str, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(text)
    assert str(caught.value).startswith(message)
    assert caught.value.hint


OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("options", "accepted", "refused"),
    [
        ({"whitespace_flexible": False}, ['{"a":1,"b":2}'], ['{"a": 1}', '{ "a":1}']),
        ({"whitespace_flexible": True}, ['{"a":1}', '{\n\t  "a"  : 1}'], []),
        (
            {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False},
            ['{"a": 1, "b": 2}'],
            ['{"a":1, "b":2}', '{"a": 1,"b": 2}', '{ "a": 1}'],
        ),
        ({"whitespace_pattern": ""}, ['{"a":1}'], ['{"a": 1}']),
        ({"whitespace_pattern": r"[\x20\x0A\x0D\x09]+"}, ['{   "a":1}'], []),
        ({"coerce_one_of": True, "json_allowed_escapes": 'nrbtf\\"u', "lenient": True}, ['{"a": 1}'], ["1"]),
        ({}, ['{"a": 1}'], []),
    ],
)
def test_options_of_inline_json(options: dict[str, object], accepted: list[str], refused: list[str]) -> None:
    compiled = COMPILER.compile_lark("start: %json " + json.dumps({"x-guidance": options, **OBJECT}))
    for wanted in accepted:
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_string(wanted) and matcher.is_accepting(), wanted
    for unwanted in refused:
        matcher = GrammarMatcher(compiled)
        assert not (matcher.accept_string(unwanted) and matcher.is_accepting()), unwanted


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (1, "x-guidance is no object"),
        ({"item_separator": "\\s,"}, "item_separator"),
        ({"item_separator": ", "}, "separators"),
        ({"key_separator": 1}, "key_separator"),
        ({"whitespace_pattern": "[ ]{1,8}"}, "whitespace_pattern"),
        ({"whitespace_flexible": "no"}, "whitespace_flexible"),
        ({"json_allowed_escapes": "nrbtf"}, "json_allowed_escapes"),
        ({"no_such_option": True}, "no_such_option"),
    ],
)
def test_options_of_inline_json_that_are_not_known_are_refused(options: object, named: str) -> None:
    with pytest.raises(GrammarError, match="Line 1, column 14") as caught:
        Grammar.from_lark("start: %json " + json.dumps({"x-guidance": options, **OBJECT}))
    assert named in str(caught.value) and caught.value.hint
