"""Vocabularies out of GGUF files: each family's spelling, a real model, and files that are not what they claim."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from gguf_writer import ARRAY, BOOL, FLOAT32, INT32, STRING, UINT32, header, vocabulary
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tokenizer_data import CORPUS, ranks

from punchcard.errors import ModelError, PunchcardError, TokenizerError
from punchcard.tokenizers import TokenizerInfo
from punchcard.tokenizers.gguf_metadata import read_metadata

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def info_of(tmp_path: Path, pairs: dict, **options) -> TokenizerInfo:
    path = tmp_path / "model.gguf"
    path.write_bytes(header(pairs, **options))
    return TokenizerInfo.from_gguf(path)


def test_byte_level_family(tmp_path: Path) -> None:
    tokens = ["Ġthe", "ï¿½", "Ċ", "�", "<|end|>", "<tool_call>", "<h1>", "  ", "pad", "Āa"]
    types = [NORMAL, NORMAL, NORMAL, NORMAL, CONTROL, USER, USER, USER, UNUSED, NORMAL]
    info = info_of(tmp_path, vocabulary("gpt2", tokens, types, eos_token_id=4))
    assert info.tokens == [
        b" the", b"\xef\xbf\xbd", b"\n", b"", b"<|end|>", b"<tool_call>", b"<h1>", b"  ", b"", b"\x00a"
    ]  # fmt: skip
    assert info.special_token_ids == [4, 5]


def test_sentencepiece_family(tmp_path: Path) -> None:
    tokens = ["<unk>", "<s>", "</s>", "<0x0A>", "<0xFF>", "▁No", "<0x41>", "▁▁", "x"]
    types = [UNKNOWN, CONTROL, CONTROL, BYTE, BYTE, NORMAL, NORMAL, USER, UNUSED]
    info = info_of(tmp_path, vocabulary("llama", tokens, types, eos_token_id=2))
    # Only a piece of the type byte is a byte; <0x41> as a normal piece is six characters.
    assert info.tokens == [b"<unk>", b"<s>", b"</s>", b"\n", b"\xff", b" No", b"<0x41>", b"  ", b""]
    assert info.special_token_ids == [0, 1, 2]


def test_without_types_byte_pieces_are_known_by_their_look(tmp_path: Path) -> None:
    tokens = ["<s>", "</s>", "<0x41>", "▁a"]
    info = info_of(tmp_path, vocabulary("llama", tokens, None, bos_token_id=0, eos_token_id=1))
    assert info.tokens == [b"<s>", b"</s>", b"A", b" a"]
    assert info.special_token_ids == [0, 1]


def test_ends_of_text_turn_and_message_all_end(tmp_path: Path) -> None:
    pairs = vocabulary("gpt2", list("abcd"), [NORMAL] * 4, eos_token_id=3, eot_token_id=1, eom_token_id=2)
    assert info_of(tmp_path, pairs).eos_token_ids == [1, 2, 3]


def test_an_end_outside_of_the_vocabulary_is_not_taken(tmp_path: Path) -> None:
    pairs = vocabulary("gpt2", list("ab"), [NORMAL] * 2, eos_token_id=4_000_000_000)
    with pytest.raises(TokenizerError, match="no end token"):
        info_of(tmp_path, pairs)


@pytest.mark.parametrize(("version", "order"), [(1, "<"), (2, "<"), (3, "<"), (3, ">")])
def test_versions_and_byte_orders(tmp_path: Path, version: int, order: str) -> None:
    pairs = {
        "flag": (BOOL, True),
        "numbers": (ARRAY, (FLOAT32, [0.5, -1.0])),
        "lists": (ARRAY, (ARRAY, [(INT32, [1, 2]), (STRING, ["x"])])),
    }
    path = tmp_path / "model.gguf"
    path.write_bytes(header(pairs, version=version, order=order))
    assert read_metadata(path) == {"flag": True, "numbers": [0.5, -1.0], "lists": [[1, 2], ["x"]]}
    assert read_metadata(path, {"flag"}.__contains__) == {"flag": True}


def test_pieces_that_are_no_utf8_are_unknown(tmp_path: Path) -> None:
    info = info_of(tmp_path, vocabulary("gpt2", [b"\xff\xfe", "a", "e"], [NORMAL] * 3, eos_token_id=2))
    assert info.tokens[:2] == [b"", b"a"]


SMALL = header(vocabulary("gpt2", ["a", "Ġb", "<|end|>"], [NORMAL, NORMAL, CONTROL], eos_token_id=2))


@pytest.mark.parametrize("size", range(len(SMALL)))
def test_a_truncated_file_is_a_model_error(tmp_path: Path, size: int) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(SMALL[:size])
    with pytest.raises(ModelError, match=r"cut short|is empty"):
        TokenizerInfo.from_gguf(path)


HOSTILE = {
    "no GGUF file": b"GGML" + SMALL[4:],
    "unknown version": b"GGUF" + struct.pack("<IQQ", 77, 0, 0),
    "cut short": header({}, count=2**63),
    "past the end": header({"k": (STRING, "v")})[:-9] + struct.pack("<Q", 2**64 - 1) + b"v",
    "goes on": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", ARRAY, STRING, 2**62),
    "unknown value type": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 99),
    "nested too deep": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", ARRAY, ARRAY, 1)
    + struct.pack("<IQ", ARRAY, 1) * 50,
}  # fmt: skip


@pytest.mark.parametrize("message", HOSTILE)
def test_a_hostile_file_is_a_model_error(tmp_path: Path, message: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(HOSTILE[message])
    with pytest.raises(ModelError, match=message):
        TokenizerInfo.from_gguf(path)


def test_a_missing_file_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot read"):
        TokenizerInfo.from_gguf(tmp_path / "none.gguf")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"general.architecture": (STRING, "llama")}, "holds no vocabulary"),
        ({"tokenizer.ggml.tokens": (UINT32, 3)}, "holds no vocabulary"),
        (vocabulary("gpt2", ["a", "b"], [NORMAL], eos_token_id=0), "not a type for each"),
        (vocabulary("rot13", ["a"], [NORMAL], eos_token_id=0), "'rot13', which is not supported"),
        (vocabulary("gpt2", ["a"], [NORMAL]), "no end token"),
    ],
)
def test_a_file_without_a_usable_vocabulary(tmp_path: Path, pairs: dict, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        info_of(tmp_path, pairs)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=6))
def test_a_damaged_file_gives_a_vocabulary_or_an_error_of_ours(tmp_path: Path, edits: list[tuple[int, int]]) -> None:
    data = bytearray(SMALL)
    for position, byte in edits:
        data[position] = byte
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    try:
        info = TokenizerInfo.from_gguf(path)
    except PunchcardError:
        return
    assert len(info.tokens) == 3


# The default model's own file, beside an encoder built from the merges that it holds.


@pytest.fixture(scope="module")
def smollm2() -> Path:
    download = pytest.importorskip("punchcard.models.download")
    try:
        return download.ensure("smollm2-135m")
    except ModelError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def info(smollm2: Path) -> TokenizerInfo:
    return TokenizerInfo.from_gguf(smollm2)


@pytest.fixture(scope="module")
def encoder(smollm2: Path):
    tokenizers = pytest.importorskip("tokenizers")
    metadata = read_metadata(smollm2, lambda key: key.startswith("tokenizer.ggml."))
    vocab = {piece: i for i, piece in enumerate(metadata["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    encoder = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges))
    encoder.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Digits(True), tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return encoder


@pytest.mark.parametrize("text", CORPUS)
def test_smollm2_bytes_of_an_encoded_text_give_the_text(info: TokenizerInfo, encoder, text: str) -> None:
    assert b"".join(info.tokens[i] for i in encoder.encode(text).ids) == text.encode()


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=40))
def test_smollm2_bytes_of_any_text_give_the_text(info: TokenizerInfo, encoder, text: str) -> None:
    # 21 bytes, such as the first of U+40000 and some control characters, are in no piece of this vocabulary.
    assume(set(text.encode()) <= set(b"".join(info.tokens)))
    assert b"".join(info.tokens[i] for i in encoder.encode(text).ids) == text.encode()


def test_smollm2_special_tokens(info: TokenizerInfo) -> None:
    assert info.eos_token_ids == [2]
    assert info.token_id("<|im_start|>") == 1
    assert info.token_id("<|im_end|>") == 2
    assert info.special_token_ids == list(range(17))
    assert info.vocab_size == 49152


def test_qwen_has_the_same_pieces_in_its_gguf_and_in_its_tiktoken_file() -> None:
    download = pytest.importorskip("punchcard.models.download")
    path = download.cached("qwen2.5-coder-1.5b")
    if path is None:
        pytest.skip("qwen2.5-coder-1.5b, of 1.1 GB, is not in the cache")
    info = TokenizerInfo.from_gguf(path)
    assert all(info.tokens[i] == piece for piece, i in ranks("qwen").items())
    assert info.eos_token_ids == [info.token_id("<|im_end|>")] == [151645]
    assert info.token_id("<tool_call>") == 151657  # marked as text in the file; a look-alike
    assert info.vocab_size == 151936
