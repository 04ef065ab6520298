"""Vocabularies on small tables: the spelling of pieces, special and end tokens, padding, serialisation, bad input."""

from __future__ import annotations

import contextlib
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchcard.errors import PunchcardError, TokenizerError
from punchcard.tokenizers import TokenizerInfo, pieces
from punchcard.tokenizers.specials import looks_special

# --- spelling of pieces ---


def test_the_byte_level_alphabet_spells_every_byte_once() -> None:
    assert len(set(pieces.BYTE_ALPHABET)) == 256
    assert pieces.byte_level(pieces.BYTE_ALPHABET) == bytes(range(256))


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        ("Ġthe", b" the"),
        ("Ċ", b"\n"),
        ("Ā", b"\x00"),
        ("Ã©", "é".encode()),
        ("ðŁĺ", b"\xf0\x9f\x98"),  # the first three bytes of an emoji
        ("ï¿½", b"\xef\xbf\xbd"),  # U+FFFD itself
        ("�", b""),  # bytes that could not be printed, whichever they were
        (".�", b""),
        ("你好", "你好".encode()),  # outside of the alphabet: put into the table as it is
        ("<|end▁of|>", "<|end▁of|>".encode()),
        ("\ud800", b""),
        ("", b""),
    ],
)
def test_byte_level_pieces(piece: str, expected: bytes) -> None:
    assert pieces.byte_level(piece) == expected


@pytest.mark.parametrize(
    ("piece", "expected"),
    [("<0x0A>", b"\n"), ("<0xfF>", b"\xff"), ("<0x0A>x", None), ("<0xA>", None), ("<0x0G>", None), ("", None)],
)
def test_byte_pieces(piece: str, expected: bytes | None) -> None:
    assert pieces.byte_piece(piece) == expected


@given(data=st.binary(max_size=30))
def test_byte_level_spelling_is_exact(data: bytes) -> None:
    assert pieces.byte_level("".join(pieces.BYTE_ALPHABET[byte] for byte in data)) == data


@pytest.mark.parametrize(
    ("text", "special"),
    [
        ("<|eot_id|>", True),
        ("<｜User｜>", True),
        ("<think>", True),
        ("</tool_call>", True),
        ("[TOOL_CALLS]", True),
        ("[/INST]", True),
        ("<table>", False),
        ("</h1>", False),
        ("<br/>", False),
        ("  ", False),
        ("\n\n", False),
        ("[multi word]", False),
        ("< >", False),
        ("<a><b>", False),
        ("", False),
    ],
)
def test_added_tokens_that_look_special(text: str, special: bool) -> None:
    assert looks_special(text) is special


# --- from_vocab ---


def test_a_vocabulary_keeps_each_id() -> None:
    info = TokenizerInfo.from_vocab([b"a", b"", b"a", b"\x00", b"</s>"], eos_token_ids=[4], special_token_ids=[4])
    assert info.tokens == [b"a", b"", b"a", b"\x00", b"</s>"]
    assert (info.vocab_size, info.eos_token_ids, info.special_token_ids) == (5, [4], [4])


def test_printed_text_and_unknown_entries() -> None:
    info = TokenizerInfo.from_vocab(["é", None, ".�", bytearray(b"x"), "\udc80", "<e>"], eos_token_ids="<e>")
    assert info.tokens == ["é".encode(), b"", b"", b"x", b"", b"<e>"]
    assert info.eos_token_ids == [5]


def test_an_end_token_is_special() -> None:
    assert TokenizerInfo.from_vocab([b"a", b"</s>"], eos_token_ids=1).special_token_ids == [1]


@pytest.mark.parametrize("ends", [2, "c", [2], (2,), {2}, iter(["c"]), np.array([2]), np.int64(2), np.array([2, 2])])
def test_ends_as_people_have_them(ends: Any) -> None:
    assert TokenizerInfo.from_vocab([b"a", b"b", b"c"], eos_token_ids=ends).eos_token_ids == [2]


