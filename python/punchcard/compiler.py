"""From schemas to compiled grammars.

A compiled grammar belongs to one vocabulary; a :class:`GrammarMatcher` follows one sequence through it.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import asdict
from typing import Any

from ._core import CompiledGrammar, compile_grammar
from .grammar import Grammar, Schema
from .limits import Limits
from .tokenizers.info import TokenizerInfo


class GrammarCompiler:
    """Compiles grammars for one tokenizer. Safe to use from many threads.

    Args:
        tokenizer_info: the vocabulary.
        cache_enabled: keep compiled grammars and return them for equal schemas and options.
        cache_size: most grammars that are kept.
        limits: against hostile schemas and texts, for `compile_json_schema`.
    """

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        cache_enabled: bool = True,
        cache_size: int = 256,
        limits: Limits | None = None,
    ) -> None:
        self.tokenizer_info = tokenizer_info
        self._vocabulary = tokenizer_info.vocabulary
        self._cache: OrderedDict[str, CompiledGrammar] | None = OrderedDict() if cache_enabled else None
        self._cache_size = cache_size
        self._limits = limits
        self._lock = threading.Lock()

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        """Compile a grammar for the vocabulary.

        Raises:
            InvalidSchemaError: not JSON, or not a valid schema.
            UnsupportedSchemaError: a keyword that cannot be enforced; names keyword and JSON pointer.
            UnsatisfiableSchemaError: no value satisfies the schema.
            LimitError: a limit against hostile schemas was passed.
        """
        limits = json.dumps(asdict(self._limits or Limits()))
        key = json.dumps(grammar._expr, sort_keys=True)
        if self._cache is None:
            return compile_grammar(self._vocabulary, key, limits)
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        compiled = compile_grammar(self._vocabulary, key, limits)
        with self._lock:
            self._cache[key] = compiled
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
        return compiled

    def compile_json_schema(self, schema: Schema, **options: Any) -> CompiledGrammar:
        """Compile a JSON Schema: `Grammar.from_json_schema` with its options, and `compile`, in one."""
        return self.compile(Grammar.from_json_schema(schema, **options))

    def compile_regex(self, pattern: Any) -> CompiledGrammar:
        """Compile a regular expression that the whole output matches: `Grammar.from_regex`, and `compile`, in one.

        Raises:
            GrammarError: the pattern is malformed, not regular, or matches nothing; says at which column.
        """
        return self.compile(Grammar.from_regex(pattern))

    def compile_ebnf(self, text: str, **options: Any) -> CompiledGrammar:
        """Compile EBNF: `Grammar.from_ebnf` and `compile`, in one."""
        return self.compile(Grammar.from_ebnf(text, **options))

    def compile_lark(self, text: str, **options: Any) -> CompiledGrammar:
        """Compile a Lark grammar: `Grammar.from_lark` and `compile`, in one."""
        return self.compile(Grammar.from_lark(text, **options))

    def compile_structural_tag(self, tag: Any) -> CompiledGrammar:
        """Compile a structural tag: `Grammar.from_structural_tag` and `compile`, in one."""
        return self.compile(Grammar.from_structural_tag(tag))
