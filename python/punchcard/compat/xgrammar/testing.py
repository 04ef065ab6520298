"""The helpers of ``xgrammar.testing`` that engines and their tests use."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiler import GrammarCompiler
from .grammar import Grammar
from .matcher import GrammarMatcher
from .tokenizer_info import TokenizerInfo


def bitmask_to_bool_mask(bit_mask: Any, vocab_size: int | None = None) -> Any:
    """A torch tensor bool [batch, vocab_size]: which tokens are allowed by a bitmask int32 [batch, words]."""
    import torch

    words = np.ascontiguousarray(bit_mask.numpy())
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    return torch.from_numpy(bits[:, :vocab_size].astype(bool))


def bool_mask_to_bitmask(bool_mask: Any) -> Any:
    """The other way; the bits beyond the tokens are set."""
    import torch

    allowed = bool_mask.numpy()
    padded = np.ones((len(allowed), -(-allowed.shape[1] // 32) * 32), dtype=bool)
    padded[:, : allowed.shape[1]] = allowed
    return torch.from_numpy(np.packbits(padded, axis=1, bitorder="little").view(np.int32))


def _get_masked_tokens_from_bitmask(bitmask: Any, vocab_size: int, index: int = 0) -> list[int]:
    """The ids that row ``index`` blocks."""
    allowed = bitmask_to_bool_mask(bitmask[index : index + 1], vocab_size)[0]
    return [int(token_id) for token_id in np.flatnonzero(~allowed.numpy())]


def _is_single_token_bitmask(bitmask: Any, vocab_size: int, index: int = 0) -> tuple[bool, int]:
    """Whether row ``index`` allows one token only, and which (or -1)."""
    allowed = np.flatnonzero(bitmask_to_bool_mask(bitmask[index : index + 1], vocab_size)[0].numpy())
    return (True, int(allowed[0])) if len(allowed) == 1 else (False, -1)


def _get_matcher_from_grammar_and_tokenizer_info(
    grammar: Grammar | str, tokenizer_info: TokenizerInfo | None = None, **kwargs: Any
) -> GrammarMatcher:
    """A matcher of a grammar or of EBNF; without a tokenizer, over bytes."""
    info = tokenizer_info or TokenizerInfo([*(bytes([i]) for i in range(256)), b"</s>"])
    return GrammarMatcher(GrammarCompiler(info, cache_enabled=False).compile_grammar(grammar), **kwargs)


def _get_matcher_from_grammar(grammar: Grammar | str, **kwargs: Any) -> GrammarMatcher:
    """A matcher of a grammar or of EBNF over bytes."""
    return _get_matcher_from_grammar_and_tokenizer_info(grammar, **kwargs)


def _is_grammar_accept_string(grammar: Grammar | str, input_str: str | bytes, **options: Any) -> bool:
    """Whether the grammar has this text."""
    matcher = _get_matcher_from_grammar(grammar)
    return matcher.accept_string(input_str) and matcher.is_completed()
