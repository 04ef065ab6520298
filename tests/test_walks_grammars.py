"""Random walks through EBNF grammars and regular expressions with the Llama 3 vocabulary.

There is no dead end, and every text is accepted by something else: Python's `json`, `csv`, `re`, or a parser by hand.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_walks import compiler, llama3, pick

import punchcard
from punchcard import CompiledGrammar, GrammarMatcher

WALKS = int(os.environ.get("PUNCHCARD_EXAMPLES", "12"))
GRAMMARS = Path(__file__).parent / "grammars"


def walk(
    compiled: CompiledGrammar, rng: random.Random, prefer: str = "", lengths: Sequence[int] = (3, 10, 30, 60)
) -> str:
    """Random tokens for a while, many of them of the characters in ``prefer``; then along a completion to the end."""
    info, bitmask = llama3(), punchcard.allocate_token_bitmask(1, llama3().vocab_size)
    end = info.eos_token_ids[0]
    matcher, tokens = GrammarMatcher(compiled), []
    for step in range(rng.choice(lengths)):
        matcher.fill_next_token_bitmask(bitmask)
        mask = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little").astype(bool)[: info.vocab_size]
        assert mask.any(), f"dead end after {b''.join(info.tokens[t] for t in tokens)!r}"
        other = rng.randrange(info.vocab_size)
        assert matcher.fork().accept_token(other) == mask[other], info.tokens[other]
        liked = np.flatnonzero(mask & preferred(prefer)) if prefer and rng.random() < 0.8 else []
        token = int(rng.choice(liked)) if len(liked) else pick(mask, rng)
        if token == end and step < 20 and mask.sum() > 1:
            continue
        assert matcher.accept_token(token)
        if matcher.is_terminated():
            break
        tokens.append(token)
    else:
        plan = matcher.find_completion_tokens()
        assert matcher.validate_tokens([*plan, end]) == len(plan) + 1
        tokens += plan
    return b"".join(info.tokens[token] for token in tokens).decode()


@cache
def preferred(characters: str) -> np.ndarray:
    """bool [vocab_size]: tokens of these characters only."""
    letters = characters.encode()
    tokens = llama3().tokens
    return np.array(
        [bool(token) and not token.strip(letters) for token in tokens] + [False] * (llama3().vocab_size - len(tokens))
    )


class Parser:
    """What parsers by hand need: a place in a text, and an error where something else was expected."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self, pattern: str) -> str | None:
        """What matches here, and goes behind it."""
        found = re.compile(pattern).match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def need(self, pattern: str) -> str:
        found = self.take(pattern)
        assert found is not None, f"{pattern!r} expected at {self.at} of {self.text!r}"
        return found

    def end(self) -> None:
        assert self.at == len(self.text), f"more than expected at {self.at} of {self.text!r}"


def is_json(text: str) -> None:
    json.loads(text)


def is_arithmetic(text: str) -> None:
    """By precedence climbing."""
    parser = Parser(text)

    def expression(least: int) -> None:
        while parser.take("-"):
            pass
        if parser.take(r"\("):
            expression(0)
            parser.need(r"\)")
        else:
            parser.need(r"[0-9]+(\.[0-9]+)?")
        while True:
            before = parser.at
            operator = parser.take(r" ?[-+*/] ?|\^")
            if operator is None:
                return
            rank = {"+": 0, "-": 0, "*": 1, "/": 1, "^": 2}[operator.strip()]
            if rank < least:
                parser.at = before
                return
            expression(rank if operator == "^" else rank + 1)

    expression(0)
    parser.end()


def is_chess(text: str) -> None:
    move = r"(([a-h]x)?[a-h]([2-7]|[18]=[QRBN])|[KQRBN][a-h]?[1-8]?x?[a-h][1-8]|O-O(-O)?)[+#]?"
    assert text
    assert text.endswith("\n")
    for line in text.split("\n")[:-1]:
        assert re.fullmatch(rf"[1-9][0-9]?[0-9]?\. {move}( {move})?", line), line


def is_csv(text: str) -> None:
    """Read by the csv module, and written again by hand, it is the same, but for quotes that were not needed."""
    rows = list(csv.reader([text], strict=True)) if "\r\n" not in text else None
    fields, parser = 0, Parser(text)
    while True:
        parser.need(r'"([^"]|"")*"|[^",\r\n]*')
        fields += 1
        if not parser.take(","):
            if not parser.take("\r\n"):
                break
            if parser.at == len(text):
                break
    parser.end()
    if rows is not None and text and "\n" not in text and "\r" not in text:
        assert len(rows[0]) == fields


