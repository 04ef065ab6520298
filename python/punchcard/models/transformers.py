"""transformers: grammars in ``model.generate``, and its models under `punchcard.Agent` and `punchcard.extract`.

    generate(..., logits_processor=[GrammarLogitsProcessor(compiled)])

``generate`` hands its processors the tokens of all rows, prompt and padding included, and the scores of the next token
of each. What the first call of a generation is handed is the prompt; what rows have beyond it is the answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from punchcard.batch_matcher import BatchMatcher
from punchcard.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from punchcard.errors import MatcherError, ModelError
from punchcard.models.base import CachedModel, Follower, ambiguous_text, require
from punchcard.tokenizers.info import TokenizerInfo

if TYPE_CHECKING:
    from punchcard._core import CompiledGrammar


class GrammarLogitsProcessor:
    """Lets ``model.generate`` write only what a grammar admits, in greedy search, sampling, beam search and assisted
    decoding, for any number of rows.

    Compile the grammar for ``TokenizerInfo.from_huggingface(tokenizer, eos_token_ids=..., vocab_size=...)`` with the
    end tokens of ``model.generation_config``, so that both agree on what ends an answer.

    Args:
        grammar: one for all rows, or one for each prompt of the batch. A prompt that is answered several times
            (``num_return_sequences``, ``num_beams``) has its grammar for all of its rows.
        drafts: an assistant drafts tokens (``assistant_model``, ``prompt_lookup_num_tokens``), so that rows go back,
            and have tokens that the grammar refuses. Without, both are errors.

    One processor serves one generation at a time, and any number in a row: rows that go on from those of the last call
    by one token belong to the same generation, any others begin a new one. So does `reset`.

    Raises, when generating:
        MatcherError: there is no token left, because other settings (``min_new_tokens``, ``suppress_tokens``,
            ``bad_words_ids``) forbid what the grammar asks for; a row has a token that the grammar refuses; the number
            of grammars fits no batch; it cannot be told whether a new generation begins.
    """

    supports_continuous_batching = False  # there, rows come and go between calls

    def __init__(self, grammar: CompiledGrammar | Sequence[CompiledGrammar], *, drafts: bool = False) -> None:
        self._grammars = list(grammar) if isinstance(grammar, Sequence) else [grammar]
        if not self._grammars:
            raise MatcherError("There is no grammar", hint="Give one, or one for each prompt")
        widths = {compiled.vocab_size for compiled in self._grammars}
        if len(widths) > 1:
            raise MatcherError(
                f"The grammars are for vocabularies of {' and '.join(map(str, sorted(widths)))} tokens",
                hint="Compile all of them with one GrammarCompiler",
            )
        self._vocab_size = widths.pop()
        self._drafts = drafts
        self._batch = BatchMatcher()
        self.reset()

    def reset(self) -> None:
        """Forgets the generation: the next call begins a new one."""
        self._prompt: Any = None  # int64 [rows, prompt tokens]
        self._text: Any = None  # int64 [rows, tokens], of the last call
        self._rows: list[Follower] = []
        self._bitmask = allocate_token_bitmask(1, self._vocab_size)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """``input_ids``: int64 [rows, tokens]; ``scores``: float [rows, width], of any dtype, on any device. Returns
        scores in which what the grammar forbids is minus infinity; the given ones stay as they are."""
        if not self._goes_on(input_ids):
            self._begin(input_ids)
        self._text = input_ids.clone()
        answers: list[list[int]] = input_ids[:, self._prompt.shape[1] :].tolist()
        alive = [row.follow(answer) for row, answer in zip(self._rows, answers, strict=True)]
        if not all(alive):
            self._check_refused(alive, answers)
        masked = self._batch.fill_next_token_bitmask([row.matcher for row in self._rows], self._bitmask)
        rows = [row for row, (lives, masks) in enumerate(zip(alive, masked, strict=True)) if lives and masks]
        result = scores.clone()
        apply_token_bitmask_inplace(result, self._bitmask, vocab_size=self._vocab_size, indices=rows)
        self._check_left(result, rows)
        return result

    def _goes_on(self, input_ids: Any) -> bool:
        last, prompt = self._text, self._prompt
        if last is None or len(input_ids) != len(last) or input_ids.device != last.device:
            return False
        begin, length = prompt.shape[1], input_ids.shape[1]
        if length == last.shape[1] + 1 and _picks(input_ids[:, :-1], last):
            return True
        if not begin < length <= last.shape[1] + 1 or not bool((input_ids[:, :begin] == prompt).all()):
            return False
        if not self._drafts:
            raise ambiguous_text()
        return True

    def _begin(self, input_ids: Any) -> None:
        rows, prompts = len(input_ids), len(self._grammars)
        if rows % prompts:
            raise MatcherError(
                f"{rows} rows cannot be shared out among {prompts} grammars",
                hint="Give one grammar, or one for each prompt of the batch",
            )
        self._prompt = input_ids.clone()
        self._rows = [Follower(self._grammars[row * prompts // rows]) for row in range(rows)]
        self._bitmask = allocate_token_bitmask(rows, self._vocab_size)

    def _check_refused(self, alive: list[bool], answers: list[list[int]]) -> None:
        """Refused tokens are in order where they were drafted, and in beams that are kept for want of better ones:
        where a grammar allows fewer continuations than there are beams, some have a score of minus infinity."""
        if self._drafts:
            return
        allowed = np.unpackbits(self._bitmask.view(np.uint8), axis=1).sum(axis=1)
        for row, lives in enumerate(alive):
            group = self._group(row)
            if not lives and len(group) <= allowed[group].sum():
                taken = len(self._rows[row].tokens)
                raise MatcherError(
                    f"Row {row} has token {answers[row][taken]} as token {taken} of its answer, which the grammar "
                    "refuses",
                    hint="Put the processor behind those that set scores; with an assistant model, pass drafts=True",
                    row=row,
                )

    def _check_left(self, scores: Any, rows: list[int]) -> None:
        """Raises if no row of a prompt that was masked has a token left."""
        empty: list[bool] = (scores.amax(dim=-1) == -np.inf).tolist()
        dead = {row for row, is_empty in enumerate(empty) if is_empty}
        for row in sorted(dead.intersection(rows)):
            if dead.issuperset(self._group(row)):
                raise MatcherError(
                    f"No token is left for row {row}: what the grammar asks for is forbidden elsewhere",
                    hint="Look at min_new_tokens, min_length, suppress_tokens, bad_words_ids and other processors",
                    row=row,
                )

    def _group(self, row: int) -> list[int]:
        """The rows that answer the prompt of ``row``. Equal prompts side by side count as one."""
        same: list[bool] = (self._prompt == self._prompt[row]).all(dim=1).tolist()
        return [other for other, equal in enumerate(same) if equal]


class TransformersModel(CachedModel):
    """A causal language model of transformers, with the keys and values of the tokens that it has seen.

    ``model``: what ``AutoModelForCausalLM.from_pretrained`` gives, on any device and of any dtype; ``tokenizer``: its
    tokenizer; ``name``: what errors call it, and what the tool format is told by where the template does not tell.

    Attributes: those of `punchcard.models.base.Model`; ``model`` and ``tokenizer``, as given. Those
    tokens end a text that the generation config or the tokenizer names.

    Raises `ModelError` if the model tells no width of its logits or no length of its context; give
    ``context_length`` then.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, name: str | None = None, context_length: int | None = None
    ) -> None:
        super().__init__()
        self._torch = require("torch", install="'punchcard[transformers]'")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.name = name or str(getattr(model, "name_or_path", "") or type(model).__name__)
        config = model.config.get_text_config()
        self.vocab_size: int = _width(model, config)
        length = context_length or getattr(config, "max_position_embeddings", None)
        if length is None:
            raise ModelError(f"{self.name} does not say how long its context is", hint="Pass context_length")
        self.context_length: int = length
        self.chat_template: str | None = _template(tokenizer)
        self.bos_token_id: int | None = tokenizer.bos_token_id
        ends = _ids(getattr(model.generation_config, "eos_token_id", None))
        self.tokenizer_info = TokenizerInfo.from_huggingface(tokenizer, eos_token_ids=ends, vocab_size=self.vocab_size)
        self.eos_token_ids: list[int] = self.tokenizer_info.eos_token_ids
        parameters = inspect.signature(model.forward).parameters
        self._keeps_some = "logits_to_keep" in parameters
        # Version 5 of transformers renames it.
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._cache: Any = None

    def _encode(self, text: str, parse_special: bool) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=not parse_special)
        return ids

    def _compute(self, ids: list[int], all_positions: bool) -> NDArray[np.float32]:
        # Some state spaces start from zero when several tokens follow in one pass (Mamba, in transformers 5).
        size = 1 if self._cached and _has_states(self._cache) else len(ids)
        return np.concatenate([self._step(ids[at : at + size], all_positions) for at in range(0, len(ids), size)])

    def _step(self, ids: list[int], all_positions: bool) -> NDArray[np.float32]:
        torch = self._torch
        rows = len(ids) if all_positions else 1
        options = {self._cache_name: self._cache, **({"logits_to_keep": rows} if self._keeps_some else {})}
        with torch.inference_mode():
            inputs = torch.tensor([ids], dtype=torch.int64, device=self.model.device)
            output = self.model(input_ids=inputs, use_cache=True, **options)
            logits: NDArray[np.float32] = output.logits[0, -rows:].float().cpu().numpy()
        self._cache = output[self._cache_name]
        return logits

    def _drop(self, count: int) -> bool:
        try:
            self._cache.crop(-count)
            return bool(self._cache.get_seq_length() == self._cached - count)
        except (AttributeError, NotImplementedError, RuntimeError, ValueError):
            return False  # some kinds of layers cannot go back, and say so in these ways

    def _clear(self) -> None:
        self._cache = None


def _picks(rows: Any, others: Any) -> bool:
    """Whether each of the rows is one of the others, as the beams of a search are."""
    if bool((rows == others).all()):
        return True
    known = {row.tobytes() for row in others.cpu().numpy()}
    return all(row.tobytes() in known for row in rows.cpu().numpy())


def _width(model: Any, config: Any) -> int:
    head = model.get_output_embeddings()
    width = getattr(config, "vocab_size", None) if head is None else head.weight.shape[0]
    if width is None:
        raise ModelError(
            f"{type(model).__name__} does not say how wide its logits are", hint="Load it as a causal language model"
        )
    return int(width)


def _has_states(cache: Any) -> bool:
    """Whether a cache holds states of a recurrence, and not only keys and values."""
    return any(hasattr(part, "conv_states") for part in (cache, *getattr(cache, "layers", ())))


def _template(tokenizer: Any) -> str | None:
    """The template for tools, where a tokenizer has several."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, dict):
        return template.get("tool_use") or template.get("default")
    return template


def _ids(value: int | Sequence[int] | None) -> list[int]:
    if value is None:
        return []
    return [value] if isinstance(value, int) else list(value)
