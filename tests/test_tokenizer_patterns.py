"""Patterns of a ``tokenizer.json`` from anybody never take for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from punchcard import TokenizerInfo
from punchcard.errors import TokenizerError


def tokenizer(pattern: str, where: str = "decoder") -> dict[str, object]:
    step = {"type": "Replace", "pattern": {"Regex": pattern}, "content": " "}
    vocab = {"a" * 5000 + "!": 0, "b": 1, "</s>": 2, "c__d": 3}
    data: dict[str, object] = {"model": {"type": "BPE", "vocab": vocab, "merges": []}, where: step}
    data["added_tokens"] = [{"id": 2, "content": "</s>", "special": True}]
    return data


def read(tmp_path: Path, data: dict[str, object]) -> TokenizerInfo:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(data))
    return TokenizerInfo.from_tokenizer_json(path, eos_token_ids=[2])


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*b", "(a|aa)+$", "a*a*a*a*b", "a?" * 40 + "a" * 40, "(?:a{1,30}){1,30}$", r"(a+)\1+$", 
     "(?=(a+)+$)a",
     "(.*)*x", "(?:ab|cd|ef|gh|ij|kl|mn|op|qr)x", "x" * 2000, "a{1,99999999999}", "("],
)  # fmt: skip
def test_a_pattern_that_could_take_for_ever_is_refused(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"pattern|damaged"):
        read(tmp_path, tokenizer(pattern))


@pytest.mark.parametrize("pattern", ["_+", "__", "[_]+", "_{2}", "(?:__)", "^x|__", r"(_)\S"])
def test_a_pattern_that_is_quick_is_taken(pattern: str, tmp_path: Path) -> None:
    assert read(tmp_path, tokenizer(pattern)).tokens[3].startswith(b"c ")


@pytest.mark.parametrize("where", ["normalizer", "pre_tokenizer"])
def test_patterns_that_only_matter_to_writing_tokens_are_never_run(where: str, tmp_path: Path) -> None:
    assert read(tmp_path, tokenizer("(a+)+$", where)).tokens[1] == b"b"
