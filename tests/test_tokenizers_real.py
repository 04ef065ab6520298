"""Each source, proved on a real tokenizer: the bytes of the ids of an encoded text, joined, are the text."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizer_data import CORPUS, LLAMA_SPLIT, data_file, ranks

from punchcard.tokenizers import TokenizerInfo


@dataclass
class Tokenizer:
    """A vocabulary under test, beside an encoder of another make and the tokens that it is known to have."""

    info: TokenizerInfo
    encode: Callable[[str], list[int]]
    specials: dict[str, int]
    ends: list[int]
    # What the encoder itself does to a text before it cuts it into pieces.
    normalise: Callable[[str], str] = str


def tiktoken_encoding(name: str, special: dict[str, int]):
    tiktoken = pytest.importorskip("tiktoken")
    return tiktoken.Encoding(name, pat_str=LLAMA_SPLIT, mergeable_ranks=ranks(name), special_tokens=special)


def llama3() -> Tokenizer:
    special = {"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001, "<|eom_id|>": 128008, "<|eot_id|>": 128009}
    encoding = tiktoken_encoding("llama3", special)
    ends = ["<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"]
    info = TokenizerInfo.from_tiktoken(encoding, eos_token_ids=ends, vocab_size=128256)
    return Tokenizer(info, encoding.encode_ordinary, special, [128001, 128008, 128009])


def llama4() -> Tokenizer:
    special = {"<|begin_of_text|>": 200000, "<|end_of_text|>": 200001, "<|eom|>": 200007, "<|eot|>": 200008}
    encoding = tiktoken_encoding("llama4", special)
    ends = ["<|end_of_text|>", "<|eom|>", "<|eot|>"]
    info = TokenizerInfo.from_tiktoken(
        data_file("llama4"), special_tokens=special, eos_token_ids=ends, vocab_size=202048
    )
    return Tokenizer(info, encoding.encode_ordinary, special, [200001, 200007, 200008])


def qwen() -> Tokenizer:
    special = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
    encoding = tiktoken_encoding("qwen", special)
    info = TokenizerInfo.from_tiktoken(encoding, eos_token_ids="<|im_end|>", vocab_size=151936)
    return Tokenizer(info, encoding.encode_ordinary, special, [151643, 151645])


def deepseek() -> Tokenizer:
    tokenizers = pytest.importorskip("tokenizers")
    reference = tokenizers.Tokenizer.from_file(str(data_file("deepseek")))
    special = {"<｜begin▁of▁sentence｜>": 0, "<｜end▁of▁sentence｜>": 1, "<｜User｜>": 128803, "</think>": 128822}
    info = TokenizerInfo.from_tokenizer_json(data_file("deepseek"), eos_token_ids=1)
    return Tokenizer(info, lambda text: reference.encode(text, add_special_tokens=False).ids, special, [1])


def huggingface() -> Tokenizer:
    tokenizers = pytest.importorskip("tokenizers")
    other = deepseek()
    other.info = TokenizerInfo.from_huggingface(
        tokenizers.Tokenizer.from_file(str(data_file("deepseek"))), eos_token_ids="<｜end▁of▁sentence｜>"
    )
    return other


def tekken() -> Tokenizer:
    tiktoken = pytest.importorskip("tiktoken")
    data = json.loads(data_file("tekken").read_text())
    pieces = {base64.b64decode(t["token_bytes"]): t["rank"] for t in data["vocab"][: 131072 - 1000]}
    encoding = tiktoken.Encoding("t", pat_str=data["config"]["pattern"], mergeable_ranks=pieces, special_tokens={})
    info = TokenizerInfo.from_tekken(data_file("tekken"))
    special = {"<unk>": 0, "<s>": 1, "</s>": 2, "<SPECIAL_999>": 999}
    return Tokenizer(info, lambda text: [1000 + i for i in encoding.encode_ordinary(text)], special, [2])


def sentencepiece_v1() -> Tokenizer:
    return _sentencepiece("mistral-v1", {"<unk>": 0, "<s>": 1, "</s>": 2})


def sentencepiece_v3() -> Tokenizer:
    return _sentencepiece("mistral-v3", {"<unk>": 0, "</s>": 2, "[INST]": 3, "[TOOL_CALLS]": 5})


def _sentencepiece(name: str, special: dict[str, int]) -> Tokenizer:
    library = pytest.importorskip("sentencepiece")
    processor = library.SentencePieceProcessor(model_file=str(data_file(name)))

    def normalise(text: str) -> str:
        # The encoder puts a space before the text, and has no other spelling for ▁ than that of a space.
        return " " + text.replace("▁", " ") if text else ""

    return Tokenizer(TokenizerInfo.from_sentencepiece(data_file(name)), processor.encode, special, [2], normalise)


MAKES = [llama3, llama4, qwen, deepseek, huggingface, tekken, sentencepiece_v1, sentencepiece_v3]


@cache
def made(make: Callable[[], Tokenizer]) -> Tokenizer:
    return make()


@pytest.fixture(params=MAKES, ids=[make.__name__ for make in MAKES])
def tokenizer(request: pytest.FixtureRequest) -> Iterator[Tokenizer]:
    yield made(request.param)


def assert_bytes_give_text(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert b"".join(tokenizer.info.tokens[i] for i in ids) == tokenizer.normalise(text).encode()


@pytest.mark.parametrize("text", CORPUS)
def test_bytes_of_an_encoded_text_give_the_text(tokenizer: Tokenizer, text: str) -> None:
    if any(name in text for name in tokenizer.specials):
        # These encoders would cut the name of a special token out of the text; ``decode`` rightly leaves it out.
        text = text.replace("<s> </s>", "")
    assert_bytes_give_text(tokenizer, text)
    assert tokenizer.info.decode(tokenizer.encode(text)) == tokenizer.normalise(text).encode()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=40))
def test_bytes_of_any_text_give_the_text(tokenizer: Tokenizer, text: str) -> None:
    assert_bytes_give_text(tokenizer, text)


def test_every_byte_has_a_token(tokenizer: Tokenizer) -> None:
    special = set(tokenizer.info.special_token_ids)
    single = {token for i, token in enumerate(tokenizer.info.tokens) if len(token) == 1 and i not in special}
    assert single == {bytes([byte]) for byte in range(256)}


def test_some_pieces_split_a_code_point(tokenizer: Tokenizer) -> None:
    def is_whole(token: bytes) -> bool:
        try:
            token.decode()
        except UnicodeDecodeError:
            return False
        return True

    assert sum(not is_whole(token) for token in tokenizer.info.tokens) >= 128


def test_special_tokens_are_known_by_id(tokenizer: Tokenizer) -> None:
    info = tokenizer.info
    assert {name: info.token_id(name) for name in tokenizer.specials} == tokenizer.specials
    assert set(tokenizer.specials.values()) <= set(info.special_token_ids)
    assert info.eos_token_ids == tokenizer.ends
    assert info.decode(info.special_token_ids) == b""


def test_description_round_trips(tokenizer: Tokenizer) -> None:
    assert TokenizerInfo.from_json(tokenizer.info.to_json()) == tokenizer.info


def test_padding_is_empty() -> None:
    info = made(qwen).info
    assert info.vocab_size == 151936
    assert len(info.tokens) == 151646


def test_only_added_tokens_are_special() -> None:
    data = json.loads(data_file("deepseek").read_text())
    marked = {token["id"] for token in data["added_tokens"] if token["special"]}
    special = set(made(deepseek).info.special_token_ids)
    assert marked <= special <= {token["id"] for token in data["added_tokens"]}


def test_config_beside_tokenizer_json_names_the_end(tmp_path) -> None:
    # The file as it is published: no end token in tokenizer.json, the name of one in tokenizer_config.json.
    (tmp_path / "tokenizer.json").symlink_to(data_file("deepseek"))
    (tmp_path / "tokenizer_config.json").symlink_to(data_file("deepseek-config"))
    assert TokenizerInfo.from_tokenizer_json(tmp_path) == made(deepseek).info


def test_transformers_fast_tokenizer_is_read_by_its_table() -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(data_file("deepseek")), eos_token="<｜end▁of▁sentence｜>"
    )
    assert TokenizerInfo.from_huggingface(tokenizer) == made(deepseek).info


def test_sentencepiece_processor_is_read_by_its_table() -> None:
    library = pytest.importorskip("sentencepiece")
    processor = library.SentencePieceProcessor(model_file=str(data_file("mistral-v3")))
    assert TokenizerInfo.from_sentencepiece(processor) == made(sentencepiece_v3).info


def test_sentencepiece_pieces_agree_with_the_library() -> None:
    library = pytest.importorskip("sentencepiece")
    processor = library.SentencePieceProcessor(model_file=str(data_file("mistral-v3")))
    info = made(sentencepiece_v3).info
    for i in range(processor.get_piece_size()):
        assert processor.is_control(i) <= (i in info.special_token_ids)
        assert not processor.is_byte(i) or info.tokens[i] == bytes([int(processor.id_to_piece(i)[3:5], 16)])
