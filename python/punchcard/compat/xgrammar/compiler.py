"""XGrammar's GrammarCompiler over Punchcard's."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ..._core import CompiledGrammar as _CompiledGrammar
from ...compiler import GrammarCompiler as _GrammarCompiler
from ...grammar import Grammar as _Grammar
from .exception import DeserializeFormatError
from .grammar import Grammar, get_serialization_version, read_serialized
from .tokenizer_info import TokenizerInfo


class CompiledGrammar:
    """A grammar compiled for a vocabulary, made by a `GrammarCompiler`. Immutable, and shared by matchers."""

    def __init__(self, compiled: _CompiledGrammar, grammar: Grammar, tokenizer_info: TokenizerInfo) -> None:
        self._compiled, self._grammar, self._tokenizer_info = compiled, grammar, tokenizer_info
        self._with_stops: dict[tuple[int, ...], _CompiledGrammar] = {}

    @property
    def grammar(self) -> Grammar:
        """What was compiled."""
        return self._grammar

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """What it was compiled for."""
        return self._tokenizer_info

    @property
    def memory_size_bytes(self) -> int:
        """An estimate of what it holds; it grows as masks are computed."""
        return self._compiled.memory_size_bytes

    def _ended_by(self, stops: list[int]) -> _CompiledGrammar:
        """The grammar for the same vocabulary with other ends."""
        key = tuple(sorted(set(stops)))
        if key == tuple(self._tokenizer_info.stop_token_ids):
            return self._compiled
        if key not in self._with_stops:
            compiler = _GrammarCompiler(self._tokenizer_info._ended_by(key), cache_enabled=False)
            self._with_stops[key] = compiler.compile(self._grammar._grammar)
        return self._with_stops[key]

    def serialize_json(self) -> str:
        """The grammar, and which tokenizer it is for, as JSON text. What was compiled is not in it."""
        fields = {"grammar": self._grammar._grammar._expr, "tokenizer": _fingerprint(self._tokenizer_info)}
        return json.dumps({"__VERSION__": get_serialization_version(), **fields})

    @staticmethod
    def deserialize_json(json_str: str, tokenizer_info: TokenizerInfo) -> CompiledGrammar:
        """From what `serialize_json` wrote: compiles the grammar again.

        Raises:
            DeserializeFormatError: it was written for another tokenizer, or by something else.
            DeserializeVersionError: it was written by another version.
        """
        data = read_serialized(json_str)
        if data.get("tokenizer") != _fingerprint(tokenizer_info):
            raise DeserializeFormatError("The grammar was compiled for another tokenizer", hint="Compile it anew")
        compiler = GrammarCompiler(tokenizer_info, cache_enabled=False)
        return compiler.compile_grammar(Grammar(_Grammar(data["grammar"])))


class GrammarCompiler:
    """Compiles grammars for one tokenizer. Safe to use from many threads.

    Args:
        tokenizer_info: the vocabulary.
        max_threads: without effect: compiling takes next to no time, as masks are computed when they are asked for.
        cache_enabled: keep compiled grammars.
        cache_limit_bytes: most bytes that they may hold; -1 for any amount.
        enable_dynamic_compilation: without effect, for the same reason as ``max_threads``.
    """

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        max_threads: int = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = -1,
        enable_dynamic_compilation: bool = False,
    ) -> None:
        if not isinstance(tokenizer_info, TokenizerInfo):
            raise ValueError("Make a TokenizerInfo of the tokenizer first")
        self._tokenizer_info = tokenizer_info
        self._limit = cache_limit_bytes
        self._compiler = _GrammarCompiler(
            tokenizer_info._info,
            cache_enabled=cache_enabled,
            cache_limit_bytes=None if cache_limit_bytes == -1 else cache_limit_bytes,
        )

    def _compile(self, grammar: Grammar) -> CompiledGrammar:
        return CompiledGrammar(self._compiler.compile(grammar._grammar), grammar, self._tokenizer_info)

    def compile_json_schema(self, schema: Any, **options: Any) -> CompiledGrammar:
        """Compile a JSON Schema; arguments and errors are those of `Grammar.from_json_schema`."""
        return self._compile(Grammar.from_json_schema(schema, **options))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Compile the grammar of any JSON value."""
        return self._compile(Grammar.builtin_json_grammar())

    def compile_regex(self, regex: str) -> CompiledGrammar:
        """Compile a regular expression that the whole text matches."""
        return self._compile(Grammar.from_regex(regex))

    def compile_lark(self, lark_string: str, *, named_grammars: dict[str, Any] | None = None) -> CompiledGrammar:
        """Compile a Lark grammar."""
        return self._compile(Grammar.from_lark(lark_string, named_grammars=named_grammars))

    def compile_structural_tag(self, *args: Any, **kwargs: Any) -> CompiledGrammar:
        """Compile a structural tag, or, as of old, tags and triggers."""
        return self._compile(Grammar.from_structural_tag(*args, **kwargs))

    def compile_grammar(self, grammar: str | Grammar, *, root_rule_name: str = "root") -> CompiledGrammar:
        """Compile a grammar, or EBNF."""
        if isinstance(grammar, str):
            grammar = Grammar.from_ebnf(grammar, root_rule_name=root_rule_name)
        if not isinstance(grammar, Grammar):
            raise ValueError("A grammar is a Grammar, or EBNF as a str")
        return self._compile(grammar)

    def clear_cache(self) -> None:
        """Drop what is cached."""
        self._compiler.clear_cache()

    def get_cache_size_bytes(self) -> int:
        """What the cached grammars hold."""
        return self._compiler.cache_info().bytes

    @property
    def cache_limit_bytes(self) -> int:
        """As it was given."""
        return self._limit


def _fingerprint(info: TokenizerInfo) -> str:
    return hashlib.sha256(info._info.to_json().encode()).hexdigest()
