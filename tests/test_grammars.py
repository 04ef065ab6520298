"""Grammars of all kinds: how they combine, print and are shown, and what is told of errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from punchcard import (
    BudgetError,
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarError,
    GrammarMatcher,
    InvalidSchemaError,
    LimitError,
    Limits,
    PunchcardError,
    TokenizerInfo,
)
from punchcard.notation import is_lark

END = 256
INFO = TokenizerInfo.from_vocab([bytes([i]) for i in range(256)], eos_token_ids=[END], vocab_size=257)
COMPILER = GrammarCompiler(INFO)


def accepts(grammar: Grammar | CompiledGrammar, text: str) -> bool:
    matcher = GrammarMatcher(COMPILER.compile(grammar) if isinstance(grammar, Grammar) else grammar)
    return matcher.accept_string(text) and matcher.is_accepting()


PARTS = {
    "schema": Grammar.from_json_schema({"type": "array", "items": {"type": "integer"}}),
    "regex": Grammar.from_regex("[a-c]+"),
    "python": Grammar.from_regex(re.compile("x+ # some", re.X | re.I)),
    "ebnf": Grammar.from_ebnf('root ::= "(" root ")" | "."'),
    "lark": Grammar.from_lark('start: "<" start? ">"'),
    "text": Grammar.from_text("é\n"),
}
TEXTS = {"schema": "[1, 2]", "regex": "cab", "python": "Xx", "ebnf": "((.))", "lark": "<<>>", "text": "é\n"}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("other", PARTS)
def test_grammars_of_all_kinds_combine(name: str, other: str) -> None:
    both, either = Grammar.concat(PARTS[name], PARTS[other]), Grammar.union(PARTS[name], PARTS[other])
    assert accepts(both, TEXTS[name] + TEXTS[other])
    assert not accepts(both, TEXTS[name][:1])
    assert accepts(either, TEXTS[name]) and accepts(either, TEXTS[other])
    assert not accepts(either, "?")


@pytest.mark.parametrize("name", PARTS)
def test_printed_grammars_read_back(name: str) -> None:
    grammar = Grammar.concat(PARTS[name], Grammar.from_text("!"))
    read = Grammar.from_ebnf(str(grammar))
    assert str(read) == str(grammar)
    assert accepts(read, TEXTS[name] + "!") and not accepts(read, TEXTS[name])


def test_equal_grammars_are_equal() -> None:
    assert Grammar.from_regex("a") == Grammar.from_regex("a") != Grammar.from_regex("b")
    assert len({Grammar.from_regex("a"), Grammar.from_regex("a")}) == 1


def test_a_grammar_is_shown_as_svg() -> None:
    pytest.importorskip("railroad")
    grammar = Grammar.union(
        Grammar.from_ebnf('root ::= "a<b" | [0-9]{2,3} tail?\ntail ::= root'), Grammar.from_json_schema(True)
    )
    root = ElementTree.fromstring(grammar.show())
    texts = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {'"a<b"', "[0-9]", "tail", "JSON true", "2 to 3 times"} <= texts


def test_without_its_package_a_picture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "railroad", None)
    with pytest.raises(PunchcardError, match="railroad-diagrams"):
        Grammar.from_regex("a").show()
    assert Grammar.from_regex("a")._repr_svg_() is None


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [('root ::= "a', 1, 10), ("root ::= a\nb ::= [z-a]", 2, 8), ("root ::= b", 1, 10), ('root ::= (\n  "x"', 1, 10)],
)
def test_errors_of_ebnf_say_where(text: str, line: int, column: int) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_ebnf(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.excerpt == text.split("\n")[line - 1].strip()


def test_a_grammar_without_texts_is_refused() -> None:
    for text in ["root ::= root", 'root ::= "a" root', 'root ::= a b\na ::= "x"\nb ::= b | b "y"']:
        with pytest.raises(GrammarError, match="No text matches"):
            COMPILER.compile_ebnf(text)


def test_alternatives_without_texts_are_no_way_on() -> None:
    compiled = COMPILER.compile_ebnf('root ::= "a" loop | "ab" end\nloop ::= "b" loop\nend ::= "c"')
    matcher = GrammarMatcher(compiled)
    assert matcher.find_jump_forward_string() == "abc"


def test_a_schema_within_a_grammar_is_blamed_with_its_rule() -> None:
    with pytest.raises(InvalidSchemaError, match='In rule "value"') as caught:
        COMPILER.compile_ebnf('root ::= value\nvalue ::= @json_schema({"type": "strin"})')
    assert caught.value.pointer == "/type"


def test_operands_that_are_not_regular_are_refused() -> None:
    nested = 'r ::= "(" r ")" | ""'
    for text in [
        f"root ::= @not(r)\n{nested}",
        f'root ::= @and(r, "x")\n{nested}',
        "root ::= @not(@json_schema(true))",
    ]:
        with pytest.raises(GrammarError, match="not regular"):
            COMPILER.compile_ebnf(text)


def test_tokens_that_the_vocabulary_lacks_are_named() -> None:
    for token, named in [('"<|nope|>"', "nope"), ("999", "999")]:
        with pytest.raises(GrammarError, match=named):
            COMPILER.compile_ebnf(f"root ::= @token({token})")


def test_hostile_grammars_meet_limits() -> None:
    others = " | ".join(f'r{j} "y"' for j in range(400))
    rules = "\n".join(f'r{i} ::= {others} | "x"' for i in range(400))
    with pytest.raises(GrammarError, match="begin with each other"):
        COMPILER.compile_ebnf(rules)
    compiler = GrammarCompiler(INFO, limits=Limits(max_states=1_000))
    matcher = GrammarMatcher(compiler.compile_ebnf('root ::= "(" root? ")"'))
    with pytest.raises(LimitError) as caught:
        for _ in range(2_000):
            assert matcher.accept_string("(")
    assert caught.value.limit == "max_states"


def test_limits_on_tokens() -> None:
    words = [b"a", b"b", b"aa", b"aaaa", b"!", b""]
    info = TokenizerInfo.from_vocab(words, eos_token_ids=[5])
    limited = {"sequence": [{"max_tokens": {"body": {"regex": {"pattern": "a*b?"}}, "tokens": 3}}, {"text": "!"}]}
    matcher = GrammarMatcher(GrammarCompiler(info).compile(Grammar(limited)))
    for token in (3, 2, 0):
        assert matcher.accept_token(token)
    assert matcher.validate_tokens([0]) == matcher.validate_tokens([1]) == 0
    assert matcher.validate_tokens([4, 5]) == 2
    too_small = {"max_tokens": {"body": {"text": "aab"}, "tokens": 2}}
    with pytest.raises(GrammarError, match="too small"):
        GrammarCompiler(info).compile(Grammar(too_small))


@pytest.mark.parametrize(
    ("text", "taken", "tokens"),
    [
        # The limit around goes on counting within the inner one, and behind it.
        ('root ::= @max_tokens(5, "a" @max_tokens(2, [b]*) [c]*)', "abcccccc", 5),
        ('root ::= @max_tokens(5, "a" @max_tokens(9, [b]*) [c]*)', "abbbbbbb", 5),
        ('root ::= @max_tokens(5, ("a" @max_tokens(2, [b]*))*)', "abbabbabb", 5),
        ('root ::= @max_tokens(6, "a" @max_tokens(4, "b" @max_tokens(2, [c]*) [d]*) [e]*)', "abccddeee", 5),
        ('root ::= @max_tokens(6, "a" @max_tokens(4, "b" @max_tokens(2, [c]*) [d]*) [e]*)', "abcdeeeee", 6),
        # What the outer limit still needs is left to it.
        ('root ::= @max_tokens(6, @max_tokens(5, [a]*) "xyz")', "aaaaaaa", 3),
        ('root ::= @max_tokens(4, "(" root? ")")', "((((", 2),
    ],
)
def test_limits_within_limits(text: str, taken: str, tokens: int) -> None:
    matcher = GrammarMatcher(COMPILER.compile_ebnf(text))
    count = 0
    for byte in taken.encode():
        if not matcher.accept_token(byte):
            break
        count += 1
        assert matcher.find_completion() is not None
    assert count == tokens


def test_a_budget_below_the_minimum_names_it() -> None:
    compiled = COMPILER.compile_regex("abc|abcdef")
    with pytest.raises(BudgetError) as caught:
        GrammarMatcher(compiled, token_budget=2)
    assert caught.value.minimum == 3
    matcher = GrammarMatcher(compiled, token_budget=5)
    assert matcher.accept_string("abc") and not matcher.accept_token(ord("d"))
    assert matcher.budget_left == 2


CALLS = {
    "type": "triggered_tags",
    "triggers": ["<call>"],
    "tags": [
        {
            "type": "tag",
            "begin": f'<call>{{"name":"{name}","arguments":',
            "content": {"type": "json_schema", "json_schema": schema},
            "end": "}</call>",
        }
        for name, schema in {"get": {"required": ["k"]}, "get_all": {"maxProperties": 0}}.items()
    ],
}


def told(grammar: Grammar, text: str) -> list[tuple[int, tuple[object, ...]]]:
    """Each event, with the number of bytes after which it was told."""
    matcher = GrammarMatcher(COMPILER.compile(grammar), events=True)
    out: list[tuple[int, tuple[object, ...]]] = []
    for count, byte in enumerate(text.encode()):
        assert matcher.accept_token(byte)
        out += [(count + 1, tuple(event)) for event in matcher.events(len(out))]
    assert matcher.accept_token(END)
    out += [(-1, tuple(event)) for event in matcher.events(len(out))]
    assert [event for _, event in out] == [tuple(event) for event in matcher.events()]
    return out


def test_events_of_calls() -> None:
    text = 'a <call>{"name":"get","arguments":{"k": 12,"o":{"a/b":[{"z":"\\""}]}}}</call> b'
    get = '<call>{"name":"get","arguments":'
    assert told(Grammar.from_structural_tag(CALLS), text) == [
        # A trigger as soon as it is complete, a tag as soon as it is no other, a member from its first byte on.
        (8, ("trigger", "<call>", "begin", 8)),
        (8, ("trigger", "<call>", "end", 8)),
        (21, ("tag", get, "begin", 8)),
        (41, ("property", "/k", "begin", 40)),
        (43, ("property", "/k", "end", 42)),
        (48, ("property", "/o", "begin", 47)),
        (55, ("property", "/o/a~1b", "begin", 54)),
        (61, ("property", "/o/a~1b/0/z", "begin", 60)),
        (64, ("property", "/o/a~1b/0/z", "end", 64)),
        (66, ("property", "/o/a~1b", "end", 66)),
        (67, ("property", "/o", "end", 67)),
        (76, ("tag", get, "end", 76)),
    ]


def test_events_of_rules_and_at_the_end() -> None:
    grammar = Grammar.from_ebnf('root ::= item ("," item)*\nitem ::= "a"+ | number\nnumber ::= [0-9]+')
    assert told(grammar, "aa,7") == [
        (1, ("rule", "root", "begin", 0)),
        (1, ("rule", "item", "begin", 0)),
        (3, ("rule", "item", "end", 2)),
        (3, ("rule", "item", "begin", 3)),
        (4, ("rule", "number", "begin", 3)),
        (-1, ("rule", "number", "end", 4)),
        (-1, ("rule", "item", "end", 4)),
        (-1, ("rule", "root", "end", 4)),
    ]


@pytest.mark.parametrize(
    ("grammar", "text", "events"),
    [
        # Terminals of Lark go as far as they can.
        (
            Grammar.from_lark('start: item ("," item)*\nitem[capture="x"]: NAME\nNAME: /[a-z]+/'),
            "ab,c",
            [("x", "begin", 0), ("x", "end", 2), ("x", "begin", 3), ("x", "end", 4)],
        ),
        (
            Grammar.from_lark('start: a b\na[capture]: /a+/\nb[capture]: /b|bc/ "d"?'),
            "aabc",
            [("a", "begin", 0), ("a", "end", 2), ("b", "begin", 2), ("b", "end", 4)],
        ),
        (
            Grammar.from_ebnf('root ::= @longest("a"+) b\nb[capture] ::= "b"'),
            "aab",
            [("b", "begin", 2), ("b", "end", 3)],
        ),
        # Rules that an operand names have no events of their own.
        (
            Grammar.from_ebnf('root ::= a @not(s) a\ns ::= r "a" | ""\nr ::= ""\na[capture] ::= "x"'),
            "xbx",
            [("a", "begin", 0), ("a", "end", 1), ("a", "begin", 2), ("a", "end", 3)],
        ),
        (
            Grammar.from_ebnf('root ::= w @and(w, [a-c]+) "."\nw[capture] ::= v\nv ::= "a" u\nu ::= "b" "c"?'),
            "abcab.",
            [("w", "begin", 0), ("w", "end", 3)],
        ),
        # A rule that begins with itself has no place where it begins; those around it have.
        (
            Grammar.from_ebnf('root ::= "(" d x ")"\nd ::= d? c d | ""\nc ::= "c"\nx[capture] ::= "x" | "y"'),
            "(ccx)",
            [("x", "begin", 3), ("x", "end", 4)],
        ),
    ],
)
def test_events_of_captures(grammar: Grammar, text: str, events: list[tuple[str, str, int]]) -> None:
    found = [event for _, event in told(grammar, text) if event[0] == "capture"]
    assert [(name, what, position) for _, name, what, position in found] == events


def test_events_go_back_with_the_matcher() -> None:
    compiled = COMPILER.compile_json_schema({"properties": {"a": {}, "b": {}}})
    matcher = GrammarMatcher(compiled, events=True)
    assert matcher.accept_string('{"a": 1') and matcher.accept_string(', "b"')
    assert [event.what for event in matcher.events()] == ["begin", "end"]
    fork = matcher.fork()
    matcher.rollback(1)
    assert [event.what for event in matcher.events()] == ["begin"]
    assert fork.accept_string(": 2}") and len(fork.events()) == 4
    with pytest.raises(PunchcardError, match="tells no events"):
        GrammarMatcher(compiled).events()


HALF = "\ud800"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Grammar.from_ebnf('root ::= "\\ud800"'),
        lambda: Grammar.from_ebnf("root ::= [\\udfff]"),
        lambda: Grammar.from_ebnf("root ::= #xD800"),
        lambda: Grammar.from_ebnf(f'root ::= "x"\na ::= "{HALF}"'),
        lambda: Grammar.from_ebnf('root ::= "x"', start=HALF),
        lambda: Grammar.from_lark('start: "\\ud800"'),
        lambda: Grammar.from_lark(f"start: /{HALF}/"),
        lambda: Grammar.from_lark('start: "x"', start=HALF),
        lambda: Grammar.from_regex(f"a{HALF}"),
        lambda: Grammar.from_regex(re.compile(HALF)),
        lambda: Grammar.from_text(HALF),
        lambda: Grammar.from_text(b"x"),  # type: ignore[arg-type]
        lambda: Grammar.from_structural_tag({"format": {"type": "const_string", "value": HALF}}),
        lambda: Grammar.from_structural_tag({"format": {"type": "grammar", "grammar": f'root ::= "{HALF}"'}}),
        lambda: Grammar.from_structural_tag({"format": {"type": "regex", "pattern": HALF}}),
        lambda: Grammar.from_structural_tag(
            {"format": {"type": "tag", "begin": HALF, "content": {"type": "any_text"}, "end": "x"}}
        ),
    ],
)
def test_halves_of_surrogate_pairs_are_refused(make: Callable[[], Grammar]) -> None:
    with pytest.raises(GrammarError) as caught:
        make()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "lark"),
    [
        ('root = "a" | b\nb = [0-9]+\n', False),
        ('root := "a: b"', False),
        ('# root: "x"\nroot ::= ":"', False),
        ('/* start: x */\nnumber- ::= "1"', False),
        ('[1] doc ::= "x"', False),
        ('root[capture="x"] ::= "x"', False),
        ('start: "::="', True),
        ('// a ::= b\n?start.2: x\nx: "="', True),
        ('%import common.WS\nstart: "a ::= b"', True),
        ('list{x}: x "=" x\nstart: list{"::="}', True),
        ('start[capture]: "="', True),
        ('start[stop="::="]: /x/', True),
        ('_x.-2: "::="\nstart: _x', True),
        ('start: %json {"const": "::="}', True),
    ],
)
def test_the_notation_is_told_by_the_first_rule(text: str, lark: bool) -> None:
    assert is_lark(text) == lark
    from punchcard.server.protocol.constraints import StructuredOutputs, structured_grammar

    expected = Grammar.from_lark(text) if lark else Grammar.from_ebnf(text)
    assert structured_grammar(StructuredOutputs(grammar=text), 10_000) == expected


@pytest.mark.parametrize(
    ("text", "lark"),
    [
        ('; rules\nroot = "a:"', False),
        ('-- rules\nroot := "a"', False),
        ('my root = ":" ;', False),
        ('<root> ::= ":"', False),
        ('"root" = ":"', False),
        ("@x\nstart: '::='", True),
        ("[" * 500_000, True),
        ("(*" * 500_000, True),
    ],
)
def test_a_grammar_that_cannot_be_read_is_refused_in_its_own_notation(text: str, lark: bool) -> None:
    assert is_lark(text) == lark


# Rules that are other rules, around in a circle: A ::= A adds no text.
CIRCLES = [
    (
        'root ::= value\nvalue ::= list | [0-9]\nlist ::= value ("," value)*',
        ["1", "1,2", "1,2,3"],
        ["", ",", "1,", "12"],
    ),
    ('root ::= a | "x"\na ::= root', ["x"], ["", "xx"]),
    ('root ::= root | b\nb ::= c | "x" b\nc ::= b | "y"', ["y", "xy", "xxy"], ["x", "yy"]),
    ('root ::= e root e | "x"\ne ::= "" | e e', ["x"], ["", "xx"]),
    ('root ::= e root | root root | e\ne ::= "" | "-" | e', ["", "-", "---"], ["x"]),
    # A circle whose rules go on to the left, too, and one that is reached by way of it.
    (
        'root ::= a "!"\na ::= b | a "+" c | "n"\nb ::= a | b "*" a\nc ::= d | a\nd ::= c | "(" a ")"',
        ["n!", "n+n!", "n*n+(n)!", "n+(n*n)*n!"],
        ["n", "n+!", "+n!"],
    ),
    ('root ::= a\na ::= "" | a | a b\nb ::= "y" a*', ["", "y", "yyy"], ["x"]),
]


@pytest.mark.parametrize(("text", "taken", "refused"), CIRCLES)
def test_circles_of_rules(text: str, taken: list[str], refused: list[str]) -> None:
    lark = text.replace(" ::=", ":").replace("[0-9]", "/[0-9]/").replace("root", "start")
    tag = {"format": {"type": "tag", "begin": "", "content": {"type": "grammar", "grammar": text}, "end": ";"}}
    for grammar in (Grammar.from_ebnf(text), Grammar.from_lark(lark)):
        compiled = COMPILER.compile(grammar)
        assert all(accepts(compiled, wanted) for wanted in taken)
        assert not any(accepts(compiled, other) for other in refused)
        assert GrammarMatcher(compiled).find_completion() is not None
    tagged = COMPILER.compile(Grammar.from_structural_tag(tag))
    assert all(accepts(tagged, f"{wanted};") for wanted in taken)
    assert not any(accepts(tagged, f"{other};") for other in refused)
