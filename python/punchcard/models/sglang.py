"""SGLang: a grammar backend, chosen by ``--grammar-backend punchcard``.

Requests stay as they are (``response_format``, ``regex``, ``ebnf``, structural tags of tools): the backend compiles
what SGLang hands it. SGLang finds `register` by the entry point ``sglang.srt.plugins``, in each of its processes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from punchcard._core import CompiledGrammar, GrammarMatcher
from punchcard.batch_matcher import BatchMatcher
from punchcard.bitmask import apply_token_bitmask_inplace, token_bitmask_shape
from punchcard.compiler import GrammarCompiler
from punchcard.errors import PunchcardError
from punchcard.grammar import Grammar
from punchcard.models.base import require
from punchcard.tokenizers.info import TokenizerInfo

NAME = "punchcard"

#: What SGLang asks for where an answer is any JSON (``response_format`` of the type ``json_object``).
_ANY_JSON = "$$ANY$$"


def register() -> None:
    """Makes the backend known to SGLang in this process, under the name of ``punchcard``. May be called again.

    Raises `PunchcardError` if SGLang is not installed.
    """
    base = require("sglang.srt.constrained.base_grammar_backend", install="sglang")
    arguments = require("sglang.srt.server_args", install="sglang")
    base.register_grammar_backend(NAME, create_backend)
    if NAME not in getattr(arguments, "GRAMMAR_BACKEND_CHOICES", ()):
        arguments.add_grammar_backend_choices([NAME])


def create_backend(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | int | None = None
) -> Any:
    """The backend for a model, as SGLang's registry makes it.

    With a reasoning parser it lets the model think freely, and holds what comes after it to the grammar.

    Raises `PunchcardError` for an option of the server that cannot be honoured.
    """
    options = _options(server_args)
    if options("constrained_json_whitespace_pattern") is not None:
        raise PunchcardError(
            "--constrained-json-whitespace-pattern is not known to Punchcard",
            hint="Leave it out; --constrained-json-disable-any-whitespace is known",
        )
    ends = () if eos_token_ids is None else eos_token_ids
    info = TokenizerInfo.from_huggingface(tokenizer, eos_token_ids=ends, vocab_size=vocab_size)
    whitespace = "none" if options("constrained_json_disable_any_whitespace") else None
    backend = _classes()[1](GrammarCompiler(info), whitespace)
    parser = options("reasoning_parser")
    if not parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    reasoning = ReasoningParser(model_type=parser, stream_reasoning=False, tokenizer=tokenizer)
    strict = bool(options("enable_strict_thinking"))
    return ReasonerGrammarBackend(backend, reasoning, tokenizer, enable_strict_thinking=strict)


def _options(server_args: Any) -> Callable[[str], Any]:
    """Reads options of the server: from its context, where newer versions keep them as they were resolved."""
    try:
        from sglang.srt.runtime_context import get_serving

        source = get_serving()
    except ImportError:
        source = server_args
    return lambda name: getattr(source, name, None)


def grammar_of(kind: str, text: str, whitespace: Any = None) -> Grammar:
    """What a request asks for as a grammar. ``kind``: ``json``, ``regex``, ``ebnf`` or ``structural_tag``; ``text``: as
    SGLang hands it over; ``whitespace``: of JSON, see `Grammar.from_json_schema`.

    Raises `PunchcardError` if it is malformed.
    """
    if kind == "json":
        return Grammar.from_json_schema(True if text == _ANY_JSON else text, whitespace=whitespace)
    if kind == "regex":
        return Grammar.from_regex(text)
    if kind == "ebnf":
        return Grammar.from_ebnf(text)
    try:
        tag = json.loads(text)
    except ValueError as error:
        raise PunchcardError(f"The structural tag is no JSON: {error}") from error
    return Grammar.from_structural_tag(_of_today(tag) if "structures" in tag else tag)


def _of_today(tag: dict[str, Any]) -> dict[str, Any]:
    """A structural tag of the first kind, which has a schema between each beginning and end."""
    tags = [
        {
            "type": "tag",
            "begin": structure["begin"],
            "content": {"type": "json_schema", "json_schema": structure.get("schema") or {}},
            "end": structure["end"],
        }
        for structure in tag["structures"]
    ]
    at_least_one = tag.get("at_least_one", False)
    return {"type": "triggered_tags", "triggers": tag["triggers"], "tags": tags, "at_least_one": at_least_one}


@functools.cache
def _classes() -> tuple[type, type]:
    """The classes of a grammar and of the backend: subclasses of SGLang's, which are there only if it is installed."""
    base = require("sglang.srt.constrained.base_grammar_backend", install="sglang")
    batch = BatchMatcher()

    class PunchcardGrammar(base.BaseGrammarObject):  # type: ignore[misc, name-defined]
        """A request's place in its grammar."""

        def __init__(self, compiled: CompiledGrammar, stats: Any = None) -> None:
            super().__init__()
            self.compiled = compiled
            self.matcher = GrammarMatcher(compiled)
            self.grammar_stats = stats
            self._after_end = 0  # tokens that came after the end, which are of no account

        def accept_token(self, token: int) -> None:
            """Raises `ValueError`, for which SGLang aborts the request, if the grammar refuses the token."""
            if self.matcher.is_terminated():
                self._after_end += 1
                return
            self.current_token = token
            if not self.matcher.accept_token(token):
                steps = self.matcher.num_steps
                raise ValueError(f"token {token} breaks the grammar as number {steps} of the answer")

        def rollback(self, k: int) -> None:
            ignored = min(k, self._after_end)
            self._after_end -= ignored
            self.matcher.rollback(k - ignored)

        def is_terminated(self) -> bool:
            return self.matcher.is_terminated()

        def copy(self) -> PunchcardGrammar:
            """At the beginning of the same grammar."""
            stats = self.grammar_stats
            if stats is not None:
                stats = base.GrammarStats(is_cache_hit=True, dispatch_type=stats.dispatch_type)
            return PunchcardGrammar(self.compiled, stats)

        def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Any:
            return _allocate(vocab_size, batch_size)

        def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
            self.matcher.fill_next_token_bitmask(vocab_mask, idx)

        @staticmethod
        def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: Any) -> None:
            ours = [entry for entry in entries if isinstance(entry.grammar, PunchcardGrammar)]
            matchers = [entry.grammar.matcher for entry in ours]
            batch.fill_next_token_bitmask(matchers, vocab_mask, [entry.row for entry in ours])
            for entry in entries:
                if not isinstance(entry.grammar, PunchcardGrammar):  # wrapped, where the model reasons
                    entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

        reset_vocab_mask = staticmethod(_reset)
        move_vocab_mask = staticmethod(_move)
        apply_vocab_mask = staticmethod(_apply)

        def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
            text = self.matcher.find_jump_forward_string()
            return ([], text) if text else None

        def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
            return helper[1], -1

        def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
            pairs = enumerate(zip(old_output_ids, new_output_ids, strict=False))
            shorter = min(len(old_output_ids), len(new_output_ids))
            same = next((at for at, (old, new) in pairs if old != new), shorter)
            self.rollback(len(old_output_ids) - same)
            for token in new_output_ids[same:]:
                self.accept_token(token)

    class PunchcardGrammarBackend(base.BaseGrammarBackend):  # type: ignore[misc, name-defined]
        """Compiles what requests ask for."""

        is_support_token_filter = True
        allocate_vocab_mask = staticmethod(lambda vocab_size, batch_size, device: _allocate(vocab_size, batch_size))
        move_vocab_mask = staticmethod(_move)
        apply_vocab_mask = staticmethod(_apply)
        set_token_filter = staticmethod(set_token_filter)

        def __init__(self, compiler: GrammarCompiler, whitespace: Any = None) -> None:
            super().__init__()
            self.compiler = compiler
            self._whitespace = whitespace

        def _dispatch(self, kind: str, text: str) -> Any:
            try:
                compiled = self.compiler.compile(grammar_of(kind, text, self._whitespace))
            except PunchcardError as error:
                return base.InvalidGrammarObject(str(error))
            return PunchcardGrammar(compiled, base.GrammarStats(dispatch_type=kind))

        def dispatch_json(self, key_string: str) -> Any:
            return self._dispatch("json", key_string)

        def dispatch_regex(self, key_string: str) -> Any:
            return self._dispatch("regex", key_string)

        def dispatch_ebnf(self, key_string: str) -> Any:
            return self._dispatch("ebnf", key_string)

        def dispatch_structural_tag(self, key_string: str) -> Any:
            return self._dispatch("structural_tag", key_string)

        def reset(self) -> None:
            super().reset()
            self.compiler.clear_cache()

    return PunchcardGrammar, PunchcardGrammarBackend


