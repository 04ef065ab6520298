"""vLLM: a logits processor for its engine, which reads a request's grammar from ``extra_args``.

    llm = LLM(model, logits_processors=[PROCESSOR])  # or: vllm serve --logits-processors ...
    llm.chat(messages, SamplingParams(max_tokens=200, extra_args=extra_args(json_schema=Weather)))

vLLM has two model runners, each with an interface of its own: the first tells of rows that are added, removed and
moved, and shares the lists of their tokens; the second has slots, and the tokens in tensors. One class serves both.

It is not registered as an entry point, on purpose: the second runner would refuse to start where a plug-in is of the
wrong kind, and the first hands out no tokens with asynchronous scheduling, unless processors are named when it starts.
"""

from __future__ import annotations

import base64
import functools
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from punchcard.batch_matcher import BatchMatcher
from punchcard.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from punchcard.errors import GrammarError, PunchcardError
from punchcard.grammar import Grammar, Schema, schema_text
from punchcard.models.base import Follower

if TYPE_CHECKING:
    from punchcard._core import CompiledGrammar
    from punchcard.compiler import GrammarCompiler

#: What to pass to vLLM as a logits processor.
PROCESSOR = "punchcard.models.vllm:PunchcardLogitsProcessor"

#: The name under which ``SamplingParams.extra_args`` has a request's grammar.
KEY = "punchcard"

_KINDS = ("json_schema", "regex", "ebnf", "lark", "structural_tag", "compiled")

_log = logging.getLogger(__name__)


def extra_args(
    *,
    json_schema: Schema | None = None,
    regex: str | None = None,
    ebnf: str | None = None,
    lark: str | None = None,
    structural_tag: Mapping[str, Any] | str | None = None,
    compiled: CompiledGrammar | None = None,
    **options: Any,
) -> dict[str, Any]:
    """A grammar as ``SamplingParams.extra_args`` carry it: exactly one of the arguments, and the ``options`` of its
    method of `Grammar`, such as ``profile`` of a JSON Schema. ``compiled`` is for the model's own vocabulary.

    Over HTTP it is the field ``vllm_xargs``.

    Raises `GrammarError` if not exactly one is given, or it cannot be compiled.
    """
    given: dict[str, Any] = {
        "json_schema": None if json_schema is None else schema_text(json_schema),
        "regex": regex,
        "ebnf": ebnf,
        "lark": lark,
        "structural_tag": structural_tag if isinstance(structural_tag, str | None) else json.dumps(structural_tag),
        "compiled": None if compiled is None else base64.b64encode(compiled.serialize()).decode(),
    }
    spec = {kind: value for kind, value in given.items() if value is not None}
    # As text, because vLLM takes neither big numbers nor, over HTTP, nested objects.
    args = {KEY: json.dumps(spec | ({"options": options} if options else {}))}
    _check(args)
    return args


def _read(args: Mapping[str, Any] | None) -> Grammar | bytes | None:
    """The grammar in ``extra_args``, or a compiled one as bytes; `None` if they have none.

    Raises `GrammarError` if it is malformed.
    """
    spec = (args or {}).get(KEY)
    if spec is None:
        return None
    try:
        spec = json.loads(spec) if isinstance(spec, str) else dict(spec)
    except (TypeError, ValueError):
        raise _malformed(f"it is {spec!r:.80}") from None
    options = spec.pop("options", {})
    if len(spec) != 1 or next(iter(spec)) not in _KINDS:
        raise _malformed(f"it names {', '.join(spec) or 'nothing'}")
    ((kind, value),) = spec.items()
    try:
        if kind == "compiled":
            return base64.b64decode(value, validate=True)
        make = getattr(Grammar, f"from_{kind}")
        return make(value, **options)  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        raise _malformed(str(error)) from error