def is_sql(text: str) -> None:
    parser = Parser(text)
    name, number = "[a-z_][a-z0-9_]*", r"-?[0-9]+(\.[0-9]+)?"
    literal = rf"'([^']|'')*'|{number}"

    def query() -> None:
        parser.need("SELECT ")
        if not parser.take(r"\*"):
            column()
            while parser.take(", "):
                column()
        parser.need(f" FROM {name}")
        if parser.take(" WHERE "):
            condition()
        if parser.take(" ORDER BY "):
            parser.need(rf"{name}( ASC| DESC)?(, {name}( ASC| DESC)?)*")
        parser.take(" LIMIT [0-9]+")

    def column() -> None:
        parser.need(rf"COUNT\(\*\)|(MAX|MIN|SUM)\({name}\)|{name}")
        parser.take(f" AS {name}")

    def condition() -> None:
        test()
        while parser.take(" OR | AND "):
            test()

    def test() -> None:
        while parser.take("NOT "):
            pass
        if parser.take(r"\("):
            condition()
            parser.need(r"\)")
        elif parser.take(rf"{name} IN \("):
            if parser.text.startswith("SELECT ", parser.at):
                query()
            else:
                parser.need(rf"({literal})(, ({literal}))*")
            parser.need(r"\)")
        elif not parser.take(rf"{name} IS (NOT )?NULL"):
            parser.need(rf"({name}|{literal}) (=|<>|<=|<|>=|>) ({name}|{literal})")

    query()
    parser.need(";")
    parser.end()


def is_c(text: str) -> None:
    """By one loop over operands and operators: all binary operators have spaces around, and group in some way."""
    parser = Parser(text)
    name = "[a-zA-Z_][a-zA-Z0-9_]*"
    constant = r"""0x[0-9a-fA-F]+|0|[1-9][0-9]*|'[ -&(-\[\]-~]'|"[ !#-\[\]-~]*\""""
    binary = r" (\|\||&&|==|!=|<=|>=|<<|>>|<|>|\+|-|\*|/|%) "

    def unary() -> bool:
        """Whether it may be assigned to, as far as the grammar goes."""
        if parser.take(r"\+\+|--"):
            parser.need(name)
        elif parser.take("[&*!~]"):
            unary()
        elif parser.text.startswith("sizeof(", parser.at) and sizeof():
            pass
        else:
            postfix()
        return True

    def sizeof() -> bool:
        # sizeof is a name, too: then this is a call, with arguments that need not be unary.
        before = parser.at
        parser.need(r"sizeof\(")
        try:
            unary()
            parser.need(r"\)")
        except AssertionError:
            parser.at = before
            return False
        if parser.text.startswith(("[", "(", ".", "->"), parser.at):
            parser.at = before
            return False
        return True

    def postfix() -> None:
        if parser.take(r"\("):
            expression()
            parser.need(r"\)")
        else:
            parser.need(f"{name}|{constant}")
        while True:
            if parser.take(r"\["):
                expression()
                parser.need(r"\]")
            elif parser.take(r"\("):
                if not parser.take(r"\)"):
                    expression()
                    parser.need(r"\)")
            elif not parser.take(rf"(\.|->){name}"):
                return

    def expression() -> None:
        assignment()
        while parser.take(", "):
            assignment()

    def assignment() -> None:
        unary()
        if parser.take(r" (=|\+=|-=|\*=|<<=) "):
            assignment()
            return
        conditional()

    def conditional() -> None:
        """Behind the first operand."""
        while parser.take(binary):
            unary()
        if parser.take(r" \? "):
            expression()
            parser.need(" : ")
            unary()
            conditional()

    expression()
    parser.end()


CHECKS: dict[str, tuple[Callable[[str], Any], str]] = {
    "json": (is_json, '{}[]":, \n0123456789.eE+-truefalsnabc\\u'),
    "arithmetic": (is_arithmetic, "0123456789.+-*/^() "),
    "chess": (is_chess, ""),
    "csv": (is_csv, 'abc,"\r\n 12é'),
    "sql": (is_sql, "ab_ ,.'()=<>SELECTFROMWHERANDOIULXNK*12"),
    "c": (is_c, "abf0x12 ()[].->,?:+*&!~|<=\"'sizeof"),
}


def test_every_grammar_has_a_check() -> None:
    assert {path.stem for path in GRAMMARS.glob("*.ebnf")} == set(CHECKS)


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_ebnf(name: str) -> None:
    compiled = compiler().compile_ebnf((GRAMMARS / f"{name}.ebnf").read_text("utf-8"))
    check, prefer = CHECKS[name]
    texts = set()
    for seed in range(WALKS):
        text = walk(compiled, random.Random(f"{name} {seed}"), prefer if seed % 3 else "")
        check(text)
        texts.add(text)
    assert len(texts) > WALKS / 2


