"""Bitmasks on logits: every kind of array and float, the same rule."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from punchcard import MatcherError, allocate_token_bitmask, apply_token_bitmask_inplace
from punchcard.bitmask import mask_tensor_by_operations, reset_token_bitmask, token_bitmask_shape

# Triton decides when it is imported whether it interprets its kernels.
os.environ.setdefault("TRITON_INTERPRET", "1")

SHAPES = [(1, 64), (1, 70), (3, 70), (4, 33), (2, 128), (2, 1)]


def draw(rows: int, vocab: int, share: float = 0.5) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
    """Which tokens are allowed, at random, and the same as a bitmask."""
    allowed = np.random.default_rng(0).random((rows, vocab)) < share
    bits = np.zeros((rows, -(-vocab // 32) * 32), dtype=bool)
    bits[:, :vocab] = allowed
    return allowed, np.packbits(bits, axis=1, bitorder="little").view(np.int32)


def check(before: Any, after: Any, allowed: NDArray[np.bool_]) -> None:
    before, after = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    width = before.shape[-1]
    full = np.zeros((len(allowed), width), dtype=bool)
    common = min(width, allowed.shape[1])
    full[:, :common] = allowed[:, :common]
    full = np.broadcast_to(full, before.shape)
    assert np.array_equal(after[full], before[full], equal_nan=True)
    assert (after[~full] == -np.inf).all()


def numpy_dtypes() -> list[Any]:
    dtypes: list[Any] = [np.float16, np.float32, np.float64]
    try:
        import ml_dtypes
    except ImportError:
        return dtypes
    return [*dtypes, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", numpy_dtypes())
@pytest.mark.parametrize(("rows", "vocab"), SHAPES)
@pytest.mark.parametrize("wider", [-1, 0, 1, 40])
def test_numpy_logits_of_any_dtype_and_width(dtype: Any, rows: int, vocab: int, wider: int) -> None:
    allowed, bitmask = draw(rows, vocab)
    before = np.random.default_rng(1).normal(size=(rows, vocab + wider)).astype(dtype)
    logits = before.copy()
    apply_token_bitmask_inplace(logits, bitmask)
    check(before, logits, allowed)


@pytest.mark.parametrize("dtype", numpy_dtypes())
@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.998, 1.0])
def test_few_or_many_tokens_are_allowed(dtype: Any, share: float) -> None:
    allowed, bitmask = draw(2, 5_000, share)
    before = np.random.default_rng(1).normal(size=(2, 5_020)).astype(dtype)
    logits = before.copy()
    apply_token_bitmask_inplace(logits, bitmask)
    check(before, logits, allowed)


def test_one_row_of_bitmask_is_for_all_rows() -> None:
    allowed, bitmask = draw(1, 70)
    for mask in (bitmask, bitmask[0]):
        logits = np.zeros((5, 70), dtype=np.float32)
        apply_token_bitmask_inplace(logits, mask)
        check(np.zeros((5, 70)), logits, allowed)
    logits = np.zeros(70, dtype=np.float32)
    apply_token_bitmask_inplace(logits, bitmask[0])
    check(np.zeros((1, 70)), logits[None], allowed)


def test_strided_logits_are_masked_in_place() -> None:
    allowed, bitmask = draw(3, 70)
    for dtype in (np.float16, np.float32):
        base = np.ones((70, 6), dtype=dtype)
        apply_token_bitmask_inplace(base.T[::2], bitmask)
        check(np.ones((3, 70)), base.T[::2], allowed)
        assert (base.T[1::2] == 1).all()


def test_indices_choose_the_rows_and_leave_the_others() -> None:
    allowed, bitmask = draw(4, 70)
    logits = np.ones((5, 70), dtype=np.float32)
    apply_token_bitmask_inplace(logits, bitmask, indices=[3, 1])
    check(np.ones((2, 70)), logits[[3, 1]], allowed[[3, 1]])
    assert (logits[[0, 2, 4]] == 1).all()
    apply_token_bitmask_inplace(logits, bitmask, indices=[])


def test_tokens_beyond_vocab_size_are_masked() -> None:
    bitmask = allocate_token_bitmask(2, 70)
    logits = np.ones((2, 96), dtype=np.float32)
    apply_token_bitmask_inplace(logits, bitmask, vocab_size=70)
    assert (logits[:, :70] == 1).all() and (logits[:, 70:] == -np.inf).all()


def test_blocked_logits_are_minus_infinity_whatever_they_were() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0], dtype=np.float32)
    for dtype in numpy_dtypes():
        logits = np.tile(special, 16).astype(dtype)[None]
        apply_token_bitmask_inplace(logits, np.array([[0x0F0F0F0F, 0]], dtype=np.int32))
        kept = np.asarray(logits[0, :4], dtype=np.float32)
        assert np.array_equal(kept, special, equal_nan=True)
        assert (np.asarray(logits[0, 4:8], dtype=np.float32) == -np.inf).all()


def test_shapes_and_resetting() -> None:
    assert token_bitmask_shape(3, 70) == (3, 3)
    bitmask = np.zeros((3, 3), dtype=np.int32)
    reset_token_bitmask(bitmask)
    assert (bitmask == -1).all() and (allocate_token_bitmask(3, 70) == bitmask).all()


@pytest.mark.parametrize(
    ("logits", "bitmask", "options", "said"),
    [
        (np.zeros((2, 2, 70)), np.zeros((2, 3), np.int32), {}, "do not fit"),
        (np.zeros((3, 70)), np.zeros((2, 3), np.int32), {}, "2 rows of bitmask do not fit 3 rows"),
        (np.zeros((3, 70)), np.zeros((2, 3), np.int32), {"indices": [2]}, "out of range"),
        (np.zeros((3, 70)), np.zeros((3, 3), np.int32), {"indices": [-1]}, "out of range"),
        (np.zeros((3, 70)), np.zeros((3, 3), np.int64), {}, "The bitmask is int64"),
        (np.zeros((3, 70), np.int32), np.zeros((3, 3), np.int32), {}, "Logits of int32"),
        (np.zeros((3, 70)), np.zeros((3, 3), np.int32), {"vocab_size": 97}, "96 bits"),
    ],
)
def test_what_does_not_fit_is_refused(logits: Any, bitmask: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(MatcherError, match=said):
        apply_token_bitmask_inplace(logits, bitmask, **options)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("rows", "vocab"), SHAPES)
def test_torch_logits_on_the_cpu(torch: Any, dtype: str, rows: int, vocab: int) -> None:
    allowed, bitmask = draw(rows, vocab)
    for wider in (-1, 0, 9):
        before = torch.randn(rows, vocab + wider).to(getattr(torch, dtype))
        for mask in (bitmask, torch.from_numpy(bitmask)):
            logits = before.clone()
            address = logits.data_ptr()
            apply_token_bitmask_inplace(logits, mask)
            assert logits.data_ptr() == address
            check(before.double().numpy(), logits.double().numpy(), allowed)
        logits = before.clone()
        mask_tensor_by_operations(logits, torch.from_numpy(bitmask), bitmask.shape[1] * 32, None)
        check(before.double().numpy(), logits.double().numpy(), allowed)


def test_torch_logits_with_strides_and_indices(torch: Any) -> None:
    allowed, bitmask = draw(4, 70)
    for dtype in (torch.float32, torch.bfloat16):
        base = torch.ones((70, 8), dtype=dtype)
        apply_token_bitmask_inplace(base.T[::2], torch.from_numpy(bitmask), indices=[0, 3])
        check(np.ones((2, 70)), base.T[[0, 6]].double().numpy(), allowed[[0, 3]])
        assert bool((base.T[[1, 2, 3, 4, 5, 7]] == 1).all())
        other = torch.ones((4, 70), dtype=dtype)
        mask_tensor_by_operations(other, torch.from_numpy(bitmask), 96, torch.tensor([0, 3]))
        check(np.ones((2, 70)), other[[0, 3]].double().numpy(), allowed[[0, 3]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_triton_kernel_in_its_interpreter(torch: Any, dtype: str) -> None:
    pytest.importorskip("triton", reason="triton is not installed")
    from punchcard.kernels.bitmask_triton import mask_logits

    for rows, vocab in [(1, 64), (3, 70), (2, 9000)]:
        allowed, bitmask = draw(rows, vocab)
        before = torch.randn(rows, vocab + 5).to(getattr(torch, dtype))
        logits = before.clone()
        mask_logits(logits, torch.from_numpy(bitmask), bitmask.shape[1] * 32, None)
        check(before.double().numpy(), logits.double().numpy(), allowed)
    allowed, bitmask = draw(4, 70)
    base = torch.ones((70, 4), dtype=getattr(torch, dtype))
    mask_logits(base.T, torch.from_numpy(bitmask), 64, torch.tensor([1, 2]))
    check(np.ones((2, 70)), base.T[[1, 2]].double().numpy(), allowed[[1, 2], :64])
    assert bool((base.T[[0, 3]] == 1).all())
    one = torch.from_numpy(bitmask[:1]).expand(4, -1)
    logits = torch.ones((4, 70), dtype=getattr(torch, dtype))
    mask_logits(logits, one, 96, None)
    check(np.ones((4, 70)), logits.double().numpy(), allowed[:1])
