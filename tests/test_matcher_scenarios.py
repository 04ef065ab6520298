"""Situations in which matchers of constrained decoders have gone wrong, and inputs that are meant to hurt them.

Each test is a scenario of its own. Nothing here is timed: what must not grow is counted.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    LimitError,
    PunchcardError,
    TokenizerInfo,
)

BYTES = [bytes([i]) for i in range(256)]
END = 256
INFO = TokenizerInfo.from_vocab([*BYTES, b"</s>"], eos_token_ids=END)
COMPILER = GrammarCompiler(INFO, cache_enabled=False)


def mask_of(matcher: GrammarMatcher, info: TokenizerInfo = INFO) -> set[int]:
    bitmask = punchcard.allocate_token_bitmask(1, info.vocab_size)
    matcher.fill_next_token_bitmask(bitmask)
    return set(np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")).tolist())


def accepts(compiled: CompiledGrammar, text: str) -> bool:
    matcher = GrammarMatcher(compiled)
    return matcher.accept_string(text) and matcher.is_accepting()


def feed(matcher: GrammarMatcher, data: bytes) -> None:
    """Byte by byte; each must be in the mask."""
    for byte in data:
        assert byte in mask_of(matcher)
        assert matcher.accept_token(byte)


# ---------------------------------------------------------------- vocabularies


def test_tok_split_utf8() -> None:
    compiled = COMPILER.compile_regex("[😀-🙏]+")
    for text in ("😀", "🙏", "😀🙏"):
        assert accepts(compiled, text)
    for text in ("🙐", "🗿", "é"):
        assert not GrammarMatcher(compiled).accept_string(text)
    matcher = GrammarMatcher(compiled)
    characters = [chr(c).encode() for c in range(ord("😀"), ord("🙏") + 1)]
    for data in (b"\xf0\x9f\x98\x80", b"\xf0\x9f\x99\x8f", b"\xf0\x9f\x99\x90", b"\xf0\x9f\x97\xbf"):
        matcher.reset()
        for i, byte in enumerate(data):
            # Exactly the bytes with which some character of the range goes on.
            following = {c[i] for c in characters if c[:i] == data[:i]}
            assert mask_of(matcher) == following
            assert matcher.accept_token(byte) == (byte in following)
            if byte not in following:
                break
        else:
            assert mask_of(matcher) == {0xF0, END}


def test_tok_replacement_char_pieces() -> None:
    """The printed pieces have no bytes that are known; only the true piece stands for U+FFFD."""
    pieces = ["�", ".�", "▁�", "�s", "�".encode(), b".", b"s", b" ", b"</s>"]
    info = TokenizerInfo.from_vocab(pieces, eos_token_ids=8)
    compiled = GrammarCompiler(info).compile_regex("[.s �]*")
    matcher = GrammarMatcher(compiled)
    assert mask_of(matcher, info) == {4, 5, 6, 7, 8}
    assert not any(matcher.accept_token(token) for token in range(4))
    assert matcher.accept_token(4)


def test_tok_nul_byte_roundtrip() -> None:
    info = TokenizerInfo.from_vocab([b"\x00", b"a", b"</s>"], eos_token_ids=[2], vocab_size=4)
    info = TokenizerInfo.from_json(info.to_json())
    assert info.tokens[0] == b"\x00"
    compiled = GrammarCompiler(info).compile(Grammar.from_text("a"))
    matcher = GrammarMatcher(compiled)
    assert mask_of(matcher, info) == {1}
    assert accepts(compiled, "a")
    assert not accepts(compiled, "")
    assert not accepts(compiled, "\x00")
    nul = GrammarMatcher(GrammarCompiler(info).compile(Grammar.from_text("\x00a")))
    assert mask_of(nul, info) == {0}
    assert nul.accept_token(0)


def test_tok_duplicate_bytes() -> None:
    long = b"ab" * 20
    info = TokenizerInfo.from_vocab(
        [b"?", b"x", b"a", b"b", b"</s>", b"ab", b"c", long, b"d", b"ab"], eos_token_ids=[4]
    )
    compiler = GrammarCompiler(info)
    compiled = compiler.compile(Grammar.from_text("ab"))
    assert mask_of(GrammarMatcher(compiled), info) == {2, 5, 9}
    for token in (5, 9):
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_token(token)
        assert mask_of(matcher, info) == {4}
    assert [accepts(compiled, text) for text in ("ab", "a", "abab")] == [True, False, False]
    # The long piece is whole: one byte less and it is no longer allowed.
    assert 7 in mask_of(GrammarMatcher(compiler.compile_regex("(ab){20}")), info)
    assert 7 not in mask_of(GrammarMatcher(compiler.compile_regex("(ab){19}a?")), info)


def test_tok_eos_configured_wrong() -> None:
    tokens = [b"o", b"k", b"ok", b"<|end|>", *[b""] * 7, b"</s>"]
    info = TokenizerInfo.from_vocab(tokens, eos_token_ids=[3], special_token_ids=[3, 11])
    compiled = GrammarCompiler(info).compile(Grammar.from_text("ok"))
    matcher = GrammarMatcher(compiled)
    assert matcher.accept_token(2)
    assert matcher.is_accepting()
    assert not matcher.is_terminated()
    assert mask_of(matcher, info) == {3}
    assert not any(matcher.accept_token(token) for token in (0, 1, 2, 4, 11))
    united = info.replace(eos_token_ids=[*info.eos_token_ids, 11])
    matcher = GrammarMatcher(GrammarCompiler(united).compile(Grammar.from_text("ok")))
    assert matcher.accept_token(2)
    assert mask_of(matcher, united) == {3, 11}
    assert matcher.accept_token(11)


def test_tok_sentencepiece_leading_space() -> None:
    from punchcard.tokenizers.pieces import spaced

    info = TokenizerInfo.from_vocab([*map(spaced, ["▁No", "No", "▁", "o", "N", "pe"]), b"</s>"], eos_token_ids=6)
    compiled = GrammarCompiler(info).compile_ebnf('root ::= "No" | "Nope"')
    matcher = GrammarMatcher(compiled)
    for _ in range(2):
        assert mask_of(matcher, info) == {1, 4}
        assert not matcher.accept_token(0)
        assert matcher.accept_token(1)
        assert mask_of(matcher, info) == {5, 6}
        matcher.rollback(1)
    assert [accepts(compiled, text) for text in ("No", "Nope", " No", "no")] == [True, True, False, False]


# ---------------------------------------------------------------- one sequence


def test_mat_rollback_unlimited() -> None:
    compiled = COMPILER.compile_json_schema({"type": "string"})
    letters = random.Random(0).choices("abc é😀.", k=400)
    data = ('"' + "".join(letters)).encode()[:300]
    matcher = GrammarMatcher(compiled)
    masks = []
    for byte in data:
        masks.append(mask_of(matcher))
        assert matcher.accept_token(byte)
    matcher.rollback(300)
    fresh = GrammarMatcher(compiled)
    for byte, mask in zip(data, masks, strict=True):
        assert mask_of(matcher) == mask_of(fresh) == mask
        assert matcher.accept_token(byte)
        assert fresh.accept_token(byte)
    for left in range(299, -1, -1):
        matcher.rollback(1)
        assert matcher.num_steps == left
        assert mask_of(matcher) == masks[left]
    with pytest.raises(PunchcardError, match="only 0 were taken"):
        matcher.rollback(1)


def test_mat_eos_split_invariance() -> None:
    compiled = COMPILER.compile(Grammar.from_text("a"))
    whole = GrammarMatcher(compiled).validate_tokens([ord("a"), END])
    cut = GrammarMatcher(compiled)
    first = cut.validate_tokens([ord("a")])
    assert cut.accept_token(ord("a"))
    second = cut.validate_tokens([END])
    assert cut.accept_token(END)
    assert whole == first + second == 2
    assert cut.is_terminated()
    assert GrammarMatcher(compiled).validate_tokens([ord("a"), ord("a"), END]) == 1
    assert GrammarMatcher(compiled).validate_tokens([ord("a"), END, END]) == 2


def test_mat_eos_twice() -> None:
    matcher = GrammarMatcher(COMPILER.compile_regex("a*"))
    assert matcher.accept_token(END)
    for _ in range(2):
        assert matcher.is_terminated()
        assert mask_of(matcher) == {END}
        assert not matcher.accept_token(END)
        assert not matcher.accept_token(ord("a"))
        assert not matcher.accept_string("a")
    assert matcher.find_jump_forward_string() == ""
    assert matcher.find_completion_tokens() == []
    matcher.rollback(1)
    assert not matcher.is_terminated()
    assert mask_of(matcher) == {ord("a"), END}


def test_mat_stop_token_as_terminal() -> None:
    info = TokenizerInfo.from_vocab(
        [*BYTES, b"<|end|>", b"<|return|>", b"</s>"], eos_token_ids=[257, 258], special_token_ids=[256]
    )
    end, stop, other = 256, 257, 258
    compiled = GrammarCompiler(info).compile_ebnf("root ::= [a-z]+ (<|end|> | <|return|>)")
    matcher = GrammarMatcher(compiled)
    assert mask_of(matcher, info) == set(b"abcdefghijklmnopqrstuvwxyz")  # "<|return|>ok" does not begin
    assert matcher.accept_string("ok")
    assert not matcher.is_accepting()
    assert mask_of(matcher, info) == {*b"abcdefghijklmnopqrstuvwxyz", end, stop}
    fork = matcher.fork()
    assert fork.accept_token(stop)
    assert fork.is_terminated()
    assert matcher.accept_token(end)
    assert not matcher.is_terminated()
    # The text is complete, and the stop rule applies.
    assert mask_of(matcher, info) == {stop, other}
    assert matcher.accept_token(other)


def random_schema(rng: random.Random, depth: int = 2) -> Any:
    kind = rng.randrange(8 if depth else 5)
    if kind == 0:
        return {"type": "integer", "minimum": rng.randrange(-5, 5), "maximum": rng.randrange(5, 500)}
    if kind == 1:
        return {"type": "string", "maxLength": rng.randrange(4)}
    if kind == 2:
        return {"enum": rng.sample([None, True, 1, 1.5, "a", "ab", "é", [], {"a": 1}], 3)}
    if kind == 3:
        return {"type": "string", "pattern": rng.choice(["^a+b?$", "^[é-ü]{1,2}$", "x", "^(a|ab)*$"])}
    if kind == 4:
        return {"type": ["number", "null", "boolean"]}
    if kind == 5:
        return {"type": "array", "items": random_schema(rng, depth - 1), "maxItems": rng.randrange(4)}
    if kind == 6:
        return {"anyOf": [random_schema(rng, depth - 1), random_schema(rng, depth - 1)]}
    names = rng.sample(["a", "b", "ab", "c d"], 2)
    properties = {name: random_schema(rng, depth - 1) for name in names}
    return {
        "type": "object",
        "properties": properties,
        "required": names[:1],
        "additionalProperties": rng.random() < 0.3,
    }


def test_mat_mask_equals_accept() -> None:
    """For ids of all kinds: ordinary, special, stop, without bytes and padded."""
    pairs = [b'":', b'{"', b'"}', b", ", b"ab", b'"a', b"]}", b"12", b"tru", b"\xc3\xa9", b"\xa9", b'b"', b"null"]
    info = TokenizerInfo.from_vocab(
        [*BYTES, *pairs, b"", b"</s>", b"<|a|>", b"<|end|>"],
        eos_token_ids=[257 + len(pairs), 259 + len(pairs)],
        special_token_ids=[258 + len(pairs)],
        vocab_size=300,
    )
    compiler = GrammarCompiler(info)
    for seed in range(60):
        rng = random.Random(seed)
        matcher = GrammarMatcher(compiler.compile_json_schema(random_schema(rng)))
        for _ in range(25):
            allowed = mask_of(matcher, info)
            assert allowed
            for token in range(info.vocab_size):
                took = matcher.accept_token(token)
                if took:
                    matcher.rollback(1)
                assert took == (token in allowed), token
            assert matcher.accept_token(rng.choice(sorted(allowed)))
            if matcher.is_terminated():
                break


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_mat_batch_mixed_rows(order: list[int]) -> None:
    a, b = COMPILER.compile_regex("[0-9]+"), COMPILER.compile_json_schema({"type": "boolean"})
    finished = GrammarMatcher(a)
    assert finished.accept_string("7")
    assert finished.accept_token(END)
    rows = [GrammarMatcher(a), None, GrammarMatcher(b), finished]
    expected = [set(b"0123456789"), set(range(288)), set(b"tf"), {END}]
    bitmask = punchcard.allocate_token_bitmask(4, INFO.vocab_size)
    bitmask[:] = 0x5A5A5A5A
    needed = punchcard.BatchMatcher(threads=2).fill_next_token_bitmask([rows[i] for i in order], bitmask)
    assert needed == [rows[i] is not None for i in order]
    bits = np.unpackbits(bitmask.view(np.uint8), axis=1, bitorder="little")
    assert [set(np.flatnonzero(row).tolist()) for row in bits] == [expected[i] for i in order]
    logits = np.zeros((4, INFO.vocab_size), dtype=np.float32)
    punchcard.apply_token_bitmask_inplace(logits, bitmask)
    assert [set(np.flatnonzero(row == 0).tolist()) for row in logits] == [
        {token for token in expected[i] if token < INFO.vocab_size} for i in order
    ]


def test_mat_pad_after_finish() -> None:
    info = TokenizerInfo.from_vocab([*BYTES, b"</s>", b"</s>"], eos_token_ids=256, special_token_ids=[257])
    pad = 257
    compiled = GrammarCompiler(info).compile_regex("[0-9]{1,3}")
    stopped, live = GrammarMatcher(compiled), GrammarMatcher(compiled)
    batch, bitmask = punchcard.BatchMatcher(), punchcard.allocate_token_bitmask(2, info.vocab_size)
    for first, second in [(ord("7"), ord("1")), (256, ord("2")), (pad, ord("3")), (pad, 256)]:
        batch.fill_next_token_bitmask([stopped, live], bitmask)
        bits = np.unpackbits(bitmask.view(np.uint8), axis=1, bitorder="little")
        assert bits[1].any()
        assert bits[1][second]
        steps = stopped.num_steps
        assert stopped.accept_token(first) == (first != pad)
        assert stopped.num_steps == steps + (first != pad)
        assert live.accept_token(second)
    assert stopped.is_terminated()
    assert live.is_terminated()
    assert [accepts(compiled, text) for text in ("7", "123", "1234", "")] == [True, True, False, False]


def test_mat_rollback_cost() -> None:
    """64 candidates a step, each taken and taken back, over 20,000 tokens: nothing grows after the first thousands."""
    compiled = COMPILER.compile_json_schema({"type": "array", "items": {"type": "string"}})
    text = b'["' + b'some words, "and" more'.replace(b'"', b"'") * 1_000
    matcher, sizes = GrammarMatcher(compiled), []
    candidates = list(b"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,'")[:64]
    for i, byte in enumerate(text[:20_000]):
        for candidate in candidates if i % 20 == 0 else candidates[:2]:
            if matcher.accept_token(candidate):
                matcher.rollback(1)
        assert matcher.num_steps == i
        assert matcher.accept_token(byte)
        if i % 5_000 == 4_999:
            sizes.append((compiled.memory_size_bytes, matcher.num_readings))
    assert len(set(sizes)) == 1
    matcher.rollback(20_000)
    assert matcher.num_steps == 0


@pytest.mark.parametrize("whitespace", ["none", "any"])
def test_mat_forced_text_optional_space(whitespace: str) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    compiled = COMPILER.compile_json_schema(schema, whitespace=whitespace)
    assert accepts(compiled, '{"name":"P"}')
    assert not GrammarMatcher(compiled).accept_string('{"nam":"P"}')
    forced = {}
    for text in ("", "{", '{"'):
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_string(text)
        forced[text] = matcher.find_jump_forward_string()
        # What is forced is what every step allows alone, but for escapes that nothing needs.
        for byte in forced[text].encode():
            assert mask_of(matcher) - {ord("\\")} == {byte}
            assert matcher.accept_token(byte)
        assert len(mask_of(matcher) - {ord("\\")}) > 1
    if whitespace == "none":
        assert forced == {"": '{"name":"', "{": '"name":"', '{"': 'name":"'}
    else:
        assert forced == {"": "{", "{": "", '{"': 'name"'}


def test_mat_forced_text_partial_utf8() -> None:
    compiled = COMPILER.compile_regex("[娃高海](领)")
    for text in ("娃领", "高领", "海领"):
        assert accepts(compiled, text)
    assert not GrammarMatcher(compiled).accept_string("领")
    assert not accepts(compiled, "娃")
    matcher = GrammarMatcher(compiled)
    # E5 A8 83, E9 AB 98 and E6 B5 B7 share nothing.
    assert matcher.find_jump_forward_bytes() == b""
    shared = GrammarMatcher(COMPILER.compile_regex("[海涷](领)"))  # E6 B5 B7 and E6 B6 B7
    assert shared.find_jump_forward_bytes() == b"\xe6"
    assert shared.find_jump_forward_string() == ""
    assert shared.accept_string(b"\xe6")
    assert shared.accept_string(b"\xb5")
    assert shared.find_jump_forward_bytes() == b"\xb7\xe9\xa2\x86"
    assert shared.find_jump_forward_string() == ""  # no whole character begins here
    assert shared.accept_string(b"\xb7")
    assert shared.find_jump_forward_string() == "领"


def prose(length: int) -> bytes:
    rng = random.Random(0)
    words = ["the", "End", "[EN", "[", "END", "]", "[END", "naïve", "café", "\n", "“quoted”", "42", "[[E"]
    text = ""
    while len(text) < length:
        text += " ".join(rng.choices(words, k=50)) + " "
    return text.encode()[:length].decode(errors="ignore").encode()


def test_mat_long_output_bounded_states() -> None:
    compiled = COMPILER.compile_ebnf('root ::= @text_without("[END]") "[END]"')
    matcher, data = GrammarMatcher(compiled), prose(200_000)
    assert b"[END]" not in data
    # Every state is soon met.
    feed(matcher, data[:10_000])
    sizes = []
    for start in range(10_000, len(data), 1_000):
        assert matcher.accept_string(data[start : start + 1_000])
        mask_of(matcher)
        sizes.append(compiled.memory_size_bytes)
        assert matcher.num_readings <= 2
    assert len(set(sizes)) == 1
    assert not matcher.is_accepting()
    assert matcher.accept_string("[END]")
    assert mask_of(matcher) == {END}


# ---------------------------------------------------------------- hostile input


def test_sec_deep_groups_regex() -> None:
    """As written, or a limit."""
    for depth in (10, 1_000, 5_000, 100_000):
        try:
            compiled = COMPILER.compile_regex("(" * depth + "a" + ")" * depth)
        except PunchcardError:
            assert depth > 1_000
            continue
        assert [accepts(compiled, text) for text in ("a", "", "aa")] == [True, False, False]


def array_schema(depth: int) -> str:
    return '{"type":"array","items":' * depth + '{"type":"integer"}' + "}" * depth


def deep_schemas(depth: int) -> dict[str, str]:
    any_of = '{"anyOf":[' * depth + '{"type":"integer"}' + "]}" * depth
    properties = '{"type":"object","properties":{"a":' * depth + '{"type":"integer"}' + "}}" * depth
    chain = ",".join(f'"d{i}":{{"$ref":"#/$defs/d{i + 1}"}}' for i in range(depth))
    defs = f'{{"$ref":"#/$defs/d0","$defs":{{{chain},"d{depth}":{{"type":"integer"}}}}}}'
    return {"array": array_schema(depth), "anyOf": any_of, "properties": properties, "$defs": defs}


@pytest.mark.parametrize("kind", ["array", "anyOf", "properties", "$defs"])
def test_sec_deep_schema(kind: str) -> None:
    compiled = COMPILER.compile_json_schema(deep_schemas(200)[kind])
    assert GrammarMatcher(compiled).find_completion() is not None
    try:
        compiled = COMPILER.compile_json_schema(deep_schemas(20_000)[kind])
    except LimitError:
        return
    matcher = GrammarMatcher(compiled)
    assert matcher.accept_string("7") == (kind in ("anyOf", "$defs"))


@pytest.mark.parametrize("schema", [True, {"type": "array"}])
def test_sec_deep_output(schema: Any) -> None:
    compiled = COMPILER.compile_json_schema(schema)
    matcher = GrammarMatcher(compiled)
    sizes = []
    for _ in range(100):
        assert matcher.accept_string("[" * 1_000)
        assert matcher.num_readings == 1
        sizes.append(compiled.memory_size_bytes)
    assert {ord("["), ord("]"), ord("1")} <= mask_of(matcher)
    assert END not in mask_of(matcher)
    # Linear at most: the second half costs no more than twice the first.
    assert sizes[-1] - sizes[49] <= 2 * (sizes[49] - sizes[0])
    assert matcher.accept_string("]" * 99_999)
    assert not matcher.is_accepting()
    assert matcher.accept_string("]")
    assert matcher.is_accepting()
    assert not matcher.accept_string("]")
    shallow = GrammarMatcher(compiled)
    assert shallow.accept_string("[[[]]")
    assert not shallow.is_accepting()


def test_sec_ref_cycle_no_progress() -> None:
    schema = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}},
    }
    with pytest.raises(PunchcardError) as error:
        COMPILER.compile_json_schema(schema)
    assert "$ref" in str(error.value) or "no value" in str(error.value).lower()


def test_sec_many_optional_properties() -> None:
    def compiled(count: int) -> CompiledGrammar:
        properties = {f"p{i:02}": {"type": "integer"} for i in range(count)}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return COMPILER.compile_json_schema(schema)

    grammar = compiled(48)
    everything = "{" + ",".join(f'"p{i:02}":{i}' for i in range(48)) + "}"
    for text in ("{}", '{"p00":1,"p47":2}', '{"p05":1}', everything):
        assert accepts(grammar, text), text
    for text in ('{"p48":1}', '{"p00":"1"}', '{"p00":1,}', '{"p00":1 "p01":2}'):
        assert not accepts(grammar, text), text
    # Twice as many members: four times the states at most, and some more.
    sizes = []
    for count in (24, 48, 96):
        grammar = compiled(count)
        assert accepts(grammar, "{" + ",".join(f'"p{i:02}":{i}' for i in range(count)) + "}")
        sizes.append(grammar.memory_size_bytes)
    assert sizes[1] < 5 * sizes[0]
    assert sizes[2] < 5 * sizes[1]


def test_sec_large_bounds_in_depth() -> None:
    strings = {"type": "array", "maxItems": 10_000, "items": {"type": "string", "maxLength": 10_000}}
    inner = {"type": "object", "properties": {"b": strings}, "required": ["b"]}
    outer = {"type": "array", "maxItems": 10_000, "items": inner}
    compiled = COMPILER.compile_json_schema({"type": "object", "properties": {"a": outer}, "required": ["a"]})
    assert compiled.memory_size_bytes < 10_000_000
    for text in ('{"a":[]}', '{"a":[{"b":["x",""]},{"b":[]}]}'):
        assert accepts(compiled, text)
    for text in ('{"a":[{}]}', '{"a":[{"b":[1]}]}', '{"a":[{"b":["x"]}'):
        assert not accepts(compiled, text)
    # Counted exactly.
    matcher = GrammarMatcher(compiled)
    assert matcher.accept_string('{"a":[{"b":["' + "x" * 10_000)
    assert not matcher.accept_string("x")
    assert matcher.accept_string('"' + ',""' * 9_999)
    assert not matcher.accept_string(",")
    assert matcher.accept_string("]}" + ',{"b":[]}' * 9_999)
    assert not matcher.accept_string(",")
    assert matcher.accept_string("]}")
    assert matcher.is_accepting()


def test_sec_large_enum() -> None:
    """5,000 strings of 50 bytes with long beginnings in common: what is kept is about linear in their bytes."""

    def strings(count: int) -> list[str]:
        rng = random.Random(count)
        return [f"{'shared-prefix-' * 2}{i % 7}-{i:05}-" + "".join(rng.choices("abc", k=14)) for i in range(count)]

    sizes = []
    for count in (1_250, 5_000):
        words = strings(count)
        assert {len(word) for word in words} == {50}
        compiled = COMPILER.compile_json_schema({"enum": words})
        matcher = GrammarMatcher(compiled)
        assert mask_of(matcher) == {ord('"')}
        for word in words[::97]:
            assert accepts(compiled, f'"{word}"')
            assert not accepts(compiled, f'"{word[:-1]}"')
            assert not accepts(compiled, f'"{word}x"')
        sizes.append(compiled.memory_size_bytes)
    assert sizes[1] < 6 * sizes[0]
