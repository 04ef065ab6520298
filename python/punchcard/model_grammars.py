"""Compiled grammars of tools, kept for each model."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from punchcard.errors import SchemaError
from punchcard.formats import ToolFormat
from punchcard.generation import Model
from punchcard.schemas import JsonSchema
from punchcard.tools import Tool

if TYPE_CHECKING:
    from punchcard._core import CompiledGrammar
    from punchcard.compiler import GrammarCompiler
    from punchcard.tokenizers.info import TokenizerInfo


class _HasVocabulary(Protocol):
    @property
    def tokenizer_info(self) -> TokenizerInfo: ...


_compilers: weakref.WeakKeyDictionary[Any, GrammarCompiler] = weakref.WeakKeyDictionary()


def compiler_of(model: _HasVocabulary) -> GrammarCompiler:
    """The compiler of all grammars for this model: the one that `set_compiler` chose, or one with default limits."""
    from punchcard.compiler import GrammarCompiler

    if model not in _compilers:
        _compilers[model] = GrammarCompiler(model.tokenizer_info)
    return _compilers[model]


def set_compiler(model: _HasVocabulary, compiler: GrammarCompiler) -> None:
    """Has ``compiler``, with its limits and its cache, compile all grammars for this model from now on."""
    _compilers[model] = compiler


def compile_schema(model: Model, schema: JsonSchema | bool, **options: Any) -> CompiledGrammar:
    """A schema as a grammar over the model's vocabulary; ``options``: see `GrammarCompiler.compile_json_schema`.

    Raises `SchemaError` if it cannot be compiled.
    """
    return compiler_of(model).compile_json_schema(schema, **options)


def compile_calls(model: Model, tool_format: ToolFormat, tools: Sequence[Tool]) -> CompiledGrammar:
    """The grammar of one call of one of ``tools``. Raises `SchemaError`, with the field ``tool``, if the arguments of
    one of them cannot be compiled."""
    try:
        return compile_schema(model, tool_format.schema(tools), whitespace=tool_format.whitespace)
    except SchemaError as error:
        for tool in tools:
            # Alone, each tool is blamed for its own schema, at its own pointers.
            try:
                compile_schema(model, tool.parameters)
            except SchemaError as own:
                fields = {**own.fields, "tool": tool.name}
                raise type(own)(f"The arguments of {tool.name}: {own.message}", hint=own.hint, **fields) from error
        raise
