"""A model that runs in this process, on the CPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from .catalogue import CATALOGUE, DEFAULT_MODEL
from .download import resolve

if TYPE_CHECKING:
    from .._core import LocalRuntime
    from .._core import LocalSequence as Cache
    from ..tokenizers.info import TokenizerInfo


class LocalSequence:
    """One text that a :class:`LocalModel` reads or writes: the keys and values of its tokens so far.

    :meth:`LocalModel.sequence` makes one, :meth:`LocalModel.forward_batch` appends tokens to it. It takes
    :attr:`LocalModel.cache_bytes_per_token` for each token, in pages of 128 tokens, and gives its memory back when it
    is rewound, closed or no longer referred to. Any thread may use it; while a pass appends to it, others wait.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    @property
    def position(self) -> int:
        """Tokens in the cache."""
        return self._cache.position

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._cache.closed

    def rewind(self, position: int) -> None:
        """Forget the tokens from ``position`` on."""
        self._cache.rewind(_natural(position, "position"))

    def copy_from(self, other: LocalSequence, length: int) -> None:
        """Become the first ``length`` tokens of ``other``, whatever this sequence was before.

        Nothing is computed and next to nothing copied: both share the memory of these tokens, and neither sees what
        the other does afterwards. Raises :class:`~punchcard.errors.ModelError`, with this sequence as it was, where
        ``other`` has fewer tokens or belongs to another model.
        """
        self._cache.copy_from(other._cache, _natural(length, "length"))

    def close(self) -> None:
        """Give the memory back. Any further use but this is a :class:`~punchcard.errors.ModelError`."""
        self._cache.close()

    def __repr__(self) -> str:
        return "LocalSequence(closed)" if self.closed else f"LocalSequence(position={self.position})"


