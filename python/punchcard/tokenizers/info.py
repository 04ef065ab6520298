"""What Punchcard knows of a tokenizer: the exact bytes of each token, the special ones, and those that end a text."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from ..errors import TokenizerError
from .table import MAX_VOCAB_SIZE, PathLike, TokenTable, parse_object, read_bytes

if TYPE_CHECKING:
    from .._core import Vocabulary

#: A token by id or, where the source knows names, by name.
TokenRef = SupportsIndex | str

_FORMAT, _VERSION = "punchcard-tokenizer", 1


class TokenizerInfo:
    """The vocabulary of a model, immutable, in the form that masks are made from.

    Build one by the class method named after the source. Each takes two options:

    - ``eos_token_ids``: tokens that end a text, by id or name, *in addition to* those that the source itself names.
      A model often has several (end of turn, end of text, end of message), and its files may disagree; all of them
      end a text here. :meth:`replace` sets them to exactly what it is given. At least one must be known in the end.
    - ``vocab_size``: the width of the model's logits, where it is padded beyond the tokens. Ids without a token are
      never allowed. A width below the number of tokens drops the tokens that the model cannot name.

    Attributes (all read-only):
        tokens: ``list[bytes]``, the bytes of each id; ``b""`` for holes, padding and pieces of unknown bytes, which
            are never allowed. For special tokens the name in UTF-8, which never matches as text.
        vocab_size: ids that a mask covers, at least ``len(tokens)``.
        eos_token_ids: ids that end a text, ascending.
        special_token_ids: ids that are control tokens, not text, ascending; those that end a text are among them.
    """

    __slots__ = ("_vocabulary", "eos_token_ids", "special_token_ids", "tokens", "vocab_size")

    tokens: list[bytes]
    vocab_size: int
    eos_token_ids: list[int]
    special_token_ids: list[int]

    def __init__(
        self,
        table: TokenTable,
        *,
        eos_token_ids: Iterable[TokenRef] | TokenRef = (),
        special_token_ids: Iterable[TokenRef] = (),
        vocab_size: int | None = None,
    ) -> None:
        """Complete a table that was read from a source. The class methods do both."""
        width = (
            max(len(table.tokens), table.vocab_size or 0) if vocab_size is None else _index(vocab_size, "vocab_size")
        )
        if not 0 < width <= MAX_VOCAB_SIZE:
            raise TokenizerError(f"vocab_size is {width}; it must be from 1 to {MAX_VOCAB_SIZE}")
        # A copy of so long a list would take as long as reading it.
        self.tokens = table.tokens if width >= len(table.tokens) else table.tokens[:width]
        self.vocab_size = width
        self._vocabulary: Vocabulary | None = None
        specials = {i for i in table.special_token_ids if 0 <= i < width}
        specials.update([self._resolve(ref, specials) for ref in _refs(special_token_ids)])
        ends = {i for i in table.eos_token_ids if i < width}
        ends.update([self._resolve(ref, specials) for ref in _refs(eos_token_ids)])
        self.eos_token_ids = sorted(ends)
        self.special_token_ids = sorted(specials | ends)
        if not ends:
            names = ", ".join(list(self.special_tokens)[:12]) or "none known"
            raise TokenizerError(
                "no end token is known, so no text could ever end",
                hint=f"Name it by eos_token_ids; special tokens: {names}",
            )

    # Sources, each read by the module of the same name.

    @classmethod
    def from_vocab(
        cls,
        tokens: Sequence[bytes | str | None],
        *,
        eos_token_ids: Iterable[TokenRef] | TokenRef,
        special_token_ids: Iterable[TokenRef] = (),
        vocab_size: int | None = None,
    ) -> TokenizerInfo:
        """From the tokens in order of id: bytes, or ``b""`` or ``None`` for an id without a token.

        A ``str`` is taken for the token's printed form, so one that holds U+FFFD is a piece of unknown bytes; give
        bytes wherever you can. Nothing but ``eos_token_ids`` ends a text.
        """
        from .vocab import read

        return cls(
            read(tokens), eos_token_ids=eos_token_ids, special_token_ids=special_token_ids, vocab_size=vocab_size
        )

    @classmethod
    def from_tokenizer_json(
        cls, path: PathLike, *, eos_token_ids: Iterable[TokenRef] | TokenRef = (), vocab_size: int | None = None
    ) -> TokenizerInfo:
        """From a ``tokenizer.json``, or the folder that holds one.

        The end tokens, and the width of the logits, are read from ``generation_config.json``, ``config.json`` and
        ``tokenizer_config.json`` beside it, as far as these exist.
        """
        from .tokenizer_json import read

        return cls(read(path), eos_token_ids=eos_token_ids, vocab_size=vocab_size)

    @classmethod
    def from_huggingface(
        cls, tokenizer: Any, *, eos_token_ids: Iterable[TokenRef] | TokenRef = (), vocab_size: int | None = None
    ) -> TokenizerInfo:
        """From a tokenizer object of transformers, or a ``tokenizers.Tokenizer``.

        A model's ``generation_config.eos_token_id`` often names more end tokens than its tokenizer: hand it over as
        ``eos_token_ids``, and ``model.config.vocab_size`` as ``vocab_size``.
        """
        from .huggingface import read

        return cls(read(tokenizer), eos_token_ids=eos_token_ids, vocab_size=vocab_size)

    @classmethod
    def from_tiktoken(
        cls,
        encoding: Any,
        *,
        special_tokens: Mapping[str, int] | None = None,
        eos_token_ids: Iterable[TokenRef] | TokenRef = (),
        vocab_size: int | None = None,
    ) -> TokenizerInfo:
        """From a tiktoken ``Encoding``, or the path of a file of ranks and its ``special_tokens``, ids by name."""
        from .tiktoken import read

        return cls(read(encoding, special_tokens), eos_token_ids=eos_token_ids, vocab_size=vocab_size)

    @classmethod
    def from_sentencepiece(
        cls, model: Any, *, eos_token_ids: Iterable[TokenRef] | TokenRef = (), vocab_size: int | None = None
    ) -> TokenizerInfo:
        """From the path of a SentencePiece ``.model``, its bytes, or a ``SentencePieceProcessor``."""
        from .sentencepiece import read

        return cls(read(model), eos_token_ids=eos_token_ids, vocab_size=vocab_size)

    @classmethod
    def from_gguf(
        cls, path: PathLike, *, eos_token_ids: Iterable[TokenRef] | TokenRef = (), vocab_size: int | None = None
    ) -> TokenizerInfo:
        """From a model file of llama.cpp; only its header is read. Its ends of text, turn and message all end a text.

        Raises :class:`~punchcard.errors.ModelError` where the file is missing, damaged or no GGUF.
        """
        from .gguf import read

        return cls(read(path), eos_token_ids=eos_token_ids, vocab_size=vocab_size)

    @classmethod
    def from_tekken(
        cls, path: PathLike, *, eos_token_ids: Iterable[TokenRef] | TokenRef = (), vocab_size: int | None = None
    ) -> TokenizerInfo:
        """From the path of a ``tekken.json`` of Mistral's."""
        from .tekken import read

        return cls(read(path), eos_token_ids=eos_token_ids, vocab_size=vocab_size)

    def replace(
        self,
        *,
        eos_token_ids: Iterable[TokenRef] | TokenRef | None = None,
        special_token_ids: Iterable[TokenRef] | None = None,
        vocab_size: int | None = None,
    ) -> TokenizerInfo:
        """A copy in which what is given holds *instead of* what is known; an end token is still special."""
        table = TokenTable(
            self.tokens,
            special_token_ids=set(self.special_token_ids) if special_token_ids is None else set(),
            eos_token_ids=set(self.eos_token_ids) if eos_token_ids is None else set(),
            vocab_size=self.vocab_size,
        )
        return TokenizerInfo(
            table,
            eos_token_ids=() if eos_token_ids is None else eos_token_ids,
            special_token_ids=() if special_token_ids is None else special_token_ids,
            vocab_size=vocab_size,
        )

    # Use.

    @property
    def vocabulary(self) -> Vocabulary:
        """The engine's form of the vocabulary, built at the first use and kept."""
        if self._vocabulary is None:
            from .._core import Vocabulary

            self._vocabulary = Vocabulary(
                self.tokens,
                eos_token_ids=self.eos_token_ids,
                special_token_ids=self.special_token_ids,
                vocab_size=self.vocab_size,
            )
        return self._vocabulary

    @property
    def special_tokens(self) -> dict[str, int]:
        """Ids of the special tokens by name, as far as names are known."""
        known = ((self.tokens[i], i) for i in self.special_token_ids if i < len(self.tokens))
        return {name.decode("utf-8", "replace"): i for name, i in known if name}

    def token_id(self, name: str) -> int:
        """The id of the special token ``name``. Raises :class:`TokenizerError` where there is none."""
        return self._resolve(name, set(self.special_token_ids))

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """The bytes that a sequence of tokens stands for. Special tokens, and ids without a token, add nothing.

        Unlike a tokenizer's own ``decode``, this keeps the space that a SentencePiece text begins with.
        """
        special, tokens = set(self.special_token_ids), self.tokens
        return b"".join(tokens[i] for i in token_ids if 0 <= i < len(tokens) and i not in special)

    # Serialisation.

    def to_json(self) -> str:
        """Everything as a JSON text (ASCII only), for :meth:`from_json`. In a token, each character is one byte."""
        return json.dumps(
            {
                "format": _FORMAT,
                "version": _VERSION,
                "vocab_size": self.vocab_size,
                "eos_token_ids": self.eos_token_ids,
                "special_token_ids": self.special_token_ids,
                "tokens": [token.decode("latin-1") for token in self.tokens],
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> TokenizerInfo:
        """What :meth:`to_json` wrote, the same to the byte."""
        data = parse_object(text, "the tokenizer description")
        if data.get("format") != _FORMAT or data.get("version") != _VERSION:
            raise TokenizerError(
                f"the tokenizer description is not of the format {_FORMAT}, version {_VERSION}",
                hint="A tokenizer.json is read by from_tokenizer_json",
            )
        try:
            return cls(
                TokenTable([token.encode("latin-1") for token in data["tokens"]]),
                eos_token_ids=data["eos_token_ids"],
                special_token_ids=data["special_token_ids"],
                vocab_size=data["vocab_size"],
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise TokenizerError(f"the tokenizer description is damaged: {type(error).__name__}: {error}") from error

    def save(self, path: PathLike) -> None:
        """Write :meth:`to_json` to a file."""
        Path(path).write_text(self.to_json(), encoding="ascii")

    @classmethod
    def load(cls, path: PathLike) -> TokenizerInfo:
        """Read what :meth:`save` wrote."""
        return cls.from_json(read_bytes(path))

    def _resolve(self, ref: TokenRef, specials: set[int]) -> int:
        """The id that ``ref`` means: itself, that of the special token of this name, or of the token of this text."""
        if not isinstance(ref, str):
            token_id = _index(ref, "a token id")
            if not 0 <= token_id < self.vocab_size:
                raise TokenizerError(
                    f"token id {token_id} is out of range: the vocabulary has {self.vocab_size} ids", token_id=token_id
                )
            return token_id
        tokens, name = self.tokens, ref.encode("utf-8", "surrogatepass")
        for i in sorted(specials):
            if i < len(tokens) and tokens[i] == name:
                return i
        if name and name in tokens:
            return tokens.index(name)
        close = get_close_matches(ref, [tokens[i].decode("utf-8", "replace") for i in specials if i < len(tokens)], 3)
        hint = f"Do you mean {' or '.join(close)}?" if close else None
        raise TokenizerError(f"no token is called {ref!r}", hint=hint, name=ref)

    def _state(self) -> tuple[list[bytes], int, list[int], list[int]]:
        return self.tokens, self.vocab_size, self.eos_token_ids, self.special_token_ids

    def __reduce__(self) -> tuple[Any, ...]:
        return TokenizerInfo.from_json, (self.to_json(),)

    def __eq__(self, other: object) -> bool:
        return self._state() == other._state() if isinstance(other, TokenizerInfo) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.vocab_size, tuple(self.eos_token_ids), len(self.tokens)))

    def __repr__(self) -> str:
        ends, known = ", ".join(map(str, self.eos_token_ids)), len(self.tokens)
        return (
            f"TokenizerInfo({known} tokens of {self.vocab_size}, {len(self.special_token_ids)} special, ends: {ends})"
        )


def _index(value: object, name: str) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise TokenizerError(f"{name} must be a whole number, not {value!r}") from error


def _refs(value: Iterable[TokenRef] | TokenRef) -> list[TokenRef]:
    """One token or several as a list. Arrays have ``__index__`` too: whether one is an index shows when it is used."""
    if isinstance(value, str):
        return [value]
    try:
        return [operator.index(value)]  # type: ignore[arg-type]
    except TypeError:
        pass
    try:
        return list(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise TokenizerError(f"token ids must be whole numbers, not {value!r}") from error
