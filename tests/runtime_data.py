"""What the tests of several runtimes share."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fake_model import END, PIECES

from punchcard import CompiledGrammar, GrammarCompiler, TokenizerInfo
from punchcard.models import LocalModel, download

#: The vocabulary of `FakeModel`: each byte is the token of its number, and there are some special tokens.
BYTES = TokenizerInfo.from_vocab(
    PIECES, eos_token_ids=[END], special_token_ids=[END, END + 1, END + 2], vocab_size=len(PIECES)
)
COMPILER = GrammarCompiler(BYTES)

#: A schema of few and short answers: greedy ones end soon.
WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "units": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "units"],
    "additionalProperties": False,
}


def regex(pattern: str) -> CompiledGrammar:
    """A regular expression over bytes."""
    return COMPILER.compile_regex(pattern)


def chat(text: str) -> str:
    """One message as ChatML, which SmolLM2 and Qwen speak."""
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def is_weather(text: str) -> bool:
    value = json.loads(text)
    return (
        set(value) == {"city", "units"}
        and len(value["city"]) <= 12
        and value["units"] in ("celsius", "fahrenheit")
        and isinstance(value["city"], str)
    )


def gguf(name: str) -> str:
    """The path of a named model, which is the default one or fetched already; skips the test if it is not there."""
    if name != "smollm2-135m" and download.cached(name) is None:
        pytest.skip(f"{name} is not in the cache; `punchcard models pull {name}` fetches it")
    return str(LocalModel.load(name).path)


def snippet(heading: str, **scope: Any) -> dict[str, Any]:
    """Runs the example under a heading of ``docs/runtimes.md``, behind what all examples share. Returns its names.

    The README shows the same example.
    """
    root = Path(__file__).parent.parent
    text = (root / "docs" / "runtimes.md").read_text(encoding="utf-8")
    readme = (root / "README.md").read_text(encoding="utf-8")
    shared, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    section = next(section for section in sections if section.startswith(f"{heading}\n"))
    for block in re.findall(r"```python\n(.*?)```", shared + section, flags=re.DOTALL):
        assert block in readme, f"the README has another example of {heading}"
        exec(compile(block, f"runtimes.md, {heading}", "exec"), scope)
    return scope
