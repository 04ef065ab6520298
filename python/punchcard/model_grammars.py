"""Compiled schemas, kept for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from punchcard.chat import Vocabulary
from punchcard.schemas import JsonSchema
from punchcard.turn import Speaker

if TYPE_CHECKING:
    from punchcard._core import CompiledGrammar


def compile_schema(model: Vocabulary, schema: JsonSchema | bool, **options: Any) -> CompiledGrammar:
    """A schema as a grammar over the model's vocabulary; ``options``: see `GrammarCompiler.compile_json_schema`.

    Raises `SchemaError` if it cannot be compiled.
    """
    return Speaker.of(model).compiler.compile_json_schema(schema, **options)
