"""llama-cpp-python: grammars in ``Llama.create_completion``, and its models under `punchcard.Agent`.

    llama.create_completion(prompt, **grammar_options(llama, compiled))

llama.cpp calls its samplers from C, where an exception of a processor is printed and passed over: the answer would go
on without the grammar. So the processor lets nothing but the end pass once it has failed, and a stopping criterion,
which is called from Python, raises what was wrong. `grammar_options` gives both.
"""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from punchcard.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from punchcard.errors import MatcherError, ModelError
from punchcard.models.base import CachedModel, Row, require
from punchcard.tokenizers.info import TokenizerInfo

if TYPE_CHECKING:
    from punchcard._core import CompiledGrammar

_INSTALL = "'punchcard[llama-cpp]'"


def tokenizer_info(llama: Any) -> TokenizerInfo:
    """The vocabulary of a ``Llama``, from its file; the tokens that end a text are those at which llama.cpp stops."""
    llama_cpp = require("llama_cpp", install=_INSTALL)
    vocab = llama_cpp.llama_model_get_vocab(llama.model)
    width = llama.n_vocab()
    ends = [token for token in range(width) if llama_cpp.llama_vocab_is_eog(vocab, token)]
    info = TokenizerInfo.from_gguf(llama.model_path, eos_token_ids=ends, vocab_size=width)
    return info.replace(eos_token_ids=ends) if ends else info


