"""From logits to a token: greedy, or at a temperature within the top k and the top p."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from punchcard.errors import PunchcardError

# Below, logits divided by the temperature leave the range of float32; nothing but the likeliest token has any weight.
_COLDEST = 1e-6

# So many tokens nearly always hold the mass. To sort a whole vocabulary takes longer than a step of a small model.
_HEAD = 1024


class Sampler:
    """Picks tokens. ``temperature`` 0 takes the most likely one; above, tokens are drawn from
    ``softmax(logits / temperature)``, cut to the ``top_k`` most likely and to the smallest set that holds the mass
    ``top_p``. The same ``seed`` draws the same tokens.

    A grammar's mask is applied to the logits beforehand (``-inf``), so that ``top_k`` and ``top_p`` count allowed
    tokens alone, and these keep the relative weights that the model gave them.

    Raises `PunchcardError` for a value out of range.
    """

    def __init__(
        self, temperature: float = 0.0, *, top_k: int | None = None, top_p: float | None = None, seed: int | None = None
    ) -> None:
        if not 0.0 <= temperature < float("inf"):
            raise PunchcardError(f"temperature is {temperature}; it must be at least 0")
        if top_k is not None and top_k < 1:
            raise PunchcardError(f"top_k is {top_k}; it must be at least 1")
        if top_p is not None and not 0.0 < top_p <= 1.0:
            raise PunchcardError(f"top_p is {top_p}; it must be above 0 and at most 1")
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self._random = np.random.default_rng(seed)

    def sample(self, logits: NDArray[np.float32]) -> int:
        """The id of the next token. ``logits``: float32 ``[vocab_size]``, ``-inf`` where a token is not allowed; at
        least one must be finite."""
        if self.temperature < _COLDEST:
            return int(np.argmax(logits))
        scaled = (logits - logits.max()) / np.float32(self.temperature)
        weights = np.exp(scaled)
        if self.top_k is None and self.top_p is None:
            return self._draw(weights)
        ids = self._kept(weights)
        return int(ids[self._draw(weights[ids])])

    def _kept(self, weights: NDArray[np.float32]) -> NDArray[np.intp]:
        """The tokens within the top k and the top p, the likeliest first."""
        if self.top_p is None:
            return _likeliest(weights, self.top_k or len(weights))
        ids = _likeliest(weights, self.top_k or _HEAD)
        total = weights[ids].sum(dtype=np.float64)
        if self.top_k is None:
            head, total = total, weights.sum(dtype=np.float64)
            if head < self.top_p * total:
                ids = _likeliest(weights, len(weights))
        mass = np.cumsum(weights[ids], dtype=np.float64)
        # The first token is always kept: before it, no mass has been used.
        return ids[: max(1, int(np.count_nonzero(mass - weights[ids] < self.top_p * total)))]

    def _draw(self, weights: NDArray[np.float32]) -> int:
        """An index, by weight."""
        mass = np.cumsum(weights, dtype=np.float64)
        place = int(np.searchsorted(mass, self._random.random() * mass[-1], side="right"))
        # The product may be rounded up to the whole mass, which lies behind the last token.
        return place if place < len(weights) else int(np.flatnonzero(weights)[-1])


def _likeliest(weights: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """The tokens with the greatest weights, at most ``count`` and none of weight 0, the greatest first."""
    ids = np.flatnonzero(weights)
    if count < len(ids):
        ids = ids[np.argpartition(-weights[ids], count - 1)[:count]]
    return ids[np.argsort(-weights[ids], kind="stable")]


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Probabilities, float64 of the shape of ``logits``."""
    shifted = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(shifted / shifted.sum())


def log_probability(logits: NDArray[np.float32], token: int) -> float:
    """The log of the probability that unmasked ``logits``, float32 ``[vocab_size]``, give to ``token``."""
    top = logits.max()
    return float(logits[token] - top - np.log(np.exp(logits - top).sum(dtype=np.float64)))