# Text that is in the grammar, and text that is not.
SAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "json": (['{"a": [1, -2.5e+3, "\\u00e9é", null]}', " [ ] "], ["{,}", "[1,]", "01", '"\n"', "nul"]),
    "arithmetic": (["1 - 2 - 3*-(4+5)^2^3", "--1"], ["1 -", "1  + 2", "()", "1.", "*1"]),
    "chess": (
        ["1. e4 e5\n2. Nf3 Nc6\n3. O-O-O# exd8=Q+\n", "99. Qa1xb2\n"],
        ["1. e8\n", "1.e4\n", "0. e4\n", "1. e4", "1. O-O-\n"],
    ),
    "csv": (['a,"b ""c"" \r\n,d",\r\n,,', "", "a\r\n"], ['a"b', '"a', '"a"b', "a\nb"]),
    "sql": (
        [
            "SELECT * FROM t;",
            "SELECT COUNT(*) AS n, a FROM t WHERE NOT (a = 'it''s' OR b <> -1.5) AND c IN (SELECT d FROM u)"
            " ORDER BY a DESC, b LIMIT 10;",
            "SELECT a FROM t WHERE a IS NOT NULL AND a IN (1, 'x');",
        ],
        [
            "SELECT * FROM t",
            "SELECT FROM t;",
            "SELECT a FROM t WHERE;",
            "SELECT a FROM t WHERE a = 'x;",
            "select * from t;",
        ],
    ),
    "c": (
        [
            "a = b += c[0](x, y)->z.w ? 1 : 0x1F << 2 && !~*p",
            "f()()[1], sizeof(x)",
            "sizeof(1 + 2)",
            "'a' == \"b\"",
            "++i",
        ],
        ["a +", "1 2", "f(,)", "a ? b", "(a", "''", "a  + b", "a++"],
    ),
}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_samples(name: str) -> None:
    """The grammar and the check agree on what is in it and what is not."""
    compiled = compiler().compile_ebnf((GRAMMARS / f"{name}.ebnf").read_text("utf-8"))
    good, bad = SAMPLES[name]
    for text in good:
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_string(text), text
        assert matcher.is_accepting(), text
        CHECKS[name][0](text)
    for text in bad:
        matcher = GrammarMatcher(compiled)
        assert not (matcher.accept_string(text) and matcher.is_accepting()), text
        with pytest.raises((AssertionError, ValueError, csv.Error)):
            CHECKS[name][0](text)


REGEXES = [
    r"[a-z]+@[a-z]+\.(com|org)",
    r"(\d{1,3}\.){3}\d{1,3}",
    r"(?:[A-Z][a-z]{2,8} ){1,4}(?:Jr\.|Sr\.)?",
    r"[^\W\d_]{3,5}(-[^\W\d_]{3,5})*",
    r"\$[1-9]\d{0,2}(,\d{3})*\.\d\d",
    r"(?:a|ab|abc)*c{2,}",
    r"[😀-🙏]{2,4}|[à-ÿ]+ß?",
    r"(?=.*\d)(?=.*[a-z])[a-z0-9]{4,12}",
    r"(?!.*(?:foo|bar))[a-z]{2,9}",
    r"x{3,70000}y?",
    r"\s*(?:#[^\n]*\n\s*)*return(?: \S+)?;",
    r"(?:(?:0|1)(?:0|1)){2,}|[2-9]*",
]


@pytest.mark.parametrize("pattern", REGEXES)
def test_regexes(pattern: str) -> None:
    compiled = compiler().compile_regex(re.compile(pattern))
    for seed in range(WALKS):
        text = walk(compiled, random.Random(f"{pattern} {seed}"))
        assert re.fullmatch(pattern, text), text


@pytest.mark.parametrize("path", sorted(GRAMMARS.glob("*.lark")), ids=lambda path: path.stem)
def test_lark(path: Path) -> None:
    lark = pytest.importorskip("lark")
    compiled = compiler().compile_lark(path.read_text())
    reference = lark.Lark(path.read_text(), parser="earley", lexer="dynamic", ambiguity="forest")
    rng = random.Random(4)
    for _ in range(max(3, WALKS // 4)):
        # Lark's Earley parser takes seconds for longer texts.
        reference.parse(walk(compiled, rng, "abcint selctfrom0123(),=;{}", lengths=[2, 6, 12]))


CALL = re.compile(r'<call>\{"name":"(get|put)","arguments":(.*?)\}</call>', re.S)


def is_prose_with_calls(text: str) -> None:
    """Free text, in which every trigger begins a whole call of a known tool with the right arguments."""
    prose = CALL.sub("", text)
    assert "<call>" not in prose
    for name, arguments in CALL.findall(text):
        value = json.loads(arguments)
        assert set(value) == {"k"}
        assert type(value["k"]) is int if name == "get" else type(value["k"]) is str


def test_tags() -> None:
    tags = [
        {
            "type": "tag",
            "begin": f'<call>{{"name":"{name}","arguments":',
            "content": {
                "type": "json_schema",
                "json_schema": {
                    "type": "object",
                    # JSON strings may hold what closes a call, which `CALL` would take for its end.
                    "properties": {"k": {"type": kind, "pattern": "^[^<]*$"}},
                    "required": ["k"],
                    "additionalProperties": False,
                },
            },
            "end": "}</call>",
        }
        for name, kind in [("get", "integer"), ("put", "string")]
    ]
    free = {"type": "triggered_tags", "triggers": ["<call>"], "tags": tags}
    at_once = {**free, "at_least_one": True}
    rng = random.Random(5)
    for tag in (free, at_once):
        compiled = compiler().compile_structural_tag(tag)
        for _ in range(WALKS):
            text = walk(compiled, rng, "<cal>")
            is_prose_with_calls(text)
            assert tag is free or text.startswith("<call>")
