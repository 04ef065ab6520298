"""The entries: one module for each line of models, one `ToolFormat` for each way of writing calls."""

from __future__ import annotations

from punchcard.formats.base import ToolFormat
from punchcard.formats.families import (
    cohere,
    deepseek,
    functionary,
    gemma,
    gigachat,
    glm,
    granite,
    hermes,
    hunyuan,
    kimi,
    llama,
    minimax,
    mistral,
    openai,
    others,
    phi,
    qwen,
    smollm,
)

_MODULES = (
    qwen,
    hermes,
    llama,
    openai,
    deepseek,
    mistral,
    gemma,
    glm,
    kimi,
    minimax,
    phi,
    granite,
    cohere,
    smollm,
    hunyuan,
    functionary,
    gigachat,
    others,
)

#: All entries by name.
FORMATS: dict[str, ToolFormat] = {entry.name: entry for module in _MODULES for entry in module.FORMATS}
