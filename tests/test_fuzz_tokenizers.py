"""Tokenizer files that were damaged or made up: each is read, to something sound, or refused with an error."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf_writer as gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from punchcard import TokenizerInfo
from punchcard.errors import PunchcardError, TokenizerError

EXAMPLES = int(os.environ.get("PUNCHCARD_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 150,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

texts = st.sampled_from(
    ["a", "b", "ab", "Ġa", "▁a", "##b", "<0x41>", "<0xZZ>", "<|end|>", "</s>", "é", "\ufffd", "\ud800", ""]
)
ids = st.integers(-1, 12) | st.sampled_from([2**20, 2**24 - 1, 2**24, 2**31, 2**64, 10**40])
#: What stands where something else is due.
junk: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | ids | st.floats() | texts,
    lambda items: st.lists(items, max_size=3) | st.dictionaries(texts, items, max_size=3),
    max_leaves=5,
)


def mostly(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Something of the kind that is due, or now and then something else."""
    return st.integers(0, 11).flatmap(lambda chance: junk if chance == 0 else strategy)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object of these fields, most of them there."""
    return st.fixed_dictionaries({}, optional={name: mostly(value) for name, value in fields.items()})


# --- tokenizer.json ---

patterns = some(String=texts, Regex=st.sampled_from(["a", "a*", "(", "^", "[^b]", "(?<=a)b", ""]))
decoders: st.SearchStrategy[Any] = st.recursive(
    some(
        type=st.sampled_from(
            [
                "ByteLevel",
                "Metaspace",
                "ByteFallback",
                "Fuse",
                "Replace",
                "Strip",
                "WordPiece",
                "BPEDecoder",
                "CTC",
                "No",
            ]
        ),
        replacement=texts,
        pattern=patterns,
        content=texts | st.sampled_from(["x" * 300, "aa"]),
        start=ids,
        stop=ids,
        prefix=texts,
        suffix=texts,
    ),
    lambda items: some(type=st.just("Sequence"), decoders=st.lists(items, max_size=4)),
    max_leaves=6,
)
added = some(id=ids, content=texts, special=st.booleans())
models = some(
    type=st.sampled_from(["BPE", "Unigram", "WordPiece"]),
    vocab=st.dictionaries(texts, mostly(st.integers(0, 12)), max_size=6)
    | st.lists(st.tuples(mostly(texts), st.floats()).map(list), max_size=6),
    unk_token=texts,
    unk_id=ids,
    byte_fallback=st.booleans(),
    merges=st.lists(texts, max_size=2),
)
tokenizer_jsons = some(
    model=models,
    decoder=decoders,
    added_tokens=st.lists(mostly(added), max_size=4),
    pre_tokenizer=some(
        type=st.sampled_from(["ByteLevel", "Metaspace", "Sequence"]), pretokenizers=st.lists(junk, max_size=2)
    ),
)
sidecars = some(
    eos_token_id=ids | st.lists(ids, max_size=3),
    vocab_size=ids,
    eos_token=texts | some(content=texts),
    text_config=junk,
)


def sound(read: Callable[[], TokenizerInfo]) -> None:
    """What is read can be used, and written and read again; what is not, is refused by an error of ours."""
    try:
        info = read()
    except PunchcardError as error:
        assert str(error).strip(), "an error without a message"
        return
    assert 0 < len(info.tokens) <= info.vocab_size or not info.tokens
    assert all(isinstance(token, bytes) for token in info.tokens)
    assert info.eos_token_ids and set(info.eos_token_ids) <= set(info.special_token_ids)
    assert all(0 <= token < info.vocab_size for token in info.special_token_ids)
    assert isinstance(info.special_tokens, dict) and isinstance(repr(info), str)
    # Beyond that it is only more of the same.
    if info.vocab_size <= 2**16:
        assert TokenizerInfo.from_json(info.to_json()) == info
        assert info.vocabulary is not None
        info.decode(range(-1, 20))


@PROFILE
@given(tokenizer_jsons, sidecars, sidecars, st.lists(ids, max_size=1))
def test_tokenizer_json(tmp_path_factory: Any, data: Any, config: Any, more: Any, ends: list[int]) -> None:
    folder = tmp_path_factory.mktemp("tokenizer")
    for name, content in [
        ("tokenizer", data),
        ("config", config),
        ("tokenizer_config", more),
        ("generation_config", more),
    ]:
        (folder / f"{name}.json").write_text(json.dumps(content))
    sound(lambda: TokenizerInfo.from_tokenizer_json(folder, eos_token_ids=ends))


@pytest.mark.parametrize(
    "decoder",
    [
        # Each step makes the piece twice as long, or many times.
        {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 60},
        {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": ""}, "content": "ab"}] * 60},
        {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"Regex": "."}, "content": "abc"}] * 60},
        {
            "type": "Sequence",
            "decoders": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 60_000}] * 2,
        },
    ],
)
def test_decoders_that_make_pieces_grow_without_end(tmp_path: Path, decoder: Any) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"vocab": {"a" * 100: 0, "</s>": 1}}, "decoder": decoder}))
    with pytest.raises(TokenizerError, match="more than"):
        TokenizerInfo.from_tokenizer_json(path, eos_token_ids=[1])


@pytest.mark.parametrize("count", [2**31, 10**30])
def test_decoders_that_strip_more_than_there_is(tmp_path: Path, count: int) -> None:
    path = tmp_path / "tokenizer.json"
    for content in ["a", ""]:
        decoder = {"type": "Strip", "content": content, "start": count, "stop": count}
        path.write_text(json.dumps({"model": {"vocab": {"aab": 0, "</s>": 1}}, "decoder": decoder}))
        info = TokenizerInfo.from_tokenizer_json(path, eos_token_ids=[1])
        assert info.tokens[0] == (b"b" if content else b"aab")


# --- ranks, Tekken, SentencePiece, GGUF, our own form ---

encoded = texts.map(lambda text: base64.b64encode(text.encode("utf-8", "surrogatepass")).decode())
ranks = st.lists(st.tuples(encoded | texts, ids).map(lambda pair: f"{pair[0]} {pair[1]}") | texts, max_size=5)


@PROFILE
@given(ranks, st.dictionaries(texts, ids, max_size=3), st.binary(max_size=8))
def test_ranks(tmp_path_factory: Any, lines: list[str], special: dict[str, int], noise: bytes) -> None:
    path = tmp_path_factory.mktemp("ranks") / "tokenizer.model"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass") + noise)
    sound(lambda: TokenizerInfo.from_tiktoken(path, special_tokens=special))


tekken = some(
    config=some(default_vocab_size=ids, default_num_special_tokens=ids),
    special_tokens=st.lists(mostly(some(rank=ids, token_str=texts)), max_size=3),
    vocab=st.lists(mostly(some(rank=ids, token_bytes=encoded | texts)), max_size=4),
)


@PROFILE
@given(tekken)
def test_tekken(tmp_path_factory: Any, data: Any) -> None:
    path = tmp_path_factory.mktemp("tekken") / "tekken.json"
    path.write_text(json.dumps(data))
    sound(lambda: TokenizerInfo.from_tekken(path, eos_token_ids=[0]))


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


numbers = st.integers(0, 7) | st.sampled_from([2**31, 2**32 - 1, 2**63, 2**70 - 1])
pieces = st.tuples(texts, numbers).map(
    lambda part: field(1, field(1, part[0].encode("utf-8", "surrogatepass")) + field(3, part[1]))
)
trainers = numbers.map(lambda end: field(2, field(42, end)))


@PROFILE
@given(st.lists(pieces | trainers | st.binary(max_size=5), max_size=6).map(b"".join))
def test_sentencepiece(model: bytes) -> None:
    sound(lambda: TokenizerInfo.from_sentencepiece(model))


kinds = st.integers(0, 7) | st.sampled_from([-1, 2**31 - 1])
vocabularies = st.tuples(
    st.sampled_from(["gpt2", "llama", "bert", "t5", "no"]),
    st.lists(texts.map(lambda text: text.encode("utf-8", "surrogatepass")), max_size=6),
    st.none() | st.lists(kinds, max_size=6),
    st.dictionaries(st.sampled_from(["eos_token_id", "bos_token_id", "eot_token_id"]), st.integers(0, 9), max_size=3),
).map(lambda parts: gguf.header(gguf.vocabulary(parts[0], parts[1], parts[2], **parts[3])))


def damaged(data: bytes, changes: list[tuple[int, bytes]], keep: int) -> bytes:
    out = bytearray(data)
    for at, patch in changes:
        at %= len(out)
        out[at : at + len(patch)] = patch
    return bytes(out[: len(out) - keep])


changes = st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=8) | st.just(b"\xff" * 8)), max_size=3)


@PROFILE
@given(vocabularies, changes, st.sampled_from([0, 0, 0, 1, 7, 40]))
def test_gguf(tmp_path_factory: Any, data: bytes, patches: list[tuple[int, bytes]], cut: int) -> None:
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    path.write_bytes(damaged(data, patches, cut))
    sound(lambda: TokenizerInfo.from_gguf(path))


@PROFILE
@given(
    some(
        format=st.just("punchcard-tokenizer"),
        version=st.just(1),
        vocab_size=ids,
        eos_token_ids=st.lists(mostly(ids), max_size=3),
        special_token_ids=st.lists(mostly(ids), max_size=3),
        tokens=st.lists(mostly(texts), max_size=5),
    )
)
def test_our_own_form(data: Any) -> None:
    sound(lambda: TokenizerInfo.from_json(json.dumps(data)))


@PROFILE
@given(st.binary(max_size=60) | junk.map(lambda value: json.dumps(value).encode()))
def test_anything_as_anything(tmp_path_factory: Any, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(data)
    sound(lambda: TokenizerInfo.from_tokenizer_json(path))
    sound(lambda: TokenizerInfo.from_tiktoken(path))
    sound(lambda: TokenizerInfo.from_tekken(path))
    sound(lambda: TokenizerInfo.from_sentencepiece(path))
    sound(lambda: TokenizerInfo.from_gguf(path))
    sound(lambda: TokenizerInfo.load(path))