class LocalModel:
    """A GGUF model of the llama or qwen2 family.

    There are two ways to run it. :meth:`forward`, :meth:`rewind` and :attr:`position` are about one sequence that the
    model keeps: :meth:`forward` appends to it, :meth:`rewind` goes back to any earlier position, so that a prompt that
    two requests share is computed once. For several texts at once, make a :meth:`sequence` for each and hand their
    tokens to :meth:`forward_batch`, which reads the weights once for all of them.

    Any thread may use a model. Passes go one after the other; other Python threads run meanwhile.

    Attributes:
        name: the catalogue's name, or the file's stem.
        path: the file.
        architecture: ``"llama"`` or ``"qwen2"``.
        vocab_size: logits of a position, padded ids included.
        context_length: tokens that a sequence can hold.
        cache_bytes_per_token: memory that each token of a sequence takes.
        chat_template: the Jinja template of a conversation, or ``None``.
        bos_token_id: the token that begins a text, or ``None``.
        eos_token_ids: the tokens that end a text or a turn; the file's own first.
    """

    def __init__(self, runtime: LocalRuntime, name: str, path: Path) -> None:
        self._runtime = runtime
        self.name = name
        self.path = path
        self.architecture: str = runtime.architecture
        self.vocab_size: int = runtime.vocab_size
        self.context_length: int = runtime.context_length
        self.cache_bytes_per_token: int = runtime.cache_bytes_per_token
        self.chat_template: str | None = runtime.chat_template
        self.bos_token_id: int | None = runtime.bos_token_id
        self.eos_token_ids: list[int] = runtime.eos_token_ids
        self._sequence = self.sequence()

    @classmethod
    def load(cls, name_or_path: str | os.PathLike[str] | None = None, *, threads: int | None = None) -> LocalModel:
        """Load a model by name (fetched on first use), by path, or the default one.

        ``threads`` defaults to the physical cores. All models of a process share their threads, so only the first one
        that is loaded can choose.

        Raises :class:`~punchcard.errors.ModelError` where the file is missing, damaged or of an unsupported kind,
        :class:`~punchcard.errors.DownloadError` where a named model cannot be fetched.
        """
        try:
            from .._core import LocalRuntime
        except ImportError:
            raise ModelError("this build of Punchcard has no local runtime") from None
        # The runtime shares products among its own threads; candle's, which wait for one another, only cost.
        os.environ.setdefault("CANDLE_NUM_THREADS", "1")
        if threads is not None:
            if threads < 1:
                raise ModelError(f"a model cannot run on {threads} threads")
            # Read when the first pool of threads starts.
            os.environ["RAYON_NUM_THREADS"] = str(threads)
        given = os.fspath(DEFAULT_MODEL if name_or_path is None else name_or_path)
        path = resolve(given)
        name = given.lower() if given.lower() in CATALOGUE else path.stem
        return cls(LocalRuntime(path), name, path)

    @cached_property
    def tokenizer_info(self) -> TokenizerInfo:
        """The vocabulary, for a grammar compiler."""
        from ..tokenizers.info import TokenizerInfo

        return TokenizerInfo.from_gguf(self.path, eos_token_ids=self.eos_token_ids, vocab_size=self.vocab_size)

    @property
    def position(self) -> int:
        """Tokens in the model's own sequence."""
        return self._sequence.position

    def rewind(self, position: int) -> None:
        """Forget the tokens of the model's own sequence from ``position`` on."""
        self._sequence.rewind(position)

    def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]:
        """The ids of ``text``.

        Special tokens such as ``<|im_end|>`` are recognised only where ``parse_special``: what a user wrote should not
        pass for the end of a turn.
        """
        return self._runtime.tokenize(text.encode("utf-8", "replace").decode(), parse_special)

    def detokenize(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text of ``ids``, without the special tokens unless ``special``; bytes that are no UTF-8 become ``�``."""
        return self._runtime.detokenize(self._checked(ids), special).decode("utf-8", "replace")

    def forward(self, ids: Sequence[int], *, all_positions: bool = False) -> NDArray[np.float32]:
        """Append ``ids`` to the model's own sequence in one pass.

        Returns the logits after the last of them, float32 ``[vocab_size]``, or after each, float32
        ``[len(ids), vocab_size]``. Raises :class:`~punchcard.errors.ContextLengthError`, with the sequence as it was,
        where they do not fit.
        """
        checked = self._checked(ids)
        logits = self._runtime.forward(self._sequence._cache, checked, all_positions)
        return logits.reshape(len(checked), self.vocab_size) if all_positions else logits

    def sequence(self) -> LocalSequence:
        """An empty sequence for :meth:`forward_batch`; it takes memory as it grows."""
        return LocalSequence(self._runtime.sequence())

    def forward_batch(self, batch: Sequence[tuple[LocalSequence, Sequence[int]]]) -> NDArray[np.float32]:
        """Append new tokens to each of some sequences in one pass, which reads the weights once for all.

        Each sequence may get any number of tokens, at least one: chunks of prompts and single tokens may be mixed.
        Above 512 tokens in total there are several passes.

        Returns the logits after the last new token of each, float32 ``[len(batch), vocab_size]``. They are the same
        whatever else is in the batch, up to the rounding of sums (see ``docs/models.md``).

        Raises :class:`~punchcard.errors.ModelError`, and :class:`~punchcard.errors.ContextLengthError` where tokens do
        not fit, with all sequences as they were. Where one sequence is to blame, ``index`` says which of the batch.
        """
        checked = []
        for index, (sequence, ids) in enumerate(batch):
            checked.append((sequence._cache, self._checked(ids, index=index)))
        return self._runtime.forward_batch(checked)

    def _checked(self, ids: Sequence[int], index: int | None = None) -> list[int]:
        checked = [int(i) for i in ids]
        wrong = next((i for i in checked if not 0 <= i < self.vocab_size), None)
        if wrong is not None:
            where: dict[str, Any] = {} if index is None else {"index": index}
            raise ModelError(f"token {wrong} is out of range: the vocabulary has {self.vocab_size}", **where)
        return checked

    def __repr__(self) -> str:
        return f"LocalModel({self.name!r}, position={self.position})"


def _natural(number: int, what: str) -> int:
    if number < 0:
        raise ModelError(f"a {what} cannot be {number}", hint="Positions and lengths count from 0")
    return number
