"""Models that compute several sequences in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from punchcard.errors import ModelError
from punchcard.generation import Model

if TYPE_CHECKING:
    from punchcard.tokenizers.info import TokenizerInfo


class BatchSequence(Protocol):
    """The tokens of one sequence in a model's cache, which a model that made it appends to."""

    @property
    def position(self) -> int:
        """Tokens in the cache."""
        ...

    def rewind(self, position: int) -> None:
        """Forgets the tokens from ``position`` on."""
        ...

    def copy_from(self, other: Any, length: int) -> None:
        """Makes this empty sequence hold the first ``length`` tokens of ``other``, a sequence of the same model."""
        ...

    def close(self) -> None:
        """Gives its memory back."""
        ...


class BatchModel(Protocol):
    """A model with any number of sequences."""

    name: str
    vocab_size: int
    context_length: int
    chat_template: str | None
    bos_token_id: int | None
    eos_token_ids: list[int]

    @property
    def tokenizer_info(self) -> TokenizerInfo: ...

    def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]: ...

    def sequence(self) -> BatchSequence:
        """A new, empty sequence."""
        ...

    def forward_batch(self, batch: Sequence[tuple[Any, Sequence[int]]]) -> NDArray[np.float32]:
        """Appends tokens (at least one) to each of the sequences, none of which comes twice.

        Returns the logits after the last token of each, float32 ``[len(batch), vocab_size]``.
        """
        ...


class OneSequence:
    """Any step model as a `BatchModel` with a single sequence: one request is served at a time."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.name = model.name
        self.vocab_size = model.vocab_size
        self.context_length = model.context_length
        self.chat_template = model.chat_template
        self.bos_token_id = model.bos_token_id
        self.eos_token_ids = model.eos_token_ids
        self.tokenizer_info = model.tokenizer_info

    def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]:
        return self.model.tokenize(text, parse_special=parse_special)

    def sequence(self) -> OneSequence._Sequence:
        self.model.rewind(0)
        return self._Sequence(self.model)

    def forward_batch(self, batch: Sequence[tuple[Any, Sequence[int]]]) -> NDArray[np.float32]:
        if len(batch) != 1:
            raise ModelError(f"{self.name} computes one sequence at a time, not {len(batch)}")
        return self.model.forward(batch[0][1])[None]

    class _Sequence:
        def __init__(self, model: Model) -> None:
            self._model = model

        @property
        def position(self) -> int:
            return self._model.position

        def rewind(self, position: int) -> None:
            self._model.rewind(position)

        def copy_from(self, other: Any, length: int) -> None:
            raise ModelError(f"{self._model.name} has one sequence only", hint="Serve it with one slot")

        def close(self) -> None:
            self._model.rewind(0)


def batch_model(model: Model | BatchModel) -> tuple[BatchModel, int | None]:
    """The model as a `BatchModel`, and how many sequences it can have; `None` for any number."""
    if hasattr(model, "forward_batch"):
        return cast(BatchModel, model), None
    return OneSequence(model), 1
