"""Bitmasks on logits, as a Triton kernel.

One program looks after a block of a row. Where a bit is clear it writes minus infinity; it never reads the logits, so a
mask that allows nearly everything costs little more than reading the bits.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

#: Logits of one program.
_BLOCK = 4096


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _mask_kernel(
    logits: Any,
    bitmask: Any,
    rows: Any,
    width: Any,
    tokens: Any,
    logits_row: Any,
    logits_column: Any,
    bitmask_row: Any,
    HAS_ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.program_id(0)
    if HAS_ROWS:
        row = tl.load(rows + row)
    row = row.to(tl.int64)
    token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    words = tl.load(bitmask + row * bitmask_row + token // 32, mask=token < tokens, other=0)
    blocked = ((words >> (token % 32)) & 1) == 0
    place = logits + row * logits_row + token.to(tl.int64) * logits_column
    tl.store(place, -float("inf"), mask=blocked & (token < width))


def mask_logits(logits: Any, bitmask: Any, tokens: int, indices: Any | None) -> None:
    """Set the logits of blocked tokens to minus infinity, in place.

    Args:
        logits: floats [batch, width] with any strides.
        bitmask: int32 [batch, words] on the same device, its last dimension contiguous; a stride of 0 repeats a row.
        tokens: how many tokens the bitmask speaks of; the logits behind them are blocked.
        indices: int64 [n] on the same device, the rows to mask; `None` for all.
    """
    batch, width = logits.shape
    count = batch if indices is None else len(indices)
    if not count or not width:
        return
    _mask_kernel[(count, triton.cdiv(width, _BLOCK))](
        logits,
        bitmask,
        bitmask if indices is None else indices,
        width,
        tokens,
        logits.stride(0),
        logits.stride(1),
        bitmask.stride(0),
        HAS_ROWS=indices is not None,
        BLOCK=_BLOCK,
    )
