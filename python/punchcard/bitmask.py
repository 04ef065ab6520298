"""Bitmasks over the vocabulary, and how they are put on logits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import MatcherError


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> NDArray[np.int32]:
    """A bitmask int32 [batch_size, ceil(vocab_size / 32)] in which every token is allowed.

    Bit ``id % 32`` of word ``id // 32`` stands for token ``id``.
    """
    return np.full((batch_size, (vocab_size + 31) // 32), -1, dtype=np.int32)


def apply_token_bitmask_inplace(logits: Any, bitmask: Any) -> None:
    """Set the logits of all tokens that are not allowed to minus infinity.

    Args:
        logits: floats [batch, width] or [width], a numpy array or a torch tensor; changed in place. Logits beyond the
            tokens of the bitmask are masked too.
        bitmask: int32 [batch, words] or [words], with one row for each row of the logits, or one for all.

    Raises:
        MatcherError: the shapes do not fit.
    """
    if isinstance(logits, np.ndarray):
        blocked = _blocked(bitmask, logits.shape)
        logits[blocked] = -np.inf
        return
    import torch  # whoever has a tensor has torch

    blocked_tensor = torch.from_numpy(_blocked(bitmask, tuple(logits.shape))).to(logits.device)
    logits.masked_fill_(blocked_tensor, float("-inf"))


def _blocked(bitmask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which logits are not allowed, as bool of the given shape."""
    words = np.ascontiguousarray(bitmask.cpu().numpy() if hasattr(bitmask, "cpu") else bitmask, dtype=np.int32)
    if len(shape) not in (1, 2) or words.ndim not in (1, 2):
        raise MatcherError(f"Logits of shape {list(shape)} and a bitmask of shape {list(words.shape)} do not fit")
    rows = shape[0] if len(shape) == 2 else 1
    words = words.reshape(-1, words.shape[-1])
    if len(words) not in (1, rows):
        raise MatcherError(f"{len(words)} rows of bitmask do not fit {rows} rows of logits")
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    width = shape[-1]
    if bits.shape[1] < width:
        bits = np.pad(bits, ((0, 0), (0, width - bits.shape[1])))
    blocked = bits[:, :width] == 0
    return np.broadcast_to(blocked, (rows, width)).reshape(shape)
