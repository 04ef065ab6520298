"""From grammars to compiled grammars, and the cache between them.

A compiled grammar belongs to one vocabulary; a :class:`GrammarMatcher` follows one sequence through it.

Grammars are cached by content: equal expressions are compiled once, whatever they were written as. Threads that ask for
the same grammar at the same time wait for the one that compiles it.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ._core import CancelToken, CompiledGrammar, compile_grammar, compile_json_schema
from .errors import CancelledError, PunchcardError
from .grammar import Grammar, Schema, no_half_characters
from .limits import Limits
from .tokenizers.info import TokenizerInfo

if TYPE_CHECKING:
    from .tags import StructuralTag

#: What a grammar is cached by: schema and options, or an expression, as JSON text.
_Key: TypeAlias = tuple[str, str] | str

#: Seconds between two looks at whether a thread that waits for another was cancelled.
_PATIENCE = 0.02


@dataclass(frozen=True)
class CacheInfo:
    """What a compiler's cache has done since it was made or cleared, and what it holds.

    Attributes:
        hits: grammars that were there, or that another thread was compiling.
        misses: grammars that were compiled, successfully or not.
        evictions: grammars that were dropped for want of space.
        entries: grammars that are held.
        bytes: their size, by `CompiledGrammar.memory_size_bytes`. It grows as masks are computed.
        limit_bytes: how much they may hold; `None` for any amount.
        compile_seconds: time spent on compiling.
    """

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    entries: int = 0
    bytes: int = 0
    limit_bytes: int | None = None
    compile_seconds: float = 0.0


class GrammarCompiler:
    """Compiles grammars for one tokenizer. Safe to use from many threads.

    Args:
        tokenizer_info: the vocabulary.
        cache_enabled: keep compiled grammars and return them for equal grammars.
        cache_limit_bytes: most bytes that they may hold together; the least recently used go first, the last one used
            stays. Looked at when one is added. `None` for any amount.
        limits: against hostile schemas, grammars and texts.
    """

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        cache_enabled: bool = True,
        cache_limit_bytes: int | None = 1 << 30,
        limits: Limits | None = None,
    ) -> None:
        if cache_limit_bytes is not None and cache_limit_bytes < 0:
            raise PunchcardError(
                f"cache_limit_bytes is {cache_limit_bytes}", hint="None is for any amount; cache_enabled=False for none"
            )
        self.tokenizer_info = tokenizer_info
        self._vocabulary = tokenizer_info.vocabulary
        self._limits = json.dumps(asdict(limits or Limits()), sort_keys=True)
        self._cache = _Cache(cache_limit_bytes) if cache_enabled else None

    def compile(self, grammar: Any, *, cancel: CancelToken | None = None) -> CompiledGrammar:
        """Compile a grammar for the vocabulary.

        Args:
            grammar: a `Grammar`, or what `Grammar.of` makes one of, such as a Pydantic model.
            cancel: ends the compilation, and waiting for that of another thread, when it is cancelled.

        Raises:
            InvalidSchemaError: not JSON, or not a valid schema.
            UnsupportedSchemaError: a keyword that cannot be enforced; names keyword and JSON pointer.
            UnsatisfiableSchemaError: no value satisfies the schema.
            GrammarError: a pattern or a rule is malformed, or the grammar derives nothing.
            LimitError: a limit against hostile grammars was passed.
            CancelledError: ``cancel`` was cancelled.
        """
        # Most grammars are one schema: its text is neither written nor read again as a part of another.
        grammar = Grammar.of(grammar)
        key = grammar._json_schema() or grammar._json()
        if self._cache is None:
            return self._compile(key, cancel)
        return self._cache.get(key, lambda: self._compile(key, cancel), cancel)

    def _compile(self, key: _Key, cancel: CancelToken | None) -> CompiledGrammar:
        if isinstance(key, str):
            return compile_grammar(self._vocabulary, key, self._limits, cancel)
        schema, options = key
        with no_half_characters():
            return compile_json_schema(self._vocabulary, schema, options, self._limits, cancel)

    def compile_json_schema(
        self, schema: Schema, *, cancel: CancelToken | None = None, **options: Any
    ) -> CompiledGrammar:
        """Compile a JSON Schema: `Grammar.from_json_schema` with its options, and `compile`, in one."""
        return self.compile(Grammar.from_json_schema(schema, check=False, **options), cancel=cancel)

    def compile_regex(self, pattern: str | re.Pattern[str]) -> CompiledGrammar:
        """Compile a regular expression that the whole output matches: `Grammar.from_regex`, and `compile`, in one.

        Raises:
            GrammarError: the pattern is malformed, not regular, or matches nothing; says at which column.
        """
        return self.compile(Grammar(Grammar._regex(pattern)))

    def compile_ebnf(self, text: str, *, start: str | None = None) -> CompiledGrammar:
        """Compile EBNF: `Grammar.from_ebnf` and `compile`, in one.

        Raises:
            GrammarError: says at which line and column.
        """
        return self.compile(Grammar.from_ebnf(text, start=start))

    def compile_lark(
        self,
        text: str,
        *,
        start: str | None = None,
        lexer: Literal["dynamic", "dynamic_complete"] = "dynamic",
    ) -> CompiledGrammar:
        """Compile a Lark grammar: `Grammar.from_lark` and `compile`, in one.

        Raises:
            GrammarError: says at which line and column.
        """
        return self.compile(Grammar.from_lark(text, start=start, lexer=lexer))

    def compile_structural_tag(self, tag: StructuralTag | dict[str, Any] | str) -> CompiledGrammar:
        """Compile a structural tag: `Grammar.from_structural_tag` and `compile`, in one.

        Raises:
            GrammarError: says where in the tag.
        """
        return self.compile(Grammar.from_structural_tag(tag))

    def cache_info(self) -> CacheInfo:
        """What the cache has done and holds."""
        return CacheInfo() if self._cache is None else self._cache.info()

    def clear_cache(self) -> None:
        """Drop what is cached, and begin to count anew. Grammars that are in use live on."""
        if self._cache is not None:
            self._cache.clear()


class _Cache:
    """Compiled grammars by key, least recently used first, of which each is compiled by one thread."""

    def __init__(self, limit_bytes: int | None) -> None:
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._done: OrderedDict[_Key, CompiledGrammar] = OrderedDict()
        self._under_way: dict[_Key, Future[CompiledGrammar]] = {}
        self._info = CacheInfo(limit_bytes=self._limit)

    def clear(self) -> None:
        with self._lock:
            self._clear()

    def info(self) -> CacheInfo:
        with self._lock:
            info, held = self._info, list(self._done.values())
        return replace(info, entries=len(held), bytes=_bytes(held))

    def get(self, key: _Key, make: Callable[[], CompiledGrammar], cancel: CancelToken | None = None) -> CompiledGrammar:
        """What is held for the key, or else what ``make`` returns.

        What it raises is raised in all that wait for it; but if it was cancelled, one of those makes it.
        """
        while True:
            try:
                return self._get(key, make, cancel)
            except _OtherCancelled:
                continue

    def _get(self, key: _Key, make: Callable[[], CompiledGrammar], cancel: CancelToken | None) -> CompiledGrammar:
        with self._lock:
            found = self._done.get(key)
            waiting = self._under_way.get(key)
            if found is not None or waiting is not None:
                self._count(hits=1)
            if found is not None:
                self._done.move_to_end(key)
                return found
            if waiting is None:
                future: Future[CompiledGrammar] = Future()
                self._under_way[key] = future
        if waiting is not None:
            return _result(waiting, cancel)
        return self._make(key, make, future)

    def _make(self, key: _Key, make: Callable[[], CompiledGrammar], future: Future[CompiledGrammar]) -> CompiledGrammar:
        started = time.perf_counter()
        try:
            compiled = make()
        except BaseException as error:
            with self._lock:
                self._finish(key, future, started)
            future.set_exception(error)
            raise
        with self._lock:
            kept = self._finish(key, future, started)
            if kept:
                self._done[key] = compiled
        future.set_result(compiled)
        if kept:
            self._trim()
        return compiled

    def _finish(self, key: _Key, future: Future[CompiledGrammar], started: float) -> bool:
        """Notes that a compilation has ended. False if the cache was cleared meanwhile."""
        current = self._under_way.get(key) is future
        if current:
            del self._under_way[key]
        self._count(misses=1, compile_seconds=time.perf_counter() - started)
        return current

    def _trim(self) -> None:
        """Drops the least recently used grammars until the others are within the limit."""
        if self._limit is None:
            return
        with self._lock:
            held = list(self._done.items())
        # Masks make a grammar grow after it was cached, so sizes are asked for anew. Nobody waits for that.
        sizes = [(key, compiled, compiled.memory_size_bytes) for key, compiled in held]
        total = sum(size for *_, size in sizes)
        with self._lock:
            for key, compiled, size in sizes:
                if total <= self._limit or len(self._done) < 2:
                    return
                if self._done.get(key) is compiled and next(reversed(self._done)) != key:
                    del self._done[key]
                    self._count(evictions=1)
                    total -= size

    def _count(self, **more: float) -> None:
        sums = {name: getattr(self._info, name) + value for name, value in more.items()}
        self._info = replace(self._info, **sums)


def _bytes(held: Iterable[CompiledGrammar]) -> int:
    return sum(compiled.memory_size_bytes for compiled in held)


class _OtherCancelled(Exception):
    """The thread that compiled has given up, which is nothing to those that wait for it."""


def _result(waiting: Future[CompiledGrammar], cancel: CancelToken | None) -> CompiledGrammar:
    """What another thread compiles."""
    try:
        while cancel is not None and not waiting.done():
            if cancel.is_cancelled:
                raise CancelledError("The operation was cancelled")
            wait([waiting], _PATIENCE)
        return waiting.result()
    except CancelledError:
        if cancel is not None and cancel.is_cancelled:
            raise
        raise _OtherCancelled from None
