"""From logits to a token: greedy, or at a temperature within the top k and the top p."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from punchcard.errors import PunchcardError

# Below, logits divided by the temperature leave the range of float32; nothing but the likeliest token has any weight.
_COLDEST = 1e-6


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
        ids = np.flatnonzero(logits > -np.inf)
        ids = ids[np.argsort(-logits[ids], kind="stable")]
        if self.top_k is not None:
            ids = ids[: self.top_k]
        weights = softmax(logits[ids] / np.float32(self.temperature))
        if self.top_p is not None:
            # The first token is always kept: before it, no mass has been used.
            kept = int(np.count_nonzero(np.cumsum(weights) - weights < self.top_p))
            ids, weights = ids[:kept], weights[:kept]
        return int(self._random.choice(ids, p=weights / weights.sum()))


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Probabilities, float64 of the shape of ``logits``."""
    shifted = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(shifted / shifted.sum())


def log_probability(logits: NDArray[np.float32], token: int) -> float:
    """The log of the probability that unmasked ``logits``, float32 ``[vocab_size]``, give to ``token``."""
    top = logits.max()
    return float(logits[token] - top - np.log(np.exp(logits - top).sum(dtype=np.float64)))
