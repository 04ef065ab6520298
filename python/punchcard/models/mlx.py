"""MLX: grammars in ``mlx_lm.generate``, and its models under `punchcard.Agent` and `punchcard.extract`.

mlx_lm.generate(model, tokenizer, prompt, logits_processors=[GrammarLogitsProcessor(compiled)])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from punchcard.bitmask import allocate_token_bitmask
from punchcard.errors import MatcherError, ModelError
from punchcard.models.base import CachedModel, Row, require
from punchcard.tokenizers.info import TokenizerInfo

if TYPE_CHECKING:
    from punchcard._core import CompiledGrammar

_INSTALL = "'punchcard[mlx]'"
_PASS = 512  # tokens of a prompt that are computed at once: more take more memory, and are hardly faster


class GrammarLogitsProcessor:
    """Lets ``mlx_lm`` write only what a grammar admits, in ``generate`` and ``stream_generate``.

    Compile the grammar for ``TokenizerInfo.from_huggingface(tokenizer, eos_token_ids=tokenizer.eos_token_ids)``; logits
    beyond its tokens are forbidden. One processor serves one generation at a time, and any number in a row: a text that
    goes on from the last one by one token belongs to the same generation, any other begins a new one. So does `reset`.
    For a batch, give a ``BatchGenerator`` a processor for each prompt; ``batch_generate`` shares one among all prompts,
    which is an error.

    Args:
        grammar: the grammar of the answer.
        drafts: there is a ``draft_model``, so that the text goes back at times. Without, that is an error.

    Raises, when generating:
        MatcherError: the text has a token that the grammar refuses, because another processor overrides the mask or
            forbids all that it allows; it cannot be told whether a new generation begins.
    """

    def __init__(self, grammar: CompiledGrammar, *, drafts: bool = False) -> None:
        self._mx = require("mlx.core", install=_INSTALL)
        self._row = Row(grammar, drafts=drafts)
        self._bitmask = allocate_token_bitmask(1, grammar.vocab_size)
        self._vocab_size = grammar.vocab_size

    def reset(self) -> None:
        """Forgets the generation: the next call begins a new one."""
        self._row.reset()

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """``tokens``: [tokens], prompt and answer; ``logits``: float [1, width]. Returns logits in which what the
        grammar forbids is minus infinity."""
        ids: list[int] = tokens.tolist()
        if not self._row.follow(ids):
            raise MatcherError(
                f"The text has token {ids[-1]}, which the grammar refuses",
                hint="Put the processor behind those that set logits, and forbid nothing that the grammar needs",
            )
        self._row.matcher.fill_next_token_bitmask(self._bitmask)
        allowed = np.zeros(logits.shape[-1], dtype=bool)
        bits = np.unpackbits(self._bitmask.view(np.uint8)[0], bitorder="little")[: self._vocab_size]
        known = min(len(bits), len(allowed))
        allowed[:known] = bits[:known]
        return self._mx.where(self._mx.array(allowed), logits, -self._mx.inf)


class MlxModel(CachedModel):
    """A model of mlx-lm, with the keys and values of the tokens that it has seen.

    ``model`` and ``tokenizer``: what ``mlx_lm.load`` gives; ``name``: what errors call it, and what the tool format is
    told by where the template does not tell.

    Attributes: those of `punchcard.models.base.Model`; ``model`` and ``tokenizer``, as given.

    Raises `ModelError` if the model does not say how long its context is; give ``context_length`` then.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, name: str | None = None, context_length: int | None = None
    ) -> None:
        super().__init__()
        self._mx = require("mlx.core", install=_INSTALL)
        self._caches = require("mlx_lm.models.cache", install=_INSTALL)
        self.model = model
        self.tokenizer = tokenizer
        self.name = name or str(getattr(tokenizer, "name_or_path", "") or type(model).__name__)
        length = context_length or getattr(getattr(model, "args", None), "max_position_embeddings", None)
        if length is None:
            raise ModelError(f"{self.name} does not say how long its context is", hint="Pass context_length")
        self.context_length: int = length
        # Nothing is computed for a shape.
        self.vocab_size: int = model(self._mx.array([[0]])).shape[-1]
        self.chat_template: str | None = getattr(tokenizer, "chat_template", None)
        self.bos_token_id: int | None = tokenizer.bos_token_id
        self.tokenizer_info = TokenizerInfo.from_huggingface(
            tokenizer, eos_token_ids=getattr(tokenizer, "eos_token_ids", ()), vocab_size=self.vocab_size
        )
        self.eos_token_ids: list[int] = self.tokenizer_info.eos_token_ids
        self._clear()

    def _encode(self, text: str, parse_special: bool) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=not parse_special)
        return ids

    def _compute(self, ids: list[int], all_positions: bool) -> NDArray[np.float32]:
        if all_positions:
            return np.concatenate([self._logits(ids[at : at + _PASS]) for at in range(0, len(ids), _PASS)])
        for at in range(0, len(ids) - 1, _PASS):
            self.model(self._mx.array([ids[at : min(at + _PASS, len(ids) - 1)]]), cache=self._cache)
            self._mx.eval([layer.state for layer in self._cache])  # the logits, which are not, are not computed
        return self._logits(ids[-1:])

    def _logits(self, ids: list[int]) -> NDArray[np.float32]:
        logits = self.model(self._mx.array([ids]), cache=self._cache)[0]
        return np.array(logits.astype(self._mx.float32), dtype=np.float32)

    def _drop(self, count: int) -> bool:
        return bool(self._caches.trim_prompt_cache(self._cache, count) == count)

    def _clear(self) -> None:
        self._cache: list[Any] = self._caches.make_prompt_cache(self.model)
