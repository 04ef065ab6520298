"""Needle's names over Punchcard: ``import punchcard.compat.needle as needle``.

    @needle.tool
    def set_lights(room: str, brightness: int = 50):
        \"\"\"Set a room's lighting level.\"\"\"

    agent = needle.Needle(tools=[set_lights])
    agent.run("Dim the kitchen lights to 10%")["results"]
    needle.extract("What's the weather in Paris?", Weather)

These are `punchcard.tool`, `punchcard.Field`, `punchcard.Agent` and `punchcard.extract` by other names, with
Punchcard's options, model and results. `NOT_COVERED` lists what Needle has besides; using it raises `NotCoveredError`.
"""

from __future__ import annotations

from typing import Any

from ..agent import Agent as Needle
from ..errors import PunchcardError
from ..extraction import extract
from ..fields import Field
from ..schemas import build_schema, pydantic_schema
from ..tools import tool

__all__ = [
    "NOT_COVERED",
    "Field",
    "Needle",
    "NotCoveredError",
    "build_schema",
    "extract",
    "pydantic_schema",
    "tool",
]

#: What Needle has and this layer has not, and what to use instead.
NOT_COVERED: dict[str, str] = {
    "agent": "Import the names from punchcard.compat.needle itself",
    "cli": "Use the command punchcard; its option --no-grammar turns the constraint off",
    "engine": "Punchcard brings its own engine; see punchcard.GrammarCompiler",
    "train": "Models are not trained here; give any GGUF file as Needle(model=...)",
    "finetune": "Models are not trained here; give any GGUF file as Needle(model=...)",
}


class NotCoveredError(PunchcardError, AttributeError):
    """A part of Needle that this layer does not cover was used. ``hint`` says what to use instead."""


def __getattr__(name: str) -> Any:
    if name in NOT_COVERED:
        raise NotCoveredError(f"needle.{name} is not covered", hint=NOT_COVERED[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
