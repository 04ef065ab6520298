"""The examples of the documents run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("name", ["compat.md", "grammars.md", "json-schema.md", "matcher.md", "structural-tags.md"])
def test_examples(name: str) -> None:
    if name == "compat.md":
        pytest.importorskip("torch", reason="torch is not installed")
    text = (DOCS / name).read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