def test_names_prefer_special_tokens_to_look_alikes() -> None:
    info = TokenizerInfo.from_vocab([b"</s>", b"a", b"</s>"], eos_token_ids="</s>", special_token_ids=[2])
    assert info.eos_token_ids == [2]


def test_padding_and_cutting() -> None:
    tokens = [b"</s>", b"a", b"b"]
    assert TokenizerInfo.from_vocab(tokens, eos_token_ids=0, vocab_size=96).vocab_size == 96
    narrow = TokenizerInfo.from_vocab(tokens, eos_token_ids=0, vocab_size=2)
    assert (narrow.vocab_size, narrow.tokens) == (2, [b"</s>", b"a"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": [b"a"], "eos_token_ids": []}, "no end token is known"),
        ({"tokens": [], "eos_token_ids": [0]}, "vocab_size is 0"),
        ({"tokens": [b"a"], "eos_token_ids": [1]}, "token id 1 is out of range"),
        ({"tokens": [b"a"], "eos_token_ids": [-1]}, "token id -1 is out of range"),
        ({"tokens": [b"a"], "eos_token_ids": [0], "special_token_ids": [7]}, "token id 7 is out of range"),
        ({"tokens": [b"a"], "eos_token_ids": [0.5]}, "must be a whole number"),
        ({"tokens": [b"a"], "eos_token_ids": 0.5}, "must be whole numbers"),
        ({"tokens": [b"a"], "eos_token_ids": None}, "must be whole numbers"),
        ({"tokens": [b"a"], "eos_token_ids": 0, "vocab_size": 1 << 40}, "vocab_size is"),
        ({"tokens": [b"a"], "eos_token_ids": 0, "vocab_size": "many"}, "vocab_size must be a whole number"),
        ({"tokens": [b"a", 7], "eos_token_ids": [0]}, "token 1 is int, not bytes"),
        ({"tokens": "abc", "eos_token_ids": [0]}, "tokens must be a list of bytes"),
        ({"tokens": {b"a": 0}, "eos_token_ids": [0]}, "tokens must be a list of bytes"),
        ({"tokens": [b"<|eot|>"], "eos_token_ids": "<|eot_id|>"}, "no token is called"),
    ],
)
def test_bad_vocabularies(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        TokenizerInfo.from_vocab(**arguments)


def test_a_missing_name_suggests_its_neighbour() -> None:
    with pytest.raises(TokenizerError, match=r"Do you mean <\|eot_id\|>"):
        TokenizerInfo.from_vocab([b"<|eot_id|>"], eos_token_ids="<|eot|>", special_token_ids=[0])


def test_decode_leaves_special_tokens_and_holes_out() -> None:
    info = TokenizerInfo.from_vocab([b"a", b"\xf0\x9f", b"</s>", b""], eos_token_ids=2, vocab_size=8)
    assert info.decode([0, 1, 3, 7, 2, 0]) == b"a\xf0\x9fa"


# --- union and override ---


def write_tokenizer(folder: Path, **sidecars: Any) -> Path:
    data = {
        "model": {"type": "BPE", "vocab": {"a": 0, "Ġb": 1}},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [
            {"id": i, "content": name, "special": True} for i, name in enumerate(["<e2>", "<e3>", "<e4>", "<e5>"], 2)
        ],
    }
    for name, content in {"tokenizer": data, **sidecars}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder / "tokenizer.json"


def test_all_statements_of_a_source_and_the_caller_are_united(tmp_path: Path) -> None:
    path = write_tokenizer(
        tmp_path,
        generation_config={"eos_token_id": [2, 3]},
        config={"eos_token_id": 3, "vocab_size": 64},
        tokenizer_config={"eos_token": {"content": "<e4>"}},
    )
    info = TokenizerInfo.from_tokenizer_json(path, eos_token_ids=["<e5>"])
    assert info.eos_token_ids == [2, 3, 4, 5]
    assert info.vocab_size == 64


def test_the_width_may_be_told_by_a_nested_configuration(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, config={"text_config": {"eos_token_id": 2, "vocab_size": 32}})
    info = TokenizerInfo.from_tokenizer_json(tmp_path)
    assert (info.eos_token_ids, info.vocab_size) == ([2], 32)
    assert TokenizerInfo.from_tokenizer_json(tmp_path, vocab_size=48).vocab_size == 48


def test_replace_overrides(tmp_path: Path) -> None:
    info = TokenizerInfo.from_tokenizer_json(write_tokenizer(tmp_path, config={"eos_token_id": [2, 3]}))
    other = info.replace(eos_token_ids="<e4>", vocab_size=10)
    assert (other.eos_token_ids, other.vocab_size) == ([4], 10)
    assert other.special_token_ids == [2, 3, 4, 5]  # what ended a text is still no text
    assert info.replace(special_token_ids=[]).special_token_ids == [2, 3]
    assert info.replace(eos_token_ids=0).eos_token_ids == [0]
    assert info.replace() == info
    assert info.eos_token_ids == [2, 3]
    with pytest.raises(TokenizerError, match="no end token"):
        info.replace(eos_token_ids=[])


def test_without_any_statement_the_error_lists_the_special_tokens(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="eos_token_ids; special tokens: <e2>, <e3>"):
        TokenizerInfo.from_tokenizer_json(write_tokenizer(tmp_path))


# --- tokenizer.json ---


def read_json(data: dict[str, Any], folder: Path) -> TokenizerInfo:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(data))
    return TokenizerInfo.from_tokenizer_json(path, eos_token_ids=0)


REPLACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


@pytest.mark.parametrize(
    ("decoder", "expected"),
    [
        ({"type": "ByteLevel"}, {"Ġx": b" x", "▁x": "▁x".encode(), "<0x0A>": b"<0x0A>", "##x": b"##x"}),
        ({"type": "Metaspace", "replacement": "▁"}, {"▁x": b" x", "<0x0A>": b"<0x0A>", "Ġx": "Ġx".encode()}),
        ({"type": "ByteFallback"}, {"<0x0A>": b"\n", "<0xF0>": b"\xf0", "▁x": "▁x".encode()}),
        # The chain of Llama 2, Mistral 7B and Gemma. What follows Fuse strips the text, not the piece.
        (
            {"type": "Sequence", "decoders": [REPLACE, {"type": "ByteFallback"}, {"type": "Fuse"}, STRIP]},
            {"▁x": b" x", "▁": b" ", "<0x0A>": b"\n", "�": b"\xef\xbf\xbd"},
        ),
        ({"type": "Sequence", "decoders": [REPLACE, STRIP]}, {"▁x": b"x"}),
        ({"type": "Replace", "pattern": {"Regex": "x+"}, "content": "\\1"}, {"xxy": b"\\1y"}),
        ({"type": "WordPiece", "prefix": "##"}, {"##x": b"x", "x": b" x"}),
        ({"type": "BPEDecoder", "suffix": "</w>"}, {"x</w>": b"x ", "x": b"x"}),
        (None, {"x": b"x"}),
    ],
)
def test_decoders(tmp_path: Path, decoder: dict[str, Any] | None, expected: dict[str, bytes]) -> None:
    vocab = {"<e>": 0} | {piece: i for i, piece in enumerate(expected, 1)}
    data = {"model": {"type": "BPE", "vocab": vocab}, "decoder": decoder, "added_tokens": []}
    assert read_json(data, tmp_path).tokens[1:] == list(expected.values())


def test_without_a_decoder_the_pre_tokenizer_tells(tmp_path: Path) -> None:
    model = {"type": "BPE", "vocab": {"<e>": 0, "Ġx": 1, "▁x": 2, "<0x0A>": 3}}
    nested = {"type": "Sequence", "pretokenizers": [{"type": "Split"}, {"type": "ByteLevel"}]}
    assert read_json({"model": model, "pre_tokenizer": nested}, tmp_path).tokens[1] == b" x"
    data = {"model": model | {"byte_fallback": True}, "pre_tokenizer": {"type": "Metaspace"}}
    assert read_json(data, tmp_path).tokens[2:] == [b" x", b"\n"]


