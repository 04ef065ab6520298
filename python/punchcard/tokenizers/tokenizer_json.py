"""``tokenizer.json``, the file of the Hugging Face tokenizers library: BPE, Unigram, WordPiece, WordLevel.

The pieces are in ``model.vocab``, the way to read them in ``decoder``, and ``added_tokens`` are laid over both by
id. The file does not say which tokens end a text. The files beside it do, and their statements are united:
``generation_config.json`` and ``config.json`` (``eos_token_id``, one or several) and ``tokenizer_config.json``
(``eos_token``, by name). ``config.json`` also tells the width of the logits, where the model pads its vocabulary.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import TokenizerError
from .decoders import PieceDecoder
from .pieces import utf8
from .specials import looks_special
from .table import PathLike, TokenTable, ids_in, parse_object, place, read_bytes


def read(path: PathLike) -> TokenTable:
    """A table of the file at ``path``, or in the folder at ``path``, with what the files beside it add."""
    file = Path(path)
    if file.is_dir():
        file /= "tokenizer.json"
    table = read_object(parse_object(read_bytes(file), os.fspath(file)), os.fspath(file))
    read_sidecars(table, file.parent)
    return table


def read_object(data: dict[str, Any], name: str) -> TokenTable:
    """A table of a parsed file; ``name`` is what errors call it. It knows no end tokens."""
    model = data.get("model")
    if not isinstance(model, dict) or not isinstance(vocab := model.get("vocab"), (dict, list)):
        raise TokenizerError(f"{name} holds no vocabulary", hint="A tokenizer.json has it in model.vocab")
    try:
        decoder = PieceDecoder(data)
        if isinstance(vocab, dict):
            table = TokenTable(place(decoder.all(vocab)))
            unknown = model.get("unk_token")
            table.special_token_ids.update(ids_in(vocab.get(unknown) if isinstance(unknown, str) else None))
        else:  # Unigram: a list of pairs of piece and score. Pieces need not differ.
            table = TokenTable([decoder(piece) for piece, _ in vocab])
            table.special_token_ids.update(ids_in(model.get("unk_id")))
        for token in data.get("added_tokens") or ():
            text, special = token["content"], bool(token.get("special")) or looks_special(token["content"])
            table.add(token["id"], utf8(text) if special else decoder.added(text), special=special)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise TokenizerError(f"{name} is damaged: {type(error).__name__}: {error}") from error
    return table


def read_sidecars(table: TokenTable, folder: Path) -> None:
    """Add what the configuration files in ``folder`` say of end tokens and of the width of the logits."""
    for name in ("generation_config.json", "config.json"):
        config = _config(folder / name)
        text_config = config.get("text_config")  # where a multimodal model keeps its language model's
        for part in (config, text_config if isinstance(text_config, dict) else {}):
            table.add_end(*ids_in(part.get("eos_token_id")))
            width = part.get("vocab_size")
            if isinstance(width, int) and width > len(table.tokens):
                table.vocab_size = width
    eos_token = _config(folder / "tokenizer_config.json").get("eos_token")
    if isinstance(eos_token, dict):
        eos_token = eos_token.get("content")
    if isinstance(eos_token, str):
        name_bytes = utf8(eos_token)
        table.add_end(*(i for i in table.special_token_ids if i < len(table.tokens) and table.tokens[i] == name_bytes))


def _config(path: Path) -> dict[str, Any]:
    return parse_object(read_bytes(path), os.fspath(path)) if path.is_file() else {}
