"""Lark grammars against lark itself: texts drawn from real grammars, the same mutated, and walks through masks.

More examples: ``PUNCHCARD_EXAMPLES=1000 pytest tests/test_lark_reference.py``; they are drawn by chance then.
"""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path

import lark
import numpy as np
import pytest
from lark_texts import TextGenerator

from punchcard import CompiledGrammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

END = 256
COMPILER = GrammarCompiler(
    TokenizerInfo.from_vocab([bytes([i]) for i in range(256)], eos_token_ids=[END], vocab_size=257)
)
EXAMPLES = int(os.environ.get("PUNCHCARD_EXAMPLES", "40"))
SEED = None if "PUNCHCARD_EXAMPLES" in os.environ else 0

# Lark's Earley parser takes seconds for longer ones.
MOST_CHARS = 60
# What mutations insert.
CHARACTERS = " \n()[]{}+-*/.,;:=<>&|!?'\"\\ae0_#é"
GRAMMARS = sorted(Path(__file__).with_name("grammars").glob("*.lark"))
grammars = pytest.mark.parametrize("path", GRAMMARS, ids=lambda path: path.stem)


LEXERS = ["dynamic", "dynamic_complete"]
lexers = pytest.mark.parametrize("lexer", LEXERS)


@cache
def reference(path: Path, lexer: str) -> lark.Lark:
    return lark.Lark(path.read_text(), parser="earley", lexer=lexer, ambiguity="forest")


@cache
def compiled(path: Path, lexer: str) -> CompiledGrammar:
    return COMPILER.compile_lark(path.read_text(), lexer=lexer)


def parses(path: Path, lexer: str, text: str) -> bool:
    try:
        reference(path, lexer).parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


def accepts(path: Path, lexer: str, text: str) -> bool:
    matcher = GrammarMatcher(compiled(path, lexer))
    return matcher.accept_string(text) and matcher.is_accepting()


def mutated(text: str, draw: random.Random) -> str:
    """The text with one character deleted, inserted, or swapped with the next one."""
    place = draw.randint(0, len(text))
    before, after = text[:place], text[place:]
    kind = draw.choice(["delete", "insert", "swap"])
    if kind == "insert" or len(after) < 2:
        return before + draw.choice(CHARACTERS) + after
    return before + (after[1:] if kind == "delete" else after[1] + after[0] + after[2:])


@grammars
@lexers
def test_texts_of_lark_and_their_neighbours(path: Path, lexer: str) -> None:
    generator = TextGenerator(reference(path, lexer))
    draw = random.Random(SEED)
    texts: list[str] = []
    while len(texts) < EXAMPLES:
        text = generator.draw(draw, draw.randrange(40))
        if len(text) <= MOST_CHARS:
            texts.append(text)
    for text in texts:
        assert lexer == "dynamic" or accepts(path, lexer, text), text
        for candidate in [text, mutated(text, draw)]:
            assert accepts(path, lexer, candidate) == parses(path, lexer, candidate), candidate


@grammars
@lexers
def test_texts_that_masks_lead_to_are_parsed_by_lark(path: Path, lexer: str) -> None:
    draw = random.Random(SEED)
    for _ in range(EXAMPLES):
        text = walk(compiled(path, lexer), draw)
        assert parses(path, lexer, text), text


def walk(grammar: CompiledGrammar, draw: random.Random) -> str:
    """A text that is drawn byte by byte from the masks; printable ASCII where it can be, and ended by a completion."""
    matcher = GrammarMatcher(grammar)
    text = bytearray()
    length = draw.randrange(MOST_CHARS // 3)
    while len(text) < length:
        allowed = allowed_tokens(matcher)
        if END in allowed and draw.random() < 0.1:
            break
        bytes_allowed = [token for token in allowed if token != END]
        plain = [token for token in bytes_allowed if 32 <= token < 127]
        if not bytes_allowed:
            break
        token = draw.choice(plain or bytes_allowed)
        assert matcher.accept_token(token)
        text.append(token)
    text += matcher.find_completion()
    return text.decode()


def allowed_tokens(matcher: GrammarMatcher) -> list[int]:
    mask = np.zeros((1, 9), dtype=np.int32)
    if not matcher.fill_next_token_bitmask(mask):
        return list(range(257))
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:257]
    return [int(token) for token in np.flatnonzero(bits)]