def _malformed(problem: str) -> GrammarError:
    return GrammarError(
        f"The grammar in extra_args[{KEY!r}] cannot be read: {problem}",
        hint=f"Make it with punchcard.models.vllm.extra_args; it has one of {', '.join(_KINDS)}, and perhaps options",
    )


def _check(args: Mapping[str, Any] | None) -> bool:
    """Whether there is a grammar. Raises `PunchcardError` if it cannot be compiled, as far as that can be told without
    the vocabulary: tags may name its tokens."""
    from punchcard.models.checked import CheckedText

    grammar = _read(args)
    if isinstance(grammar, Grammar) and '"token"' not in grammar._json():
        CheckedText(grammar, "")
    return grammar is not None


#: Settings that forbid tokens, by what they are where they forbid none.
_RIVALS: dict[str, tuple[Any, ...]] = {
    "min_tokens": (0, None),
    "allowed_token_ids": (None,),
    "bad_words": (None, []),
    "structured_outputs": (None,),
}


def check_params(params: Any) -> bool:
    """Whether ``SamplingParams`` have a grammar.

    Raises `ValueError`, as vLLM wants it, if it cannot be compiled, or something else forbids tokens, so that none
    might be left.
    """
    try:
        found = _check(params.extra_args)
    except PunchcardError as error:
        raise ValueError(str(error)) from error
    if found:
        for name, harmless in _RIVALS.items():
            if getattr(params, name, None) not in harmless:
                raise ValueError(f"{name} cannot be combined with a grammar in extra_args[{KEY!r}]. Leave it out")
    return found


@dataclass
class Constraint:
    """What holds an answer to its grammar. It raises nothing: that would take down the engine, with all requests.

    Attributes:
        follower: stands behind ``answer``, once `advance` was called.
        answer: the tokens so far, a list that grows.
        closed: a grammar of nothing but the end.
        broken: something else overrode the mask, so that nothing but the end may come any more.
    """

    follower: Follower
    answer: list[int]
    closed: CompiledGrammar
    broken: bool = False

    def advance(self) -> None:
        """Follows the answer to where it is."""
        if self.broken or self.follower.follow(self.answer):
            return
        _log.error("An answer is ended, because token %d of it breaks its grammar", len(self.follower.tokens))
        self.follower, self.broken = Follower(self.closed), True


class Grammars:
    """Compiled grammars of requests, for the model of a ``VllmConfig``. The tokenizer is read at the first grammar."""

    def __init__(self, vllm_config: Any) -> None:
        self._model_config = vllm_config.model_config
        self.vocab_size: int = self._model_config.get_vocab_size()

    @functools.cached_property
    def _compiler(self) -> GrammarCompiler:
        from vllm.tokenizers import cached_tokenizer_from_config

        from punchcard.compiler import GrammarCompiler
        from punchcard.tokenizers.info import TokenizerInfo

        ends = self._model_config.try_get_generation_config().get("eos_token_id") or ()
        tokenizer = cached_tokenizer_from_config(self._model_config)
        info = TokenizerInfo.from_huggingface(tokenizer, eos_token_ids=ends, vocab_size=self.vocab_size)
        return GrammarCompiler(info)

    def constraint(self, params: Any, answer: list[int]) -> Constraint | None:
        """What holds an ``answer`` to the grammar of ``SamplingParams``; `None` if they have none."""
        if KEY not in (params.extra_args or {}):
            return None
        closed = self._compiler.compile(Grammar.from_text(""))
        try:
            grammar = _read(params.extra_args)
            if grammar is None:
                return None
            compiled = self._deserialized(grammar) if isinstance(grammar, bytes) else self._compiler.compile(grammar)
        except PunchcardError as error:
            # The front end has checked most of it already.
            _log.error("A request gets an empty answer, because its grammar cannot be compiled: %s", error)
            compiled = closed
        return Constraint(Follower(compiled), answer, closed)

    def _deserialized(self, data: bytes) -> CompiledGrammar:
        from punchcard._core import CompiledGrammar

        return CompiledGrammar.deserialize(data, self._compiler.tokenizer_info)


