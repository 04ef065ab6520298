"""What a vocabulary must not do to a mask: nine situations in which constrained decoders have gone wrong.

Some were met with regular expressions or bare words; here they are put as JSON Schemas of the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import punchcard
from punchcard import PunchcardError, TokenizerInfo

pytest.importorskip("punchcard._core")

BYTES = [bytes([i]) for i in range(256)]


class Session:
    """A matcher with its mask as a set of ids."""

    def __init__(self, info: TokenizerInfo, schema: object, **options: object) -> None:
        compiled = punchcard.GrammarCompiler(info).compile_json_schema(schema, **options)
        self.matcher = punchcard.GrammarMatcher(compiled)
        self.bitmask = punchcard.allocate_token_bitmask(1, info.vocab_size)

    def mask(self) -> set[int]:
        if not self.matcher.fill_next_token_bitmask(self.bitmask):
            self.bitmask[:] = -1
        bits = self.bitmask[0].view("uint8")
        return {8 * i + bit for i, byte in enumerate(bits.tolist()) for bit in range(8) if byte >> bit & 1}

    def accept(self, *tokens: int) -> None:
        """Accept tokens, each of which the mask must allow."""
        for token in tokens:
            assert token in self.mask()
            assert self.matcher.accept_token(token)

    def refuses(self, token: int) -> bool:
        """Whether a token is refused, by an answer or an error, and leaves the state as it was."""
        before = self.mask()
        try:
            refused = not self.matcher.accept_token(token)
        except PunchcardError:
            refused = True
        return refused and self.mask() == before

    def agrees(self, tokens: Sequence[int]) -> set[int]:
        """The allowed ones of ``tokens``; mask and ``accept_token`` must agree on each."""
        allowed = self.mask()
        for token in tokens:
            fork = self.matcher.fork()
            assert fork.accept_token(token) is (token in allowed)
        return allowed & set(tokens)


def test_split_code_points() -> None:
    """A byte is allowed exactly when a character can still follow; the end never in mid-character."""
    end = 256
    info = TokenizerInfo.from_vocab([*BYTES, b""], eos_token_ids=end)
    faces = [chr(c) for c in range(ord("😀"), ord("🙏") + 1)]
    schema = {"enum": [*faces, *(face + "🙏" for face in faces)]}

    for text in ["😀", "🙏", "😀🙏"]:
        session = Session(info, schema)
        session.accept(*f'"{text}"'.encode(), end)

    session = Session(info, schema)
    for byte in b'"\xf0\x9f':
        session.accept(byte)
        assert end not in session.mask()
    assert session.mask() == {0x98, 0x99}
    session.accept(0x99)
    assert session.mask() == set(range(0x80, 0x90))  # up to U+1F64F, and no further
    assert session.refuses(0x90)
    session.accept(0x8F)
    assert session.mask() == {0xF0, ord('"'), ord("\\")}


def test_printed_replacement_characters() -> None:
    """A piece of unknown bytes is never allowed, not even where U+FFFD itself is; the true piece is."""
    tokens = ["�", ".�", "▁�", "�s", "�".encode(), b'"', b".", b"s", b"</s>"]
    info = TokenizerInfo.from_vocab(tokens, eos_token_ids=8)
    session = Session(info, {"enum": ["�", ".�", "�s"]})
    session.accept(5)
    assert session.mask() == {4, 6}
    session.accept(4)
    assert session.mask() == {5, 7}
    assert all(session.refuses(token) for token in range(4))


def test_nul_byte_round_trip() -> None:
    """The NUL token keeps its byte through serialisation, and is text like any other."""
    info = TokenizerInfo.from_vocab([b"\x00", b"7", b"</s>"], eos_token_ids=[2], vocab_size=4)
    info = TokenizerInfo.from_json(info.to_json())
    assert info.tokens[0] == info.vocabulary.token_bytes(0) == b"\x00"
    session = Session(info, {"const": 7})
    assert session.mask() == {1}
    assert session.refuses(0)
    session.accept(1, 2)


def test_duplicate_and_long_pieces() -> None:
    """Each id of the same bytes is allowed; a long piece is not cut."""
    long = '"' + "x" * 38 + '"'
    tokens = [b"?", b'"', b"a", b"b", b"</s>", b'"ab"', b"x", long.encode(), b'"a', b'"ab"']
    info = TokenizerInfo.from_vocab(tokens, eos_token_ids=4)
    schema = {"enum": ["ab", "x" * 38]}
    assert Session(info, schema).mask() == {1, 5, 7, 8, 9}
    for token in (5, 7, 9):
        session = Session(info, schema)
        session.accept(token)
        assert session.mask() == {4}


def test_several_end_tokens() -> None:
    """All end tokens are allowed where the text may end, none elsewhere; any of them terminates."""
    ends = [10, 11, 12]
    info = TokenizerInfo.from_vocab([*(b"%d" % i for i in range(10)), b"<a>", b"<b>", b"x"], eos_token_ids=ends)
    for end in ends:
        session = Session(info, {"type": "integer"})
        assert not session.mask() & set(ends)
        session.accept(4, 2)
        assert session.mask() >= set(ends)
        session.accept(end)
        assert session.matcher.is_terminated()


def test_end_token_configured_wrong() -> None:
    """Only the ends that were passed are ends, several sources' are united on request, completeness can be seen."""
    tokens = [b'"', b"o", b"k", b"<|end|>", *[b""] * 7, b"</s>"]
    info = TokenizerInfo.from_vocab(tokens, eos_token_ids=[3], special_token_ids=[3, 11])
    session = Session(info, {"const": "ok"})
    session.accept(0, 1, 2)
    assert not session.matcher.is_accepting()
    session.accept(0)
    assert session.matcher.is_accepting()  # a server may stop here by itself
    assert session.mask() == {3}
    assert session.refuses(0)

    united = info.replace(eos_token_ids=[*info.eos_token_ids, 11])
    session = Session(united, {"const": "ok"})
    session.accept(0, 1, 2, 0)
    assert session.mask() == {3, 11}


