"""Bitmasks over the vocabulary, and how they are put on logits.

A bitmask is int32 [batch, ceil(vocab_size / 32)]: bit ``id % 32`` of word ``id // 32`` says whether token ``id`` is
allowed.

On the CPU each byte of a bitmask is looked up in a table of 256 rows, which says what becomes of eight logits. That
takes the same time whatever the mask is (some 40 µs for 128,000 tokens), where selecting by booleans takes ten times as
long when allowed and blocked tokens alternate. Where most words of
a row allow all of their tokens, only the others are looked at. Torch tensors on the CPU are masked in their own memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import MatcherError

#: Bits of minus infinity in two bytes, by dtype: the two of them have no fast arithmetic in numpy.
_HALVES = {"float16": 0xFC00, "bfloat16": 0xFF80}
_FLOATS = {"float32", "float64"}


def token_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """The shape of a bitmask: ``(batch_size, ceil(vocab_size / 32))``."""
    return batch_size, (vocab_size + 31) // 32


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> NDArray[np.int32]:
    """A bitmask int32 [batch_size, ceil(vocab_size / 32)] in which every token is allowed.

    Bit ``id % 32`` of word ``id // 32`` stands for token ``id``.
    """
    return np.full(token_bitmask_shape(batch_size, vocab_size), -1, dtype=np.int32)


def reset_token_bitmask(bitmask: Any) -> None:
    """Allow every token again, in a numpy array or a torch tensor, in place."""
    bitmask[...] = -1


def apply_token_bitmask_inplace(
    logits: Any, bitmask: Any, *, vocab_size: int | None = None, indices: Sequence[int] | None = None
) -> None:
    """Set the logits of all tokens that are not allowed to minus infinity.

    Args:
        logits: float16, bfloat16, float32 or float64 [batch, width] or [width], a numpy array or a torch tensor on any
            device, of any strides; changed in place.
        bitmask: int32 [rows, words] or [words], a numpy array or a torch tensor, with one row for each row of the
            logits, or one for all.
        vocab_size: tokens that there are, where that is less than 32 for each word. Logits beyond the tokens, or
            beyond the bitmask, belong to no token and are masked too.
        indices: the rows to mask; row ``i`` of the bitmask is for row ``i`` of the logits. All others stay.

    Raises:
        MatcherError: the shapes or dtypes do not fit.
    """
    if len(logits.shape) == 1:
        logits = logits[None, :]
    if len(bitmask.shape) == 1:
        bitmask = bitmask[None, :]
    tokens = _check(logits, bitmask, vocab_size, indices)
    if isinstance(logits, np.ndarray):
        _mask_array(logits, logits.dtype.name, _words(bitmask), tokens, indices)
    else:
        _mask_tensor(logits, bitmask, tokens, indices)


def _check(logits: Any, bitmask: Any, vocab_size: int | None, indices: Sequence[int] | None) -> int:
    """How many tokens the bitmask speaks of; raises if anything does not fit."""
    if len(logits.shape) != 2 or len(bitmask.shape) != 2:
        raise MatcherError(
            f"Logits of shape {list(logits.shape)} and a bitmask of shape {list(bitmask.shape)} do not fit",
            hint="Both have one or two dimensions, the last of them over tokens",
        )
    dtype = str(bitmask.dtype).removeprefix("torch.")
    if dtype != "int32":
        raise MatcherError(f"The bitmask is {dtype}", hint="Make it with allocate_token_bitmask: it is int32")
    dtype = str(logits.dtype).removeprefix("torch.")
    if dtype not in _FLOATS and dtype not in _HALVES:
        raise MatcherError(f"Logits of {dtype} cannot be masked", hint="Use float16, bfloat16, float32 or float64")
    rows, have = len(logits), len(bitmask)
    if indices is None:
        if have not in (1, rows):
            raise MatcherError(
                f"{have} rows of bitmask do not fit {rows} rows of logits", hint="Name the rows to mask by indices"
            )
    elif len(indices) and not (min(indices) >= 0 and max(indices) < (rows if have == 1 else min(rows, have))):
        raise MatcherError(
            f"indices are out of range: there are {rows} rows of logits and {have} of bitmask",
            hint="An index names a row of both",
        )
    words: int = bitmask.shape[1]
    if vocab_size is not None and not 0 <= vocab_size <= 32 * words:
        raise MatcherError(
            f"vocab_size is {vocab_size}, but the bitmask has {32 * words} bits",
            hint="Allocate the bitmask for as many tokens",
        )
    return 32 * words if vocab_size is None else vocab_size


def _words(bitmask: Any) -> NDArray[np.int32]:
    """A bitmask as an array whose rows are contiguous."""
    return np.ascontiguousarray(bitmask.cpu().numpy() if hasattr(bitmask, "cpu") else bitmask)


def _mask_array(
    logits: NDArray[Any], dtype: str, words: NDArray[np.int32], tokens: int, indices: Sequence[int] | None
) -> None:
    """Row by row, so that what is looked up stays in the cache. ``dtype`` says what the bits of the logits mean."""
    tokens = min(tokens, logits.shape[1])
    halves = dtype in _HALVES
    infinity = _infinity(dtype) if halves else -np.inf
    for row in range(len(logits)) if indices is None else indices:
        target = logits[row].view(np.int16) if halves else logits[row]
        target[tokens:] = infinity
        bits = words[row if len(words) > 1 else 0, : (tokens + 31) // 32]
        rare = np.flatnonzero(bits != -1)
        if 4 * len(rare) < len(bits):
            target[_blocked(bits, rare, tokens)] = infinity
            continue
        head = target[:tokens]
        found = _table(dtype).take(bits.view(np.uint8), axis=0).reshape(-1)[:tokens]
        if halves:
            np.bitwise_and(head, found, out=head)
            np.bitwise_and(np.invert(found, out=found), infinity, out=found)
            np.bitwise_or(head, found, out=head)
        else:
            np.fmin(head, found, out=head)


def _blocked(bits: NDArray[np.int32], words: NDArray[np.intp], tokens: int) -> NDArray[np.intp]:
    """The tokens that these words of a row block."""
    which, bit = np.nonzero(np.unpackbits(bits[words].view(np.uint8), bitorder="little").reshape(-1, 32) == 0)
    ids: NDArray[np.intp] = words[which] * 32 + bit
    return ids[ids < tokens]


@cache
def _table(dtype: str) -> NDArray[Any]:
    """[256, 8]: for each byte of a bitmask what its bits make of eight logits.

    For numbers of two bytes the bits to keep. For others what `fmin` is taken with: minus infinity, or NaN, of which
    `fmin` makes nothing, also where the logit itself is NaN.
    """
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    if dtype in _HALVES:
        return np.where(bits, -1, 0).astype(np.int16)
    return np.where(bits, np.nan, -np.inf).astype(dtype)


def _infinity(dtype: str) -> int:
    """The bits of minus infinity as a signed number."""
    return _HALVES[dtype] - (1 << 16)


def _mask_tensor(logits: Any, bitmask: Any, tokens: int, indices: Sequence[int] | None) -> None:
    import torch  # whoever has a tensor has torch

    logits = logits.detach()
    if logits.device.type == "cpu":
        # numpy knows no bfloat16, but the same bits under another name.
        array = logits.view(torch.int16).numpy() if logits.dtype == torch.bfloat16 else logits.numpy()
        _mask_array(array, str(logits.dtype).removeprefix("torch."), _words(bitmask), tokens, indices)
        return
    if isinstance(bitmask, np.ndarray):
        bitmask = torch.from_numpy(bitmask)
    bitmask = bitmask.to(logits.device, non_blocking=True)
    rows = None if indices is None else torch.tensor(list(indices), dtype=torch.int64, device=logits.device)
    if logits.device.type == "cuda" and (kernel := _triton_kernel()) is not None:
        kernel(logits, bitmask.contiguous().expand(len(logits) if len(bitmask) == 1 else -1, -1), tokens, rows)
    else:
        mask_tensor_by_operations(logits, bitmask, tokens, rows)


@cache
def _triton_kernel() -> Any:
    """The Triton kernel, or None where Triton is not installed."""
    try:
        from .kernels.bitmask_triton import mask_logits
    except ImportError:
        return None
    return mask_logits


def mask_tensor_by_operations(logits: Any, bitmask: Any, tokens: int, rows: Any | None) -> None:
    """The same with plain operations of torch, for devices without a kernel. ``rows`` is int64 [n], or None for all."""
    import torch

    width = logits.shape[1]
    chosen = bitmask if rows is None or len(bitmask) == 1 else bitmask[rows]
    shifts = torch.arange(32, dtype=torch.int32, device=logits.device)
    blocked = (((chosen[:, :, None] >> shifts) & 1) == 0).flatten(1)[:, : min(tokens, width)]
    blocked = torch.nn.functional.pad(blocked, (0, width - blocked.shape[1]), value=True)
    if rows is None:
        logits.masked_fill_(blocked, float("-inf"))
    else:
        logits[rows] = logits[rows].masked_fill(blocked, float("-inf"))
