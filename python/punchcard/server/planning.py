"""What is to be written, and how it is read: for turns of a conversation and for plain completions."""

from __future__ import annotations

import codecs
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from punchcard._core import CancelToken, CompiledGrammar
from punchcard.chat import Delta, Reply, Request
from punchcard.compiler import GrammarCompiler
from punchcard.errors import ContextLengthError
from punchcard.grammar import Grammar
from punchcard.limits import Limits
from punchcard.server.batching import BatchModel
from punchcard.turn import Speaker, plan


class Parser(Protocol):
    """Reads an answer token by token; `punchcard.turn.TurnParser` is one."""

    @property
    def reply(self) -> Reply: ...
    def feed(self, token_id: int) -> list[Delta]: ...
    def finish(self, ended: Literal["stop", "length"]) -> list[Delta]: ...


class Plan(Protocol):
    """A prompt, what may follow it, and the tokens that end it."""

    @property
    def prompt(self) -> list[int]: ...
    @property
    def grammar(self) -> CompiledGrammar | None: ...
    @property
    def stop_token_ids(self) -> frozenset[int]: ...
    def parser(self) -> Parser: ...


@dataclass(frozen=True)
class Completion:
    """A text to go on with, as characters or as tokens, and what may follow it; `None` for anything."""

    prompt: str | Sequence[int]
    answer: Grammar | None = None


def limit_grammars(model: BatchModel, limits: Limits, cache_bytes: int) -> None:
    """Has the grammars of all plans for ``model`` compiled within ``limits`` from now on, and ``cache_bytes`` of them
    kept."""
    speaker = Speaker.of(model)
    speaker.compiler = GrammarCompiler(speaker.info, limits=limits, cache_limit_bytes=cache_bytes)


def refuse_long(model: BatchModel, asked: Request | Completion) -> None:
    """Raises `ContextLengthError` for what is too long whatever tokens it is made of, before time is spent on it."""
    if isinstance(asked, Request):
        texts = [str(message.get("content") or "") for message in asked.messages]
        # A message takes a token at least, whatever the template makes of it.
        least = len(texts)
    elif isinstance(asked.prompt, str):
        texts, least = [asked.prompt], 0
    else:
        return
    # A template may cut white space off.
    size = sum(len(text.strip()) for text in texts)
    least = max(least, size // _longest_token(model))
    if least > model.context_length:
        raise ContextLengthError(
            f"The prompt has {size} characters in {len(texts)} texts, at least {least} tokens; {model.name} has room "
            f"for {model.context_length}",
            hint="Shorten the messages" if isinstance(asked, Request) else "Shorten the prompt",
            tokens=least,
            context_length=model.context_length,
        )


def _longest_token(model: BatchModel) -> int:
    """The most characters that a token stands for."""
    if model not in _longest_tokens:
        _longest_tokens[model] = max(map(len, model.tokenizer_info.tokens))
    return _longest_tokens[model]


_longest_tokens: weakref.WeakKeyDictionary[BatchModel, int] = weakref.WeakKeyDictionary()


def make_plan(
    model: BatchModel, asked: Request | Completion, *, grammar: bool = True, cancel: CancelToken | None = None
) -> Plan:
    """Renders the prompt and compiles the grammar, which may take long. Safe to be called in many threads.

    ``grammar``: without, answers are what the model likes. ``cancel``: ends the compilation.

    Raises `PunchcardError` if the request cannot be met.
    """
    if isinstance(asked, Request):
        return plan(model, asked if grammar else replace(asked, constrained=False), cancel=cancel)
    prompt = asked.prompt
    if isinstance(prompt, str):
        # An empty text is no beginning: there are no logits after nothing.
        first = [] if model.bos_token_id is None else [model.bos_token_id]
        prompt = first + model.tokenize(prompt, parse_special=True) or model.eos_token_ids[:1]
    speaker = Speaker.of(model)
    compiled = None if asked.answer is None or not grammar else speaker.compiler.compile(asked.answer, cancel=cancel)
    return _TextPlan(list(prompt), compiled, speaker.stop_token_ids, speaker.info.tokens)


@dataclass(frozen=True)
class _TextPlan:
    prompt: list[int]
    grammar: CompiledGrammar | None
    stop_token_ids: frozenset[int]
    pieces: Sequence[bytes]

    def parser(self) -> Parser:
        return _TextParser(self.pieces)


class _TextParser:
    """All that is written is text."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        # Characters that are split over tokens are told when they are whole.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.reply = Reply()

    def feed(self, token_id: int) -> list[Delta]:
        return self._tell(self._decoder.decode(self._pieces[token_id]))

    def finish(self, ended: Literal["stop", "length"]) -> list[Delta]:
        # Half a character that the tokens ran out in is left out.
        self.reply.finish = ended
        return []

    def _tell(self, text: str) -> list[Delta]:
        self.reply.text += text
        return [Delta("text", text)] if text else []
