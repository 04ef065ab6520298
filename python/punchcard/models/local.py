"""A model that runs in this process, on the CPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import ContextLengthError, ModelError
from .catalogue import CATALOGUE, DEFAULT_MODEL
from .download import resolve

if TYPE_CHECKING:
    from .._core import LocalRuntime
    from ..tokenizers.info import TokenizerInfo


class LocalModel:
    """A GGUF model of the llama or qwen2 family, with the keys and values of the tokens that it has seen.

    The cache is kept between calls: :meth:`forward` appends to it, :meth:`rewind` goes back to any earlier position, so
    that a prompt that two requests share is computed once. One model serves one sequence at a time; other Python
    threads run while it computes.

    Attributes:
        name: the catalogue's name, or the file's stem.
        path: the file.
        architecture: ``"llama"`` or ``"qwen2"``.
        vocab_size: logits of a position, padded ids included.
        context_length: tokens that the cache can hold.
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
        self.chat_template: str | None = runtime.chat_template
        self.bos_token_id: int | None = runtime.bos_token_id
        self.eos_token_ids: list[int] = runtime.eos_token_ids

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
        """Tokens in the cache."""
        return self._runtime.position

    def rewind(self, position: int) -> None:
        """Forget the tokens from ``position`` on."""
        if not 0 <= position <= self.position:
            raise ModelError(f"cannot rewind to position {position}: the cache holds {self.position} tokens")
        self._runtime.rewind(position)

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
        """Append ``ids`` to the cache in one pass.

        Returns the logits after the last of them, float32 ``[vocab_size]``, or after each, float32
        ``[len(ids), vocab_size]``. Raises :class:`~punchcard.errors.ContextLengthError`, with the cache as it was,
        where they do not fit.
        """
        checked = self._checked(ids)
        if not checked:
            raise ModelError("a forward pass needs at least one token")
        needed = self.position + len(checked)
        if needed > self.context_length:
            raise ContextLengthError(
                f"{needed} tokens do not fit the model's context of {self.context_length}",
                hint="Shorten the text, or rewind the model first",
                tokens=needed,
                context_length=self.context_length,
            )
        logits = self._runtime.forward(checked, all_positions)
        return logits.reshape(len(checked), self.vocab_size) if all_positions else logits

    def _checked(self, ids: Sequence[int]) -> list[int]:
        checked = [int(i) for i in ids]
        wrong = next((i for i in checked if not 0 <= i < self.vocab_size), None)
        if wrong is not None:
            raise ModelError(f"token {wrong} is out of range: the vocabulary has {self.vocab_size}")
        return checked

    def __repr__(self) -> str:
        return f"LocalModel({self.name!r}, position={self.position})"