class GrammarLogitsProcessor:
    """Lets a ``Llama`` write only what a grammar admits, compiled for its `tokenizer_info`.

    Use it through `grammar_options`; or put it into ``logits_processor`` and its `check` into ``stopping_criteria``.
    One processor serves one generation at a time, and any number in a row: a text that goes on from the last one by one
    token belongs to the same generation, any other begins a new one. So does `reset`.

    Attributes:
        error: what went wrong in a callback, for `check` to raise.
    """

    def __init__(self, grammar: CompiledGrammar) -> None:
        self._row = Row(grammar)
        self._bitmask = allocate_token_bitmask(1, grammar.vocab_size)
        self._vocab_size = grammar.vocab_size
        self._ends: NDArray[np.intp] | None = None
        self._asked = -1  # tokens of the text for which the mask was asked last
        self.error: MatcherError | None = None

    def reset(self) -> None:
        """Forgets the generation: the next call begins a new one."""
        self._row.reset()
        self.error = None

    def __call__(self, input_ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        """``input_ids``: int32 [tokens], prompt and answer; ``scores``: float32 [vocab_size], masked in place."""
        self._asked = len(input_ids)
        tokens: list[int] = input_ids.tolist()
        try:
            if not self._row.follow(tokens):
                self.error = MatcherError(
                    f"The text has token {tokens[-1]}, which the grammar refuses",
                    hint="No other processor may let through what the mask forbids; a draft_model cannot be used",
                )
        except MatcherError as error:
            self.error = error
        if self._row.matcher.fill_next_token_bitmask(self._bitmask):
            apply_token_bitmask_inplace(scores, self._bitmask, vocab_size=self._vocab_size)
        if self.error is None and scores.max() == -np.inf:
            self.error = MatcherError("No token is left: what the grammar asks for is forbidden by another processor")
        return scores

    def check(self, input_ids: NDArray[np.intc], logits: NDArray[np.single]) -> bool:
        """A stopping criterion, called after each token was sampled, with the text before it. Never stops by itself.

        Raises `MatcherError` if the processor failed, or if it was left out: llama-cpp-python drops all processors
        where ``logit_bias`` is given, too.
        """
        if self.error is not None:
            error, self.error = self.error, None
            self._row.reset()
            raise error
        if self._asked != len(input_ids):
            raise MatcherError(
                "A token was sampled without the grammar",
                hint="Do not pass logit_bias, for which llama-cpp-python drops its logits processors, or a draft_model",
            )
        return False


def grammar_options(llama: Any, grammar: CompiledGrammar) -> dict[str, Any]:
    """What to pass to ``create_completion`` (or ``generate``, ``create_chat_completion`` without the criteria) so that
    only what ``grammar`` admits is written. Good for any number of calls, one after the other.

    Raises `MatcherError` if the grammar is for another vocabulary, or the model has a ``draft_model``, whose drafts
    llama-cpp-python does not tell from the text.
    """
    llama_cpp = require("llama_cpp", install=_INSTALL)
    if grammar.vocab_size != llama.n_vocab():
        raise MatcherError(
            f"The grammar is for {grammar.vocab_size} tokens, but the model has {llama.n_vocab()}",
            hint="Compile it for punchcard.models.llama_cpp.tokenizer_info(llama)",
        )
    if getattr(llama, "draft_model", None) is not None:
        raise MatcherError(
            "llama-cpp-python hands its drafts to logits processors as if they were text",
            hint="Load the model without draft_model",
        )
    processor = GrammarLogitsProcessor(grammar)
    return {
        "logits_processor": llama_cpp.LogitsProcessorList([processor]),
        "stopping_criteria": llama_cpp.StoppingCriteriaList([processor.check]),
    }


class LlamaCppModel(CachedModel):
    """A ``llama_cpp.Llama``, with the keys and values of the tokens that it has seen.

    It uses the context of ``llama``, of which it needs no options but ``n_ctx``. Completions of the same ``llama`` in
    between are allowed; what this model had in the cache is then computed again.

    Attributes: those of `punchcard.models.base.Model`; ``llama``, as given.
    """

    def __init__(self, llama: Any, *, name: str | None = None) -> None:
        super().__init__()
        self._library = require("llama_cpp", install=_INSTALL)
        self.llama = llama
        self.name = name or Path(llama.model_path).stem
        self.vocab_size: int = llama.n_vocab()
        self.context_length: int = llama.n_ctx()
        self.chat_template: str | None = llama.metadata.get("tokenizer.chat_template")
        bos = llama.token_bos()
        self.bos_token_id: int | None = bos if bos >= 0 else None
        self.tokenizer_info = tokenizer_info(llama)
        self.eos_token_ids: list[int] = self.tokenizer_info.eos_token_ids
        size = min(self._library.llama_n_batch(llama.ctx), self.context_length)
        self._batch = self._library.llama_batch_init(size, 0, 1)
        weakref.finalize(self, self._library.llama_batch_free, self._batch)
        self._batch_size = size

    def _encode(self, text: str, parse_special: bool) -> list[int]:
        ids: list[int] = self.llama.tokenize(text.encode(), add_bos=False, special=parse_special)
        return ids

    def _compute(self, ids: list[int], all_positions: bool) -> NDArray[np.float32]:
        if self.llama.n_tokens:  # it has written something of its own since
            self._clear()
            ids, self._cached = [*self._tokens[: self._cached], *ids], 0
        rows: list[NDArray[np.float32]] = []
        for at in range(0, len(ids), self._batch_size):
            part = ids[at : at + self._batch_size]
            wanted = len(part) if all_positions else int(at + len(part) == len(ids))
            rows += self._decode(part, self._cached + at, wanted)
        return np.stack(rows)

    def _decode(self, ids: list[int], position: int, wanted: int) -> list[NDArray[np.float32]]:
        """Adds at most a batch. Returns the logits after each of the last ``wanted`` tokens."""
        library, batch = self._library, self._batch
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i] = token
            batch.pos[i] = position + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = i >= len(ids) - wanted
        code = library.llama_decode(self.llama.ctx, batch)
        if code:
            raise ModelError(f"llama.cpp could not compute {len(ids)} tokens at position {position}: code {code}")
        first = len(ids) - wanted
        return [
            np.ctypeslib.as_array(library.llama_get_logits_ith(self.llama.ctx, i), shape=(self.vocab_size,)).copy()
            for i in range(first, len(ids))
        ]

    def _drop(self, count: int) -> bool:
        if self.llama.n_tokens:
            return False
        library, position = self._library, self._cached - count
        memory = library.llama_get_memory(self.llama.ctx)
        # A cache of windows has forgotten what is too far back to be seen from where the text went on.
        window = library.llama_model_n_swa(self.llama.model)
        if library.llama_memory_seq_pos_min(memory, 0) > max(0, position - window):
            return False
        return bool(library.llama_memory_seq_rm(memory, 0, position, -1))

    def _clear(self) -> None:
        # `n_tokens` is how many tokens of its own the `Llama` believes to be in the cache.
        self.llama.n_tokens = 0
        self._library.llama_memory_clear(self._library.llama_get_memory(self.llama.ctx), True)


__all__ = ["GrammarLogitsProcessor", "LlamaCppModel", "grammar_options", "tokenizer_info"]
