"""Tokenizer objects of the Hugging Face libraries (and of what has their shape), read by what they are made of.

Never by what they print: the text that ``decode`` or ``convert_ids_to_tokens`` gives for one token is not its
bytes. Known makes, in order: a Rust tokenizer (``tokenizers.Tokenizer``, any fast tokenizer of transformers), a
SentencePiece processor, a tiktoken encoding, a file of Mistral's. The object's own ``eos_token_id`` and special ids
are united with what that gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import TokenizerError
from . import sentencepiece, tekken, tiktoken, tokenizer_json
from .pieces import utf8
from .specials import looks_special
from .table import TokenTable, ids_in, parse_object


def read(tokenizer: Any) -> TokenTable:
    """A table of a tokenizer object."""
    table = _pieces(tokenizer)
    table.special_token_ids.update(
        i for i in ids_in(getattr(tokenizer, "all_special_ids", None)) if i < len(table.tokens)
    )
    table.add_end(*ids_in(getattr(tokenizer, "eos_token_id", None)))
    folder = getattr(tokenizer, "name_or_path", None)
    if isinstance(folder, str) and folder and Path(folder).is_dir():
        tokenizer_json.read_sidecars(table, Path(folder))
    return table


def _pieces(tokenizer: Any) -> TokenTable:
    for rust in (tokenizer, getattr(tokenizer, "backend_tokenizer", None)):
        if rust is not None and hasattr(rust, "to_str"):
            return tokenizer_json.read_object(parse_object(rust.to_str(), "the tokenizer"), "the tokenizer")
    for name in ("sp_model", "tokenizer", "model", "_tokenizer"):
        inner = getattr(tokenizer, name, None)
        if hasattr(inner, "serialized_model_proto"):
            return _with_added(sentencepiece.read(inner), tokenizer)
        if hasattr(inner, "decode_single_token_bytes"):
            return _with_added(tiktoken.read(inner), tokenizer)
    if (path := _mistral_file(tokenizer)) is not None:
        return tekken.read(path) if path.suffix == ".json" else sentencepiece.read(path)
    raise TokenizerError(
        f"the pieces of a {type(tokenizer).__name__} cannot be read",
        hint="Load the fast tokenizer, or read its file: from_tokenizer_json, from_sentencepiece, from_tiktoken",
    )


def _with_added(table: TokenTable, tokenizer: Any) -> TokenTable:
    """Lay the tokens that transformers added over those of the model."""
    added = getattr(tokenizer, "added_tokens_decoder", None)
    for token_id, token in (added if isinstance(added, dict) else {}).items():
        text = str(token)
        table.add(token_id, utf8(text), special=bool(getattr(token, "special", False)) or looks_special(text))
    return table


def _mistral_file(tokenizer: Any) -> Path | None:
    """The file behind a tokenizer of mistral-common, which transformers wraps twice."""
    for name in ("tokenizer", "instruct_tokenizer", "tokenizer"):
        tokenizer = getattr(tokenizer, name, tokenizer)
    path = getattr(tokenizer, "file_path", None)
    return Path(path) if isinstance(path, (str, Path)) else None