def test_padded_vocabulary() -> None:
    """The mask covers the width of the logits, padding is never allowed, ids out of range are refused."""
    tokens = [*(bytes([i]) for i in range(0x20, 0x20 + 69)), b"</s>"]
    info = TokenizerInfo.from_vocab(tokens, eos_token_ids=69, vocab_size=96)
    session = Session(info, {"type": "array", "items": {"type": "string"}})
    assert session.bitmask.shape == (1, 3)
    for byte in b'["A A"]':
        assert session.mask() <= set(range(70))
        assert all(session.refuses(token) for token in (70, 95, 96, -1, 2**31 - 1, -(2**31)))
        session.accept(byte - 0x20)
    assert 69 in session.mask() <= set(range(70))


def test_sentencepiece_leading_space() -> None:
    """At the very start, too, ``▁1`` is a space and a digit. The same holds after a rollback to the start."""
    entries = ["▁1", "1", "▁", "2"]
    from punchcard.tokenizers.pieces import spaced

    info = TokenizerInfo.from_vocab([*map(spaced, entries), b"</s>"], eos_token_ids=4)
    session = Session(info, {"enum": [1, 12]})
    assert session.mask() == {1}
    assert session.refuses(0)
    session.accept(1, 3)
    session.matcher.rollback(2)
    assert session.mask() == {1}
    assert session.refuses(0)
    session.accept(1)
    assert session.mask() == {3, 4}


@pytest.mark.parametrize(("profile", "trailing"), [("generate", False), ("spec", True)])
def test_white_space_after_the_closing_brace(profile: str, trailing: bool) -> None:
    """White space after the value is one setting of the profile; mask and ``accept_token`` agree on it."""
    end = 259
    info = TokenizerInfo.from_vocab([*BYTES, b"}", b"}\n", b"}\n\n", b"</s>"], eos_token_ids=end)
    session = Session(info, {"type": "object"}, profile=profile)
    session.accept(*b'{"a":1')
    assert session.agrees([256, 257, 258]) == ({256, 257, 258} if trailing else {256})
    session.accept(256)
    assert end in session.mask()
    assert session.refuses(ord("x"))