def test_added_tokens_are_raw_text_by_id(tmp_path: Path) -> None:
    data = {
        "model": {"type": "BPE", "vocab": {"<e>": 0, "Ġx": 1, "old": 2}},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [
            {"id": 2, "content": "new", "special": False},  # takes the place of the piece
            {"id": 4, "content": "é", "special": False},  # in the byte-level alphabet this would be the byte E9
            {"id": 5, "content": "Ġ", "special": True},
            {"id": 6, "content": "<think>", "special": False},
            {"id": 7, "content": "<td>", "special": False},
        ],
    }
    info = read_json(data, tmp_path)
    assert info.tokens == [b"<e>", b" x", b"new", b"", "é".encode(), "Ġ".encode(), b"<think>", b"<td>"]
    assert info.special_token_ids == [0, 5, 6]


def test_added_runs_of_spaces_of_a_sentencepiece_tokenizer(tmp_path: Path) -> None:
    data = {
        "model": {"type": "BPE", "vocab": {"<e>": 0, "▁▁": 1}, "unk_token": "<e>"},
        "decoder": {"type": "Sequence", "decoders": [REPLACE, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "added_tokens": [{"id": 1, "content": "▁▁", "special": False}],
    }
    assert read_json(data, tmp_path).tokens[1] == b"  "


def test_no_unknown_token_is_no_piece_called_none(tmp_path: Path) -> None:
    data = {"model": {"type": "BPE", "vocab": {"<e>": 0, "None": 1}, "unk_token": None}}
    assert read_json(data, tmp_path).special_token_ids == [0]


def test_unigram_tables(tmp_path: Path) -> None:
    vocab = [["<unk>", 0.0], ["▁a", -1.5], ["▁a", -2.0], ["b", -3]]
    data = {"model": {"type": "Unigram", "unk_id": 0, "vocab": vocab}, "decoder": {"type": "Metaspace"}}
    info = read_json(data, tmp_path)
    assert info.tokens == [b"<unk>", b" a", b" a", b"b"]
    assert info.special_token_ids == [0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "does not hold a JSON object"),
        ({}, "holds no vocabulary"),
        ({"model": {"vocab": 7}}, "holds no vocabulary"),
        ({"model": {"vocab": {"a": -1}}}, "token id -1 is out of range"),
        ({"model": {"vocab": {"a": 1 << 60}}}, "is out of range"),
        ({"model": {"vocab": {"a": "0"}}}, "token id '0' is out of range"),
        ({"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 1}]}, "is damaged"),
        ({"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 1 << 60, "content": "x"}]}, "is out of range"),
        ({"model": {"vocab": {"a": 0}}, "added_tokens": 7}, "is damaged"),
        ({"model": {"vocab": [["a"]]}}, "is damaged"),
        ({"model": {"vocab": {"a": 0}}, "decoder": {"type": "CTC"}}, "type 'CTC', which is not supported"),
        ({"model": {"vocab": {"a": 0}}, "decoder": {"type": "Replace", "pattern": {"Regex": "("}}}, "pattern '\\('"),
        ({"model": {"vocab": {"a": 0}}, "decoder": {"type": "Replace"}}, "without a pattern"),
    ],
)
def test_bad_tokenizer_json(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        read_json(data, tmp_path)


KINDS = [
    "Sequence",
    "ByteLevel",
    "ByteFallback",
    "Fuse",
    "Metaspace",
    "Replace",
    "Strip",
    "WordPiece",
    "BPEDecoder",
    "X",
]
KEYS = ["type", "vocab", "decoders", "pattern", "String", "content", "start", "unk_id", "unk_token", "id", "special"]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 300) | st.floats(0, 1) | st.text(max_size=3) | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(model=ANY_JSON, vocab=ANY_JSON, decoder=ANY_JSON, added=ANY_JSON, pre_tokenizer=ANY_JSON)
def test_any_json_is_a_vocabulary_or_an_error_of_ours(**parts: Any) -> None:
    vocab = parts.pop("vocab")
    if isinstance(parts["model"], dict):
        parts["model"]["vocab"] = vocab
    parts["added_tokens"] = parts.pop("added")
    with contextlib.suppress(PunchcardError):
        TokenizerInfo.from_huggingface(Wrapper(to_str=lambda: json.dumps(parts), eos_token_id=0))


def test_files_that_are_not_json_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(TokenizerError, match="is not JSON"):
        TokenizerInfo.from_tokenizer_json(tmp_path)
    with pytest.raises(TokenizerError, match="cannot read"):
        TokenizerInfo.from_tokenizer_json(tmp_path / "none.json")


# --- the other sources ---


def protobuf(*fields: tuple[int, int | bytes]) -> bytes:
    def varint(n: int) -> bytes:
        n &= (1 << 64) - 1
        out = bytearray()
        while n > 0x7F:
            out.append(n & 0x7F | 0x80)
            n >>= 7
        return bytes([*out, n])

    def encoded(number: int, value: int | bytes) -> bytes:
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        return varint(number << 3 | 2) + varint(len(value)) + value

    return b"".join(encoded(*field) for field in fields)


def sentencepiece_model(*entries: tuple[str | bytes, int], eos_id: int | None = None) -> bytes:
    def piece(text: str | bytes, kind: int) -> bytes:
        text = text.encode() if isinstance(text, str) else text
        return protobuf((1, text), *([(3, kind)] if kind != 1 else []))

    trainer = [] if eos_id is None else [(2, protobuf((3, 1), (42, eos_id)))]
    return protobuf(*((1, piece(*entry)) for entry in entries), *trainer)


def test_sentencepiece_pieces_by_type() -> None:
    model = sentencepiece_model(
        ("<unk>", 2), ("<s>", 3), ("</s>", 3), ("<0x0A>", 6), ("▁No", 1), ("<0x41>", 1), ("▁�", 1), ("▁▁", 4),
        ("<tool>", 4), ("unused", 5), (b"\xff", 1), ("?", 6),
    )  # fmt: skip
    info = TokenizerInfo.from_sentencepiece(model)
    assert info.tokens == [
        b"<unk>", b"<s>", b"</s>", b"\n", b" No", b"<0x41>", " �".encode(), b"  ", b"<tool>", b"", b"", b""
    ]  # fmt: skip
    assert (info.special_token_ids, info.eos_token_ids) == ([0, 1, 2, 8], [2])


def test_sentencepiece_models_name_their_end() -> None:
    assert TokenizerInfo.from_sentencepiece(sentencepiece_model(("</s>", 3), ("a", 1), eos_id=0)).eos_token_ids == [0]
    with pytest.raises(TokenizerError, match="no end token"):
        TokenizerInfo.from_sentencepiece(sentencepiece_model(("a", 1), ("b", 1), ("c", 1), eos_id=-1))


@given(data=st.binary(max_size=60))
def test_any_bytes_as_a_sentencepiece_model(data: bytes) -> None:
    try:
        info = TokenizerInfo.from_sentencepiece(sentencepiece_model(("<s>", 3), ("a", 1), ("</s>", 3)) + data)
    except PunchcardError:
        return
    assert info.tokens[:3] == [b"<s>", b"a", b"</s>"]


def test_a_truncated_sentencepiece_model_is_an_error() -> None:
    with pytest.raises(TokenizerError, match="is not a SentencePiece model"):
        TokenizerInfo.from_sentencepiece(sentencepiece_model(("abc", 1))[:-1])
    with pytest.raises(TokenizerError, match="holds no pieces"):
        TokenizerInfo.from_sentencepiece(b"")


def test_tiktoken_files_take_special_tokens_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_text("YQ== 0\nIGI= 1\n\n8J8= 3\n")
    info = TokenizerInfo.from_tiktoken(path, special_tokens={"<|endoftext|>": 5, "<|x|>": 6}, eos_token_ids="<|x|>")
    assert info.tokens == [b"a", b" b", b"", b"\xf0\x9f", b"", b"<|endoftext|>", b"<|x|>"]
    assert (info.eos_token_ids, info.special_token_ids) == ([5, 6], [5, 6])


@pytest.mark.parametrize("content", ["YQ== 0\nnonsense", "YQ 0", "YQ== x", "YQ== -1", "", "\x00\xff", "YQ== 0 0"])
def test_bad_tiktoken_files(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_text(content)
    with pytest.raises(TokenizerError, match=r"line \d|holds no tokens|out of range"):
        TokenizerInfo.from_tiktoken(path, eos_token_ids=0)


def tekken_data(**changes: Any) -> dict[str, Any]:
    return {
        "config": {"default_vocab_size": 5, "default_num_special_tokens": 3},
        "vocab": [{"rank": i, "token_bytes": b} for i, b in enumerate(["YQ==", "8J8=", "Yg=="])],
    } | changes


def test_tekken_files(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(tekken_data()))
    info = TokenizerInfo.from_tekken(path)
    # The third piece lies beyond the size that the model uses.
    assert info.tokens == [b"<unk>", b"<s>", b"</s>", b"a", b"\xf0\x9f"]
    assert (info.special_token_ids, info.eos_token_ids) == ([0, 1, 2], [2])
    path.write_text(json.dumps(tekken_data(special_tokens=[{"rank": 1, "token_str": "</s>", "is_control": True}])))
    info = TokenizerInfo.from_tekken(path)
    assert (info.special_tokens, info.eos_token_ids) == ({"<SPECIAL_0>": 0, "</s>": 1, "<SPECIAL_2>": 2}, [1])


@pytest.mark.parametrize(
    "changes",
    [
        {"config": {}},
        {"config": None},
        {"config": {"default_vocab_size": 1 << 60, "default_num_special_tokens": 3}},
        {"config": {"default_vocab_size": 3, "default_num_special_tokens": 5}},
        {"vocab": [{"rank": 0, "token_bytes": "!"}]},
        {"vocab": 7},
    ],
)
def test_bad_tekken_files(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(tekken_data(**changes)))
    with pytest.raises(TokenizerError, match="is not a Tekken tokenizer"):
        TokenizerInfo.from_tekken(path)


class Wrapper:
    """An object with the attributes it is given, as the classes of transformers have them."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class TestHuggingFaceObjects:
    JSON = json.dumps(
        {
            "model": {"type": "BPE", "vocab": {"a": 0, "Ġb": 1, "<pad>": 2, "</s>": 3}},
            "decoder": {"type": "ByteLevel"},
            "added_tokens": [{"id": 3, "content": "</s>", "special": True}],
        }
    )

    def test_a_rust_tokenizer_inside(self) -> None:
        tokenizer = Wrapper(backend_tokenizer=Wrapper(to_str=lambda: self.JSON), eos_token_id=3, all_special_ids=[2, 3])
        info = TokenizerInfo.from_huggingface(tokenizer, vocab_size=32)
        assert info.tokens == [b"a", b" b", b"<pad>", b"</s>"]
        assert (info.eos_token_ids, info.special_token_ids, info.vocab_size) == ([3], [2, 3], 32)

    def test_the_configuration_in_its_folder(self, tmp_path: Path) -> None:
        (tmp_path / "generation_config.json").write_text('{"eos_token_id": [3, 2]}')
        tokenizer = Wrapper(to_str=lambda: self.JSON, eos_token_id=None, name_or_path=str(tmp_path))
        assert TokenizerInfo.from_huggingface(tokenizer).eos_token_ids == [2, 3]

    def test_a_sentencepiece_processor_inside(self) -> None:
        model = sentencepiece_model(("<unk>", 2), ("▁a", 1), ("</s>", 3))
        special = type("AddedToken", (str,), {"special": True})
        added = {3: special("plain"), 4: "▁x", 5: "<think>"}
        tokenizer = Wrapper(sp_model=Wrapper(serialized_model_proto=lambda: model), added_tokens_decoder=added)
        info = TokenizerInfo.from_huggingface(tokenizer)
        assert info.tokens == [b"<unk>", b" a", b"</s>", b"plain", "▁x".encode(), b"<think>"]
        assert info.special_token_ids == [0, 2, 3, 5]

    def test_a_tiktoken_encoding_inside(self) -> None:
        tiktoken = pytest.importorskip("tiktoken")
        ranks = {bytes([i]): i for i in range(256)}
        encoding = tiktoken.Encoding("t", pat_str=".", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 300})
        info = TokenizerInfo.from_huggingface(Wrapper(tokenizer=encoding))
        assert info == TokenizerInfo.from_tiktoken(encoding)
        assert (info.eos_token_ids, len(info.tokens), info.tokens[299]) == ([300], 301, b"")

    def test_a_file_of_mistral_inside(self, tmp_path: Path) -> None:
        path = tmp_path / "tekken.json"
        path.write_text(json.dumps(tekken_data()))
        wrapped = Wrapper(tokenizer=Wrapper(instruct_tokenizer=Wrapper(tokenizer=Wrapper(file_path=path))))
        assert TokenizerInfo.from_huggingface(wrapped) == TokenizerInfo.from_tekken(path)

    @pytest.mark.parametrize("thing", ["name/of-a-model", None, object(), {"a": 0}])
    def test_what_cannot_be_read(self, thing: Any) -> None:
        with pytest.raises(TokenizerError, match="cannot be read"):
            TokenizerInfo.from_huggingface(thing)


# --- serialisation ---


@given(
    tokens=st.lists(st.binary(max_size=12), min_size=1, max_size=20),
    padding=st.integers(0, 40),
    data=st.data(),
)
def test_descriptions_round_trip(tokens: list[bytes], padding: int, data: st.DataObject) -> None:
    ids = st.integers(0, len(tokens) - 1)
    info = TokenizerInfo.from_vocab(
        tokens,
        eos_token_ids=data.draw(st.sets(ids, min_size=1)),
        special_token_ids=data.draw(st.sets(ids)),
        vocab_size=len(tokens) + padding,
    )
    assert TokenizerInfo.from_json(info.to_json()) == info
    assert pickle.loads(pickle.dumps(info)) == info


def test_a_description_on_disk_is_ascii(tmp_path: Path) -> None:
    info = TokenizerInfo.from_vocab([bytes([i]) for i in range(256)] + [b"</s>"], eos_token_ids=256)
    info.save(tmp_path / "info.json")
    assert (tmp_path / "info.json").read_bytes().isascii()
    assert TokenizerInfo.load(tmp_path / "info.json") == info


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[]", "does not hold a JSON object"),
        ('{"model": {}}', "is read by from_tokenizer_json"),
        ('{"format": "punchcard-tokenizer", "version": 2}', "version 1"),
        ('{"format": "punchcard-tokenizer", "version": 1}', "is damaged"),
        (
            '{"format": "punchcard-tokenizer", "version": 1, "tokens": ["\\u2581"], "eos_token_ids": [0],'
            ' "special_token_ids": [], "vocab_size": 1}',
            "is damaged",
        ),
        (
            '{"format": "punchcard-tokenizer", "version": 1, "tokens": ["a"], "eos_token_ids": null,'
            ' "special_token_ids": [], "vocab_size": 1}',
            "must be whole numbers",
        ),
    ],
)
def test_bad_descriptions(text: str, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        TokenizerInfo.from_json(text)