class Rows:
    """Masks for the rows of a batch. ``width``: tokens of the vocabulary."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._batch = BatchMatcher()
        self._bitmask = allocate_token_bitmask(0, width)

    def mask(self, logits: Any, followers: Mapping[int, tuple[Follower, Sequence[int]]]) -> None:
        """Masks rows of ``logits``, float [rows, width], in place. ``followers``: by row, with the drafted tokens that
        have the rows behind it."""
        rows = len(logits)
        if len(self._bitmask) < rows:
            self._bitmask = allocate_token_bitmask(rows, self._width)
        plain = {row: follower for row, (follower, drafts) in followers.items() if not drafts}
        masked = self._batch.fill_next_token_bitmask(
            [follower.matcher for follower in plain.values()], self._bitmask, list(plain)
        )
        touched = [row for row, masks in zip(plain, masked, strict=True) if masks]
        for row, (follower, drafts) in followers.items():
            if drafts:
                possible = follower.matcher.fill_draft_bitmask(self._bitmask, drafts, index=row)
                # What comes behind a refused draft is never looked at; a row without tokens would be no distribution.
                touched += [row, *(row + 1 + at for at, can_come in enumerate(possible) if can_come)]
        if touched:
            apply_token_bitmask_inplace(logits, self._bitmask[:rows], vocab_size=self._width, indices=touched)


class BatchRows:
    """The first model runner's view: rows that are added, removed and moved, and lists of tokens that grow."""

    def __init__(self, grammars: Grammars) -> None:
        self._grammars = grammars
        self._rows = Rows(grammars.vocab_size)
        self._requests: dict[int, Constraint] = {}  # by row

    def update(self, batch_update: Any | None) -> None:
        """Takes in a ``BatchUpdate``: first what is removed, then what is added, then what is moved."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._requests.pop(row, None)
        for row, params, _, answer in batch_update.added:
            self._requests.pop(row, None)
            constraint = self._grammars.constraint(params, answer)
            if constraint is not None:
                self._requests[row] = constraint
        for source, target, direction in batch_update.moved:
            moved, replaced = self._requests.pop(source, None), self._requests.pop(target, None)
            if moved is not None:
                self._requests[target] = moved
            if direction.name == "SWAP" and replaced is not None:
                self._requests[source] = replaced

    def mask(self, logits: Any) -> None:
        """Masks ``logits``, float [rows, width], in place."""
        for constraint in self._requests.values():
            constraint.advance()
        self._rows.mask(logits, {row: (constraint.follower, ()) for row, constraint in self._requests.items()})


class SlotRows:
    """The second model runner's view: requests in slots, tokens on the device, drafts in rows of their own."""

    def __init__(self, grammars: Grammars, state: Any) -> None:
        self._grammars = grammars
        self._rows = Rows(grammars.vocab_size)
        self._state = state
        self._requests: dict[int, Constraint] = {}  # by slot

    def add(self, slot: int, params: Any) -> bool:
        """A request comes into a slot, in place of whatever was there. Returns whether it has a grammar."""
        self._requests.pop(slot, None)
        constraint = self._grammars.constraint(params, [])
        if constraint is not None:
            self._requests[slot] = constraint
        return constraint is not None

    def mask(self, logits: Any, context: Any) -> None:
        """Masks ``logits``, float [rows, width], in place. ``context``: a ``LogitsContext``."""
        slots: list[int] = context.idx_mapping_np.tolist()
        if not any(slot in self._requests for slot in slots):
            return
        self._read_answers([slot for slot in slots if slot in self._requests])
        followers: dict[int, tuple[Follower, Sequence[int]]] = {}
        if len(logits) == len(slots):
            owners, tokens = slots, [0] * len(slots)
        else:  # rows of drafts follow the row of their request
            owners, tokens = context.expanded_idx_mapping.tolist(), context.input_ids.tolist()
        row = 0
        while row < len(owners):
            end = row + 1
            while end < len(owners) and owners[end] == owners[row]:
                end += 1
            if owners[row] in self._requests:
                followers[row] = self._requests[owners[row]].follower, tokens[row + 1 : end]
            row = end
        self._rows.mask(logits, followers)

    def _read_answers(self, slots: list[int]) -> None:
        """Follows the answers to where they are. Waits for the device, for the tokens of the last step."""
        state = self._state
        totals: list[int] = state.total_len.gpu[slots].tolist()
        for slot, total in zip(slots, totals, strict=True):
            answer = self._requests[slot].answer
            begin = int(state.prompt_len.np[slot])
            del answer[max(0, total - begin) :]  # the engine may discard tokens, and sample them anew
            if begin + len(answer) < total:
                answer += state.all_token_ids.gpu[slot, begin + len(answer) : total].tolist()
            self._requests[slot].advance()