def _allocate(vocab_size: int, batch_size: int) -> Any:
    """A mask in which every token is allowed, int32 [batch_size, words], ready to be copied to a GPU."""
    import torch

    shape = token_bitmask_shape(batch_size, vocab_size)
    return torch.full(shape, -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())


def _reset(vocab_mask: Any) -> None:
    vocab_mask.fill_(-1)


def _move(vocab_mask: Any, device: Any) -> Any:
    return vocab_mask.to(device, non_blocking=True)


def _apply(logits: Any, vocab_mask: Any) -> None:
    apply_token_bitmask_inplace(logits, vocab_mask)


def set_token_filter(
    vocab_mask: Any, token_ids: Sequence[int], batch_idx: int, is_allowed: bool = True, reset_vocab_mask: bool = True
) -> None:
    """Allows (or forbids) tokens in row ``batch_idx`` of a mask on the CPU; with ``reset_vocab_mask`` all others the
    other way round."""
    row = vocab_mask.numpy()[batch_idx]
    if reset_vocab_mask:
        row[:] = 0 if is_allowed else -1
    words = row.view("uint32")
    for token in token_ids:
        bit = 1 << (token % 32)
        words[token // 32] = words[token // 32] | bit if is_allowed else words[token // 32] & (0xFFFFFFFF ^ bit)