def replace_xgrammar() -> None:
    """Puts Punchcard in the place of XGrammar in vLLM's own structured outputs, in this process.

    ``response_format``, ``structured_outputs`` and strict tools stay as they are; vLLM's backend ``xgrammar``, the
    default, then runs on `punchcard.compat.xgrammar`. XGrammar stays installed: other parts of vLLM import it.
    """
    from vllm.v1.structured_output import backend_xgrammar, utils

    from punchcard.compat import xgrammar

    for module in (backend_xgrammar, utils):
        if not hasattr(module, "xgr"):
            raise PunchcardError(
                f"{module.__name__} has no xgr to replace", hint="This version of vLLM is not known; use PROCESSOR"
            )
        module.xgr = xgrammar


def plugin() -> None:
    """What vLLM calls in each of its processes: `replace_xgrammar`, if the environment has
    ``PUNCHCARD_VLLM_STRUCTURED_OUTPUTS=1``, else nothing."""
    if os.environ.get("PUNCHCARD_VLLM_STRUCTURED_OUTPUTS", "0") not in ("", "0"):
        replace_xgrammar()


def _processor_class() -> type:
    """The class for vLLM: a subclass of the processors of both of its model runners, as far as it has both."""
    from vllm.v1.sample.logits_processor import LogitsProcessor as BatchProcessor

    try:
        from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor as SlotProcessor
    except ImportError:
        bases: tuple[type, ...] = (BatchProcessor,)
    else:
        bases = (BatchProcessor, SlotProcessor)

    class PunchcardLogitsProcessor(*bases):  # type: ignore[misc]
        """Masks the logits of requests that have a grammar in their ``extra_args``; see `extra_args`."""

        @classmethod
        def validate_params(cls, sampling_params: Any) -> None:
            check_params(sampling_params)

        def __init__(self, vllm_config: Any, device_or_state: Any, is_pin_memory: bool | None = None) -> None:
            grammars = Grammars(vllm_config)
            if is_pin_memory is None:
                self._slots = SlotRows(grammars, device_or_state)
            else:
                self._rows = BatchRows(grammars)

        def apply(self, logits: Any, context: Any = None) -> Any:
            if context is None:
                self._rows.mask(logits)
            else:
                self._slots.mask(logits, context)
            return logits

        # Of the first model runner only:

        def is_argmax_invariant(self) -> bool:
            return False

        def update_state(self, batch_update: Any | None) -> None:
            self._rows.update(batch_update)

        # Of the second model runner only:

        def add_request(self, req_idx: int, sampling_params: Any) -> bool:
            return self._slots.add(req_idx, sampling_params)

    PunchcardLogitsProcessor.__module__ = __name__
    PunchcardLogitsProcessor.__qualname__ = "PunchcardLogitsProcessor"
    return PunchcardLogitsProcessor


def __getattr__(name: str) -> Any:
    # Made when it is first asked for, so that everything else here can be used where vLLM is not installed.
    if name != "PunchcardLogitsProcessor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = _processor_class()
    return made
